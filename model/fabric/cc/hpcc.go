package cc

import (
	"farflash/numeric/units"
	"farflash/sim"
)

// HPCC configures HPCC (Li et al., "HPCC: High Precision Congestion Control", SIGCOMM
// 2019, algorithm 1) as the authors' ns-3 has it (CC_MODE 3): in place of a window it
// moves the rate, and the window follows the rate.
type HPCC struct {
	// TargetUtilisation is the utilisation of links to aim for (eta). 0.95 (SIGCOMM 2019).
	TargetUtilisation units.Fraction
	// MaxStage is how many additive increases in a row there are before a
	// multiplicative one. 5 (SIGCOMM 2019); 0 in the experiments of run.py.
	MaxStage int
	// RateAI is added at every update. 80Mbps for 100G hosts (SIGCOMM 2019;
	// run.py uses 10Mbps for each 25G of line rate).
	RateAI units.BitRate
	// FastReact makes every acknowledgement change the rate, relative to a reference rate that changes once per round
	// trip. Otherwise the rate changes once per round trip.
	FastReact bool
	// MultiRate keeps a reference rate for every hop and sends at the lowest. Otherwise there is one, set by the
	// busiest hop.
	MultiRate bool
	// SampleFeedback ignores hops without a queue within a round trip.
	SampleFeedback bool
	// Window bounds what is in flight; scaled in the paper.
	Window Window
}

// DefaultHPCC has the paper's parameters, with one rate as in its algorithm 1.
func DefaultHPCC() HPCC {
	return HPCC{TargetUtilisation: 0.95, MaxStage: 5, RateAI: 80 * units.Mbps, FastReact: true, Window: WindowScaled}
}

// Validate says what is wrong with c, if anything.
func (c HPCC) Validate() error {
	var f faults
	f.share("target_utilisation", c.TargetUtilisation)
	f.rate("rate_ai", c.RateAI)
	f.count("max_stage", c.MaxStage)
	f.window(c.Window)
	return f.Err()
}

// The telemetry header of HPCC's ns-3 (int-header.h): units of bytes sent and of the queue, times the INT_MULTI
// setting, and the bits of its fields. Its time is in nanoseconds.
const (
	intBytes units.Bytes = 128
	intQueue units.Bytes = 80

	intTimeBits, intBytesBits, intQueueBits = 24, 20, 17
)

// Quantise is a hop as the telemetry header of HPCC's ns-3 carries it: time in
// whole nanoseconds, bytes rounded down to 128*multi and the queue to 80*multi, all of them without what the
// header's fields have no room for: they wrap around, time after 16.8 ms, bytes after 134 MB*multi and the queue at
// 10.5 MB*multi. multi below 1 counts as 1.
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
	round     uint64 // an acknowledgement beyond this ends the round trip; 0: none has begun
	reference units.BitRate
	u         float64 // average utilisation of the busiest hop
	stage     int     // additive increases in a row
	path      uint32  // that last is of
	last      [MaxHops]Hop
}

// hpccHop is one hop's own share of the state.
type hpccHop struct {
	reference units.BitRate
	u         float64
	stage     int
}

// NewHPCC returns HPCC. No rate goes below minRate.
func NewHPCC(c HPCC, minRate units.BitRate) (Algorithm, error) {
	if err := possible("hpcc", minRate, c); err != nil {
		return nil, err
	}
	return &hpcc{limits: limits{minRate, c.Window}, c: c, eta: float64(c.TargetUtilisation)}, nil
}

// Wants asks for acknowledgements with telemetry, and for a new rate to count at once.
func (*hpcc) Wants() Wants { return Wants{Acks: true, INT: true, Repace: true} }

// Start begins at line rate with every hop taken to be fully used.
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

// React takes acknowledgements. What ends a round trip moves the reference rate; what
// comes within one moves only the rate that is sent at.
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
	if st.round == 0 { // there is nothing to compare with yet
		st.round, st.path = x.Next, x.Path
		copy(st.last[:], hops)
		return
	}
	if x.Path != st.path && x.Multiple == 0 {
		// Other ports, whose counts have nothing to do with those before (section 4.1 of the paper). The ns-3 code
		// has no path id and subtracts them.
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

// update moves the one rate.
func (h *hpcc) update(st *hpccState, s *Sender, hops []Hop, full bool, multiple int) {
	var most, over float64 // the busiest hop's utilisation, and for how many ns
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
		// As in the reference, hops without any traffic leave the average where it is
		// (with MultiRate they lower it).
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

// updateHops moves every hop's rate and takes the least.
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

// skips reports whether a hop does not count within a round trip.
func (h *hpcc) skips(x *Hop, full bool) bool {
	return h.c.SampleFeedback && !full && x.Queue == 0
}

// measure is a hop's utilisation between two packets and the nanoseconds between them. It is not possible if the
// clock or the count has not gone forward. Those of a header that has a multiple always have: they wrap around.
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

// average moves u towards a measurement over ns nanoseconds, by their share of the
// round trip.
func average(u, measured, ns float64, baseRTT sim.Time) float64 {
	rtt := float64(max(1, baseRTT)) / 1000
	ns = min(ns, rtt)
	return (float64(u*(rtt-ns)) + float64(measured*ns)) / rtt
}

// next is the rate that follows from the reference rate at utilisation u.
func (h *hpcc) next(reference units.BitRate, u float64, stage int, s *Sender) (units.BitRate, int) {
	return nextRate(h.limits, reference, u/h.eta, stage, h.c.MaxStage, h.c.RateAI, s)
}

// nextRate is HPCC's and HPCC-PINT's rule: divide by the load if that is 1 or more, or
// after enough additive increases; and always add a little.
func nextRate(l limits, reference units.BitRate, load float64, stage, maxStage int, ai units.BitRate,
	s *Sender) (units.BitRate, int) {
	if load >= 1 || stage >= maxStage {
		return l.bound(min(over(reference, load), s.Line)+ai, s), 0
	}
	return l.bound(reference+ai, s), stage + 1
}
