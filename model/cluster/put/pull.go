package put

import (
	"cmp"
	"slices"

	"farflash/model/cluster/reserve"
	"farflash/numeric/units"
	"farflash/sim"
)

// Pull is late binding over two groups, a protocol of this project (docs/adr/0006-pull.md).
const Pull Scheme = 4

var receiverPull = Traits{Name: "pull", Finds: FindsBidders, Chosen: byBids, Chained: true, Several: true,
	Offers: true, Queued: true, NoBackPressure: true, Times: reserve.UnicastConfig,
	Messages: []string{askRoom: "request", offer: "offer", take: "take", stored: "ack", giveUp: "cancel"},
	New:      func(b *Bus) Protocol { return newPull(b) }}

// pull is late binding, a protocol of this project; docs/adr/0006-pull.md has the rationale. A gateway sends a request
// to the targets of two groups, one multicast each. Each target remembers it and, when it is about to run out of work,
// sends an offer to the gateway that has waited longest: targets pull chunks as they have capacity. A gateway collects
// offers until all targets with capacity at that time have been heard, and chooses those that will complete soonest; if
// they are too few, it binds when the last missing offer arrives. It then multicasts to each group which targets it
// takes, those with the soonest free links first, and when its own link will have sent the chunks bound before; the
// others learn that they are released. The data follows immediately, from the gateway to the first target, from there
// to the second as it arrives, and so on.
type pull struct {
	b     *Bus
	ends  []reserve.Puller // by target
	clock []sim.Timer      // by target: time of its next offer
	puts  []pulled         // by chunk
	free  []sim.Time       // by gateway: when its link has sent all bound chunks
	among []int32
}

// pulled is a chunk being put.
type pulled struct {
	id     uint64               // of the attempt
	offers [MaxReplicas]offered // the best offers so far, the soonest completion first
	n      int8
	heard  bool     // all targets that had capacity when they were asked have been heard
	bound  sim.Time // when the gateway announced its choice
}

// offered is an offer at its gateway.
type offered struct {
	target int32
	ready  sim.Time // when the target's link is free
	done   sim.Time // when a piece that arrives now would be written
}

// listens flags a timer's argument as a gateway's, with the number of its chunk.
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

// end returns the state of a target without requests. Where messages can be lost, its patience is twice the time of a
// lone chunk.
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

// Begin implements Protocol: the gateway sends requests to the targets.
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

// toAsked sends a message from a chunk's gateway to all targets that it has asked, with one multicast per group:
// switches have a rule for each group and none for a pair of groups.
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
			p.ends[m.To].Take(reserve.Expected{ID: m.ID, Due: due, Size: b.pieceOf(m.Chunk)})
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

// offer has a target make an offer if one is due, and otherwise arms its timer.
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

// refuse has a gateway decline an offer.
func (p *pull) refuse(m *Message) {
	p.b.toTarget(Message{Kind: giveUp, From: m.To, To: m.From, Chunk: m.Chunk, ID: m.ID})
}

// offered handles an offer at its gateway, which keeps the best ones. While the gateway collects offers, it does not
// bind before it has heard them all.
func (p *pull) offered(m *Message) {
	b := p.b
	x, s := &b.Chunks[m.Chunk], &p.puts[m.Chunk]
	now := b.Now()
	switch {
	case x.ID != m.ID:
		p.refuse(m) // the attempt was abandoned, and the target has not learnt it
		return
	case x.N > 0:
		if now > s.bound+2*b.Trip+sim.Time(b.Candidates+1)*b.OnLink() && !x.Keeps(m.From) {
			p.refuse(m) // the chunk is bound, and the target should have learnt it by now
		}
		return
	}
	if slices.ContainsFunc(s.offers[:s.n], func(o offered) bool { return b.SameRack(o.target, m.From) }) {
		p.refuse(m) // one target per rack
		return
	}
	if s.n == 0 && !s.heard {
		// Offers made simultaneously arrive one after the other on the gateway's link.
		b.After(now+b.listens(), uint32(m.Chunk)|listens)
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

// listened handles the end of the collection of offers.
func (p *pull) listened(i int32) {
	x, s := &p.b.Chunks[i], &p.puts[i]
	if x.ID != s.id || x.N > 0 {
		return // the timer belongs to an earlier attempt
	}
	if s.heard = true; int(s.n) == p.b.Copies {
		p.bind(i)
	}
}

// bind has a gateway choose the targets with the soonest completion, and send.
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
	// The link carries an announcement to each group, and the data.
	*free += sim.Time(b.Candidates)*b.OnLink() + b.fromGateway(int(x.N), b.pieceOf(i))
	b.Outcomes.Bound(i, max(done, *free+b.alongChain())-s.bound)
	b.sendOut(i)
}

// Timer implements Protocol: a target may make an offer, or a gateway has collected offers for long enough.
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

// Floor implements Forecast: the first group's request, the first offer, the collection of offers, the messages that
// bind all groups, the data's path along the chain, the disk and the acknowledgement.
func (p *pull) Floor(plan *Plan) sim.Time {
	ctl := plan.OnLink()
	return 3*ctl + plan.ahead(sim.Time(plan.Candidates)*ctl) + plan.listens() + 3*plan.Times.Trip +
		plan.alongChain() + plan.kept()
}

// Expects implements Forecast: pieces of bound chunks, and open offers.
func (p *pull) Expects(target int32) (promised, open bool) { return p.ends[target].Expects() }

// Ahead implements Ahead.
func (p *pull) Ahead(target int32) int64 { return p.ends[target].Read() }
