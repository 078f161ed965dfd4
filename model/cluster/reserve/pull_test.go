package reserve

import (
	"cmp"
	"slices"
	"testing"

	"farflash/numeric/units"
	"farflash/sim"

	"pgregory.net/rapid"
)

// The figures below are for the default cluster: 128 KiB take 105,916.7 ns on the whole link, at 9.9 Gb/s, and
// 312,500 ns on a disk.
const (
	piece   = 128 * units.KiB
	onLink  = sim.Time(105916767)
	onDisk  = 312500 * ns
	nearEnd = 100 * units.Microsecond
)

// newPuller returns a target of nine, three of which get a piece of each chunk.
func newPuller(t testing.TB, change func(*Promise)) *Puller {
	p := Promise{Ahead: nearEnd, Mine: 3, Among: 9, Piece: piece, Patience: sim.Forever}
	if change != nil {
		change(&p)
	}
	return NewPuller(mustNew(t, DefaultConfig()), p)
}

// waiting adds n whole chunks that have waited since 0, numbered from 1.
func waiting(p *Puller, n int) {
	for id := range uint64(n) {
		p.Ask(Waiting{ID: id + 1, Size: piece})
	}
}

// TestPullerServesTheOldest verifies the order of offers: by how long a chunk has waited, then by number, except that
// offers that are open stay open.
func TestPullerServesTheOldest(t *testing.T) {
	p := newPuller(t, func(p *Promise) { p.Ahead = units.Second })
	ask := func(id uint64, since sim.Time) {
		p.Ask(Waiting{ID: id, Since: since, Size: piece, Tag: int32(id), From: 7})
	}
	next := func(want uint64) {
		t.Helper()
		to, _, _, ok := p.Offer(0, 0, onDisk)
		if ok != (want != 0) || to.ID != want || want != 0 && (to.Tag != int32(want) || to.From != 7) {
			t.Errorf("offered to %+v, %v, want %d", to, ok, want)
		}
	}
	next(0)
	ask(5, 30)
	ask(4, 10)
	ask(3, 10)
	ask(6, 20)
	next(3)
	ask(1, 5)  // older than the one that has the offer
	ask(2, 15) // between
	next(1)
	next(4)
	p.Forget(6)
	p.Forget(4)
	p.Forget(99)
	next(2)
	next(5)
	next(0)
	if p.bytes != 4*piece || p.small != 0 {
		t.Errorf("%v of %d chunks", p.bytes, len(p.asks))
	}
	if taken, open := p.Expects(); taken || !open {
		t.Errorf("expects data %v, answers %v", taken, open)
	}
	for id := range uint64(6) {
		p.Forget(id)
	}
	if taken, open := p.Expects(); taken || open || p.bytes != 0 {
		t.Errorf("expects data %v, answers %v, of %v", taken, open, p.bytes)
	}
}

// TestPullerLimit verifies from both sides how much work a target may have when it makes an offer.
func TestPullerLimit(t *testing.T) {
	for _, x := range []struct {
		n     int // chunks that wait
		write sim.Time
		limit sim.Time
	}{
		{1, onDisk, nearEnd},
		{3, onDisk, nearEnd},                           // one piece is expected: this one
		{4, onDisk, nearEnd + onDisk/4},                // a third of a piece more
		{7, onDisk, nearEnd + onDisk},                  // 7*3/9 - 1 pieces, three quarters of each
		{7, 2 * onDisk, nearEnd + onDisk},              // a slow disk gets no more
		{7, onDisk / 2, nearEnd + onDisk/2},            // a fast one is sooner done
		{9, onDisk, nearEnd + onDisk*3/2},              //
		{90, onDisk, nearEnd + 3*(90*3-9)*onDisk/(36)}, //
	} {
		for _, more := range []sim.Time{0, 1} {
			p := newPuller(t, nil)
			waiting(p, x.n)
			to, ready, done, ok := p.Offer(0, x.limit+more, x.write)
			if ok != (more == 0) {
				t.Errorf("%d wait, write %v, work of %v: offered %v", x.n, x.write, x.limit+more, ok)
			}
			if ok && (to.ID != 1 || ready != 0 || done != x.limit+x.write) {
				t.Errorf("%d wait: offered to %d, link free in %v, written in %v", x.n, to.ID, ready, done)
			}
			if in := p.Wake(0, x.limit+more, x.write); !ok && in != more {
				t.Errorf("%d wait: wakes in %v", x.n, in)
			}
		}
	}
	// Of 8 chunks, some are halves; work is that of their mean size.
	for halves, usual := range map[int]sim.Time{0: onDisk, 1: onDisk * 15 / 16, 4: onDisk * 3 / 4, 8: onDisk / 2} {
		p := newPuller(t, nil)
		waiting(p, 8-halves)
		for id := range uint64(halves) {
			p.Ask(Waiting{ID: 9 + id, Size: piece / 2})
		}
		limit, takes := nearEnd+3*15*usual/36, onDisk
		if halves == 8 {
			takes /= 2
		}
		if _, _, _, ok := p.Offer(0, limit+1, onDisk); ok {
			t.Errorf("%d halves: an offer beyond the limit", halves)
		}
		if _, _, done, ok := p.Offer(0, limit, onDisk); !ok || done != limit+takes {
			t.Errorf("%d halves: offered %v, written in %v", halves, ok, done)
		}
	}
}

