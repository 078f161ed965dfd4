package workload

import (
	"fmt"

	"farflash/numeric/units"
	"farflash/workload/interleave"
)

// Merge returns a Source that interleaves the given ones by time. Records with equal times are ordered by source. The
// times of all sources count from a common start.
func Merge(sources ...Source) Source {
	for i, src := range sources {
		if src == nil {
			return failed{fmt.Errorf("workload: source %d of a merge is nil", i)}
		}
	}
	return interleave.Merge(func(r *Record) units.Duration { return r.Time }, sources...)
}
