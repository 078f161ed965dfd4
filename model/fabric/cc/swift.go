package cc

import (
	"math"

	"farflash/numeric/units"
	"farflash/sim"
)

// Swift configures Swift (Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the
// Datacenter", SIGCOMM 2020). Windows are in full packets. Delay is the round trip; since the model's hosts add none,
// there is no endpoint window.
type Swift struct {
	// TargetDelay is the target round trip before scaling. It must exceed the round trip of an empty path; otherwise
	// the window never grows. 25us; csg-htsim has 20us.
	TargetDelay sim.Time
	// TargetPerHop is added to the target for every switch on the path (topology-based scaling). 1us; csg-htsim has
	// 3us.
	TargetPerHop sim.Time
	// FlowScaling is the most that is added to the target for small windows (fs_range, flow-based scaling). 100us
	// (csg-htsim: five times its target). 0 is none.
	FlowScaling sim.Time
	// ScalingMin and ScalingMax are the windows between which flow scaling falls from its maximum to zero (fs_min_cwnd
	// and fs_max_cwnd). 0.1 and 100 packets (csg-htsim).
	ScalingMin, ScalingMax float64
	// Increase is added per round trip below the target, in packets (ai). 1 (csg-htsim).
	Increase float64
	Beta     units.Fraction // Beta is the strength of a decrease. 0.8 (csg-htsim).
	// MaxDecrease is the largest share of the window that one decrease removes (max_mdf). 0.5 (csg-htsim).
	MaxDecrease units.Fraction
	// MinWindow and MaxWindow bound the window, in packets. 0.001 and 10000; csg-htsim
	// has 10 B and 1000 packets.
	MinWindow, MaxWindow float64
	// InitialWindow is a queue pair's initial window, in packets; 0 is the bandwidth-delay product.
	InitialWindow float64
	// ResetAfter is the number of consecutive retransmission timeouts after which the window falls to the smallest
	// (RETX_RESET_THRESHOLD in algorithm 1). 5.
	ResetAfter int
}

// defaultSwift has mostly the parameters of csg-htsim, whose authors call them guesses: the paper leaves most to the
// operator. Check them against the round trips of your own fabric before drawing conclusions.
func defaultSwift() Swift {
	return Swift{
		TargetDelay: 25 * units.Microsecond, TargetPerHop: units.Microsecond,
		FlowScaling: 100 * units.Microsecond, ScalingMin: 0.1, ScalingMax: 100,
		Increase: 1, Beta: 0.8, MaxDecrease: 0.5, MinWindow: 0.001, MaxWindow: 10000, ResetAfter: 5,
	}
}

// validate reports invalid settings.
func (c Swift) validate() error {
	var f faults
	f.interval("target_delay", c.TargetDelay)
	positive(&f, "scaling_min", c.ScalingMin)
	positive(&f, "increase", c.Increase)
	f.share("beta", c.Beta)
	f.share("max_decrease", c.MaxDecrease)
	positive(&f, "min_window", c.MinWindow)
	positive(&f, "reset_after", c.ResetAfter)
	f.short("target_per_hop", c.TargetPerHop)
	f.short("flow_scaling", c.FlowScaling)
	f.Hold(c.MaxDecrease != 1, "max_decrease", "%v is not possible; a decrease must leave part of the window", float64(c.MaxDecrease))
	f.Hold(c.ScalingMax > c.ScalingMin && c.ScalingMax <= mostPackets, "scaling_max",
		"%v is not possible; it must be above scaling_min, %v", c.ScalingMax, c.ScalingMin)
	f.Hold(c.MaxWindow >= max(1, c.MinWindow) && c.MaxWindow <= mostPackets, "max_window",
		"%v is not possible; it must be 1 to 1000000 packets and at least min_window, %v", c.MaxWindow, c.MinWindow)
	f.Hold(c.InitialWindow >= 0 && c.InitialWindow <= mostPackets, "initial_window",
		"%v is not possible; it must be 0 to 1000000 packets", c.InitialWindow)
	f.Hold(!(c.Increase > mostPackets), "increase", "%v is not possible; it must be at most 1000000 packets",
		c.Increase)
	return f.Err()
}

// mostPackets exceeds any window.
const mostPackets = 1e6

