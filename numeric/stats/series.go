package stats

import (
	"math"
	"math/big"
	"math/bits"

	"farflash/numeric/units"
)

// SeriesConfig says how a series cuts time.
type SeriesConfig struct {
	Width units.Duration // of a bin at first; it doubles whenever the bins run out
	Bins  int            // the most bins that are kept; even, at least 2
}

// DefaultSeriesConfig begins with bins of 100 us and keeps at most 256 of them: a run of any length ends with 128 to
// 256.
func DefaultSeriesConfig() SeriesConfig {
	return SeriesConfig{Width: 100 * units.Microsecond, Bins: 256}
}

// valid panics on a configuration that no caller may pass.
func (c SeriesConfig) valid() {
	if c.Width <= 0 || c.Bins < 2 || c.Bins%2 != 0 {
		panic("stats: a series needs a positive bin width and an even number of bins")
	}
}

// slots finds the bin of a time. Times mostly rise, so the bounds of the bin last used are kept.
type slots struct {
	width units.Duration
	limit int
	used  int // bins up to the last one that was written to
	at    int
	low   units.Duration
	high  units.Duration
}

func newSlots(c SeriesConfig) slots {
	c.valid()
	return slots{width: c.Width, limit: c.Bins, high: c.Width}
}

// find returns the bin of t, or -1 if the width must be doubled first.
func (s *slots) find(t units.Duration) int {
	if t >= s.low && t < s.high && s.at < s.used {
		return s.at
	}
	return s.seek(t)
}

// seek is find of another bin than the last.
//
//go:noinline
func (s *slots) seek(t units.Duration) int {
	if t < 0 {
		panic("stats: a sample before time 0")
	}
	i := t / s.width
	if i >= units.Duration(s.limit) {
		return -1
	}
	s.at = int(i)
	s.low = i * s.width
	s.high = s.low + s.width
	s.used = max(s.used, s.at+1)
	return s.at
}

// double halves the number of bins.
func (s *slots) double() {
	s.width *= 2
	s.used = (s.used + 1) / 2
	s.at, s.low, s.high = 0, 0, s.width
}

// Slot is one bin of a [Series]: the sum, the number and the largest of the values that fell into it.
type Slot struct {
	sum   [2]uint64
	Count int64
	Max   int64
}

func (s *Slot) add(v int64) {
	var carry uint64
	s.sum[0], carry = bits.Add64(s.sum[0], uint64(v), 0)
	s.sum[1] += carry
	if s.Count == 0 || v > s.Max {
		s.Max = v
	}
	s.Count++
}

func (s *Slot) merge(o *Slot) {
	if o.Count == 0 {
		return
	}
	var carry uint64
	s.sum[0], carry = bits.Add64(s.sum[0], o.sum[0], 0)
	s.sum[1], _ = bits.Add64(s.sum[1], o.sum[1], carry)
	if s.Count == 0 || o.Max > s.Max {
		s.Max = o.Max
	}
	s.Count += o.Count
}

// Sum returns the sum of the bin's values, rounded once.
func (s *Slot) Sum() float64 {
	if s.sum[1] == 0 {
		return float64(s.sum[0])
	}
	f, _ := new(big.Float).SetInt(fromWords(s.sum[:])).Float64()
	return f
}

// Mean returns the mean of the bin's values, NaN if there is none.
func (s *Slot) Mean() float64 {
	if s.Count == 0 {
		return math.NaN()
	}
	return s.Sum() / float64(s.Count)
}

// Series gathers values by time in bins of equal width. When a value lies beyond the last bin, neighbouring bins are
// joined and the width doubles, so memory stays bounded whatever the length of the run, and nothing that was counted
// is lost. Sums are exact. Add does not allocate once the bins exist.
type Series struct {
	slots
	bins []Slot
}

// NewSeries returns an empty series. It panics if the width is not positive or the number of bins not even and
// positive.
func NewSeries(c SeriesConfig) *Series {
	return &Series{slots: newSlots(c), bins: make([]Slot, c.Bins)}
}

// Add counts the value v, which must not be negative, at time t.
func (s *Series) Add(t units.Duration, v int64) {
	if v < 0 {
		panic("stats: a negative value was added to a series")
	}
	i := s.find(t)
	for i < 0 {
		s.fold()
		i = s.find(t)
	}
	s.bins[i].add(v)
}

func (s *Series) fold() {
	half := len(s.bins) / 2
	for i := range half {
		s.bins[i] = s.bins[2*i]
		s.bins[i].merge(&s.bins[2*i+1])
	}
	clear(s.bins[half:])
	s.double()
}

// Merge adds all that o has counted. Both must have begun with the same width, or widths that differ by a power of
// two, and have the same number of bins; it panics otherwise.
func (s *Series) Merge(o *Series) {
	if len(s.bins) != len(o.bins) {
		panic("stats: merge of series with different numbers of bins")
	}
	part := Series{slots: o.slots, bins: append([]Slot(nil), o.bins...)}
	for s.width < part.width {
		s.fold()
	}
	for part.width < s.width {
		part.fold()
	}
	if s.width != part.width {
		panic("stats: merge of series whose bin widths are not powers of two apart")
	}
	for i := range part.bins {
		s.bins[i].merge(&part.bins[i])
	}
	s.used = max(s.used, part.used)
}

// Width returns the present width of a bin.
func (s *Series) Width() units.Duration { return s.width }

// Slots returns the bins up to the last one that holds a value. The caller must not change them.
func (s *Series) Slots() []Slot { return s.bins[:s.used] }

// Rates returns each bin's sum per second: bytes become a bandwidth. The last bin is taken to reach up to end if it
// would end later, because nothing happened after the end of the run.
func (s *Series) Rates(end units.Duration) []float64 {
	out := make([]float64, s.used)
	for i := range out {
		if w := s.covered(i, end); w > 0 {
			out[i] = s.bins[i].Sum() / w.Seconds()
		}
	}
	return out
}

// CountRates returns each bin's number of values per second, with the last bin cut as in Rates: completions become
// IOPS.
func (s *Series) CountRates(end units.Duration) []float64 {
	out := make([]float64, s.used)
	for i := range out {
		if w := s.covered(i, end); w > 0 {
			out[i] = float64(s.bins[i].Count) / w.Seconds()
		}
	}
	return out
}

// covered returns how much of bin i lies before end.
func (s *Series) covered(i int, end units.Duration) units.Duration {
	return min(s.width, end-units.Duration(i)*s.width)
}

// Means returns each bin's mean, NaN where a bin holds no value.
func (s *Series) Means() []float64 {
	out := make([]float64, s.used)
	for i := range out {
		out[i] = s.bins[i].Mean()
	}
	return out
}
