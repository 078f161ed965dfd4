package put

import (
	"farflash/cluster/reserve"
	"farflash/sim"
)

// ReplicastM is Replicast with multicast of control and data (model 7).
const ReplicastM Scheme = 2

var replicastM = Traits{Name: "replicast-m", Number: "7", Build: CompatSURGE, Finds: FindsBidders, Chosen: byBids, Multicasts: true, Reserves: true, Gathers: true,
	Times: reserve.DefaultConfig, Messages: replicastMessages, New: func(b *Bus) Protocol { return newReplicast(b) }}

// replicast is Replicast with multicast of control and data (the Replicast paper, sections II-B and IV-E; SURGE's model 7). A
// gateway multicasts a request to the chunk's negotiating group; each target of it answers with a bid, a window of time that it
// keeps; the gateway takes the earliest window that enough bids have in common and multicasts its acceptance, which cancels the others; at the
// window's beginning it multicasts the data. Without a common window the chunk is given up, and the gateway begins another.
type replicast struct {
	b     *Bus
	bids  []*reserve.Regular // of targets
	puts  []negotiation      // by chunk
	picks []reserve.Pick
	group []int32 // targets of a group, for sending
}

// negotiation is what a gateway knows of a chunk that it puts.
type negotiation struct {
	multicast
	group  int32
	asked  int
	offers *reserve.Offers
	next   sim.Time // when a frame may be sent
}

func newReplicast(b *Bus) *replicast {
	p := &replicast{b: b}
	for range b.Targets {
		p.bids = append(p.bids, reserve.NewRegular(b.Times))
	}
	return p
}

// Begin implements Protocol.
func (p *replicast) Begin(i int32) {
	b := p.b
	for int(i) >= len(p.puts) {
		p.puts = append(p.puts, negotiation{offers: reserve.NewOffers(b.Times)})
	}
	x, s := &b.Chunks[i], &p.puts[i]
	s.offers.Reset()
	*s = negotiation{group: b.chooseGroup(x), offers: s.offers, next: -1}
	x.Groups[0] = s.group
	p.group = b.GroupOf(s.group, p.group[:0])
	b.askOrder(s.group, x.Gateway, p.group)
	s.asked = len(p.group)
	b.toTargets(Message{Kind: askBids, From: x.Gateway, Chunk: i, ID: x.ID}, p.group)
}

// Message implements Protocol.
func (p *replicast) Message(m *Message) {
	b := p.b
	switch m.Kind {
	case askBids:
		b.giveBid(p.bids[m.To], m, m.ID)
	case bid:
		if !b.live(m) {
			return
		}
		o := p.puts[m.Chunk].offers
		o.Add(m.From, reserve.Window{Left: m.A, Right: m.B}, b.ties()) // bids of an idle group come at the same time
		if o.Len() == p.puts[m.Chunk].asked {
			p.choose(m.Chunk)
		}
	case accept:
		p.answered(m)
	case kept:
		if b.live(m) {
			b.Outcomes.Acknowledged(m.Chunk)
		}
	}
}

// answered has a target hear which window its gateway takes, if any.
func (p *replicast) answered(m *Message) {
	b, q := p.b, p.bids[m.To]
	b.Tally.Bids.decided(q, b.Now(), m.ID)
	if m.N <= 0 || !b.live(m) || !b.Chunks[m.Chunk].Keeps(m.To) {
		b.dropBid(q, m, m.ID)
		return
	}
	w := reserve.Window{Left: m.A, Right: m.B}
	q.Accept(b.Now(), m.ID, w)
	b.showBid(m.To, m.From, m.ID, reserve.Accepted, w)
}

// choose takes from a chunk's bids, which are all there.
func (p *replicast) choose(i int32) {
	b := p.b
	x := &b.Chunks[i]
	var found bool
	p.picks, found = b.Times.Intersect(b.Now(), p.puts[i].offers, b.Copies, p.picks[:0])
	m := Message{Kind: accept, From: x.Gateway, Chunk: i, ID: x.ID}
	if found {
		for k, pick := range p.picks {
			x.Targets[k] = pick.Server
		}
		x.N = int8(len(p.picks))
		m.N, m.A, m.B = int32(len(p.picks)), p.picks[0].Window.Left, p.picks[0].Window.Right
	}
	p.group = b.GroupOf(p.puts[i].group, p.group[:0])
	b.toTargets(m, p.group)
	if !found {
		b.Outcomes.Abort(i)
		return
	}
	p.puts[i].next = max(m.A, b.Now()+b.OnLink())
	b.After(p.puts[i].next, uint32(i))
}

// Timer implements Protocol: the next frame of a chunk may be sent.
func (p *replicast) Timer(arg uint32) {
	b, s := p.b, &p.puts[arg]
	if b.Now() != s.next {
		return // of an attempt that was given up
	}
	if takes, more := s.send(b, int32(arg)); more {
		s.next = b.Now() + takes
		b.After(s.next, arg)
	}
}

// Frame implements Protocol.
func (p *replicast) Frame(f Frame) {
	b := p.b
	if !p.puts[f.Arg].whole(b, f) {
		return
	}
	x := &b.Chunks[f.Arg]
	if p.bids[f.Target].Done(x.ID) {
		b.showDone(f.Target, x)
	}
	b.Disks.Write(f.Target, Message{Kind: kept, From: f.Target, To: x.Gateway, Chunk: int32(f.Arg), ID: x.ID})
}

// Abandon implements Recovery.
func (p *replicast) Abandon(i int32) {
	x, s := &p.b.Chunks[i], &p.puts[i]
	s.next = -1
	p.group = p.b.GroupOf(s.group, p.group[:0])
	p.b.cancel(Message{Kind: accept, From: x.Gateway, Chunk: i, ID: x.ID}, p.group)
}

// Restart implements Recovery.
func (p *replicast) Restart(target int32) { p.bids[target] = reserve.NewRegular(p.b.Times) }

// Floor implements Forecast: request, bid, the earliest window after it, the data, the disk and the acknowledgement.
func (p *replicast) Floor() sim.Time {
	b, d := p.b, p.b.Times
	ctl := b.OnLink()
	return ctl + d.Trip + 2*d.Control + d.Trip + d.Lead + b.dataTime() + d.Trip + b.kept() + ctl + d.Trip
}

// Expects implements Forecast: a bid that is accepted, or tentative.
func (p *replicast) Expects(target int32) (promised, open bool) { return p.bids[target].Expects() }
