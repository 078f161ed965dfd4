package ftl_test

import (
	"slices"
	"testing"

	"farflash/ftl"
	"farflash/sim"
	"farflash/units"

	"pgregory.net/rapid"
)

// drawConfig is a small drive with any policy.
func drawConfig(t *rapid.T) ftl.Config {
	c := ftl.DefaultConfig()
	c.Pools = rapid.IntRange(1, 3).Draw(t, "pools")
	c.PagesPerBlock = rapid.SampledFrom([]int{2, 5, 64, 70}).Draw(t, "pages")
	c.Streams = rapid.IntRange(1, 3).Draw(t, "streams")
	c.Survivors = [][]int{nil, ftl.Pooled(c.Streams), ftl.Mixed(c.Streams)}[rapid.IntRange(0, 2).Draw(t, "survivors")]
	c.Victim = ftl.Victim(rapid.IntRange(0, int(ftl.CostBenefit)).Draw(t, "victim"))
	c.Choices = rapid.IntRange(1, 4).Draw(t, "choices")
	c.Window = units.Fraction(rapid.SampledFrom([]float64{0, 0.3, 1}).Draw(t, "window"))
	c.Trigger = ftl.Trigger(rapid.IntRange(0, 1).Draw(t, "trigger"))
	c.HostReserve = rapid.IntRange(1, 3).Draw(t, "reserve")
	c.GCStart = c.HostReserve + rapid.IntRange(1, 3).Draw(t, "start")
	c.HostStop = rapid.SampledFrom([]int{0, c.GCStart}).Draw(t, "stop")
	c.Concurrent = rapid.IntRange(1, 4).Draw(t, "concurrent")
	c.DynamicWear = rapid.Bool().Draw(t, "dynamic")
	c.StaticWear = rapid.SampledFrom([]int{0, 2}).Draw(t, "static")
	c.BlocksPerPool = 16 + c.GCStart + rapid.IntRange(0, 8).Draw(t, "blocks")
	return c
}

const inFlight = 6 // host programs

// drawFlash is a drive whose logical pages leave room for the programs in flight.
func drawFlash(t *rapid.T, cfg ftl.Config) *flash {
	random := sim.NewStream(rapid.Uint64().Draw(t, "seed"), "victims")
	d, err := newFlash(cfg, 0, &random)
	if err != nil {
		t.Fatal(err)
	}
	// A logical page lives in pool lpa%Pools.
	each := d.Capacity(0) - inFlight - cfg.HostStop*cfg.PagesPerBlock
	each = max(1, each*rapid.IntRange(30, 100).Draw(t, "occupancy")/100)
	d.to = slices.Repeat([]ftl.PPA{ftl.NoPPA}, each*cfg.Pools)
	d.latest = make([]uint64, each*cfg.Pools)
	return d
}

// hot draws a logical page, most often one of the first.
func hot(t *rapid.T, d *flash) ftl.LPA {
	n := len(d.to)
	if rapid.Bool().Draw(t, "hot") {
		n = max(1, n/5)
	}
	return ftl.LPA(rapid.IntRange(0, n-1).Draw(t, "lpa"))
}

