package cc

import (
	"farflash/numeric/units"
	"farflash/sim"
)

// NDP configures receivers that pull (Handley et al., "Re-architecting datacenter networks and stacks for low latency
// and high performance", SIGCOMM 2017, section 3). A sender sends its first window at line rate, then one packet per
// pull. A receiver pulls once for each packet that arrives, whole or trimmed, serving its senders in turn at the pace
// of full packets on its own link. Use it with trimming, since a dropped packet is never pulled again, and with packets
// sprayed over all paths. A queue pair that has received everything sends the pulls that it owes at once, as credit for
// later data, as in EQDS (Olteanu et al., NSDI 2022). Left out: headers that return to the sender, and priorities among
// senders.
type NDP struct {
	// Window is the number of packets that a queue pair sends before the first pull. 0 is the bandwidth-delay product
	// (the paper's section 3.2). Fewer leave part of the first round trip unused; with more, trimming increases when
	// many senders start at once.
	Window int
}

// defaultNDP returns the paper's settings.
func defaultNDP() NDP { return NDP{} }

// validate reports invalid settings.
func (c NDP) validate() error {
	var f faults
	f.Hold(c.Window >= 0 && c.Window <= mostPackets, "window",
		"%d is not possible; it must be 1 to 1000000 packets, or 0 for the bandwidth-delay product", c.Window)
	return f.Err()
}

// ndp is NDP's sender.
type ndp struct {
	c     NDP
	first []int32 // packets of the first window, by queue pair
}

// newNDP returns NDP. The receivers' side is in package fabric.
func newNDP(c NDP) (Algorithm, error) {
	if err := units.Within("ndp", c.validate()); err != nil {
		return nil, err
	}
	return &ndp{c: c}, nil
}

// Wants asks for pulls, and for sent packets and timeouts, which credit depends on.
func (*ndp) Wants() Wants { return Wants{Acks: true, Sent: true, Pulls: true} }

// Start grants the first window.
func (n *ndp) Start(q int32, s *Sender) {
	n.first = grow(n.first, q)
	mtu := s.mtu()
	packets := int32(n.c.Window)
	if packets == 0 {
		packets = int32(max(1, (int64(s.BDP)+mtu-1)/mtu))
	}
	n.first[q] = packets
	s.Rate, s.Wake, s.Credit, s.Window = s.Line, sim.Forever, packets, units.Bytes(int64(packets)*mtu)
}

// React keeps the credit. It never exceeds the first window: the packets in flight, those still to be pulled for and
// the credit add up to that many. After a timeout none of them is in flight any more.
func (n *ndp) React(q int32, s *Sender, x *Signal) {
	switch x.Kind {
	case Sent:
		s.Credit--
	case Pull:
		s.Credit = min(s.Credit+x.Pulls, n.first[q])
	case Timeout:
		s.Credit = n.first[q]
	}
}
