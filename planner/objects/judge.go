package objects

import (
	"fmt"

	"farflash/numeric/stats"
	"farflash/numeric/units"
)

// Sample is what one run of a design found.
type Sample struct {
	Seed   uint64
	Digest string  // of what was simulated
	Put    float64 // 99th percentile of the time of a put, in us; 0 if none was done
	Get    float64 // the same for gets
	Rate   float64 // chunks a second that were done
	Growth float64 // of the chunks that came, the share that was not done
	Drift  float64 // mean time in the second half of the measured time over that in the first, less one
	Failed float64 // chunks that could not be put or got
}

// Point is a design as it was simulated.
type Point struct {
	Design
	Meets  bool
	Why    string // it does not
	Intact *Measured
	Down   *Measured // with the nodes that may be down; nil if none may
	Bound  Bound     // the least, with those nodes not there
}

// Measured is what the runs of a design found, all with the same nodes down.
type Measured struct {
	Down     int
	Samples  []Sample
	Put, Get stats.Interval // of the 99th percentile, over the runs, in us; N is 0 if there are too few
	Rate     stats.Interval
}

// Worst is the harder of the two states that a design was simulated in.
func (p *Point) Worst() *Measured {
	if p.Down == nil || p.Intact != nil && p.Intact.P99().High() > p.Down.P99().High() {
		return p.Intact
	}
	return p.Down
}

// P99 is the percentile that stands for a design where there is room for one: of puts, or of gets if nothing is put.
func (m *Measured) P99() stats.Interval {
	if m.Put.Mean == 0 {
		return m.Get
	}
	return m.Put
}

// Samples are the runs that a point rests on.
func (p *Point) Samples() []Sample {
	var out []Sample
	for _, m := range []*Measured{p.Down, p.Intact} {
		if m != nil {
			out = append(out, m.Samples...)
		}
	}
	return out
}

// What a design is held to beside its limits. A design that keeps within a limit has no more chunks under way than
// come within that time, which is a hundredth of a run; so growth beyond twice of that is a queue without an end. One
// that grows more slowly makes chunks wait the longer the later they come.
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
		if err != nil { // one run has no interval
			return stats.Interval{Mean: xs[0], Level: level}
		}
		return x
	}
	m.Put = of(func(s *Sample) float64 { return s.Put })
	m.Get = of(func(s *Sample) float64 { return s.Get })
	m.Rate = of(func(s *Sample) float64 { return s.Rate })
	return m
}

// hopeless says why a first run alone shows that a design does not do, "" if it does not. The mean over all runs is
// above a limit if the first of them is above it as many times as there are runs.
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

// fails says why the runs of a design show that it does not do, "" if it does.
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

// over says of a percentile that it is over its limit.
func over(what string, mean, half float64, limit units.Duration) string {
	text := "p99 of " + what + " " + micros(mean)
	if half > 0 {
		text += " +- " + micros(half)
	}
	return text + " is not below " + limit.String()
}

// micros writes a time to three digits.
func micros(us float64) string {
	switch {
	case us >= 1e6:
		return fmt.Sprintf("%.3gs", us/1e6)
	case us >= 1e3:
		return fmt.Sprintf("%.3gms", us/1e3)
	}
	return fmt.Sprintf("%.3gus", us)
}