// TestPullerWork verifies what counts as work: the disk's backlog, open offers, and announced pieces that arrive before
// the rest is done.
func TestPullerWork(t *testing.T) {
	wide := func(p *Promise) { p.Ahead = 700 * units.Microsecond }
	offer := func(p *Puller, now, backlog sim.Time) (ready, done sim.Time) {
		t.Helper()
		_, ready, done, ok := p.Offer(now, backlog, onDisk)
		if !ok {
			t.Errorf("no offer at %v", now)
		}
		return ready, done
	}
	p := newPuller(t, wide)
	waiting(p, 3)
	if ready, done := offer(p, 0, 0); ready != 0 || done != onDisk {
		t.Errorf("the first: %v, %v", ready, done)
	}
	if ready, done := offer(p, 0, 10*ns); ready != 0 || done != 2*onDisk+10*ns {
		t.Errorf("the second, beside an open offer: %v, %v", ready, done)
	}
	// An announced piece arrives after its time on the link, and is then written.
	p.Take(Expected{ID: 1, Due: 0, Size: piece})
	if taken, open := p.Expects(); !taken || !open {
		t.Errorf("expects data %v, answers %v", taken, open)
	}
	p.Forget(2)
	if ready, done := offer(p, 0, 10*ns); ready != onLink || done != onLink+2*onDisk {
		t.Errorf("the third, behind a piece: %v, %v", ready, done)
	}
	p.Forget(3)
	// Half of it has arrived.
	waiting(p, 1)
	p.Received(0, 1, piece/2, piece)
	if ready, _ := offer(p, 0, 0); ready != 52958383 {
		t.Errorf("behind half a piece the link is free in %v", ready)
	}
	if p.Received(0, 1, piece/2-1, piece) || !p.Received(0, 1, 1, piece) {
		t.Error("a piece is complete with its last byte")
	}
	if taken, _ := p.Expects(); taken {
		t.Error("all has arrived, but data is expected")
	}

	// A piece that is due much later than all other work leaves capacity until then.
	for _, x := range []struct {
		due, done sim.Time
	}{{700 * units.Microsecond, onLink + 2*onDisk}, {700*units.Microsecond + 1, onDisk}} {
		p := newPuller(t, wide)
		waiting(p, 1)
		p.Take(Expected{ID: 7, Due: 50*ns + x.due, Size: piece})
		if _, done := offer(p, 50*ns, 0); done != x.done {
			t.Errorf("with a piece in %v: written in %v, want %v", x.due, done, x.done)
		}
	}
	// A piece without an announcement is expected from its first byte on, with the size that it names.
	p = newPuller(t, wide)
	if p.Received(5*ns, 3, 1000, 3000) || len(p.coming) != 1 || p.coming[0].Due != 5*ns || p.coming[0].got != 1000 {
		t.Errorf("%+v", p.coming)
	}
	if !p.Received(6*ns, 3, 2000, 3000) || len(p.coming) != 0 {
		t.Errorf("%+v", p.coming)
	}
	// Pieces are kept in the order in which they are due, and dropped by number.
	for i, due := range []sim.Time{30, 10, 20, 10, 40} {
		p.Take(Expected{ID: uint64(i), Due: due, Size: piece})
	}
	p.Drop(2)
	p.Drop(77)
	var order []uint64
	for _, x := range p.coming {
		order = append(order, x.ID)
	}
	if !slices.Equal(order, []uint64{1, 3, 0, 4}) {
		t.Errorf("due in order %v", order)
	}
	if n := p.Read(); n != 1 {
		t.Errorf("the first piece reads as %d", n)
	}
	p.Ask(Waiting{ID: 100, Size: 5000})
	if n := p.Read(); n != 1+100+5000 {
		t.Errorf("with a chunk it reads as %d", n)
	}
}

