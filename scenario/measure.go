package scenario

import (
	"strings"

	"farflash/numeric/units"
	"farflash/scenario/shape"
)

// Measure selects the measurements and the end of the run.
type Measure struct {
	// WarmUp is the start of the run that is excluded from the figures: none, a time, a share of the run, or auto,
	// which detects where the latency settles (MSER-5).
	WarmUp WarmUp
	// Until is when the run ends. end: when all flows have ended and all requests have completed. A time: at that time,
	// whatever is outstanding. steady: when the mean latency is known within 5 % at 95 % confidence and every enabled
	// rare event has occurred 320 times; after a million requests the run ends anyway and reports that this was not
	// reached.
	Until Until
	// Requests writes requests.parquet, one row per request, or chunks.parquet for an object cluster, one row per
	// completed chunk.
	Requests bool
	// Alone also runs each tenant alone (without tenants, each workload), with the same seed, and reports how much the
	// others slow it down. Each takes one more run.
	Alone bool
	// Anatomy explains the latencies of a local drive: where reads and writes spent their time, on average and at
	// quantiles of latency, and what they waited for; with requests also for each request. A system always has it.
	Anatomy bool
	Flows   bool // Flows writes flows.parquet for a network alone, one row per flow.
	// Pauses writes pauses.parquet for a network alone, one row per pause or resumption of a port.
	Pauses bool
	// Timeline writes timeline.pftrace, for Perfetto: the stages of the first 20,000 requests (flows, chunks) and the
	// activity of ports, channels and dies, in at most 1,000,000 slices.
	Timeline bool
	// QueuePairs lists the queue pairs of a network whose rates are recorded over time, 0 to 15, in the order in which
	// they open. Empty is the first eight.
	QueuePairs []int
	// Progress also records the acknowledged bytes and the bytes in flight of those queue pairs over time.
	Progress bool
}

func defaultMeasure() Measure { return Measure{} }

// WarmUp is the part of a run that is excluded from its figures.
type WarmUp struct {
	Auto  bool
	Time  units.Duration
	Share units.Fraction
}

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

// Wanted describes valid values.
func (WarmUp) Wanted() string { return "none, auto, a time such as 50ms, or a share such as 10%" }

// UnmarshalText parses none, auto, a duration or a share.
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

// None reports whether the whole run is measured.
func (w WarmUp) None() bool { return w == WarmUp{} }

// WarmUpUntil returns when measurement starts, if that is known before the run; otherwise 0.
func (s *Scenario) WarmUpUntil() units.Duration {
	// For a network alone, a share is one of measure.until; for other scenarios it is one of the run's actual length.
	m := &s.Measure
	if s.NetworkAlone() {
		return m.WarmUp.Time + units.Duration(float64(m.Until.Time)*float64(m.WarmUp.Share))
	}
	return m.WarmUp.Time
}

// Until is when a run ends.
type Until struct {
	Steady bool
	Time   units.Duration // 0: when all flows and requests have completed
}

func (u Until) MarshalText() ([]byte, error) {
	switch {
	case u.Steady:
		return []byte("steady"), nil
	case u.Time > 0:
		return u.Time.MarshalText()
	}
	return []byte("end"), nil
}

// Wanted describes valid values.
func (Until) Wanted() string { return "end, steady, or a time above zero such as 2s" }

// UnmarshalText parses end, steady or a duration.
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

// checkFiles verifies that the scenario produces the data that the requested files contain.
func (m *Measure) checkFiles(d *shape.Decoder, where func(string) shape.Position, network, system bool) {
	if network && m.Requests {
		d.Fail(where("measure.requests"),
			"measure.requests: a network alone has no requests; use flows: true for its flows")
	}
	if network && m.WarmUp.Auto {
		d.Fail(where("measure.warm_up"),
			"measure.warm_up: auto detects where the latency of requests settles, and a network alone has no requests; use a "+
				"time such as 1ms, or a share and measure.until")
	}
	if network && m.WarmUp.Share > 0 && m.Until.Time == 0 {
		d.Fail(where("measure.warm_up"),
			"measure.warm_up: a network runs until its flows end, so %v of the run is not known in advance; add "+
				"measure.until, a time, or use a time such as 1ms", m.WarmUp.Share)
	}
	if (network || system) && m.Anatomy {
		d.Fail(where("measure.anatomy"),
			"measure.anatomy: it is for a drive without a network; leave it out (a system always has its stages)")
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
		d.Fail(at, "measure.warm_up: %v is not shorter than the run, %v", m.WarmUp.Time, m.Until.Time)
	}
}
