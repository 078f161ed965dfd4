// Package cc is the congestion control of RDMA queue pairs, DCQCN, DCTCP, TIMELY,
// HPCC, HPCC-PINT, Swift, NSCC, NDP and none, and of TCP connections.
//
// Its main type is Algorithm, which turns feedback (acknowledgements, congestion
// notifications, measured delays, telemetry) into a rate and a window. An Algorithm
// controls all queue pairs of a network: it keeps what it remembers of each in its
// own slice, by the queue pair's index. It is a plain state machine that is given the
// time; it never asks for it. Nothing is periodic: what decays between two events is
// computed when the next one comes, so a queue pair that nobody congests costs nothing.
//
// What it leaves out: packets, queues, pacing and retransmission, which are package
// fabric's. Each algorithm's file names the paper that it follows.
package cc

import (
	"farflash/numeric/units"
	"farflash/sim"
)

// Sender is one queue pair's sending side, as an algorithm sees and steers it. The
// network reads Rate, Window and Wake after each call.
type Sender struct {
	// Rate paces the queue pair: bits of whole packets a second.
	Rate units.BitRate
	// Window bounds the payload bytes in flight; 0 does not.
	Window units.Bytes
	// Wake is when React is to be called with the kind Timer; sim.Forever is never.
	Wake sim.Time

	// Line is the rate of the host's link, the greatest Rate there is.
	Line units.BitRate
	// BaseRTT is the round trip of a packet that waits nowhere.
	BaseRTT sim.Time
	// BDP is the payload that Line carries in BaseRTT.
	BDP units.Bytes
	// MTU is the payload of a full packet; 0 stands for 1000 B. DCTCP and Swift count
	// in packets.
	MTU units.Bytes
	// Hops is how many switches are on the way. Swift's target delay grows with it.
	Hops int32

	// Credit is how many packets may be sent, where receivers pull (Wants.Pulls). It is the algorithm's, as Rate,
	// Window and Wake are.
	Credit int32
}

// Demand is what the queue pair may send: its rate, or its window over the round trip that was measured last if that
// is less. Without a measured one, 0, it is the least that there is, and Demand an upper bound.
func (s *Sender) Demand(rtt sim.Time) units.BitRate {
	rtt = max(rtt, s.BaseRTT)
	if s.Window <= 0 || rtt <= 0 {
		return min(s.Rate, s.Line)
	}
	return min(s.Rate, s.Line, units.BitRate(float64(s.Window)*8/rtt.Seconds()))
}

// Kind is what an algorithm is called for.
type Kind uint8

// The kinds of feedback.
const (
	// Ack: an acknowledgement came. A negative one is an Ack too.
	Ack Kind = iota
	// CNP: a congestion notification packet came, or, where acknowledgements echo the
	// mark (Wants.Echo is false all the same), one with the mark.
	CNP
	// Timer: the time that was asked for in Sender.Wake has come. Wake is Forever when
	// React is called, so that an algorithm sets it anew.
	Timer
	// Timeout: the retransmission timer has expired.
	Timeout
	// Sent: payload has been handed to the link; only if Wants.Sent.
	Sent
	// Loss: acknowledgements show that packets are missing, once until what had been sent by then is acknowledged;
	// only if Wants.Losses. It comes before the Ack that shows it.
	Loss
	// Trim: the payload of a packet was cut off on its way, and will be sent again; only if Wants.Losses.
	Trim
	// Pull: the receiver asks for packets; only if Wants.Pulls.
	Pull
	kinds
)

// Signal is a piece of feedback.
type Signal struct {
	Kind Kind
	// Marked: the acknowledged packet carried a congestion mark (Ack).
	Marked bool
	// Power is PINT's encoded utilisation (Ack, if Wants.PINT).
	Power uint16
	Now   sim.Time
	// Acked is how much of the queue pair's byte stream has been acknowledged in order,
	// Next the position behind what has been sent; both count payload from 0 (Ack).
	Acked, Next uint64
	// Came is how much is known to have come, in order or not (Ack, if Wants.Came).
	Came uint64
	// Payload is how many bytes were handed over (Sent).
	Payload units.Bytes
	// Pulls is how many packets are asked for (Pull).
	Pulls int32
	// RTT is the time from when the acknowledged packet was handed to the link until
	// now (Ack, if Wants.RTT).
	RTT sim.Time
	// Hops is what the switches on the way wrote into the packet (Ack, if Wants.INT).
	// It is the network's; an algorithm copies what it keeps.
	Hops []Hop
	// Path tells ways through the network apart: it is the same for packets that left the same switches through the
	// same ports (Ack, if Wants.INT).
	Path uint32
	// Multiple says that Hops are as Quantise gives them with that multiple; 0 is exactly.
	Multiple int
}

// Hop is one switch's in-band telemetry, taken as the packet left its queue.
type Hop struct {
	// Time on the switch's clock.
	Time sim.Time
	// Bytes the port had sent by then.
	Bytes uint64
	// Queue is what waits in the port.
	Queue units.Bytes
	// Rate is the port's.
	Rate units.BitRate
}

// MaxHops is how many switches write telemetry into a packet.
const MaxHops = 8

// Wants says what the network is to measure and report for an algorithm. It never
// changes.
type Wants struct {
	Acks bool // every acknowledgement
	CNPs bool // congestion notifications
	Sent bool // every packet that is sent
	RTT  bool
	INT  bool
	PINT bool
	// Losses: each round of packets that are missing
	Losses bool
	// Came: a window counts what is not known to have come, and not what is not acknowledged in order
	Came bool
	// Pulls: receivers pull once for each packet that comes, at their links' pace, and Sender.Credit, not Window,
	// says what may be sent
	Pulls bool
	// Repace: a new rate counts from the last packet on, not only from the next one.
	Repace bool
}

// Algorithm is congestion control for all queue pairs of a network. The network calls
// Wants once, Start when a queue pair is opened or its slot used again, and
// React whenever something happens that the algorithm wants, in order of time for each
// queue pair. q counts from 0 and is dense. Neither allocates in steady state.
type Algorithm interface {
	Wants() Wants
	// Start sets Rate, Window and Wake of a queue pair; the rest of s is given.
	Start(q int32, s *Sender)
	// React takes note of a signal and may change Rate, Window and Wake.
	React(q int32, s *Sender, x *Signal)
}

// grow returns a slice of per-queue-pair state that has an element q.
func grow[T any](s []T, q int32) []T {
	for int(q) >= len(s) {
		s = append(s, *new(T))
	}
	return s
}
