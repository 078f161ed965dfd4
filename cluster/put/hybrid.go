package put

import (
	"farflash/cluster/internal/slab"
	"farflash/cluster/reserve"
	"farflash/sim"
	"farflash/units"
)

// ReplicastH is Replicast with multicast control and unicast data (model 8).
const ReplicastH Scheme = 3

var replicastH = Traits{Name: "replicast-h", Number: "8", Build: CompatSURGE, Finds: FindsBidders, Chosen: byBids, Sequential: true, Reserves: true, Gathers: true,
	Times: reserve.HybridConfig, Messages: replicastMessages, New: func(b *Bus) Protocol { return newHybrid(b) }}

// hybrid is Replicast with multicast control and unicast data (the Replicast paper, sections III-F and IV-D; SURGE's model 8).
// A gateway takes bids whose windows follow each other, sends to one target after another, and asks again for what is
// missing.
type hybrid struct {
	b     *Bus
	bids  []*reserve.Sparse // of targets
	puts  []sequel          // by chunk
	flows slab.Slab[delivery]
	picks []reserve.Pick
	group []int32
	to    [1]int32
	idle  [][]*reserve.Choosy // of gateways: choices that no chunk uses
}

// sequel is what a gateway knows of a chunk that it puts.
type sequel struct {
	group     int32
	offers    *reserve.Offers
	order     *reserve.Choosy
	notBefore sim.Time
	again     sim.Time             // when it asks for what is missing
	control   sim.Time             // until when its last control message is on the link
	asked     int                  // of how many targets
	round     int32                // how often bids were asked for
	booked    [MaxReplicas]booking // by place
	before    int8                 // replicas that were chosen before the last choice
}

// booking is a window that a gateway has taken.
type booking struct {
	flow  int32 // -1 when it has arrived as a whole
	right sim.Time
}

// delivery is a replica on its way.
type delivery struct {
	chunk     int32
	target    int32
	sent, got units.Bytes
	dead      bool // given up; its timer still runs
}

func newHybrid(b *Bus) *hybrid {
	p := &hybrid{b: b, idle: make([][]*reserve.Choosy, b.Gateways)}
	for range b.Targets {
		p.bids = append(p.bids, reserve.NewSparse(b.Times))
	}
	return p
}

// Begin implements Protocol.
func (p *hybrid) Begin(i int32) {
	b := p.b
	for int(i) >= len(p.puts) {
		p.puts = append(p.puts, sequel{offers: reserve.NewOffers(b.Times)})
	}
	s := &p.puts[i]
	s.group, s.notBefore = b.chooseGroup(&b.Chunks[i]), b.Now()
	s.order = p.orderOf(b.Chunks[i].Gateway)
	b.Chunks[i].Groups[0] = s.group
	s.order.Start()
	p.ask(i)
}

// ask requests bids of all of the group that have no replica yet.
func (p *hybrid) ask(i int32) {
	b := p.b
	x, s := &b.Chunks[i], &p.puts[i]
	s.offers.Reset()
	s.round++
	s.again = sim.Forever
	p.group = p.others(x, s.group)
	b.askOrder(s.group, x.Gateway, p.group)
	s.asked = len(p.group)
	s.control = b.Now() + b.OnLink()
	b.toTargets(Message{Kind: askBids, From: x.Gateway, Chunk: i, ID: x.ID, A: s.notBefore, N: s.round}, p.group)
}

// others are the targets of a chunk's group that have not been chosen.
func (p *hybrid) others(x *Chunk, group int32) []int32 {
	list := p.b.GroupOf(group, p.group[:0])
	kept := list[:0]
	for _, t := range list {
		if !x.Keeps(t) {
			kept = append(kept, t)
		}
	}
	return kept
}

// Message implements Protocol.
func (p *hybrid) Message(m *Message) {
	b := p.b
	now := b.Now()
	switch m.Kind {
	case askBids:
		b.giveBid(p.bids[m.To], m, m.key())
	case bid:
		s := &p.puts[m.Chunk]
		if m.N != s.round || m.ID != b.Chunks[m.Chunk].ID {
			return // it has been given up, or a late rejection has made the gateway ask again
		}
		s.offers.Add(m.From, reserve.Window{Left: m.A, Right: m.B}, b.ties()) // bids of an idle group come at the same time
		if s.offers.Len() == s.asked {
			p.choose(m.Chunk)
		}
	case accept:
		b.Tally.Bids.decided(p.bids[m.To], now, m.key())
		if m.A >= m.B || m.N != m.To {
			b.dropBid(p.bids[m.To], m, m.key())
			return
		}
		w := reserve.Window{Left: m.A, Right: m.B}
		p.bids[m.To].Accept(now, m.key(), w)
		b.showBid(m.To, m.From, m.ID, reserve.Accepted, w)
	case kept:
		x := &b.Chunks[m.Chunk]
		if x.ID != m.ID {
			return
		}
		if int(x.Acked)+1 == b.Copies {
			p.putBack(m.Chunk) // before the gateway takes its next chunk
		}
		b.Outcomes.Acknowledged(m.Chunk)
	}
}

// choose takes from a chunk's bids, which are all there, and begins to send.
func (p *hybrid) choose(i int32) {
	b := p.b
	now := b.Now()
	x, s := &b.Chunks[i], &p.puts[i]
	p.group = p.others(x, s.group)
	p.picks = p.picksOf(s, b.Copies-int(x.N))
	s.before = x.N
	if b.Compat != CompatNone {
		for k := range s.offers.Len() {
			o := s.offers.At(k)
			p.bids[o.Server].Foresee(key(x.ID, i), o.Window)
		}
	}
	s.control = now + b.OnLink()
	b.Messages.Accept(Message{Kind: accept, From: x.Gateway, Chunk: i, ID: x.ID}, p.group, p.picks)
	for _, pick := range p.picks {
		x.Targets[x.N] = pick.Server
		n := p.flows.Take()
		p.flows.Items[n] = delivery{chunk: i, target: pick.Server}
		s.booked[x.N] = booking{n, pick.Window.Right}
		x.N++
		b.After(max(pick.Window.Left, s.control), uint32(n)<<1)
	}
	if int(x.N) < b.Copies {
		at, notBefore := p.more(s)
		p.askAt(i, at, notBefore)
	}
}

