package ftl

import (
	"math/bits"
	"slices"
)

// A cloned pool shares the validity bitmaps of the pool it was cloned from, which no longer change, and copies a chunk
// of a block's bitmap on its first write to it. Clones of one preconditioned drive thus cost memory in proportion to
// their changes, not one bit for every page.

// chunkWords is the unit of copy-on-write, in 64-bit words of a block's bitmap. A smaller bitmap is copied whole.
const chunkWords = 256

// loan describes the bitmaps that a cloned pool shares with its origin.
type loan struct {
	from *pool   // the pool this one was cloned from; its bits cover all its blocks, in order
	rows []int32 // by block, then chunk: index of the chunk in the pool's own bits, or lent
}

// shared marks a chunk that is still the origin's.
const shared = -1

// word returns word w of block b's validity bitmap, for reading.
func (f *FTL) word(p *pool, b, w int32) uint64 {
	if p.loan == nil {
		return p.bits[int(b)*int(f.words)+int(w)]
	}
	return *f.lentWord(p, b, w)
}

// lentWord is word for a pool with a loan: it finds the chunk in the pool's own bits or in the origin's.
//
//go:noinline
func (f *FTL) lentWord(p *pool, b, w int32) *uint64 {
	k, size := w/chunkWords, f.chunk
	if row := p.loan.rows[b*f.chunks+k]; row != shared {
		return &p.bits[int(row)*int(size)+int(w-k*chunkWords)]
	}
	return &p.loan.from.bits[int(b)*int(f.words)+int(w)]
}

// has reports whether a page of a block is valid.
func (f *FTL) has(p *pool, b, page int32) bool {
	if f.valids != nil {
		return f.valids.NextValid(Block(b), int(page)) == int(page)
	}
	return f.word(p, b, page>>6)>>(page&63)&1 != 0
}

// rely uses the driver's knowledge of validity instead of bitmaps, with Config.Counts.
func (f *FTL) rely(m Map) {
	if f.cfg.Counts {
		f.valids = m.(Validity)
	}
}

// drop marks a valid page invalid.
func (f *FTL) drop(p *pool, b, page int32) {
	m := &p.blocks[b]
	if f.valids == nil {
		word, bit := f.ownWord(p, b, page>>6), uint64(1)<<(page&63)
		if *word&bit == 0 {
			broken("page %d of block %d was invalidated but is not valid", page, b)
		}
		*word &^= bit
	} else if m.valid == 0 {
		broken("page %d of block %d was invalidated, but the block has no valid page", page, b)
	}
	m.valid--
}

// ownWord returns word w of block b's validity bitmap, for writing. The pointer is valid until the next call, which may
// grow the slice.
func (f *FTL) ownWord(p *pool, b, w int32) *uint64 {
	if p.loan == nil {
		return &p.bits[int(b)*int(f.words)+int(w)]
	}
	return f.borrowed(p, b, w)
}

// borrowed is ownWord for a pool that shares bitmaps: it copies the chunk first if the chunk is still lent.
//
//go:noinline
func (f *FTL) borrowed(p *pool, b, w int32) *uint64 {
	if p.loan.rows[b*f.chunks+w/chunkWords] == shared {
		f.copyChunk(p, b, w/chunkWords)
	}
	return f.lentWord(p, b, w)
}

// copyChunk copies chunk k of block b from the origin to the end of the pool's own bits.
//
//go:noinline
func (f *FTL) copyChunk(p *pool, b, k int32) {
	size, part := int(f.chunk), f.lentPart(p, b, k)
	p.loan.rows[b*f.chunks+k] = int32(len(p.bits) / size)
	p.bits = append(p.bits, part...)
	p.bits = append(p.bits, make([]uint64, size-len(part))...)
}

// setAll marks all pages of a block valid.
func (f *FTL) setAll(p *pool, b int32) {
	for w := range f.words {
		*f.ownWord(p, b, w) = ^uint64(0)
	}
	if tail := f.pages & 63; tail != 0 && f.words > 0 {
		*f.ownWord(p, b, f.words-1) = 1<<tail - 1
	}
}

