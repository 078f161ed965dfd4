package nvmftest_test

import (
	"fmt"
	"testing"

	"farflash/model/fabric"
	"farflash/model/fabric/topo"
	"farflash/model/nvmf/nvmftest"
	"farflash/numeric/units"
	"farflash/sim"
)

func TestMemory(t *testing.T) {
	nvmftest.Conform(t, func(t *testing.T, sink fabric.Sink) nvmftest.Subject {
		eng := sim.New()
		return nvmftest.Subject{Fabric: nvmftest.New(nvmftest.DefaultConfig(), eng, sink), Engine: eng,
			Nodes: []int32{0, 4, 7}, Persistent: true}
	})
}

// The simulated network satisfies the contract, with persistent queue pairs and with one per message, with every kind
// of recovery and congestion control.
func TestSimulated(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*fabric.Config)
	}{
		{"go-back-N", func(*fabric.Config) {}},
		{"selective repeat", func(c *fabric.Config) { c.Recovery.Kind = fabric.SelectiveRepeat }},
		{"two queue pairs a peer", func(c *fabric.Config) { c.QueuePairs.PerPeer = 2 }},
		{"one for each message", func(c *fabric.Config) { c.QueuePairs.Life = fabric.PerMessage }},
	} {
		t.Run(c.name, func(t *testing.T) {
			nvmftest.Conform(t, func(t *testing.T, sink fabric.Sink) nvmftest.Subject {
				cfg := fabric.DefaultConfig()
				c.change(&cfg)
				g, err := topo.Build(topo.Config{Star: &topo.Star{Hosts: 3}}, 40*units.Gbps, 40*units.Gbps,
					units.Microsecond)
				if err != nil {
					t.Fatal(err)
				}
				s := nvmftest.Subject{Engine: sim.New(), Persistent: cfg.QueuePairs.Life == fabric.Persistent}
				if s.Fabric, err = fabric.New(cfg, g, s.Engine, sink, 1, "fabric"); err != nil {
					t.Fatal(err)
				}
				for i, n := range g.Nodes {
					if n.Kind == topo.Host {
						s.Nodes = append(s.Nodes, int32(i))
					}
				}
				return s
			})
		})
	}
}

// printer prints messages' arrivals and acknowledgements.
type printer struct{ eng *sim.Engine }

func (p printer) Delivered(m int32) { fmt.Println("message", m, "arrived at", p.eng.Now()) }
func (p printer) Acked(m int32)     { fmt.Println("message", m, "acknowledged at", p.eng.Now()) }

func Example() {
	eng := sim.New()
	net := nvmftest.New(nvmftest.DefaultConfig(), eng, printer{eng})
	q, err := net.Open(0, 1, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	net.Post(q, 8192)
	net.Post(q, 4096)
	eng.Run(sim.Forever)
	// Output:
	// message 0 arrived at 12us
	// message 1 arrived at 13us
	// message 0 acknowledged at 17us
	// message 1 acknowledged at 18us
}

// The network in memory detects owners that break their side of the contract: a number forgotten early, or twice, or
// used afterwards.
func TestOwners(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(net *nvmftest.Network, m int32, run func())
	}{
		{"early", func(net *nvmftest.Network, m int32, _ func()) { net.Forget(m) }},
		{"twice", func(net *nvmftest.Network, m int32, run func()) { run(); net.Forget(m); net.Forget(m) }},
		{"afterwards", func(net *nvmftest.Network, m int32, run func()) { run(); net.Forget(m); net.Begun(m) }},
	} {
		eng := sim.New()
		net := nvmftest.New(nvmftest.DefaultConfig(), eng, nobody{})
		m, err := net.Send(0, 1, 3, 100)
		if err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: nothing was said", c.name)
				}
			}()
			c.do(net, m, func() { eng.Run(sim.Forever) })
		}()
	}
}

type nobody struct{}

func (nobody) Delivered(int32) {}
func (nobody) Acked(int32)     {}
