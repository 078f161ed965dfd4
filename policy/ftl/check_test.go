package ftl

import (
	"slices"
	"testing"

	"farflash/numeric/rng"
)

// tables is a map and its inverse.
type tables struct {
	to    []PPA
	owner []LPA
}

func (m *tables) Lookup(lpa LPA) PPA { return m.to[lpa] }
func (m *tables) Owner(ppa PPA) LPA  { return m.owner[ppa] }
func (m *tables) CompareAndSwap(lpa LPA, old, new PPA) bool {
	if m.to[lpa] != old {
		return false
	}
	m.to[lpa], m.owner[new] = new, lpa
	return true
}

// lived returns a pool of two streams that has been written, collected and worn, with blocks in every state: free ones,
// some never used, open ones of both streams, candidates, a victim with a page being moved, a failing block and a
// retired one.
func lived(t *testing.T, victim Victim) (*FTL, *tables) {
	t.Helper()
	cfg := DefaultConfig()
	cfg.BlocksPerPool, cfg.PagesPerBlock, cfg.Streams, cfg.Victim, cfg.Choices = 40, 8, 2, victim, 2
	cfg.GCStart, cfg.HostReserve, cfg.Window = 6, 3, 0.2
	m := &tables{to: make([]PPA, 120), owner: make([]LPA, 40*8)}
	for i := range m.to {
		m.to[i] = NoPPA
	}
	s := rng.NewStream(7, "lived")
	f, err := New(cfg, m, &s)
	if err != nil {
		t.Fatal(err)
	}
	now := Tick(0)
	step := func(a Action) {
		if a.Kind == Erase {
			f.Erased(a.Block)
			return
		}
		if dst, ok := f.Relocate(a.Source, now); ok {
			m.owner[dst] = m.owner[a.Source]
			f.Moved(a.Source, dst, now)
		}
	}
	write := func() bool {
		now++
		lpa := LPA(s.IntN(int64(len(m.to))))
		ppa, ok := f.Allocate(0, int(lpa)%2, now)
		if !ok {
			return false
		}
		m.owner[ppa] = lpa
		old := m.to[lpa]
		m.to[lpa] = ppa
		f.Programmed(ppa)
		if old != NoPPA {
			f.Invalidate(old, now)
		}
		return true
	}
	for range 1500 {
		write()
		for a, ok := f.Next(0); ok; a, ok = f.Next(0) {
			step(a)
		}
	}
	p := f.pools[0]
	f.Fail(Block(p.heap[len(p.heap)-1].block))
	for a, ok := f.Next(0); ok; a, ok = f.Next(0) {
		step(a)
	}
	// A victim with a page being moved, and a failing block.
	for len(p.victims) == 0 {
		if a, ok := f.Next(0); ok {
			if a.Kind == Erase {
				f.Erased(a.Block)
				continue
			}
			if dst, ok := f.Relocate(a.Source, now); ok {
				m.owner[dst] = m.owner[a.Source]
			}
		} else if !write() {
			t.Fatal("there is nothing to collect and no room")
		}
	}
	for i := range p.blocks {
		if x := &p.blocks[i]; (x.state == closed || x.state == ranked) && x.valid > 0 {
			f.Fail(Block(i))
			break
		}
	}
	return f, m
}

// in returns the first block in one of the states.
func in(p *pool, states ...state) *block {
	for i := range p.blocks {
		if slices.Contains(states, p.blocks[i].state) {
			return &p.blocks[i]
		}
	}
	panic("there is none")
}

// number returns a block's index in its pool.
func number(p *pool, m *block) int32 {
	for i := range p.blocks {
		if &p.blocks[i] == m {
			return int32(i)
		}
	}
	panic("there is none")
}

// flip toggles the validity bit of a page.
func flip(f *FTL, m *block, page int32) {
	p := f.pools[0]
	*f.ownWord(p, number(p, m), 0) ^= 1 << page
}

