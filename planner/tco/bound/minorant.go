package bound

import (
	"math"
	"slices"

	"farflash/planner/tco"
	"farflash/policy/ftl/waf"
)

// minorantKnots is the number of parts into which a minorant divides the range of sequential ratios. A chord of
// equation 7 lies below the curve by at most eta/4 of the square of a part: a few millionths.
const minorantKnots = 512

// minorant returns a concave piecewise-linear function that lies nowhere above a write amplification, and nearly
// touches it if it is concave itself, as equation 7 is where it falls. For other curves there is no unique best one;
// minorant takes the one with the highest mean among several.
func minorant(w tco.WAF) []waf.MixPoint {
	var at []float64
	for i := range minorantKnots + 1 {
		at = append(at, float64(i)/minorantKnots)
	}
	switch w := w.(type) {
	case waf.SequentialMix:
		at = append(at, w.Turn)
	case *tco.Table:
		for _, x := range w.Points() {
			at = append(at, x.S)
		}
	}
	slices.Sort(at)
	// slopes between closer ones would be rounding errors
	at = slices.CompactFunc(at, func(a, b float64) bool { return math.Abs(b-a) < 1e-6 })
	at[len(at)-1] = 1
	f := make([]float64, len(at))
	steepest, sag := 0.0, 0.0
	for i, s := range at {
		f[i] = w.At(s)
		if i > 1 {
			before, after := (f[i-1]-f[i-2])/(at[i-1]-at[i-2]), (f[i]-f[i-1])/(at[i]-at[i-1])
			steepest = max(steepest, math.Abs(before), math.Abs(after))
			if bend := after - before; bend > 1e-9 {
				sag = max(sag, bend/minorantKnots)
			}
		}
	}
	c := f
	lower := 1e-9
	if sag > 0 {
		// Between knots a convex curve lies below its chord, by less than this.
		lower += sag + float64(1e-6*steepest)
		c = highest(at, f)
	}
	knots := make([]waf.MixPoint, len(at))
	for i, s := range at {
		knots[i] = waf.MixPoint{S: s, WAF: c[i] - lower}
	}
	return knots
}

// highest returns the concave function below f with the highest mean, among those that touch f at one of several knots
// with one of several slopes and are maximal on either side: none leaves f before it must.
func highest(at, f []float64) []float64 {
	const tries = 20
	n := len(at)
	best, most := make([]float64, n), slices.Min(f)
	for i := range best {
		best[i] = slices.Min(f)
	}
	c := make([]float64, n)
	for a := range tries + 1 {
		t := a * (n - 1) / tries
		for b := -1; b <= tries; b++ {
			k := max(0, b) * (n - 1) / tries
			slope := 0.0
			if b >= 0 {
				if k == t {
					continue
				}
				slope = (f[k] - f[t]) / (at[k] - at[t])
			}
			c[t] = f[t]
			s := slope
			for i := t + 1; i < n; i++ {
				s = min(s, (f[i]-c[i-1])/(at[i]-at[i-1]))
				c[i] = c[i-1] + float64(s*(at[i]-at[i-1]))
			}
			s = slope
			for i := t - 1; i >= 0; i-- {
				s = max(s, (c[i+1]-f[i])/(at[i+1]-at[i]))
				c[i] = c[i+1] - float64(s*(at[i+1]-at[i]))
			}
			mean, lowest := 0.0, math.Inf(1)
			for _, v := range c {
				mean += v / float64(n)
				lowest = min(lowest, v)
			}
			if lowest > 0.01 && mean > most {
				most = mean
				copy(best, c)
			}
		}
	}
	return best
}

// mostLines is the largest number of functions that Minorants returns.
const mostLines = 10

// Minorants returns concave functions that lie nowhere above a write amplification; any mixture of them is one too.
// They are minorant's and, where the curve is convex, straight lines that touch it from below. Those are exact for
// workloads whose common mix is at the point of contact, and may be negative elsewhere.
func Minorants(w tco.WAF) [][]waf.MixPoint {
	main := minorant(w)
	out := [][]waf.MixPoint{main}
	table, ok := w.(*tco.Table)
	if !ok {
		return out
	}
	// The lower convex hull of its points: it is straight between them.
	var hull []waf.MixPoint
	for _, x := range append([]waf.MixPoint{{S: 0, WAF: w.At(0)}},
		append(table.Points(), waf.MixPoint{S: 1, WAF: w.At(1)})...) {
		if n := len(hull); n > 0 && x.S-hull[n-1].S < 1e-9 {
			continue
		}
		for n := len(hull); n >= 2; n = len(hull) {
			a, b := hull[n-2], hull[n-1]
			if float64((b.WAF-a.WAF)*(x.S-a.S)) < float64((x.WAF-a.WAF)*(b.S-a.S)) {
				break
			}
			hull = hull[:n-1]
		}
		hull = append(hull, x)
	}
	step := max(1, (len(hull)-1+mostLines-2)/(mostLines-1))
	for i := 1; i < len(hull); i += step {
		a, b := hull[i-1], hull[i]
		slope := (b.WAF - a.WAF) / (b.S - a.S)
		at := func(s float64) float64 { return a.WAF + float64(slope*(s-a.S)) - 1e-9 }
		out = append(out, []waf.MixPoint{{S: 0, WAF: at(0)}, {S: 1, WAF: at(1)}})
	}
	return out
}
