package cc

import (
	"farflash/numeric/units"
	"farflash/sim"
)

// HPCC configures HPCC (Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, algorithm 1) as in the
// authors' ns-3 (CC_MODE 3): it adjusts the rate, and the window follows.
type HPCC struct {
	// TargetUtilisation is the target utilisation of links (eta). 0.95 (SIGCOMM 2019).
	TargetUtilisation units.Fraction
	// MaxStage is the number of consecutive additive increases before a multiplicative one. 5 (SIGCOMM 2019); 0 in the
	// experiments of run.py.
	MaxStage int
	// RateAI is added at every update. 80Mbps for 100G hosts (SIGCOMM 2019;
	// run.py uses 10Mbps for each 25G of line rate).
	RateAI units.BitRate
	// FastReact lets every acknowledgement change the rate, relative to a reference rate that changes once per round
	// trip. Otherwise the rate itself changes once per round trip.
	FastReact bool
	// MultiRate keeps a reference rate per hop and sends at the lowest. Otherwise the busiest hop sets the only one.
	MultiRate      bool
	SampleFeedback bool   // SampleFeedback ignores hops without a queue within a round trip.
	Window         Window // Window bounds the data in flight; scaled in the paper.
}

// defaultHPCC returns the paper's parameters, with one rate as in its algorithm 1.
func defaultHPCC() HPCC {
	return HPCC{TargetUtilisation: 0.95, MaxStage: 5, RateAI: 80 * units.Mbps, FastReact: true, Window: WindowScaled}
}

// validate reports invalid settings.
func (c HPCC) validate() error {
	var f faults
	f.share("target_utilisation", c.TargetUtilisation)
	f.rate("rate_ai", c.RateAI)
	f.count("max_stage", c.MaxStage)
	f.window(c.Window)
	return f.Err()
}

// The telemetry header of HPCC's ns-3 (int-header.h): units of bytes sent and of the queue, both times the INT_MULTI
// setting, and the widths of its fields in bits. Its time is in nanoseconds.
const (
	intBytes units.Bytes = 128
	intQueue units.Bytes = 80

	intTimeBits, intBytesBits, intQueueBits = 24, 20, 17
)

// Quantise returns a hop as the telemetry header of HPCC's ns-3 carries it: time in whole nanoseconds up to 16.8 ms,
// bytes rounded down to 128*multi up to 134 MB*multi and the queue to 80*multi up to 10.5 MB*multi. multi below 1
// counts as 1.
func Quantise(h Hop, multi int) Hop {
	m := units.Bytes(max(1, multi))
	h.Time = h.Time % (units.Nanosecond << intTimeBits)
	h.Time -= h.Time % units.Nanosecond
	h.Bytes = h.Bytes % (uint64(intBytes*m) << intBytesBits)
	h.Bytes -= h.Bytes % uint64(intBytes*m)
	h.Queue = h.Queue % (intQueue * m << intQueueBits)
	h.Queue -= h.Queue % (intQueue * m)
	return h
}

// hpcc is HPCC's sender.
type hpcc struct {
	limits
	c    HPCC
	eta  float64
	qps  []hpccState
	hops [][MaxHops]hpccHop // by queue pair; only if MultiRate
}

type hpccState struct {
	round     uint64 // an acknowledgement beyond this ends the round trip; 0 before the first
	reference units.BitRate
	u         float64 // average utilisation of the busiest hop
	stage     int     // consecutive additive increases
	path      uint32  // the path of last
	last      [MaxHops]Hop
}

// hpccHop is the state of one hop.
type hpccHop struct {
	reference units.BitRate
	u         float64
	stage     int
}

// newHPCC returns HPCC. Rates stay at or above minRate.
func newHPCC(c HPCC, minRate units.BitRate) (Algorithm, error) {
	if err := possible("hpcc", minRate, c); err != nil {
		return nil, err
	}
	return &hpcc{limits: limits{minRate, c.Window}, c: c, eta: float64(c.TargetUtilisation)}, nil
}

// Wants asks for acknowledgements with telemetry, and for new rates to apply at once.
func (*hpcc) Wants() Wants { return Wants{Acks: true, INT: true, Repace: true} }

// Start sets line rate and takes every hop to be fully used.
func (h *hpcc) Start(q int32, s *Sender) {
	h.qps = grow(h.qps, q)
	h.qps[q] = hpccState{reference: s.Line, u: 1}
	if h.c.MultiRate {
		h.hops = grow(h.hops, q)
		for i := range h.hops[q] {
			h.hops[q][i] = hpccHop{reference: s.Line, u: 1}
		}
	}
	h.start(s)
}