// written returns a frontier with pages left.
func written(p *pool) *frontier {
	for i := range p.frontiers {
		if p.frontiers[i].left > 0 {
			return &p.frontiers[i]
		}
	}
	panic("there is none")
}

// TestCheckNotices verifies that Check reports every kind of inconsistency in a pool, and accepts a consistent one.
func TestCheckNotices(t *testing.T) {
	cases := map[string]func(f *FTL, p *pool){
		"a block more is free":            func(_ *FTL, p *pool) { p.free++ },
		"a block fewer is free":           func(_ *FTL, p *pool) { p.free-- },
		"a candidate more":                func(_ *FTL, p *pool) { p.candidates++ },
		"a valid page more of candidates": func(_ *FTL, p *pool) { p.validSum++ },
		"a retired block more":            func(_ *FTL, p *pool) { p.retired++ },
		"more erases than any":            func(_ *FTL, p *pool) { p.mostErases++ },
		"more erases of a block":          func(_ *FTL, p *pool) { in(p, retired).erases = p.mostErases + 1 },
		"a host page more":                func(_ *FTL, p *pool) { p.frontiers[1].host++ },
		"a page more moved":               func(_ *FTL, p *pool) { p.counts.moved[WearLevelling]++ },
		"a page more restored":            func(_ *FTL, p *pool) { p.counts.restored++ },
		"a page more abandoned":           func(_ *FTL, p *pool) { p.counts.abandoned++ },
		"a page more erased":              func(_ *FTL, p *pool) { p.counts.erasedPages++ },
		"valid pages of a candidate":      func(_ *FTL, p *pool) { in(p, closed, ranked).valid++; p.validSum++ },
		"valid pages of a victim":         func(_ *FTL, p *pool) { in(p, victim).valid++ },
		"valid pages of a free block":     func(_ *FTL, p *pool) { in(p, free).valid = 1 },
		"valid pages of a retired block":  func(_ *FTL, p *pool) { in(p, retired).valid = 1 },
		"a page that became valid": func(f *FTL,
			p *pool) {
			m := in(p, failing)
			flip(f, m, f.nextValid(p, number(p, m), 0))
		},
		"a page beyond the last": func(f *FTL, p *pool) { m := in(p, victim); flip(f, m, 8); m.valid++ },
		"an open block with too little to do": func(_ *FTL,
			p *pool) {
			p.blocks[written(p).block].pending = written(p).left - 1
		},
		"a frontier's page fewer": func(_ *FTL, p *pool) { written(p).left-- },
		"a frontier of another stream": func(_ *FTL,
			p *pool) {
			w := written(p)
			p.blocks[w.block].stream ^= 1
		},
		"a frontier of a free block":       func(_ *FTL, p *pool) { written(p).block = number(p, in(p, free)) },
		"a frontier beyond the pool":       func(_ *FTL, p *pool) { written(p).block = int32(len(p.blocks)) },
		"a frontier below the pool":        func(_ *FTL, p *pool) { written(p).block = -2 },
		"a free heap that is out of order": func(_ *FTL, p *pool) { p.heap[0].order = 1 << 63 },
		"a free block that nothing holds":  func(_ *FTL, p *pool) { p.heap = p.heap[:len(p.heap)-1] },
		"a free block twice": func(_ *FTL,
			p *pool) {
			p.heap = append(p.heap, p.heap[len(p.heap)-1])
		},
		"a victim twice":                       func(_ *FTL, p *pool) { p.victims = append(p.victims, p.victims[0]) },
		"a victim that nothing holds":          func(_ *FTL, p *pool) { p.victims = nil },
		"a candidate that is said to be free":  func(_ *FTL, p *pool) { in(p, closed, ranked).state = free },
		"a failing block that is a candidate":  func(_ *FTL, p *pool) { in(p, failing).state = closed },
		"a block that fails and is not listed": func(_ *FTL, p *pool) { p.failing = nil },
		"a candidate among those that fail": func(_ *FTL,
			p *pool) {
			p.failing = append(p.failing, number(p, in(p, closed, ranked)))
		},
		"a retired block that fails": func(_ *FTL,
			p *pool) {
			p.failing = append(p.failing, number(p, in(p, retired)))
		},
		"pages left of a block that is closed": func(_ *FTL, p *pool) { in(p, open).state = closed },
		"a host that need not look":            func(_ *FTL, p *pool) { p.guarded = true },
		"victims without room": func(_ *FTL,
			p *pool) {
			p.short = false
			p.blocks[p.victims[0].block].next = 1000
		},
	}
	of := map[Victim]map[string]func(f *FTL, p *pool){
		Greedy: {
			"fewer in buckets":             func(_ *FTL, p *pool) { p.inBuckets-- },
			"a least that is too great":    func(_ *FTL, p *pool) { p.least = 9 },
			"a block in another bucket":    func(_ *FTL, p *pool) { swap(p) },
			"a bucket that ends elsewhere": func(_ *FTL, p *pool) { bucketOf(p).tail = none },
			"a block that does not know others": func(_ *FTL,
				p *pool) {
				p.blocks[bucketOf(p).head].prev = number(p, in(p, ranked))
			},
		},
		WindowedGreedy: {
			"a window that is not full": func(f *FTL, p *pool) { f.window++ },
		},
		FIFO: {
			"a list that ends elsewhere":     func(_ *FTL, p *pool) { p.young.tail = p.young.head },
			"a list that leaves one out":     func(_ *FTL, p *pool) { p.young.head = p.blocks[p.young.head].next },
			"a block that is not in a list":  func(_ *FTL, p *pool) { p.young = list{none, none} },
			"a block that is said to ranked": func(_ *FTL, p *pool) { p.blocks[p.young.head].state = ranked },
		},
		Random: {
			"a block that does not know its place": func(_ *FTL, p *pool) { p.blocks[p.array[0]].next = 1 },
			"a block fewer in the array":           func(_ *FTL, p *pool) { p.array = p.array[1:] },
		},
	}
	for _, victim := range []Victim{FIFO, Greedy, WindowedGreedy, Random} {
		f, _ := lived(t, victim)
		if err := f.Check(); err != nil {
			t.Fatalf("%v, as it is: %v", victim, err)
		}
		for _, list := range []map[string]func(f *FTL, p *pool){cases, of[victim]} {
			for name, change := range list {
				f, _ := lived(t, victim)
				change(f, f.pools[0])
				if f.CheckBlocks() == nil || f.CheckTouched() == nil || f.Check() == nil {
					t.Errorf("%v: %s, and nobody notices", victim, name)
				}
			}
		}
	}
	// Only Check compares with the map.
	f, m := lived(t, Greedy)
	p := f.pools[0]
	x := in(p, closed, ranked)
	b := number(p, x)
	for page := int32(0); ; page++ {
		if page = f.nextValid(p, b, page); page == f.pages {
			t.Fatal("a candidate has no page that is valid")
		}
		if ppa := f.PPA(Block(b), int(page)); ppa >= 0 {
			m.to[m.owner[ppa]] = NoPPA
			break
		}
	}
	if f.Check() == nil || f.CheckBlocks() != nil {
		t.Errorf("a page that is mapped elsewhere: %v, and %v without the map", f.Check(), f.CheckBlocks())
	}
	fresh, err := New(f.Config(), m, nil)
	if err != nil {
		t.Fatal(err)
	}
	fresh.Fail(0)
	if err := fresh.Check(); err != nil {
		t.Error(err)
	}
	if fresh.pools[0].frontiers[1].block = 5; fresh.Check() == nil {
		t.Error("a frontier keeps a block that is full, and nobody notices")
	}
	// CheckTouched skips a pool that is untouched since it was cloned.
	f, m = lived(t, Greedy)
	c := f.Clone(m, nil)
	f.pools[0].free++
	if c.Check() == nil || c.CheckTouched() != nil || !c.Untouched(0) {
		t.Error("an untouched pool is looked at")
	}
}

