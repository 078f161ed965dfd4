package ftl_test

import (
	"flag"
	"os"
	"slices"
	"testing"

	"farflash/internal/patience"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/policy/ftl"

	"pgregory.net/rapid"
)

// TestMain raises rapid's default of 100 cases, and raises it further for nightly runs; -rapid.checks and RAPID_CHECKS
// override it.
func TestMain(m *testing.M) {
	cases := "200"
	if patience.LongNamed("policy/ftl") {
		cases = "1000"
	}
	if os.Getenv("RAPID_CHECKS") == "" {
		if err := flag.Set("rapid.checks", cases); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// drawConfig draws a small drive with any policy.
func drawConfig(t *rapid.T) ftl.Config {
	c := ftl.DefaultConfig()
	c.Pools = rapid.IntRange(1, 3).Draw(t, "pools")
	c.PagesPerBlock = rapid.SampledFrom([]int{2, 5, 64, 70}).Draw(t, "pages")
	c.Streams = rapid.IntRange(1, 3).Draw(t, "streams")
	c.Survivors = [][]int{nil, ftl.Pooled(c.Streams), ftl.Mixed(c.Streams)}[rapid.IntRange(0, 2).Draw(t, "survivors")]
	c.Victim = ftl.Victim(rapid.IntRange(0, int(ftl.CostAge)).Draw(t, "victim"))
	c.Choices = rapid.IntRange(1, 4).Draw(t, "choices")
	c.Window = units.Fraction(rapid.SampledFrom([]float64{0, 0.3, 1}).Draw(t, "window"))
	c.Quirks.OnFill = rapid.IntRange(0, 1).Draw(t, "trigger") == 1
	c.HostReserve = rapid.IntRange(1, 3).Draw(t, "reserve")
	c.GCStart = c.HostReserve + rapid.IntRange(1, 3).Draw(t, "start")
	c.Quirks.HostStop = rapid.SampledFrom([]int{0, c.GCStart}).Draw(t, "stop")
	c.Concurrent = rapid.IntRange(1, 4).Draw(t, "concurrent")
	c.Quirks.OpenAtOnce = rapid.IntRange(0, 3).Draw(t, "at once") == 3
	c.DynamicWear = rapid.Bool().Draw(t, "dynamic")
	c.StaticWear = rapid.SampledFrom([]int{0, 2}).Draw(t, "static")
	c.BlocksPerPool = 16 + c.GCStart + rapid.IntRange(0, 8).Draw(t, "blocks")
	c.Counts = c.Pools == 1 && rapid.Bool().Draw(t, "counts")
	if !c.Counts && c.Quirks == (ftl.Quirks{}) && rapid.Bool().Draw(t, "fast") {
		c.Fast.Streams = rapid.IntRange(1, c.Streams).Draw(t, "fast streams")
		if len(c.Survivors) == c.Streams {
			c.Survivors = ftl.Pooled(c.Streams) // survivors must not join a fast stream
		}
		c.Fast.Pages = max(1, c.PagesPerBlock/rapid.IntRange(2, 4).Draw(t, "bits"))
		c.Fast.Most = rapid.IntRange(1, 8).Draw(t, "most")
		c.Fast.Least = rapid.IntRange(0, min(2, c.Fast.Most)).Draw(t, "least")
		c.Fast.Wait = rapid.Bool().Draw(t, "wait")
	}
	return c
}

const inFlight = 6 // host programs

// drawFlash draws a drive whose logical pages leave space for the programs in flight and, where moved pages go to any
// stream, for the partly written block of each stream that every crash leaves behind, which Capacity does not account
// for.
func drawFlash(t *rapid.T, cfg ftl.Config, crashes int) *flash {
	random := rng.NewStream(rapid.Uint64().Draw(t, "seed"), "victims")
	d, err := newFlash(cfg, 0, &random)
	if err != nil {
		t.Fatal(err)
	}
	if rapid.Bool().Draw(t, "stray") {
		stray := rng.NewStream(rapid.Uint64().Draw(t, "stray seed"), "streams")
		d.stray = &stray
	}
	// A logical page lives in pool lpa%Pools.
	each := d.Capacity(0) - inFlight - cfg.Quirks.HostStop*cfg.PagesPerBlock
	if d.stray != nil {
		streams := len(cfg.Survivors)
		if cfg.Survivors == nil {
			streams = len(ftl.Separate(cfg.Streams))
		}
		each -= crashes * streams * cfg.PagesPerBlock
	}
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

// TestMachine compares random drivers, with operations in flight in any order, with a map of versions.
func TestMachine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := drawConfig(t)
		d := drawFlash(t, cfg, 0)
		pool := func(lpa ftl.LPA) int { return int(lpa) % cfg.Pools }
		// Start mostly full, so that collection matters.
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
			"hold": func(t *rapid.T) {
				for i := len(d.moves) - 1; i >= 0; i-- {
					d.hold(i)
				}
				if rapid.Bool().Draw(t, "program") {
					d.programHeld()
				}
			},
			"skip": func(t *rapid.T) {
				if len(d.writes) == 0 || len(cfg.Survivors) == cfg.Streams { // the survivors' space may be promised
					t.Skip("nothing to skip")
				}
				d.skip(rapid.IntRange(0, len(d.writes)-1).Draw(t, "which"), rapid.IntRange(1, 8).Draw(t, "skipped"))
			},
			"fold": func(t *rapid.T) {
				d.Fold(rapid.IntRange(0, cfg.Pools-1).Draw(t, "pool"),
					rapid.Bool().Draw(t, "on"))
			},
			"use": func(t *rapid.T) { d.UseFast(rapid.Bool().Draw(t, "fast")) },
			"renew": func(t *rapid.T) {
				b := ftl.Block(rapid.IntRange(0, cfg.Pools*cfg.BlocksPerPool-1).Draw(t, "block"))
				was := d.Stats()
				if d.Renew(b) {
					if again := d.Renew(b); again {
						t.Fatalf("block %d is to be renewed twice", b)
					}
				}
				if now := d.Stats(); now.Renewals != was.Renewals {
					t.Fatal("a wish alone began a renewal")
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
							t.Fatalf("pool %d has no page for stream %d though collection is over: %d free, "+
								"exhausted %v",
								p, s, d.Free(p), d.Exhausted(p))
						}
					}
				}
			},
			"": func(t *rapid.T) {
				if err := d.verify(); err != nil {
					t.Fatal(err)
				}
				for p := range cfg.Pools {
					if err := d.Books(p); err != nil {
						t.Fatal(err)
					}
				}
			},
		})
	})
}

