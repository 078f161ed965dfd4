package cc

import (
	"farflash/numeric/units"
	"farflash/sim"
)

// NSCC configures the network-signalled congestion control of Ultra Ethernet (UE Specification 1.0, section 3.6.13,
// with the values that the UEC's simulator uet-htsim computes in uec.cpp). The mark and the delay of each acknowledged
// packet set a window, in full packets, with steps scaled by the bandwidth-delay product over that of 100 Gbit/s and 12
// us. Quick adaptation sets the window to the bytes that arrived in a round trip, if these are few and a packet was
// lost, trimmed, or late by four targets. Left out: penalties that a receiver requests, and probes.
type NSCC struct {
	// TargetDelay is the target queueing delay. 0 is the base round trip; with trimming the specification uses three
	// quarters of it.
	TargetDelay sim.Time
	// Proportional is added per acknowledged window without delay, in packets, for each 12 us of the target. 4
	// (uet-htsim).
	Proportional float64
	// Fair is added per acknowledged window above the target, in packets. 5 (uet-htsim).
	Fair float64
	// Fast is the share of the acknowledged bytes that is added while the delay stays below FastBelow for a window. 25%
	// (uet-htsim).
	Fast      units.Fraction
	FastBelow sim.Time       // FastBelow is the delay below which fast applies. 1us (uet-htsim).
	Constant  float64        // Constant is added each base round trip, in packets. 0.15 (uet-htsim).
	Gamma     units.Fraction // Gamma is the strength of a decrease. 0.8 (uet-htsim).
	// MaxDecrease is the largest share of the window that one decrease removes. 50% (uet-htsim).
	MaxDecrease units.Fraction
	Gain        units.Fraction // Gain is the weight of the newest delay in the mean. 1.25% (uet-htsim).
	// QuickBelow is the share of the largest window below which arrivals trigger quick adaptation. 0 is never. 1/8
	// (uet-htsim).
	QuickBelow units.Fraction
	// MaxWindow is the largest and the initial window, in bandwidth-delay products. 1.5 (uet-htsim).
	MaxWindow float64
}

// defaultNSCC returns uet-htsim's values.
func defaultNSCC() NSCC {
	return NSCC{Proportional: 4, Fair: 5, Fast: 0.25, FastBelow: units.Microsecond, Constant: 0.15, Gamma: 0.8,
		MaxDecrease: 0.5, Gain: 0.0125, QuickBelow: 1.0 / 8, MaxWindow: 1.5}
}

// validate reports invalid settings.
func (c NSCC) validate() error {
	var f faults
	f.short("target_delay", c.TargetDelay)
	f.short("fast_below", c.FastBelow)
	for _, x := range []struct {
		key string
		v   float64
	}{{"proportional", c.Proportional}, {"fair", c.Fair}, {"constant", c.Constant}} {
		f.Hold(x.v >= 0 && x.v <= mostPackets, x.key, "%v is not possible; it must be 0 to 1000000 packets", x.v)
	}
	f.Hold(c.Fast >= 0 && c.Fast <= 1, "fast", "%v is not possible; it must be 0 to 1", float64(c.Fast))
	f.share("gamma", c.Gamma)
	f.share("max_decrease", c.MaxDecrease)
	f.Hold(c.MaxDecrease != 1, "max_decrease", "%v is not possible; a decrease must leave part of the window", float64(c.MaxDecrease))
	f.share("gain", c.Gain)
	f.Hold(c.QuickBelow >= 0 && c.QuickBelow <= 1, "quick_below", "%v is not possible; it must be 0 to 1",
		float64(c.QuickBelow))
	f.Hold(c.MaxWindow >= 0.01 && c.MaxWindow <= 1000, "max_window",
		"%v is not possible; it must be 0.01 to 1000 bandwidth-delay products", c.MaxWindow)
	return f.Err()
}

// The network that NSCC's constants are scaled to.
const (
	nsccRTT = 12 * units.Microsecond
	nsccBDP = 150_000 // bytes: 100 Gbit/s
)

// nscc is NSCC's sender. An acknowledged packet's mark and its delay over the base round trip change the window:
//
//	no mark, delay below target    growth in proportion to the gap to the target; fast while there is hardly any delay
//	no mark, delay above target    growth by a fair share, because the queue is about to empty
//	mark, delay above target       decrease by how far the mean delay exceeds the target, once a round trip
//	mark, delay below target       no change: another path is congested
//
// Paths are chosen by package fabric.
type nscc struct {
	c   NSCC
	qps []nsccState
}

// nsccState is the state of a queue pair; sizes are in bytes.
type nsccState struct {
	window, most, mtu float64
	scale             float64 // a: steps are scaled to a bandwidth-delay product of nsccBDP
	target, base      sim.Time
	came              uint64  // bytes known to have arrived
	gained            float64 // growth earned and not yet applied, times the window
	got               float64 // bytes arrived since growth was applied
	mean              float64 // delay, ps
	calm              float64 // bytes acknowledged in a row with hardly any delay
	fast              bool
	lowered, paid     sim.Time
	quickAt           sim.Time // when the present quick adaptation interval ends; 0 before the first
	looked            float64  // bytes arrived in it
	// ignored counts bytes arrived since an adaptation; up to ignoreTill they were sent before it
	ignored, ignoreTill float64
	hit                 bool // a packet was trimmed or lost since the last adaptation
}

// newNSCC returns NSCC. It has a smallest window of one packet instead of a lowest rate.
func newNSCC(c NSCC) (Algorithm, error) {
	if err := units.Within("nscc", c.validate()); err != nil {
		return nil, err
	}
	return &nscc{c: c}, nil
}

