package put

import (
	"farflash/model/cluster/reserve"
	"farflash/numeric/units"
	"farflash/sim"
)

// Grants is receiver-driven transport over hashed placement, in the manner of Homa and NDP.
const Grants Scheme = 6

var receiverGrants = Traits{Name: "grants", Finds: FindsPlaced, Queued: true, Grants: true,
	Times:    reserve.UnicastConfig,
	Messages: []string{granted: "grant", grantKept: "ack", grantCancel: "cancel"},
	New:      func(b *Bus) Protocol { return newGrants(b) }}

// grants is receiver-driven transport over hashed placement, in the manner of Homa (Montazeri et al., SIGCOMM 2018) and
// NDP (Handley et al., SIGCOMM 2017). A gateway sends all replicas concurrently. It sends the first round trip's worth
// of each replica at once, and the rest as the target grants it. A target grants to the few replicas with the fewest
// bytes missing, far enough ahead that its link does not idle, and it stops while its disk's queue is full. The
// priorities of Homa's packets and NDP's trimming are left out.
type grants struct {
	b     *Bus
	pick  chooser
	sends [][MaxReplicas]transfer // by chunk
	come  []arrivals              // by target
	clock []sim.Timer             // by target: when the disk queue has space again
	reach units.Bytes             // bytes granted ahead of the data received
}

// transfer is a replica in flight, as its gateway sees it.
type transfer struct{ sent, granted units.Bytes }

// Kinds of control messages of grants.
const (
	granted uint8 = iota
	grantKept
	grantCancel
)

func newGrants(b *Bus) *grants {
	g := &grants{b: b, come: make([]arrivals, b.Targets)}
	g.pick = chooser{b: b, chosen: g.chosen, coming: func(t int32) int { return len(g.come[t]) }}
	d := b.Times
	roundTrip := 2*d.Trip + d.Control
	// The frames of a round trip, and two more, so that the link does not idle while a grant is in flight.
	g.reach = units.Bytes(int64(roundTrip/d.Frame)+2) * d.FrameSize
	for t := range b.Targets {
		g.clock = append(g.clock, b.NewTimer(uint32(t)))
	}
	return g
}

// Begin implements Protocol.
func (g *grants) Begin(i int32) {
	for int(i) >= len(g.sends) {
		g.sends = append(g.sends, [MaxReplicas]transfer{})
	}
	g.sends[i] = [MaxReplicas]transfer{}
	g.pick.choose(i)
}

// chosen sends the part of each replica that needs no grant.
func (g *grants) chosen(i int32) {
	for k := range g.b.Chunks[i].N {
		g.grant(i, int(k), min(g.reach, g.b.pieceOf(i)))
	}
}

// grant lets a gateway send a replica up to an offset.
func (g *grants) grant(i int32, k int, upTo units.Bytes) {
	b := g.b
	x, s := &b.Chunks[i], &g.sends[i][k]
	s.granted = max(s.granted, upTo)
	for s.sent < s.granted {
		size := min(b.Frame, s.granted-s.sent)
		s.sent += size
		b.send(x.Gateway, i, size, b.Node(x.Targets[k]))
	}
}

// Message implements Protocol.
func (g *grants) Message(m *Message) {
	b := g.b
	if g.pick.message(m) {
		return
	}
	switch m.Kind {
	case granted:
		if b.Chunks[m.Chunk].ID == m.ID {
			g.grant(m.Chunk, int(m.N), units.Bytes(m.A))
		}
	case grantCancel:
		g.come[m.To].forget(m.ID)
		g.serve(m.To)
	case grantKept:
		if b.Chunks[m.Chunk].ID == m.ID {
			b.Outcomes.Acknowledged(m.Chunk)
		}
	}
}

// Frame implements Protocol.
func (g *grants) Frame(f Frame) {
	b, i := g.b, int32(f.Arg)
	x, a := &b.Chunks[i], &g.come[f.Target]
	k := a.add(x, i, f)
	r, piece := &(*a)[k], b.pieceOf(i)
	r.granted = max(r.granted, min(g.reach, piece))
	if r.piece = piece; r.received == piece {
		b.Disks.Write(f.Target, Message{Kind: grantKept, From: f.Target, To: x.Gateway, Chunk: i, ID: x.ID})
		a.remove(k)
	}
	g.serve(f.Target)
}

// serve has a target issue the grants that are due.
func (g *grants) serve(target int32) {
	b := g.b
	list := g.come[target]
	now := b.Now()
	if wait := b.Times.UnicastDelay(b.Disks.Backlog(target)); wait > 0 {
		if len(list) > 0 {
			b.Arm(g.clock[target], now+wait)
		}
		return
	}
	// Keep the list ordered by bytes missing, fewest first. It is short and mostly sorted, which suits insertion sort.
	for k := 1; k < len(list); k++ {
		for j := k; j > 0 && g.missing(&list[j]) < g.missing(&list[j-1]); j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
	for k := range list[:min(len(list), b.Overcommit)] {
		r := &list[k]
		if upTo := r.received + min(g.reach, g.missing(r)); upTo > r.granted {
			r.granted = upTo
			b.toNode(b.Node(target),
				Message{Kind: granted, From: target, Chunk: r.chunk, ID: r.id, N: int32(r.place), A: sim.Time(upTo)},
				r.gateway)
		}
	}
}

// missing returns the number of bytes of a piece that have not arrived.
func (g *grants) missing(r *coming) units.Bytes {
	if r.piece == 0 {
		return g.b.Piece - r.received
	}
	return r.piece - r.received
}

// Timer implements Protocol: a target's disk queue may have space again.
func (g *grants) Timer(arg uint32) { g.serve(int32(arg)) }

// Floor implements Forecast: all replicas one after the other on the gateway's link, the disk and the acknowledgement.
func (g *grants) Floor(p *Plan) sim.Time { return p.sideBySide() }

// Abandon implements Recovery.
func (g *grants) Abandon(i int32) {
	g.b.cancelEach(i, grantCancel)
}

// Restart implements Recovery.
func (g *grants) Restart(target int32) { g.come[target] = g.come[target][:0] }

// Expects implements Forecast: pieces received in part.
func (g *grants) Expects(target int32) (promised, open bool) { return len(g.come[target]) > 0, false }
