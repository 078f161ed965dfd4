package cluster

import (
	"math"
	"testing"
)

// TestBursts verifies that burst sizes have the distribution's probabilities, and the mean that is computed.
func TestBursts(t *testing.T) {
	for _, l := range []pareto{{64, 1.2}, {2, 1}, {7, 0.5}, {300, 3}} {
		const n = 200_000
		sum, atLeast := 0, make([]int, l.most+2)
		for k := range n {
			b := l.size((float64(k) + 0.5) / n)
			if b < 1 || b > l.most {
				t.Fatalf("%+v: a burst of %d", l, b)
			}
			sum += b
			for j := 1; j <= b; j++ {
				atLeast[j]++
			}
		}
		if got, want := float64(sum)/n, l.mean(); math.Abs(got-want) > 1e-3*want {
			t.Errorf("%+v: mean %v, not %v", l, got, want)
		}
		a, end := l.shape, math.Pow(float64(l.most)+1, -l.shape)
		for j := 1; j <= l.most; j++ {
			if got, want := float64(atLeast[j])/n, (math.Pow(float64(j), -a)-end)/(1-end); math.Abs(got-want) > 2e-5 {
				t.Errorf("%+v: a burst is of %d or more in %v, not %v", l, j, got, want)
			}
		}
	}
	if one := (pareto{1, 1.2}); math.Abs(one.mean()-1) > 1e-12 || one.size(0.999) != 1 {
		t.Errorf("bursts of one are of %v", one.mean())
	}
}
