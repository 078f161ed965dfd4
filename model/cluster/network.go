package cluster

import (
	"farflash/numeric/units"
	"farflash/sim"
)

// A packet-level network can replace the ideal core. Every parcel is then one message of that network, and a multicast
// is one message for each receiver, because transports are point to point.

// Network carries messages between nodes; gateways are numbered first, then targets. Package networktest has an
// in-memory implementation and a conformance test.
type Network interface {
	// Send sends size bytes from one node to another and returns a non-negative number. Cluster.Delivered is called
	// with it exactly once, when all bytes have arrived, and never before Send returns. Numbers of messages in flight
	// are unique; a number may be reused after Delivered has been called with it. Control messages do not queue behind
	// all earlier data. An error ends the run.
	Send(from, to int32, size units.Bytes, control bool) (int32, error)
	// Busy returns how long a node's link has been sending and receiving up to at, a time up to which the network has
	// run. Each value is at most at, and never decreases.
	Busy(node int32, at sim.Time) (sent, got sim.Time)
	// Rate returns the most that a node's links together carry of messages, in each direction; 1000Tbps stands for no
	// limit.
	Rate(node int32) units.BitRate
	// Trip returns the minimum latency of a message of the given size between any two nodes, excluding its transmission
	// time at the sender.
	Trip(size units.Bytes) sim.Time
}

// cargo is a parcel in flight to one of its receivers.
type cargo struct{ parcel, node int32 }

// Carry has a network carry all messages and frames. It must be called before Start.
func (c *Cluster) Carry(n Network) { c.net, c.bus.Unpaced = n, true }

// ship hands a parcel to the network.
func (c *Cluster) ship(from, i int32) {
	p := &c.parcels.Items[i]
	for _, to := range c.to(p) {
		m, err := c.net.Send(from, to, p.size, !p.data)
		if err != nil {
			if c.err == nil {
				c.err = err
			}
			return
		}
		for int(m) >= len(c.cargo) {
			c.cargo = append(c.cargo, cargo{-1, -1})
		}
		c.cargo[m] = cargo{i, to}
	}
}

// Delivered is called by the network when message m has arrived.
func (c *Cluster) Delivered(m int32) {
	x := c.cargo[m]
	c.comesIn(x.parcel, x.node)
}

func (c *Config) checkCore(f *units.Faults) {
	if c.Core != CorePacket {
		return
	}
	f.Hold(c.Control.Queued, "core", "a packet network needs control.queued: true")
	f.Hold(!c.Protocol.traits().SeesPorts, "core",
		"targets of %v inspect the queues at their ports, and a packet network has its own; leave it out, or use "+
			"another protocol", c.Protocol)
	f.Hold(c.Link.Loss == 0, "link.loss",
		"a packet network retransmits what its switches drop; leave it out")
}
