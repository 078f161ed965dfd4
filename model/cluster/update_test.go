package cluster

import (
	"math"
	"testing"

	"farflash/numeric/units"
	"farflash/sim"
)

// TestUpdateAlone verifies that a lone update takes two messages, the slowest read and its transfer, the gateway's
// transmission, and the last write.
func TestUpdateAlone(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Protocol, cfg.Gateways, cfg.Targets, cfg.Chunk, cfg.Code = Chain, 1, 18, 64*units.KiB, Code{Data: 4, Parity: 2}
	cfg.Update = Update{Share: 1, Size: 4 * units.KiB}
	eng := sim.New()
	c, err := New(cfg, eng, 1)
	if err != nil {
		t.Fatal(err)
	}
	var took sim.Time
	c.OnDone = func(d *Done) {
		if took == 0 {
			took = d.Done - d.Begun
			if !d.Update || d.Read || d.Size != 4*units.KiB {
				t.Errorf("%+v", d)
			}
		}
	}
	c.Start()
	eng.Run(units.Millisecond)
	message, disk, part := c.bus.OnLink(), c.takes(0, 4*units.KiB), c.bus.FrameTime(4*units.KiB)
	// Three requests leave one after the other; the first target's data arrives while the last one is still being
	// asked; three parts arrive one after the other, and leave likewise.
	trip := cfg.Link.Trip
	want := message + trip + disk + trip + 3*part + 3*part + trip + disk + message + trip
	if off := took - want; off < -2*message || off > 2*message {
		t.Errorf("it takes %v, not %v", took, want)
	}
}

// TestUpdates verifies partial overwrites mixed with whole chunks, reads and losses, for every protocol with codes:
// disks write what the stripes prescribe, bounds are respected, and all laws hold.
func TestUpdates(t *testing.T) {
	for _, p := range Schemes() {
		cfg := DefaultConfig()
		cfg.Protocol, cfg.Gateways, cfg.Targets, cfg.Group, cfg.Chunk, cfg.Outstanding, cfg.Objects = p, 9, 18, 9,
			64*units.KiB, 4, 200
		cfg.Code, cfg.Update = Code{Data: 4, Parity: 2}, Update{Share: 0.5, Size: 12 * units.KiB}
		if cfg.Validate() != nil {
			continue // it has no codes
		}
		cfg.Disk.Count = 2
		const until = 60 * units.Millisecond
		eng := sim.New()
		c, err := New(cfg, eng, 1)
		if err != nil {
			t.Fatal(err)
		}
		c.Start()
		eng.Run(until)
		if err := c.Check(); err != nil {
			t.Errorf("%v: %v", p, err)
		}
		k := &c.Counters
		if share := float64(k.Updates.Done) / float64(k.Updates.Done+k.Done); math.Abs(share-0.5) > 0.06 ||
			k.Updates.Done < 100 {
			t.Errorf("%v: %d of %d are of parts", p, k.Updates.Done, k.Done)
		}
		_, written := cfg.parts().mean()
		if got, want := float64(k.Renewed.Written)/float64(k.Updates.Done),
			written*float64(cfg.piece()); math.Abs(got/want-1) > 0.05 {
			t.Errorf("%v: %v B are written for a part, not %v", p, got, want)
		}
		if done, most := float64(k.Done+k.Updates.Done)/until.Seconds(), c.Bound().Chunks; done > 1.01*most {
			t.Errorf("%v: %v a second are more than %v", p, done, most)
		}
		cfg.Link.Loss, cfg.Reads, cfg.Racks = 0.002, 0.3, 9
		if cfg.Validate() != nil {
			cfg.Racks = 0
		}
		if c, err = New(cfg, sim.New(), 2); err != nil {
			continue // it does not tolerate loss
		}
		c.Start()
		c.eng.Run(until)
		if err := c.Check(); err != nil || c.Counters.Retried == 0 || c.Counters.Updates.Done < 50 {
			t.Errorf("%v: %v; %d of parts are done, %d begun again", p, err, c.Counters.Updates.Done,
				c.Counters.Retried)
		}
	}
}

// TestUpdateKeys verifies that updates of replicas, of chunks of several sizes, larger than a chunk or with failures
// are refused.
func TestUpdateKeys(t *testing.T) {
	for _, change := range []func(*Config){
		func(c *Config) { c.Code = Code{} }, func(c *Config) { c.Update.Size = 0 },
		func(c *Config) { c.Update.Size = 2 * c.Chunk }, func(c *Config) { c.Update.Share = 0 },
		func(c *Config) { c.Update.Share = 1.5 },
		func(c *Config) { c.Reads = 1 }, func(c *Config) { c.Failures = []Failure{{At: 1}} },
		func(c *Config) { c.Sizes = []Size{{Chunk: c.Chunk, Share: 1}} },
	} {
		cfg := DefaultConfig()
		cfg.Protocol, cfg.Code, cfg.Update = Pull, Code{Data: 4, Parity: 2}, Update{Share: 0.5, Size: units.KiB}
		if err := cfg.Validate(); err != nil {
			t.Fatal(err)
		}
		if change(&cfg); cfg.Validate() == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
}
