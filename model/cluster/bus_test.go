package cluster_test

import (
	"testing"

	"farflash/model/cluster"
	"farflash/model/cluster/networktest"
	"farflash/model/cluster/put"
	"farflash/model/cluster/put/puttest"
	"farflash/numeric/units"
	"farflash/sim"
)

// TestBus runs the conformance tests of package put on the cluster's bus: with links that queue, with links that do
// not, where messages could be lost but are not, and on a packet network.
func TestBus(t *testing.T) {
	for name, change := range map[string]func(*cluster.Config){
		"queued":     func(*cluster.Config) {},
		"not queued": func(c *cluster.Config) { c.Control.Queued = false },
		"lossy":      func(c *cluster.Config) { c.Link.Loss = 1e-300 },
		"network":    func(c *cluster.Config) { c.Core = cluster.CorePacket },
	} {
		t.Run(name, func(t *testing.T) {
			puttest.Conform(t, func(t *testing.T, protocol func(*put.Bus) put.Protocol) puttest.Subject {
				cfg := cluster.DefaultConfig()
				cfg.Gateways, cfg.Targets = 2, 18
				cfg.RetryAfter = 10 * units.Second // the test's protocol puts no chunks
				change(&cfg)
				eng := sim.New()
				c, bus, err := cluster.NewOn(cfg, eng, protocol)
				if err != nil {
					t.Fatal(err)
				}
				if cfg.Core == cluster.CorePacket {
					c.Carry(networktest.New(eng, cfg.Link.Rate*99/100, cfg.Link.Trip, c.Delivered))
				}
				return puttest.Subject{Bus: bus, Engine: eng, Begin: func(int32) { c.Start() }}
			})
		})
	}
}
