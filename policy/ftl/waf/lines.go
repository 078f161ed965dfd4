package waf

import "math"

// SweepWithin and KnotsWithin are the default tolerances of Sweep and FitLines. Together they keep the line within 5 %
// of simulations, also between the shares that were simulated.
const (
	SweepWithin = 0.03
	KnotsWithin = 0.02
)

// FitLines returns a piecewise linear curve through measured write amplification by rising sequential share, with as
// few knots as possible. The knots are points of the input, and every other point lies within the given relative
// tolerance of the line between its neighbouring knots. off is the largest relative deviation of the curve from a
// point.
//
// Equation 7 has a single turning point, and is more than 80 % off where a curve falls early or in steps, as with
// little spare space. The curve need not fall everywhere: loops that run in step with the blocks of a pool amplify a
// few per cent more or less.
func FitLines(points []MixPoint, within float64) (knots []MixPoint, off float64) {
	knots = append(knots, points[0])
	for at := 0; at < len(points)-1; {
		next := at + 1
		for far := len(points) - 1; far > next; far-- {
			if chordWithin(points, at, far, within) {
				next = far
				break
			}
		}
		for i := at + 1; i < next; i++ {
			off = max(off, math.Abs(between(points[at], points[next], points[i].S)/points[i].WAF-1))
		}
		at = next
		knots = append(knots, points[at])
	}
	return knots, off
}

// leastPart is the smallest difference of shares to which a sweep is refined.
const leastPart = 1.0 / 320

// Sweep simulates the given rising shares of sequential writes. Between two shares it simulates the midpoint and, where
// the straight line is off the simulation by more than the relative tolerance, refines further: with little spare space
// the curve falls by half within a fortieth.
func Sweep(e Experiment, shares []float64, within float64) ([]MixPoint, error) {
	return SweepOf(func(s float64) (Experiment, error) {
		e.Sequential = s
		return e, nil
	}, shares, within)
}

// SweepOf is Sweep with the experiment for each share supplied by a function.
func SweepOf(of func(s float64) (Experiment, error), shares []float64, within float64) ([]MixPoint, error) {
	at := func(s float64) (MixPoint, error) {
		e, err := of(s)
		if err != nil {
			return MixPoint{}, err
		}
		r, err := Simulate(e)
		return MixPoint{S: s, WAF: r.WAF}, err
	}
	var points []MixPoint
	var refine func(a, b MixPoint) error
	refine = func(a, b MixPoint) error {
		if b.S-a.S < leastPart || math.Abs(a.WAF/b.WAF-1) <= within {
			return nil
		}
		mid, err := at((a.S + b.S) / 2)
		if err != nil {
			return err
		}
		if math.Abs(between(a, b, mid.S)/mid.WAF-1) <= within {
			points = append(points, mid)
			return nil
		}
		if err := refine(a, mid); err != nil {
			return err
		}
		points = append(points, mid)
		return refine(mid, b)
	}
	for _, s := range shares {
		x, err := at(s)
		if err != nil {
			return nil, err
		}
		if n := len(points); n > 0 {
			if err := refine(points[n-1], x); err != nil {
				return nil, err
			}
		}
		points = append(points, x)
	}
	return points, nil
}

// chordWithin reports whether all points between two are within the tolerance of the line between these two.
func chordWithin(list []MixPoint, from, to int, within float64) bool {
	for i := from + 1; i < to; i++ {
		if math.Abs(between(list[from], list[to], list[i].S)/list[i].WAF-1) > within {
			return false
		}
	}
	return true
}

// between returns the value at s of the straight line from a to b.
func between(a, b MixPoint, s float64) float64 {
	if b.S == a.S {
		return a.WAF
	}
	return a.WAF + float64((b.WAF-a.WAF)*((s-a.S)/(b.S-a.S)))
}
