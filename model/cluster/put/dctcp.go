package put

import (
	"farflash/model/cluster/reserve"
	"farflash/numeric/units"
	"farflash/sim"
)

// DCTCP is window-based unicast over hashed placement.
const DCTCP Scheme = 7

var windowed = Traits{Name: "dctcp", Finds: FindsPlaced, Queued: true, Marks: true, NoBackPressure: true,
	Times:    reserve.UnicastConfig,
	Messages: []string{frameAck: "frame ack", dctcpKept: "ack", dctcpCancel: "cancel"},
	New:      func(b *Bus) Protocol { return newDCTCP(b) }}

// unbounded is a window that never closes, for networks that pace all data themselves.
const unbounded = units.Bytes(sim.Forever)

// dctcp is window-based unicast over hashed placement with the congestion control of DCTCP (Alizadeh et al., SIGCOMM
// 2010; RFC 8257). A gateway sends all replicas concurrently. Frames that find a queue longer than link.mark in front
// of a target's link are marked; each frame is acknowledged, with its mark. A window grows by the bytes acknowledged
// until the first mark and by a frame per round trip after it, and shrinks once per round trip by half the smoothed
// fraction of marks. Each replica starts with the initial window of RFC 6928. Buffers are unlimited and no frame is
// dropped, which favours this protocol.
type dctcp struct {
	b     *Bus
	pick  chooser
	flows [][MaxReplicas]window // by chunk
	come  []arrivals            // by target
}

// window is a replica in flight.
type window struct {
	sent, acked units.Bytes
	cwnd        units.Bytes
	slow        bool        // slow start
	end         units.Bytes // end of the present round: the next one begins when this offset is acknowledged
	marked      units.Bytes // bytes marked in this round
	seen        units.Bytes
	alpha       int64 // smoothed fraction of marks, in units of 1/alphaOne
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

func newDCTCP(b *Bus) *dctcp {
	d := &dctcp{b: b, come: make([]arrivals, b.Targets)}
	d.pick = chooser{b: b, chosen: d.chosen, coming: func(t int32) int { return len(d.come[t]) }}
	return d
}

// Begin implements Protocol.
func (d *dctcp) Begin(i int32) {
	for int(i) >= len(d.flows) {
		d.flows = append(d.flows, [MaxReplicas]window{})
	}
	d.pick.choose(i)
}

// chosen sends the first windows.
func (d *dctcp) chosen(i int32) {
	for k := range d.b.Chunks[i].N {
		d.flows[i][k] = window{cwnd: max(initialWindow, d.b.Frame), slow: true, alpha: alphaOne}
		if d.b.Unpaced {
			d.flows[i][k].cwnd = unbounded
		}
		d.send(i, int(k))
	}
}

// send sends frames while the window allows it.
func (d *dctcp) send(i int32, k int) {
	b := d.b
	x, w := &b.Chunks[i], &d.flows[i][k]
	piece := b.pieceOf(i)
	for w.sent < piece {
		size := min(b.Frame, piece-w.sent)
		if w.sent > w.acked && w.sent+size-w.acked > w.cwnd {
			return
		}
		w.sent += size
		b.send(x.Gateway, i, size, b.Node(x.Targets[k]))
	}
}

// Message implements Protocol.
func (d *dctcp) Message(m *Message) {
	b := d.b
	switch {
	case d.pick.message(m):
	case m.Kind == dctcpCancel:
		d.come[m.To].forget(m.ID)
	case b.Chunks[m.Chunk].ID != m.ID:
	case m.Kind == frameAck:
		d.flows[m.Chunk][m.N].ack(units.Bytes(m.A), m.B != 0, b.Frame)
		d.send(m.Chunk, int(m.N))
	default:
		b.Outcomes.Acknowledged(m.Chunk)
	}
}

// ack handles the acknowledgement of size bytes, with or without a mark.
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
	// End of a round: update alpha, and cut the window if there were marks (RFC 8257, section 3.3).
	if w.seen > 0 {
		w.alpha += (alphaOne*int64(w.marked)/int64(w.seen) - w.alpha) >> alphaShift
	}
	if w.marked > 0 {
		w.cwnd = max(w.cwnd-units.Bytes(int64(w.cwnd)*w.alpha/(2*alphaOne)), frame)
	}
	w.end, w.marked, w.seen = w.sent, 0, 0
}

// Timer implements Protocol. It is never called, because dctcp sets no timers.
func (d *dctcp) Timer(uint32) {}

// Frame implements Protocol.
func (d *dctcp) Frame(f Frame) {
	b, i := d.b, int32(f.Arg)
	x := &b.Chunks[i]
	if !b.Unpaced {
		d.acknowledge(x, i, f)
	}
	if d.come[f.Target].whole(x, i, f, b.pieceOf(i)) {
		b.Disks.Write(f.Target, Message{Kind: dctcpKept, From: f.Target, To: x.Gateway, Chunk: i, ID: x.ID})
	}
}

// acknowledge has a target acknowledge a frame, with its mark.
func (d *dctcp) acknowledge(x *Chunk, i int32, f Frame) {
	b := d.b
	ack := Message{Kind: frameAck, From: f.Target, Chunk: i, ID: x.ID, N: int32(x.Place(f.Target)), A: sim.Time(f.Size)}
	if f.Marked {
		ack.B = 1
	}
	b.toNode(b.Node(f.Target), ack, x.Gateway)
}

// Floor implements Forecast: all replicas one after the other on the gateway's link, the disk and the acknowledgement.
// Windows that are still small only add to it.
func (d *dctcp) Floor(p *Plan) sim.Time { return p.sideBySide() }

// Abandon implements Recovery: targets with a part of the chunk drop it.
func (d *dctcp) Abandon(i int32) { d.b.cancelEach(i, dctcpCancel) }

// Restart implements Recovery.
func (d *dctcp) Restart(target int32) { d.come[target] = d.come[target][:0] }

// Expects implements Forecast: pieces received in part.
func (d *dctcp) Expects(target int32) (promised, open bool) { return len(d.come[target]) > 0, false }
