package bound

import (
	"math"

	"farflash/planner/tco"
)

// wholes is the least cost of whole drives that provide the space and the I/O of all workloads that never end, at the
// given cost per drive of each class: 0 if there are too many combinations to examine. All classes are optional.
func (d *dual) wholes(each []float64) float64 {
	var kinds []tco.Whole
	space, io := 0.0, 0.0
	for j := range d.rate {
		leastSpace, leastIO := math.Inf(1), math.Inf(1) // in the class of which it takes least
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
	// rounding must not add a drive to a sum that just fits
	space, io = float64(space*(1-1e-6)), float64(io*(1-1e-6))
	return tco.Cover(kinds, space, io)
}
