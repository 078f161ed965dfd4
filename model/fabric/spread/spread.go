// Package spread chooses, in a switch, which of several equally short ways a packet takes, where that is not a
// hash's: packet spraying (Dixit et al., "On the Impact of Packet Spraying in Data Center Networks", INFOCOM 2013),
// adaptive routing by the least queue (DRILL, Ghorbani et al., SIGCOMM 2017, with all ports looked at), and flowlets
// (CONGA, Alizadeh et al., SIGCOMM 2014; LetFlow, Vanini et al., NSDI 2017).
//
// Its main type is Chooser, which has the state of all switches of a network; Config says what they go by. A switch
// knows its own queues and nothing else.
//
// What it leaves out: what the ways are, queues, and what switches tell each other (CONGA's feedback from the leaf at
// the other end).
package spread

import (
	"farflash/numeric/rng"
	"farflash/sim"
)

// Chooser chooses for all switches of a network. What it has of one is not touched by another, so that parts of a
// network may share it.
type Chooser struct {
	cfg      Config
	switches []state
}

// state is a switch's.
type state struct {
	turn     uint32
	random   rng.Stream
	flowlets []flowlet // none before the first
	queues   []int64
}

// flowlet is what was sent last by a place in the table.
type flowlet struct {
	at   sim.Time
	port uint16
	used bool
}

// New makes a chooser for so many nodes, whose random streams have the names.
func New(c Config, nodes int, seed uint64, name func(node int) string) *Chooser {
	k := &Chooser{cfg: c, switches: make([]state, nodes)}
	if c.Choice == Random {
		for i := range k.switches {
			k.switches[i].random = rng.NewStream(seed, name(i))
		}
	}
	return k
}

// Flowlets reports whether Again is to be asked first, and told of what was chosen with Remember.
func (k *Chooser) Flowlets() bool { return k.cfg.Per == Flowlet }

// Looks reports whether Choose goes by the queues that Queues has.
func (k *Chooser) Looks() bool { return k.cfg.Choice == LeastQueue }

// Again is the port that the flowlet of a packet, which has a hash, goes through; none if the packet begins one.
func (k *Chooser) Again(node int32, hash uint32, now sim.Time) (port uint16, ok bool) {
	s := &k.switches[node]
	if s.flowlets == nil {
		s.flowlets = make([]flowlet, k.cfg.Table)
	}
	f := &s.flowlets[hash%uint32(len(s.flowlets))]
	ok = f.used && now-f.at <= k.cfg.Gap
	f.at = now
	return f.port, ok
}

// Remember has the rest of the flowlet go through a port.
func (k *Chooser) Remember(node int32, hash uint32, port uint16) {
	s := &k.switches[node]
	f := &s.flowlets[hash%uint32(len(s.flowlets))]
	f.port, f.used = port, true
}

// Queues is room for how long the queues of n ways are, which Choose reads.
func (k *Chooser) Queues(node int32, n int) []int64 {
	s := &k.switches[node]
	if cap(s.queues) < n {
		s.queues = make([]int64, n)
	}
	s.queues = s.queues[:n]
	return s.queues
}

// Choose is the number of one of n ways, n of them at least two. Equally long queues take turns.
func (k *Chooser) Choose(node int32, n int) int {
	s := &k.switches[node]
	switch k.cfg.Choice {
	case Random:
		return int(s.random.IntN(int64(n)))
	case LeastQueue:
		best := int(s.turn % uint32(n))
		for i := 1; i < n; i++ {
			at := (int(s.turn%uint32(n)) + i) % n
			if s.queues[at] < s.queues[best] {
				best = at
			}
		}
		s.turn++
		return best
	default:
		i := s.turn % uint32(n)
		s.turn++
		return int(i)
	}
}
