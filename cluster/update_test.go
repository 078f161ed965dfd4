package cluster

import (
	"math"
	"testing"

	"farflash/rng"
	"farflash/sim"
	"farflash/units"
)

// TestStripe: what is read and written for a part of a chunk, by hand for 4+2 of 64 KiB (pieces of 16 KiB).
func TestStripe(t *testing.T) {
	const k = units.KiB
	for _, x := range []struct {
		name         string
		size, offset units.Bytes
		read, write  [6]units.Bytes
	}{
		{"a part of a piece: it and the parity are read", 4 * k, 4 * k, [6]units.Bytes{4 * k, 0, 0, 0, 4 * k, 4 * k}, [6]units.Bytes{4 * k, 0, 0, 0, 4 * k, 4 * k}},
		{"a piece: the same, for the other three are no less", 16 * k, 16 * k, [6]units.Bytes{0, 16 * k, 0, 0, 16 * k, 16 * k}, [6]units.Bytes{0, 16 * k, 0, 0, 16 * k, 16 * k}},
		{"two pieces: the other two are less than these and the parity", 32 * k, 32 * k, [6]units.Bytes{16 * k, 16 * k}, [6]units.Bytes{0, 0, 16 * k, 16 * k, 16 * k, 16 * k}},
		{"all: nothing is read", 64 * k, 0, [6]units.Bytes{}, [6]units.Bytes{16 * k, 16 * k, 16 * k, 16 * k, 16 * k, 16 * k}},
		{"the end of one and the begin of the next, of which no part is the same", 8 * k, 12 * k, [6]units.Bytes{4 * k, 4 * k, 0, 0, 8 * k, 8 * k}, [6]units.Bytes{4 * k, 4 * k, 0, 0, 8 * k, 8 * k}},
		{"the same with more than a piece between", 24 * k, 12 * k, [6]units.Bytes{12 * k, 0, 12 * k, 16 * k}, [6]units.Bytes{4 * k, 16 * k, 4 * k, 0, 16 * k, 16 * k}},
		{"at the end of the chunk, where less is left", 24 * k, 48 * k, [6]units.Bytes{0, 0, 0, 16 * k, 16 * k, 16 * k}, [6]units.Bytes{0, 0, 0, 16 * k, 16 * k, 16 * k}},
	} {
		cfg := DefaultConfig()
		cfg.Chunk, cfg.Code, cfg.Update = 64*k, Code{Data: 4, Parity: 2}, Update{Share: 1, Size: x.size}
		s := cfg.stripe(x.offset)
		if [6]units.Bytes(s.read[:6]) != x.read || [6]units.Bytes(s.write[:6]) != x.write {
			t.Errorf("%s: %v read and %v written, not %v and %v", x.name, s.read[:6], s.write[:6], x.read, x.write)
		}
	}
}

// TestStripeLaws: all of a part is written, parity as much as the most of any piece at least, and what is read is no more than by either way.
func TestStripeLaws(t *testing.T) {
	s := rng.NewStream(3, "stripes")
	for range 20_000 {
		cfg := DefaultConfig()
		cfg.Code = Code{Data: 1 + int(s.IntN(8)), Parity: int(s.IntN(4))}
		cfg.Chunk = units.Bytes(cfg.Code.Data) + units.Bytes(s.IntN(5000))
		cfg.Update = Update{Share: 1, Size: 1 + units.Bytes(s.IntN(int64(cfg.Chunk)))}
		x := cfg.stripe(units.Bytes(s.IntN(cfg.offsets())) * cfg.Update.Size)
		var data, most, read units.Bytes
		for k := range cfg.Code.Data {
			data += x.write[k]
			most = max(most, x.write[k])
		}
		for k := range maxReplicas {
			if read += x.read[k]; x.read[k] < 0 || x.read[k] > cfg.piece() || x.write[k] < 0 || x.write[k] > cfg.piece() {
				t.Fatalf("%+v, %+v: %+v", cfg.Code, cfg.Update, x)
			}
		}
		parity := most
		if cfg.Code.Parity > 0 {
			parity = x.write[cfg.Code.Data]
		}
		if data != cfg.Update.Size || parity < most || parity > cfg.piece() {
			t.Fatalf("%+v of %v, %+v: %v of data and %v of parity are written", cfg.Code, cfg.Chunk, cfg.Update, data, parity)
		}
		if cfg.Code.Parity > 0 && (read > data+units.Bytes(cfg.Code.Parity)*parity || read > units.Bytes(cfg.Code.Data)*parity) {
			t.Fatalf("%+v of %v, %+v: %v is read", cfg.Code, cfg.Chunk, cfg.Update, read)
		}
	}
}

// TestUpdateAlone: one that is alone takes two messages, what the slowest reads and sends, the gateway's sending, and the last write.
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
	// Three requests leave one after the other; what the first target reads comes when the last is still being asked; three parts come one after the other, and leave so.
	trip := cfg.Link.Trip
	want := message + trip + disk + trip + 3*part + 3*part + trip + disk + message + trip
	if off := took - want; off < -2*message || off > 2*message {
		t.Errorf("it takes %v, not %v", took, want)
	}
}

// TestUpdates: parts are written beside whole chunks, reads and losses by every protocol with codes; disks write what the stripes say, the bound is kept to, and all laws hold.
func TestUpdates(t *testing.T) {
	for _, p := range Schemes() {
		cfg := DefaultConfig()
		cfg.Protocol, cfg.Gateways, cfg.Targets, cfg.Group, cfg.Chunk, cfg.Outstanding, cfg.Objects = p, 9, 18, 9, 64*units.KiB, 4, 200
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
		if share := float64(k.Updates.Done) / float64(k.Updates.Done+k.Done); math.Abs(share-0.5) > 0.06 || k.Updates.Done < 100 {
			t.Errorf("%v: %d of %d are of parts", p, k.Updates.Done, k.Done)
		}
		_, written := cfg.updated()
		if got, want := float64(k.Renewed.Written)/float64(k.Updates.Done), written*float64(cfg.piece()); math.Abs(got/want-1) > 0.05 {
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
			continue // it does not go on when something is lost
		}
		c.Start()
		c.eng.Run(until)
		if err := c.Check(); err != nil || c.Counters.Retried == 0 || c.Counters.Updates.Done < 50 {
			t.Errorf("%v: %v; %d of parts are done, %d begun again", p, err, c.Counters.Updates.Done, c.Counters.Retried)
		}
	}
}

// TestUpdateKeys: parts of replicas, of chunks of several sizes, larger than a chunk or beside failures are refused.
func TestUpdateKeys(t *testing.T) {
	for _, change := range []func(*Config){
		func(c *Config) { c.Code = Code{} }, func(c *Config) { c.Update.Size = 0 }, func(c *Config) { c.Update.Size = 2 * c.Chunk }, func(c *Config) { c.Update.Share = 0 }, func(c *Config) { c.Update.Share = 1.5 },
		func(c *Config) { c.Reads = 1 }, func(c *Config) { c.Failures = []Failure{{At: 1}} }, func(c *Config) { c.Sizes = []Size{{Chunk: c.Chunk, Share: 1}} },
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
