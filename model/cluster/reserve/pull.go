package reserve

import (
	"slices"

	"farflash/numeric/units"
	"farflash/sim"
)

// Late binding, a protocol of this project (docs/adr/0006-pull.md). A target remembers the chunks whose gateways have
// asked it and, when it is about to run out of work, sends an offer to the oldest of them. Which chunk gets a target is
// thus decided when the target is free, not when it is asked. An open offer counts as work, and so does data that has
// been announced, unless its sender will start only after the target has run out of work. The more chunks ask, the
// further ahead a target sends offers: then there is work for all targets, whichever of them gets it, and a queue
// bridges the time until the announced data arrives, behind the other traffic on the links.

// Waiting is a chunk that waits for capacity at a target.
type Waiting struct {
	ID    uint64      // of the attempt, not 0
	Tag   int32       // the caller's
	From  int32       // the gateway that asks
	Since sim.Time    // start of the chunk's wait, by the target's clock
	Size  units.Bytes // of a piece

	offered sim.Time // when an offer was made to it
}

// Expected is a piece that a target will receive.
type Expected struct {
	ID   uint64
	Due  sim.Time // when its gateway begins to send it
	Size units.Bytes

	got     units.Bytes
	carried sim.Time // Puller.link when the piece was announced
}

// Promise limits a target's offers.
type Promise struct {
	// Ahead is how much work the target may still have when it sends an offer to a single waiting chunk.
	Ahead sim.Time
	// Mine and Among give the expected fraction of the waiting chunks that the target receives: Mine in every Among,
	// the number of pieces of a chunk over the number of targets that it asks.
	Mine, Among int
	// Piece is the size of the largest piece.
	Piece units.Bytes
	// Room is the limit of the data that is announced or waits for the disk; 0 is no limit.
	Room units.Bytes
	// Patience is how long an offer stays open without an answer, and how late a piece may be, not counting the time of
	// other pieces that arrive in between; sim.Forever where no message is lost.
	Patience sim.Time
}

// Puller is a target's side of late binding. Its zero value is not usable; NewPuller returns one.
type Puller struct {
	d      *Durations
	asks   []Waiting   // oldest first; the first p.open of them have offers
	coming []Expected  // in the order in which they are due
	open   int         // number of open offers
	bytes  units.Bytes // total piece size of asks
	small  int         // number of asks whose piece is not the largest
	link   sim.Time    // cumulative link time of received data
	Promise
}

// NewPuller returns a target's side of late binding.
func NewPuller(d *Durations, p Promise) *Puller { return &Puller{d: d, Promise: p} }

// Ask adds a waiting chunk.
func (p *Puller) Ask(w Waiting) {
	i := len(p.asks)
	for i > p.open && w.before(&p.asks[i-1]) {
		i--
	}
	p.asks = slices.Insert(p.asks, i, w)
	p.bytes += w.Size
	if w.Size != p.Piece {
		p.small++
	}
}

// before orders chunks by how long they have waited.
func (w *Waiting) before(x *Waiting) bool {
	return w.Since < x.Since || w.Since == x.Since && w.ID < x.ID
}

// Forget removes a chunk that has all the targets it needs, or has been abandoned. An open offer to it is closed.
func (p *Puller) Forget(id uint64) {
	for i := range p.asks {
		if p.asks[i].ID == id {
			p.bytes -= p.asks[i].Size
			if p.asks[i].Size != p.Piece {
				p.small--
			}
			p.asks = slices.Delete(p.asks, i, i+1)
			if i < p.open {
				p.open--
			}
			return
		}
	}
}

// Drop removes an announced piece that will not arrive.
func (p *Puller) Drop(id uint64) {
	p.coming = slices.DeleteFunc(p.coming, func(x Expected) bool { return x.ID == id })
}

// Take replaces a waiting chunk by an announced piece, and closes the open offer to it.
func (p *Puller) Take(x Expected) {
	p.Forget(x.ID)
	x.carried = p.link
	i := len(p.coming)
	for i > 0 && x.Due < p.coming[i-1].Due {
		i--
	}
	p.coming = slices.Insert(p.coming, i, x)
}

// Offer makes an offer if one is due. It returns the chunk, the time until the link is free for it, and the time until
// a piece that arrives at once would be written, if all other open offers are accepted. backlog is how long the disk
// has work, and write is how long it takes to write a piece.
func (p *Puller) Offer(now, backlog, write sim.Time) (to Waiting, ready, done sim.Time, ok bool) {
	p.expire(now)
	if p.open == len(p.asks) {
		return Waiting{}, 0, 0, false
	}
	work, ready, n := p.work(now, backlog, write)
	if limit := p.limit(write); work > limit || p.overloaded(now, n, work, write, limit) > now ||
		p.lacks(backlog, write) > 0 {
		return Waiting{}, 0, 0, false
	}
	p.asks[p.open].offered = now
	to = p.asks[p.open]
	p.open++
	return to, ready, work + p.takes(to.Size, write), true
}

// lacks returns how much memory is missing for the next offer, given the announced pieces, the open offers and the
// disk's backlog.
func (p *Puller) lacks(backlog, write sim.Time) units.Bytes {
	if p.Room == 0 {
		return 0
	}
	need := p.asks[p.open].Size
	for i := range p.coming {
		need += p.coming[i].Size
	}
	for i := range p.asks[:p.open] {
		need += p.asks[i].Size
	}
	return need + units.Bytes(float64(backlog)/float64(write)*float64(p.Piece)) - p.Room
}

