package fabric

import (
	"errors"
	"fmt"
	"sync/atomic"

	"farflash/fabric/cc"
	"farflash/sim"
	"farflash/units"
)

// A network can be divided by its nodes into parts that run on engines of their own, a window of time
// after the other. A packet that crosses takes at least the links' delay, so what a
// part does within a window of that length no other part can see in it. Ties at one time go by
// component, whose numbers do not depend on the division, so results are the same for any number of
// parts, one included.
//
// What all parts need to know of each other is known before they start: queue pairs are open and
// messages planned. Each field of a queue pair belongs to its sender's part or to its receiver's.

// Parts is a network in parts.
type Parts struct {
	base  *Network
	list  []*Network
	split *split
	ahead sim.Time
}

// split is what the parts of a network share.
type split struct {
	of    []int32 // part of each node
	parts []*Network
	stuck atomic.Bool
}

// has reports whether a node is in a part.
func (s *split) has(n *Network, node int32) bool { return s.parts[s.of[node]] == n }

// crossing is a packet on a wire between two parts.
type crossing struct {
	port int32
	f    flight
}

// crossings are what a part has sent to another: in one window to the one list, in the next to the
// other, so that what was sent can be taken meanwhile.
type crossings [2]struct {
	packets []crossing
	notes   []note // of the packets that have one, in order
}

// note is a record of notes, on its way.
type note struct {
	at    sim.Time
	power uint16
	count uint8
	hops  [cc.MaxHops]cc.Hop
}

// Flow is a message that is planned for a time.
type Flow struct {
	Src, Dst int32 // nodes
	Class    uint8
	Size     units.Bytes
	Start    sim.Time
}

// Divide plans flows, in order of their starts, and divides a network that nothing has been posted on. of has
// the part of each node; lookahead is the least delay of links between parts. sinks has one for
// each part, or nil.
func (n *Network) Divide(of []int32, lookahead sim.Time, flows []Flow, sinks []Sink) (*Parts, error) {
	switch {
	case len(of) != len(n.nodes):
		return nil, fmt.Errorf("parts of %d nodes; the network has %d", len(of), len(n.nodes))
	case lookahead <= 0:
		return nil, errors.New("links between parts need a delay")
	case n.draws != nil:
		return nil, errors.New("random numbers of ns-3 are one sequence for the whole network")
	case len(n.messages) > 0 || n.failures != nil:
		return nil, errors.New("a network is divided before anything is posted, and has no links that fail")
	}
	s := &split{of: of}
	n.split = s
	for i := range flows {
		f := &flows[i]
		var q QP
		var err error
		if n.cfg.QueuePairs.Life == PerMessage {
			q, err = n.Open(f.Src, f.Dst, f.Class)
		} else {
			q, err = n.Pair(f.Src, f.Dst, f.Class)
		}
		if err == nil {
			_, err = n.plan(q, f.Size)
		}
		if err != nil {
			return nil, fmt.Errorf("flow %d: %w", i, err)
		}
	}
	p := &Parts{base: n, split: s, ahead: lookahead}
	for i := range sinks {
		x := *n
		x.eng = sim.New()
		for range n.eng.Components() {
			x.eng.NewComponent()
		}
		part := &x
		x.target = x.eng.AddHandler(part)
		x.sink = sinks[i]
		x.Counters = Counters{}
		x.chunks = chunks{}
		x.notes = notes{}
		x.notes.init(x.wants)
		x.part, x.out = int32(i), make([]crossings, len(sinks))
		p.list = append(p.list, part)
	}
	s.parts = p.list
	for i := range n.ports {
		port := &n.ports[i]
		port.cross = of[port.node] != of[n.ports[port.peer].node]
	}
	if n.timeout > 0 {
		for q := range n.senders {
			x := &n.senders[q]
			part := p.list[of[x.src]]
			x.expire = part.eng.NewTimer(n.ports[x.port].inPort, part.target, expire, uint32(q))
		}
	}
	return p, nil
}

// Engine is a part's.
func (p *Parts) Engine(i int) *sim.Engine { return p.list[i].eng }

// Begin posts a planned flow, by its index, in its sender's part and at that part's time.
func (p *Parts) Begin(i int, flow int32) error { return p.list[i].begin(flow) }

// OnPause has f called for the pauses of a part's ports.
func (p *Parts) OnPause(i int, f sim.Probe[Pause]) { p.list[i].OnPause = f }

// Ahead is how long a window may be.
func (p *Parts) Ahead() sim.Time { return p.ahead }

// Take hands a part what others have sent it in the window before, and returns when its next event
// may happen. No part runs meanwhile.
func (p *Parts) Take(i int, round uint32) sim.Time {
	n := p.list[i]
	for _, o := range p.list {
		in := &o.out[i][(round+1)%2]
		k := 0
		for j := range in.packets {
			x := &in.packets[j]
			if x.f.x.note != 0 {
				x.f.x.note = n.notes.restore(&in.notes[k])
				k++
			}
			port := &n.ports[x.port]
			if port.wire.n == 0 {
				n.eng.Schedule(port.onWire, n.target, x.f.at, arrive, uint32(x.port))
			}
			port.wire.push(x.f)
		}
		in.packets, in.notes = in.packets[:0], in.notes[:0]
	}
	n.round = round % 2
	return n.eng.Next()
}

// Run runs a part up to a time within the window.
func (p *Parts) Run(i int, until sim.Time) { p.list[i].eng.Run(until) }

// Stuck reports whether the watchdog of a part has found something that only the network in one piece
// can look into.
func (p *Parts) Stuck() bool { return p.split.stuck.Load() }

// Settle makes the whole network's figures those of its parts, which have all reached the same
// time.
func (p *Parts) Settle() {
	n := p.base
	n.Counters = Counters{}
	n.notes.taken = 0
	for _, x := range p.list {
		n.Counters.add(&x.Counters)
		n.notes.taken += x.notes.taken
	}
}

// Events is how many events the parts have run.
func (p *Parts) Events() uint64 {
	sum := uint64(0)
	for _, x := range p.list {
		sum += x.eng.Events()
	}
	return sum
}

// cross puts a packet on a wire to another part.
func (n *Network) cross(pi int32, at sim.Time, x packet) {
	to := &n.out[n.split.of[n.ports[n.ports[pi].peer].node]][n.round]
	if x.note != 0 {
		to.notes = append(to.notes, n.notes.record(x.note))
		n.notes.give(x.note)
	}
	to.packets = append(to.packets, crossing{pi, flight{at, x}})
}

// record is a note's content.
func (k *notes) record(i uint32) note {
	x := note{at: k.at[i], power: k.power[i], count: k.count[i]}
	if k.inUse.INT {
		x.hops = k.hops[i]
	}
	return x
}

// restore makes a note with a content.
func (k *notes) restore(x *note) uint32 {
	i := k.take(x.at)
	k.power[i], k.count[i] = x.power, x.count
	if k.inUse.INT {
		k.hops[i] = x.hops
	}
	return i
}

// now is the time that figures are taken at.
func (n *Network) now() sim.Time { return max(n.at, n.eng.Now()) }

// pool is where a node's queues have their packets.
func (n *Network) pool(node int32) *chunks {
	if n.split != nil && n.out == nil {
		return &n.split.parts[n.split.of[node]].chunks
	}
	return &n.chunks
}
