package stats

import (
	"math"
	"testing"

	"farflash/numeric/rng"
)

// TestPatterns verifies that a sawtooth under noise of equal amplitude is found, and that noise alone is not.
func TestPatterns(t *testing.T) {
	rnd := rng.NewStream(1, "noise")
	const n, period = 6000, 250
	noise, saw, pure := make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range noise {
		noise[i] = 100 * rnd.Float64()
		pure[i] = float64(i%period) * 100 / period
		saw[i] = noise[i] + pure[i]
	}
	if p, share := Strongest(pure); math.Abs(p-period) > 0.01 || math.Abs(share-6/(math.Pi*math.Pi)) > 0.01 {
		t.Errorf("a sawtooth's strongest period is %g, with %g of its variance", p, share)
	}
	if p, share := Strongest(saw); math.Abs(p-period) > 1 || share < 0.25 {
		t.Errorf("under noise it is %g, with %g", p, share)
	}
	if a := Autocorrelation(saw, n/4); a[0] != 1 || a[period] < 0.4 || a[period/2] > -0.1 {
		t.Errorf("autocorrelations of 1, 250 and 125 places: %g, %g, %g", a[0], a[period], a[period/2])
	}
	if _, share := Strongest(noise); share > 0.01 {
		t.Errorf("noise has %g of its variance at one period", share)
	}
	for k, v := range Autocorrelation(noise, n/4)[1:] {
		if math.Abs(v) > 0.1 {
			t.Errorf("noise: %g at lag %d", v, k+1)
		}
	}
	if p, share := Strongest([]float64{3, 3, 3, 3}); p != 0 || share != 0 {
		t.Errorf("a constant: %g, %g", p, share)
	}
	if a := Autocorrelation([]float64{3, 3, 3}, 2); a[0] != 0 || a[2] != 0 {
		t.Errorf("a constant: %v", a)
	}
}
