package put

import (
	"farflash/model/cluster/internal/slab"
	"farflash/model/cluster/reserve"
	"farflash/numeric/units"
	"farflash/sim"
)

// ReplicastH is Replicast with multicast control and unicast data (model 8).
const ReplicastH Scheme = 3

var replicastH = Traits{Name: "replicast-h", Number: "8", Build: CompatSURGE, Finds: FindsBidders, Chosen: byBids,
	Sequential: true, Reserves: true, Gathers: true,
	Times: reserve.HybridConfig, Messages: replicastMessages, New: func(b *Bus) Protocol { return newHybrid(b) }}

// hybrid is Replicast with multicast control and unicast data (the Replicast paper, sections III-F and IV-D; SURGE's
// model 8). A gateway accepts bids with consecutive windows, sends to one target after another, and asks again for the
// replicas that are missing.
type hybrid struct {
	b     *Bus
	bids  []*reserve.Sparse // by target
	puts  []sequel          // by chunk
	flows slab.Slab[delivery]
	picks []reserve.Pick
	group []int32
	to    [1]int32
	idle  [][]*reserve.Choosy // by gateway: free instances
}

// sequel is a gateway's state of a chunk that it puts.
type sequel struct {
	group     int32
	offers    *reserve.Offers
	order     *reserve.Choosy
	notBefore sim.Time
	again     sim.Time             // when it asks for the missing replicas
	control   sim.Time             // when its last control message has left the link
	asked     int                  // number of targets asked
	round     int32                // number of requests for bids so far
	booked    [MaxReplicas]booking // by index of the target in the chunk
	before    int8                 // number of replicas chosen before the last choice
}

// booking is a reserved window.
type booking struct {
	flow  int32 // -1 when the replica has arrived in full
	right sim.Time
}

// delivery is a replica in flight.
type delivery struct {
	chunk     int32
	target    int32
	sent, got units.Bytes
	dead      bool // abandoned; its timer is still set
}

func newHybrid(b *Bus) *hybrid {
	h := &hybrid{b: b, idle: make([][]*reserve.Choosy, b.Gateways)}
	for range b.Targets {
		h.bids = append(h.bids, reserve.NewSparse(b.Times))
	}
	return h
}

// Begin implements Protocol.
func (h *hybrid) Begin(i int32) {
	b := h.b
	for int(i) >= len(h.puts) {
		h.puts = append(h.puts, sequel{offers: reserve.NewOffers(b.Times)})
	}
	s := &h.puts[i]
	s.group, s.notBefore = b.chooseGroup(&b.Chunks[i]), b.Now()
	s.order = h.orderOf(b.Chunks[i].Gateway)
	b.Chunks[i].Groups[0] = s.group
	s.order.Start()
	h.ask(i)
}

// ask requests bids from all targets of the group that have no replica yet.
func (h *hybrid) ask(i int32) {
	b := h.b
	x, s := &b.Chunks[i], &h.puts[i]
	s.offers.Reset()
	s.round++
	s.again = sim.Forever
	h.group = h.others(x, s.group)
	b.askOrder(s.group, x.Gateway, h.group)
	s.asked = len(h.group)
	s.control = b.Now() + b.OnLink()
	b.toTargets(Message{Kind: askBids, From: x.Gateway, Chunk: i, ID: x.ID, A: s.notBefore, N: s.round}, h.group)
}

// others returns the targets of a chunk's group that have not been chosen.
func (h *hybrid) others(x *Chunk, group int32) []int32 {
	list := h.b.GroupOf(group, h.group[:0])
	kept := list[:0]
	for _, t := range list {
		if !x.Keeps(t) {
			kept = append(kept, t)
		}
	}
	return kept
}

