package workload

import (
	"farflash/numeric/units"
	"farflash/workload/interleave"
)

// Merge returns a Source that interleaves the given ones by time. Of records with equal times, the one of the earlier
// source comes first. Each source's times count from a common start.
func Merge(sources ...Source) Source {
	return interleave.Merge(func(r *Record) units.Duration { return r.Time }, sources...)
}
