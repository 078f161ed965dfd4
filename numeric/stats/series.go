package stats

import (
	"math"
	"math/big"
	"math/bits"

	"farflash/numeric/units"
)

// SeriesConfig is the division of time into bins.
type SeriesConfig struct {
	Width units.Duration // initial width of a bin; it doubles whenever the bins run out
	Bins  int            // maximum number of bins; even, at least 2
}

// DefaultSeriesConfig is bins of 100 us initially and at most 256.
func DefaultSeriesConfig() SeriesConfig {
	return SeriesConfig{Width: 100 * units.Microsecond, Bins: 256}
}

// maxBins bounds the memory of a series.
const maxBins = 1 << 20

// valid panics if the configuration is invalid.
func (c SeriesConfig) valid() {
	if c.Width <= 0 || c.Bins < 2 || c.Bins%2 != 0 || c.Bins > maxBins {
		panic("stats: a series needs a positive bin width and an even number of bins, up to 1048576")
	}
}

// slots finds the bin of a time. Because times mostly ascend, it caches the bounds of the last bin used.
type slots struct {
	width units.Duration
	limit int
	used  int // bins up to the last one written
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

// seek is the slow path of find, for a bin other than the last one used.
//
//go:noinline
func (s *slots) seek(t units.Duration) int {
	if t < 0 {
		panic("stats: sample before time 0")
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

// Slot is one bin of a [Series]: the sum, count and maximum of its values.
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

// exact returns the sum of the bin's values, rounded once.
func (s *Slot) Sum() float64 {
	if s.sum[1] == 0 {
		return float64(s.sum[0])
	}
	f, _ := new(big.Float).SetInt(fromWords(s.sum[:])).Float64()
	return f
}

// mean returns the mean of the bin's values, NaN if it is empty.
func (s *Slot) mean() float64 {
	if s.Count == 0 {
		return math.NaN()
	}
	return s.Sum() / float64(s.Count)
}

// Series collects values by time in bins of equal width. Beyond the last bin, neighbours are merged and the width
// doubles, so memory is bounded and no count lost. Sums are exact. Add does not allocate once the bins exist.
type Series struct {
	slots
	bins []Slot
}

// NewSeries panics unless the width is positive and the bins even, from 2 to 1048576.
func NewSeries(c SeriesConfig) *Series {
	return &Series{slots: newSlots(c), bins: make([]Slot, c.Bins)}
}

// Add counts the value v, which must not be negative, at time t.
func (s *Series) Add(t units.Duration, v int64) {
	if v < 0 {
		panic("stats: negative value added to a series")
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

// merge adds all values of o. Both must have the same number of bins, and initial widths that are equal or differ by a
// power of two; otherwise it panics.
func (s *Series) merge(o *Series) {
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

// Width returns the current width of a bin.
func (s *Series) Width() units.Duration { return s.width }

// Slots returns the bins up to the last non-empty one, not to be changed.
func (s *Series) Slots() []Slot { return s.bins[:s.used] }

// Rates returns each bin's sum per second; the last bin finishes at end at the latest.
func (s *Series) Rates(end units.Duration) []float64 {
	out := make([]float64, s.used)
	for i := range out {
		if w := s.covered(i, end); w > 0 {
			out[i] = s.bins[i].Sum() / w.Seconds()
		}
	}
	return out
}

// CountRates returns each bin's values per second, as Rates does.
func (s *Series) CountRates(end units.Duration) []float64 {
	out := make([]float64, s.used)
	for i := range out {
		if w := s.covered(i, end); w > 0 {
			out[i] = float64(s.bins[i].Count) / w.Seconds()
		}
	}
	return out
}

// covered returns the part of bin i before end.
func (s *Series) covered(i int, end units.Duration) units.Duration {
	return min(s.width, end-units.Duration(i)*s.width)
}

// Means returns each bin's mean, NaN where a bin is empty.
func (s *Series) Means() []float64 {
	out := make([]float64, s.used)
	for i := range out {
		out[i] = s.bins[i].mean()
	}
	return out
}