// Wants asks for acknowledgements with round trips and out-of-order arrivals, and for losses.
func (*nscc) Wants() Wants { return Wants{Acks: true, RTT: true, Losses: true, Came: true} }

// Start sets the largest window.
func (n *nscc) Start(q int32, s *Sender) {
	n.qps = grow(n.qps, q)
	st := &n.qps[q]
	*st = nsccState{mtu: float64(s.mtu()), scale: float64(s.BDP) / nsccBDP, target: n.c.TargetDelay,
		base: max(1, s.BaseRTT)}
	if st.target == 0 {
		st.target = st.base
	}
	st.most = max(st.mtu, n.c.MaxWindow*float64(s.BDP))
	st.window = st.most
	s.Rate, s.Wake = s.Line, sim.Forever
	st.steer(s)
}

// React handles acknowledgements, and trimmed or lost packets.
func (n *nscc) React(q int32, s *Sender, x *Signal) {
	st := &n.qps[q]
	switch x.Kind {
	case Ack:
		n.acked(st, x)
	case Trim, Loss, Timeout:
		n.missed(st, x)
	default:
		return
	}
	st.steer(s)
}

// acked handles an acknowledgement.
func (n *nscc) acked(st *nsccState, x *Signal) {
	fresh := 0.0
	if to := max(x.Came, x.Acked); to > st.came {
		fresh = float64(to - st.came)
		st.came = to
	}
	st.looked += fresh
	st.got += fresh
	st.ignored += fresh
	delay := max(0, x.RTT-st.base)
	n.average(st, delay, x.Marked)
	if n.quick(st, x, delay, x.Marked, false) {
		return
	}
	switch {
	case !x.Marked && delay >= st.target:
		st.gained += float64(float64(n.c.Fair*st.mtu) * float64(st.scale*fresh))
	case !x.Marked:
		if n.hurry(st, delay, fresh); !st.fast {
			// Scaling the target to 12 us cancels the target in the divisor, so the gap to the target counts in units
			// of 12 us.
			st.gained += float64(float64(n.c.Proportional*st.mtu) * float64(st.scale*fresh) *
				(float64(st.target-delay) / float64(nsccRTT)))
		}
	case delay >= st.target:
		n.lower(st, x.Now)
	}
	st.clamp()
	if st.got > 8*st.mtu || x.Now-st.paid > st.base {
		st.window += st.gained / st.window
		if x.Now-st.paid >= st.base {
			st.window += float64(n.c.Constant * st.mtu * st.scale)
			st.paid = x.Now
		}
		st.gained, st.got = 0, 0
		st.clamp()
	}
}

// average folds a delay into the mean. A late packet without a mark shows that the queue has emptied behind it.
func (n *nscc) average(st *nsccState, delay sim.Time, marked bool) {
	d := float64(delay)
	if !marked && delay > st.target {
		d = float64(st.base) / 4
	}
	st.mean += float64(float64(n.c.Gain) * (d - st.mean))
}

// hurry grows the window fast once the delay has stayed below FastBelow for a window.
func (n *nscc) hurry(st *nsccState, delay sim.Time, fresh float64) {
	if delay >= n.c.FastBelow {
		st.calm, st.fast = 0, false
		return
	}
	st.calm += fresh
	if st.fast = st.fast || st.calm > st.window; st.fast {
		st.window += float64(float64(n.c.Fast) * st.scale * fresh)
	}
}

// lower shrinks the window, at most once a round trip.
func (n *nscc) lower(st *nsccState, now sim.Time) {
	st.fast, st.calm = false, 0
	if over := st.mean - float64(st.target); over > 0 && now-st.lowered > st.base {
		st.window *= max(1-float64(n.c.Gamma)*over/st.mean, 1-float64(n.c.MaxDecrease))
		st.lowered = now
	}
}

// quick sets the window to the bytes that have arrived in a round trip and a target, if these are few and there is a
// reason to. It reports whether the signal needs no further reaction: it caused an adaptation, or it concerns data sent
// before the last one.
func (n *nscc) quick(st *nsccState, x *Signal, delay sim.Time, marked, lost bool) (answered bool) {
	if n.c.QuickBelow == 0 {
		return false
	}
	if st.ignored < st.ignoreTill && marked {
		answered = true
	} else if x.Now > st.quickAt {
		if st.quickAt > 0 && (st.hit || lost || delay > 4*st.target) &&
			st.looked < float64(st.most*float64(n.c.QuickBelow)) {
			st.window = st.looked
			st.clamp()
			st.ignored, st.ignoreTill = 0, 0
			if x.Next > st.came {
				st.ignoreTill = float64(x.Next - st.came)
			}
			st.hit, answered = false, true
		}
		st.looked = 0
		st.quickAt = x.Now + st.base + st.target
	}
	if answered {
		st.gained, st.got = 0, 0
	}
	return answered
}

// missed handles a packet that was trimmed or lost.
func (n *nscc) missed(st *nsccState, x *Signal) {
	if x.Kind == Trim {
		st.ignored += st.mtu
		n.average(st, st.base, true)
	}
	st.hit = true
	if !n.quick(st, x, 0, true, true) {
		st.window -= st.mtu
		st.clamp()
	}
}

func (st *nsccState) clamp() { st.window = min(max(st.window, st.mtu), st.most) }

// steer sets the window.
func (st *nsccState) steer(s *Sender) { s.Window = max(1, units.Bytes(st.window)) }
