package put

import (
	"farflash/model/cluster/reserve"
	"farflash/sim"
)

// ReplicastM is Replicast with multicast of control and data (model 7).
const ReplicastM Scheme = 2

var replicastM = Traits{Name: "replicast-m", Number: "7", Build: CompatSURGE, Finds: FindsBidders, Chosen: byBids,
	Multicasts: true, Reserves: true, Gathers: true,
	Times: reserve.DefaultConfig, Messages: replicastMessages, New: func(b *Bus) Protocol { return newReplicast(b) }}

// replicast is Replicast with multicast of control and data (the Replicast paper, sections II-B and IV-E; SURGE's model
// 7). A gateway multicasts a request to the chunk's negotiating group; each target answers with a bid, a window of time
// that it reserves tentatively; the gateway chooses the earliest window that enough bids have in common and multicasts
// its acceptance, which cancels the other bids; at the start of the window it multicasts the data. Without a common
// window the attempt ends, and the gateway asks again when the first window that it was offered begins: if all gateways
// asked again at once, they could livelock without ever finding a common window.
type replicast struct {
	b     *Bus
	bids  []*reserve.Regular // by target
	puts  []negotiation      // by chunk
	picks []reserve.Pick
	group []int32 // scratch: targets of a group
}

// negotiation is a gateway's state of a chunk that it puts.
type negotiation struct {
	multicast
	group  int32
	asked  int
	offers *reserve.Offers
	next   sim.Time // when the next frame is due
}

func newReplicast(b *Bus) *replicast {
	r := &replicast{b: b}
	for range b.Targets {
		r.bids = append(r.bids, reserve.NewRegular(b.Times))
	}
	return r
}

// Begin implements Protocol.
func (r *replicast) Begin(i int32) {
	b := r.b
	for int(i) >= len(r.puts) {
		r.puts = append(r.puts, negotiation{offers: reserve.NewOffers(b.Times)})
	}
	x, s := &b.Chunks[i], &r.puts[i]
	s.offers.Reset()
	*s = negotiation{group: b.chooseGroup(x), offers: s.offers, next: -1}
	x.Groups[0] = s.group
	r.group = b.GroupOf(s.group, r.group[:0])
	b.askOrder(s.group, x.Gateway, r.group)
	s.asked = len(r.group)
	b.toTargets(Message{Kind: askBids, From: x.Gateway, Chunk: i, ID: x.ID}, r.group)
}

// Message implements Protocol.
func (r *replicast) Message(m *Message) {
	b := r.b
	switch m.Kind {
	case askBids:
		b.giveBid(r.bids[m.To], m, m.ID)
	case bid:
		if !b.live(m) {
			return
		}
		o := r.puts[m.Chunk].offers
		o.Add(m.From, reserve.Window{Left: m.A, Right: m.B}, b.ties()) // bids of an idle group arrive simultaneously
		if o.Len() == r.puts[m.Chunk].asked {
			r.choose(m.Chunk)
		}
	case accept:
		r.answered(m)
	case kept:
		if b.live(m) {
			b.Outcomes.Acknowledged(m.Chunk)
		}
	}
}

// answered handles the gateway's answer at a target: the reserved window, or none.
func (r *replicast) answered(m *Message) {
	b, q := r.b, r.bids[m.To]
	b.Tally.Bids.decided(q, b.Now(), m.ID)
	if m.N <= 0 || !b.live(m) || !b.Chunks[m.Chunk].Keeps(m.To) {
		b.dropBid(q, m, m.ID)
		return
	}
	w := reserve.Window{Left: m.A, Right: m.B}
	q.Accept(b.Now(), m.ID, w)
	b.showBid(m.To, m.From, m.ID, reserve.Accepted, w)
}

// choose accepts some of a chunk's bids, which are complete.
func (r *replicast) choose(i int32) {
	b := r.b
	x := &b.Chunks[i]
	var found bool
	r.picks, found = b.Times.Intersect(b.Now(), r.puts[i].offers, b.Copies, r.picks[:0])
	m := Message{Kind: accept, From: x.Gateway, Chunk: i, ID: x.ID}
	if found {
		for k, pick := range r.picks {
			x.Targets[k] = pick.Server
		}
		x.N = int8(len(r.picks))
		m.N, m.A, m.B = int32(len(r.picks)), r.picks[0].Window.Left, r.picks[0].Window.Right
	}
	r.group = b.GroupOf(r.puts[i].group, r.group[:0])
	b.toTargets(m, r.group)
	if !found {
		b.Outcomes.Abort(i, max(r.puts[i].offers.At(0).Window.Left-b.Now(), 0))
		return
	}
	r.puts[i].next = max(m.A, b.Now()+b.OnLink())
	b.After(r.puts[i].next, uint32(i))
}

// Timer implements Protocol: the next frame of a chunk is due.
func (r *replicast) Timer(arg uint32) {
	b, s := r.b, &r.puts[arg]
	if b.Now() != s.next {
		return // of an abandoned attempt
	}
	s.next = -1 // a timer of an abandoned attempt may fire at the same instant as this one
	if takes, more := s.send(b, int32(arg)); more {
		s.next = b.Now() + takes
		b.After(s.next, arg)
	}
}

// Frame implements Protocol.
func (r *replicast) Frame(f Frame) {
	b := r.b
	if !r.puts[f.Arg].whole(b, f) {
		return
	}
	x := &b.Chunks[f.Arg]
	if r.bids[f.Target].Done(x.ID) {
		b.showDone(f.Target, x)
	}
	b.Disks.Write(f.Target, Message{Kind: kept, From: f.Target, To: x.Gateway, Chunk: int32(f.Arg), ID: x.ID})
}

// Abandon implements Recovery.
func (r *replicast) Abandon(i int32) {
	x, s := &r.b.Chunks[i], &r.puts[i]
	s.next = -1
	r.group = r.b.GroupOf(s.group, r.group[:0])
	r.b.cancel(Message{Kind: accept, From: x.Gateway, Chunk: i, ID: x.ID}, r.group)
}

// Restart implements Recovery.
func (r *replicast) Restart(target int32) { r.bids[target] = reserve.NewRegular(r.b.Times) }

// Floor implements Forecast: request, bid, the earliest window after it, the data, the disk and the acknowledgement.
func (r *replicast) Floor(p *Plan) sim.Time {
	d, ctl := p.Times, p.OnLink()
	return ctl + d.Trip + 2*d.Control + d.Trip + d.Lead + p.dataTime() + d.Trip + p.kept() + ctl + d.Trip
}

// Expects implements Forecast: an accepted or a tentative bid.
func (r *replicast) Expects(target int32) (promised, open bool) { return r.bids[target].Expects() }
