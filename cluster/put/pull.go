package put

import (
	"farflash/cluster/internal/queue"
	"farflash/cluster/reserve"
	"farflash/sim"
	"farflash/units"
)

// Pull is receiver pull with late binding over two groups, our own (docs/adr/0006-pull.md).
const Pull Scheme = 4

var receiverPull = Traits{Name: "pull", Finds: FindsBidders, Chosen: byBids, Chained: true, Several: true, Offers: true, Queued: true, Heedless: true, Times: reserve.UnicastConfig,
	Messages: []string{askRoom: "request", offer: "offer", take: "take", pullNow: "pull", stored: "ack", giveUp: "cancel"}, New: func(b *Bus) Protocol { return newPull(b) }}

// pull is receiver pull with late binding, our own protocol; docs/adr/0006-pull.md says why it is as it is. A gateway asks the targets of two
// groups by one multicast. Each remembers it and offers itself when it runs out of work, to who has waited longest. With as many offers as
// replicas the gateway binds: it tells both groups which targets it takes, those that are free the soonest first, and which it leaves. The
// data goes from the gateway to the first, from there to the second as it comes in, and so on, each hop when the next one
// pulls.
type pull struct {
	b     *Bus
	ends  []*reserve.Puller // of targets
	clock []sim.Timer       // of targets: when they may make their next offer
	puts  []pulled          // by chunk
	among []int32
	doors []door // of gateways, where they admit so many chunks at a time
}

// door is a gateway's admission: chunks that it asks targets for or has not sent the last byte of count, others wait.
type door struct {
	inside  int
	waiting queue.Queue[waits]
}

// waits is an attempt at a chunk that no target has been asked for.
type waits struct {
	chunk int32
	id    uint64
}

// pulled is a chunk that is put.
type pulled struct {
	offers [MaxReplicas]offered // in the order of readiness
	n      int8
	inside bool             // it counts at its gateway's door
	asked  bool             // targets know of it
	hops   [MaxReplicas]hop // the last is the one to the last target
}

// offered is an offer that a gateway has.
type offered struct {
	target int32
	ready  sim.Time // when its link is free
}

// hop is the link from one node of a chain to the next.
type hop struct {
	wanted bool        // the next one has pulled
	have   units.Bytes // at the node that sends
	sent   units.Bytes
}

// Kinds of control messages of pull.
const (
	askRoom uint8 = iota
	offer
	take
	pullNow
	stored
	giveUp
)

func newPull(b *Bus) *pull {
	p := &pull{b: b, doors: make([]door, b.Gateways)}
	for t := range b.Targets {
		p.ends = append(p.ends, p.end())
		p.clock = append(p.clock, b.NewTimer(uint32(t)))
	}
	return p
}

// end is a target that knows nothing. Where messages are lost it keeps an offer open for so long as two chunks take that are alone.
func (p *pull) end() *reserve.Puller {
	patience := sim.Forever
	if p.b.Lossy {
		patience = 2 * p.Floor()
	}
	return reserve.NewPuller(p.b.Times, p.b.Ahead, patience)
}

// Abandon implements Recovery.
func (p *pull) Abandon(i int32) {
	x := &p.b.Chunks[i]
	if p.leaves(i); !p.puts[i].asked {
		return // it waits at the door
	}
	p.b.cancel(Message{Kind: giveUp, From: x.Gateway, Chunk: i, ID: x.ID}, p.asked(x))
}

// Restart implements Recovery.
func (p *pull) Restart(target int32) { p.ends[target] = p.end() }

// Begin implements Protocol.
func (p *pull) Begin(i int32) {
	b := p.b
	for int(i) >= len(p.puts) {
		p.puts = append(p.puts, pulled{})
	}
	x, s := &b.Chunks[i], &p.puts[i]
	*s = pulled{}
	if b.Admit > 0 {
		d := &p.doors[x.Gateway]
		if d.inside >= b.Admit {
			d.waiting.Push(waits{i, x.ID})
			return
		}
		d.inside++
		s.inside = true
	}
	p.ask(i)
}

// leaves: a chunk does not count at its gateway's door any more, and the next one that waits there is let in.
func (p *pull) leaves(i int32) {
	b := p.b
	if !p.puts[i].inside {
		return
	}
	p.puts[i].inside = false
	d := &p.doors[b.Chunks[i].Gateway]
	for d.inside--; d.inside < b.Admit && !d.waiting.Empty(); {
		if w := d.waiting.Pop(); b.Chunks[w.chunk].ID == w.id { // not given up meanwhile
			d.inside++
			p.puts[w.chunk].inside = true
			p.ask(w.chunk)
		}
	}
}

// ask has a gateway ask targets for room.
func (p *pull) ask(i int32) {
	b := p.b
	x := &b.Chunks[i]
	p.puts[i].asked = true
	DrawGroups(&b.Rand, b.GroupCount(), x.Groups[:b.Candidates])
	p.toAsked(Message{Kind: askRoom, From: x.Gateway, Chunk: i, ID: x.ID, A: b.Now() - x.Begun})
}

// asked are the targets that a chunk asks.
func (p *pull) asked(x *Chunk) []int32 {
	p.among = p.among[:0]
	for _, g := range x.Groups[:p.b.Candidates] {
		p.among = p.b.GroupOf(g, p.among)
	}
	return p.among
}

// toAsked sends a message from a chunk's gateway to all that it asks.
func (p *pull) toAsked(m Message) {
	if to := p.asked(&p.b.Chunks[m.Chunk]); len(to) > 0 {
		p.b.toTargets(m, to)
	}
}