// swift is Swift's sender.
type swift struct {
	c         Swift
	beta, mdf float64
	// Flow scaling adds slope/sqrt(cwnd) + offset, in picoseconds.
	slope, offset float64
	qps           []swiftState
}

type swiftState struct {
	window   float64 // cwnd, packets
	rtt      sim.Time
	lowered  sim.Time // when the window was last decreased
	acked    uint64
	timeouts int  // in a row
	may      bool // no decrease yet: the first need not wait for a round trip
}

// newSwift returns Swift. It has a smallest window instead of a lowest rate.
func newSwift(c Swift) (Algorithm, error) {
	if err := units.Within("swift", c.validate()); err != nil {
		return nil, err
	}
	w := &swift{c: c, beta: float64(c.Beta), mdf: float64(c.MaxDecrease)}
	// slope = fs_range / (1/sqrt(fs_min) - 1/sqrt(fs_max)), offset =
	// -slope/sqrt(fs_max), so that scaling is fs_range at fs_min and 0 at fs_max.
	w.slope = float64(c.FlowScaling) / (1/math.Sqrt(c.ScalingMin) - 1/math.Sqrt(c.ScalingMax))
	w.offset = -w.slope / math.Sqrt(c.ScalingMax)
	return w, nil
}

// Wants asks for acknowledgements with round trips.
func (*swift) Wants() Wants { return Wants{Acks: true, RTT: true} }

// Start sets the initial window.
func (w *swift) Start(q int32, s *Sender) {
	w.qps = grow(w.qps, q)
	cwnd := w.c.InitialWindow
	if cwnd == 0 {
		cwnd = float64(s.BDP) / float64(s.mtu())
	}
	st := &w.qps[q]
	*st = swiftState{window: w.clamp(cwnd), rtt: max(1, s.BaseRTT), may: true}
	s.Wake = sim.Forever
	w.steer(st, s)
}

// React is algorithm 1 of the paper.
func (w *swift) React(q int32, s *Sender, x *Signal) {
	st := &w.qps[q]
	before := st.window
	switch x.Kind {
	case Ack:
		st.timeouts = 0
		may := st.may || x.Now-st.lowered >= st.rtt
		st.rtt = max(1, x.RTT)
		var packets float64
		if x.Acked > st.acked {
			packets = float64(x.Acked-st.acked) / float64(s.mtu())
			st.acked = x.Acked
		}
		if target := w.target(st.window, int(s.Hops)); x.RTT < target {
			more := w.c.Increase * packets
			if st.window >= 1 {
				more /= st.window
			}
			st.window += more
		} else if may {
			excess := float64(x.RTT-target) / float64(st.rtt)
			st.window *= max(1-float64(w.beta*excess), 1-w.mdf)
		}
	case Timeout:
		st.timeouts++
		if st.timeouts >= w.c.ResetAfter {
			st.window = w.c.MinWindow
		} else if st.may || x.Now-st.lowered >= st.rtt {
			st.window *= 1 - w.mdf
		}
	default:
		return
	}
	st.window = w.clamp(st.window)
	if st.window < before {
		st.lowered, st.may = x.Now, false
	}
	w.steer(st, s)
}

// target returns the target delay of a window over a number of switches.
func (w *swift) target(window float64, hops int) sim.Time {
	scaling := float64(w.slope/math.Sqrt(window)) + w.offset
	scaling = max(0, min(scaling, float64(w.c.FlowScaling)))
	return w.c.TargetDelay + sim.Time(hops)*w.c.TargetPerHop + sim.Time(scaling)
}

func (w *swift) clamp(window float64) float64 {
	return min(max(window, w.c.MinWindow), w.c.MaxWindow)
}

// steer sets the window. Below one packet it keeps a window of one packet and paces it: one packet per round trip
// divided by the window.
func (w *swift) steer(st *swiftState, s *Sender) {
	mtu := s.mtu()
	if st.window >= 1 {
		s.Window = units.Bytes(st.window * float64(mtu))
		s.Rate = s.Line
		return
	}
	s.Window = units.Bytes(mtu)
	bits := float64(8*mtu) * st.window
	s.Rate = min(max(1, units.BitRate(bits/st.rtt.Seconds())), s.Line)
}
