package experiment

import (
	"context"
	"errors"
	"fmt"

	"farflash/numeric/units"
	"farflash/sim"
)

// Standing is how far models are.
type Standing struct {
	At       sim.Time // the time that figures reach to
	Over     bool     // nothing is left to happen that counts
	Done     uint64   // requests, flows or chunks that have ended
	Expected uint64   // of them in all; 0 if that is not known
	// Stuck is how many requests have not ended although nothing is left to happen and nothing was lost: a fault of
	// the models.
	Stuck uint64
	// Begun is how many have begun.
	Begun uint64
	// Stalled describes a livelock (see Watch); "" if there is none.
	Stalled string
}

// Meter follows models in slices of time.
type Meter interface {
	// Next is when the present slice ends.
	Next() sim.Time
	// Slice ends it there. It reports whether what is measured is known well enough to end the run.
	Slice(at sim.Time) (settled bool)
	// End ends the last slice, at or after the last one's end. It is called once, when the run is over.
	End(at sim.Time)
}

// Loop is how long models run.
type Loop struct {
	Until    units.Duration // 0: until everything has happened
	Progress func(Progress) // nil: nobody is told

	reached sim.Time // when it ended
}

// Run lets models go on, from one meter's slice to the next, until everything has happened, a meter has settled, it
// is time to end, or the context has ended; it reports whether the last was the reason.
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
		// The clock of models that were stopped in the middle stands at their last event, which may lie in a slice
		// before.
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
				"stuck at %v: %d of %d requests have not completed and nothing is left to happen; this is a fault in "+
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

// Slices is how many slices runs of object clusters have, which last a known time.
const Slices = 200

// Even is a meter of a run that lasts a known time, in slices of equal length.
type Even struct {
	Until sim.Time
	N     int // slices
	// Take is told of the end of each.
	Take  func(at sim.Time)
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

// BusyShare is the mean share of a time that each was busy.
func BusyShare(last, from []sim.Time, span sim.Time) float64 {
	sum := 0.0
	for i := range last {
		sum += float64(last[i] - from[i])
	}
	return sum / float64(len(last)) / float64(span)
}
