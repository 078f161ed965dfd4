package reserve

import (
	"slices"

	"farflash/sim"
	"farflash/units"
)

// Receiver pull with late binding, our own protocol (docs/adr/0006-pull.md). A target remembers who has asked it for room and
// offers itself to the oldest of them when it is about to run out of work, so that who gets a target is decided when it is free and
// not when it is asked. An offer that is open counts as work, so a target has few open: just one where a write takes longer than the messages. What
// has been taken is pulled: a target tells the sender before it when its link will be free, one round trip ahead.

// Waiting is a chunk that has asked a target for room.
type Waiting struct {
	ID    uint64   // the chunk's, not 0
	Tag   int32    // the caller's own
	From  int32    // the gateway that asks
	Since sim.Time // since when the chunk waits, by the target's clock

	offered sim.Time // when it got an offer
}

// Coming is a chunk that a target will receive.
type Coming struct {
	ID     uint64
	Tag    int32
	From   int32       // the node that sends it
	Place  int8        // of the target among the chunk's
	Left   units.Bytes // still to come
	Pulled bool        // its sender has been asked to send
}

// Puller is a target's side of receiver pull. Its zero value is not usable; NewPuller returns one.
type Puller struct {
	d      *Durations
	asks   []Waiting // oldest first; the first of them have offers
	coming []Coming  // in the order in which they were taken
	open   int       // offers
	ahead  sim.Time
	reach  units.Bytes // what a link carries in a round trip
	wait   sim.Time    // for how long an offer is open
}

// NewPuller returns a target's side of receiver pull. It offers itself when it has less work than for the time ahead. An offer that nobody has
// answered for the time wait is closed; sim.Forever where no message is lost.
func NewPuller(d *Durations, ahead, wait sim.Time) *Puller {
	roundTrip := 2*d.Trip + d.Control
	return &Puller{d: d, ahead: ahead, wait: wait, reach: units.Bytes(int64(roundTrip/d.Frame)+2) * d.FrameSize}
}

// Ask remembers a chunk.
func (p *Puller) Ask(w Waiting) {
	i := len(p.asks)
	for i > p.open && w.before(&p.asks[i-1]) {
		i--
	}
	p.asks = slices.Insert(p.asks, i, w)
}

// before orders chunks by how long they have waited.
func (w *Waiting) before(x *Waiting) bool {
	return w.Since < x.Since || w.Since == x.Since && w.ID < x.ID
}

// Forget removes a chunk that has all the targets it needs, or has been given up. An open offer to it is closed.
func (p *Puller) Forget(id uint64) {
	for i := range p.asks {
		if p.asks[i].ID == id {
			p.asks = slices.Delete(p.asks, i, i+1)
			if i < p.open {
				p.open--
			}
			return
		}
	}
}

// Drop forgets a chunk that was to come and will not.
func (p *Puller) Drop(id uint64) {
	p.coming = slices.DeleteFunc(p.coming, func(x Coming) bool { return x.ID == id })
}

// Take makes a chunk one that comes, and answers the open offer to it.
func (p *Puller) Take(x Coming) {
	p.Forget(x.ID)
	p.coming = append(p.coming, x)
}

// Offer decides on an offer: to whom, and how long until the link is free for it. backlog is for how long the disk has work, write how
// long it takes to write a chunk.
func (p *Puller) Offer(now, backlog, write sim.Time) (to Waiting, ready sim.Time, ok bool) {
	for p.wait < sim.Forever && p.open > 0 && p.asks[0].offered+p.wait <= now {
		p.Forget(p.asks[0].ID)
	}
	if p.open == len(p.asks) || p.Work(backlog, write) > p.ahead {
		return Waiting{}, 0, false
	}
	p.asks[p.open].offered = now
	to, ready = p.asks[p.open], p.Receiving()
	p.open++
	return to, ready, true
}

// Receiving is how long the link is taken by what comes.
func (p *Puller) Receiving() sim.Time {
	var left units.Bytes
	for i := range p.coming {
		left += p.coming[i].Left
	}
	if left == 0 {
		return 0
	}
	return p.d.Send(left, p.d.Effective)
}

// Work is for how long a target has work: what its disk has, what comes, and what is offered.
func (p *Puller) Work(backlog, write sim.Time) sim.Time {
	work := backlog
	if len(p.coming) > 0 {
		work = max(backlog+sim.Time(len(p.coming))*write, p.Receiving()+write)
	}
	return work + sim.Time(p.open)*write
}

// Wake is in how long Offer will have something to say because the disk has worked off its backlog; Forever if only a message can
// change it.
func (p *Puller) Wake(now, backlog, write sim.Time) sim.Time {
	in := sim.Forever
	if p.open < len(p.asks) {
		in = max(p.Work(backlog, write)-p.ahead, 0)
	}
	if p.open > 0 && p.wait < sim.Forever {
		in = min(in, max(p.asks[0].offered+p.wait-now, 0))
	}
	return in
}

// Pull decides on what to pull next: as soon as what is pulled will have come in a round trip.
func (p *Puller) Pull() (next Coming, ok bool) {
	var left units.Bytes
	for i := range p.coming {
		x := &p.coming[i]
		if x.Pulled {
			left += x.Left
			continue
		}
		if left > p.reach {
			return Coming{}, false
		}
		x.Pulled = true
		return *x, true
	}
	return Coming{}, false
}

// Received: some of a chunk has come. It reports whether it is the last.
func (p *Puller) Received(id uint64, size units.Bytes) bool {
	for i := range p.coming {
		if x := &p.coming[i]; x.ID == id {
			if x.Left -= size; x.Left > 0 {
				return false
			}
			p.coming = slices.Delete(p.coming, i, i+1)
			return true
		}
	}
	return false
}
