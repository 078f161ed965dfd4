package cosim_test

import (
	"strings"
	"testing"

	"farflash/model/cosim"
	"farflash/model/fabric"
	"farflash/model/fabric/topo"
	"farflash/numeric/units"
	"farflash/sim"
	"farflash/workload/flows"
)

// TestCheckFlow verifies which flows are valid, with two hosts, after one at 5 us.
func TestCheckFlow(t *testing.T) {
	for _, c := range []struct {
		flow flows.Flow
		want string
	}{
		{flows.Flow{Src: 0, Dst: 1, Start: 5 * us}, ""},
		{flows.Flow{Src: 1, Dst: 0, Start: 6 * us}, ""},
		{flows.Flow{Src: 0, Dst: 1, Start: 5*us - 1}, "flow 7 starts at"},
		{flows.Flow{Src: -1, Dst: 1, Start: 5 * us}, "flow 7 goes from host -1 to host 1; there are 2 hosts"},
		{flows.Flow{Src: 0, Dst: -1, Start: 5 * us}, "flow 7 goes from host 0 to host -1"},
		{flows.Flow{Src: 2, Dst: 1, Start: 5 * us}, "flow 7 goes from host 2"},
		{flows.Flow{Src: 0, Dst: 2, Start: 5 * us}, "flow 7 goes from host 0 to host 2"},
	} {
		err := cosim.CheckFlow(&c.flow, 7, 5*us, 2)
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.flow, err, c.want)
		}
	}
}

// arrived records when messages have arrived.
type arrived struct {
	eng *sim.Engine
	at  []sim.Time
}

func (a *arrived) Delivered(int32) { a.at = append(a.at, a.eng.Now()) }
func (a *arrived) Acked(int32)     {}

// traffic runs flows between two hosts on a star, to the end.
func traffic(t *testing.T, list ...flows.Flow) (*cosim.Traffic, *arrived, error) {
	t.Helper()
	g, err := topo.Build(topo.Config{Star: &topo.Star{Hosts: 2}}, 100*units.Gbps, 100*units.Gbps, us)
	if err != nil {
		t.Fatal(err)
	}
	a := &arrived{eng: sim.New()}
	net, err := fabric.New(fabric.DefaultConfig(), g, a.eng, a, 1, "fabric")
	if err != nil {
		t.Fatal(err)
	}
	var hosts []int32
	for n := range int32(len(g.Nodes)) {
		if g.Nodes[n].Kind == topo.Host {
			hosts = append(hosts, n)
		}
	}
	x := cosim.NewTraffic(a.eng, net, flows.Slice(list), hosts)
	start := x.Start()
	a.eng.Run(sim.Forever)
	return x, a, start
}

// TestTraffic verifies that each flow is posted at its time, together with those of the same time, and that the traffic
// ends with its source.
func TestTraffic(t *testing.T) {
	x, a, err := traffic(t,
		flows.Flow{Src: 0, Dst: 1, Class: 3, Size: 1000, Start: 10 * us},
		flows.Flow{Src: 1, Dst: 0, Class: 3, Size: 1000, Start: 10 * us},
		flows.Flow{Src: 0, Dst: 1, Class: 3, Size: 1000, Start: 30 * us})
	if err != nil || x.Err() != nil || x.Posted() != 3 || !x.Ended() {
		t.Errorf("%v, %v: %d posted, ended: %v", err, x.Err(), x.Posted(), x.Ended())
	}
	if len(a.at) != 3 || a.at[0] < 12*us || a.at[1] != a.at[0] || a.at[2] != a.at[0]+20*us {
		t.Errorf("arrived at %v", a.at)
	}
	if x, a, err := traffic(t); err != nil || x.Posted() != 0 || !x.Ended() || len(a.at) > 0 {
		t.Errorf("no flows: %d posted, ended: %v, %v", x.Posted(), x.Ended(), err)
	}
}

// TestTrafficErrors verifies that an invalid flow ends the traffic, at once if it is the first and else when it is
// read, and that a flow that the network refuses ends it too.
func TestTrafficErrors(t *testing.T) {
	good := flows.Flow{Src: 0, Dst: 1, Class: 3, Size: 1000, Start: us}
	for _, c := range []struct {
		list   []flows.Flow
		posted uint64
		want   string
	}{
		{[]flows.Flow{{Src: 0, Dst: 2, Class: 3, Size: 1}}, 0, "flow 0 goes from host 0 to host 2"},
		{[]flows.Flow{good, {Src: 0, Dst: 1, Class: 3, Size: 1}}, 1, "flow 1 starts at 0s"},
		{[]flows.Flow{good, {Src: 0, Dst: 0, Class: 3, Size: 1, Start: us}, good}, 1, "flow 1: "},
	} {
		x, _, err := traffic(t, c.list...)
		if c.posted == 0 && err == nil {
			t.Errorf("%s: starts", c.want)
		}
		if x.Err() == nil || !strings.HasPrefix(x.Err().Error(), c.want) || x.Posted() != c.posted || !x.Ended() {
			t.Errorf("%v after %d, want %s", x.Err(), x.Posted(), c.want)
		}
	}
}
