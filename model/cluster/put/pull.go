package put

import (
	"cmp"
	"slices"

	"farflash/model/cluster/reserve"
	"farflash/numeric/units"
	"farflash/sim"
)

// Pull is late binding over two groups, our own (docs/adr/0006-pull.md).
const Pull Scheme = 4

var receiverPull = Traits{Name: "pull", Finds: FindsBidders, Chosen: byBids, Chained: true, Several: true,
	Offers: true, Queued: true, Heedless: true, Times: reserve.UnicastConfig,
	Messages: []string{askRoom: "request", offer: "offer", take: "take", stored: "ack", giveUp: "cancel"},
	New:      func(b *Bus) Protocol { return newPull(b) }}

// pull is late binding, our own protocol; docs/adr/0006-pull.md says why it is as it is. A gateway asks the targets
// of two groups by a multicast each. Each remembers it and offers itself when it runs out of work, to who has waited
// longest: targets pull chunks as they have room for them. A gateway listens until all that have room at once have
// said so, and takes those that are done the soonest; if they are not enough it binds with the offer that it still
// needs. It tells both groups, again by one message each, which targets it takes, those whose links are free the
// soonest first, which it leaves, and when its link has sent what was bound before. The data follows right behind,
// from the gateway to the first target, from there to the second as it comes in, and so on.
type pull struct {
	b     *Bus
	ends  []reserve.Puller // of targets
	clock []sim.Timer      // of targets: when they may make their next offer
	puts  []pulled         // by chunk
	free  []sim.Time       // of gateways: when their link has sent all that is bound
	among []int32
}

// pulled is a chunk that is put.
type pulled struct {
	id     uint64               // of the attempt
	offers [MaxReplicas]offered // the best that have been heard, the soonest done first
	n      int8
	heard  bool     // all that had room when they were asked have been heard
	bound  sim.Time // when its gateway told who is taken
}

// offered is an offer that a gateway has.
type offered struct {
	target int32
	ready  sim.Time // when its link is free
	done   sim.Time // when a piece that comes now is written
}

// listens is the flag of a timer's argument that is a gateway's, with the number of its chunk.
const listens = 1 << 31

// Kinds of control messages of pull.
const (
	askRoom uint8 = iota
	offer
	take
	stored
	giveUp
)

func newPull(b *Bus) *pull {
	p := &pull{b: b, free: make([]sim.Time, b.Gateways)}
	for t := range b.Targets {
		p.ends = append(p.ends, p.end())
		p.clock = append(p.clock, b.NewTimer(uint32(t)))
	}
	return p
}

// end is a target that knows nothing. Where messages are lost its patience is so long as two chunks take that are
// alone.
func (p *pull) end() reserve.Puller {
	b := p.b
	patience := sim.Forever
	if b.Lossy {
		patience = 2 * p.Floor(&b.Plan)
	}
	return *reserve.NewPuller(b.Times,
		reserve.Promise{Ahead: b.Ahead, Mine: b.Copies, Among: b.Candidates * b.GroupSize, Piece: b.Piece,
			Room: b.Room, Patience: patience})
}

// Abandon implements Recovery.
func (p *pull) Abandon(i int32) {
	x := &p.b.Chunks[i]
	p.toAsked(Message{Kind: giveUp, From: x.Gateway, Chunk: i, ID: x.ID})
}

// Restart implements Recovery.
func (p *pull) Restart(target int32) { p.ends[target] = p.end() }

// Begin implements Protocol: a gateway asks targets for room.
func (p *pull) Begin(i int32) {
	b := p.b
	for int(i) >= len(p.puts) {
		p.puts = append(p.puts, pulled{})
	}
	x := &b.Chunks[i]
	p.puts[i] = pulled{id: x.ID}
	DrawGroups(&b.Rand, b.GroupCount(), x.Groups[:b.Candidates])
	p.toAsked(Message{Kind: askRoom, From: x.Gateway, Chunk: i, ID: x.ID, A: b.Now() - x.Begun,
		B: sim.Time(b.pieceOf(i))})
}

// toAsked sends a message from a chunk's gateway to all that it asks: to each group by a multicast of its own, for a
// switch has a rule for each group and none for two.
func (p *pull) toAsked(m Message) {
	for _, g := range p.b.Chunks[m.Chunk].Groups[:p.b.Candidates] {
		if p.among = p.b.GroupOf(g, p.among[:0]); len(p.among) > 0 {
			p.b.toTargets(m, p.among)
		}
	}
}

// Message implements Protocol.
func (p *pull) Message(m *Message) {
	b := p.b
	now := b.Now()
	switch m.Kind {
	case askRoom:
		p.ends[m.To].Ask(reserve.Waiting{ID: m.ID, Tag: m.Chunk, From: m.From, Since: now - m.A,
			Size: units.Bytes(m.B)})
		p.offer(m.To)
	case offer:
		p.offered(m)
	case take:
		x := &b.Chunks[m.Chunk]
		if k := x.Place(m.To); x.ID == m.ID && k >= 0 {
			due := now + m.A
			if !b.Chained() {
				due += b.fromGateway(k, b.pieceOf(m.Chunk))
			}
			p.ends[m.To].Take(reserve.Coming{ID: m.ID, Due: due, Size: b.pieceOf(m.Chunk)})
		} else {
			p.ends[m.To].Forget(m.ID)
		}
		p.offer(m.To)
	case giveUp:
		p.ends[m.To].Forget(m.ID)
		p.ends[m.To].Drop(m.ID)
		p.offer(m.To)
	case stored:
		if b.Chunks[m.Chunk].ID == m.ID {
			b.Outcomes.Acknowledged(m.Chunk)
		}
	}
}