// TestPullerOverload verifies that pieces which arrive together later leave no capacity until most of them are written.
func TestPullerOverload(t *testing.T) {
	const due = 500 * units.Microsecond
	p := newPuller(t, nil)
	waiting(p, 1)
	for id := range uint64(2) {
		p.Take(Expected{ID: 10 + id, Due: due, Size: piece})
	}
	// The second of two is written 2 writes after they are due; the limit is 100 us and a write.
	if _, _, _, ok := p.Offer(0, 0, nearEnd); !ok {
		t.Error("two pieces of 100 us: no offer")
	}
	p.Forget(1)
	waiting(p, 1)
	if _, _, _, ok := p.Offer(0, 0, nearEnd+1); ok {
		t.Error("two pieces of just over 100 us: an offer")
	}
	if in := p.Wake(0, 0, nearEnd+1); in != due+2*(nearEnd+1)-nearEnd {
		t.Errorf("wakes in %v", in)
	}
}

// TestPullerMemory verifies that no offer exceeds the memory: announced pieces, open offers and what waits for the disk
// count.
func TestPullerMemory(t *testing.T) {
	const write = sim.Time(1 << 28)
	for _, x := range []struct {
		open, coming int
		backlog      sim.Time
		need         units.Bytes
	}{{0, 0, 0, piece}, {1, 0, 0, 2 * piece}, {0, 1, 0, 2 * piece}, {0, 0, write / 2, piece + piece/2},
		{1, 1, write / 4, 3*piece + piece/4}} {
		for _, less := range []units.Bytes{0, 1} {
			p := newPuller(t, func(p *Promise) { p.Ahead, p.Room = units.Second, x.need-less })
			waiting(p, 2)
			for range x.open {
				p.asks[p.open].offered = 0
				p.open++
			}
			for id := range uint64(x.coming) {
				p.Take(Expected{ID: 20 + id, Due: 0, Size: piece})
			}
			if _, _, _, ok := p.Offer(0, x.backlog, write); ok != (less == 0) {
				t.Errorf("%+v, %v of memory: offered %v", x, p.Room, ok)
			}
			// A byte less is written in 2,048 ps, if the disk has something to write.
			want := sim.Forever
			if x.backlog > 0 {
				want = 2048 + 1
			}
			if in := p.Wake(0, x.backlog, write); less > 0 && in != want {
				t.Errorf("%+v: wakes in %v, want %v", x, in, want)
			}
		}
	}
}

// TestPullerPatience verifies when an offer closes, and when an announced piece is given up: other pieces that arrive
// meanwhile do not count.
func TestPullerPatience(t *testing.T) {
	const patience = 50 * units.Microsecond
	p := newPuller(t, func(p *Promise) { p.Ahead, p.Patience = units.Second, patience })
	waiting(p, 2)
	p.Offer(7, 0, onDisk)
	p.Offer(8, 0, onDisk)
	if in := p.Wake(10, 0, onDisk); in != patience-3 {
		t.Errorf("wakes in %v", in)
	}
	p.expire(patience + 6)
	if p.open != 2 {
		t.Error("an offer closes too early")
	}
	p.expire(patience + 7)
	if p.open != 1 || p.asks[0].ID != 2 {
		t.Errorf("%d open", p.open)
	}
	if in := p.Wake(2*patience, 0, onDisk); in != 0 {
		t.Errorf("wakes in %v", in)
	}
	p.expire(2 * patience)
	if p.open != 0 || len(p.asks) != 0 {
		t.Errorf("%d open", p.open)
	}
	p.Take(Expected{ID: 9, Due: 100, Size: piece})
	if in := p.Wake(0, 0, onDisk); in != patience+100 {
		t.Errorf("wakes in %v", in)
	}
	p.Take(Expected{ID: 8, Due: 0, Size: piece})
	p.Received(0, 8, piece, piece)
	if in := p.Wake(0, 0, onDisk); in != patience+100+onLink {
		t.Errorf("behind another piece it wakes in %v", in)
	}
	p.expire(patience + 99 + onLink)
	if len(p.coming) != 1 {
		t.Error("a piece is given up too early")
	}
	p.expire(patience + 100 + onLink)
	if len(p.coming) != 0 {
		t.Error("a piece is awaited for ever")
	}
	if in := p.Wake(0, 0, onDisk); in != sim.Forever {
		t.Errorf("nothing is expected, but it wakes in %v", in)
	}
}

