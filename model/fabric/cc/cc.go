// Package cc implements congestion control for RDMA queue pairs, DCQCN, DCTCP, TIMELY, HPCC, HPCC-PINT, Swift, NSCC,
// NDP and none, and for TCP connections.
//
// Its main type is Algorithm, which turns feedback (acknowledgements, congestion notifications, measured delays,
// telemetry) into a rate and a window. An Algorithm controls all queue pairs of a network and keeps its state for each
// in a slice of its own, by the queue pair's index. It is a plain state machine: the caller passes the time. No state
// is updated periodically. State that decays between two events is brought up to date at the next one, so an
// uncongested queue pair costs no events.
//
// It leaves out packets, queues, pacing and retransmission, which are package fabric's. Each algorithm's file names the
// paper that it follows.
package cc

import (
	"farflash/numeric/units"
	"farflash/sim"
)

// Sender is one queue pair's sending side. The network reads Rate, Window and Wake after each call.
type Sender struct {
	// Rate paces the queue pair, in bits per second of whole packets, headers included.
	Rate   units.BitRate
	Window units.Bytes // Window bounds the payload bytes in flight; 0 means no bound.
	// Wake is when React is to be called with the kind Timer; sim.Forever means never.
	Wake sim.Time

	Line    units.BitRate // Line is the rate of the host's link, the upper bound of Rate.
	BaseRTT sim.Time      // BaseRTT is the round trip of a packet that waits nowhere.
	BDP     units.Bytes   // BDP is the payload that Line carries in BaseRTT.
	// MTU is the payload of a full packet; 0 stands for 1000 B. DCTCP and Swift count in packets.
	MTU units.Bytes
	// Hops is the number of switches on the path. Swift's target delay grows with it.
	Hops int32

	// Credit is the number of packets that may be sent, where receivers pull (Wants.Pulls). The algorithm sets it, as
	// it sets Rate, Window and Wake.
	Credit int32
}

// Demand returns the queue pair's Rate, or its window over rtt, the last measured round trip (0: the base one), if that
// is less.
func (s *Sender) Demand(rtt sim.Time) units.BitRate {
	rtt = max(rtt, s.BaseRTT)
	if s.Window <= 0 || rtt <= 0 {
		return min(s.Rate, s.Line)
	}
	return min(s.Rate, s.Line, units.BitRate(float64(s.Window)*8/rtt.Seconds()))
}

// Kind is the kind of a signal.
type Kind uint8

const (
	// Ack: an acknowledgement arrived. A negative one counts too.
	Ack Kind = iota
	// CNP: a congestion notification packet arrived, or a marked acknowledgement where acknowledgements echo marks.
	CNP
	// Timer: the time set in Sender.Wake has come. Wake is Forever when React is called; the algorithm sets it again if
	// it needs to.
	Timer
	// Timeout: the retransmission timer has expired.
	Timeout
	// Sent: payload has been handed to the link; only if Wants.Sent.
	Sent
	// Loss: acknowledgements show that packets are missing; only if Wants.Losses. It is signalled once until the data
	// sent by then is acknowledged, and precedes the Ack that shows the loss.
	Loss
	// Trim: the payload of a packet was cut off by a switch, and will be retransmitted; only if Wants.Losses.
	Trim
	// Pull: the receiver requests packets; only if Wants.Pulls.
	Pull
	kinds
)

// Signal is a piece of feedback.
type Signal struct {
	Kind Kind
	// Marked reports that the acknowledged packet carried a congestion mark (Ack).
	Marked bool
	Power  uint16 // Power is PINT's encoded utilisation (Ack, if Wants.PINT).
	Now    sim.Time
	// Acked is how much of the queue pair's byte stream has been acknowledged in order, Next the position just past the
	// data sent; both count payload bytes from 0 (Ack).
	Acked, Next uint64
	// Came is how many bytes are known to have arrived, in order or not (Ack, if Wants.Came).
	Came    uint64
	Payload units.Bytes // Payload is the number of bytes handed to the link (Sent).
	Pulls   int32       // Pulls is the number of packets requested (Pull).
	// RTT is the time from when the acknowledged packet was handed to the link until now (Ack, if Wants.RTT).
	RTT sim.Time
	// Hops is the telemetry that the switches on the path wrote into the packet (Ack, if Wants.INT). The slice is the
	// network's; an algorithm must copy the elements it keeps.
	Hops []Hop
	// Path identifies the path through the network: it is the same for packets that left the same switches through the
	// same ports (Ack, if Wants.INT).
	Path uint32
	// Multiple is the multiple with which Quantise rounded Hops; 0 means exact values.
	Multiple int
}

// Hop is one switch's in-band telemetry, taken as the packet left its queue.
type Hop struct {
	Time  sim.Time      // Time is when the packet left, on the switch's clock.
	Bytes uint64        // Bytes is how many bytes the port had sent by then.
	Queue units.Bytes   // Queue is the number of bytes waiting in the port.
	Rate  units.BitRate // Rate is the port's rate.
}

// MaxHops is the most switches that write telemetry into a packet.
const MaxHops = 8

// Wants declares an algorithm's signals and measurements. It is constant.
type Wants struct {
	Acks   bool // every acknowledgement
	CNPs   bool // congestion notifications
	Sent   bool // every packet that is sent
	RTT    bool
	INT    bool
	PINT   bool
	Losses bool // Losses: each round of missing packets
	// Came: the window counts packets not known to have arrived, instead of those not acknowledged in order
	Came bool
	// Pulls: receivers pull once for each arriving packet, at the pace of their links, and Sender.Credit instead of
	// Window limits the sender
	Pulls bool
	// Repace: a new rate applies from the last packet sent, not only from the next one.
	Repace bool
}

// Algorithm is congestion control for all queue pairs of a network. The network calls Wants once, Start when a queue
// pair is opened or its index reused, and React for each signal wanted, in order of time for each queue pair. q counts
// from 0 and is dense. Neither allocates in steady state.
type Algorithm interface {
	Wants() Wants
	// Start sets Rate, Window and Wake of a queue pair; the caller has set the rest of s.
	Start(q int32, s *Sender)
	// React processes a signal and may change Rate, Window and Wake.
	React(q int32, s *Sender, x *Signal)
}

// grow extends a slice of per-queue-pair state to include element q.
func grow[T any](s []T, q int32) []T {
	for int(q) >= len(s) {
		s = append(s, *new(T))
	}
	return s
}
