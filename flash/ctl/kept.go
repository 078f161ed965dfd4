package ctl

import (
	"farflash/flash/ctl/media"
	"farflash/policy/ftl"
)

// A checkpoint is the mapping exactly at header.Record. It neither stops the pool for as long as a copy of the whole
// takes, nor needs the memory: when a place changes, its former entry is kept until its segment is encoded.

// keeping has the entries of changed places as of the beginning of the checkpoint being written.
type keeping struct {
	of      map[int64][]kept // by segment, in the order of the changes: the first of a place counts
	bytes   int64
	covered []uint64 // by place of the segment being recorded
	full    bool     // too much is kept; work that changes places waits
}

// kept is n places from place k of a segment on. Those of several pages have consecutive ones, or someone, or none, and
// checksums that are not in memory.
type kept struct {
	page  uint64 // as in media.Entry
	k, n  int32
	sum   uint32
	flags keptFlags
}

type keptFlags uint8

const (
	keptRenamed keptFlags = 1 << iota
	keptBare              // the checksum or the owner is not in memory
)

const keptBytes = 24

// preserve keeps the entry of a place for the checkpoint being written, if that still needs it. It is called before any
// change of the place.
func (c *core) preserve(p ftl.PPA) {
	b := &c.body
	segment := c.segmentOf(p)
	c.change(segment)
	if !b.active {
		return
	}
	if segment < b.done || b.body.Segments[segment].Use == media.Erased || b.body.Entries[segment] != nil {
		return
	}
	x := kept{k: int32(int64(p) - segment*int64(c.shape.Pages)), n: 1}
	if c.ledger.IsLive(p) {
		var e media.Entry
		var bare bool
		if e, bare = c.entryAt(p, c.ledger.WholeOf(segment)); bare {
			x.flags |= keptBare
		}
		if e.Renamed {
			x.flags |= keptRenamed
		}
		x.page, x.sum = e.Page, e.Sum
	}
	list := b.kept.of[segment]
	if n := len(list); n > 0 && list[n-1].joins(&x) {
		list[n-1].n++
		return
	}
	was := cap(list)
	list = append(list, x)
	b.kept.of[segment] = list
	b.kept.bytes += int64(cap(list)-was) * keptBytes
	b.kept.full = b.kept.full || c.cfg.Map > 0 && b.kept.bytes > c.mostKept()
}

// mostKept is the memory for kept entries.
func (c *core) mostKept() int64 { return max(c.cfg.Map/8, Page) }

// joins reports whether a place is the next of the ones kept.
func (x *kept) joins(next *kept) bool {
	if x.k+x.n != next.k || x.flags != next.flags || x.sum != next.sum {
		return false
	}
	return x.page == next.page && (x.page == 0 || x.page == someone) || x.page+uint64(x.n) == next.page && x.page != 0
}

// entry returns the entry of the i-th of the places kept.
func (x *kept) entry(i int32) media.Entry {
	e := media.Entry{Page: x.page, Sum: x.sum, Renamed: x.flags&keptRenamed != 0}
	if x.page != 0 && x.page != someone {
		e.Page += uint64(i)
	}
	return e
}

// entryAt returns the entry of a live place, and whether its checksum or owner is not in memory. sums is those of the
// segment, or nil.
func (c *core) entryAt(p ftl.PPA, sums []uint32) (e media.Entry, bare bool) {
	page, known := c.ledger.Owner(p)
	if e = (media.Entry{Page: page + 1, Renamed: c.ledger.IsRenamed(p)}); !known {
		e.Page = someone
	}
	if sums != nil {
		e.Sum = sums[int64(p)%int64(c.shape.Pages)]
	}
	return e, !known || sums == nil
}

// recordEntries sets the entries of a segment as a checkpoint records them, but for checksums and owners that are not
// in memory.
func (c *core) recordEntries(segment int64, entries []media.Entry) {
	clear(entries)
	bare := false
	x := &c.body.kept
	list := x.of[segment]
	if len(list) > 0 {
		clear(x.covered)
		for i := range list {
			for j := range list[i].n {
				k := list[i].k + j
				if x.covered[k>>6]>>(k&63)&1 != 0 {
					continue
				}
				x.covered[k>>6] |= 1 << (k & 63)
				entries[k] = list[i].entry(j)
				bare = bare || list[i].flags&keptBare != 0
			}
		}
		delete(x.of, segment)
		x.bytes -= int64(cap(list)) * keptBytes
	}
	first, sums := ftl.PPA(segment*int64(c.shape.Pages)), c.ledger.WholeOf(segment)
	for k := c.ledger.NextLive(segment, 0); k < len(entries); k = c.ledger.NextLive(segment, k+1) {
		if len(list) > 0 && x.covered[k>>6]>>(k&63)&1 != 0 {
			continue
		}
		var lacks bool
		entries[k], lacks = c.entryAt(first+ftl.PPA(k), sums)
		bare = bare || lacks
	}
	c.body.bare[segment] = bare
}

// record sets the entries of a segment in the body of the checkpoint being written.
func (c *core) record(segment int64) {
	b := &c.body
	if b.body.Segments[segment].Use == media.Erased || b.body.Entries[segment] != nil {
		return
	}
	var entries []media.Entry
	if n := len(b.spare); n > 0 {
		entries, b.spare = b.spare[n-1], b.spare[:n-1]
	} else {
		entries = make([]media.Entry, c.shape.Pages)
	}
	c.recordEntries(segment, entries)
	b.body.Entries[segment] = entries
}

// forgetBelow ends the need of entries for segments below one.
func (c *core) forgetBelow(segment int64) {
	b := &c.body
	for ; b.done < segment; b.done++ {
		if entries := b.body.Entries[b.done]; entries != nil {
			b.body.Entries[b.done] = nil
			b.spare = append(b.spare, entries)
		}
		if list := b.kept.of[b.done]; list != nil { // of a checkpoint that is given up
			delete(b.kept.of, b.done)
			b.kept.bytes -= int64(cap(list)) * keptBytes
		}
	}
	b.kept.full = b.kept.full && b.kept.bytes > c.mostKept()/2
}
