package examples

import (
	"io"
	"testing"

	"farflash/block"
	"farflash/model/cosim"
	"farflash/model/ssd"
	"farflash/numeric/rng"
	"farflash/policy/ftl"
	"farflash/sim"
	"farflash/workload"
)

// Oldest is a custom victim policy, as a program outside of Farflash might implement it: it picks the block with the
// fewest valid pages among the given share of the blocks that were filled first.
type Oldest struct{ Share float64 }

// Pick implements ftl.Picker.
func (p Oldest) Pick(c ftl.Candidates) int32 {
	left := max(1, int(p.Share*float64(c.Len())))
	best, _ := c.Next()
	for ; left > 1; left-- {
		if x, ok := c.Next(); ok && x.Valid < best.Valid {
			best = x
		}
	}
	return best.Block
}

// Overwrites is a source of random writes of one size.
type Overwrites struct {
	Requests int
	Span     int64
	Size     int64
	Random   rng.Stream
}

// Next implements workload.Source.
func (s *Overwrites) Next(r *workload.Record) error {
	if s.Requests == 0 {
		return io.EOF
	}
	s.Requests--
	*r = workload.Record{Response: workload.NoResponse, Offset: s.Random.IntN(s.Span/s.Size) * s.Size, Size: s.Size,
		Op: block.Write}
	return nil
}

// TestVictimPolicyOfOnesOwn verifies, on a small drive under random overwrites, that considering only the oldest
// block equals fifo, that considering all blocks equals greedy except for ties, and that considering half of them
// moves about as few pages as all.
func TestVictimPolicyOfOnesOwn(t *testing.T) {
	amplification := func(victim ftl.Victim, own ftl.Picker) float64 {
		cfg := ssd.DefaultConfig()
		g := &cfg.Geometry
		g.Channels, g.ChipsPerChannel, g.DiesPerChip, g.PlanesPerDie, g.BlocksPerPlane, g.PagesPerBlock = 1, 1, 1, 1,
			128, 32
		cfg.OverProvisioning, cfg.Cache.Mode, cfg.Mapping.Ideal, cfg.Mapping.Grain = 0.15, ssd.CacheOff, true, 0
		cfg.Collection.Victim = victim
		eng := sim.New()
		host := cosim.NewHost(eng)
		drive, err := ssd.New(cfg, eng, host, 1, "ssd")
		if err != nil {
			t.Fatal(err)
		}
		if own != nil {
			if err := drive.CollectBy(own); err != nil {
				t.Fatal(err)
			}
		}
		size := int64(g.PageSize)
		flow := cosim.Flow{
			Name: "overwrites", Outstanding: 4, Queue: block.QueueConfig{Depth: 8, Class: block.Medium, Weight: 1},
			Source: &Overwrites{Requests: 20000, Span: drive.Capacity(0) / size * size, Size: size,
				Random: rng.NewStream(1, "overwrites")},
		}
		if err := host.Attach(drive, []cosim.Flow{flow}); err != nil {
			t.Fatal(err)
		}
		if err := host.Start(); err != nil {
			t.Fatal(err)
		}
		eng.Run(sim.Forever)
		for _, c := range drive.Checks() {
			if !c.OK {
				t.Errorf("%s: %s", c.Name, c.Detail)
			}
		}
		s := drive.Stats()
		return float64(s.HostPrograms+s.MovePrograms) / float64(s.HostPrograms)
	}
	fifo, greedy := amplification(ftl.FIFO, nil), amplification(ftl.Greedy, nil)
	one, half, all := amplification(ftl.FIFO, Oldest{0}), amplification(ftl.FIFO, Oldest{0.5}),
		amplification(ftl.FIFO, Oldest{1})
	t.Logf("fifo %.3f, one %.3f, half %.3f, all %.3f, greedy %.3f", fifo, one, half, all, greedy)
	if one != fifo {
		t.Errorf("%v of one block, %v by fifo", one, fifo)
	}
	if half > 0.97*one || all < 0.98*greedy || all > 1.02*greedy {
		t.Errorf("%v, %v and %v of one, half and all; %v by greedy", one, half, all, greedy)
	}
}
