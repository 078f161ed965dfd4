package flows

import (
	"fmt"
	"io"
	"math/bits"

	"farflash/numeric/units"
)

// Collective is an operation of many hosts in steps. A host starts a step when it has received all data of the
// preceding ones. The algorithms are those of Thakur, Rabenseifner and Gropp ("Optimization of Collective Communication
// Operations in MPICH", 2005) and of Patarasuk and Yuan ("Bandwidth optimal all-reduce algorithms", 2009).
type Collective struct {
	// Operation is the collective operation.
	Operation Operation `yaml:"operation"`
	// Algorithm is the algorithm that performs it.
	Algorithm Algorithm `yaml:"algorithm,omitempty"`
	// Size is the amount of data at each host; for an all-gather, at the end.
	Size units.Bytes `yaml:"size"`
	// Hosts are the participants, in this order; all hosts by default.
	Hosts []int `yaml:"hosts,omitempty"`
	// Delay is the time from a host's receipt of a step to its start of the next, for computation.
	Delay units.Duration `yaml:"delay,omitempty"`
	// Rounds is the number of rounds. 0 is one.
	Rounds int `yaml:"rounds,omitempty"`
	// Pause is the time from the end of a round at all hosts to the start of the next.
	Pause units.Duration `yaml:"pause,omitempty"`
}

// Operation is the kind of a collective.
type Operation uint8

// The operations.
const (
	AllReduce     Operation = iota // each host gets the sum of all hosts' data
	ReduceScatter                  // each host gets one part of the sum
	AllGather                      // each host gets the parts of all hosts
	AllToAllOf                     // each host sends different data to every other host
	operations
)

var operationNames = units.Names[Operation]{"all-reduce", "reduce-scatter", "all-gather", "all-to-all"}

// String is the name in scenarios.
func (o Operation) String() string { return operationNames.Name(o) }

// MarshalText writes the name.
func (o Operation) MarshalText() ([]byte, error) { return operationNames.Marshal(o) }

// UnmarshalText parses a name.
func (o *Operation) UnmarshalText(text []byte) error { return operationNames.Unmarshal(text, o) }

// Algorithm is an algorithm of collectives.
type Algorithm uint8

// The algorithms.
const (
	// Ring: passes parts from host to host around a ring; in an all-to-all each host sends to the next host, then to
	// the one after that, and so on.
	Ring Algorithm = iota
	// HalvingDoubling halves the distance between partners, and the data they exchange, at every step. The number of
	// hosts must be a power of two.
	HalvingDoubling
	Direct // every host sends to all others at once
	algorithms
)

var algorithmNames = units.Names[Algorithm]{"ring", "halving-doubling", "direct"}

// String is the name in scenarios.
func (a Algorithm) String() string { return algorithmNames.Name(a) }

// MarshalText writes the name.
func (a Algorithm) MarshalText() ([]byte, error) { return algorithmNames.Marshal(a) }

// UnmarshalText parses a name.
func (a *Algorithm) UnmarshalText(text []byte) error { return algorithmNames.Unmarshal(text, a) }

// Chorus is a running collective. It is a Reactive.
type Chorus struct {
	c       Collective
	hosts   []int32
	flow    Flow // template of all flows
	steps   int
	each    int      // messages that a host sends and receives per step
	got     []uint32 // messages received, by host and step
	done    []int32  // steps completely received, by host
	whole   int      // hosts that have completed all steps
	sent    int      // first flows already yielded by Next
	rounds  []Round
	pending int // flows of this and later rounds that have not started
}

// Round is the outcome of one round.
type Round struct {
	Start units.Duration
	// Steps are the times at which the last host had received each step, units.Forever if it has not.
	Steps []units.Duration
}

// End is the time at which all hosts had all data.
func (r *Round) End() units.Duration { return r.Steps[len(r.Steps)-1] }

// mostMessages limits the state of a collective: a count per host and step.
const mostMessages = 1 << 26

