package stats

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"

	"farflash/numeric/units"
)

// fio is the geometry of fio's latency histograms: buckets are 1 ns wide up to 128 ns, and at most 1/64 of their value
// wide above.
var fio = geometry{sub: 6, groups: 29}

// Buckets is the number of buckets of a [Histogram].
const Buckets = 29 << 6

// picos is the number of picoseconds in a nanosecond, the histogram's unit.
const picos = uint64(units.Nanosecond)

// Histogram counts durations in fio's buckets, the last from 2^34 ns (17.2 s) on, and keeps count, sum, sum of squares,
// minimum and maximum exactly, in picoseconds. The zero Histogram is empty. It takes 15 KB and is for one goroutine.
type Histogram struct {
	counts   [Buckets]uint64
	n        uint64
	sum      [2]uint64 // ps, least significant word first
	squares  [3]uint64 // ps^2, least significant word first
	min, max units.Duration
}

// Record counts a duration that is not negative. It does not allocate.
func (h *Histogram) Record(d units.Duration) {
	if d < 0 {
		panic("stats: negative duration recorded")
	}
	if h.n == 0 || d < h.min {
		h.min = d
	}
	if d > h.max {
		h.max = d
	}
	h.n++
	v := uint64(d)
	h.counts[fioIndex(v/picos)]++
	// Write the upper words on a carry only: a branch that is almost never taken is cheaper than the store.
	sum := h.sum[0] + v
	h.sum[0] = sum
	if sum < v {
		h.sum[1]++
	}
	hi, lo := bits.Mul64(v, v)
	var carry uint64
	h.squares[0], carry = bits.Add64(h.squares[0], lo, 0)
	h.squares[1], carry = bits.Add64(h.squares[1], hi, carry)
	if carry != 0 {
		h.squares[2]++
	}
}

// fioIndex is fio.index with its constants folded in.
func fioIndex(ns uint64) int {
	if ns < 128 {
		return int(ns)
	}
	shift := uint(bits.Len64(ns)) - 7
	i := int(shift<<6) + int(ns>>shift)
	if i >= Buckets {
		return Buckets - 1
	}
	return i
}

// Bucket returns a duration's bucket, from 0 to Buckets-1.
func Bucket(d units.Duration) int { return fioIndex(uint64(max(d, 0)) / picos) }

// Merge adds all counts of o; the order of merges does not matter.
func (h *Histogram) Merge(o *Histogram) {
	if o.n == 0 {
		return
	}
	if h.n == 0 || o.min < h.min {
		h.min = o.min
	}
	h.max = max(h.max, o.max)
	h.n += o.n
	first, last := o.used()
	for i, c := range o.counts[first : last+1] {
		h.counts[first+i] += c
	}
	addWords(&h.sum, &h.squares, &o.sum, &o.squares)
}

// used returns the buckets of the minimum and the maximum, between which all nonzero counts lie.
func (h *Histogram) used() (first, last int) {
	return fioIndex(uint64(h.min) / picos), fioIndex(uint64(h.max) / picos)
}

// Reset empties the histogram.
func (h *Histogram) Reset() {
	first, last := h.used()
	clear(h.counts[first : last+1])
	h.n, h.sum, h.squares, h.min, h.max = 0, [2]uint64{}, [3]uint64{}, 0, 0
}

// Count returns the number of recorded durations.
func (h *Histogram) Count() int64 { return int64(h.n) }

// Min returns the smallest recorded duration, 0 if there is none.
func (h *Histogram) Min() units.Duration { return h.min }

// Max returns the largest recorded duration, 0 if there is none.
func (h *Histogram) Max() units.Duration { return h.max }

// exact returns the sum of all durations in picoseconds.
func (h *Histogram) exact() *big.Int { return fromWords(h.sum[:]) }

// Mean returns the mean in picoseconds, correctly rounded; 0 if empty.
func (h *Histogram) Mean() float64 {
	if h.n == 0 {
		return 0
	}
	q := new(big.Rat).SetFrac(h.exact(), new(big.Int).SetUint64(h.n))
	f, _ := q.Float64()
	return f
}

