package workload

import (
	"fmt"

	"farflash/numeric/units"
	"farflash/workload/interleave"
)

// Merge interleaves sources by time, from a common start; equal times are ordered by source.
func Merge(sources ...Source) Source {
	for i, src := range sources {
		if src == nil {
			return failed{fmt.Errorf("workload: source %d of a merge is nil", i)}
		}
	}
	return interleave.Merge(func(r *Record) units.Duration { return r.Time }, sources...)
}