// TestCrash loses all operations in flight at a random moment, scans the flash and continues. The scan finds the newest
// version of each page. In an open block, pages beyond the last programmed one can still be used; unprogrammed pages
// before it are lost.
func TestCrash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := drawConfig(t)
		cfg.HostReserve, cfg.Quirks.OnFill = cfg.Concurrent+1, false
		cfg.GCStart, cfg.Quirks.HostStop = cfg.HostReserve+1, 0
		cfg.BlocksPerPool += cfg.GCStart
		a := drawFlash(t, cfg, 3)
		random := rng.NewStream(rapid.Uint64().Draw(t, "seed"), "work")
		below := func(n int) int { return int(random.IntN(int64(n))) }
		for range rapid.IntRange(1, 3).Draw(t, "crashes") {
			for range rapid.IntRange(0, 5*len(a.to)).Draw(t, "steps") {
				lpa := ftl.LPA(below(len(a.to)))
				pool := int(lpa) % cfg.Pools
				if len(a.writes) >= inFlight {
					a.finish(below(len(a.writes)))
				}
				a.begin(pool, below(cfg.Streams), lpa)
				for range below(4) {
					a.pull(pool)
				}
				for range min(len(a.moves), below(6)) {
					a.step(below(len(a.moves)))
				}
			}
			if err := a.verify(); err != nil {
				t.Fatal(err)
			}
			a = a.crash(t, &random)
			if err := a.verify(); err != nil {
				t.Fatal(err)
			}
			a.settle()
		}
		for range 2 * len(a.to) {
			lpa := ftl.LPA(below(len(a.to)))
			if !a.put(int(lpa)%cfg.Pools, below(cfg.Streams), lpa) {
				t.Fatalf("no page for logical page %d: %d blocks are free, exhausted %v", lpa,
					a.Free(int(lpa)%cfg.Pools), a.Exhausted(int(lpa)%cfg.Pools))
			}
		}
		if err := a.verify(); err != nil {
			t.Fatal(err)
		}
	})
}

