package bound

import (
	"math"

	"farflash/planner/tco"
)

// wholes is what whole drives come to at least, of those that hold the space and the I/O of all workloads that never
// end, if a drive of each class comes to so much: 0 where there are too many combinations to look at. All classes are
// optional.
func (d *dual) wholes(each []float64) float64 {
	var kinds []tco.Whole
	space, io := 0.0, 0.0
	for j := range d.rate {
		leastSpace, leastIO := math.Inf(1), math.Inf(1) // where it takes least
		for i := range d.classes {
			leastSpace, leastIO = min(leastSpace, d.classes[i].space[j]), min(leastIO, d.classes[i].io[j])
		}
		space, io = space+leastSpace, io+leastIO
	}
	for i := range d.classes {
		if c := &d.classes[i]; c.c.Count > 0 {
			kinds = append(kinds, tco.Whole{Cost: each[i], Space: c.spaceMost, IO: c.ioMost, Count: float64(c.c.Count)})
		}
	}
	// rounding must not make a drive more of a sum that just fits
	space, io = float64(space*(1-1e-6)), float64(io*(1-1e-6))
	return tco.Cover(kinds, space, io)
}