// Message implements Protocol.
func (h *hybrid) Message(m *Message) {
	b := h.b
	now := b.Now()
	switch m.Kind {
	case askBids:
		b.giveBid(h.bids[m.To], m, m.key())
	case bid:
		s := &h.puts[m.Chunk]
		if m.N != s.round || m.ID != b.Chunks[m.Chunk].ID {
			return // the attempt was abandoned, or a late rejection has made the gateway ask again
		}
		// Bids of an idle group arrive simultaneously.
		s.offers.Add(m.From, reserve.Window{Left: m.A, Right: m.B}, b.ties())
		if s.offers.Len() == s.asked {
			h.choose(m.Chunk)
		}
	case accept:
		b.Tally.Bids.decided(h.bids[m.To], now, m.key())
		if m.A >= m.B || m.N != m.To {
			b.dropBid(h.bids[m.To], m, m.key())
			return
		}
		w := reserve.Window{Left: m.A, Right: m.B}
		h.bids[m.To].Accept(now, m.key(), w)
		b.showBid(m.To, m.From, m.ID, reserve.Accepted, w)
	case kept:
		x := &b.Chunks[m.Chunk]
		if x.ID != m.ID {
			return
		}
		if int(x.Acked)+1 == b.Copies {
			h.putBack(m.Chunk) // before the gateway takes its next chunk
		}
		b.Outcomes.Acknowledged(m.Chunk)
	}
}

// choose accepts some of a chunk's bids, which are complete, and starts to send.
func (h *hybrid) choose(i int32) {
	b := h.b
	now := b.Now()
	x, s := &b.Chunks[i], &h.puts[i]
	h.group = h.others(x, s.group)
	h.picks = h.picksOf(s, b.Copies-int(x.N))
	s.before = x.N
	if b.Compat != CompatNone {
		// In SURGE, gateway and target share the bid objects (Compat.sharesBids in package reserve).
		for k := range s.offers.Len() {
			o := s.offers.At(k)
			h.bids[o.Server].Foresee(key(x.ID, i), o.Window)
		}
	}
	s.control = now + b.OnLink()
	b.Messages.Accept(Message{Kind: accept, From: x.Gateway, Chunk: i, ID: x.ID}, h.group, h.picks)
	for _, pick := range h.picks {
		x.Targets[x.N] = pick.Server
		n := h.flows.Take()
		h.flows.Items[n] = delivery{chunk: i, target: pick.Server}
		s.booked[x.N] = booking{n, pick.Window.Right}
		x.N++
		b.After(max(pick.Window.Left, s.control), uint32(n)<<1)
	}
	if int(x.N) < b.Copies {
		at, notBefore := h.more(s)
		h.askAt(i, at, notBefore)
	}
}

// Timer implements Protocol: the next frame of a flow is due, or it is time to ask for more bids.
func (h *hybrid) Timer(arg uint32) {
	b := h.b
	// The low bit distinguishes a chunk that asks for bids from a flow.
	if arg&1 != 0 {
		if i := int32(arg >> 1); h.puts[i].again == b.Now() {
			h.ask(i)
		}
		return
	}
	f := &h.flows.Items[arg>>1]
	if f.dead {
		h.flows.Give(int32(arg >> 1))
		return
	}
	if until := h.puts[f.chunk].control; until > b.Now() {
		b.After(until, arg)
		return
	}
	piece := b.pieceOf(f.chunk)
	size := min(b.Frame, piece-f.sent)
	takes := b.Times.Send(size, b.Times.DataRate)
	h.to[0] = f.target
	b.sendPaced(f.chunk, arg>>1, size, takes, h.to[:])
	if f.sent += size; f.sent < piece {
		b.After(b.Now()+takes, arg)
	}
}

// Abandon implements Recovery.
func (h *hybrid) Abandon(i int32) {
	b := h.b
	x, s := &b.Chunks[i], &h.puts[i]
	s.again = sim.Forever
	h.putBack(i)
	for k := range x.N {
		n := s.booked[k].flow
		switch {
		case n < 0: // it has arrived, and its number may have been reused
		case h.flows.Items[n].sent < b.pieceOf(i):
			h.flows.Items[n].dead = true
		default:
			h.flows.Give(n)
		}
	}
	h.group = b.GroupOf(s.group, h.group[:0])
	b.cancel(Message{Kind: accept, From: x.Gateway, Chunk: i, ID: x.ID, N: -1}, h.group)
}

