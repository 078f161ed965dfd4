package examples

import (
	"testing"

	"farflash/model/fabric"
	"farflash/model/fabric/cc"
	"farflash/model/fabric/topo"
	"farflash/numeric/units"
	"farflash/sim"
)

// Halving is a custom congestion control, as a program outside of Farflash might implement it: a marked acknowledgement
// halves the rate, at most once per round trip; an unmarked one adds Step.
type Halving struct {
	Step units.BitRate
	cut  []sim.Time // time of the last halving, by queue pair
}

// Wants implements cc.Algorithm.
func (*Halving) Wants() cc.Wants { return cc.Wants{Acks: true} }

// Start implements cc.Algorithm.
func (h *Halving) Start(q int32, s *cc.Sender) {
	for int(q) >= len(h.cut) {
		h.cut = append(h.cut, 0)
	}
	h.cut[q] = 0
	s.Rate, s.Window, s.Wake = s.Line, 0, sim.Forever
}

// React implements cc.Algorithm.
func (h *Halving) React(q int32, s *cc.Sender, x *cc.Signal) {
	switch {
	case x.Kind != cc.Ack:
	case !x.Marked:
		s.Rate = min(s.Rate+h.Step, s.Line)
	case x.Now >= h.cut[q]+s.BaseRTT:
		s.Rate, h.cut[q] = max(s.Rate/2, units.Gbps), x.Now
	}
}

// arrivals counts the delivered messages.
type arrivals struct{ count int }

func (a *arrivals) Delivered(int32) { a.count++ }
func (a *arrivals) Acked(int32)     {}

// TestCongestionControlOfOnesOwn sends from eight senders to one receiver. With the custom congestion control all
// messages arrive in little more than the receiver's link time, without packet loss, and the queue in front of the
// link stays far shorter than without congestion control.
func TestCongestionControlOfOnesOwn(t *testing.T) {
	const senders, size = 8, 4 * units.MB
	run := func(alg cc.Algorithm) (end sim.Time, deepest units.Bytes) {
		g, err := topo.Build(topo.Config{Star: &topo.Star{Hosts: senders + 1}}, 100*units.Gbps, 100*units.Gbps,
			units.Microsecond)
		if err != nil {
			t.Fatal(err)
		}
		eng, sink := sim.New(), &arrivals{}
		net, err := fabric.NewUnder(alg, fabric.DefaultConfig(), g, eng, sink, 1, "fabric")
		if err != nil {
			t.Fatal(err)
		}
		var hosts []int32
		for n := range int32(len(g.Nodes)) {
			if g.Nodes[n].Kind == topo.Host {
				hosts = append(hosts, n)
			}
		}
		for _, from := range hosts[1:] {
			if _, err := net.Send(from, hosts[0], 3, size); err != nil {
				t.Fatal(err)
			}
		}
		eng.Run(sim.Forever)
		if err := net.Check(); err != nil {
			t.Error(err)
		}
		if sink.count != senders {
			t.Errorf("%d of %d messages arrived", sink.count, senders)
		}
		for _, m := range net.Messages() {
			end = max(end, m.Delivered)
		}
		for p := range int32(net.Ports()) {
			deepest = max(deepest, net.Port(p).MaxQueue)
		}
		return end, deepest
	}
	greedy, err := cc.NewNone(cc.DefaultConfig().None, units.Gbps)
	if err != nil {
		t.Fatal(err)
	}
	_, without := run(greedy)
	end, with := run(&Halving{Step: 50 * units.Mbps})
	least := (100 * units.Gbps).TimeFor(senders * size)
	if end < least || end > least*5/4 {
		t.Errorf("it ends after %v, and the link takes %v", end, least)
	}
	if with > without/2 {
		t.Errorf("the deepest queue is %v, %v without congestion control", with, without)
	}
}
