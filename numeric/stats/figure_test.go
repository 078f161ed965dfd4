package stats

import (
	"math"
	"testing"
)

// TestFigure verifies the small functions against values computed by hand.
func TestFigure(t *testing.T) {
	x := []float64{1, 2, 3, 4}
	for share, want := range map[float64]float64{0: 1, 0.25: 1, 0.26: 2, 0.5: 2, 0.75: 3, 0.99: 4, 1: 4} {
		if got := QuantileOf(x, share); got != want {
			t.Errorf("%v: %v, not %v", share, got, want)
		}
	}
	if !math.IsNaN(Ratio(1, 0)) || Ratio(1, 4) != 0.25 || Micro(0.12345678) != 0.123457 {
		t.Error(Ratio(1, 0), Ratio(1, 4), Micro(0.12345678))
	}
}