// offer has a target make an offer if it is time, or else look again when it is.
func (p *pull) offer(target int32) {
	b := p.b
	now := b.Now()
	end, backlog, write := &p.ends[target], b.Disks.Backlog(target), b.Disks.WriteTime(target)
	if to, ready, done, ok := end.Offer(now, backlog, write); ok {
		b.toNode(b.Node(target),
			Message{Kind: offer, From: target, To: to.From, Chunk: to.Tag, ID: to.ID, A: ready, B: done}, to.From)
	}
	if in := end.Wake(now, backlog, write); in < sim.Forever {
		b.Arm(p.clock[target], now+in)
	}
}

// refuse has a gateway answer an offer that it has no use for.
func (p *pull) refuse(m *Message) {
	p.b.toTarget(Message{Kind: giveUp, From: m.To, To: m.From, Chunk: m.Chunk, ID: m.ID})
}

// offered: a gateway has an offer for a chunk. It keeps the best. Of those that come while it listens it takes none
// before it has heard all.
func (p *pull) offered(m *Message) {
	b := p.b
	x, s := &b.Chunks[m.Chunk], &p.puts[m.Chunk]
	now := b.Now()
	switch {
	case x.ID != m.ID:
		p.refuse(m) // it has been given up, and the target has not heard that
		return
	case x.N > 0:
		if now > s.bound+2*b.Trip+sim.Time(b.Candidates+1)*b.OnLink() && !x.Keeps(m.From) {
			p.refuse(m) // it has all that it needs, and the target has not heard that
		}
		return
	}
	if slices.ContainsFunc(s.offers[:s.n], func(o offered) bool { return b.SameRack(o.target, m.From) }) {
		p.refuse(m) // one of a rack is enough
		return
	}
	if s.n == 0 && !s.heard {
		// Offers that are made at once come one after the other on the gateway's link.
		b.After(now+b.Listens(), uint32(m.Chunk)|listens)
	}
	o := offered{target: m.From, ready: now + m.A, done: now + m.B}
	k := int(s.n)
	if k < b.Copies {
		s.n++
	} else if k--; o.done >= s.offers[k].done {
		return
	}
	for k > 0 && o.done < s.offers[k-1].done {
		s.offers[k] = s.offers[k-1]
		k--
	}
	s.offers[k] = o
	if s.heard && int(s.n) == b.Copies {
		p.bind(m.Chunk)
	}
}

// listened: a gateway has heard all that could offer themselves at once.
func (p *pull) listened(i int32) {
	x, s := &p.b.Chunks[i], &p.puts[i]
	if x.ID != s.id || x.N > 0 {
		return // the attempt that listened is over
	}
	if s.heard = true; int(s.n) == p.b.Copies {
		p.bind(i)
	}
}

// bind has a gateway take the targets that are done the soonest, and send.
func (p *pull) bind(i int32) {
	b := p.b
	x, s := &b.Chunks[i], &p.puts[i]
	done := s.offers[s.n-1].done
	slices.SortStableFunc(s.offers[:s.n], func(a, b offered) int { return cmp.Compare(a.ready, b.ready) })
	for k, o := range s.offers[:s.n] {
		x.Targets[k] = o.target
	}
	x.N, s.bound = s.n, b.Now()
	free := &p.free[x.Gateway]
	*free = max(*free, s.bound)
	p.toAsked(Message{Kind: take, From: x.Gateway, Chunk: i, ID: x.ID, A: *free - s.bound})
	*free += sim.Time(b.Candidates)*b.OnLink() + b.fromGateway(int(x.N), b.pieceOf(i))
	b.Outcomes.Bound(i, max(done, *free+b.alongChain())-s.bound)
	b.sendOut(i)
}

// Timer implements Protocol: a target may make an offer, or a gateway has listened for long enough.
func (p *pull) Timer(arg uint32) {
	if arg&listens != 0 {
		p.listened(int32(arg &^ listens))
		return
	}
	p.offer(int32(arg))
}

// Frame implements Protocol.
func (p *pull) Frame(f Frame) {
	b, i := p.b, int32(f.Arg)
	x := &b.Chunks[i]
	b.passOn(i, f)
	if p.ends[f.Target].Received(b.Now(), x.ID, f.Size, b.pieceOf(i)) {
		b.Disks.Write(f.Target, Message{Kind: stored, From: f.Target, To: x.Gateway, Chunk: i, ID: x.ID})
		p.offer(f.Target)
	}
}

// Floor implements Forecast: the first group's request, the first offer, for how long a gateway listens, taking in
// all groups, the data's path along the chain, the disk and the acknowledgement.
func (p *pull) Floor(plan *Plan) sim.Time {
	ctl := plan.OnLink()
	return 3*ctl + plan.ahead(sim.Time(plan.Candidates)*ctl) + plan.Listens() + 3*plan.Times.Trip +
		plan.alongChain() + plan.kept()
}

// Expects implements Forecast: what has been taken, and offers.
func (p *pull) Expects(target int32) (promised, open bool) { return p.ends[target].Expects() }

// Ahead implements Ahead.
func (p *pull) Ahead(target int32) int64 { return p.ends[target].Read() }