// Message implements Protocol.
func (p *pull) Message(m *Message) {
	b := p.b
	now := b.Now()
	switch m.Kind {
	case askRoom:
		p.ends[m.To].Ask(reserve.Waiting{ID: m.ID, Tag: m.Chunk, From: m.From, Since: now - m.A})
		p.offer(m.To)
	case offer:
		p.offered(m)
	case take:
		x := &b.Chunks[m.Chunk]
		if k := x.Place(m.To); x.ID == m.ID && k >= 0 {
			p.ends[m.To].Take(reserve.Coming{ID: m.ID, Tag: m.Chunk, From: p.before(x, k), Place: int8(k), Left: b.Piece})
			p.pull(m.To)
		} else {
			p.ends[m.To].Forget(m.ID)
		}
		p.offer(m.To)
	case pullNow:
		if b.Chunks[m.Chunk].ID != m.ID {
			return
		}
		p.puts[m.Chunk].hops[m.N].wanted = true
		p.send(m.Chunk, int(m.N))
	case giveUp:
		p.ends[m.To].Forget(m.ID)
		p.ends[m.To].Drop(m.ID)
		p.pull(m.To)
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
	end, backlog, write := p.ends[target], b.Disks.Backlog(target), b.Disks.WriteTime(target)
	if to, ready, ok := end.Offer(now, backlog, write); ok {
		b.toNode(b.Node(target), Message{Kind: offer, From: target, Chunk: to.Tag, ID: to.ID, A: ready}, to.From)
	}
	if in := end.Wake(now, backlog, write); in < sim.Forever {
		b.Arm(p.clock[target], now+in)
	}
}

// one is a list of one target, until the next call.
func (p *pull) one(target int32) []int32 {
	p.among = append(p.among[:0], target)
	return p.among
}

// offered: a gateway has an offer for a chunk. With the last that it needs it binds.
func (p *pull) offered(m *Message) {
	b := p.b
	x, s := &b.Chunks[m.Chunk], &p.puts[m.Chunk]
	if x.ID != m.ID || x.N > 0 {
		return // it has all that it needs, and has said so
	}
	for _, o := range s.offers[:s.n] { // one of a rack is enough
		if b.SameRack(o.target, m.From) {
			b.cancel(Message{Kind: giveUp, From: x.Gateway, Chunk: m.Chunk, ID: x.ID}, p.one(m.From))
			return
		}
	}
	o := offered{m.From, b.Now() + m.A}
	k := int(s.n)
	for k > 0 && o.ready < s.offers[k-1].ready {
		s.offers[k] = s.offers[k-1]
		k--
	}
	s.offers[k] = o
	if s.n++; int(s.n) < b.Copies {
		return
	}
	for k := range s.offers[:s.n] {
		x.Targets[k] = s.offers[k].target
	}
	x.N = s.n
	for k := range s.hops[:x.N] {
		if k == 0 || !b.Chained() {
			s.hops[k].have = b.Piece
		}
	}
	p.toAsked(Message{Kind: take, From: x.Gateway, Chunk: m.Chunk, ID: x.ID})
}

// pull has a target tell who sends to it that it may.
func (p *pull) pull(target int32) {
	b := p.b
	for {
		x, ok := p.ends[target].Pull()
		if !ok {
			return
		}
		b.toNode(b.Node(target), Message{Kind: pullNow, From: target, Chunk: x.Tag, ID: x.ID, N: int32(x.Place)}, x.From)
	}
}

// before is the node that sends to the k-th target of a chunk: the target before it, or the gateway, which sends to all if their pieces differ.
func (p *pull) before(x *Chunk, k int) int32 {
	if k == 0 || !p.b.Chained() {
		return x.Gateway
	}
	return p.b.Node(x.Targets[k-1])
}

// send sends what a hop has and may send.
func (p *pull) send(i int32, k int) {
	b := p.b
	x, h := &b.Chunks[i], &p.puts[i].hops[k]
	if !h.wanted {
		return
	}
	from := p.before(x, k)
	for h.sent < h.have {
		size := min(b.Frame, h.have-h.sent)
		h.sent += size
		b.send(from, i, size, b.Node(x.Targets[k]))
	}
	if p.puts[i].inside && p.sentAll(i) {
		p.leaves(i)
	}
}

// sentAll reports whether a chunk's gateway has handed all of it to its link.
func (p *pull) sentAll(i int32) bool {
	b, s := p.b, &p.puts[i]
	for k := range s.hops[:b.Chunks[i].N] {
		if (k == 0 || !b.Chained()) && s.hops[k].sent < b.Piece {
			return false
		}
	}
	return true
}

// Timer implements Protocol: a target may make an offer.
func (p *pull) Timer(arg uint32) { p.offer(int32(arg)) }

// Frame implements Protocol.
func (p *pull) Frame(f Frame) {
	b := p.b
	i := int32(f.Arg)
	x := &b.Chunks[i]
	k := x.Place(f.Target)
	if k+1 < b.Copies && b.Chained() {
		p.puts[i].hops[k+1].have += f.Size
		p.send(i, k+1)
	}
	if p.ends[f.Target].Received(x.ID, f.Size) {
		b.Disks.Write(f.Target, Message{Kind: stored, From: f.Target, To: x.Gateway, Chunk: i, ID: x.ID})
	}
	p.pull(f.Target)
	p.offer(f.Target)
}

// Floor implements Forecast: request, offer, taking, pulling, the data's path along the chain, the disk and the acknowledgement.
func (p *pull) Floor() sim.Time {
	b, d := p.b, p.b.Times
	return 5*(b.OnLink()+d.Trip) + b.alongChain() + b.kept()
}

// Expects implements Forecast: what has been taken, and offers.
func (p *pull) Expects(target int32) (promised, open bool) { return p.ends[target].Expects() }
