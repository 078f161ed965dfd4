package fabric_test

import (
	"math"
	"testing"

	"farflash/internal/hostile"
	"farflash/internal/patience"
	"farflash/model/fabric"
	"farflash/model/fabric/cc"
	"farflash/model/fabric/topo"
	"farflash/numeric/units"
	"farflash/sim"
)

// receiver counts the messages that a network delivers and acknowledges.
type receiver struct{ delivered, acked int }

func (r *receiver) Delivered(int32) { r.delivered++ }
func (r *receiver) Acked(int32)     { r.acked++ }

// shape returns a leaf-spine network of four hosts.
func shape(t testing.TB) *topo.Graph {
	t.Helper()
	g, err := topo.Build(topo.Config{LeafSpine: &topo.LeafSpine{Leaves: 2, Spines: 2, HostsPerLeaf: 2}},
		100*units.Gbps, 100*units.Gbps, units.Microsecond)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestArguments verifies that what a network cannot be, and cannot do, is an error or refused.
func TestArguments(t *testing.T) {
	refused := hostile.Check(t, "fabric")
	cfg, g := fabric.DefaultConfig(), shape(t)
	made := func() (*sim.Engine, *fabric.Network) {
		eng := sim.New()
		n, err := fabric.New(cfg, g, eng, nil, 1, "net")
		if err != nil {
			t.Fatal(err)
		}
		return eng, n
	}
	failed := func(_ any, err error) error { return err }
	refused("nil graph", func() error { return failed(fabric.New(cfg, nil, sim.New(), nil, 1, "")) }, "is nil")
	refused("nil engine", func() error { return failed(fabric.New(cfg, g, nil, nil, 1, "")) }, "is nil")
	refused("nil algorithm", func() error {
		return failed(fabric.NewUnder(nil, cfg, g, sim.New(), nil, 1, ""))
	}, "is nil")
	refused("empty graph", func() error { return failed(fabric.New(cfg, &topo.Graph{}, sim.New(), nil, 1, "")) },
		"no host")
	refused("no configuration", func() error { return failed(fabric.New(fabric.Config{}, g, sim.New(), nil, 1, "")) },
		"not possible")
	refused("pools without times", func() error {
		c := cfg
		c.Pools = &fabric.Pools{}
		return failed(fabric.New(c, g, sim.New(), nil, 1, ""))
	}, "pools: a pause of 0s")
	for _, c := range []struct {
		name string
		do   func(n *fabric.Network) error
		want string
	}{
		{"from nowhere", func(n *fabric.Network) error { return failed(n.Open(-1, 1, 1)) }, "no node -1"},
		{"to nowhere", func(n *fabric.Network) error { return failed(n.Send(0, 99, 1, 1)) }, "no node 99"},
		{"to a switch", func(n *fabric.Network) error { return failed(n.Pair(0, 4, 1)) }, "is a switch"},
		{"to itself", func(n *fabric.Network) error { return failed(n.Send(1, 1, 1, 1)) }, "to itself"},
		{"class", func(n *fabric.Network) error { return failed(n.Open(0, 1, 255)) }, "class 255"},
		{"used class", func(n *fabric.Network) error { return n.Use(255) }, "class 255"},
		{"no size", func(n *fabric.Network) error { return failed(n.Send(0, 1, 1, 0)) }, "message of 0"},
		{"size", func(n *fabric.Network) error { return failed(n.Send(0, 1, 1, math.MaxInt64)) }, "not possible"},
		{"queue pair", func(n *fabric.Network) error { return failed(n.Post(7, 1)) }, "no queue pair 7"},
		{"asked on no queue pair", func(n *fabric.Network) error { return failed(n.Ask(-1, 1)) }, "no queue pair -1"},
		{"answer to no request", func(n *fabric.Network) error { return failed(n.Answer(0, 1, -1)) }, "no request -1"},
		{"responder", func(n *fabric.Network) error { return failed(n.Respond(7, 8)) }, "no queue pair 7"},
		{"link", func(n *fabric.Network) error { return n.Fail(99, 0, 1) }, "no link 99"},
		{"failure in the past", func(n *fabric.Network) error { return n.Fail(0, -1, 1) }, "cannot fail"},
		{"parts of no nodes", func(n *fabric.Network) error { return failed(n.Divide(nil, nil, false)) },
			"parts of 0 nodes"},
		{"node in no part", func(n *fabric.Network) error {
			return failed(n.Divide(make([]int32, 8), nil, false))
		}, "in none of the parts"},
		{"node in a negative part", func(n *fabric.Network) error {
			return failed(n.Divide([]int32{0, 0, 0, 0, 0, 0, 0, -1}, make([]fabric.Sink, 1), false))
		}, "in none of the parts"},
		{"forgotten", func(n *fabric.Network) error { n.Forget(0); return nil }, "no message"},
		{"begun", func(n *fabric.Network) error { n.Begun(-1); return nil }, "no message -1"},
		{"ideal", func(n *fabric.Network) error { n.Ideal(3); return nil }, "no message 3"},
		{"port", func(n *fabric.Network) error { n.Port(99); return nil }, "no port 99"},
		{"busy", func(n *fabric.Network) error { n.Busy(-1, 0); return nil }, "no port -1"},
		{"links", func(n *fabric.Network) error { n.LinksBusy(99, 0); return nil }, "no node 99"},
		{"goodput", func(n *fabric.Network) error { n.Goodput(-1); return nil }, "no node -1"},
		{"least trip", func(n *fabric.Network) error { n.LeastTrip(1, []int32{99}); return nil }, "no node 99"},
		{"port of a link", func(n *fabric.Network) error { n.PortOf(99, true); return nil }, "no link 99"},
		{"rate", func(n *fabric.Network) error { n.Rate(0); return nil }, "no queue pair 0"},
		{"progress", func(n *fabric.Network) error { n.Progress(-1); return nil }, "no queue pair -1"},
		{"node", func(n *fabric.Network) error { n.Node(99); return nil }, "no port 99"},
		{"port number", func(n *fabric.Network) error { n.PortNumber(99); return nil }, "no port 99"},
		{"port name", func(n *fabric.Network) error { n.PortName(99); return nil }, "no port 99"},
		{"node name", func(n *fabric.Network) error { n.NodeName(99); return nil }, "no node 99"},
		{"cycle", func(n *fabric.Network) error { n.CycleName([]int32{-1}); return nil }, "no port -1"},
	} {
		refused(c.name, func() error { _, n := made(); return c.do(n) }, c.want)
	}
	eng, n := made()
	n.Reserve(-1)
	if n.Known(5) || n.Known(-1) || n.Connected(-1, 0) || n.Connected(0, 99) {
		t.Error("messages and nodes that do not exist are known")
	}
	m, err := n.Send(0, 1, 1, 1000)
	if err != nil {
		t.Fatal(err)
	}
	eng.Run(sim.Forever)
	n.Forget(m)
	refused("forgotten twice", func() error { n.Forget(m); return nil }, "no message")
	_, n = made()
	p, err := n.Divide(make([]int32, 8), make([]fabric.Sink, 1), false)
	if err != nil {
		t.Fatal(err)
	}
	refused("divided twice", func() error { return failed(n.Divide(make([]int32, 8), make([]fabric.Sink, 1), false)) },
		"in parts already")
	refused("plan from nowhere", func() error { return failed(p.Plan(fabric.Flow{Src: 99})) }, "no node 99")
	refused("plan in the past", func() error {
		return failed(p.Plan(fabric.Flow{Dst: 1, Class: 1, Size: 1, Start: -1}))
	}, "cannot start")
	refused("part", func() error { p.Engine(1); return nil }, "no part 1")
	refused("run part", func() error { p.Run(-1); return nil }, "no part -1")
	refused("forget of a part", func() error { p.Forget(1, 0); return nil }, "no part 1")
	refused("pauses of a part", func() error { p.OnPause(1, nil); return nil }, "no part 1")
}

// FuzzNetwork sends what the input says through a network that the input configures, while links fail as it says. It
// refuses the configuration, or its laws hold and every message is acknowledged once, unless its path is severed.
func FuzzNetwork(f *testing.F) {
	f.Add([]byte{0, 0, 1, 0, 1, 1, 9, 0, 2, 1, 9, 0, 3, 1, 9, 3, 100, 1, 1, 0, 1, 9})
	f.Add([]byte{4, 1, 0, 0, 1, 200, 1, 0, 0, 1, 2, 9, 0, 1, 2, 1, 9, 200, 3, 1, 9, 4, 3, 100, 5, 1, 0, 1, 9, 9, 9})
	f.Add([]byte("messages of all sizes between all hosts, while links fail and come up again"))
	f.Fuzz(func(t *testing.T, in []byte) {
		defer patience.Limit()()
		if len(in) > 400 {
			return
		}
		code := hostile.Code(in)
		cfg := fabric.DefaultConfig()
		cfg.CongestionControl.Algorithm = []cc.Scheme{cc.SchemeNone, cc.SchemeDCQCN, cc.SchemeHPCC, cc.SchemeSwift,
			cc.SchemeTimely}[code.Below(5)]
		code.Change(&cfg, code.Below(5))
		eng, r := sim.New(), &receiver{}
		n, err := fabric.New(cfg, shape(t), eng, r, 1, "net")
		if err != nil || cfg.Payload < 256 { // small packets are no different, and slow
			return
		}
		sent, fails := 0, false
		for range 40 {
			if !code.More() {
				break
			}
			hostile.Refused(t, "fabric", func() {
				switch code.Below(6) {
				case 0, 1, 2:
					size := units.Bytes(code.Byte()) * 100
					if code.Below(10) == 9 {
						if size = units.Bytes(code.Int()); size > units.MiB && size < 1<<40 {
							return
						}
					}
					if _, err := n.Send(int32(code.Below(5)), int32(code.Below(5)), uint8(code.Below(10)),
						size); err == nil {
						sent++
					}
				case 3:
					eng.Run(eng.Now() + units.Duration(code.Byte())*units.Microsecond)
				case 4:
					at := eng.Now() + units.Duration(code.Byte())
					fails = n.Fail(int32(code.Int()), at, at+units.Duration(code.Byte())*units.Microsecond) == nil ||
						fails
				default:
					i := int32(code.Int())
					n.Known(i)
					n.Port(i)
					n.Begun(i)
					n.Rate(fabric.QP(i))
				}
			})
		}
		hostile.Refused(t, "fabric", func() { eng.Run(eng.Now() + units.Second) })
		if err := n.Check(); err != nil {
			t.Error(err)
		}
		if r.acked > sent || r.delivered > sent {
			t.Errorf("%d messages sent, %d delivered, %d acknowledged", sent, r.delivered, r.acked)
		}
	})
}