// Restart implements Recovery.
func (h *hybrid) Restart(target int32) { h.bids[target] = reserve.NewSparse(h.b.Times) }

// Frame implements Protocol.
func (h *hybrid) Frame(f Frame) {
	b, n := h.b, int32(f.Arg)
	d := &h.flows.Items[n]
	if d.got += f.Size; d.got < b.pieceOf(d.chunk) {
		return
	}
	x := &b.Chunks[d.chunk]
	if h.bids[f.Target].Done(key(x.ID, d.chunk)) {
		b.showDone(f.Target, x)
	}
	b.Disks.Write(f.Target, Message{Kind: kept, From: f.Target, To: x.Gateway, Chunk: d.chunk, ID: x.ID})
	h.flows.Give(n)
	h.puts[d.chunk].booked[x.Place(f.Target)].flow = -1
}

// key identifies a chunk in a target's queue. It combines the attempt's ID and the chunk's slot, so that a late
// rejection can name the slot to the gateway that has lost its window.
func key(id uint64, chunk int32) uint64 { return id<<placeBits | uint64(chunk) }

// placeBits is the width of a chunk's slot in a key: 2^20 gateways with 2^10 chunks each.
const placeBits = 30

// key returns the key of the message's chunk.
func (m *Message) key() uint64 { return key(m.ID, m.Chunk) }

// orderOf returns a Choosy of the gateway that no other of its chunks uses.
func (h *hybrid) orderOf(gateway int32) *reserve.Choosy {
	list := h.idle[gateway]
	if k := len(list) - 1; k >= 0 {
		h.idle[gateway] = list[:k]
		return list[k]
	}
	return reserve.NewChoosy(h.b.Times)
}

// putBack frees a chunk's Choosy for the gateway's next chunk.
func (h *hybrid) putBack(i int32) {
	g := h.b.Chunks[i].Gateway
	h.idle[g] = append(h.idle[g], h.puts[i].order)
}

// picksOf chooses windows among a chunk's bids.
func (h *hybrid) picksOf(s *sequel, missing int) []reserve.Pick {
	now := h.b.Now()
	if !h.b.Choosy {
		return s.order.Sequence.Choose(now, s.offers, missing, h.picks[:0])
	}
	patience := s.order.Patience()
	picks := s.order.Choose(now, s.offers, missing, h.picks[:0])
	if s.order.Patience() > patience {
		h.b.Tally.Impatient++
	}
	return picks
}

// more returns when to ask for the missing replicas after a choice.
func (h *hybrid) more(s *sequel) (at, notBefore sim.Time) {
	if h.b.Choosy {
		return s.order.More(h.b.Now(), h.picks)
	}
	return s.order.Sequence.More(h.b.Now(), h.picks)
}

// askAt schedules the next request for bids of a chunk. A later call replaces it.
func (h *hybrid) askAt(i int32, at, notBefore sim.Time) {
	s := &h.puts[i]
	s.notBefore, s.again = notBefore, max(at, h.b.Now())
	h.b.After(s.again, uint32(i)<<1|1)
}

// Floor implements Forecast: as Replicast's for the first replica; a lone chunk asks for each of the others in turn.
func (h *hybrid) Floor(p *Plan) sim.Time {
	d, ctl := p.Times, p.OnLink()
	first := ctl + d.Trip + 2*d.Control + d.Trip + d.Lead
	data := sim.Time(p.Copies) * p.dataTime()
	if p.Pass {
		// A window freed by another gateway may begin as soon as it is accepted. Windows overlap, and the data has the
		// link's full rate.
		first = 3*ctl + 2*d.Trip
		data = max(p.dataTime(), sim.Time(p.Copies)*d.Send(p.Piece, d.Effective))
	}
	return first + data + d.Trip + p.kept() + ctl + d.Trip
}

// Expects implements Forecast: an accepted or a tentative bid.
func (h *hybrid) Expects(target int32) (promised, open bool) { return h.bids[target].Expects() }
