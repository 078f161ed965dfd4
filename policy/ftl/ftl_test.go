package ftl_test

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/policy/ftl"
)

func small() ftl.Config {
	c := ftl.DefaultConfig()
	c.BlocksPerPool, c.PagesPerBlock = 32, 8
	return c
}

func mustFlash(t testing.TB, cfg ftl.Config, logical int) *flash {
	t.Helper()
	random := rng.NewStream(1, "victims")
	d, err := newFlash(cfg, logical, &random)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// aboutToErase returns a small drive, written until its first victim is empty: moves[0] is its erase.
func aboutToErase(t *testing.T) *flash {
	t.Helper()
	d := mustFlash(t, small(), 100)
	for lpa := ftl.LPA(0); !d.pull(0); lpa++ {
		if !d.begin(0, 0, lpa%100) {
			t.Fatal("no page")
		}
		d.finish(0)
	}
	for d.moves[0].Kind == ftl.Move {
		d.step(0)
		d.step(0)
		d.pull(0)
	}
	return d
}

func TestConfigErrors(t *testing.T) {
	for _, c := range []struct {
		change func(*ftl.Config)
		want   string
	}{
		{func(c *ftl.Config) { c.Pools = 0 }, "pools: 0"},
		{func(c *ftl.Config) { c.PagesPerBlock = 1 }, "pages_per_block: 1"},
		{func(c *ftl.Config) { c.BlocksPerPool = 1 }, "blocks_per_pool: 1"},
		{func(c *ftl.Config) { c.BlocksPerPool = 4 }, "need at least 5"},
		{func(c *ftl.Config) { c.BlocksPerPool, c.StaticWear = 6, 9 }, "need at least 7"},
		{func(c *ftl.Config) { c.Streams = 0 }, "streams: 0"},
		{func(c *ftl.Config) { c.Streams = 256 }, "streams: 256"},
		{func(c *ftl.Config) { c.Survivors = []int{1} }, "survivors[0]: survivors join stream 1"},
		{func(c *ftl.Config) { c.Streams = 2; c.Survivors = []int{0} }, "survivors: the table has 1 streams"},
		{func(c *ftl.Config) { c.Streams = 200 }, "survivors: the table has 400 streams"},
		{func(c *ftl.Config) { c.Victim = 99 }, "victim: unknown policy (99)"},
		{func(c *ftl.Config) { c.Victim = ftl.DChoices; c.Choices = 0 }, "choices: 0"},
		{func(c *ftl.Config) { c.Victim = ftl.WindowedGreedy; c.Window = 1.5 }, "window: 150%"},
		{func(c *ftl.Config) { c.HostReserve = 0 }, "host_reserve: 0"},
		{func(c *ftl.Config) { c.GCStart = 1 }, "use a higher start"},
		{func(c *ftl.Config) { c.Quirks.HostStop = 3 }, "quirks.host_stop: 3 free blocks"},
		{func(c *ftl.Config) { c.GCHard = -1 }, "gc_hard: -1 free blocks"},
		{func(c *ftl.Config) { c.Concurrent = 0 }, "concurrent: 0 concurrent victims"},
		{func(c *ftl.Config) { c.StaticWear = -1 }, "static_wear: -1"},
		{func(c *ftl.Config) { c.EraseLimit = 1 << 30 }, "erase_limit: 1073741824"},
		{func(c *ftl.Config) { c.Pools, c.BlocksPerPool, c.PagesPerBlock = 1<<20, 1<<20, 1<<12 }, "exceed the page numbers"},
	} {
		cfg := ftl.DefaultConfig()
		c.change(&cfg)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want an error with %q", err, c.want)
		}
	}
	// All errors are reported at once.
	cfg := ftl.DefaultConfig()
	cfg.Pools, cfg.GCHard, cfg.Quirks.HostStop = 0, -1, 99
	if err := cfg.Validate(); len(units.FieldErrors(err)) != 3 {
		t.Errorf("three fields are wrong, got %v", err)
	}
	if _, err := ftl.New(ftl.DefaultConfig(), nil, nil); err == nil {
		t.Error("no map was accepted")
	}
	cfg = ftl.DefaultConfig()
	cfg.Victim = ftl.Random
	if _, err := ftl.New(cfg, &flash{}, nil); err == nil {
		t.Error("random victims without a random stream were accepted")
	}
}

