package reserve

import (
	"slices"

	"farflash/numeric/units"
	"farflash/sim"
)

// Late binding, our own protocol (docs/adr/0006-pull.md). A target remembers who has asked it for room and offers
// itself to the oldest of them when it is about to run out of work, so that who gets a target is decided when it is
// free and not when it is asked. An offer that is open counts as work, and so does what has been taken, unless its
// sender has said that it comes only when the target has nothing to do any more. The more chunks ask, the further
// ahead a target offers itself: there is work for all then, whoever has it, and a queue bridges the time until what
// has been taken comes, behind what else is on the links.

// Waiting is a chunk that has asked a target for room.
type Waiting struct {
	ID    uint64      // the chunk's, not 0
	Tag   int32       // the caller's own
	From  int32       // the gateway that asks
	Since sim.Time    // since when the chunk waits, by the target's clock
	Size  units.Bytes // of a piece

	offered sim.Time // when it got an offer
}

// Coming is a piece that a target will receive.
type Coming struct {
	ID   uint64
	Due  sim.Time // when its gateway begins to send it
	Size units.Bytes

	got     units.Bytes
	carried sim.Time // what the link had carried when it was due
}

// Promise is how far a target goes in offering itself.
type Promise struct {
	// Ahead is for how long it still has work when it offers itself to a chunk that is alone.
	Ahead sim.Time
	// Mine and Among say how much of those who ask it will have: Mine of each Among, as many pieces as a chunk has of
	// the targets that it asks.
	Mine, Among int
	// Piece is the size of the largest piece.
	Piece units.Bytes
	// Room is how much may come and wait for the disk; 0 is no limit.
	Room units.Bytes
	// Patience is for how long an offer is open that nobody answers, and how late a piece may come, without what
	// other pieces take that come meanwhile; sim.Forever where no message is lost.
	Patience sim.Time
}

// Puller is a target's side of late binding. Its zero value is not usable; NewPuller returns one.
type Puller struct {
	d      *Durations
	asks   []Waiting   // oldest first; the first of them have offers
	coming []Coming    // in the order in which they are due
	open   int         // offers
	bytes  units.Bytes // of all that ask
	small  int         // of them whose piece is not the largest
	link   sim.Time    // for how long what has come was on the link
	Promise
}

// NewPuller returns a target's side of late binding.
func NewPuller(d *Durations, p Promise) *Puller { return &Puller{d: d, Promise: p} }

// Ask remembers a chunk.
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

// Forget removes a chunk that has all the targets it needs, or has been given up. An open offer to it is closed.
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

// Drop forgets a piece that was to come and will not.
func (p *Puller) Drop(id uint64) {
	p.coming = slices.DeleteFunc(p.coming, func(x Coming) bool { return x.ID == id })
}

// Take makes a chunk one of which a piece comes, and answers the open offer to it.
func (p *Puller) Take(x Coming) {
	p.Forget(x.ID)
	x.carried = p.link
	i := len(p.coming)
	for i > 0 && x.Due < p.coming[i-1].Due {
		i--
	}
	p.coming = slices.Insert(p.coming, i, x)
}

// Offer decides on an offer: to whom, how long until the link is free for it, and how long until a piece that comes
// at once is written, if all other offers that are open are taken. backlog is for how long the disk has work, write
// how long it takes to write a piece.
func (p *Puller) Offer(now, backlog, write sim.Time) (to Waiting, ready, done sim.Time, ok bool) {
	p.expire(now)
	if p.open == len(p.asks) {
		return Waiting{}, 0, 0, false
	}
	work, ready, n := p.work(now, backlog, write)
	if limit := p.limit(write); work > limit || p.crowded(now, n, work, write, limit) > now ||
		p.lacks(backlog, write) > 0 {
		return Waiting{}, 0, 0, false
	}
	p.asks[p.open].offered = now
	to = p.asks[p.open]
	p.open++
	return to, ready, work + p.takes(to.Size, write), true
}