// pullOracle is a second implementation of a Puller from its description, with lists rebuilt at each step. All times
// are multiples of fractions that integers hold.
type pullOracle struct {
	Promise
	open, waits []Waiting
	coming      []Expected
	received    sim.Time            // all data's time on the link
	at          map[uint64]sim.Time // that, when a piece was announced
}

// wire is the time of a number of bytes at 9.9 Gb/s.
func wire(n units.Bytes) sim.Time { return sim.Time(n) * 80000 / 99 }

func (o *pullOracle) forget(id uint64) {
	is := func(w Waiting) bool { return w.ID == id }
	o.open, o.waits = slices.DeleteFunc(o.open, is), slices.DeleteFunc(o.waits, is)
}

func (o *pullOracle) take(x Expected) {
	o.forget(x.ID)
	o.at[x.ID] = o.received
	o.coming = append(o.coming, x)
	slices.SortStableFunc(o.coming, func(a, b Expected) int { return cmp.Compare(a.Due, b.Due) })
}

func (o *pullOracle) offer(now, backlog, write sim.Time) (to Waiting, ready, done sim.Time, ok bool) {
	if o.Patience != sim.Forever {
		o.open = slices.DeleteFunc(o.open, func(w Waiting) bool { return w.offered+o.Patience <= now })
		o.coming = slices.DeleteFunc(o.coming, func(x Expected) bool {
			return x.Due+o.Patience+o.received-o.at[x.ID] <= now
		})
	}
	if len(o.waits) == 0 {
		return to, 0, 0, false
	}
	takes := func(size units.Bytes) sim.Time { return write * sim.Time(size) / sim.Time(o.Piece) }
	need, sum := o.waits[0].Size, units.Bytes(0)
	whole := true
	for _, w := range append(slices.Clone(o.open), o.waits...) {
		sum, whole = sum+w.Size, whole && w.Size == o.Piece
	}
	expected := sim.Time(len(o.waits)*o.Mine - o.Among)
	usual := min(write, onDisk)
	if !whole && expected > 0 {
		usual = usual * sim.Time(sum/1024) / sim.Time(o.Piece/1024) / sim.Time(len(o.open)+len(o.waits))
	}
	limit := o.Ahead + 3*max(expected, 0)*usual/sim.Time(4*o.Among)

	work := backlog
	var left units.Bytes
	var last sim.Time
	near := true
	var later []Expected
	for _, x := range o.coming {
		need += x.Size
		if near = near && x.Due-now <= max(work, o.Ahead); near {
			last = takes(x.Size)
			work += last
			left += x.Size - x.got
		} else {
			later = append(later, x)
		}
	}
	if left > 0 {
		ready = wire(left)
		work = max(work, ready+last)
	}
	for _, w := range o.open {
		need += w.Size
		work += takes(w.Size)
	}
	if o.Room > 0 && need+units.Bytes(backlog/1024*sim.Time(o.Piece)/(write/1024)) > o.Room || work > limit {
		return to, 0, 0, false
	}
	until := now
	end := now + work
	for _, x := range later {
		end = max(end, x.Due) + takes(x.Size)
		if end-x.Due > limit+write {
			until = end - limit
		}
	}
	if until > now {
		return to, 0, 0, false
	}
	to = o.waits[0]
	to.offered = now
	o.waits = o.waits[1:]
	o.open = append(o.open, to)
	return to, ready, work + takes(to.Size), true
}

