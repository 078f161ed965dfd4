package ssd

import (
	"math"
	"testing"

	"farflash/block"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// Sums by hand: what requests wait for in the drive, DRAM times, programs of the map.

// submit gives a drive requests at once and returns their completions in order of submission.
func (a *asker) submit(t *testing.T, q block.QueueID, requests ...block.Request) []block.Completion {
	t.Helper()
	out := make([]block.Completion, len(requests))
	a.done = a.done[:0]
	for i, r := range requests {
		r.Tag = uint64(i)
		if !a.d.Submit(q, r) {
			t.Fatalf("request %d does not fit", i)
		}
	}
	a.eng.Run(sim.Forever)
	for _, c := range a.done {
		if c.Status != block.OK {
			t.Fatalf("request %d: %v", c.Tag, c.Status)
		}
		out[c.Tag] = c
	}
	if len(a.done) != len(out) {
		t.Fatalf("%d of %d requests ended", len(a.done), len(out))
	}
	return out
}

// TestWaitedByHand: of simultaneous reads each holds the one die for 13 us (command 1, array 10, data 2), so the k-th
// takes 13 k us longer than it would alone, all of it waiting; and each waits for the doorbells of the three others, 2
// B and 28 B of headers at 4 B a ns. A lone read does not wait.
func TestWaitedByHand(t *testing.T) {
	read := func(page int64) block.Request {
		return block.Request{Op: block.Read, Offset: page * 8192, Length: 8192}
	}
	cfg := round()
	a := newAsker(t, cfg)
	q := a.open(t, block.QueueConfig{Depth: 16, Weight: 1})
	alone := a.submit(t, q, read(0))[0]
	took := alone.Finished - alone.Submitted
	if alone.Waited != 0 {
		t.Errorf("a read that is alone waited %v", alone.Waited)
	}
	const bells = 3 * 8 * units.Nanosecond
	for k, c := range a.submit(t, q, read(1), read(2), read(3), read(4)) {
		if want := sim.Time(k)*13*us + bells; c.Waited != want || c.Finished-c.Submitted != took+want {
			t.Errorf("read %d of four took %v and waited %v; want %v and %v", k, c.Finished-c.Submitted, c.Waited,
				took+want, want)
		}
	}
	// The totals over all requests match the individual values.
	b := a.d.Stats().Breakdown[block.Read]
	waited := b.Queue.Plus(b.Backlog).Plus(b.Wait)
	if waited != units.TotalOf((1+2+3)*13*us+4*bells) || b.Array != units.TotalOf(5*10*us) ||
		b.Transfer != units.TotalOf(5*3*us) {
		t.Errorf("reads waited %v, the array took %v, the channel %v", waited, b.Array, b.Transfer)
	}

	// With two commands in the controller the other two wait to be fetched: the wait is elsewhere, but still a wait.
	// The rest is the time of a lone read, except for a message of 8 ns that may precede its own on the link, which
	// counts as link time.
	cfg.Host.Commands = 2
	a = newAsker(t, cfg)
	q = a.open(t, block.QueueConfig{Depth: 16, Weight: 1})
	c := a.submit(t, q, read(1), read(2), read(3), read(4))
	if b := a.d.Stats().Breakdown[block.Read]; b.Queue.Sign() == 0 || c[3].Waited <= c[2].Waited ||
		c[2].Waited <= c[1].Waited {
		t.Errorf("reads waited %v, %v, %v, in the queue %v", c[1].Waited, c[2].Waited, c[3].Waited, b.Queue)
	}
	for k := range c {
		if got := c[k].Finished - c[k].Submitted - c[k].Waited; got < took || got > took+8*units.Nanosecond {
			t.Errorf("read %d of four took %v beside its wait; alone it takes %v", k, got, took)
		}
	}
}

// TestDRAMByHand: a row of 4 KiB is opened in 10 + 20 ns and transfers 8 B a ns; each further row is preceded by a
// precharge of 5 ns.
func TestDRAMByHand(t *testing.T) {
	cfg := round()
	cfg.DRAM = DRAM{RowSize: 4096, DataRate: 1_000_000_000, BurstSize: 8, TRCD: 10 * units.Nanosecond,
		TCL: 20 * units.Nanosecond, TRP: 5 * units.Nanosecond}
	d := newAsker(t, cfg).d
	for _, c := range []struct {
		bytes int64
		want  sim.Time // ns
	}{
		{8, 30 + 1}, {9, 30 + 2}, {512, 30 + 64}, {4096, 30 + 512},
		{4097, 2*30 + 5 + 513}, {4608, 2*30 + 5 + 576}, {8192, 2*30 + 5 + 1024}, {12 << 10, 3*30 + 2*5 + 1536},
		{1 << 20, 256*30 + 255*5 + 131072},
	} {
		if got := d.dramTime(c.bytes); got != c.want*units.Nanosecond {
			t.Errorf("%d bytes take %v, not %v ns", c.bytes, got, int64(c.want))
		}
	}

	// It carries one transfer at a time: of three simultaneous writes of 8 KiB into the cache, over a bus of 8 B a 100
	// ns, each completes 30 + 30 + 5 ns and 102.4 us after the previous one. That is memory time; only the doorbells
	// and fetches of the others count as waiting.
	cfg.Cache.Mode, cfg.Cache.DestageAt, cfg.DRAM.DataRate = CacheWrite, .99, 10_000_000
	a := newAsker(t, cfg)
	q := a.open(t, block.QueueConfig{Depth: 16, Weight: 1})
	var at sim.Time
	for k, c := range a.submit(t, q, block.Request{Op: block.Write, Length: 8192},
		block.Request{Op: block.Write, Offset: 8192, Length: 8192},
		block.Request{Op: block.Write, Offset: 16384, Length: 8192}) {
		if want := 65*units.Nanosecond + 102_400*units.Nanosecond; k > 0 && c.Finished-at != want {
			t.Errorf("write %d ended %v after the one before, not %v", k, c.Finished-at, want)
		}
		if at = c.Finished; c.Waited > 100*units.Nanosecond {
			t.Errorf("write %d waited %v", k, c.Waited)
		}
	}
}

// TestMapWriteAmplification compares the programs of mapping pages with a closed form. Random pages of N are written
// one after the other; the table has C entries, the map P pages. An entry is evicted when it has not been used for T
// writes, where C = N (1 - exp(-T/N)) (Che, Tung and Wang, 2002); so a write is the last one of its entry with
// probability 1 - C/N. A mapping page is programmed when one of its entries is evicted dirty, which makes all of its
// entries clean. The next program of it follows T writes after the first write that is the last one of an entry of it,
// which takes P/(1 - C/N) writes on average. For P pages that makes 1/(1/(1 - C/N) + T/P) programs a write. Each
// program reads the old page first, and so does each of the 1 - C/N misses, but the two share a read if the page is the
// same, once in P times.
func TestMapWriteAmplification(t *testing.T) {
	t.Parallel()
	cfg := round()
	cfg.Mapping.Ideal = false
	g := &cfg.Geometry
	g.BlocksPerPlane, g.PagesPerBlock, g.PageSize = 2048, 64, 2048
	cfg.OverProvisioning = .5
	for _, entries := range []int{16, 128, 1024} {
		a := newAsker(t, cfg)
		a.d.tables[0].most = entries
		q := a.open(t, block.QueueConfig{Depth: 4, Weight: 1})
		n := a.d.Capacity(0) / 2048
		random := rng.NewStream(1, "pages")
		var was Stats
		const writes = 30_000
		warm := 4 * entries // until as many entries have been inserted and evicted
		for i := range warm + writes {
			if i == warm {
				was = a.d.Stats()
			}
			a.d.Submit(q, block.Request{Op: block.Write, Offset: random.IntN(n) * 2048, Length: 2048})
			a.eng.Run(sim.Forever)
			a.done = a.done[:0]
		}
		s := a.d.Stats()
		if s.MovePrograms > 0 || s.HostPrograms-was.HostPrograms != writes {
			t.Fatalf("%d pages were moved, %d programmed for %d writes", s.MovePrograms,
				s.HostPrograms-was.HostPrograms, writes)
		}
		N, C, P := float64(n), float64(entries), float64(n)/float64(a.d.entriesPerPage)
		last := 1 - C/N
		programs := 1 / (1/last - math.Log(last)*N/P)
		reads := last + programs*(1-1/P)
		for _, x := range []struct {
			what      string
			got, want float64
		}{
			{"programs", float64(s.MappingPrograms-was.MappingPrograms) / writes, programs},
			{"reads", float64(s.MappingReads-was.MappingReads) / writes, reads},
			{"hits", float64(s.MapHits-was.MapHits) / writes, C / N},
		} {
			if math.Abs(x.got-x.want) > .02*x.want+.001 {
				t.Errorf("%d entries: %.4f mapping %s a write, by the closed form %.4f", entries, x.got, x.what, x.want)
			}
			t.Logf("%d entries: %.4f mapping %s a write, by the closed form %.4f", entries, x.got, x.what, x.want)
		}
	}
}

// TestRequestsBeginAnew verifies that a request that reuses the slot of a completed one inherits no state: a write into
// the cache, after a read of flash, reports no time on flash and no wait for space.
func TestRequestsBeginAnew(t *testing.T) {
	cfg := round()
	cfg.Cache.Mode, cfg.Cache.DestageAt = CacheWrite, .99
	a := newAsker(t, cfg)
	q := a.open(t, block.QueueConfig{Depth: 16, Weight: 1})
	a.submit(t, q, block.Request{Op: block.Read, Length: 8192})
	a.submit(t, q, block.Request{Op: block.Write, Offset: 1 << 20, Length: 8192})
	s := a.d.Stats()
	w, r := s.Breakdown[block.Write], s.Breakdown[block.Read]
	var none units.Total
	if w.Requests != 1 || w.Array != none || w.Transfer != none || w.Mapping != none || w.Wait != none ||
		w.Cache != none || w.DRAM.Sign() <= 0 || w.All != w.Queue.Plus(w.Link).Plus(w.DRAM) {
		t.Errorf("the write: %+v", w)
	}
	if r.Array != units.TotalOf(10*us) || r.Transfer != units.TotalOf(3*us) {
		t.Errorf("the read: %+v", r)
	}
}