// lacks is how much room is missing for the next piece: for what has been taken and offered, what the disk has and it.
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

// expire takes back offers that nobody has answered, and promises whose piece has not come.
func (p *Puller) expire(now sim.Time) {
	if p.Patience == sim.Forever {
		return
	}
	for p.open > 0 && p.asks[0].offered+p.Patience <= now {
		p.Forget(p.asks[0].ID)
	}
	p.coming = slices.DeleteFunc(p.coming, func(x Coming) bool { return p.until(&x) <= now })
}

// until is until when a target waits for a piece, if nothing comes meanwhile: while others come it may be behind them.
func (p *Puller) until(x *Coming) sim.Time { return x.Due + p.link - x.carried + p.Patience }

// limit is for how long a target may have work that offers itself: Ahead, and three quarters of the writes of all but
// one of the pieces that it is going to have of those who ask. A slow disk is going to have fewer, so what counts is
// what a usual one takes for them.
func (p *Puller) limit(write sim.Time) sim.Time {
	mine := sim.Time((len(p.asks)-p.open)*p.Mine - p.Among)
	usual := min(write, p.d.DiskChunk)
	if p.small > 0 && mine > 0 {
		usual = sim.Time(float64(usual) * float64(p.bytes) / float64(units.Bytes(len(p.asks))*p.Piece))
	}
	return p.Ahead + 3*max(mine, 0)*usual/sim.Time(4*p.Among)
}

// takes is how long a piece takes of what the largest does.
func (p *Puller) takes(size units.Bytes, write sim.Time) sim.Time {
	if size == p.Piece {
		return write
	}
	return sim.Time(float64(write) * float64(size) / float64(p.Piece))
}

// work is for how long a target has work: what its disk has, what comes, and what is offered; and for how long what
// comes takes its link. What is due only when all before it is done, and later than Ahead, counts when its time is
// near: until then there is room for others.
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

// crowded is until when what is due later leaves no room: it comes together, and some of it would wait for longer
// than limit.
func (p *Puller) crowded(now sim.Time, n int, work, write, limit sim.Time) (until sim.Time) {
	done := now + work
	for i := n; i < len(p.coming); i++ {
		x := &p.coming[i]
		if done = max(done, x.Due) + p.takes(x.Size, write); done-x.Due > limit+write {
			until = done - limit
		}
	}
	return until
}

// Wake is in how long Offer will have something to say because the disk has worked off its backlog, or to forget
// because an offer is open, or a piece has not come, for too long; Forever if only a message can change it.
func (p *Puller) Wake(now, backlog, write sim.Time) sim.Time {
	in := sim.Forever
	if p.open < len(p.asks) {
		work, _, n := p.work(now, backlog, write)
		limit := p.limit(write)
		in = max(work-limit, p.crowded(now, n, work, write, limit)-now, 0)
		if lacks := p.lacks(backlog, write); lacks > 0 {
			switch takes := p.takes(lacks, write) + 1; {
			case takes > backlog+1:
				in = sim.Forever // what comes must come first
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

// Received: some of a piece has come. It reports whether it is the last. Of a piece that the target did not know to
// come, because the message that takes it was lost or it had waited for too long, it is told the size.
func (p *Puller) Received(now sim.Time, id uint64, size, piece units.Bytes) bool {
	p.link += p.d.Send(size, p.d.Effective)
	i := slices.IndexFunc(p.coming, func(x Coming) bool { return x.ID == id })
	if i < 0 {
		p.Take(Coming{ID: id, Due: now, Size: piece})
		i = slices.IndexFunc(p.coming, func(x Coming) bool { return x.ID == id })
	}
	x := &p.coming[i]
	if x.got += size; x.got < x.Size {
		return false
	}
	p.coming = slices.Delete(p.coming, i, i+1)
	return true
}

// Read reads what will be read when something comes, and returns something of it.
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
