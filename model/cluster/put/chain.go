package put

import (
	"farflash/model/cluster/reserve"
	"farflash/sim"
)

// Chain is chain replication over hashed placement.
const Chain Scheme = 5

var chain = Traits{Name: "chain", Finds: FindsPlaced, Chained: true, Queued: true, NoBackPressure: true,
	Times: reserve.UnicastConfig, Messages: []string{chainKept: "ack", chainCancel: "cancel"},
	New: func(b *Bus) Protocol { return newChained(b) }}

// Kinds of control messages of chained.
const (
	chainKept uint8 = iota
	chainCancel
)

// chained is chain replication of data (van Renesse and Schneider, OSDI 2004; the pipeline of GFS, SOSP 2003) over
// hashed placement: a gateway sends to the chunk's first target, which forwards each frame to the second as it arrives,
// and so on. There is no request before the data, so concurrent chunks queue in front of a target's link. Each target
// acknowledges to the gateway itself. With an erasure code the gateway sends each piece to its target.
type chained struct {
	b    *Bus
	pick chooser
	come []arrivals // by target
}

func newChained(b *Bus) *chained {
	c := &chained{b: b, come: make([]arrivals, b.Targets)}
	c.pick = chooser{b: b, chosen: b.sendOut, coming: func(t int32) int { return len(c.come[t]) }}
	return c
}

// Begin implements Protocol.
func (c *chained) Begin(i int32) { c.pick.choose(i) }

// Message implements Protocol.
func (c *chained) Message(m *Message) {
	switch {
	case c.pick.message(m):
	case m.Kind == chainCancel:
		c.come[m.To].forget(m.ID)
	case c.b.Chunks[m.Chunk].ID == m.ID:
		c.b.Outcomes.Acknowledged(m.Chunk)
	}
}

// Timer implements Protocol. It is never called, because chained sets no timers.
func (c *chained) Timer(uint32) {}

// Frame implements Protocol.
func (c *chained) Frame(f Frame) {
	b, i := c.b, int32(f.Arg)
	x := &b.Chunks[i]
	b.passOn(i, f)
	if c.come[f.Target].whole(x, i, f, b.pieceOf(i)) {
		b.Disks.Write(f.Target, Message{Kind: chainKept, From: f.Target, To: x.Gateway, Chunk: i, ID: x.ID})
	}
}

// Floor implements Forecast: the data's path along the chain, the disk and the acknowledgement.
func (c *chained) Floor(p *Plan) sim.Time {
	return p.probing() + p.alongChain() + p.kept() + p.OnLink() + p.Times.Trip
}

// Abandon implements Recovery: targets with a part of the chunk drop it.
func (c *chained) Abandon(i int32) { c.b.cancelEach(i, chainCancel) }

// Restart implements Recovery.
func (c *chained) Restart(target int32) { c.come[target] = c.come[target][:0] }

// Expects implements Forecast: pieces received in part.
func (c *chained) Expects(target int32) (promised, open bool) { return len(c.come[target]) > 0, false }
