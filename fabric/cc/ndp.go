package cc

import (
	"farflash/sim"
	"farflash/units"
)

// NDP configures receivers that pull, as NDP does (Handley et al., "Re-architecting datacenter networks and stacks for low latency and high performance", SIGCOMM 2017, section 3): a sender sends
// its first window at once and at its link's rate, and after that one packet for each that it is pulled for. A receiver pulls once for each packet that comes, whether as a whole or cut off by a switch,
// and pulls from all who send to it in turn, at the pace at which its own link takes full packets in; so the link is busy, and whatever is on its way fits it. It goes with trimming, since nobody pulls for what a
// switch drops without a word, and with packets spread over all ways.
//
// What it leaves out: sending headers back that find no room, priorities of receivers among who they pull from, and the credit that EQDS keeps for queue pairs that have nothing to send.
type NDP struct {
	// Window is how many packets a queue pair sends without being pulled for; 0 is as many as fill its way, the bandwidth-delay product (the paper's section 3.2). With fewer the first round trip is not
	// used in full, with more there is more to trim when many begin at once.
	Window int
}

// DefaultNDP is the paper's.
func DefaultNDP() NDP { return NDP{} }

// Validate says what is wrong with c, if anything.
func (c NDP) Validate() error {
	var f faults
	f.Hold(c.Window >= 0 && c.Window <= mostPackets, "window", "%d is not possible; it must be 1 to 1000000 packets, or 0 for as many as fill the way", c.Window)
	return f.Err()
}

// ndp is NDP's sender.
type ndp struct {
	c     NDP
	first []int32 // packets of the first window, by queue pair
}

// NewNDP returns NDP. What receivers do is package fabric's.
func NewNDP(c NDP) (Algorithm, error) {
	if err := units.Within("ndp", c.Validate()); err != nil {
		return nil, err
	}
	return &ndp{c: c}, nil
}

// Wants asks for pulls, and for what is sent and timeouts to count what may be sent.
func (*ndp) Wants() Wants { return Wants{Acks: true, Sent: true, Pulls: true} }

// Start begins with a window.
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

// React counts what may be sent. There is never more of it than the first window: what is on its way, what is still to be pulled for and this are as many packets together. After a
// timeout nothing of them is on its way any more.
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