func TestNames(t *testing.T) {
	for v := ftl.Greedy; v <= ftl.CostAge; v++ {
		text, _ := v.MarshalText()
		var back ftl.Victim
		if err := back.UnmarshalText(text); err != nil || back != v {
			t.Errorf("%s: %v, %v", text, back, err)
		}
	}
	var v ftl.Victim
	if err := v.UnmarshalText([]byte("rga")); err != nil || v != ftl.DChoices {
		t.Errorf("rga is %v, %v", v, err)
	}
	if err := v.UnmarshalText([]byte("lru")); err == nil || !strings.Contains(err.Error(), "greedy") {
		t.Errorf("lru: %v", err)
	}
}

// TestAddresses splits page numbers on geometries that are not powers of two.
func TestAddresses(t *testing.T) {
	for _, c := range [][3]int{{1, 8, 2}, {7, 33, 66}, {128, 2048, 256}, {4096, 4096, 1152}, {3, 5000, 4099}} {
		cfg := ftl.DefaultConfig()
		cfg.Pools, cfg.BlocksPerPool, cfg.PagesPerBlock = c[0], c[1], c[2]
		f, err := ftl.New(cfg, &flash{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		last := ftl.PPA(c[0])*ftl.PPA(c[1])*ftl.PPA(c[2]) - 1
		for _, ppa := range []ftl.PPA{0, 1, ftl.PPA(c[2]) - 1, ftl.PPA(c[2]), ftl.PPA(c[1]*c[2]) - 1, last / 2,
			last/3*2 + 1, last} {
			if got, want := f.BlockOf(ppa), ftl.Block(ppa/ftl.PPA(c[2])); got != want {
				t.Errorf("%v: page %d is in block %d, not %d", c, ppa, got, want)
			}
			if got, want := f.PoolOf(ppa), int(ppa/ftl.PPA(c[1]*c[2])); got != want {
				t.Errorf("%v: page %d is in pool %d, not %d", c, ppa, got, want)
			}
			if f.PPA(f.BlockOf(ppa), int(ppa)%c[2]) != ppa {
				t.Errorf("%v: page %d does not come back", c, ppa)
			}
		}
	}
}

// TestHostReserve verifies where the host stops and that collection does not stop there.
func TestHostReserve(t *testing.T) {
	cfg := small()
	cfg.GCStart, cfg.HostReserve, cfg.GCHard = 4, 3, 4
	d := mustFlash(t, cfg, 1000)
	n := 0
	for d.begin(0, 0, ftl.LPA(n)) {
		n++
	}
	if want := (cfg.BlocksPerPool - cfg.HostReserve) * cfg.PagesPerBlock; n != want || d.Free(0) != cfg.HostReserve ||
		!d.Urgent(0) {
		t.Fatalf("the host got %d pages, not %d; %d blocks are free", n, want, d.Free(0))
	}
	// All pages are valid, so no block can be collected.
	for len(d.writes) > 0 {
		d.finish(0)
	}
	if d.pull(0) || !d.Exhausted(0) {
		t.Fatal("wholly valid blocks are collected")
	}
	d.trim(5)
	if d.Exhausted(0) || !d.pull(0) || !d.Collecting(0) {
		t.Fatal("a pool with an invalid page is not collected")
	}
	d.settle()
	if err := d.verify(); err != nil {
		t.Fatal(err)
	}
}

// TestPolicies lets each policy choose between the same blocks.
func TestPolicies(t *testing.T) {
	for _, c := range []struct {
		victim ftl.Victim
		window float64
		want   ftl.Block
	}{
		{ftl.FIFO, 0, 0},
		{ftl.Greedy, 0, 5},
		{ftl.WindowedGreedy, 0, 0},
		{ftl.WindowedGreedy, 0.1, 1},   // of blocks 0, 1, 2
		{ftl.WindowedGreedy, 0.075, 1}, // of 2.4, i.e. blocks 0 and 1
		{ftl.WindowedGreedy, 0.04, 0},  // of 1.28
		{ftl.WindowedGreedy, 1, 5},
		{ftl.CostBenefit, 0, 1}, // 5 has fewer valid pages but lost them just now
		{ftl.CostAge, 0, 5},     // no block was erased yet: all have the same age
	} {
		cfg := small()
		cfg.Victim, cfg.Window = c.victim, units.Fraction(c.window)
		d := mustFlash(t, cfg, 1000)
		lpa := ftl.LPA(0)
		for d.Free(0) > 2 {
			d.put(0, 0, lpa)
			lpa++
		}
		for _, page := range []int{1 * 8, 1*8 + 1, 1*8 + 2} {
			d.trim(ftl.LPA(page))
		}
		d.now += 1000
		for page := range 4 {
			d.trim(ftl.LPA(5*8 + page))
		}
		for d.Free(0) > 1 {
			if !d.begin(0, 0, lpa) {
				t.Fatal("no page")
			}
			lpa++
		}
		if !d.pull(0) {
			t.Fatalf("%v: nothing is collected", c.victim)
		}
		if got := d.moves[0].Block; got != c.want {
			t.Errorf("%v (window %v) takes block %d, not %d", c.victim, c.window, got, c.want)
		}
	}
}

// TestBenefitByHand: block 1 has lost one page of eight, 1200 ticks before the most recent event, block 5 four of
// eight, 200 ticks before. (1-u)/2u times age is 1/14 of 1201 and 1/2 of 201, so block 5 is collected; if it has lost
// only two pages, with 1/6 of 201, block 1 is.
func TestBenefitByHand(t *testing.T) {
	for lost, want := range map[int]ftl.Block{4: 5, 2: 1} {
		cfg := small()
		cfg.Victim = ftl.CostBenefit
		d := mustFlash(t, cfg, 1000)
		lpa := ftl.LPA(0)
		for d.Free(0) > 2 {
			d.put(0, 0, lpa)
			lpa++
		}
		d.now += 10_000
		d.trim(1 * 8)
		d.now += 1000
		for page := range lost {
			d.trim(ftl.LPA(5*8 + page))
		}
		d.now += 200
		d.trim(3 * 8)
		for d.Free(0) > 1 {
			if !d.begin(0, 0, lpa) {
				t.Fatal("no page")
			}
			lpa++
		}
		if !d.pull(0) || d.moves[0].Block != want {
			t.Errorf("block 5 has lost %d pages: block %d is collected, not %d", lost, d.moves[0].Block, want)
		}
	}
}

// TestStreams verifies that pages of different streams share no block, survivors included.
func TestStreams(t *testing.T) {
	for _, c := range []struct {
		name      string
		survivors []int
	}{{"separate", ftl.Separate(3)}, {"pooled", ftl.Pooled(3)}, {"mixed", ftl.Mixed(3)},
		{"generations", ftl.Generations(3, 3)}, {"own", []int{3, 3, 4, 5, 4, 5}}} {
		t.Run(c.name, func(t *testing.T) {
			cfg := small()
			cfg.Streams, cfg.Survivors = 3, c.survivors
			d := mustFlash(t, cfg, 120)
			addresses := rng.NewStream(1, "addresses")
			for range 5000 {
				lpa := ftl.LPA(addresses.IntN(120))
				if !d.put(0, int(lpa)%3, lpa) {
					t.Fatal("no page")
				}
			}
			// The streams that pages of each class can ever reach.
			reach := make([][]bool, 3)
			for s := range reach {
				reach[s] = make([]bool, len(c.survivors))
				for at := s; !reach[s][at]; at = c.survivors[at] {
					reach[s][at] = true
				}
			}
			d.Blocks(0, func(b ftl.Block, r ftl.Restored) bool {
				for i, w := range r.Valid {
					for page := range 64 {
						if w>>page&1 == 1 {
							if lpa := d.Owner(d.PPA(b, 64*i+page)); !reach[lpa%3][r.Stream] {
								t.Errorf("a page of stream %d is in a block of stream %d", lpa%3, r.Stream)
							}
						}
					}
				}
				return true
			})
			if s := d.Stats(); s.GCPrograms == 0 || s.Programs[0]+s.Programs[1]+s.Programs[2] != 5000 {
				t.Errorf("stats %+v", s)
			}
		})
	}
}

func TestSurvivors(t *testing.T) {
	for _, c := range []struct{ got, want []int }{
		{ftl.Separate(2), []int{2, 3, 2, 3}},
		{ftl.Pooled(2), []int{2, 2, 2}},
		{ftl.Mixed(2), []int{0, 1}},
		{ftl.Generations(2, 3), []int{2, 2, 3, 4, 4}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%v, not %v", c.got, c.want)
		}
	}
}

// TestOnFill verifies MQSim's trigger: one victim per filled block.
func TestOnFill(t *testing.T) {
	cfg := small()
	cfg.Quirks, cfg.GCStart, cfg.HostReserve, cfg.Concurrent = ftl.Quirks{OnFill: true, HostStop: 5}, 10, 1, 10
	d := mustFlash(t, cfg, 100)
	fills := 0
	for i := 0; ; i++ {
		if !d.begin(0, 0, ftl.LPA(i%100)) {
			break
		}
		d.finish(0)
		if i%8 == 7 && d.Free(0) < cfg.GCStart {
			fills++
		}
		for d.pull(0) {
		}
	}
	if d.Free(0) != cfg.Quirks.HostStop-1 {
		t.Errorf("the host stopped at %d free blocks", d.Free(0))
	}
	if got := d.Stats().Collections; got != int64(fills) {
		t.Errorf("%d victims for %d blocks filled below the threshold", got, fills)
	}
	d.settle()
	if !d.begin(0, 0, 0) {
		t.Error("the host still has no page after collection")
	}
}

// TestDynamicWear verifies the order in which free blocks are used.
func TestDynamicWear(t *testing.T) {
	for _, dynamic := range []bool{true, false} {
		cfg := small()
		cfg.DynamicWear = dynamic
		cfg.BlocksPerPool = 6
		d := mustFlash(t, cfg, 10)
		for i, erases := range []int{3, 1, 2, 1, 5, 0} {
			if err := d.RestoreBlock(ftl.Block(i), ftl.Restored{Use: ftl.Erased, Erases: erases}); err != nil {
				t.Fatal(err)
			}
		}
		var got []ftl.Block
		for range 5 * 8 {
			ppa, ok := d.Allocate(0, 0, 0)
			if !ok {
				t.Fatal("no page")
			}
			if b := d.BlockOf(ppa); len(got) == 0 || got[len(got)-1] != b {
				got = append(got, b)
			}
		}
		want := []ftl.Block{5, 1, 3, 2, 0}
		if !dynamic {
			want = []ftl.Block{0, 1, 2, 3, 4}
		}
		if !slices.Equal(got, want) {
			t.Errorf("dynamic %v: blocks are used in order %v, not %v", dynamic, got, want)
		}
		if d.Wear(0) != 3 || d.Wear(4) != 5 {
			t.Errorf("wear %d and %d", d.Wear(0), d.Wear(4))
		}
	}
}

// TestStaticWear overwrites only a tenth of the data.
func TestStaticWear(t *testing.T) {
	spread := func(static int) (int, ftl.Stats) {
		cfg := small()
		cfg.BlocksPerPool, cfg.StaticWear = 64, static
		d := mustFlash(t, cfg, 300)
		for lpa := range ftl.LPA(300) {
			d.put(0, 0, lpa)
		}
		addresses := rng.NewStream(1, "addresses")
		for range 200_000 {
			d.put(0, 0, ftl.LPA(addresses.IntN(30)))
		}
		if err := d.verify(); err != nil {
			t.Fatal(err)
		}
		h := d.EraseHistogram()
		first := 0
		for h[first] == 0 {
			first++
		}
		return len(h) - 1 - first, d.Stats()
	}
	wide, off := spread(0)
	narrow, on := spread(20)
	t.Logf("erase counts spread over %d without and %d with static wear levelling; WAF %.4f and %.4f", wide, narrow,
		off.WAF(), on.WAF())
	if narrow > 30 || wide < 500 || off.WearPrograms != 0 || on.Relocations == 0 {
		t.Errorf("spread %d with, %d without; %+v", narrow, wide, on)
	}
	if on.WAF() > off.WAF()*1.1 {
		t.Errorf("wear levelling raises the WAF from %v to %v", off.WAF(), on.WAF())
	}
}

// TestEndOfLife wears a drive out.
func TestEndOfLife(t *testing.T) {
	cfg := small()
	cfg.EraseLimit = 20
	d := mustFlash(t, cfg, 100)
	addresses := rng.NewStream(1, "addresses")
	n := 0
	for d.put(0, 0, ftl.LPA(addresses.IntN(100))) {
		if n++; n > 1_000_000 {
			t.Fatal("it never wears out")
		}
	}
	if err := d.verify(); err != nil {
		t.Fatal(err)
	}
	s := d.Stats()
	if d.Capacity(0) > 100 || s.Retired == 0 || !d.Exhausted(0) {
		t.Errorf("it holds %d pages still; %+v", d.Capacity(0), s)
	}
	t.Logf("%d pages written, WAF %.2f, %d of %d blocks retired", n, s.WAF(), s.Retired, cfg.BlocksPerPool)
}

// TestRetire fails an erase.
func TestRetire(t *testing.T) {
	d := aboutToErase(t)
	bad, free, capacity := d.moves[0].Block, d.Free(0), d.Capacity(0)
	d.Retire(bad)
	d.moves = nil
	if d.Free(0) != free || d.Capacity(0) != capacity-8 || d.Stats().Retired != 1 {
		t.Errorf("free %d, capacity %d, %+v", d.Free(0), d.Capacity(0), d.Stats())
	}
	d.Blocks(0, func(b ftl.Block, r ftl.Restored) bool {
		if (b == bad) != (r.Use == ftl.BadBlock) {
			t.Errorf("block %d: %+v", b, r)
		}
		return true
	})
	if err := d.verify(); err != nil {
		t.Fatal(err)
	}
}

func TestRestoreErrors(t *testing.T) {
	for _, c := range []struct {
		b    ftl.Block
		r    ftl.Restored
		want string
	}{
		{-1, ftl.Restored{}, "there are 32"},
		{32, ftl.Restored{}, "there are 32"},
		{1, ftl.Restored{Use: 9}, "unknown use"},
		{1, ftl.Restored{Use: ftl.Open, Written: 8}, "open with 8"},
		{1, ftl.Restored{Use: ftl.Full, Stream: 2}, "stream 2"},
		{1, ftl.Restored{Use: ftl.Full, Erases: -1}, "-1 erases"},
		{1, ftl.Restored{Use: ftl.Full, Valid: make([]uint64, 2)}, "2 words"},
		{1, ftl.Restored{Use: ftl.Full, Valid: []uint64{1 << 8}}, "beyond the 8 written"},
		{1, ftl.Restored{Use: ftl.Open, Written: 3, Valid: []uint64{1 << 3}}, "beyond the 3 written"},
		{1, ftl.Restored{Use: ftl.Open, Written: 0, Valid: []uint64{1}}, "beyond the 0 written"},
		{1, ftl.Restored{Use: ftl.Erased, Valid: []uint64{1}}, "beyond the 0 written"},
		{1, ftl.Restored{Use: ftl.Open, Worn: true}, "wear levelling"},
		{3, ftl.Restored{Use: ftl.Full}, "already restored"},
		{4, ftl.Restored{Use: ftl.Open, Stream: 1}, "has an open block"},
	} {
		d := mustFlash(t, small(), 10)
		if err := d.RestoreBlock(3, ftl.Restored{Use: ftl.Open, Stream: 1, Written: 2, Valid: []uint64{0}}); err !=
			nil {
			t.Fatal(err)
		}
		if err := d.RestoreBlock(c.b, c.r); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want an error with %q", c.r, err, c.want)
		}
		if err := d.Check(); err != nil {
			t.Errorf("%+v: after the error: %v", c.r, err)
		}
	}
	d := mustFlash(t, small(), 10)
	d.put(0, 0, 0)
	if err := d.RestoreBlock(3, ftl.Restored{}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("restoring into a pool in use: %v", err)
	}
}

// TestClone verifies that copies of a used drive do not affect each other.
func TestClone(t *testing.T) {
	cfg := small()
	cfg.Pools, cfg.Victim = 3, ftl.DChoices
	base := mustFlash(t, cfg, 300)
	addresses := rng.NewStream(1, "addresses")
	work := func(d *flash, n int) {
		for range n {
			lpa := ftl.LPA(addresses.IntN(300))
			if !d.put(int(lpa)%3, 0, lpa) {
				t.Fatal("no page")
			}
		}
	}
	work(base, 3000)
	copyOf := func(d *flash) *flash {
		random := rng.NewStream(2, "victims")
		c := &flash{to: slices.Clone(d.to), pages: slices.Clone(d.pages), latest: slices.Clone(d.latest), now: d.now,
			serial: d.serial}
		c.FTL = d.Clone(c, &random)
		return c
	}
	before := base.Stats()
	histogram := base.EraseHistogram()
	a, b := copyOf(base), copyOf(base)
	c := copyOf(a)
	work(a, 2000)
	work(c, 500)
	for _, d := range []*flash{base, a, b, c} {
		if err := d.verify(); err != nil {
			t.Fatal(err)
		}
	}
	if got := base.Stats(); got.HostPrograms != before.HostPrograms || got.Erases != before.Erases ||
		!slices.Equal(base.EraseHistogram(), histogram) {
		t.Errorf("work on a copy changed the original: %+v, was %+v", got, before)
	}
	if got := b.Stats(); got.HostPrograms != before.HostPrograms || !slices.Equal(b.EraseHistogram(), histogram) {
		t.Errorf("work on one copy changed another: %+v, was %+v", got, before)
	}
	work(base, 2000)
	work(b, 2000)
	e := copyOf(a) // which has its own copies of the pools it changed
	work(a, 500)
	work(e, 500)
	for _, d := range []*flash{base, a, b, c, e} {
		if err := d.verify(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMemory verifies the costs stated in the package comment.
func TestMemory(t *testing.T) {
	cfg := ftl.DefaultConfig()
	cfg.Pools, cfg.BlocksPerPool, cfg.PagesPerBlock, cfg.Streams = 4096, 4096, 256, 2
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	m := &flash{}
	start := heap()
	f, err := ftl.New(cfg, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	untouched := heap() - start
	for pool := range cfg.Pools {
		for range 25 { // 100,000 random writes
			f.Allocate(pool, 0, 0)
		}
	}
	touched := heap() - start
	t.Logf("4096 pools: %d bytes untouched, %d with a block in use in each", untouched, touched)
	most := int64(3_100_000)
	if ftl.Watching {
		most += 4096 * 64
	}
	if untouched > 100_000 || touched > most {
		t.Errorf("%d and %d bytes", untouched, touched)
	}
	runtime.KeepAlive(f)

	cfg.Pools = 1
	cfg.BlocksPerPool = 2048
	start = heap()
	if f, err = ftl.New(cfg, m, nil); err != nil {
		t.Fatal(err)
	}
	pages := 0
	for {
		ppa, ok := f.Allocate(0, 0, 0)
		if !ok {
			break
		}
		f.Programmed(ppa)
		pages++
	}
	full := heap() - start
	if limit := int64(0.4*float64(pages)) + 32*2048; full > limit {
		t.Errorf("a full pool of %d pages takes %d bytes, more than %d", pages, full, limit)
	}
	t.Logf("a full pool: %.3f bytes a page", float64(full)/float64(pages))

	clones := make([]*ftl.FTL, 100)
	start = heap()
	for i := range clones {
		clones[i] = f.Clone(m, nil)
	}
	if each := (heap() - start) / int64(len(clones)); each > 2000 {
		t.Errorf("a clone takes %d bytes", each)
	}
	runtime.KeepAlive(clones)
}

// TestBroken verifies that a driver that breaks the contract is stopped.
func TestBroken(t *testing.T) {
	for name, f := range map[string]func(*flash){
		"invalidated twice":     func(d *flash) { d.Invalidate(d.to[0], 0); d.Invalidate(d.to[0], 0) },
		"programmed twice":      func(d *flash) { d.Programmed(d.to[0]); d.Programmed(d.to[0]) },
		"erased unasked":        func(d *flash) { d.Erased(0) },
		"erased never used":     func(d *flash) { d.Erased(20) },
		"read done unread":      func(d *flash) { d.ReadDone(d.to[0]) },
		"relocated unasked":     func(d *flash) { d.Relocate(d.to[0], 0) },
		"moved unasked":         func(d *flash) { d.Moved(d.to[0], d.to[1], 0) },
		"outside the drive":     func(d *flash) { d.Invalidate(1<<40, 0) },
		"no page at all":        func(d *flash) { d.Invalidate(ftl.NoPPA, 0) },
		"a page not handed out": func(d *flash) { d.Invalidate(200, 0) },
	} {
		d := mustFlash(t, small(), 100)
		for lpa := range ftl.LPA(8) {
			d.put(0, 0, lpa)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: nobody complained", name)
				}
			}()
			f(d)
		}()
	}
}

// TestWearOrder verifies the order of relocation among blocks of cold data: fewest erases first, among equals that were
// filled at the same time the lower number, and never a block that lags by less than the limit. The data go to the free
// block with the most erases.
func TestWearOrder(t *testing.T) {
	cfg := small()
	cfg.BlocksPerPool, cfg.StaticWear = 16, 12
	d := mustFlash(t, cfg, 16*8)
	all := []uint64{1<<8 - 1}
	// Blocks 5, 2, 9, 7 and 11 are full of cold data. All others have been erased 20 times, so that all but 11 lag from
	// the start and wait for two turnovers.
	cold := map[ftl.Block]int{5: 3, 2: 1, 9: 1, 7: 2, 11: 15}
	lpa := ftl.LPA(0)
	for _, b := range []ftl.Block{5, 2, 9, 7, 11} {
		for i := range 8 {
			ppa := d.PPA(b, i)
			d.serial++
			d.pages[ppa], d.to[lpa], d.latest[lpa] = content{lpa, d.serial}, ppa, d.serial
			lpa++
		}
		if err := d.RestoreBlock(b, ftl.Restored{Use: ftl.Full, Erases: cold[b], Valid: all}); err != nil {
			t.Fatal(err)
		}
	}
	for b := range ftl.Block(16) {
		if _, is := cold[b]; !is {
			if err := d.RestoreBlock(b, ftl.Restored{Use: ftl.Erased, Erases: 20}); err != nil {
				t.Fatal(err)
			}
		}
	}
	var order []ftl.Block
	var most int // erases of the most worn block
	for i := 0; len(order) < 4 && i < 100_000; i++ {
		if !d.begin(0, 0, lpa+ftl.LPA(i%24)) {
			t.Fatal("no page")
		}
		d.finish(0)
		for d.pull(0) {
			m := d.moves[0]
			if m.Why == ftl.WearLevelling && m.Kind == ftl.Move && (len(order) == 0 || order[len(order)-1] != m.Block) {
				order = append(order, m.Block)
				if behind := most - d.Wear(m.Block); behind < cfg.StaticWear {
					t.Errorf("block %d is relocated, which is %d erases behind", m.Block, behind)
				}
				// The most worn of the free blocks.
				d.step(0)
				to := d.BlockOf(d.moves[0].dst)
				for b := range ftl.Block(16) {
					first := d.PPA(b, 0)
					erased := !slices.ContainsFunc(d.pages[first:first+8],
						func(c content) bool { return c.version > 0 })
					if erased && d.Wear(b) > d.Wear(to) {
						t.Errorf("block %d goes to %d, erased %d times; %d is free and has been erased %d times",
							m.Block, to, d.Wear(to), b, d.Wear(b))
					}
				}
			}
			for len(d.moves) > 0 {
				d.step(0)
			}
			for b := range ftl.Block(16) {
				most = max(most, d.Wear(b))
			}
		}
	}
	if want := []ftl.Block{2, 9, 7, 5}; !slices.Equal(order, want) {
		t.Errorf("blocks are relocated in order %v, not %v", order, want)
	}
	if err := d.verify(); err != nil {
		t.Fatal(err)
	}
}

// TestRestoredFrontiers verifies that with OpenAtOnce a restored pool opens a block for every stream, survivors'
// included, when it is first touched, in addition to the full one. Otherwise only the host's is opened.
func TestRestoredFrontiers(t *testing.T) {
	for _, at := range []bool{false, true} {
		cfg := small()
		cfg.Streams, cfg.Quirks.OpenAtOnce = 2, at
		d := mustFlash(t, cfg, 100)
		valid := []uint64{0xff}
		if err := d.RestoreBlock(0, ftl.Restored{Use: ftl.Full, Valid: valid}); err != nil {
			t.Fatal(err)
		}
		if _, ok := d.Allocate(0, 0, 1); !ok {
			t.Fatal("no page")
		}
		open := 1
		if at {
			open = len(ftl.Separate(2))
		}
		if got := d.Free(0); got != cfg.BlocksPerPool-1-open {
			t.Errorf("at once %v: %d of %d blocks are free, not %d", at, got, cfg.BlocksPerPool,
				cfg.BlocksPerPool-1-open)
		}
	}
}

// TestErasedIsUntouched verifies that erasing a block resets its time of last touch.
func TestErasedIsUntouched(t *testing.T) {
	d := mustFlash(t, small(), 100)
	random := rng.NewStream(1, "addresses")
	for range 2000 {
		d.put(0, 0, ftl.LPA(random.IntN(100)))
	}
	erased := 0
	d.Blocks(0, func(b ftl.Block, r ftl.Restored) bool {
		if r.Use == ftl.Erased && r.Erases > 0 {
			if erased++; r.Touched != 0 {
				t.Errorf("block %d is free and was touched at %d", b, r.Touched)
			}
		} else if r.Use != ftl.Erased && r.Touched == 0 {
			t.Errorf("block %d is in use and was never touched", b)
		}
		return true
	})
	if erased == 0 {
		t.Error("no block was erased")
	}
}