// expire closes offers that have not been answered, and drops announced pieces that have not arrived.
func (p *Puller) expire(now sim.Time) {
	if p.Patience == sim.Forever {
		return
	}
	for p.open > 0 && p.asks[0].offered+p.Patience <= now {
		p.Forget(p.asks[0].ID)
	}
	p.coming = slices.DeleteFunc(p.coming, func(x Expected) bool { return p.until(&x) <= now })
}

// until returns the deadline of a piece. It moves while other pieces arrive, because the piece may be queued behind
// them.
func (p *Puller) until(x *Expected) sim.Time { return x.Due + p.link - x.carried + p.Patience }

// limit returns how much work a target may have when it sends an offer: Ahead, plus three quarters of the write times
// of all but one of the pieces that it expects to receive from the waiting chunks. A slow disk will receive fewer
// pieces, so a usual disk's write time counts for it.
func (p *Puller) limit(write sim.Time) sim.Time {
	mine := sim.Time((len(p.asks)-p.open)*p.Mine - p.Among)
	usual := min(write, p.d.DiskChunk)
	if p.small > 0 {
		usual = sim.Time(float64(usual) * float64(p.bytes) / float64(units.Bytes(len(p.asks))*p.Piece))
	}
	return p.Ahead + 3*max(mine, 0)*usual/sim.Time(4*p.Among)
}

// takes returns the time for a piece of the given size, given that of the largest.
func (p *Puller) takes(size units.Bytes, write sim.Time) sim.Time {
	if size == p.Piece {
		return write
	}
	return sim.Time(float64(write) * float64(size) / float64(p.Piece))
}

// work returns how long a target has work (its disk's backlog, announced pieces and open offers), how long the
// announced data occupies its link, and the number of announced pieces counted. A piece due only after everything
// before it is done, and later than Ahead, is not counted until its time is near: until then there is capacity for
// others.
func (p *Puller) work(now, backlog, write sim.Time) (work, link sim.Time, n int) {
	var left units.Bytes
	var last sim.Time
	work = backlog
	for n < len(p.coming) && p.coming[n].Due-now <= max(work, p.Ahead) {
		x := &p.coming[n]
		last = p.takes(x.Size, write)
		work += last
		left += x.Size - x.got
		n++
	}
	if left > 0 {
		link = p.d.Send(left, p.d.Effective)
		work = max(work, link+last)
	}
	if p.small == 0 {
		return work + sim.Time(p.open)*write, link, n
	}
	for i := range p.asks[:p.open] {
		work += p.takes(p.asks[i].Size, write)
	}
	return work, link, n
}

// overloaded returns the time until which later pieces leave no capacity: they arrive together, and some of them would
// wait for longer than limit.
func (p *Puller) overloaded(now sim.Time, n int, work, write, limit sim.Time) (until sim.Time) {
	done := now + work
	for i := n; i < len(p.coming); i++ {
		x := &p.coming[i]
		if done = max(done, x.Due) + p.takes(x.Size, write); done-x.Due > limit+write {
			until = done - limit
		}
	}
	return until
}

// Wake returns how long it takes until Offer may act: because the disk has worked off its backlog, or because an offer
// or an announced piece has timed out. It returns sim.Forever if only a message can change the state.
func (p *Puller) Wake(now, backlog, write sim.Time) sim.Time {
	in := sim.Forever
	if p.open < len(p.asks) {
		work, _, n := p.work(now, backlog, write)
		limit := p.limit(write)
		in = max(work-limit, p.overloaded(now, n, work, write, limit)-now, 0)
		if lacks := p.lacks(backlog, write); lacks > 0 {
			switch takes := p.takes(lacks, write) + 1; {
			case takes > backlog+1:
				in = sim.Forever // an announced piece must arrive first
			default:
				in = max(in, takes)
			}
		}
	}
	if p.Patience == sim.Forever {
		return in
	}
	if p.open > 0 {
		in = min(in, max(p.asks[0].offered+p.Patience-now, 0))
	}
	for i := range p.coming {
		in = min(in, max(p.until(&p.coming[i])-now, 0))
	}
	return in
}

// Received counts received data of a piece and reports whether it completes the piece. piece is the size of a piece
// that the target does not know, because its announcement was lost or had timed out.
func (p *Puller) Received(now sim.Time, id uint64, size, piece units.Bytes) bool {
	p.link += p.d.Send(size, p.d.Effective)
	i := slices.IndexFunc(p.coming, func(x Expected) bool { return x.ID == id })
	if i < 0 {
		p.Take(Expected{ID: id, Due: now, Size: piece})
		i = slices.IndexFunc(p.coming, func(x Expected) bool { return x.ID == id })
	}
	x := &p.coming[i]
	if x.got += size; x.got < x.Size {
		return false
	}
	p.coming = slices.Delete(p.coming, i, i+1)
	return true
}

// Read touches the state that an arrival will read, and returns a value derived from it.
func (p *Puller) Read() int64 {
	n := int64(p.bytes)
	if len(p.coming) > 0 {
		n += int64(p.coming[0].ID)
	}
	if len(p.asks) > 0 {
		n += int64(p.asks[0].ID)
	}
	return n
}
