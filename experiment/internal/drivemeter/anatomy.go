package drivemeter

import (
	"farflash/model/cosim"
	"farflash/numeric/units"
	"farflash/result"
)

// FillAnatomy fills in the breakdown of an operation's latency: on average, and for requests near quantiles of their
// latency.
func FillAnatomy(r *result.Result, op string, a *cosim.Anatomy, cols []string) {
	if a.Count() == 0 {
		return
	}
	microseconds := func(x []float64) []float64 {
		out := make([]float64, len(cols))
		for k := range out {
			out[k] = x[k] / float64(units.Microsecond)
		}
		return out
	}
	all := a.Mean()
	rows, v := []string{"mean"}, [][]float64{microseconds(all[:])}
	// Around a quantile q: half of the distance to the end, on both sides, and at most 5 %.
	for _, q := range []struct {
		name  string
		share float64
	}{{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}} {
		beyond := 1 - q.share
		if float64(a.Count())*beyond < 5 {
			continue
		}
		w := min(beyond/2, 0.05)
		if x, ok := a.Around(q.share-w, q.share+w); ok {
			rows, v = append(rows, q.name), append(v, microseconds(x[:]))
		}
	}
	if x, ok := a.Around(1-1e-15, 1); ok {
		rows, v = append(rows, "max"), append(v, microseconds(x[:]))
	}
	r.SetMatrix(op+".anatomy", rows, cols, v)
}