// StdDev returns the standard deviation (divisor n) in picoseconds; 0 if empty.
func (h *Histogram) StdDev() float64 {
	if h.n == 0 {
		return 0
	}
	// (n * sum of squares - sum^2) / n^2, exact up to the division and the root.
	n := new(big.Int).SetUint64(h.n)
	v := fromWords(h.squares[:])
	v.Mul(v, n)
	s := h.exact()
	v.Sub(v, s.Mul(s, s))
	f, _ := new(big.Rat).SetFrac(v, n.Mul(n, n)).Float64()
	return math.Sqrt(f)
}

// Quantile returns the duration that a share q, from 0 to 1, does not exceed: the ceil(q*n)-th smallest, interpolated
// in its bucket (1 ns up to 128 ns, 1/64 of the value above) and within [Min, Max]; 0 if empty.
func (h *Histogram) Quantile(q float64) units.Duration {
	if h.n == 0 {
		return 0
	}
	return h.atRank(rankOf(q, h.n))
}

// Smallest returns the k-th smallest duration, from 1, as Quantile does.
func (h *Histogram) Smallest(k int64) units.Duration { return h.atRank(float64(k)) }

func (h *Histogram) atRank(rank float64) units.Duration {
	if rank <= 0 {
		return h.min
	}
	if rank >= float64(h.n) {
		return h.max
	}
	var below uint64
	for i, c := range &h.counts {
		if c == 0 {
			continue
		}
		if float64(below+c) >= rank {
			low, high := h.span(i)
			share := (rank - float64(below)) / float64(c)
			return low + units.Duration(math.Round(share*float64(high-low)))
		}
		below += c
	}
	return h.max
}

// rankOf returns q*n, snapped to the nearest integer if only the rounding of q separates them: the 99th percentile of
// 1000 values is the 990th, not the 991st.
func rankOf(q float64, n uint64) float64 {
	rank := float64(q * float64(n))
	if whole := math.Round(rank); math.Abs(rank-whole) <= 4e-16*float64(n) {
		return whole
	}
	return rank
}

// span returns the range of the values in the non-empty bucket i.
func (h *Histogram) span(i int) (low, high units.Duration) {
	l, u := fio.bounds(i)
	low, high = units.Duration(l*picos), units.Duration(u*picos)
	if i == Buckets-1 {
		high = max(high, h.max)
	}
	return max(low, h.min), min(high, h.max)
}

// CDF returns the share of durations up to d, interpolated in d's bucket; 0 if empty.
func (h *Histogram) CDF(d units.Duration) float64 {
	switch {
	case h.n == 0 || d < h.min:
		return 0
	case d >= h.max:
		return 1
	}
	at := fioIndex(uint64(d) / picos)
	var below uint64
	for _, c := range h.counts[:at] {
		below += c
	}
	low, high := h.span(at)
	inside := 0.0
	if c := h.counts[at]; c > 0 && high > low {
		share := math.Min(math.Max(float64(d-low)/float64(high-low), 0), 1)
		inside = share * float64(c)
	}
	return (float64(below) + inside) / float64(h.n)
}

// Bin is one non-empty bucket: Count durations in [Low, High).
type Bin struct {
	Low, High units.Duration
	Count     int64
}

// Middle is the bucket's name in fio's json+ output, in nanoseconds.
func (b Bin) Middle() int64 {
	low, high := int64(b.Low/units.Nanosecond), int64(b.High/units.Nanosecond)
	if high-low == 1 {
		return low
	}
	return low + (high-low)/2
}

// Bins returns the non-empty buckets in ascending order, not clipped to [Min, Max].
func (h *Histogram) Bins() []Bin {
	var bins []Bin
	for i, c := range &h.counts {
		if c > 0 {
			low, high := fio.bounds(i)
			bins = append(bins, Bin{units.Duration(low * picos), units.Duration(high * picos), int64(c)})
		}
	}
	return bins
}

// State is a histogram as plain values, for lossless serialisation.
type State struct {
	Count    int64
	Sum      *big.Int // ps
	Squares  *big.Int // ps^2
	Min, Max units.Duration
	Bins     []Bin // the non-empty buckets, smallest first
}

// State returns h as plain values.
func (h *Histogram) State() State {
	return State{Count: int64(h.n), Sum: h.exact(), Squares: fromWords(h.squares[:]), Min: h.min, Max: h.max,
		Bins: h.Bins()}
}

