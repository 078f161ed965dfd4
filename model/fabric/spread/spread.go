// Package spread chooses, in a switch, which of several equally short paths a packet takes, in place of a hash: packet
// spraying (Dixit et al., "On the Impact of Packet Spraying in Data Center Networks", INFOCOM 2013), adaptive routing
// by the shortest queue (DRILL, Ghorbani et al., SIGCOMM 2017, sampling all ports), and flowlets (CONGA, Alizadeh et
// al., SIGCOMM 2014; LetFlow, Vanini et al., NSDI 2017).
//
// Its main type is Chooser, which has the state of all switches of a network; Config selects the policy. A switch knows
// its own queues only.
//
// It leaves out the paths themselves, queues, and feedback between switches, such as CONGA's from the leaf at the other
// end.
package spread

import (
	"farflash/numeric/rng"
	"farflash/sim"
)

// Chooser chooses paths for all switches of a network. The state of different switches is disjoint, so that parts of a
// network can share a Chooser.
type Chooser struct {
	cfg      Config
	switches []state
}

// state is the state of one switch.
type state struct {
	turn     uint32
	random   rng.Stream
	flowlets []flowlet // nil until the first packet
	queues   []int64
}

// flowlet is an entry of the flowlet table: the last packet's time and port.
type flowlet struct {
	at   sim.Time
	port uint16
	used bool
}

// New returns a chooser for a number of nodes; name gives the name of each node's random stream.
func New(c Config, nodes int, seed uint64, name func(node int) string) *Chooser {
	k := &Chooser{cfg: c, switches: make([]state, nodes)}
	if c.Choice == Random {
		for i := range k.switches {
			k.switches[i].random = rng.NewStream(seed, name(i))
		}
	}
	return k
}

// Flowlets reports whether the caller must ask Again first, and report its choice with Remember.
func (k *Chooser) Flowlets() bool { return k.cfg.Per == Flowlet }

// Looks reports whether Choose reads the queue lengths that the caller writes to Queues.
func (k *Chooser) Looks() bool { return k.cfg.Choice == LeastQueue }

// Again returns the port of the flowlet of a packet with the given hash. ok is false if the packet starts a new
// flowlet.
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

// Remember binds the current flowlet to a port.
func (k *Chooser) Remember(node int32, hash uint32, port uint16) {
	s := &k.switches[node]
	f := &s.flowlets[hash%uint32(len(s.flowlets))]
	f.port, f.used = port, true
}

// Queues returns a slice for the queue lengths of n paths. The caller fills it in before Choose.
func (k *Chooser) Queues(node int32, n int) []int64 {
	s := &k.switches[node]
	if cap(s.queues) < n {
		s.queues = make([]int64, n)
	}
	s.queues = s.queues[:n]
	return s.queues
}

// Choose returns the index of one of n paths, n at least 2. Among equally long queues it rotates.
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