// TestMachine runs random drivers, operations in flight in any order, against what
// a map of versions says.
func TestMachine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := drawConfig(t)
		d := drawFlash(t, cfg)
		pool := func(lpa ftl.LPA) int { return int(lpa) % cfg.Pools }
		// Mostly full to begin with, so that collection matters.
		for lpa := range ftl.LPA(len(d.to)) {
			if !d.put(pool(lpa), int(lpa)%cfg.Streams, lpa) {
				t.Fatalf("no page for logical page %d of %d", lpa, len(d.to))
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				for range rapid.IntRange(1, cfg.PagesPerBlock*3).Draw(t, "n") {
					lpa := hot(t, d)
					if len(d.writes) >= inFlight {
						d.finish(rapid.IntRange(0, len(d.writes)-1).Draw(t, "which"))
					}
					d.begin(pool(lpa), rapid.IntRange(0, cfg.Streams-1).Draw(t, "stream"), lpa)
				}
			},
			"finish": func(t *rapid.T) {
				if len(d.writes) == 0 {
					t.Skip("no program in flight")
				}
				i := rapid.IntRange(0, len(d.writes)-1).Draw(t, "which")
				if rapid.IntRange(0, 9).Draw(t, "abandon") == 0 {
					d.abandon(i)
				} else {
					d.finish(i)
				}
			},
			"trim": func(t *rapid.T) { d.trim(hot(t, d)) },
			"pull": func(t *rapid.T) {
				p := rapid.IntRange(0, cfg.Pools-1).Draw(t, "pool")
				for range rapid.IntRange(1, 200).Draw(t, "n") {
					if !d.pull(p) {
						break
					}
				}
			},
			"step": func(t *rapid.T) {
				for range rapid.IntRange(1, 300).Draw(t, "n") {
					if len(d.moves) == 0 {
						break
					}
					// Any of the next few: drawing among all would shrink badly.
					d.step(rapid.IntRange(0, min(7, len(d.moves)-1)).Draw(t, "which"))
				}
			},
			"read": func(t *rapid.T) {
				if at := d.to[hot(t, d)]; at != ftl.NoPPA {
					d.ReadStarted(at)
					d.reads = append(d.reads, at)
				}
			},
			"read done": func(t *rapid.T) {
				if len(d.reads) == 0 {
					t.Skip("no read in flight")
				}
				d.ReadDone(d.reads[0])
				d.reads = d.reads[1:]
			},
			"settle": func(t *rapid.T) {
				d.settle()
				if got, want := d.ValidPages(), d.mapped(); got != want {
					t.Fatalf("%d pages are valid, %d are mapped", got, want)
				}
				// At rest every stream of every pool has a page for the host.
				for p := range cfg.Pools {
					for s := range cfg.Streams {
						if !d.put(p, s, ftl.LPA(p)) {
							t.Fatalf("pool %d has no page for stream %d though collection is over: %d free, exhausted %v",
								p, s, d.Free(p), d.Exhausted(p))
						}
					}
				}
			},
			"": func(t *rapid.T) {
				if err := d.verify(); err != nil {
					t.Fatal(err)
				}
			},
		})
	})
}

// TestRestore rebuilds an FTL from a scan and has both do the same work.
func TestRestore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := drawConfig(t)
		cfg.StaticWear = 0 // how long a block has stayed is not on the flash
		random := sim.NewStream(rapid.Uint64().Draw(t, "seed"), "victims")
		a := drawFlash(t, cfg)
		var err error
		if a.FTL, err = ftl.New(cfg, a, &random); err != nil {
			t.Fatal(err)
		}
		addresses := sim.NewStream(rapid.Uint64().Draw(t, "seed"), "addresses")
		work := func(d *flash, addresses sim.Stream, n int) {
			for range n {
				lpa := ftl.LPA(addresses.IntN(int64(len(d.to))))
				if !d.put(int(lpa)%cfg.Pools, int(addresses.IntN(int64(cfg.Streams))), lpa) {
					t.Fatalf("no page for logical page %d", lpa)
				}
			}
		}
		work(a, addresses, rapid.IntRange(0, 6*len(a.to)).Draw(t, "before"))

		restored := random // both draw the same from here on
		b := &flash{to: slices.Clone(a.to), pages: slices.Clone(a.pages), latest: slices.Clone(a.latest), now: a.now, serial: a.serial}
		if b.FTL, err = ftl.New(cfg, b, &restored); err != nil {
			t.Fatal(err)
		}
		for pool := range cfg.Pools {
			a.Blocks(pool, func(block ftl.Block, r ftl.Restored) bool {
				if err := b.RestoreBlock(block, r); err != nil {
					t.Fatal(err)
				}
				return true
			})
		}
		if err := b.verify(); err != nil {
			t.Fatal(err)
		}
		a.tracer, b.tracer = true, true
		after := rapid.IntRange(1, 3*len(a.to)).Draw(t, "after")
		work(a, addresses, after)
		work(b, addresses, after)
		for i := range min(len(a.trace), len(b.trace)) {
			if a.trace[i] != b.trace[i] {
				t.Fatalf("step %d: %s, restored: %s", i, a.trace[i], b.trace[i])
			}
		}
		if len(a.trace) != len(b.trace) {
			t.Fatalf("%d steps, restored: %d", len(a.trace), len(b.trace))
		}
		if err := b.verify(); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(a.EraseHistogram(), b.EraseHistogram()) {
			t.Fatalf("erases %v, restored: %v", a.EraseHistogram(), b.EraseHistogram())
		}
	})
}
