package cluster

import (
	"math"
	"testing"
)

// TestBursts verifies that burst sizes have the distribution's probabilities, and that their mean is Mean.
func TestBursts(t *testing.T) {
	for _, l := range []pareto{{64, 1.2}, {2, 1}, {7, 0.5}, {300, 3}} {
		const n = 200_000
		sum, atLeast := 0, make([]int, l.Most+2)
		for k := range n {
			b := l.Size((float64(k) + 0.5) / n)
			if b < 1 || b > l.Most {
				t.Fatalf("%+v: a burst of %d", l, b)
			}
			sum += b
			for j := 1; j <= b; j++ {
				atLeast[j]++
			}
		}
		if got, want := float64(sum)/n, l.Mean(); math.Abs(got-want) > 1e-3*want {
			t.Errorf("%+v: mean %v, not %v", l, got, want)
		}
		a, end := l.Shape, math.Pow(float64(l.Most)+1, -l.Shape)
		for j := 1; j <= l.Most; j++ {
			if got, want := float64(atLeast[j])/n, (math.Pow(float64(j), -a)-end)/(1-end); math.Abs(got-want) > 2e-5 {
				t.Errorf("%+v: a burst is of %d or more in %v, not %v", l, j, got, want)
			}
		}
	}
	if one := (pareto{1, 1.2}); math.Abs(one.Mean()-1) > 1e-12 || one.Size(0.999) != 1 {
		t.Errorf("bursts of one are of %v", one.Mean())
	}
}
