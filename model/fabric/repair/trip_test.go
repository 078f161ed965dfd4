package repair

import (
	"testing"

	"farflash/sim"
)

// TestTrips: mean and deviation are RFC 6298's.
func TestTrips(t *testing.T) {
	var trip Trip
	for i, x := range []struct{ took, patience sim.Time }{
		{800, 800 + 4*400},          // R, R/2
		{800, 800 + 4*300},          // the deviation falls by a quarter
		{1600, 900 + 4*(300+500/4)}, // 3/4 x 300 + 1/4 x 800, then 7/8 x 800 + 1/8 x 1600
	} {
		trip.Since = 1000
		if got := trip.Measured(1000 + x.took); got != x.patience {
			t.Errorf("after %d measurements: %d, not %d", i+1, got, x.patience)
		}
	}
}
