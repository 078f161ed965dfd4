package objects

import (
	"fmt"

	"farflash/numeric/stats"
	"farflash/numeric/units"
)

// Sample is the result of one run of a design.
type Sample struct {
	Seed   uint64
	Digest string  // of the simulated scenario
	Put    float64 // 99th percentile of the time of a put, in us; 0 if there were none
	Get    float64 // the same for gets
	Rate   float64 // completed chunks per second
	Growth float64 // share of the arriving chunks that were not completed
	Drift  float64 // mean time in the second half of the measured period over that in the first, minus 1
	Failed float64 // chunks whose put or get failed
}

// Point is a simulated design.
type Point struct {
	Design
	Meets  bool
	Why    string // why it does not
	Intact *Measured
	Down   *Measured // with nodes down; nil if none may be
	Bound  Bound     // the tightest, with those nodes absent
}

// Measured holds the results of a design's runs, all with the same number of nodes down.
type Measured struct {
	Down     int
	Samples  []Sample
	Put, Get stats.Interval // of the 99th percentile, over the runs, in us; N is 0 if there are too few runs
	Rate     stats.Interval
}

// Worst returns the worse of the two states in which a design was simulated.
func (p *Point) Worst() *Measured {
	if p.Down == nil || p.Intact != nil && p.Intact.P99().High() > p.Down.P99().High() {
		return p.Intact
	}
	return p.Down
}

// P99 is the percentile that represents a design where only one is shown: that of puts, or of gets if there are no
// puts.
func (m *Measured) P99() stats.Interval {
	if m.Put.Mean == 0 {
		return m.Get
	}
	return m.Put
}

// Samples returns all runs of a point.
func (p *Point) Samples() []Sample {
	var out []Sample
	for _, m := range []*Measured{p.Down, p.Intact} {
		if m != nil {
			out = append(out, m.Samples...)
		}
	}
	return out
}

// Criteria of a design in addition to its limits. A design that meets a limit has no more chunks in flight than arrive
// within that time, which is a hundredth of a run; growth beyond twice that is an unstable queue. With slower growth,
// later chunks wait longer.
const (
	level     = 0.95 // of intervals
	mostGrown = 0.02
	mostDrift = 0.10
)

// measure computes the intervals.
func measure(down int, samples []Sample) *Measured {
	m := &Measured{Down: down, Samples: samples}
	of := func(value func(*Sample) float64) stats.Interval {
		xs := make([]float64, len(samples))
		for i := range samples {
			xs[i] = value(&samples[i])
		}
		x, err := stats.Replicates(xs, level)
		if err != nil { // a single run has no interval
			return stats.Interval{Mean: xs[0], Level: level}
		}
		return x
	}
	m.Put = of(func(s *Sample) float64 { return s.Put })
	m.Get = of(func(s *Sample) float64 { return s.Get })
	m.Rate = of(func(s *Sample) float64 { return s.Rate })
	return m
}

// hopeless returns the reason why the first run alone rules out a design, or "". The mean over n runs exceeds a limit
// if the first run exceeds n times the limit.
func (n *Need) hopeless(s Sample, runs int) string {
	switch put, get := n.PutP99.Microseconds(), n.GetP99.Microseconds(); {
	case s.Failed > 0:
		return fmt.Sprintf("%.0f chunks could not be put or got", s.Failed)
	case s.Growth > mostGrown:
		return fmt.Sprintf("the queue grows: %.1f %% of the arriving chunks are not completed", 100*s.Growth)
	case n.Reads < 1 && s.Put > float64(runs)*put:
		return over("puts", s.Put, 0, n.PutP99)
	case n.GetP99 > 0 && s.Get > float64(runs)*get:
		return over("gets", s.Get, 0, n.GetP99)
	}
	return ""
}

// fails returns the reason why a design's runs rule it out, or "".
func (n *Need) fails(m *Measured) string {
	drifts := make([]float64, len(m.Samples))
	for i, s := range m.Samples {
		if why := n.hopeless(s, len(m.Samples)); why != "" {
			return why
		}
		drifts[i] = s.Drift
	}
	if n.Reads < 1 && m.Put.High() >= n.PutP99.Microseconds() {
		return over("puts", m.Put.Mean, m.Put.Half, n.PutP99)
	}
	if n.GetP99 > 0 && m.Get.High() >= n.GetP99.Microseconds() {
		return over("gets", m.Get.Mean, m.Get.Half, n.GetP99)
	}
	if x, err := stats.Replicates(drifts, level); err == nil && x.Low() > mostDrift {
		return fmt.Sprintf("the queue grows: chunks take %.0f %% longer in the second half of a run", 100*x.Mean)
	}
	return ""
}

// over describes a percentile that exceeds its limit.
func over(what string, mean, half float64, limit units.Duration) string {
	text := "p99 of " + what + " " + micros(mean)
	if half > 0 {
		text += " +- " + micros(half)
	}
	return text + " is not below " + limit.String()
}

// micros formats a time in us with three digits.
func micros(us float64) string {
	switch {
	case us >= 1e6:
		return fmt.Sprintf("%.3gs", us/1e6)
	case us >= 1e3:
		return fmt.Sprintf("%.3gms", us/1e3)
	}
	return fmt.Sprintf("%.3gus", us)
}
