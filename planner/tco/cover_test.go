package tco_test

import (
	"testing"

	"farflash/planner/tco"
)

// TestCover compares with results by hand, including 0 where there is no solution.
func TestCover(t *testing.T) {
	small, large := tco.Whole{Cost: 3, Space: 2, IO: 10, Count: 9}, tco.Whole{Cost: 5, Space: 4, IO: 5, Count: 1}
	for _, c := range []struct {
		kinds           []tco.Whole
		space, io, want float64
	}{
		{[]tco.Whole{small, large}, 4, 5, 5},    // the large one
		{[]tco.Whole{small, large}, 5, 5, 8},    // both: there is no second large one
		{[]tco.Whole{large, small}, 4, 6, 6},    // two small ones, for the I/O
		{[]tco.Whole{large, small}, 22.1, 0, 0}, // all ten hold 22
		{[]tco.Whole{small, large}, 0, 0, 0},    // no demand
		{nil, 1, 0, 0},                          // no drives to provide it
	} {
		if got := tco.Cover(c.kinds, c.space, c.io); got != c.want {
			t.Errorf("%v GB and %v IOPS: %v, want %v", c.space, c.io, got, c.want)
		}
	}
}