// newCollective validates a collective and starts its first round.
func newCollective(cfg Config, network Network) (Source, error) {
	c := *cfg.Collective
	switch {
	case c.Operation >= operations:
		return nil, units.Wrong("operation",
			"%v is not possible; use all-reduce, reduce-scatter, all-gather or all-to-all", c.Operation)
	case c.Algorithm >= algorithms:
		return nil, units.Wrong("algorithm", "%v is not possible; use ring, halving-doubling or direct", c.Algorithm)
	case c.Operation == AllToAllOf && c.Algorithm == HalvingDoubling:
		return nil, units.Wrong("algorithm",
			"halving-doubling cannot do an all-to-all; use ring (shifts) or direct")
	case c.Delay < 0:
		return nil, units.Wrong("delay", "%v is negative", c.Delay)
	case c.Pause < 0:
		return nil, units.Wrong("pause", "%v is negative", c.Pause)
	case c.Rounds < 0 || c.Rounds > 1<<20:
		return nil, units.Wrong("rounds", "%d is not possible; use 0 (once) to %d", c.Rounds, 1<<20)
	}
	hosts, err := hostsOf(c.Hosts, network)
	if err != nil {
		return nil, err
	}
	n := len(hosts)
	if err := checkSize(c.Size); err != nil {
		return nil, err
	}
	if int64(c.Size) < int64(n) {
		return nil, units.Wrong("size", "%v among %d hosts is less than a byte for each", c.Size, n)
	}
	if c.Algorithm == HalvingDoubling && n&(n-1) != 0 {
		return nil, units.Wrong("algorithm",
			"halving-doubling is for a power of two hosts, not %d; use ring, or other hosts", n)
	}
	c.Rounds = max(c.Rounds, 1)
	k := &Chorus{c: c, hosts: hosts, flow: Flow{Class: cfg.Class, Start: cfg.Start}, each: 1}
	switch {
	case c.Algorithm == Direct:
		k.steps, k.each = 1, n-1
	case c.Algorithm == Ring:
		k.steps = n - 1
	default:
		k.steps = bits.Len(uint(n)) - 1
	}
	if c.Operation == AllReduce {
		k.steps *= 2
	}
	if int64(k.steps)*int64(n) > mostMessages {
		return nil, units.Wrong("algorithm",
			"%v among %d hosts takes %d steps, above the limit; use halving-doubling or direct",
			c.Algorithm, n, k.steps)
	}
	k.got, k.done = make([]uint32, n*k.steps), make([]int32, n)
	k.pending = k.flows()
	k.begin(cfg.Start)
	return k, nil
}

// flows is the number of flows in all rounds.
func (k *Chorus) flows() int { return len(k.hosts) * k.steps * k.each * k.c.Rounds }

// Hosts returns the number of participants and the data size of each.
func (k *Chorus) Hosts() (hosts int, size units.Bytes) { return len(k.hosts), k.c.Size }

// Rounds returns the rounds that have started, and the total number of rounds.
func (k *Chorus) Rounds() ([]Round, int) { return k.rounds, k.c.Rounds }

// String describes the collective in the words of scenarios.
func (k *Chorus) String() string { return fmt.Sprintf("%v, %v", k.c.Operation, k.c.Algorithm) }

// Share is the minimum that each host must send, and receive, as a fraction of the size, whatever the algorithm:
// 2(n-1)/n for an all-reduce, (n-1)/n for the others.
func (k *Chorus) Share() float64 {
	n := float64(len(k.hosts))
	if k.c.Operation == AllReduce {
		return 2 * (n - 1) / n
	}
	return (n - 1) / n
}

// begin starts a round.
func (k *Chorus) begin(at units.Duration) {
	clear(k.got)
	clear(k.done)
	k.whole = 0
	r := Round{Start: at, Steps: make([]units.Duration, k.steps)}
	for i := range r.Steps {
		r.Steps[i] = units.Forever
	}
	k.rounds = append(k.rounds, r)
}

