package waf

import (
	"farflash/numeric/rng"
	"fmt"
	"math"
)

// Class is a part of the logical space that receives a share of the writes, spread evenly over its pages.
type Class struct {
	Writes float64 // share of the host's page writes
	Space  float64 // share of the logical pages
}

// uniform returns a single class: uniform random writes.
func uniform() []Class { return []Class{{1, 1}} }

// HotCold returns two classes: a share of the writes that goes to a share of the space, and the rest. HotCold(.8, .2)
// sends four fifths of the writes to a fifth of the pages.
func HotCold(writes, space float64) []Class {
	return []Class{{writes, space}, {1 - writes, 1 - space}}
}

func checkClasses(classes []Class) error {
	writes, space := 0.0, 0.0
	for i, c := range classes {
		if !(c.Writes > 0) || !(c.Space > 0) {
			return fmt.Errorf("waf: class %d has %v of the writes and %v of the space; both must be positive", i,
				c.Writes, c.Space)
		}
		writes += c.Writes
		space += c.Space
	}
	if math.Abs(writes-1) > 1e-9 || math.Abs(space-1) > 1e-9 {
		return fmt.Errorf("waf: the classes have %v of the writes and %v of the space; both must add up to 1", writes,
			space)
	}
	return nil
}

// MixedFIFO returns the write amplification of FIFO collection when all classes, and their survivors, share one write
// frontier:
//
//	A = sum r/(1 - exp(-(r/f) alpha/A))
//
// over classes with writes r and space f.
func MixedFIFO(alpha float64, classes []Class) (float64, error) {
	if err := checkAlpha(alpha, 2); err != nil {
		return 0, err
	}
	if err := checkClasses(classes); err != nil {
		return 0, err
	}
	excess := func(a float64) float64 {
		sum := 0.0
		for _, c := range classes {
			sum += c.Writes / (1 - rng.Exp(-c.Writes/c.Space*alpha/a))
		}
		return sum - a
	}
	high := 2.0
	for excess(high) > 0 {
		high *= 2
	}
	return bisect(1, high, excess), nil
}

// SeparatedFIFO returns the least write amplification that FIFO reaches when each class has blocks of its own, and the
// alpha of each class at that optimum: the best that streams or FDP placement can achieve. It minimises sum r
// A(alpha_i) under sum f alpha_i = alpha.
//
// With u the valid share of a class's victims, alpha = -ln u/(1-u) and A = 1/(1-u), so -dA/dalpha = 1/g(u) with g(u) =
// (1-u)/u + ln u, which falls from infinity to 0. At the optimum r/(f g(u)) is the same for all classes.
func SeparatedFIFO(alpha float64, classes []Class) (a float64, alphas []float64, err error) {
	if err := checkAlpha(alpha, 2); err != nil {
		return 0, nil, err
	}
	if err := checkClasses(classes); err != nil {
		return 0, nil, err
	}
	alphas = make([]float64, len(classes))
	split := func(logPrice float64) float64 {
		sum := 0.0
		a = 0
		for i, c := range classes {
			want := float64(c.Writes / c.Space * rng.Exp(-logPrice))
			u := bisect(0, 1, func(u float64) float64 { return (1-u)/u + rng.Log(u) - want })
			alphas[i] = -rng.Log(u) / (1 - u)
			a += c.Writes / (1 - u)
			sum += float64(c.Space * alphas[i])
		}
		return sum
	}
	// The more expensive space is, the less of it each class takes.
	split(bisect(-600, 40, func(logPrice float64) float64 { return split(logPrice) - alpha }))
	return a, alphas, nil
}
