package networktest_test

import (
	"testing"

	"farflash/model/cluster"
	"farflash/model/cluster/networktest"
	"farflash/model/fabric"
	"farflash/model/fabric/topo"
	"farflash/numeric/units"
	"farflash/sim"
)

const (
	rate = 10 * units.Gbps
	trip = units.Microsecond
)

// TestMemory tests the in-memory network against the contract.
func TestMemory(t *testing.T) {
	networktest.Conform(t, func(_ *testing.T, delivered func(m int32)) networktest.Subject {
		eng := sim.New()
		return networktest.Subject{Network: networktest.New(eng, rate, trip, delivered), Nodes: 8, Rate: rate,
			Trip: trip, Engine: eng}
	})
}

// packets is a network of package fabric as a cluster uses it: hosts of a star, two classes.
type packets struct {
	net       *fabric.Network
	delivered func(m int32)
}

func (p *packets) Send(from, to int32, size units.Bytes, control bool) (int32, error) {
	class := uint8(3)
	if control {
		class = 1
	}
	return p.net.Send(from, to, class, size)
}

func (p *packets) Busy(node int32, at sim.Time) (sent, got sim.Time) {
	return p.net.LinksBusy(node, at)
}

func (p *packets) Rate(node int32) units.BitRate { return p.net.Goodput(node) }

func (p *packets) Trip(size units.Bytes) sim.Time {
	return p.net.LeastTrip(size, []int32{0, 1, 2, 3, 4, 5, 6, 7})
}

func (p *packets) Delivered(m int32) { p.delivered(m) }
func (p *packets) Acked(m int32)     { p.net.Forget(m) }

// TestPackets tests packet-level networks against the contract.
func TestPackets(t *testing.T) {
	networktest.Conform(t, func(t *testing.T, delivered func(m int32)) networktest.Subject {
		const hosts = 8
		g, err := topo.Build(topo.Config{Star: &topo.Star{Hosts: hosts}}, rate, rate, trip/2)
		if err != nil {
			t.Fatal(err)
		}
		eng, p := sim.New(), &packets{delivered: delivered}
		if p.net, err = fabric.New(fabric.DefaultConfig(), g, eng, p, 1, "fabric"); err != nil {
			t.Fatal(err)
		}
		return networktest.Subject{Network: p, Nodes: hosts, Rate: rate, Trip: trip, Engine: eng}
	})
}

// TestCluster verifies that every protocol that such a network can carry puts chunks over the in-memory network, that
// all messages arrive, and that a lone frame takes the network's time.
func TestCluster(t *testing.T) {
	for _, p := range cluster.SharedSchemes() {
		cfg := cluster.DefaultConfig()
		cfg.Protocol, cfg.Core, cfg.Gateways, cfg.Targets, cfg.Chunk = p, cluster.CorePacket, 9, 18, 32*units.KiB
		cfg.Reads, cfg.Objects = 0.25, 100
		if cfg.Validate() != nil {
			continue // its targets observe ports
		}
		eng := sim.New()
		c, err := cluster.New(cfg, eng, 1)
		if err != nil {
			t.Fatal(err)
		}
		net := networktest.New(eng, rate, trip, c.Delivered)
		c.Carry(net)
		sent, got := 0, 0
		c.OnSend = func(x *cluster.Passage) { sent += len(x.To) }
		c.OnReceive = func(x *cluster.Passage) {
			got++
			if want := x.Sent + rate.TimeFor(x.Size) + trip; x.Received != want {
				t.Fatalf("%v: %+v, not received at %v", p, x, want)
			}
		}
		c.Start()
		eng.Run(5 * units.Millisecond)
		if err := c.Check(); err != nil {
			t.Errorf("%v: %v", p, err)
		}
		if err := c.Err(); err != nil {
			t.Errorf("%v: %v", p, err)
		}
		if k := &c.Counters; k.Done == 0 || k.Gets.Done == 0 || sent != got+net.Under() {
			t.Errorf("%v: %d sent, %d received, %d on their path; %+v", p, sent, got, net.Under(), k)
		}
	}
}
