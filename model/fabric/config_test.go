package fabric

import (
	"strings"
	"testing"

	"farflash/model/fabric/cc"
	"farflash/model/fabric/setting"
	"farflash/model/fabric/topo"
	"farflash/numeric/units"
	"farflash/sim"
)

func TestValidate(t *testing.T) {
	c := DefaultConfig()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		want   string
		change func(c *Config)
	}{
		{"payload: 0B is not possible", func(c *Config) { c.Payload = 0 }},
		{"payload: 20KiB is not possible", func(c *Config) { c.Payload = 20 * units.KiB }},
		{"header: 0B", func(c *Config) { c.Header = 0 }},
		{"queue_pairs.per_peer: 0", func(c *Config) { c.QueuePairs.PerPeer = 0 }},
		{"acks.every: 0", func(c *Config) { c.Acks.Every = 0 }},
		{"acks.size: 0B", func(c *Config) { c.Acks.Size = 0 }},
		{"acks.class: 8", func(c *Config) { c.Acks.Class = 8 }},
		{"acks.host_class: -1", func(c *Config) { c.Acks.HostClass = -1 }},
		{"acks.host_class: 0 lets ACKs ignore a pause", func(c *Config) { c.Acks.Class = 3 }},
		{"cnp.size: 0B", func(c *Config) { c.CNP.Size = 0 }},
		{"cnp.interval: -1ps", func(c *Config) { c.CNP.Interval = -1 }},
		{"cnp.interval: 0s is not possible where", func(c *Config) { c.CNP.Interval, c.CNP.Ticking = 0, true }},
		{"cnp.answers: none has no effect with hpcc, which needs no CNPs; use cnp, or congestion_control: dcqcn",
			func(c *Config) { c.CNP.Answers, c.CongestionControl.Algorithm = setting.NoticesNone, cc.SchemeHPCC }},
		{"recovery.first_timeout: -1ps is not possible; use 0s to 2min",
			func(c *Config) { *c = TCP(*c); c.Recovery.FirstTimeout = -1 }},
		{"recovery.first_timeout: 121s is not possible; use 0s to 2min",
			func(c *Config) { *c = TCP(*c); c.Recovery.FirstTimeout = 121 * units.Second }},
		{"recovery.first_timeout: 1s is for TCP; use 0s, or transport: tcp",
			func(c *Config) { c.Recovery.FirstTimeout = units.Second }},
		{"recovery.timeout: -1ps", func(c *Config) { c.Recovery.Timeout = Timeout{Time: -1} }},
		{"recovery.nack_interval: -1ps", func(c *Config) { c.Recovery.NackInterval = -1 }},
		{"recovery.short_timeout: 0s",
			func(c *Config) { c.Recovery.Kind, c.Recovery.ShortTimeout = SelectiveRepeat, 0 }},
		{"recovery.short_count: -1", func(c *Config) { c.Recovery.Kind, c.Recovery.ShortCount = SelectiveRepeat, -1 }},
		{"buffer: 0B", func(c *Config) { c.Buffer = 0 }},
		{"buffer: 1.105KB is not possible; use a packet's size, 1.106KB, or more",
			func(c *Config) { c.Buffer = c.Payload + c.Header - 1 }},
		{"buffer: 2TiB", func(c *Config) { c.Buffer = 2 * units.TiB }},
		{"pfc.alpha: 0%", func(c *Config) { c.PFC.Alpha = 0 }},
		{"pfc.threshold: 0B", func(c *Config) { c.PFC.Threshold = Threshold{} }},
		{"pfc.reserve: -1B", func(c *Config) { c.PFC.Reserve = -1 }},
		{"pfc.resume_offset: -1B", func(c *Config) { c.PFC.ResumeOffset = -1 }},
		{"pfc.headroom: -1B", func(c *Config) { c.PFC.Headroom.Size = -1 }},
		{"pfc.frame: 0B", func(c *Config) { c.PFC.Frame = 0 }},
		{"pfc.quanta: 65536", func(c *Config) { c.PFC.Quanta = 65536 }},
		{"pfc.quanta: 1 expires before it can be refreshed", func(c *Config) { c.PFC.Quanta = 1 }},
		{"ecn.rate: 0bps", func(c *Config) { c.ECN.Rate = 0 }},
		{"ecn.kmin: -1B", func(c *Config) { c.ECN.Kmin = -1 }},
		{"ecn.kmin: 500KB is above kmax, 400KB", func(c *Config) { c.ECN.Kmin = 500 * units.KB }},
		{"ecn.pmax: 200%", func(c *Config) { c.ECN.Pmax = 2 }},
		{"ecn.ports[0].rate: 0bps", func(c *Config) { c.ECN.Ports = []ECNPort{{}} }},
		{"ecn.ports[0].kmin: 2B is above kmax",
			func(c *Config) { c.ECN.Ports = []ECNPort{{Rate: 1, Kmin: 2, Kmax: 1}} }},
		{"weights: 9 classes", func(c *Config) { c.Weights = []int{1, 1, 1, 1, 1, 1, 1, 1, 1} }},
		{"weights[1]: 0", func(c *Config) { c.Weights = []int{1, 0} }},
		{"watchdog.after: -1ps", func(c *Config) { c.Watchdog.After = -1 }},
		{"telemetry.size: -1B", func(c *Config) { c.Telemetry.Size = -1 }},
		{"telemetry.ack_size: 2KiB", func(c *Config) { c.Telemetry.AckSize = 2 * units.KiB }},
		{"telemetry.multiple: -1", func(c *Config) { c.Telemetry.Multiple = -1 }},
	} {
		c := DefaultConfig()
		x.change(&c)
		err := c.Validate()
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("got %v, want %s", err, x.want)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: more than one complaint: %v", x.want, err)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	good := func() *topo.Graph { return star(t, 3, 100*units.Gbps, units.Microsecond) }
	for _, x := range []struct {
		want   string
		change func(c *Config, g *topo.Graph)
	}{
		{"payload: 0B", func(c *Config, g *topo.Graph) { c.Payload = 0 }},
		{"has no rate", func(c *Config, g *topo.Graph) { g.Links[0].Rate = 0 }},
		{"has no rate", func(c *Config, g *topo.Graph) { g.Links[0].Rate = -units.Gbps }},
		{"has a negative delay", func(c *Config, g *topo.Graph) { g.Links[0].Delay = -1 }},
		{"the link from h0 to s0 has a delay of 2s; use at most 1s",
			func(c *Config, g *topo.Graph) { g.Links[0].Delay = 2 * units.Second }},
		{"congestion_control.algorithm: (77) is not possible",
			func(c *Config, g *topo.Graph) { c.CongestionControl.Algorithm = cc.Scheme(77) }},
		{"congestion_control.min_rate: 0bps", func(c *Config, g *topo.Graph) { c.CongestionControl.MinRate = 0 }},
		{"buffer: 10KB is too small for s0, whose 3 ports take",
			func(c *Config, g *topo.Graph) { c.Buffer = 10 * units.KB }},
		{"buffer: 16MiB is too small for s0", func(c *Config, g *topo.Graph) {
			c.PFC.Headroom = setting.Headroom{Kind: HeadroomFixed, Size: 6 * units.MiB}
		}},
		{"acks.class: 7 is not possible with 2 virtual channels",
			func(c *Config, g *topo.Graph) { g.Channels, c.Acks.Class, c.Acks.HostClass = 2, 7, 7 }},
		{"the network needs 8 virtual channels", func(c *Config, g *topo.Graph) { g.Channels = 8 }},
		{"rounding: in whole nanoseconds",
			func(c *Config, g *topo.Graph) { c.Rounding, c.Payload, c.Header = WholeNanoseconds, 1, 1 }},
	} {
		c, g := DefaultConfig(), good()
		x.change(&c, g)
		_, err := New(c, g, sim.New(), nil, 1, "fabric")
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("got %v, want %s", err, x.want)
		}
	}
}

