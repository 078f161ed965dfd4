package flows

import (
	"cmp"
	"slices"

	"farflash/numeric/units"
	"farflash/workload/interleave"
)

// Sort orders flows by start; flows with equal starts keep their order.
func Sort(flows []Flow) {
	slices.SortStableFunc(flows, func(a, b Flow) int { return cmp.Compare(a.Start, b.Start) })
}

// Merge returns a Source that interleaves the given ones by the starts of their flows. Flows with equal starts are
// ordered by source.
func Merge(sources ...Source) Source {
	return interleave.Merge(func(f *Flow) units.Duration { return f.Start }, sources...)
}