// React handles acknowledgements. One that ends a round trip moves the reference rate; others move only the sending
// rate.
func (h *hpcc) React(q int32, s *Sender, x *Signal) {
	if x.Kind != Ack {
		return
	}
	st := &h.qps[q]
	full := x.Acked > st.round
	if !full && !h.c.FastReact {
		return
	}
	hops := x.Hops[:min(len(x.Hops), MaxHops)]
	if st.round == 0 { // no earlier telemetry to compare with
		st.round, st.path = x.Next, x.Path
		copy(st.last[:], hops)
		return
	}
	if x.Path != st.path && x.Multiple == 0 {
		// The counters of other ports are unrelated to the earlier ones (section 4.1 of the paper). The ns-3 code has
		// no path id and subtracts them all the same.
		st.path = x.Path
		copy(st.last[:], hops)
	} else if h.c.MultiRate {
		h.updateHops(st, &h.hops[q], s, hops, full, x.Multiple)
	} else {
		h.update(st, s, hops, full, x.Multiple)
	}
	if full && x.Next > st.round {
		st.round = x.Next
	}
}

// update adjusts the single rate.
func (h *hpcc) update(st *hpccState, s *Sender, hops []Hop, full bool, multiple int) {
	var most, over float64 // the busiest hop's utilisation, and the interval it was measured over, in ns
	any := false
	for i := range hops {
		if h.skips(&hops[i], full) {
			continue
		}
		u, ns, ok := measure(&st.last[i], &hops[i], s, multiple)
		st.last[i] = hops[i]
		if !ok {
			continue
		}
		any = true
		// As in the reference, hops without any traffic leave the average unchanged (with MultiRate they lower it).
		if u > most {
			most, over = u, ns
		}
	}
	if !any {
		return
	}
	st.u = average(st.u, most, over, s.BaseRTT)
	r, stage := h.next(st.reference, st.u, st.stage, s)
	h.set(s, r)
	if full {
		st.reference, st.stage = r, stage
	}
}

// updateHops adjusts every hop's rate and applies the lowest.
func (h *hpcc) updateHops(st *hpccState, own *[MaxHops]hpccHop, s *Sender, hops []Hop, full bool, multiple int) {
	least := s.Line
	any := false
	for i := range hops {
		hop := &own[i]
		ok := !h.skips(&hops[i], full)
		if ok {
			var u, ns float64
			u, ns, ok = measure(&st.last[i], &hops[i], s, multiple)
			st.last[i] = hops[i]
			if ok {
				hop.u = average(hop.u, u, ns, s.BaseRTT)
			}
		}
		if !ok {
			least = min(least, hop.reference)
			continue
		}
		any = true
		r, stage := h.next(hop.reference, hop.u, hop.stage, s)
		least = min(least, r)
		if full {
			hop.reference, hop.stage = r, stage
		}
	}
	if any {
		h.set(s, least)
	}
}

// skips reports whether a hop is ignored within a round trip.
func (h *hpcc) skips(x *Hop, full bool) bool {
	return h.c.SampleFeedback && !full && x.Queue == 0
}

// measure returns a hop's utilisation between two packets and the nanoseconds between them. ok is false if the clock or
// the byte count has not advanced. With a multiple, values are those of a header, whose fields wrap around, so a lower
// value counts as an advance.
func measure(a, b *Hop, s *Sender, multiple int) (u, ns float64, ok bool) {
	took, count := b.Time-a.Time, b.Bytes-a.Bytes
	if multiple > 0 {
		if took < 0 {
			took += units.Nanosecond << intTimeBits
		}
		if b.Bytes < a.Bytes {
			count += uint64(intBytes*units.Bytes(multiple)) << intBytesBits
		}
	} else if b.Bytes < a.Bytes {
		return 0, 0, false
	}
	if took <= 0 || b.Rate <= 0 {
		return 0, 0, false
	}
	ns = float64(took) / 1000
	sent := float64(count*8) / float64(ns*1e-9)
	queue := float64(min(a.Queue, b.Queue)) * float64(s.Line) / float64(b.Rate) / float64(max(1, s.BDP))
	return sent/float64(b.Rate) + queue, ns, true
}

// average moves u towards a utilisation measured over ns nanoseconds, weighted by their share of the round trip.
func average(u, measured, ns float64, baseRTT sim.Time) float64 {
	rtt := float64(max(1, baseRTT)) / 1000
	ns = min(ns, rtt)
	return (float64(u*(rtt-ns)) + float64(measured*ns)) / rtt
}

// next returns the rate that follows from the reference rate at utilisation u, and the new stage.
func (h *hpcc) next(reference units.BitRate, u float64, stage int, s *Sender) (units.BitRate, int) {
	return nextRate(h.limits, reference, u/h.eta, stage, h.c.MaxStage, h.c.RateAI, s)
}

// nextRate is the rule of HPCC and HPCC-PINT: divide by the load if it is at least 1, or after enough additive
// increases; and always add a little.
func nextRate(l limits, reference units.BitRate, load float64, stage, maxStage int, ai units.BitRate,
	s *Sender) (units.BitRate, int) {
	if load >= 1 || stage >= maxStage {
		return l.bound(min(over(reference, load), s.Line)+ai, s), 0
	}
	return l.bound(reference+ai, s), stage + 1
}
