package cc_test

import (
	"fmt"

	"farflash/model/fabric/cc"
	"farflash/numeric/units"
	"farflash/sim"
)

// Gentle is a user-defined congestion control: it halves the rate when a round trip has seen a mark and otherwise adds
// a fixed step, once per round trip.
type Gentle struct {
	Step, Least units.BitRate
	pairs       []gentlePair // by queue pair
}

// gentlePair is Gentle's state of a queue pair.
type gentlePair struct {
	round  uint64 // an acknowledgement beyond this ends the round trip
	marked bool
}

// Wants selects the signals that the network reports: acknowledgements, which carry the marks.
func (g *Gentle) Wants() cc.Wants { return cc.Wants{Acks: true} }

// Start is called when queue pair q is opened, or when its index is reused.
func (g *Gentle) Start(q int32, s *cc.Sender) {
	for int(q) >= len(g.pairs) {
		g.pairs = append(g.pairs, gentlePair{})
	}
	g.pairs[q] = gentlePair{}
	s.Rate, s.Window, s.Wake = s.Line, 0, sim.Forever
}

// React is called for every acknowledgement.
func (g *Gentle) React(q int32, s *cc.Sender, x *cc.Signal) {
	if x.Kind != cc.Ack {
		return
	}
	p := &g.pairs[q]
	p.marked = p.marked || x.Marked
	if x.Acked <= p.round {
		return
	}
	if p.marked {
		s.Rate = max(g.Least, s.Rate/2)
	} else {
		s.Rate = min(s.Line, s.Rate+g.Step)
	}
	*p = gentlePair{round: x.Next}
}

// A user-defined algorithm is a type with three methods.
func Example_ownAlgorithm() {
	var a cc.Algorithm = &Gentle{Step: units.Gbps, Least: 100 * units.Mbps}
	s := cc.Sender{Line: 40 * units.Gbps, BaseRTT: 8 * units.Microsecond}
	a.Start(0, &s)
	for _, x := range []cc.Signal{
		{Acked: 1000, Next: 40000},               // the first round trip
		{Acked: 2000, Next: 41000, Marked: true}, // within the second
		{Acked: 41000, Next: 80000},              // its end
		{Acked: 81000, Next: 120000},             // the third, without marks
	} {
		a.React(0, &s, &x)
		fmt.Println(s.Rate)
	}
	// Output:
	// 40Gbps
	// 40Gbps
	// 20Gbps
	// 21Gbps
}

// Under DCQCN a congestion notification cuts a queue pair's rate; the queue pair requests a timer for its recovery.
func Example() {
	a, err := cc.New(cc.DefaultConfig(), 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	s := cc.Sender{Line: 40 * units.Gbps, BaseRTT: 8 * units.Microsecond, BDP: 40 * units.KB, MTU: 1000}
	a.Start(0, &s)
	a.React(0, &s, &cc.Signal{Kind: cc.CNP, Now: 100 * units.Microsecond})
	fmt.Println(s.Rate, s.Wake)
	for range 3 {
		at := s.Wake
		s.Wake = sim.Forever
		a.React(0, &s, &cc.Signal{Kind: cc.Timer, Now: at})
		fmt.Println(s.Rate, s.Wake)
	}
	// Output:
	// 20Gbps 155us
	// 30Gbps 210us
	// 35Gbps 265us
	// 37.5Gbps 320us
}

// The equilibrium of four long flows under DCQCN, by its fluid model.
func ExampleFixedPoint() {
	e, err := cc.FixedPoint(cc.DefaultDCQCN(), cc.Bottleneck{
		Flows: 4, Capacity: 40 * units.Gbps, Packet: 1048, CNPInterval: 50 * units.Microsecond,
		KMin: 5 * units.KB, KMax: 200 * units.KB, PMax: 0.01,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%v each, %.2f%% marked, alpha %.3f, %.0f KB in the queue\n", e.Rate, 100*e.P, e.Alpha,
		float64(e.Queue)/1000)
	// Output:
	// 10Gbps each, 0.20% marked, alpha 0.122, 44 KB in the queue
}
