package ssd_test

import (
	"testing"

	"farflash/block"
	"farflash/block/blocktest"
	"farflash/model/ssd"
	"farflash/sim"
)

// TestConformance verifies that a drive meets the contract of block.Device for various caches and limits.
func TestConformance(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*ssd.Config)
	}{
		{"write cache", func(*ssd.Config) {}},
		{"no cache", func(c *ssd.Config) { c.Cache.Mode = ssd.CacheOff }},
		{"tiny cache", func(c *ssd.Config) { c.Cache.Capacity = c.Geometry.PageSize }},
		{"one command at once", func(c *ssd.Config) { c.Host.Commands = 1 }},
		{"no limit on commands", func(c *ssd.Config) { c.Host.Commands = 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			blocktest.Conform(t, func(t *testing.T, sink blocktest.Sink) blocktest.Subject {
				cfg := smallConfig()
				c.change(&cfg)
				eng := sim.New()
				d, err := ssd.New(cfg, eng, blocktest.Sink(func(done block.Completion) {
					eng.Stop()
					sink(done)
				}), 1, "ssd")
				if err != nil {
					t.Fatal(err)
				}
				return blocktest.Subject{Device: d, Step: func() bool { return eng.Run(sim.Forever) > 0 }}
			})
		})
	}
}
