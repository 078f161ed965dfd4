package experiment

import (
	"context"
	"errors"
	"fmt"

	"farflash/numeric/units"
	"farflash/sim"
)

// RunState is the progress of models.
type RunState struct {
	At       sim.Time // the time up to which figures are valid
	Over     bool     // no relevant events are left
	Done     uint64   // requests, flows or chunks that have completed
	Expected uint64   // their total number; 0 if unknown
	// Stuck is the number of requests that have not completed although no events are left and no loss explains it: a
	// fault of the models.
	Stuck   uint64
	Begun   uint64 // Begun is the number of those that have started.
	Stalled string // Stalled describes a livelock (see Watch); "" if there is none.
}

// Meter observes models in slices of time.
type Meter interface {
	// Next is the end of the present slice.
	Next() sim.Time
	// Slice ends the slice at that time. It reports whether the measurement is precise enough to end the run.
	Slice(at sim.Time) (settled bool)
	// End ends the last slice, at or after the end of the one before. It is called once, when the run is over.
	End(at sim.Time)
}

// Loop runs models to the end of a run.
type Loop struct {
	Until    units.Duration // 0: until no events are left
	Progress func(Progress) // nil: not reported

	reached sim.Time // time of the end
}

// Run advances models from slice to slice, until no events are left, a meter has settled, the time limit is reached, or
// the context has ended, which it reports.
func (l *Loop) Run(ctx context.Context, x Experiment) (interrupted bool, err error) {
	end := sim.Forever
	if l.Until > 0 {
		end = l.Until
	}
	meters := x.Meters()
	reached := sim.Time(0)
	for {
		to := end
		for _, m := range meters {
			to = min(to, m.Next())
		}
		now, err := x.Advance(ctx, to)
		if err != nil {
			return false, err
		}
		if now.Stalled != "" {
			return false, errors.New(now.Stalled)
		}
		// If models are interrupted, their clock is at their last event, which may be before the last slice's end.
		now.At = max(now.At, reached)
		reached, l.reached = now.At, now.At
		stop := ctx.Err() != nil
		last := now.Over || stop || now.At >= end
		settled := false
		for _, m := range meters {
			switch {
			case last:
				m.End(now.At)
			case m.Next() == now.At:
				settled = m.Slice(now.At) || settled
			}
		}
		if l.Progress != nil {
			l.Progress(Progress{Requests: now.Done, Expected: now.Expected, Simulated: now.At, Until: l.Until})
		}
		switch {
		case now.Over && now.Stuck > 0 && now.At < end:
			return false, fmt.Errorf(
				"stuck at %v: %d of %d requests have not completed and no events remain; this is a fault in "+
					"the model, please report it with the scenario",
				now.At, now.Stuck, now.Begun)
		case last:
			return stop && !now.Over && now.At < end, nil
		case settled:
			for _, m := range meters {
				m.End(now.At)
			}
			return false, nil
		}
	}
}

// Slices is the number of slices in runs of object clusters.
const Slices = 200

// Even is a meter for a run of fixed length, with slices of equal length.
type Even struct {
	Until sim.Time
	N     int               // slices
	Take  func(at sim.Time) // Take is called at the end of each slice.
	taken int
}

// Next implements Meter.
func (e *Even) Next() sim.Time {
	if e.taken == e.N-1 {
		return e.Until
	}
	return e.Until / sim.Time(e.N) * sim.Time(e.taken+1)
}

// Slice implements Meter.
func (e *Even) Slice(at sim.Time) bool {
	e.Take(at)
	e.taken++
	return false
}

// End implements Meter.
func (e *Even) End(at sim.Time) { e.Take(at) }

// BusyShare is the mean busy share of several resources over a span.
func BusyShare(last, from []sim.Time, span sim.Time) float64 {
	sum := 0.0
	for i := range last {
		sum += float64(last[i] - from[i])
	}
	return sum / float64(len(last)) / float64(span)
}
