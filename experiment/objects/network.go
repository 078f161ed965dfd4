package objects

import (
	"farflash/experiment/internal/networks"
	"farflash/model/cluster"
	"farflash/numeric/units"
	"farflash/scenario"
	"farflash/sim"
)

// Traffic classes of its messages: control before data, under strict priority.
const (
	clusterControl = 1
	clusterData    = 3
)

// clusterNet is the network of an object cluster.
type clusterNet struct {
	*networks.Network
	c    *cluster.Cluster
	host []int32 // of each node
}

// Delivered implements fabric.Sink.
func (n *clusterNet) Delivered(m int32) { n.c.Delivered(m) }

// Acked implements fabric.Sink.
func (n *clusterNet) Acked(m int32) { n.Net.Forget(m) }

// Send implements cluster.Network.
func (n *clusterNet) Send(from, to int32, size units.Bytes, control bool) (int32, error) {
	class := uint8(clusterData)
	if control {
		class = clusterControl
	}
	return n.Net.Send(n.host[from], n.host[to], class, size)
}

// Busy implements cluster.Network.
func (n *clusterNet) Busy(node int32, at sim.Time) (sent, got sim.Time) {
	return n.Net.LinksBusy(n.host[node], at)
}

// Rate implements cluster.Network.
func (n *clusterNet) Rate(node int32) units.BitRate { return n.Net.Goodput(n.host[node]) }

// Trip implements cluster.Network.
func (n *clusterNet) Trip(size units.Bytes) sim.Time { return n.Net.LeastTrip(size, n.host) }

// carry builds the network, if the scenario has one.
func carry(s *scenario.Scenario, c *cluster.Cluster, eng *sim.Engine, seed uint64) (*clusterNet, error) {
	if s.ObjectCluster.Core != cluster.CorePacket {
		return nil, nil
	}
	n := &clusterNet{Network: networks.New(s, eng), c: c}
	n.Others = func(int32) bool { return true }
	if err := n.Make(seed, n); err != nil {
		return nil, err
	}
	if err := n.Use(1<<clusterControl | 1<<clusterData); err != nil {
		return nil, err
	}
	var err error
	if n.host, err = s.ClusterHosts(n.Hosts); err != nil {
		return nil, err
	}
	c.Carry(n)
	return n, nil
}
