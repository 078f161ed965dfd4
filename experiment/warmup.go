package experiment

import (
	"farflash/numeric/stats"
	"farflash/numeric/units"
	"farflash/result"
	"farflash/scenario"
	"farflash/sim"
)

// CutWarmUp returns how many of a run's slices, with the given ends, are its warm-up, and its end, and records in the
// result how that was determined. means is the mean latency over time.
func CutWarmUp(w scenario.WarmUp, ends []sim.Time, means *stats.Series, r *result.Result) (skip int, until sim.Time) {
	var at units.Duration
	explain := ""
	switch {
	case w.None():
		return 0, 0
	case w.Auto:
		x := stats.WarmUp(means.Means())
		if !x.Found {
			r.Warn("no warm-up was cut: %s", x.Explain)
			return 0, 0
		}
		at, explain = units.Duration(x.Index)*means.Width(), x.Explain
	case w.Time > 0:
		at, explain = w.Time, "as the scenario says"
	default:
		at, explain = units.Duration(float64(ends[len(ends)-1])*float64(w.Share)),
			"the share of the run that the scenario says"
	}
	for skip < len(ends)-1 && ends[skip] <= at && at > 0 {
		skip++
	}
	if skip == 0 {
		return 0, 0
	}
	until = ends[skip-1]
	r.WarmUp = result.WarmUp{UntilS: until.Seconds(), Explain: explain}
	return skip, until
}

// Close completes a result with one conservation law and whether the run finished.
func Close(o *Outcome, law string, err error, detail string) {
	r := o.Result
	if err != nil {
		detail = err.Error()
	}
	r.Check(law, err == nil, detail)
	r.Set("sim.events", float64(o.Events))
	if o.Interrupted {
		r.Warn("incomplete: the run was interrupted at %v of simulated time", units.Duration(r.SimulatedS*1e12))
	}
}