// Timer implements Protocol: the next frame of a flow may be sent, or it is time to ask for more.
func (p *hybrid) Timer(arg uint32) {
	b := p.b
	if arg&1 != 0 {
		if i := int32(arg >> 1); p.puts[i].again == b.Now() {
			p.ask(i)
		}
		return
	}
	f := &p.flows.Items[arg>>1]
	if f.dead {
		p.flows.Give(int32(arg >> 1))
		return
	}
	if until := p.puts[f.chunk].control; until > b.Now() {
		b.After(until, arg)
		return
	}
	size := min(b.Frame, b.Piece-f.sent)
	takes := b.Times.Send(size, b.Times.DataRate)
	p.to[0] = f.target
	b.sendPaced(f.chunk, arg>>1, size, takes, p.to[:])
	if f.sent += size; f.sent < b.Piece {
		b.After(b.Now()+takes, arg)
	}
}

// Abandon implements Recovery.
func (p *hybrid) Abandon(i int32) {
	b := p.b
	x, s := &b.Chunks[i], &p.puts[i]
	s.again = sim.Forever
	p.putBack(i)
	for k := range x.N {
		n := s.booked[k].flow
		switch {
		case n < 0: // it has arrived, and its number may be another's
		case p.flows.Items[n].sent < b.Piece:
			p.flows.Items[n].dead = true
		default:
			p.flows.Give(n)
		}
	}
	p.group = b.GroupOf(s.group, p.group[:0])
	b.cancel(Message{Kind: accept, From: x.Gateway, Chunk: i, ID: x.ID, N: -1}, p.group)
}

// Restart implements Recovery.
func (p *hybrid) Restart(target int32) { p.bids[target] = reserve.NewSparse(p.b.Times) }

// Frame implements Protocol.
func (p *hybrid) Frame(f Frame) {
	b, n := p.b, int32(f.Arg)
	d := &p.flows.Items[n]
	if d.got += f.Size; d.got < b.Piece {
		return
	}
	x := &b.Chunks[d.chunk]
	if p.bids[f.Target].Done(key(x.ID, d.chunk)) {
		b.showDone(f.Target, x)
	}
	b.Disks.Write(f.Target, Message{Kind: kept, From: f.Target, To: x.Gateway, Chunk: d.chunk, ID: x.ID})
	p.flows.Give(n)
	p.puts[d.chunk].booked[x.Place(f.Target)].flow = -1
}

// key is what a target's queue knows a chunk by: its id and its place, so that the place can be said to who has lost its window.
func key(id uint64, chunk int32) uint64 { return id<<placeBits | uint64(chunk) }

// placeBits are those of a chunk's place: 2^20 gateways with 2^10 chunks each.
const placeBits = 30

// key is that of the chunk that a message is about.
func (m *Message) key() uint64 { return key(m.ID, m.Chunk) }

// orderOf takes a gateway's choice that no other of its chunks uses.
func (p *hybrid) orderOf(gateway int32) *reserve.Choosy {
	list := p.idle[gateway]
	if k := len(list) - 1; k >= 0 {
		p.idle[gateway] = list[:k]
		return list[k]
	}
	return reserve.NewChoosy(p.b.Times)
}

// putBack has a gateway keep a chunk's choice for its next one.
func (p *hybrid) putBack(i int32) {
	g := p.b.Chunks[i].Gateway
	p.idle[g] = append(p.idle[g], p.puts[i].order)
}

// picksOf takes windows of a chunk's bids.
func (p *hybrid) picksOf(s *sequel, missing int) []reserve.Pick {
	now := p.b.Now()
	if !p.b.Choosy {
		return s.order.Sequence.Choose(now, s.offers, missing, p.picks[:0])
	}
	patience := s.order.Patience()
	picks := s.order.Choose(now, s.offers, missing, p.picks[:0])
	if s.order.Patience() > patience {
		p.b.Tally.Impatient++
	}
	return picks
}

// more says when to ask for what is missing after a choice.
func (p *hybrid) more(s *sequel) (at, notBefore sim.Time) {
	if p.b.Choosy {
		return s.order.More(p.b.Now(), p.picks)
	}
	return s.order.Sequence.More(p.b.Now(), p.picks)
}

// askAt asks for more bids of a chunk at a time, and not before unless asked again.
func (p *hybrid) askAt(i int32, at, notBefore sim.Time) {
	s := &p.puts[i]
	s.notBefore, s.again = notBefore, max(at, p.b.Now())
	p.b.After(s.again, uint32(i)<<1|1)
}

// Floor implements Forecast: as Replicast's for the first replica; the others, alone, are asked for again and again.
func (p *hybrid) Floor() sim.Time {
	b, d := p.b, p.b.Times
	ctl := b.OnLink()
	first := ctl + d.Trip + 2*d.Control + d.Trip + d.Lead
	return first + sim.Time(b.Copies)*b.dataTime() + d.Trip + b.kept() + ctl + d.Trip
}

// Expects implements Forecast: a bid that is accepted, or tentative.
func (p *hybrid) Expects(target int32) (promised, open bool) { return p.bids[target].Expects() }
