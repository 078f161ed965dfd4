package receives

import (
	"testing"

	"farflash/numeric/units"
)

// TestTimers compares the times with the specification's ends and some of its steps, and verifies that they grow.
func TestTimers(t *testing.T) {
	const us = units.Microsecond
	for i, want := range map[int]units.Duration{0: 10 * us, 4: 60 * us, 12: 960 * us, 19: 10240 * us, 30: 491520 * us,
		31: 655360 * us} {
		if Timers[i] != want {
			t.Errorf("timer %d is %v, not %v", i, Timers[i], want)
		}
	}
	for i := range Timers[1:] {
		if Timers[i+1] <= Timers[i] {
			t.Errorf("timer %d is %v, after %v", i+1, Timers[i+1], Timers[i])
		}
	}
	for at, want := range map[units.Duration]units.Duration{-us: 10 * us, 45 * us: 40 * us, 51 * us: 60 * us,
		units.Second: 655360 * us} {
		if got := Nearest(at); got != want {
			t.Errorf("the timer nearest to %v is %v, not %v", at, got, want)
		}
	}
}