// Restore returns the histogram that s describes, and an error for states that no records can produce.
func Restore(s State) (*Histogram, error) {
	h := &Histogram{min: s.Min, max: s.Max}
	least, most := new(big.Int), new(big.Int) // bounds on the sum implied by the buckets
	last := -1
	for _, b := range s.Bins {
		if b.Low < 0 || b.Low%units.Nanosecond != 0 {
			return nil, fmt.Errorf("%v is not the lower bound of a bucket", b.Low)
		}
		i := fioIndex(uint64(b.Low) / picos)
		low, high := fio.bounds(i)
		switch {
		case low*picos != uint64(b.Low) || high*picos != uint64(b.High):
			return nil, fmt.Errorf("bucket [%v, %v) is not a fio bucket", b.Low, b.High)
		case i <= last:
			return nil, fmt.Errorf("bucket [%v, %v) is out of order", b.Low, b.High)
		case b.Count <= 0:
			return nil, fmt.Errorf("bucket [%v, %v): count %d must be positive", b.Low, b.High, b.Count)
		case h.n+uint64(b.Count) > math.MaxInt64:
			return nil, errors.New("bucket counts overflow")
		}
		last = i
		h.n += uint64(b.Count)
		h.counts[i] = uint64(b.Count)
		lo, hi := h.span(i)
		count := big.NewInt(b.Count)
		least.Add(least, new(big.Int).Mul(big.NewInt(int64(lo)), count))
		most.Add(most, new(big.Int).Mul(big.NewInt(int64(hi)), count))
	}
	if err := h.restoreTotals(s, least, most); err != nil {
		return nil, err
	}
	return h, nil
}

func (h *Histogram) restoreTotals(s State, least, most *big.Int) error {
	if s.Count != int64(h.n) {
		return fmt.Errorf("count is %d, but bucket counts add up to %d", s.Count, h.n)
	}
	if s.Sum == nil || s.Squares == nil || s.Sum.Sign() < 0 || s.Squares.Sign() < 0 ||
		s.Sum.BitLen() > 128 || s.Squares.BitLen() > 192 {
		return errors.New("sum or sum of squares is missing or out of range")
	}
	if h.n == 0 {
		if s.Sum.Sign() != 0 || s.Squares.Sign() != 0 || s.Min != 0 || s.Max != 0 {
			return errors.New("an empty histogram has a nonzero sum, sum of squares, minimum or maximum")
		}
		return nil
	}
	first, final := s.Bins[0], s.Bins[len(s.Bins)-1]
	if s.Min > s.Max || s.Min < first.Low || s.Min >= first.High && fioIndex(uint64(s.Min)/picos) != Buckets-1 ||
		s.Max < final.Low || s.Max >= final.High && fioIndex(uint64(s.Max)/picos) != Buckets-1 {
		return fmt.Errorf("minimum %v or maximum %v lies outside the first or last bucket", s.Min, s.Max)
	}
	if s.Sum.Cmp(least) < 0 || s.Sum.Cmp(most) > 0 {
		return fmt.Errorf("sum %v ps is outside the range that the buckets allow, %v to %v", s.Sum, least, most)
	}
	// By the Cauchy-Schwarz inequality the variance is not negative.
	spread := new(big.Int).Mul(s.Squares, big.NewInt(s.Count))
	if spread.Cmp(new(big.Int).Mul(s.Sum, s.Sum)) < 0 {
		return errors.New("the sum of squares is too small for the sum")
	}
	toWords(h.sum[:], s.Sum)
	toWords(h.squares[:], s.Squares)
	return nil
}

// fromWords returns the integer with the given 64-bit words, least significant first.
func fromWords(words []uint64) *big.Int {
	v := new(big.Int)
	for i := len(words) - 1; i >= 0; i-- {
		v.Lsh(v, 64)
		v.Or(v, new(big.Int).SetUint64(words[i]))
	}
	return v
}

func toWords(words []uint64, v *big.Int) {
	rest := new(big.Int).Set(v)
	mask := new(big.Int).SetUint64(math.MaxUint64)
	for i := range words {
		words[i] = new(big.Int).And(rest, mask).Uint64()
		rest.Rsh(rest, 64)
	}
}
