package ctl

import (
	"fmt"

	"farflash/flash/ctl/media"
	"farflash/flash/ctl/remains"
	"farflash/flash/ctl/table"
	"farflash/flash/device"
	"farflash/policy/ftl"
)

// indexMost is the number of records, and of leaves that they trim or move, from which on entries are read rather than
// an index: each of these leaves is read by itself.
const indexMost = 4096

// mayIndex reports whether a checkpoint has an index that serves with the log after it.
func (r *recovery) mayIndex(h media.Header, chain []remains.Link) bool {
	if h.Index == 0 || !r.bareAll() {
		return false
	}
	n := 0
	for _, l := range chain {
		n += int(l.Records)
	}
	if n > indexMost {
		return false
	}
	var spans leafSpans
	err := r.left().Records(chain, func(_ *remains.Link, records []media.Record) error {
		for _, rec := range records {
			spans.add(rec)
		}
		return nil
	})
	leaves := uint64(0)
	for _, s := range spans {
		leaves += s[1] - s[0] + 1
	}
	return err == nil && leaves <= indexMost
}

// readIndex sets the state to that of a checkpoint by its index. If it reports false, some of it may be set.
func (r *recovery) readIndex(h media.Header, chain []remains.Link) bool {
	s := r.left().States(h)
	if r.streamed(h, s) != nil {
		return false
	}
	for i, own := range s.Segments {
		if r.setSegment(int64(i), own) != nil {
			return false
		}
		if own.Use == media.Filled {
			r.ledger.Leave(int64(i))
		}
	}
	if !r.readItems(h) {
		return false
	}
	for i := range r.segments {
		if own := &r.segments[i]; own.opened && !own.settled && !r.readOpen(int64(i)) {
			return false
		}
	}
	r.fitAll()
	used, err := r.reopened(chain, func(media.Record) {})
	return err == nil && !used && r.bring(chain)
}

// indexReads is the number of pages of an index that are read at once.
const indexReads = 64

// readItems reads the pages of an index, and reports the one that is lost.
func (r *recovery) readItems(h media.Header) bool {
	buf := device.Aligned(indexReads * Page)
	var from, upto ftl.PPA // the places in buf
	for next, seen := h.Index, int64(0); next != 0; seen++ {
		p := ftl.PPA(next - 1)
		if int64(p) >= r.ledger.Places() || seen == r.ledger.Places() {
			return false
		}
		dev, offset := r.at(p)
		if p < from || p >= upto {
			n := min(indexReads, int64(r.shape.Pages)-int64(p)%int64(r.shape.Pages))
			if device.Do(r.devices[dev], device.Read, offset, buf[:n*Page]) != nil {
				n = 1
				if device.Do(r.devices[dev], device.Read, offset, buf[:Page]) != nil {
					clear(buf[:Page])
				}
			}
			from, upto = p, p+ftl.PPA(n)
		}
		var err error
		next, err = media.DecodeIndex(buf[int(p-from)*Page:][:Page], r.shape.UUID, h.Generation, int64(len(r.segments)),
			r.shape.Pages, r.item)
		if err != nil {
			r.lost(int(dev), offset, fmt.Sprintf("a page of the index of checkpoint %d", h.Generation))
			return false
		}
		r.use(p)
		r.list = append(r.list, p)
	}
	return true
}

// item applies an item of an index.
func (r *recovery) item(x *media.IndexItem) error {
	switch x.Kind {
	case media.IndexRun:
		last := x.Page + uint64(x.Count) - 1
		for range r.table.Each(x.Page, last) {
			return fmt.Errorf("pages %d to %d are mapped twice: %w", x.Page, last, ErrDamaged)
		}
		r.table.Put(x.Page, ftl.PPA(x.Place), int(x.Count), func(ftl.PPA) uint32 { return 0 })
	case media.IndexWhole:
		for i := range int64(x.Count) {
			if r.ledger.LivesOf(x.Segment+i) > 0 {
				return fmt.Errorf("segment %d is described twice: %w", x.Segment+i, ErrDamaged)
			}
			r.ledger.FillWhole(x.Segment + i)
		}
	default:
		r.ledger.FillBits(x.Segment, x.Kind == media.IndexRenamed, x.From, x.Words)
	}
	return nil
}

// readOpen brings the owners and checksums of a segment into memory that was not full.
func (r *recovery) readOpen(segment int64) bool {
	entries, err := readEntries(&r.shape, r.devices[0], r.source, r.generations(r.source, segment), segment)
	if err != nil {
		return false
	}
	for k, e := range entries {
		p := ftl.PPA(segment*int64(r.shape.Pages) + int64(k))
		switch {
		case e.Page == 0 && r.ledger.IsLive(p):
			return false
		case e.Page != 0:
			r.setPlace(p, e.Page-1, e.Sum)
			r.ledger.SetRenamed(p, e.Renamed)
		}
	}
	return true
}

// bring brings the leaves of pages that records change into memory, and keeps them there until the log is replayed.
func (r *recovery) bring(chain []remains.Link) bool {
	var spans leafSpans
	err := r.left().Records(chain, func(_ *remains.Link, records []media.Record) error {
		for _, rec := range records {
			if spans.add(rec); rec.Kind == media.Write || rec.Kind == media.Keep {
				spans = append(spans, [2]uint64{table.LeafOf(rec.LBA), table.LeafOf(rec.LBA)})
			}
		}
		return nil
	})
	if err != nil {
		return false
	}
	spans.merge()
	for _, s := range spans {
		for leaf := s[0]; leaf <= s[1]; leaf++ {
			at, tag, ok := r.homes.get(leaf)
			if !ok {
				continue
			}
			dev, offset := r.at(at)
			err := device.Do(r.devices[dev], device.Read, offset, r.content)
			var l media.Leaf
			if err == nil {
				err = media.DecodeLeaf(r.content, r.shape.UUID, leaf, tag, r.ledger.Places(), &l)
			}
			if err != nil {
				r.lost(int(dev), offset, fmt.Sprintf("part %d of the map", leaf))
				return false
			}
			r.pin(leaf, &r.pins)
			r.table.Arrive(leaf, (*[table.LeafPages]uint64)(&l))
		}
	}
	return true
}
