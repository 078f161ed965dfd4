package ftl

import "slices"

// A pool that was cloned reads the validity bitmaps of the pool it was cloned from, which nothing changes any more, and copies a block's when it
// changes it: copies of one preconditioned drive then cost what they change, and not a bit a page each.

// loan is the bitmaps that a pool reads of another.
type loan struct {
	bits []uint64 // of the pool that this was cloned from
	rows []int32  // by block: its place in the pool's own bits, in blocks, or the complement of that in these
}

// bitmap is a block's validity, for reading.
func (f *FTL) bitmap(p *pool, b int32) []uint64 {
	if p.loan == nil {
		return p.bits[b*f.words:][:f.words]
	}
	if r := p.loan.rows[b]; r < 0 {
		return p.loan.bits[^r*f.words:][:f.words]
	}
	return p.bits[p.loan.rows[b]*f.words:][:f.words]
}

// has reports whether a page of a block is valid.
func (f *FTL) has(p *pool, b, page int32) bool { return f.bitmap(p, b)[page>>6]>>(page&63)&1 != 0 }

// ownBitmap is a block's validity, for changing.
func (f *FTL) ownBitmap(p *pool, b int32) []uint64 {
	if p.loan != nil && p.loan.rows[b] < 0 {
		f.copyBitmap(p, b)
	}
	return f.bitmap(p, b)
}

//go:noinline
func (f *FTL) copyBitmap(p *pool, b int32) {
	row := f.bitmap(p, b)
	p.loan.rows[b] = int32(len(p.bits)) / f.words
	p.bits = append(p.bits, row...)
}

// lendBitmaps gives c, a copy of p, p's bitmaps to read. A copy of a copy has its own.
func (p *pool) lendBitmaps(c *pool) {
	if p.loan == nil {
		c.bits, c.loan = nil, &loan{bits: p.bits, rows: make([]int32, len(p.blocks))}
		for b := range c.loan.rows {
			c.loan.rows[b] = ^int32(b)
		}
		return
	}
	c.bits, c.loan = slices.Clone(p.bits), &loan{p.loan.bits, slices.Clone(p.loan.rows)}
}