func TestCallsRefused(t *testing.T) {
	c := DefaultConfig()
	g := star(t, 3, 10*units.Gbps, units.Microsecond)
	r := newRig(t, c, g, 1)
	n := r.net
	// One class fits, a second one does not.
	for i := range n.nodes {
		if n.graph.Nodes[i].Kind == topo.Switch {
			c.Buffer -= units.Bytes(n.nodes[i].pool) - 1
		}
	}
	tight := newRig(t, c, g, 1).net
	if _, err := tight.Open(0, 1, 1); err != nil {
		t.Fatal(err)
	}
	was := len(tight.senders)
	_, second := tight.Open(0, 1, 2)
	if len(tight.senders) != was || tight.used != 2 || tight.nodes[3].pool != 1 {
		t.Error("a queue pair that was refused left something behind")
	}
	if _, err := tight.Open(0, 1, 1); err != nil {
		t.Errorf("after one that was refused: %v", err)
	}
	fail := func(_ any, err error) error { return err }
	q, err := n.Open(0, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	one := DefaultConfig()
	one.QueuePairs.Life = PerMessage
	done := newRig(t, one, g, 1)
	m := done.mustSend(t, 0, 1, 1, 1)
	done.run(t, 1e6)
	done.drained(t)
	for _, x := range []struct {
		want string
		err  error
	}{
		{"is too small for s0", second},
		{"no node 4; there are 4", fail(n.Open(0, 4, 1))},
		{"no node -1", fail(n.Open(-1, 0, 1))},
		{"s0 is a switch", fail(n.Open(0, 3, 1))},
		{"h1 cannot send to itself", fail(n.Open(1, 1, 1))},
		{"traffic class 0 is not possible; use 1 to 7", fail(n.Open(0, 1, 0))},
		{"traffic class 8 is not possible", fail(n.Send(0, 1, 8, 1))},
		{"a message of 0B", fail(n.Post(q, 0))},
		{"a message of 2TiB", fail(n.Post(q, 2*units.TiB))},
		{"no queue pair 5", fail(n.Post(5, 1))},
		{"no queue pair -1", fail(n.Post(-1, 1))},
		{"queue pair 0 has sent its one message", fail(done.net.Post(done.net.Messages()[m].QP, 1))},
		{"no link 3; there are 3", n.Fail(3, 0, 0)},
		{"cannot fail at -1ps", n.Fail(0, -1, 0)},
	} {
		if x.err == nil || !strings.Contains(x.err.Error(), x.want) {
			t.Errorf("got %v, want %s", x.err, x.want)
		}
	}
	c = DefaultConfig()
	c.Payload = 1
	small := newRig(t, c, g, 1).net
	if _, err := small.Send(0, 1, 1, units.TiB); err == nil ||
		!strings.Contains(err.Error(), "more than 2147483647 packets") {
		t.Errorf("a message of 2^40 packets: %v", err)
	}
}

// TestHazard names a ring in which pauses can deadlock.
func TestHazard(t *testing.T) {
	r := newRig(t, plain(), circleOf(t, 3), 1)
	if got := r.net.Hazard(); got != "" {
		t.Errorf("a ring of three has no path of three links, but: %s", got)
	}
	r = newRig(t, plain(), circleOf(t, 5), 1)
	if got := r.net.Hazard(); strings.Count(got, ">") != 5 {
		t.Errorf("a ring of five: %q", got)
	}
	c := plain()
	c.PFC.Enabled = false
	if got := newRig(t, c, circleOf(t, 5), 1).net.Hazard(); got != "" {
		t.Errorf("without PFC: %q", got)
	}
}
