package stats

import (
	"math"
	"slices"

	"farflash/numeric/units"
)

// coarse is the geometry of the histograms inside a [LatencySeries]: 16 buckets per octave up to 2^34 ns.
var coarse = geometry{coarseSub, coarseGroups}

const (
	coarseSub, coarseGroups = 4, 31
	coarseBuckets           = coarseGroups << coarseSub
)

// LatencySeries is a [Series] of durations with a coarse histogram of 2 KB a bin: quantiles are accurate to 1/16.
type LatencySeries struct {
	series Series
	shapes []*[coarseBuckets]uint32
	spare  []*[coarseBuckets]uint32 // freed by folding, cleared

	// The bin last added to, and its bounds.
	slot      *Slot
	shape     *[coarseBuckets]uint32
	low, high units.Duration
}

// NewLatencySeries returns an empty series. It panics where [NewSeries] does.
func NewLatencySeries(c SeriesConfig) *LatencySeries {
	return &LatencySeries{series: *NewSeries(c), shapes: make([]*[coarseBuckets]uint32, c.Bins)}
}

// Add counts the duration d, which must not be negative, at time t.
func (s *LatencySeries) Add(t, d units.Duration) {
	if d < 0 {
		panic("stats: a negative duration was added to a series")
	}
	if t < s.low || t >= s.high {
		s.open(t)
	}
	s.slot.add(int64(d))
	if c := &s.shape[geometry{coarseSub, coarseGroups}.index(uint64(d)/picos)]; *c < math.MaxUint32 {
		*c++
	}
}

// open selects the bin of a time, and allocates it if necessary.
//
//go:noinline
func (s *LatencySeries) open(t units.Duration) {
	i := s.series.find(t)
	for i < 0 {
		s.fold()
		i = s.series.find(t)
	}
	if s.shapes[i] == nil {
		s.shapes[i] = s.fresh()
	}
	s.slot, s.shape, s.low, s.high = &s.series.bins[i], s.shapes[i], s.series.low, s.series.high
}

func (s *LatencySeries) fresh() *[coarseBuckets]uint32 {
	if n := len(s.spare); n > 0 {
		shape := s.spare[n-1]
		s.spare = s.spare[:n-1]
		return shape
	}
	return new([coarseBuckets]uint32)
}

func (s *LatencySeries) fold() {
	half := len(s.shapes) / 2
	for i := range half {
		a, b := s.shapes[2*i], s.shapes[2*i+1]
		switch {
		case a == nil:
			a = b
		case b != nil:
			for k, c := range b {
				a[k] += min(c, math.MaxUint32-a[k])
			}
			*b = [coarseBuckets]uint32{}
			s.spare = append(s.spare, b)
		}
		s.shapes[i] = a
	}
	clear(s.shapes[half:])
	s.series.fold()
}

// Durations returns the values, merged with those of others of the same initial width.
func (s *LatencySeries) Durations(others ...*LatencySeries) *Series {
	all := &Series{slots: s.series.slots, bins: slices.Clone(s.series.bins)}
	for _, o := range others {
		all.merge(&o.series)
	}
	return all
}

// Width returns the current width of a bin.
func (s *LatencySeries) Width() units.Duration { return s.series.width }

// Means returns each bin's mean in picoseconds, NaN where a bin is empty.
func (s *LatencySeries) Means() []float64 { return s.series.Means() }

// Slots returns each bin's exact count, sum and maximum (ps), not to be changed.
func (s *LatencySeries) Slots() []Slot { return s.series.Slots() }

// Quantiles returns each bin's q quantile in picoseconds; NaN where empty.
func (s *LatencySeries) Quantiles(q float64) []float64 {
	out := make([]float64, s.series.used)
	for i := range out {
		out[i] = quantileOf(s.shapes[i], q, s.series.bins[i].Max)
	}
	return out
}

func quantileOf(shape *[coarseBuckets]uint32, q float64, largest int64) float64 {
	if shape == nil {
		return math.NaN()
	}
	var n uint64
	for _, c := range shape {
		n += uint64(c)
	}
	rank := rankOf(q, n)
	var below uint64
	for i, c := range shape {
		if c == 0 {
			continue
		}
		if float64(below+uint64(c)) >= rank {
			l, u := coarse.bounds(i)
			low, high := float64(l*picos), math.Min(float64(u*picos), float64(largest))
			if i == coarseBuckets-1 {
				high = float64(largest)
			}
			share := math.Max(rank-float64(below), 0) / float64(c)
			return low + float64(share*(high-low))
		}
		below += uint64(c)
	}
	return float64(largest)
}
