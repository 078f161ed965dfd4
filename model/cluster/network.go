package cluster

import (
	"farflash/numeric/units"
	"farflash/sim"
)

// What lies between nodes may be a network of its own, packet by packet, in place of the core that never blocks.
// Every parcel is then one message of that network, and what is multicast is one for each receiver, for its transport
// is between two.

// Network carries messages from node to node; gateways come first, then targets. Package networktest has one in
// memory, and what all must do.
type Network interface {
	// Send sends so many bytes from a node to another and returns a number, not negative, with which
	// Cluster.Delivered is called once, when they have arrived, never before Send returns. No two messages have a
	// number at the same time; when Delivered has been called it may be used again. Control messages do not wait for
	// all data before them. An error ends the run.
	Send(from, to int32, size units.Bytes, control bool) (int32, error)
	// Busy is how long a node's link has been sending and receiving, until a time up to which the network has been
	// run: each at most that time, never less than at an earlier one.
	Busy(node int32, at sim.Time) (sent, got sim.Time)
	// Rate is what a node's links together carry of messages at most, in each direction; 1000Tbps stands for no limit.
	Rate(node int32) units.BitRate
	// Trip is the least time in which a message of so many bytes is from any node to another, beside that in which it
	// leaves its sender.
	Trip(size units.Bytes) sim.Time
}

// cargo is a parcel in flight to one of its receivers.
type cargo struct{ parcel, node int32 }

// Carry has a network carry everything; it is called before Start.
func (c *Cluster) Carry(n Network) { c.net, c.bus.Unpaced = n, true }

// ship gives a parcel to the network.
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

// Delivered is what the network calls when a message has arrived.
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
		"targets of %v look at what waits at their ports, and a packet network has its own; leave it out, or use "+
			"another protocol", c.Protocol)
	f.Hold(c.Link.Loss == 0, "link.loss",
		"a packet network loses what its switches drop, and sends it again itself; leave it out")
}
