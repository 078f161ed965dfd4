// Package fill computes the placement and ownership of the data of a preconditioned drive from a seed and a few numbers
// a block. A drive of any size is thus filled at once and costs no memory until it is written to. A filling is
// immutable, and drives with the same filling share it.
//
// The main type is Layout. A plane holds data numbered from 0. Data appended in order are stored in that order. Data
// that are spread are in the state left by uniform random overwriting: each block has its number of valid pages; which
// of its pages these are, and whose, is random: a permutation of the block's pages, of which a prefix is valid, and a
// permutation of the plane's data. Both can be computed in either direction by a few rounds of additions, odd
// multiplications and shifts modulo a power of two, each of which is invertible; a result beyond the end is permuted
// again until it is in range (cycle walking: Black and Rogaway, CT-RSA 2002).
//
// It leaves out how many pages of a block are valid (policy/ftl/waf), and which plane a logical page belongs to (ssd).
package fill

import (
	"math/bits"

	"farflash/internal/divide"
	"farflash/numeric/rng"
)

// Layout is the placement of the data of each plane. It does not change once the planes are filled, and is then safe
// for concurrent use.
type Layout struct {
	seed   uint64
	pages  uint32 // of a block
	div    divide.By
	inside shuffle // permutes a block's pages
	planes []plane
}

// plane lists a plane's areas, in the order of their data and of their blocks.
type plane struct {
	areas  []area
	blocks uint32 // number of blocks with data
}

// area is a set of data of a plane that were written together to separate blocks.
type area struct {
	first, n    uint32 // range of its data
	block, used uint32 // range of its blocks
	spread      *Spread
	key         uint64
}

// New returns a layout of empty planes.
func New(planes, pagesPerBlock int, seed uint64) *Layout {
	f := &Layout{seed: seed, pages: uint32(pagesPerBlock), div: divide.New(uint64(pagesPerBlock)),
		planes: make([]plane, planes)}
	f.inside = newShuffle(f.pages, seed)
	return f
}

// Append adds n data to a plane, in order, in new blocks.
func (f *Layout) Append(plane, n int) {
	f.add(plane, area{n: uint32(n), used: (uint32(n) + f.pages - 1) / f.pages})
}

// AppendSpread adds as many data as s holds to a plane, spread over new blocks as s specifies.
func (f *Layout) AppendSpread(plane int, s *Spread) {
	f.add(plane, area{n: s.data(), used: uint32(len(s.before) - 1), spread: s, key: f.key(plane, -1)})
}

func (f *Layout) add(plane int, a area) {
	p := &f.planes[plane]
	if k := len(p.areas); k > 0 {
		a.first = p.areas[k-1].first + p.areas[k-1].n
	}
	a.block = p.blocks
	p.blocks += a.used
	p.areas = append(p.areas, a)
}

// key returns the key of the permutation of a plane's data (block -1), or of a block's pages.
func (f *Layout) key(plane int, block int64) uint64 {
	return rng.Mix(f.seed ^ rng.Mix(uint64(plane)<<32^uint64(uint32(block))+0x9e3779b97f4a7c15))
}

// Blocks returns the number of blocks of a plane that hold data, counted from the first.
func (f *Layout) Blocks(plane int) int { return int(f.planes[plane].blocks) }

// Place returns the page of its plane that stores a datum.
func (f *Layout) Place(plane int, datum uint32) uint32 {
	p := &f.planes[plane]
	k := 0
	for datum-p.areas[k].first >= p.areas[k].n {
		k++
	}
	a := &p.areas[k]
	j := datum - a.first
	s := a.spread
	if s == nil {
		return a.block*f.pages + j
	}
	r := s.order.forward(j, a.key)
	b := s.blockOf(r)
	return (a.block+b)*f.pages + f.inside.forward(r-s.before[b], f.key(plane, int64(a.block+b)))
}

// Datum returns the datum stored on a page of a plane, if there is one.
func (f *Layout) Datum(plane int, page uint32) (uint32, bool) {
	p := &f.planes[plane]
	q, in := f.div.Split(uint64(page))
	b := uint32(q)
	if b >= p.blocks {
		return 0, false
	}
	k := 0
	for b-p.areas[k].block >= p.areas[k].used {
		k++
	}
	a := &p.areas[k]
	s := a.spread
	if s == nil {
		j := page - a.block*f.pages
		return a.first + j, j < a.n
	}
	rank := f.inside.back(uint32(in), f.key(plane, int64(b)))
	b -= a.block
	if rank >= s.before[b+1]-s.before[b] {
		return 0, false
	}
	return a.first + s.order.back(s.before[b]+rank, a.key), true
}

// Block returns the number of a block's pages that were written, from 0 on, and the number that hold data. It sets a
// bit in valid, which must be zero, for each page that holds data.
func (f *Layout) Block(plane, block int, valid []uint64) (written, holding int) {
	p := &f.planes[plane]
	b := uint32(block)
	k := 0
	for b-p.areas[k].block >= p.areas[k].used {
		k++
	}
	a := &p.areas[k]
	b -= a.block
	if a.spread == nil {
		n := min(f.pages, a.n-b*f.pages)
		all(valid, n)
		return int(n), int(n)
	}
	n := a.spread.before[b+1] - a.spread.before[b]
	key := f.key(plane, int64(block))
	// Visit whichever is fewer, valid or invalid pages.
	if 2*n > f.pages {
		all(valid, f.pages)
		f.inside.flip(valid, n, f.pages, key)
	} else {
		f.inside.flip(valid, 0, n, key)
	}
	return int(f.pages), int(n)
}

