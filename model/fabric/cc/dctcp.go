package cc

import "farflash/numeric/units"

// DCTCP configures DCTCP (Alizadeh et al., "Data Center TCP", SIGCOMM 2010) as a rate, as HPCC's ns-3 does (CC_MODE 8).
type DCTCP struct {
	// Gain is g, the weight of the newest round trip in alpha. 1/16 (SIGCOMM 2010; HPCC's run.py).
	Gain units.Fraction
	// RateAI is added once per round trip without a cut. 615Mbps (HPCC's run.py: a packet of 1 KB per round trip of
	// 13us); 1Gbps in HPCC's code.
	RateAI units.BitRate
	Window Window // Window bounds the data in flight; scaled in HPCC's experiments.
}

// defaultDCTCP returns the settings of HPCC's experiments.
func defaultDCTCP() DCTCP {
	return DCTCP{Gain: 1.0 / 16, RateAI: 615 * units.Mbps, Window: WindowScaled}
}

// validate reports invalid settings.
func (c DCTCP) validate() error {
	var f faults
	f.share("gain", c.Gain)
	f.rate("rate_ai", c.RateAI)
	f.window(c.Window)
	return f.Err()
}

// dctcp is DCTCP's sender.
type dctcp struct {
	limits
	c    DCTCP
	gain float64
	keep float64
	qps  []dctcpState
}

type dctcpState struct {
	round  uint64 // an acknowledgement beyond this ends the round trip; 0 before the first
	reduce uint64 // no second cut until something beyond this is acknowledged
	alpha  float64
	marked int64 // marks in this round trip
	size   int64 // assumed number of packets in this round trip
	cut    bool  // the rate has been cut and reduce is not yet acknowledged
}

// newDCTCP returns DCTCP. Rates stay at or above minRate.
func newDCTCP(c DCTCP, minRate units.BitRate) (Algorithm, error) {
	if err := possible("dctcp", minRate, c); err != nil {
		return nil, err
	}
	return &dctcp{limits: limits{minRate, c.Window}, c: c, gain: float64(c.Gain), keep: 1 - float64(c.Gain)}, nil
}

// Wants asks for acknowledgements, which echo the marks.
func (*dctcp) Wants() Wants { return Wants{Acks: true} }

// Start sets line rate, with alpha 1.
func (d *dctcp) Start(q int32, s *Sender) {
	d.qps = grow(d.qps, q)
	d.qps[q] = dctcpState{alpha: 1}
	d.start(s)
}

// React handles acknowledgements.
func (d *dctcp) React(q int32, s *Sender, x *Signal) {
	if x.Kind != Ack {
		return
	}
	st := &d.qps[q]
	if x.Marked {
		st.marked++
	}
	ended := x.Acked > st.round
	if ended {
		// The first round trip only counts: its marks are added to the second's.
		if st.round == 0 {
			st.size = int64(x.Next)/s.mtu() + 1
		} else {
			share := min(1, float64(st.marked)/float64(st.size))
			st.alpha = float64(d.keep*st.alpha) + float64(d.gain*share)
			st.marked = 0
			st.size = int64(behind(x))/s.mtu() + 1
		}
		st.round = x.Next
	}
	if st.cut && x.Acked > st.reduce {
		st.cut = false
	}
	if x.Marked && !st.cut {
		d.set(s, d.bound(times(s.Rate, 1-float64(st.alpha/2)), s))
		st.cut, st.reduce = true, x.Next
	}
	if ended && !st.cut {
		d.set(s, d.bound(s.Rate+d.c.RateAI, s))
	}
}

// behind returns the number of bytes sent beyond the acknowledged ones.
func behind(x *Signal) uint64 {
	if x.Next < x.Acked {
		return 0
	}
	return x.Next - x.Acked
}
