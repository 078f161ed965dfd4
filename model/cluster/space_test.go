package cluster

import (
	"testing"

	"farflash/numeric/units"
	"farflash/sim"
)

// TestMemory verifies that memory never exceeds its limit, that every protocol makes progress with space for one piece,
// that throughput is unchanged if there is plenty and lower if there is little, and that all laws hold under losses and
// failures.
func TestMemory(t *testing.T) {
	run := func(p Scheme, memory units.Bytes, change func(*Config)) (*Cluster, float64) {
		cfg := DefaultConfig()
		cfg.Protocol, cfg.Gateways, cfg.Targets, cfg.Group, cfg.Chunk, cfg.Memory = p, 9, 18, 9, 64*units.KiB, memory
		if p == CommandWindow {
			cfg.Replicas = 1
		}
		if change != nil {
			change(&cfg)
		}
		for _, u := range cfg.Unused() {
			u.Reset()
		}
		eng := sim.New()
		c, err := New(cfg, eng, 1)
		if err != nil {
			t.Fatal(p, err)
		}
		c.Start()
		for at := sim.Time(0); at < 40*units.Millisecond; at += 100 * units.Microsecond {
			eng.Run(at)
			for k := range cfg.Targets {
				if memory == 0 {
					break
				}
				if used := c.rooms[k].used; used > memory {
					t.Fatalf("%v: target %d keeps %v, of %v", p, k, used, memory)
				}
			}
		}
		if err := c.Check(); err != nil {
			t.Errorf("%v, %v: %v", p, memory, err)
		}
		return c, float64(c.Counters.Done)
	}
	for _, p := range Schemes() {
		const piece = 64 * units.KiB
		_, without := run(p, 0, nil)
		_, plenty := run(p, 100*piece, nil)
		_, little := run(p, piece, nil)
		if plenty != without {
			t.Errorf("%v: %v chunks with plenty of memory, and %v without a limit", p, plenty, without)
		}
		if little < 0.2*without || little > 1.02*without {
			t.Errorf("%v: %v chunks with room for one, and %v without a limit", p, little, without)
		}
		if p == ReplicastProxy || p == CommandWindow {
			continue
		}
		c, _ := run(p, 2*piece, func(c *Config) {
			c.Link.Loss, c.Reads, c.Objects, c.Repair.Detect, c.Outstanding = 0.002, 0.3, 200, units.Millisecond, 4
			c.Failures = []Failure{{Target: 3, At: 5 * units.Millisecond, Back: 15 * units.Millisecond}}
		})
		if c.Counters.Done < 100 {
			t.Errorf("%v: %d chunks with losses", p, c.Counters.Done)
		}
	}
}

// TestMemoryKeys verifies that a limit below a piece, a packet network and links without queues are refused.
func TestMemoryKeys(t *testing.T) {
	for _, change := range []func(*Config){func(c *Config) { c.Memory = 1000 },
		func(c *Config) { c.Control.Queued = false }, func(c *Config) { c.Core = CorePacket }} {
		cfg := DefaultConfig()
		cfg.Memory = units.MiB
		change(&cfg)
		if cfg.Validate() == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
}