// all sets the first n bits.
func all(words []uint64, n uint32) {
	for i := range n >> 6 {
		words[i] = ^uint64(0)
	}
	if n&63 != 0 {
		words[n>>6] |= 1<<(n&63) - 1
	}
}

// Holding returns the number of pages of a block that were written, and the number that hold data.
func (f *Layout) Holding(plane, block int) (written, holding int) {
	p := &f.planes[plane]
	b := uint32(block)
	for k := range p.areas {
		a := &p.areas[k]
		if in := b - a.block; in < a.used {
			if a.spread == nil {
				n := int(min(f.pages, a.n-in*f.pages))
				return n, n
			}
			return int(f.pages), int(a.spread.before[in+1] - a.spread.before[in])
		}
	}
	return 0, 0
}

// Spread is the number of pages with data for each of several blocks. Similar planes share one.
type Spread struct {
	before []uint32 // data in the blocks before each; the last is the total
	guide  []uint32 // the block of each datum whose number is a multiple of 1<<shift
	shift  uint8
	order  shuffle // permutes the data
}

// NewSpread returns a spread of data over blocks with the given numbers of data.
func NewSpread(counts []int, seed uint64) *Spread {
	s := &Spread{before: make([]uint32, len(counts)+1)}
	for b, n := range counts {
		s.before[b+1] = s.before[b] + uint32(n)
	}
	n := s.data()
	s.order = newShuffle(n, seed)
	for n>>s.shift > uint32(2*len(counts)) {
		s.shift++
	}
	s.guide = make([]uint32, n>>s.shift+1)
	b := uint32(0)
	for i := range s.guide {
		for int(b)+1 < len(counts) && s.before[b+1] <= uint32(i)<<s.shift {
			b++
		}
		s.guide[i] = b
	}
	return s
}

func (s *Spread) data() uint32 { return s.before[len(s.before)-1] }

// blockOf returns the block that holds datum r, counted in the order of blocks.
func (s *Spread) blockOf(r uint32) uint32 {
	b := s.guide[r>>s.shift]
	for s.before[b+1] <= r {
		b++
	}
	return b
}

// shuffle is a family of permutations of the numbers below n, one for each key.
type shuffle struct {
	n, mask   uint32
	half      uint8
	odd, undo [rounds]uint32
}

const rounds = 4

func newShuffle(n uint32, seed uint64) shuffle {
	k := bits.Len32(max(n, 1) - 1)
	s := shuffle{n: n, mask: uint32(uint64(1)<<k - 1), half: uint8(k+1) / 2}
	for i := range rounds {
		seed = rng.Mix(seed + 0x9e3779b97f4a7c15)
		a := uint32(seed) | 1
		s.odd[i] = a
		// Newton's iteration doubles the number of correct bits; a is its own inverse modulo 8.
		x := a
		for range 4 {
			x *= 2 - a*x
		}
		s.undo[i] = x
	}
	return s
}

// parts splits a key into one part a round.
func parts(key uint64) [rounds]uint32 {
	lo, hi := uint32(key), uint32(key>>32)
	return [rounds]uint32{lo, hi, lo>>11 ^ hi<<7, hi>>13 ^ lo<<5}
}

// forward returns the image of x < n.
func (s *shuffle) forward(x uint32, key uint64) uint32 {
	k := parts(key)
	for {
		for i := range rounds {
			x = (x + k[i]) * s.odd[i] & s.mask
			x ^= x >> s.half
		}
		if x < s.n {
			return x
		}
	}
}

// flip toggles the bit at the image of each number of a range. It is forward in a loop, with the loop-invariant values
// in registers, so that the processor overlaps several iterations.
func (s *shuffle) flip(words []uint64, from, to uint32, key uint64) {
	k := parts(key)
	k0, k1, k2, k3 := k[0], k[1], k[2], k[3]
	a0, a1, a2, a3 := s.odd[0], s.odd[1], s.odd[2], s.odd[3]
	n, mask, half := s.n, s.mask, s.half&31
	for rank := from; rank < to; rank++ {
		x := rank
		for {
			x = (x + k0) * a0 & mask
			x ^= x >> half
			x = (x + k1) * a1 & mask
			x ^= x >> half
			x = (x + k2) * a2 & mask
			x ^= x >> half
			x = (x + k3) * a3 & mask
			x ^= x >> half
			if x < n {
				break
			}
		}
		words[x>>6] ^= 1 << (x & 63)
	}
}

// back returns the preimage of x < n.
func (s *shuffle) back(x uint32, key uint64) uint32 {
	k := parts(key)
	for {
		for i := rounds - 1; i >= 0; i-- {
			x ^= x >> s.half
			x = (x*s.undo[i] - k[i]) & s.mask
		}
		if x < s.n {
			return x
		}
	}
}
