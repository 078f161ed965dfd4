package cluster

import (
	"farflash/cluster/reserve"
	"farflash/sim"
	"farflash/units"
)

// dctcp is window-based unicast over hashed placement, as DCTCP has it (Alizadeh et al., SIGCOMM 2010; RFC 8257). A gateway sends all replicas at the same time. Frames that find a
// queue before a target's link of more than link.mark are marked; each is acknowledged, with its mark; a window grows by what is acknowledged until the first mark, then by a
// frame in a round trip, and shrinks once in a round trip by half the smoothed share of marks. Each replica begins with the window of RFC 6928.
// There is no buffer limit: nothing is dropped, which favours it.
type dctcp struct {
	c     *Cluster
	d     *reserve.Durations
	pick  chooser
	flows [][maxReplicas]window // by chunk
	come  []arrivals            // of targets
	node  [1]int32
}

// window is a replica on its way.
type window struct {
	sent, acked units.Bytes
	cwnd        units.Bytes
	slow        bool        // slow start
	end         units.Bytes // of the present round: when it is acknowledged, the next begins
	marked      units.Bytes // of this round
	seen        units.Bytes
	alpha       int64 // smoothed share of marks, of alphaOne
}

// Constants of DCTCP: the gain is 1/16 (RFC 8257, section 3.3), the initial window ten segments of 1460 B (RFC 6928).
const (
	alphaOne      = 1 << 20
	alphaShift    = 4
	initialWindow = 10 * 1460
)

// Kinds of control messages of dctcp.
const (
	frameAck uint8 = iota
	dctcpKept
	dctcpCancel
)

func newDCTCP(c *Cluster, d *reserve.Durations) *dctcp {
	p := &dctcp{c: c, d: d, come: make([]arrivals, len(c.targets))}
	p.pick = chooser{c: c, chosen: p.chosen, coming: func(t int32) int { return len(p.come[t]) }}
	return p
}

// begin implements protocol.
func (p *dctcp) begin(i int32) {
	for int(i) >= len(p.flows) {
		p.flows = append(p.flows, [maxReplicas]window{})
	}
	p.pick.choose(i)
}

// chosen has the gateway send the first windows.
func (p *dctcp) chosen(i int32) {
	for k := range p.c.chunks[i].n {
		p.flows[i][k] = window{cwnd: max(initialWindow, p.c.cfg.Link.Frame), slow: true, alpha: alphaOne}
		if p.c.net != nil {
			p.flows[i][k].cwnd = unbounded
		}
		p.send(i, int(k))
	}
}

// send sends what the window allows.
func (p *dctcp) send(i int32, k int) {
	c := p.c
	x, w := &c.chunks[i], &p.flows[i][k]
	for w.sent < c.piece {
		size := min(c.cfg.Link.Frame, c.piece-w.sent)
		if w.sent > w.acked && w.sent+size-w.acked > w.cwnd {
			return
		}
		w.sent += size
		p.node[0] = c.nodeOfTarget(x.targets[k])
		c.send(x.gateway, i, x.id, uint32(i), size, p.node[:])
	}
}

// message implements protocol.
func (p *dctcp) message(m *message) {
	c := p.c
	switch {
	case p.pick.message(m):
	case m.kind == dctcpCancel:
		p.come[m.to].forget(m.id)
	case c.chunks[m.chunk].id != m.id:
	case m.kind == frameAck:
		p.flows[m.chunk][m.n].ack(units.Bytes(m.a), m.b != 0, c.cfg.Link.Frame)
		p.send(m.chunk, int(m.n))
	default:
		c.acknowledged(m.chunk)
	}
}

// ack: some bytes have arrived, with or without a mark.
func (w *window) ack(size units.Bytes, mark bool, frame units.Bytes) {
	w.acked += size
	w.seen += size
	if mark {
		w.marked += size
		w.slow = false
	}
	if w.slow {
		w.cwnd += size
	} else {
		w.cwnd += max(frame*size/w.cwnd, 1)
	}
	if w.acked < w.end {
		return
	}
	// A round is over.
	if w.seen > 0 {
		w.alpha += (alphaOne*int64(w.marked)/int64(w.seen) - w.alpha) >> alphaShift
	}
	if w.marked > 0 {
		w.cwnd = max(w.cwnd-units.Bytes(int64(w.cwnd)*w.alpha/(2*alphaOne)), frame)
	}
	w.end, w.marked, w.seen = w.sent, 0, 0
}

// timer implements protocol: there are none.
func (p *dctcp) timer(uint32) {}

// frame implements protocol.
func (p *dctcp) frame(arg uint32, target int32, size units.Bytes) {
	c := p.c
	i := int32(arg)
	x := &c.chunks[i]
	k := x.place(target)
	if c.net == nil {
		p.acknowledge(x, i, k, target, size)
	}
	if p.come[target].whole(x, i, target, size, c.piece) {
		c.keep(target, message{kind: dctcpKept, from: target, to: x.gateway, chunk: i, id: x.id})
	}
}

// acknowledge has a target tell the gateway of a frame, and whether it was marked.
func (p *dctcp) acknowledge(x *chunk, i int32, k int, target int32, size units.Bytes) {
	c := p.c
	ack := message{kind: frameAck, from: target, chunk: i, id: x.id, n: int32(k), a: sim.Time(size)}
	if c.marked {
		ack.b = 1
	}
	p.node[0] = x.gateway
	c.tell(c.nodeOfTarget(target), ack, p.node[:])
}

// floor implements protocol: all replicas on the gateway's link one after the other, the disk and the acknowledgement. Windows that are still small make it longer.
func (p *dctcp) floor() sim.Time {
	c, d := p.c, p.d
	return c.probing() + sim.Time(c.copies)*c.dataTime(d) + d.Trip + c.keepTime(d.DiskChunk) + c.onLink(d) + d.Trip
}

// abandon implements recovery: targets that have a part of the chunk forget it.
func (p *dctcp) abandon(i int32) { p.c.cancelAll(i, dctcpCancel) }

// restart implements recovery.
func (p *dctcp) restart(target int32) { p.come[target] = p.come[target][:0] }
