package ctl

import (
	"cmp"
	"fmt"
	"slices"

	"farflash/flash/ctl/media"
	"farflash/flash/ctl/remains"
	"farflash/flash/ctl/table"
	"farflash/flash/device"
	"farflash/policy/ftl"
)

// readList finds the leaves that a checkpoint lists, which then need not be filled from its entries. Those that records
// of the log trim or move pages of are left out, unless there is an index. If a page of the list is lost, all are.
func (r *recovery) readList(h media.Header, chain []remains.Link) error {
	var list []media.Stored
	var places []ftl.PPA
	for next := h.Leaves; next != 0; {
		if next > uint64(r.ledger.Places()) || len(places) > int(r.ledger.Places()) {
			return nil
		}
		p := ftl.PPA(next - 1)
		dev, offset := r.at(p)
		err := device.Do(r.devices[dev], device.Read, offset, r.content)
		var l media.Leaves
		if err == nil {
			l, err = media.DecodeLeaves(r.content, r.shape.UUID, h.Generation, r.ledger.Places())
		}
		if err != nil {
			r.lost(int(dev), offset, fmt.Sprintf("a list of stored parts of the map, of checkpoint %d", h.Generation))
			return nil //nolint:nilerr // it is reported, and the entries have all that the list has
		}
		list, places, next = append(list, l.List...), append(places, p), l.Next
	}
	for _, p := range places {
		r.use(p)
	}
	for _, s := range list {
		r.use(ftl.PPA(s.Place))
	}
	var changed leafSpans
	used, err := r.reopened(chain, changed.add)
	if err != nil || used {
		r.stores = nil
		return err
	}
	if changed.merge(); r.indexed {
		changed = nil
	}
	r.list, r.listed = places, true
	for _, s := range list {
		if changed.has(s.Number) {
			r.freePlaces([]ftl.PPA{ftl.PPA(s.Place)})
			continue
		}
		r.homes.set(s.Number, ftl.PPA(s.Place), s.Tag)
		r.table.Leave(s.Number)
	}
	if r.indexed {
		return nil
	}
	r.touched = map[uint64]bool{}
	return r.left().Records(chain, func(_ *remains.Link, records []media.Record) error {
		for _, rec := range records {
			if (rec.Kind == media.Write || rec.Kind == media.Keep) && rec.LBA < media.MaxLBA {
				if _, _, ok := r.homes.get(table.LeafOf(rec.LBA)); ok {
					r.touched[rec.LBA] = false
				}
			}
		}
		return nil
	})
}

// reopened reports whether a segment of the map was opened for data since the checkpoint: a program that does not know
// of it, or was not to keep to a budget, may have used it. It calls each for the records on its way.
func (r *recovery) reopened(chain []remains.Link, each func(media.Record)) (used bool, err error) {
	err = r.left().Records(chain, func(_ *remains.Link, records []media.Record) error {
		for _, rec := range records {
			each(rec)
			used = used || rec.Kind == media.Open && r.storeOf(int64(rec.PPA)) != nil
		}
		return nil
	})
	return used, err
}

// use marks a place as taken.
func (c *core) use(p ftl.PPA) {
	segment := c.segmentOf(p)
	s := c.storeOf(segment)
	if s == nil {
		c.stores = append(c.stores, store{segment: segment, used: make([]uint64, (c.shape.Pages+63)/64)})
		s = &c.stores[len(c.stores)-1]
	}
	k := int64(p) - segment*int64(c.shape.Pages)
	if s.used[k>>6]>>(k&63)&1 == 0 {
		s.used[k>>6] |= 1 << (k & 63)
		s.n++
	}
}

// leafSpans is ranges of leaves. After merge they are in order, and do not touch.
type leafSpans [][2]uint64

// add adds the leaves of the pages that a record trims or moves.
func (s *leafSpans) add(rec media.Record) {
	span := func(first uint64, count uint32) {
		if count == 0 {
			return
		}
		if len(*s) == cap(*s) {
			s.merge()
			*s = slices.Grow(*s, len(*s)+1) // so that the next merge has as many more
		}
		*s = append(*s, [2]uint64{table.LeafOf(first), table.LeafOf(first + uint64(count) - 1)})
	}
	switch rec.Kind {
	case media.Trim:
		span(rec.LBA, rec.Count)
	case media.Move:
		span(rec.LBA, rec.Count)
		span(rec.PPA, rec.Count)
	}
}

// merge joins the ranges that touch.
func (s *leafSpans) merge() {
	all := *s
	slices.SortFunc(all, func(a, b [2]uint64) int { return cmp.Compare(a[0], b[0]) })
	out := all[:0]
	for _, x := range all {
		if n := len(out); n > 0 && x[0] <= out[n-1][1]+1 {
			out[n-1][1] = max(out[n-1][1], x[1])
			continue
		}
		out = append(out, x)
	}
	*s = out
}

func (s leafSpans) has(leaf uint64) bool {
	i, found := slices.BinarySearchFunc(s, leaf, func(x [2]uint64, leaf uint64) int { return cmp.Compare(x[0], leaf) })
	return found || i > 0 && s[i-1][1] >= leaf
}

// listDown writes the list of the leaves that are stored as they are, for the checkpoint that is written next.
func (r *recovery) listDown() error {
	x := &r.storing
	x.list, x.at, x.lists = nil, 0, true
	r.markStale()
	r.disown()
	if !r.takeList() {
		r.freePlaces(x.list)
		x.list, r.body.header.Leaves = nil, 0
		return nil
	}
	for i, p := range x.list {
		r.encodeList(r.content, i)
		dev, offset := r.at(p)
		r.stats.MapWrites++
		if err := device.Do(r.devices[dev], device.Write, offset, r.content); err != nil {
			return err
		}
	}
	return nil
}
