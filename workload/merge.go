package workload

import (
	"farflash/numeric/units"
	"farflash/workload/interleave"
)

// Merge returns a Source that interleaves the given ones by time. Records with equal times are ordered by source. The
// times of all sources count from a common start.
func Merge(sources ...Source) Source {
	return interleave.Merge(func(r *Record) units.Duration { return r.Time }, sources...)
}
