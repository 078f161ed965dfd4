package cc

import (
	"farflash/numeric/units"
	"farflash/sim"
)

// Timely configures TIMELY (Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM 2015,
// algorithm 1) as in HPCC's ns-3 (CC_MODE 7), with one measurement per round trip.
type Timely struct {
	// Alpha is the weight of the newest difference of round trips. 0.875 (SIGCOMM 2015).
	Alpha units.Fraction
	Beta  units.Fraction // Beta is the strength of a decrease. 0.8 (SIGCOMM 2015).
	// TLow is the round trip below which the rate always grows. 50us (SIGCOMM 2015).
	TLow sim.Time
	// THigh is the round trip above which the rate always falls. 500us (SIGCOMM 2015).
	THigh sim.Time
	// MinRTT is the round trip by which the gradient is divided. 20us (SIGCOMM 2015).
	MinRTT sim.Time
	// RateAI is added by an increase. 10Mbps (SIGCOMM 2015, at 10G; HPCC's run.py multiplies it by line rate/10G).
	RateAI units.BitRate
	// RateHAI is added by an increase after HyperAfter consecutive ones. 50Mbps (five times RateAI in the paper).
	RateHAI units.BitRate
	// HyperAfter is the number of consecutive increases by RateAI before RateHAI is used. 5 (SIGCOMM 2015).
	HyperAfter int
	Window     Window // Window bounds the data in flight; none in the paper.
}

// DefaultTimely returns the paper's parameters.
func DefaultTimely() Timely {
	return Timely{
		Alpha: 0.875, Beta: 0.8,
		TLow: 50 * units.Microsecond, THigh: 500 * units.Microsecond, MinRTT: 20 * units.Microsecond,
		RateAI: 10 * units.Mbps, RateHAI: 50 * units.Mbps, HyperAfter: 5,
	}
}

// validate reports invalid settings.
func (c Timely) validate() error {
	var f faults
	f.share("alpha", c.Alpha)
	f.share("beta", c.Beta)
	f.interval("t_low", c.TLow)
	f.interval("t_high", c.THigh)
	f.interval("min_rtt", c.MinRTT)
	f.rate("rate_ai", c.RateAI)
	f.rate("rate_hai", c.RateHAI)
	f.Hold(c.THigh >= c.TLow, "t_high", "%v is not possible; it must be at least t_low, %v", c.THigh, c.TLow)
	f.count("hyper_after", c.HyperAfter)
	f.window(c.Window)
	return f.Err()
}

// timely is TIMELY's sender. Round trips are in whole nanoseconds, the resolution of network cards' clocks.
type timely struct {
	limits
	c            Timely
	alpha, keep  float64
	beta, minRTT float64
	low, high    int64
	qps          []timelyState
}

type timelyState struct {
	round      uint64 // an acknowledgement beyond this ends the round trip; 0 before the first
	last       int64  // the previous round trip, ns
	difference float64
	increases  int
}

// newTimely returns TIMELY. Rates stay at or above minRate.
func newTimely(c Timely, minRate units.BitRate) (Algorithm, error) {
	if err := possible("timely", minRate, c); err != nil {
		return nil, err
	}
	return &timely{
		limits: limits{minRate, c.Window}, c: c,
		alpha: float64(c.Alpha), keep: 1 - float64(c.Alpha), beta: float64(c.Beta),
		minRTT: float64(c.MinRTT / units.Nanosecond),
		low:    int64(c.TLow / units.Nanosecond), high: int64(c.THigh / units.Nanosecond),
	}, nil
}

// Wants asks for acknowledgements with round trips.
func (*timely) Wants() Wants { return Wants{Acks: true, RTT: true} }

// Start sets line rate.
func (t *timely) Start(q int32, s *Sender) {
	t.qps = grow(t.qps, q)
	t.qps[q] = timelyState{}
	t.start(s)
}

// React handles the acknowledgement that ends a round trip and ignores the others.
func (t *timely) React(q int32, s *Sender, x *Signal) {
	st := &t.qps[q]
	if x.Kind != Ack || x.Acked <= st.round {
		return
	}
	rtt := int64(x.RTT / units.Nanosecond)
	if st.round != 0 {
		t.update(st, s, rtt)
	}
	if x.Next > st.round {
		st.round = x.Next
		st.last = rtt
	}
}

// update is algorithm 1 of the paper.
func (t *timely) update(st *timelyState, s *Sender, rtt int64) {
	st.difference = float64(t.keep*st.difference) + float64(t.alpha*float64(rtt-st.last))
	gradient := st.difference / t.minRTT
	var factor float64
	switch {
	case rtt < t.low || rtt <= t.high && gradient <= 0:
		more := t.c.RateAI
		if st.increases >= t.c.HyperAfter {
			more = t.c.RateHAI
		}
		st.increases++
		t.set(s, t.bound(s.Rate+more, s))
		return
	case rtt > t.high:
		factor = 1 - float64(t.beta*(1-float64(t.high)/float64(rtt)))
	default:
		factor = max(0, 1-float64(t.beta*gradient))
	}
	st.increases = 0
	t.set(s, t.bound(times(s.Rate, factor), s))
}
