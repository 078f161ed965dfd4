package put

import (
	"farflash/cluster/reserve"
	"farflash/sim"
	"farflash/units"
)

// Chain is chain replication over hashed placement.
const Chain Scheme = 5

var chain = Traits{Name: "chain", Finds: FindsPlaced, Chained: true, Queued: true, Times: reserve.UnicastConfig, Messages: []string{chainKept: "ack", chainCancel: "cancel"},
	New: func(b *Bus) Protocol { return newChained(b) }}

// Kinds of control messages of chained.
const (
	chainKept uint8 = iota
	chainCancel
)

// chained is chain replication of data (van Renesse and Schneider, OSDI 2004; the pipeline of GFS, SOSP 2003) over hashed placement: a gateway sends to
// the chunk's first target, which passes each frame on to the second as it comes, and so on. Nobody asks before sending, so what comes together at a target queues
// before its link. Each target acknowledges by itself. With an erasure code the gateway sends each piece to its target.
type chained struct {
	b    *Bus
	pick chooser
	come []arrivals // of targets
}

func newChained(b *Bus) *chained {
	p := &chained{b: b, come: make([]arrivals, b.Targets)}
	p.pick = chooser{b: b, chosen: p.chosen, coming: func(t int32) int { return len(p.come[t]) }}
	return p
}

// Begin implements Protocol.
func (p *chained) Begin(i int32) { p.pick.choose(i) }

// chosen has the gateway send.
func (p *chained) chosen(i int32) {
	b := p.b
	x := &b.Chunks[i]
	for k, t := range x.Targets[:x.N] {
		if k > 0 && b.Chained() {
			break
		}
		for sent := units.Bytes(0); sent < b.Piece; {
			size := min(b.Frame, b.Piece-sent)
			sent += size
			b.send(x.Gateway, i, size, b.Node(t))
		}
	}
}

// Message implements Protocol.
func (p *chained) Message(m *Message) {
	switch {
	case p.pick.message(m):
	case m.Kind == chainCancel:
		p.come[m.To].forget(m.ID)
	case p.b.Chunks[m.Chunk].ID == m.ID:
		p.b.Outcomes.Acknowledged(m.Chunk)
	}
}

// Timer implements Protocol: there are none.
func (p *chained) Timer(uint32) {}

// Frame implements Protocol.
func (p *chained) Frame(f Frame) {
	b, i := p.b, int32(f.Arg)
	x := &b.Chunks[i]
	if k := x.Place(f.Target); k+1 < int(x.N) && b.Chained() {
		b.send(b.Node(f.Target), i, f.Size, b.Node(x.Targets[k+1]))
	}
	if p.come[f.Target].whole(x, i, f, b.Piece) {
		b.Disks.Write(f.Target, Message{Kind: chainKept, From: f.Target, To: x.Gateway, Chunk: i, ID: x.ID})
	}
}

// Floor implements Forecast: the data's way along the chain, the disk and the acknowledgement.
func (p *chained) Floor() sim.Time {
	b, d := p.b, p.b.Times
	return b.probing() + b.alongChain() + b.kept() + b.OnLink() + d.Trip
}

// Abandon implements Recovery: targets that have a part of the chunk forget it.
func (p *chained) Abandon(i int32) { p.b.cancelEach(i, chainCancel) }

// Restart implements Recovery.
func (p *chained) Restart(target int32) { p.come[target] = p.come[target][:0] }

// Expects implements Forecast: pieces of which some has come.
func (p *chained) Expects(target int32) (promised, open bool) { return len(p.come[target]) > 0, false }
