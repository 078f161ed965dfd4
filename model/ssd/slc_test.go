package ssd

import (
	"testing"

	"farflash/block"
	"farflash/model/ssd/nand"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// cached returns a drive of one plane with round times whose TLC has a cache of three blocks of 5 pages: one bit a cell
// reads in 3 us and programs in 20, where three bits take 10 and 100.
func cached() Config {
	cfg := round()
	cfg.Timing.Cell = nand.TLC
	s := DefaultSLCCache()
	s.Capacity, s.ReadLatency, s.ProgramLatency = 3*5*8192, 3*us, 20*us
	cfg.SLCCache = &s
	return cfg
}

// next submits a request and runs just until it has completed.
func next(t *testing.T, a *asker, q block.QueueID, op block.Op, page int) block.Completion {
	t.Helper()
	a.done = a.done[:0]
	if !a.d.Submit(q, block.Request{Op: op, Offset: int64(page) * 8192, Length: 8192}) {
		t.Fatal("it does not fit")
	}
	for len(a.done) == 0 {
		a.eng.Run(a.eng.Next())
	}
	if a.done[0].Status != block.OK {
		t.Fatalf("page %d: %v", page, a.done[0].Status)
	}
	return a.done[0]
}

// TestSLCCacheByHand: pages in the cache are programmed and read in the cache's times until it is full, then in those
// of the flash. After a long enough idle time the drive has folded all full blocks of the cache, and reads and writes
// are as fast as at first.
func TestSLCCacheByHand(t *testing.T) {
	without := cached()
	without.SLCCache = nil
	plain, a := newAsker(t, without), newAsker(t, cached())
	queues := map[*asker]block.QueueID{}
	for _, x := range []*asker{plain, a} {
		queues[x] = x.open(t, block.QueueConfig{Depth: 4, Weight: 1})
	}
	takes := func(x *asker, op block.Op, page int) sim.Time {
		c := next(t, x, queues[x], op, page)
		return (c.Finished - c.Submitted) / us * us // the previous completion's doorbell takes 8 ns of the link
	}
	write, read := takes(plain, block.Write, 0), takes(plain, block.Read, 0)
	// Idle times do not matter yet: each command follows at once.
	for page := range 20 {
		saved := 80 * us
		if page >= 15 {
			saved = 0
		}
		if got := takes(a, block.Write, page); got != write-saved {
			t.Errorf("page %d is written in %v, not %v", page, got, write-saved)
		}
	}
	for page, saved := range map[int]sim.Time{0: 7 * us, 14: 7 * us, 15: 0, 19: 0} {
		if got := takes(a, block.Read, page); got != read-saved {
			t.Errorf("page %d is read in %v, not %v", page, got, read-saved)
		}
	}
	if s := a.d.Stats(); s.SLCPrograms != 15 || s.HostPrograms != 20 || s.FoldPrograms != 0 || a.d.SLCBlocks() != 3 {
		t.Errorf("%d of %d programs were of the cache, %d folded; %d blocks are", s.SLCPrograms, s.HostPrograms,
			s.FoldPrograms, a.d.SLCBlocks())
	}

	a.eng.Run(a.eng.Now() + units.Second)
	if s := a.d.Stats(); s.FoldPrograms != 15 || s.MovePrograms != 15 || s.FTL.Folds != 3 || s.Collected() != 0 ||
		a.d.SLCBlocks() != 0 || s.Erases != 3 {
		t.Errorf("left alone, the drive moved %d pages of %d blocks; %d erases, %d blocks are of the cache",
			s.FoldPrograms, s.FTL.Folds, s.Erases, a.d.SLCBlocks())
	}
	if got := takes(a, block.Read, 0); got != read {
		t.Errorf("a folded page is read in %v, not %v", got, read)
	}
	for page := range 20 { // the open normal block has 11 pages left
		saved := sim.Time(0)
		if page >= 11 {
			saved = 80 * us
		}
		if got := takes(a, block.Write, page); got != write-saved {
			t.Errorf("page %d is written again in %v, not %v", page, got, write-saved)
		}
	}
	for _, c := range a.d.Checks() {
		if !c.OK {
			t.Errorf("%s: %s", c.Name, c.Detail)
		}
	}
}

// TestSLCCacheWaits verifies that a host that waits for the cache gets, in the long run, a block of it in the time to
// fold one plus the time to fill one.
func TestSLCCacheWaits(t *testing.T) {
	cfg := cached()
	cfg.SLCCache.WhenFull = WaitFold
	a := newAsker(t, cfg)
	q := a.open(t, block.QueueConfig{Depth: 4, Weight: 1})
	const blocks = 40
	var at []sim.Time
	for page := range 5 * blocks {
		at = append(at, next(t, a, q, block.Write, page).Finished)
	}
	s := a.d.Stats()
	if s.SLCPrograms != s.HostPrograms || s.FTL.Folds != blocks-3 {
		t.Errorf("%d of %d programs were of the cache, %d blocks folded", s.SLCPrograms, s.HostPrograms, s.FTL.Folds)
	}
	// Five pages, each 1 us of command, 3 us in the cache's array and 2 us out, then 1 + 2 us in and 100 us; and an
	// erase of 1 + 1000 us. No other work overlaps with it.
	write := at[1] - at[0]
	fold := 5*(1+3+2+1+2+100)*us + 1001*us
	if got, want := at[len(at)-1]-at[len(at)-1-5*20], 20*(5*write+fold); float64(got) > 1.02*float64(want) ||
		float64(got) < .85*float64(want) {
		t.Errorf("20 blocks took %v; 20 times five writes of %v and a fold of %v are %v", got, write, fold, want)
	}
}

// TestSLCCacheReserved verifies that on a full drive that has been overwritten for long only the reserved part of the
// cache is available.
func TestSLCCacheReserved(t *testing.T) {
	for _, reserved := range []units.Bytes{0, 2 * 5 * 8192} {
		cfg := cached()
		cfg.OverProvisioning = .3
		cfg.SLCCache.Reserved = reserved
		cfg.Preconditioning.Fill = FillSteady
		cfg.Preconditioning.Occupancy = 1
		a := newAsker(t, cfg)
		q := a.open(t, block.QueueConfig{Depth: 4, Weight: 1})
		for page := range 60 {
			next(t, a, q, block.Write, page*7%1000)
		}
		// The fill may leave it a block that is open anyway.
		if s := a.d.Stats(); s.SLCPrograms > 5 && reserved == 0 || reserved > 0 && s.SLCPrograms < 10 ||
			s.SLCPrograms > 15 {
			t.Errorf("with %v reserved %d of %d pages went to the cache", reserved, s.SLCPrograms, s.HostPrograms)
		}
	}
}

// TestSLCCacheFails fails blocks of a small cache while the host waits for one of them. A retired block is not erased,
// but another can be opened in its place, so the host must not wait any longer.
func TestSLCCacheFails(t *testing.T) {
	for seed := range uint64(50) {
		cfg := cached()
		cfg.SLCCache.WhenFull, cfg.SLCCache.Capacity = WaitFold, 2*5*8192
		cfg.Geometry.BlocksPerPlane, cfg.OverProvisioning, cfg.Collection.Reserve = 40, .5, 4
		a := newAsker(t, cfg)
		random, left := rng.NewStream(seed, "failures"), 3
		a.d.FailPrograms(func(uint32) bool {
			if left == 0 || random.IntN(4) > 0 {
				return false
			}
			left--
			return true
		})
		q := a.open(t, block.QueueConfig{Depth: 64, Weight: 1})
		for page := range int64(20) {
			a.d.Submit(q, block.Request{Op: block.Write, Offset: page * 8192, Length: 8192})
		}
		a.eng.Run(sim.Forever)
		if len(a.done) != 20 {
			t.Fatalf("seed %d: %d of 20 writes ended: %s", seed, len(a.done), a.d.Held())
		}
	}
}