// TestPullerAgainstOracle compares offers with the oracle's on random messages, and verifies that a target which waits
// for as long as Wake says neither misses an offer nor spins.
func TestPullerAgainstOracle(t *testing.T) {
	d := mustNew(t, DefaultConfig())
	rapid.Check(t, func(t *rapid.T) {
		const tick = sim.Time(1 << 20) // about a microsecond
		pr := Promise{Ahead: tick * sim.Time(rapid.IntRange(0, 600).Draw(t, "ahead")), Mine: 3, Among: 9, Piece: piece,
			Patience: rapid.SampledFrom([]sim.Time{sim.Forever, 90 * tick}).Draw(t, "patience"),
			Room:     units.Bytes(rapid.SampledFrom([]int{0, 3, 5}).Draw(t, "room")) * piece}
		p := NewPuller(d, pr)
		o := &pullOracle{Promise: pr, at: map[uint64]sim.Time{}}
		write := sim.Time(rapid.SampledFrom([]int{1 << 27, 1 << 28, 1 << 29}).Draw(t, "write"))
		now, free := sim.Time(0), sim.Time(0) // free: when the disk will be idle
		next := uint64(0)
		for range rapid.IntRange(1, 600).Draw(t, "steps") {
			now += tick * sim.Time(rapid.SampledFrom([]int{0, 0, 1, 30, 100}).Draw(t, "later"))
			backlog := max(0, free-now)
			pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "which") }
			switch op := rapid.IntRange(0, 9).Draw(t, "op"); {
			case op < 3:
				next++
				w := Waiting{ID: next, Since: now - tick*sim.Time(pick(3)), Size: piece >> pick(2)}
				p.Ask(w)
				k := 0
				for _, x := range o.waits {
					if x.Since < w.Since || x.Since == w.Since && x.ID < w.ID {
						k++
					}
				}
				o.waits = slices.Insert(o.waits, k, w)
			case op < 4 && len(o.waits) > 0:
				id := o.waits[pick(len(o.waits))].ID
				p.Forget(id)
				o.forget(id)
			case op < 6 && len(o.open) > 0:
				w := o.open[pick(len(o.open))]
				x := Expected{ID: w.ID, Due: now + tick*sim.Time(pick(300)), Size: w.Size}
				p.Take(x)
				o.take(x)
			case op < 8 && len(o.coming) > 0:
				x := &o.coming[pick(len(o.coming))]
				n := min(8*units.KiB*units.Bytes(1+pick(16)), x.Size-x.got)
				last := x.got+n == x.Size
				if got := p.Received(now, x.ID, n, x.Size); got != last {
					t.Fatalf("%v more of %+v: complete %v", n, x, got)
				}
				o.received += wire(n)
				if x.got += n; last {
					free = max(free, now) + write
					id := x.ID
					o.coming = slices.DeleteFunc(o.coming, func(x Expected) bool { return x.ID == id })
				}
			case op < 9 && len(o.coming) > 0:
				id := o.coming[pick(len(o.coming))].ID
				p.Drop(id)
				o.coming = slices.DeleteFunc(o.coming, func(x Expected) bool { return x.ID == id })
			default:
				in := p.Wake(now, backlog, write)
				if in < 0 {
					t.Fatalf("wakes in %v", in)
				}
				to, ready, done, ok := p.Offer(now, backlog, write)
				wantTo, wantReady, wantDone, want := o.offer(now, backlog, write)
				if ok != want || to != wantTo || ready != wantReady || done != wantDone {
					t.Fatalf("offer %+v %v %v %v, the oracle's %+v %v %v %v", to, ready, done, ok, wantTo, wantReady,
						wantDone, want)
				}
				if ok && in > 0 {
					t.Fatalf("an offer is made now, but Wake says in %v", in)
				}
				if !ok && p.Wake(now, backlog, write) == 0 {
					t.Fatal("Wake says now, and nothing can be done")
				}
			}
			sum, halves := units.Bytes(0), 0
			for _, w := range append(slices.Clone(o.open), o.waits...) {
				if sum += w.Size; w.Size != piece {
					halves++
				}
			}
			if p.bytes != sum || p.small != halves {
				t.Fatalf("%v of chunks, %d of them halves; the oracle has %v and %d", p.bytes, p.small, sum, halves)
			}
			taken, open := p.Expects()
			if len(p.asks) != len(o.open)+len(o.waits) || p.open != len(o.open) || taken != (len(o.coming) > 0) ||
				open != (len(o.open) > 0) {
				t.Fatalf("%d chunks, %d open, the oracle has %d and %d", len(p.asks), p.open, len(o.open)+len(o.waits),
					len(o.open))
			}
		}
	})
}