// crash returns the drive as reconstructed by a scan of its flash.
func (d *flash) crash(t *rapid.T, random *rng.Stream) *flash {
	cfg := d.Config()
	c := &flash{to: slices.Clone(d.to), pages: d.pages, latest: d.latest, now: d.now, serial: d.serial, bad: d.bad}
	var err error
	if c.FTL, err = ftl.New(cfg, c, random); err != nil {
		t.Fatal(err)
	}
	for lpa := range c.to {
		c.to[lpa] = ftl.NoPPA
	}
	// Data on retired blocks are stale, or stored elsewhere as well.
	for pool := range cfg.Pools {
		d.Blocks(pool, func(b ftl.Block, r ftl.Restored) bool {
			if r.Use == ftl.BadBlock {
				d.wipe(b)
			}
			return true
		})
	}
	for ppa, p := range d.pages {
		if p.version != 0 && (c.to[p.lpa] == ftl.NoPPA || p.version > d.pages[c.to[p.lpa]].version) {
			c.to[p.lpa] = ftl.PPA(ppa)
		}
	}
	for pool := range cfg.Pools {
		d.Blocks(pool, func(b ftl.Block, r ftl.Restored) bool {
			r.Valid, r.Written = make([]uint64, (cfg.PagesPerBlock+63)/64), 0
			for page := range cfg.PagesPerBlock {
				ppa := d.PPA(b, page)
				if p := d.pages[ppa]; p.version != 0 {
					r.Written = page + 1
					if c.to[p.lpa] == ppa {
						r.Valid[page>>6] |= 1 << (page & 63)
					}
				}
			}
			pages := cfg.PagesPerBlock
			if r.Fast {
				pages = cfg.Fast.Pages
			}
			if r.Use == ftl.Open && r.Written == pages {
				r.Use, r.Worn = ftl.Full, false
			}
			if err := c.RestoreBlock(b, r); err != nil {
				t.Fatal(err)
			}
			return true
		})
	}
	return c
}

// TestRestore rebuilds an FTL from a scan and verifies that both do the same work.
func TestRestore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := drawConfig(t)
		cfg.StaticWear = 0            // how long a block has stayed is not stored on flash
		cfg.Quirks.OpenAtOnce = false // it would open blocks for frontiers that had none
		cfg.Fast.Wait = false         // the order in which fast blocks were opened is not stored on flash
		random := rng.NewStream(rapid.Uint64().Draw(t, "seed"), "victims")
		a := drawFlash(t, cfg, 0)
		a.stray = nil
		var err error
		if a.FTL, err = ftl.New(cfg, a, &random); err != nil {
			t.Fatal(err)
		}
		addresses := rng.NewStream(rapid.Uint64().Draw(t, "seed"), "addresses")
		work := func(d *flash, addresses rng.Stream, n int) {
			for range n {
				lpa := ftl.LPA(addresses.IntN(int64(len(d.to))))
				if !d.put(int(lpa)%cfg.Pools, int(addresses.IntN(int64(cfg.Streams))), lpa) {
					t.Fatalf("no page for logical page %d", lpa)
				}
			}
		}
		work(a, addresses, rapid.IntRange(0, 6*len(a.to)).Draw(t, "before"))

		restored := random // both draw the same numbers from here on
		b := &flash{to: slices.Clone(a.to), pages: slices.Clone(a.pages), latest: slices.Clone(a.latest), now: a.now,
			serial: a.serial}
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