// clearRange marks the pages [from, to) of a block invalid.
func (f *FTL) clearRange(p *pool, b, from, to int32) {
	for page := from; page < to && f.words > 0; page++ {
		*f.ownWord(p, b, page>>6) &^= 1 << (page & 63)
	}
}

// countValid returns the number of valid pages among the first pages of a block.
func (f *FTL) countValid(p *pool, b, pages int32) int {
	if f.valids != nil {
		n := 0
		for page := f.nextValid(p, b, 0); page < pages; page = f.nextValid(p, b, page+1) {
			n++
		}
		return n
	}
	whole, size, n := pages>>6, f.chunk, 0
	for from := int32(0); from < whole; from += size {
		n += count(f.part(p, b, from/size)[:min(size, whole-from)])
	}
	if rest := pages & 63; rest != 0 {
		n += bits.OnesCount64(f.word(p, b, whole) & (1<<rest - 1))
	}
	return n
}

// countAll returns the number of valid pages of a block. For chunks still shared with the origin it relies on the
// origin's count, so only chunks of its own are scanned.
func (f *FTL) countAll(p *pool, b int32) int {
	if p.loan == nil || int(b) >= len(p.loan.from.blocks) {
		return f.countValid(p, b, f.words*64)
	}
	n := int(p.loan.from.blocks[b].valid)
	for k := range f.chunks {
		if p.loan.rows[b*f.chunks+k] != shared {
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

// part returns chunk k of a block's validity bitmap, for reading.
func (f *FTL) part(p *pool, b, k int32) []uint64 {
	size := int(f.chunk)
	most := min(size, int(f.words)-int(k)*size)
	if p.loan == nil {
		return p.bits[int(b)*int(f.words)+int(k)*size:][:most]
	}
	if row := p.loan.rows[b*f.chunks+k]; row != shared {
		return p.bits[int(row)*size:][:most]
	}
	return f.lentPart(p, b, k)
}

// lentPart returns chunk k as it was when the pool was cloned.
func (f *FTL) lentPart(p *pool, b, k int32) []uint64 {
	size := int(f.chunk)
	return p.loan.from.bits[int(b)*int(f.words)+int(k)*size:][:min(size, int(f.words)-int(k)*size)]
}

// bitmap returns a block's validity bitmap, for reading.
func (f *FTL) bitmap(p *pool, b int32) []uint64 {
	if f.valids != nil {
		all := make([]uint64, (f.pages+63)/64)
		for page := f.nextValid(p, b, 0); page < f.pages; page = f.nextValid(p, b, page+1) {
			all[page>>6] |= 1 << (page & 63)
		}
		return all
	}
	if p.loan == nil {
		return p.bits[int(b)*int(f.words):][:f.words]
	}
	all := make([]uint64, f.words)
	for w := range all {
		all[w] = *f.lentWord(p, b, int32(w))
	}
	return all
}

// lendBitmaps shares p's bitmaps with c, a clone of p. If p itself is a clone, c gets copies of p's own chunks and
// shares the rest with p's origin.
func (f *FTL) lendBitmaps(p, c *pool) {
	if p.loan == nil {
		c.bits, c.loan = nil, nil
		if len(p.blocks) == 0 { // no block used yet
			return
		}
		c.loan = &loan{from: p, rows: make([]int32, len(p.blocks)*int(f.chunks))}
		for i := range c.loan.rows {
			c.loan.rows[i] = shared
		}
		return
	}
	c.bits, c.loan = slices.Clone(p.bits), &loan{p.loan.from, slices.Clone(p.loan.rows)}
}

// lengthen allocates bitmaps of the pool's own for blocks that are used for the first time.
func (f *FTL) lengthen(p *pool, blocks int) {
	size := int(f.chunk)
	for len(p.loan.rows) < blocks*int(f.chunks) {
		p.loan.rows = append(p.loan.rows, int32(len(p.bits)/size))
		p.bits = append(p.bits, make([]uint64, size)...)
	}
}
