package cluster

import (
	"testing"

	"farflash/sim"
)

// TestClockLearns verifies RFC 6298's eighth and quarter, for durations and for lateness, which may be negative.
func TestClockLearns(t *testing.T) {
	c := clock{mean: 800, spread: 400}
	for _, x := range []struct {
		took sim.Time
		want clock
		late sim.Time
	}{
		{1600, clock{900, 500}, 4900},
		{100, clock{800, 575}, 5400},
		{-800, clock{600, 831}, 7248},
	} {
		c.learn(x.took)
		if c != x.want || c.late(10) != x.late || c.late(9000) != 9000 {
			t.Errorf("after %v: %+v, late after %v, not %+v, %v", int64(x.took), c, int64(c.late(10)), x.want,
				int64(x.late))
		}
	}
}

// TestPatience verifies that 19 of 20 steps go down, and that a step is a sixty-fourth and at least 20 ps.
func TestPatience(t *testing.T) {
	for _, x := range []struct {
		from patience
		took sim.Time
		want patience
	}{{6400, 6401, 6400 + 100 - 5}, {6400, 6400, 6400 - 5}, {64, 65, 64 + 20 - 1}} {
		p := x.from
		if p.learn(x.took); p != x.want {
			t.Errorf("%v after %v: %v, not %v", x.from, int64(x.took), p, x.want)
		}
	}
}
