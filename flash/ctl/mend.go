package ctl

import (
	"fmt"

	"farflash/flash/ctl/media"
	"farflash/flash/ctl/table"
	"farflash/flash/device"
	"farflash/policy/ftl"
)

// mending finds the places and checksums of the pages of a leaf that is lost, by the owners of all places: those that
// are in memory, and those in the entries of the checkpoint in force. It reads as much as an opening does. These pages
// cannot change meanwhile, because every change of a page waits for its leaf.
type mending struct {
	entries [table.LeafPages]uint64
	segment int64 // that comes next
	from    uint64
	cause   error
}

// mendLeaf begins, or goes on, to mend a leaf.
func (c *core) mendLeaf(x *fault) {
	m := x.mending
	for ; m.segment < int64(len(c.segments)); m.segment++ {
		if c.ledger.LivesOf(m.segment) == 0 {
			continue
		}
		if c.ledger.Away(m.segment) {
			grain, n := c.entryGrains(m.segment)
			m.from = c.source
			x.op.Kind, x.op.Buf, x.op.Err = device.Read, device.Aligned(int(n)*Page), nil
			x.op.Offset = c.bodyOffset(m.from, grain)
			c.stats.Sums += n
			c.submit(0, &x.op)
			return
		}
		c.mendFrom(x, nil)
	}
	c.table.Arrive(x.leaf, &m.entries)
	c.table.Soil(x.leaf)
	c.faultOver(x, nil)
}

// entryGrains returns the first grain of the body with entries of a segment, and the number of grains of the slot from
// there to the last.
func (c *core) entryGrains(segment int64) (first, n int64) {
	pages := int64(c.shape.Pages)
	first = c.stripGrain(segment * pages / media.EntriesPerPage)
	last := c.stripGrain(((segment+1)*pages - 1) / media.EntriesPerPage)
	return first, media.BodyGrain(last) - media.BodyGrain(first) + 1
}

// mendRead takes the entries of a segment that were read.
func (c *core) mendRead(x *fault) {
	m := x.mending
	switch {
	case m.from != c.source || !c.ledger.Away(m.segment): // again
	case x.op.Err != nil:
		c.faultOver(x, fmt.Errorf("%w; and rebuilding it: %w", m.cause, x.op.Err))
		return
	default:
		pages := int64(c.shape.Pages)
		entries := make([]media.Entry, pages)
		grain, _ := c.entryGrains(m.segment)
		begin := media.BodyGrain(grain)
		for at := int64(0); at < pages; grain++ {
			page := x.op.Buf[(media.BodyGrain(grain)-begin)*Page:][:Page]
			if err := media.VerifyPage(page, grain, c.shape.UUID, c.generationOf(m.from, grain)); err != nil {
				c.faultOver(x, fmt.Errorf("%w; and rebuilding it: %w", m.cause, err))
				return
			}
			for k := (m.segment*pages + at) % media.EntriesPerPage; k < media.EntriesPerPage && at < pages; k++ {
				entries[at] = media.EntryAt(page, int(k))
				at++
			}
		}
		c.mendFrom(x, entries)
		m.segment++
	}
	c.mendLeaf(x)
}

// mendFrom takes the pages of a leaf that are in a segment. entries has the owners that are not in memory.
func (c *core) mendFrom(x *fault, entries []media.Entry) {
	m := x.mending
	first := ftl.PPA(m.segment * int64(c.shape.Pages))
	for k := c.ledger.NextLive(m.segment, 0); k < c.shape.Pages; k = c.ledger.NextLive(m.segment, k+1) {
		at := first + ftl.PPA(k)
		page, known := c.ledger.Owner(at)
		if !known {
			page = entries[k].Page - 1
		}
		if table.LeafOf(page) == x.leaf {
			sum, known := c.ledger.SumAt(at)
			if !known && entries != nil {
				sum = entries[k].Sum
			}
			m.entries[page%table.LeafPages] = c.table.Entry(at, sum)
		}
	}
}
