package stats

import (
	"math/bits"

	"farflash/numeric/units"
)

// Packed is a Histogram's non-empty buckets, immutable.
type Packed struct {
	bucket   []uint16
	counts   []uint64
	n        uint64
	sum      [2]uint64
	squares  [3]uint64
	min, max units.Duration
}

// Pack moves the contents into a Packed and leaves the histogram empty.
func (h *Histogram) Pack() Packed {
	p := Packed{n: h.n, sum: h.sum, squares: h.squares, min: h.min, max: h.max}
	if h.n == 0 {
		return p
	}
	first, last := Bucket(h.min), Bucket(h.max)
	held := 0
	for _, c := range h.counts[first : last+1] {
		if c > 0 {
			held++
		}
	}
	p.bucket, p.counts = make([]uint16, 0, held), make([]uint64, 0, held)
	for i := first; i <= last; i++ {
		if c := h.counts[i]; c > 0 {
			p.bucket, p.counts = append(p.bucket, uint16(i)), append(p.counts, c)
			h.counts[i] = 0
		}
	}
	h.n, h.sum, h.squares, h.min, h.max = 0, [2]uint64{}, [3]uint64{}, 0, 0
	return p
}

// Count returns the number of durations.
func (p *Packed) Count() int64 { return int64(p.n) }

// Unpack adds packed contents to a histogram.
func (h *Histogram) Unpack(p *Packed) {
	if p.n == 0 {
		return
	}
	if h.n == 0 || p.min < h.min {
		h.min = p.min
	}
	h.max = max(h.max, p.max)
	h.n += p.n
	for i, b := range p.bucket {
		h.counts[b] += p.counts[i]
	}
	addWords(&h.sum, &h.squares, &p.sum, &p.squares)
}

// Join returns the merged contents of a and b.
func Join(a, b *Packed) Packed {
	switch {
	case a.n == 0:
		return *b
	case b.n == 0:
		return *a
	}
	out := Packed{n: a.n + b.n, sum: a.sum, squares: a.squares, min: min(a.min, b.min), max: max(a.max, b.max),
		bucket: make([]uint16, 0, len(a.bucket)+len(b.bucket)), counts: make([]uint64, 0, len(a.bucket)+len(b.bucket))}
	addWords(&out.sum, &out.squares, &b.sum, &b.squares)
	for i, k := 0, 0; i < len(a.bucket) || k < len(b.bucket); {
		switch {
		case k == len(b.bucket) || i < len(a.bucket) && a.bucket[i] < b.bucket[k]:
			out.bucket, out.counts = append(out.bucket, a.bucket[i]), append(out.counts, a.counts[i])
			i++
		case i == len(a.bucket) || b.bucket[k] < a.bucket[i]:
			out.bucket, out.counts = append(out.bucket, b.bucket[k]), append(out.counts, b.counts[k])
			k++
		default:
			out.bucket, out.counts = append(out.bucket, a.bucket[i]), append(out.counts, a.counts[i]+b.counts[k])
			i, k = i+1, k+1
		}
	}
	return out
}

// addWords adds a sum and a sum of squares, least significant words first.
func addWords(sum *[2]uint64, squares *[3]uint64, s *[2]uint64, q *[3]uint64) {
	var carry uint64
	sum[0], carry = bits.Add64(sum[0], s[0], 0)
	sum[1], _ = bits.Add64(sum[1], s[1], carry)
	squares[0], carry = bits.Add64(squares[0], q[0], 0)
	squares[1], carry = bits.Add64(squares[1], q[1], carry)
	squares[2], _ = bits.Add64(squares[2], q[2], carry)
}
