package scenario

import (
	"strings"

	"farflash/numeric/units"
	"farflash/scenario/shape"
)

// Measure says what is measured and when the run ends.
type Measure struct {
	// WarmUp is the part at the beginning of the run that the figures leave out: none, a time, a share of the run, or
	// auto, which finds where the latency settles (MSER-5).
	WarmUp WarmUp
	// Until is when the run ends. end: all flows have ended and all requests have completed. A time: then, whatever
	// is outstanding. steady: the mean latency is known within 5 % at 95 % confidence, and what is switched on and
	// happens seldom has happened 320 times. A run says so if it ends without that, after a million requests.
	Until Until
	// Requests writes requests.parquet, one row a request. For an object cluster it writes chunks.parquet, one row a
	// finished chunk.
	Requests bool
	// Alone runs each tenant also alone, with the same seed, and reports how much the others slow it down. Without
	// tenants it does so for each workload. Each takes one more run.
	Alone bool
	// Anatomy explains the latencies of a local drive: where the time of reads and writes went, on average and at
	// quantiles of their latency, and what they waited for. With requests it does so for each request. A system
	// always has it.
	Anatomy bool
	// Flows writes flows.parquet for a network alone, one row a flow.
	Flows bool
	// Pauses writes pauses.parquet for a network alone, one row each time that a port is paused or resumed.
	Pauses bool
	// Timeline writes timeline.pftrace, for Perfetto: the stages of each request, and the activity of ports, channels
	// and dies. It holds the first 20,000 requests (flows, chunks) and at most 1,000,000 slices.
	Timeline bool
	// QueuePairs lists the queue pairs of a network whose rates are recorded over time, 0 to 15, in the order in
	// which they open. Empty: the first eight.
	QueuePairs []int
	// Progress records also what was acknowledged of those queue pairs over time, and what was in flight.
	Progress bool
}

func defaultMeasure() Measure { return Measure{} }

// WarmUp is what of a run is left out of its figures.
type WarmUp struct {
	Auto  bool
	Time  units.Duration
	Share units.Fraction
}

// MarshalText writes what UnmarshalText reads.
func (w WarmUp) MarshalText() ([]byte, error) {
	switch {
	case w.Auto:
		return []byte("auto"), nil
	case w.Time > 0:
		return w.Time.MarshalText()
	case w.Share > 0:
		return w.Share.MarshalText()
	}
	return []byte("none"), nil
}

// Wanted says what to write.
func (WarmUp) Wanted() string { return "none, auto, a time such as 50ms, or a share such as 10%" }

// UnmarshalText reads none, auto, a duration or a share.
func (w *WarmUp) UnmarshalText(text []byte) error {
	s := string(text)
	*w = WarmUp{}
	switch s {
	case "none", "0":
		return nil
	case "auto":
		w.Auto = true
		return nil
	}
	if strings.HasSuffix(s, "%") {
		return w.Share.UnmarshalText(text)
	}
	if err := w.Time.UnmarshalText(text); err != nil {
		return &units.TextError{Text: s, Is: "is not a warm-up", Use: w.Wanted()}
	}
	return nil
}

// None reports that nothing is left out.
func (w WarmUp) None() bool { return w == WarmUp{} }

// WarmUpUntil is when what is measured begins, as far as that is known before the run; otherwise it is 0. Of a
// network alone a share is one of measure.until, of others it is one of the run that was.
func (s *Scenario) WarmUpUntil() units.Duration {
	m := &s.Measure
	if s.NetworkAlone() {
		return m.WarmUp.Time + units.Duration(float64(m.Until.Time)*float64(m.WarmUp.Share))
	}
	return m.WarmUp.Time
}

// Until is when a run ends.
type Until struct {
	Steady bool
	Time   units.Duration // 0: when everything has ended
}

// MarshalText writes what UnmarshalText reads.
func (u Until) MarshalText() ([]byte, error) {
	switch {
	case u.Steady:
		return []byte("steady"), nil
	case u.Time > 0:
		return u.Time.MarshalText()
	}
	return []byte("end"), nil
}

// Wanted says what to write.
func (Until) Wanted() string { return "end, steady, or a time above zero such as 2s" }

// UnmarshalText reads end, steady or a duration.
func (u *Until) UnmarshalText(text []byte) error {
	s := string(text)
	*u = Until{}
	switch s {
	case "end":
		return nil
	case "steady":
		u.Steady = true
		return nil
	}
	if err := u.Time.UnmarshalText(text); err != nil || u.Time <= 0 {
		return &units.TextError{Text: s, Is: "is not an end of a run", Use: u.Wanted()}
	}
	return nil
}

// checkFiles holds that what is to be written is there to be written.
func (m *Measure) checkFiles(d *shape.Decoder, where func(string) shape.Position, network, system bool) {
	if network && m.Requests {
		d.Fail(where("measure.requests"),
			"measure.requests: a network alone has no requests; use flows: true for its flows")
	}
	if network && m.WarmUp.Auto {
		d.Fail(where("measure.warm_up"),
			"measure.warm_up: auto finds where the latency of requests settles, and a network alone has none; use a "+
				"time such as 1ms, or a share and measure.until")
	}
	if network && m.WarmUp.Share > 0 && m.Until.Time == 0 {
		d.Fail(where("measure.warm_up"),
			"measure.warm_up: flows decide how long a network runs, so that there is nothing to take %v of; add "+
				"measure.until, a time, or use a time such as 1ms", m.WarmUp.Share)
	}
	if (network || system) && m.Anatomy {
		d.Fail(where("measure.anatomy"),
			"measure.anatomy: it is of a drive without a network; leave it out (a system has its stages always)")
	}
	if network && m.Alone {
		d.Fail(where("measure.alone"), "measure.alone: a network alone has no tenants; leave it out")
	}
	if !network && m.Flows {
		d.Fail(where("measure.flows"), "measure.flows: only a network alone has flows; use requests: true for requests")
	}
	if !network && !system && m.Pauses {
		d.Fail(where("measure.pauses"), "measure.pauses: a drive without a network has no pauses; leave it out")
	}
}

func (m *Measure) check(d *shape.Decoder, at shape.Position) {
	for i, q := range m.QueuePairs {
		if q < 0 || q > 15 {
			d.Fail(at, "measure.queue_pairs[%d]: %d is not possible; use 0 to 15", i, q)
		}
	}
	if m.WarmUp.Share >= 1 {
		d.Fail(at, "measure.warm_up: %v leaves nothing to measure; use less than 100%%", m.WarmUp.Share)
	}
	if m.Until.Time > 0 && m.WarmUp.Time >= m.Until.Time {
		d.Fail(at, "measure.warm_up: %v leaves nothing of the %v until the end", m.WarmUp.Time, m.Until.Time)
	}
}
