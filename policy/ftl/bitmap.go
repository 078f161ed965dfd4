package ftl

import (
	"math/bits"
	"slices"
)

// A pool that was cloned reads the validity bitmaps of the pool it was cloned from, which nothing changes any more,
// and copies a part of a block's when it changes that: copies of one preconditioned drive then cost what they change,
// and not a bit a page each.

// chunkWords is how many words of a block's bitmap are copied at once; all of a smaller one.
const chunkWords = 256

// loan is the bitmaps that a pool reads of another.
type loan struct {
	from *pool   // that this was cloned from: its bits are of all its blocks, in order
	rows []int32 // by block, by chunk of it: its place in the pool's own bits, in chunks, or lent
}

// lent stands for a chunk that is the other pool's.
const lent = -1

// word is a word of a block's validity, for reading.
func (f *FTL) word(p *pool, b, w int32) uint64 {
	if p.loan == nil {
		return p.bits[int(b)*int(f.words)+int(w)]
	}
	return *f.lentWord(p, b, w)
}

//go:noinline
func (f *FTL) lentWord(p *pool, b, w int32) *uint64 {
	k, size := w/chunkWords, f.chunk
	if row := p.loan.rows[b*f.chunks+k]; row != lent {
		return &p.bits[int(row)*int(size)+int(w-k*chunkWords)]
	}
	return &p.loan.from.bits[int(b)*int(f.words)+int(w)]
}

// has reports whether a page of a block is valid.
func (f *FTL) has(p *pool, b, page int32) bool { return f.word(p, b, page>>6)>>(page&63)&1 != 0 }

// ownWord is a word of a block's validity, for changing. It holds until the next call.
func (f *FTL) ownWord(p *pool, b, w int32) *uint64 {
	if p.loan == nil {
		return &p.bits[int(b)*int(f.words)+int(w)]
	}
	return f.borrowed(p, b, w)
}

// borrowed is ownWord of a pool that reads bitmaps of another.
//
//go:noinline
func (f *FTL) borrowed(p *pool, b, w int32) *uint64 {
	if p.loan.rows[b*f.chunks+w/chunkWords] == lent {
		f.copyChunk(p, b, w/chunkWords)
	}
	return f.lentWord(p, b, w)
}

//go:noinline
func (f *FTL) copyChunk(p *pool, b, k int32) {
	size, part := int(f.chunk), f.lentPart(p, b, k)
	p.loan.rows[b*f.chunks+k] = int32(len(p.bits) / size)
	p.bits = append(p.bits, part...)
	p.bits = append(p.bits, make([]uint64, size-len(part))...)
}

// setAll makes all pages of a block valid.
func (f *FTL) setAll(p *pool, b int32) {
	for w := range f.words {
		*f.ownWord(p, b, w) = ^uint64(0)
	}
	if tail := f.pages & 63; tail != 0 {
		*f.ownWord(p, b, f.words-1) = 1<<tail - 1
	}
}

// clearRange makes pages of a block hold nothing, from one up to another.
func (f *FTL) clearRange(p *pool, b, from, to int32) {
	for page := from; page < to; page++ {
		*f.ownWord(p, b, page>>6) &^= 1 << (page & 63)
	}
}

// countValid is how many of a block's first so many pages are valid.
func (f *FTL) countValid(p *pool, b, pages int32) int {
	whole, size, n := pages>>6, f.chunk, 0
	for from := int32(0); from < whole; from += size {
		n += count(f.part(p, b, from/size)[:min(size, whole-from)])
	}
	if rest := pages & 63; rest != 0 {
		n += bits.OnesCount64(f.word(p, b, whole) & (1<<rest - 1))
	}
	return n
}

// countAll is how many of a block's pages are valid. Of what the pool reads of another it is known.
func (f *FTL) countAll(p *pool, b int32) int {
	if p.loan == nil || int(b) >= len(p.loan.from.blocks) {
		return f.countValid(p, b, f.words*64)
	}
	n := int(p.loan.from.blocks[b].valid)
	for k := range f.chunks {
		if p.loan.rows[b*f.chunks+k] != lent {
			n += count(f.part(p, b, k)) - count(f.lentPart(p, b, k))
		}
	}
	return n
}

func count(words []uint64) int {
	n := 0
	for _, w := range words {
		n += bits.OnesCount64(w)
	}
	return n
}

// part is a chunk of a block's validity, for reading.
func (f *FTL) part(p *pool, b, k int32) []uint64 {
	size := int(f.chunk)
	most := min(size, int(f.words)-int(k)*size)
	if p.loan == nil {
		return p.bits[int(b)*int(f.words)+int(k)*size:][:most]
	}
	if row := p.loan.rows[b*f.chunks+k]; row != lent {
		return p.bits[int(row)*size:][:most]
	}
	return f.lentPart(p, b, k)
}

// lentPart is a chunk as the pool was lent it.
func (f *FTL) lentPart(p *pool, b, k int32) []uint64 {
	size := int(f.chunk)
	return p.loan.from.bits[int(b)*int(f.words)+int(k)*size:][:min(size, int(f.words)-int(k)*size)]
}

// bitmap is a block's validity, for reading.
func (f *FTL) bitmap(p *pool, b int32) []uint64 {
	if p.loan == nil {
		return p.bits[int(b)*int(f.words):][:f.words]
	}
	all := make([]uint64, f.words)
	for w := range all {
		all[w] = *f.lentWord(p, b, int32(w))
	}
	return all
}

// lendBitmaps gives c, a copy of p, p's bitmaps to read. A copy of a copy has its own.
func (f *FTL) lendBitmaps(p, c *pool) {
	if p.loan == nil {
		c.bits, c.loan = nil, nil
		if len(p.blocks) == 0 { // there is nothing to read
			return
		}
		c.loan = &loan{from: p, rows: make([]int32, len(p.blocks)*int(f.chunks))}
		for i := range c.loan.rows {
			c.loan.rows[i] = lent
		}
		return
	}
	c.bits, c.loan = slices.Clone(p.bits), &loan{p.loan.from, slices.Clone(p.loan.rows)}
}

// lengthen gives blocks that are used for the first time bitmaps of their own.
func (f *FTL) lengthen(p *pool, blocks int) {
	size := int(f.chunk)
	for len(p.loan.rows) < blocks*int(f.chunks) {
		p.loan.rows = append(p.loan.rows, int32(len(p.bits)/size))
		p.bits = append(p.bits, make([]uint64, size)...)
	}
}
