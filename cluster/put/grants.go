package put

import (
	"farflash/cluster/reserve"
	"farflash/sim"
	"farflash/units"
)

// Grants is receiver-driven transport over hashed placement, in the manner of Homa and NDP.
const Grants Scheme = 6

var receiverGrants = Traits{Name: "grants", Finds: FindsPlaced, Queued: true, Times: reserve.UnicastConfig, Messages: []string{granted: "grant", grantKept: "ack", grantCancel: "cancel"},
	New: func(b *Bus) Protocol { return newGrants(b) }}

// grants is receiver-driven transport over hashed placement, in the manner of Homa (Montazeri et al., SIGCOMM 2018) and NDP (Handley et al., SIGCOMM 2017). A gateway
// sends all replicas at the same time, of each as much at once as a link carries in a round trip; the rest when the target grants it. A target
// grants to the replicas of which the least is missing, a few at a time, so much ahead that its link does not idle; and not while its disk has as much
// waiting as it may. It leaves out the priorities of Homa's packets and the trimming of NDP's.
type grants struct {
	b     *Bus
	pick  chooser
	sends [][MaxReplicas]transfer // by chunk
	come  []arrivals              // of targets
	clock []sim.Timer             // of targets: when the disk has room
	reach units.Bytes             // what is granted ahead
}

// transfer is a replica on its way, as its gateway sees it.
type transfer struct{ sent, granted units.Bytes }

// Kinds of control messages of grants.
const (
	granted uint8 = iota
	grantKept
	grantCancel
)

func newGrants(b *Bus) *grants {
	p := &grants{b: b, come: make([]arrivals, b.Targets)}
	p.pick = chooser{b: b, chosen: p.chosen, coming: func(t int32) int { return len(p.come[t]) }}
	d := b.Times
	roundTrip := 2*d.Trip + d.Control
	p.reach = units.Bytes(int64(roundTrip/d.Frame)+2) * d.FrameSize
	for t := range b.Targets {
		p.clock = append(p.clock, b.NewTimer(uint32(t)))
	}
	return p
}

// Begin implements Protocol.
func (p *grants) Begin(i int32) {
	for int(i) >= len(p.sends) {
		p.sends = append(p.sends, [MaxReplicas]transfer{})
	}
	p.sends[i] = [MaxReplicas]transfer{}
	p.pick.choose(i)
}

// chosen has the gateway send what needs no grant.
func (p *grants) chosen(i int32) {
	for k := range p.b.Chunks[i].N {
		p.grant(i, int(k), min(p.reach, p.b.Piece))
	}
}

// grant lets a gateway send a replica up to an offset.
func (p *grants) grant(i int32, k int, upTo units.Bytes) {
	b := p.b
	x, s := &b.Chunks[i], &p.sends[i][k]
	s.granted = max(s.granted, upTo)
	for s.sent < s.granted {
		size := min(b.Frame, s.granted-s.sent)
		s.sent += size
		b.send(x.Gateway, i, size, b.Node(x.Targets[k]))
	}
}

// Message implements Protocol.
func (p *grants) Message(m *Message) {
	b := p.b
	if p.pick.message(m) {
		return
	}
	switch m.Kind {
	case granted:
		if b.Chunks[m.Chunk].ID == m.ID {
			p.grant(m.Chunk, int(m.N), units.Bytes(m.A))
		}
	case grantCancel:
		p.come[m.To].forget(m.ID)
		p.serve(m.To)
	case grantKept:
		if b.Chunks[m.Chunk].ID == m.ID {
			b.Outcomes.Acknowledged(m.Chunk)
		}
	}
}

// Frame implements Protocol.
func (p *grants) Frame(f Frame) {
	b, i := p.b, int32(f.Arg)
	x, a := &b.Chunks[i], &p.come[f.Target]
	k := a.add(x, i, f)
	r := &(*a)[k]
	r.granted = max(r.granted, min(p.reach, b.Piece))
	if r.received == b.Piece {
		b.Disks.Write(f.Target, Message{Kind: grantKept, From: f.Target, To: x.Gateway, Chunk: i, ID: x.ID})
		a.remove(k)
	}
	p.serve(f.Target)
}

// serve has a target grant what it can.
func (p *grants) serve(target int32) {
	b := p.b
	list := p.come[target]
	now := b.Now()
	if wait := b.Times.UnicastDelay(b.Disks.Backlog(target)); wait > 0 {
		if len(list) > 0 {
			b.Arm(p.clock[target], now+wait)
		}
		return
	}
	// The list is kept in the order of what is missing, the least first; it is short, and mostly in order already.
	for k := 1; k < len(list); k++ {
		for j := k; j > 0 && list[j].received > list[j-1].received; j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
	for k := range list[:min(len(list), b.Overcommit)] {
		r := &list[k]
		if upTo := min(r.received+p.reach, b.Piece); upTo > r.granted {
			r.granted = upTo
			b.toNode(b.Node(target), Message{Kind: granted, From: target, Chunk: r.chunk, ID: r.id, N: int32(r.place), A: sim.Time(upTo)}, r.gateway)
		}
	}
}

// Timer implements Protocol: a target's disk may have room.
func (p *grants) Timer(arg uint32) { p.serve(int32(arg)) }

// Floor implements Forecast: all replicas on the gateway's link one after the other, the disk and the acknowledgement.
func (p *grants) Floor() sim.Time {
	b, d := p.b, p.b.Times
	return b.probing() + sim.Time(b.Copies)*b.dataTime() + d.Trip + b.kept() + b.OnLink() + d.Trip
}

// Abandon implements Recovery.
func (p *grants) Abandon(i int32) {
	p.b.cancelEach(i, grantCancel)
}

// Restart implements Recovery.
func (p *grants) Restart(target int32) { p.come[target] = p.come[target][:0] }

// Expects implements Forecast: pieces of which some has come.
func (p *grants) Expects(target int32) (promised, open bool) { return len(p.come[target]) > 0, false }