// Next yields the flows of the first step.
func (k *Chorus) Next(f *Flow) error {
	if k.sent == len(k.hosts)*k.each {
		return io.EOF
	}
	*f = k.make(k.sent/k.each, 0, k.sent%k.each, k.flow.Start)
	k.sent++
	k.pending--
	return nil
}

// Left implements Reactive.
func (k *Chorus) Left() int { return k.pending }

// part is the size in bytes of parts [lo, hi), of as many parts as there are hosts.
func (k *Chorus) part(lo, hi int) units.Bytes {
	n := uint64(len(k.hosts))
	at := func(i int) units.Bytes {
		h, l := bits.Mul64(uint64(k.c.Size), uint64(i))
		q, _ := bits.Div64(h, l, n)
		return units.Bytes(q)
	}
	return at(hi) - at(lo)
}

// span returns the destination and the parts [lo, hi) of the i-th message that a host, given by its place, sends in a
// step. gathers reports that the parts are final results and not to be added to the receiver's.
func (k *Chorus) span(place, step, i int) (to, lo, hi int, gathers bool) {
	n := len(k.hosts)
	gathers = k.c.Operation == AllGather || k.c.Operation == AllReduce && step >= k.steps/2
	switch {
	case k.c.Algorithm == Direct:
		to = (place + 1 + i) % n
		if lo = to; gathers { // an all-to-all does not gather
			lo = place
		}
		hi = lo + 1
	case k.c.Algorithm == Ring && k.c.Operation == AllToAllOf:
		to = (place + 1 + step) % n
		lo, hi = to, to+1
	case k.c.Algorithm == Ring:
		// Each step forwards the part received in the previous one.
		to = (place + 1) % n
		lo = (place - step%n + n) % n
		hi = lo + 1
	default:
		// When reducing, a host sends its partner the partner's half; when gathering, everything it has.
		half := len(k.hosts) >> (step + 1)
		if gathers {
			s := step
			if k.c.Operation == AllReduce {
				s -= k.steps / 2
			}
			half = 1 << s
		}
		to = place ^ half
		if lo = to &^ (half - 1); gathers {
			lo = place &^ (half - 1)
		}
		hi = lo + half
	}
	return to, lo, hi, gathers
}

// make builds the i-th message of a step.
func (k *Chorus) make(place, step, i int, at units.Duration) Flow {
	f := k.flow
	f.Start = at
	to, lo, hi, _ := k.span(place, step, i)
	f.Src, f.Dst, f.Size = k.hosts[place], k.hosts[to], k.part(lo, hi)
	f.ID = uint32(step*len(k.hosts) + to)
	return f
}

// Ended implements Reactive.
func (k *Chorus) Ended(f *Flow, acked bool, at units.Duration, out []Flow) []Flow {
	if acked {
		return out
	}
	n := len(k.hosts)
	step, place := int(f.ID)/n, int(f.ID)%n
	k.got[place*k.steps+step]++
	for k.done[place] < int32(k.steps) && k.got[place*k.steps+int(k.done[place])] == uint32(k.each) {
		s := int(k.done[place])
		k.done[place]++
		r := &k.rounds[len(k.rounds)-1]
		if r.Steps[s] == units.Forever || r.Steps[s] < at {
			r.Steps[s] = at
		}
		if s+1 < k.steps {
			out = k.send(place, s+1, later(at, k.c.Delay), out)
			continue
		}
		if k.whole++; k.whole == n && len(k.rounds) < k.c.Rounds {
			start := later(at, k.c.Pause)
			k.begin(start)
			for i := range k.hosts {
				out = k.send(i, 0, start, out)
			}
		}
	}
	return out
}

// send starts a step at a host.
func (k *Chorus) send(place, step int, at units.Duration, out []Flow) []Flow {
	for i := range k.each {
		out = append(out, k.make(place, step, i, at))
	}
	k.pending -= k.each
	return out
}
