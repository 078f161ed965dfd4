package rng

import (
	"math"
	"testing"
)

// TestNS3Draws compares with an independent computation in arbitrary-precision integers.
func TestNS3Draws(t *testing.T) {
	d := NewNS3Draws(1, 0)
	for i, want := range []float64{0.816532044168251, 0.835150073680844, 0.943898466259912, 0.9852908130130938,
		0.6607343625353528, 0.650623640122292, 0.7115326083728072, 0.05698547508869759} {
		if got := d.Next(); math.Abs(got-want) > 1e-15 {
			t.Errorf("draw %d is %v, want %v", i, got, want)
		}
	}
	d, e := NewNS3Draws(7, 0), NewNS3Draws(7, 100)
	for range 100 {
		d.Next()
	}
	if a, b := d.Next(), e.Next(); a != b {
		t.Errorf("stream 100 begins with %v and with %v", a, b)
	}
}
