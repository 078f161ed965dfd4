package flows

import (
	"cmp"
	"slices"

	"farflash/numeric/units"
	"farflash/workload/interleave"
)

// Sort orders flows by their starts; those of equal starts stay as they are.
func Sort(flows []Flow) {
	slices.SortStableFunc(flows, func(a, b Flow) int { return cmp.Compare(a.Start, b.Start) })
}

// Merge returns a Source that interleaves the given ones by their flows' starts. Of flows with equal starts, the one
// of the earlier source comes first.
func Merge(sources ...Source) Source {
	return interleave.Merge(func(f *Flow) units.Duration { return f.Start }, sources...)
}