// bucketOf returns the first bucket that has a block.
func bucketOf(p *pool) *list {
	for v := range p.buckets {
		if p.buckets[v].head != none {
			return &p.buckets[v]
		}
	}
	panic("there is none")
}

// swap moves the blocks of the first non-empty bucket to the next one.
func swap(p *pool) {
	l := bucketOf(p)
	for v := range p.buckets {
		if &p.buckets[v] == l {
			p.buckets[v], p.buckets[(v+1)%len(p.buckets)] = p.buckets[(v+1)%len(p.buckets)], p.buckets[v]
			return
		}
	}
}

// TestLeastWorn verifies the choice among candidates that lag by enough and have stayed for two turnovers of 40 erases:
// the fewest erases, and among equals the one that has stayed longest. If there is none, the next search is a sixteenth
// of a turnover later.
func TestLeastWorn(t *testing.T) {
	type candidate struct {
		erases, since uint32
		state         state
	}
	for name, c := range map[string]struct {
		blocks []candidate
		want   int32
	}{
		"the fewest erases":                    {[]candidate{{5, 0, closed}, {3, 10, ranked}, {4, 0, closed}}, 1},
		"the longest stay among equals":        {[]candidate{{3, 10, closed}, {3, 9, closed}, {3, 11, ranked}}, 1},
		"the first of those that are the same": {[]candidate{{3, 10, closed}, {3, 10, closed}}, 0},
		"fewer erases before a longer stay":    {[]candidate{{4, 0, closed}, {3, 19, closed}}, 1},
		"as far behind as must be":             {[]candidate{{10, 0, closed}}, 0},
		"not far enough behind":                {[]candidate{{11, 0, closed}}, none},
		"stayed as long as must be":            {[]candidate{{0, 20, closed}}, 0},
		"not stayed long enough":               {[]candidate{{0, 21, closed}}, none},
		"no candidate": {[]candidate{{0, 0, open}, {0, 0, free}, {0, 0, victim},
			{0, 0, failing}, {0, 0, retired}}, none},
		"a candidate behind some that are none": {[]candidate{{0, 0, open}, {7, 0, ranked}}, 1},
	} {
		cfg := DefaultConfig()
		cfg.BlocksPerPool, cfg.PagesPerBlock, cfg.StaticWear = 40, 8, 20
		f, err := New(cfg, &tables{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		p := &pool{erases: 100, mostErases: 30}
		for _, x := range c.blocks {
			p.blocks = append(p.blocks, block{erases: x.erases, pending: int32(x.since), state: x.state})
		}
		if got := f.leastWorn(p); got != c.want {
			t.Errorf("%s: block %d, not %d", name, got, c.want)
		}
		// 40/16 is 2, plus one.
		if want := uint32(0); c.want == none {
			if want = 103; p.wearAt != want {
				t.Errorf("%s: the next look is at %d erases", name, p.wearAt)
			}
		} else if p.wearAt != want {
			t.Errorf("%s: the next look waits until %d erases", name, p.wearAt)
		}
		for _, due := range []struct {
			most, erases uint32
			want         bool
		}{{20, 103, true}, {19, 103, false}, {20, 102, false}} {
			p.wearAt, p.mostErases, p.erases = 103, due.most, due.erases
			if f.wearDue(p) != due.want {
				t.Errorf("%+v", due)
			}
		}
	}
}

// TestTakeWorn verifies that data expected to stay go to the free block with the most erases, even if it is the only
// used one, and to a new block if none has been used.
func TestTakeWorn(t *testing.T) {
	cfg := DefaultConfig()
	cfg.BlocksPerPool, cfg.PagesPerBlock = 40, 8
	f, err := New(cfg, &tables{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for n, erases := range [][]uint32{{}, {7}, {7, 9, 3}, {9, 9, 3}} {
		p := f.newPool()
		for i, e := range erases {
			f.materialise(p, int32(i))
			p.blocks[i].erases = e
			f.addFree(p, int32(i))
		}
		want := []uint32{0, 7, 9, 9}[n]
		if got := f.takeWorn(p); p.blocks[got].erases != want || p.free != 39 || int(got) >= max(1, len(erases)) {
			t.Errorf("of %v: block %d; %d are free", erases, got, p.free)
		}
	}
}

// TestReadings verifies the accessors, also for blocks that were never used, and which restores are refused.
func TestReadings(t *testing.T) {
	f, _ := lived(t, Greedy)
	p := f.pools[0]
	used := len(p.blocks)
	if used != 40 {
		t.Fatalf("%d blocks were used", used)
	}
	retiredBlocks, failingBlocks, lost := int(p.retired), len(p.failing), 0
	valid := int64(0)
	for i := range p.blocks {
		x := &p.blocks[i]
		if f.Wear(Block(i)) != int(x.erases) || f.Yield(Block(i)) != int(8-x.valid) {
			t.Errorf("block %d: erased %d times, %d pages hold nothing: %+v", i, f.Wear(Block(i)), f.Yield(Block(i)), x)
		}
		below := 0
		for page := range 8 {
			if n := f.ValidBelow(Block(i), page); n != below {
				t.Errorf("block %d: %d pages below %d are valid, not %d", i, n, page, below)
			}
			if f.IsValid(f.PPA(Block(i), page)) {
				below++
			}
		}
		if x.state != open && below != int(x.valid) {
			t.Errorf("block %d: %d pages are valid", i, below)
		}
		valid += int64(x.valid)
	}
	for _, w := range p.frontiers {
		valid -= int64(w.left)
	}
	if f.Valid(0) != valid || f.ValidPages() != valid-1 || p.counts.relocating != 1 {
		t.Errorf("%d and %d pages are valid, not %d and %d", f.Valid(0), f.ValidPages(), valid, valid-1)
	}
	if retiredBlocks != 1 || failingBlocks != 1 || f.Retired(0) != 1 || f.Failing(0) != 1 {
		t.Errorf("%d and %d", f.Retired(0), f.Failing(0))
	}
	lost = 1 + 1 + 3 + 4 // retired, failing, the host's reserve, and four frontiers
	if f.Capacity(0) != (40-lost)*8-1 || f.Spare(0) != 40-lost-int((valid+8)/8) {
		t.Errorf("room for %d pages, %d blocks to spare", f.Capacity(0), f.Spare(0))
	}
	fresh, err := New(f.Config(), &tables{}, nil)
	if h := fresh.EraseHistogram(); len(h) != 1 || h[0] != 40 {
		t.Errorf("a new drive was erased %v", h)
	}
	all, times := int64(0), int64(0)
	for n, k := range f.EraseHistogram() {
		all, times = all+k, times+int64(n)*k
	}
	if all != 40 || times != f.Stats().Erases {
		t.Errorf("%d blocks were erased %d times", all, times)
	}
	if err == nil {
		fresh.Fail(2) // brings blocks 0 to 2 into existence
	}
	if err != nil || fresh.Wear(2) != 0 || fresh.Wear(3) != 0 || fresh.Wear(39) != 0 || fresh.Yield(3) != 8 ||
		fresh.Yield(39) != 8 || fresh.IsValid(3*8) || fresh.IsValid(39*8) {
		t.Errorf("%v: blocks that were never used are worn or hold something", err)
	}
}

// TestTwoOpenBlocks verifies that a stream can have only one open block in a pool, even if a single page of it is left.
func TestTwoOpenBlocks(t *testing.T) {
	for _, written := range []int{0, 6, 7} {
		f, err := New(func() Config {
			c := DefaultConfig()
			c.BlocksPerPool, c.PagesPerBlock = 40, 8
			return c
		}(), &tables{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.RestoreBlock(3, Restored{Use: Open, Written: written}); err != nil {
			t.Error(err)
		}
		if f.RestoreBlock(4, Restored{Use: Open, Written: 1}) == nil {
			t.Errorf("a second block is open beside one with %d pages written", written)
		}
		if err := f.RestoreBlock(4, Restored{Use: Open, Stream: 1, Written: 1}); err != nil {
			t.Errorf("another stream's: %v", err)
		}
	}
}

// TestBrokenContracts verifies that every violation of the driver's contract panics, in the function that detects it.
func TestBrokenContracts(t *testing.T) {
	for name, do := range map[string]func(f *FTL, m *tables, p *pool){
		"a page is moved that is not asked for": func(f *FTL, _ *tables,
			p *pool) {
			f.Relocate(f.PPA(Block(number(p, in(p, ranked))), 0), 0)
		},
		"a page is moved of a victim that has no more": func(f *FTL, _ *tables, p *pool) {
			v := in(p, victim)
			v.next = 0
			f.Relocate(f.PPA(Block(number(p, v)), 0), 0)
		},
		"a page is moved of a victim that wants none": func(f *FTL, _ *tables, p *pool) {
			v := in(p, victim)
			v.pending = 0
			f.Relocate(f.PPA(Block(number(p, v)), 0), 0)
		},
		"a page has been moved that was not asked for": func(f *FTL, _ *tables,
			p *pool) {
			f.Moved(f.PPA(Block(number(p, in(p, ranked))), 0), 0, 0)
		},
		"a page has been moved of a victim without any": func(f *FTL, _ *tables, p *pool) {
			v := in(p, victim)
			v.pending = 0
			f.Moved(f.PPA(Block(number(p, v)), 0), 0, 0)
		},
		"a page has been moved that is not valid": func(f *FTL, m *tables, p *pool) {
			b := number(p, in(p, victim))
			page := int32(0)
			for f.has(p, b, page) {
				page++
			}
			src := f.PPA(Block(b), int(page))
			m.owner[src] = 0
			m.to[0] = src
			f.Moved(src, src+1, 0)
		},
		"a move has failed that was not asked for": func(f *FTL, _ *tables,
			p *pool) {
			f.MoveFailed(f.PPA(Block(number(p, in(p, ranked))), 0), 0, 0)
		},
		"a block is erased that is none": func(f *FTL, _ *tables,
			p *pool) {
			f.Erased(Block(number(p, in(p, ranked))))
		},
		"a block is erased that was never used": func(f *FTL, _ *tables, _ *pool) {
			fresh, err := New(f.Config(), &tables{}, f.random)
			if err != nil {
				panic(err)
			}
			fresh.Fail(4)
			fresh.Erased(5)
		},
		"a block is retired that is none": func(f *FTL, _ *tables, p *pool) { f.Retire(Block(number(p, in(p, free)))) },
		"a page is invalid twice": func(f *FTL, _ *tables, p *pool) {
			b := number(p, in(p, victim))
			page := f.nextValid(p, b, 0)
			f.Invalidate(f.PPA(Block(b), int(page)), 0)
			f.Invalidate(f.PPA(Block(b), int(page)), 0)
		},
		"a page is programmed of a full block": func(f *FTL, _ *tables,
			p *pool) {
			f.Programmed(f.PPA(Block(number(p, in(p, ranked))), 0))
		},
		"a page is programmed once more than taken": func(f *FTL, _ *tables, p *pool) {
			m := in(p, open)
			m.pending = 0
			f.Programmed(f.PPA(Block(number(p, m)), 0))
		},
		"a read ends that never began":    func(f *FTL, _ *tables, p *pool) { f.ReadDone(0) },
		"a block fails that there is not": func(f *FTL, _ *tables, _ *pool) { f.Fail(40) },
		"a block fails below the first":   func(f *FTL, _ *tables, _ *pool) { f.Fail(-1) },
	} {
		f, m := lived(t, Greedy)
		func() {
			defer func() {
				if text, ok := recover().(string); !ok || len(text) < 5 || text[:5] != "ftl: " {
					t.Errorf("%s: %q", name, text)
				}
			}()
			do(f, m, f.pools[0])
		}()
	}
}

// TestPinned verifies that a block is erased, or retired if it is failing, only once no reader pins it.
func TestPinned(t *testing.T) {
	f, m := lived(t, Greedy)
	p := f.pools[0]
	// Overwrite elsewhere, or trim, the valid pages of the victim and of the failing block.
	v, bad := number(p, in(p, victim)), number(p, in(p, failing))
	for _, b := range []int32{v, bad} {
		f.ReadStarted(f.PPA(Block(b), 3))
		f.ReadStarted(f.PPA(Block(b), 5))
	}
	in(p, victim).pending-- // the move in flight is over
	for _, b := range []int32{v, bad} {
		for page := f.nextValid(p, b, 0); page < f.pages; page = f.nextValid(p, b, page+1) {
			ppa := f.PPA(Block(b), int(page))
			m.to[m.owner[ppa]] = NoPPA
			f.Invalidate(ppa, 1<<40)
		}
	}
	quiet := func() (erased, failed bool) {
		for {
			a, ok := f.Next(0)
			if !ok {
				return erased, f.Failing(0) == 0
			}
			if a.Kind != Erase || a.Block != Block(v) {
				t.Fatalf("there is %+v to do", a)
			}
			erased = true
		}
	}
	p.again, p.wearDue = nil, false
	f.cfg.GCStart = 0 // no other victim
	for page, want := range []bool{false, true} {
		if erased, failed := quiet(); erased || failed {
			t.Errorf("with %d reads: %v, %v", 2-page, erased, failed)
		}
		f.ReadDone(f.PPA(Block(v), 3+2*page))
		f.ReadDone(f.PPA(Block(bad), 3+2*page))
		if page == 1 {
			if erased, failed := quiet(); erased != want || failed != want {
				t.Errorf("without reads: erased %v, retired %v", erased, failed)
			}
		}
	}
}

// TestAffordable verifies that a pool with neither free blocks nor victims, as after a crash, collects the candidate
// whose pages fit into the rest of the survivors' block if the policy's choice does not fit, and none if no candidate
// fits.
func TestAffordable(t *testing.T) {
	for room, want := range map[int]Block{1: -1, 2: 5, 3: 5, 4: 5, 7: 0} {
		cfg := DefaultConfig()
		cfg.BlocksPerPool, cfg.PagesPerBlock, cfg.Victim = 10, 8, FIFO
		m := &tables{to: make([]PPA, 80), owner: make([]LPA, 80)}
		for i := range m.owner {
			m.to[i], m.owner[i] = PPA(i), LPA(i)
		}
		f, err := New(cfg, m, nil)
		if err != nil {
			t.Fatal(err)
		}
		// FIFO would choose block 0, which has 7 valid pages; block 5 has two, and block 7 has four and was filled
		// before it.
		for _, b := range []struct {
			block Block
			valid uint64
		}{{0, 0x7f}, {1, 0xff}, {7, 0x0f}, {2, 0xff}, {3, 0xff}, {4, 0xff}, {5, 0x03}, {6, 0xff}, {8, 0xff}} {
			if err := f.RestoreBlock(b.block, Restored{Use: Full, Valid: []uint64{b.valid}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.RestoreBlock(9, Restored{Use: Open, Stream: 1, Written: 8 - room}); err != nil {
			t.Fatal(err)
		}
		a, ok := f.Next(0)
		if ok != (want >= 0) || ok && a.Block != want {
			t.Errorf("room for %d: %v, %+v", room, ok, a)
		}
		if !ok && !f.Exhausted(0) {
			t.Errorf("room for %d: it is not exhausted", room)
		}
	}
}
