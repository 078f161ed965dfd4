package cluster

import (
	"testing"

	"farflash/numeric/units"
	"farflash/sim"
)

// TestForesee verifies that prefetching does not change results.
func TestForesee(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"puts": func(*Config) {},
		"failures": func(c *Config) {
			c.Link.Loss, c.Failures, c.Reads = 0.01, []Failure{{Target: 7, At: 50 * units.Microsecond}}, 0.3
		},
		"chain":   func(c *Config) { c.Protocol, c.Disk.Count, c.Choices, c.Memory = Chain, 2, 2, units.MiB },
		"one way": func(c *Config) { c.Protocol = ReplicastM },
		"parts":   func(c *Config) { c.Code = Code{Data: 4, Parity: 2}; c.Update = Update{Share: 0.5, Size: 4096} },
	} {
		cfg := DefaultConfig()
		cfg.Protocol, cfg.Gateways, cfg.Targets, cfg.Chunk, cfg.Repair.Detect = Pull, foreseen/2, foreseen/2/9*9+9,
			16*units.KiB, 20*units.Microsecond
		change(&cfg)
		var found [2]Counters
		for k := range found {
			eng := sim.New()
			c, err := New(cfg, eng, 1)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			read := 0
			if k > 0 {
				eng.Foresee(c.here, func(list []sim.Event) { read += len(list) })
			}
			c.Start()
			n := eng.Run(150 * units.Microsecond)
			if found[k] = c.Counters; found[k].Begun == 0 || k > 0 && read < int(n)/2 || k == 0 && c.read == 0 {
				t.Errorf("%s: %d begun, %d of %d events told of, %d read", name, found[k].Begun, read, n, c.read)
			}
		}
		if found[0] != found[1] {
			t.Errorf("%s: %+v\nwithout reading ahead %+v", name, found[0], found[1])
		}
	}
}
