package ledger

import (
	"maps"

	"farflash/policy/ftl"
)

const (
	fewRuns    = 4  // runs that stay in memory
	runBytes   = 16 // of a run
	againBytes = Strip * 8
	namedBytes = 40 // an entry of a map, about
)

// awayOwner is Owner for a segment whose owners were dropped.
func (l *Ledger) awayOwner(s *sheet, p ftl.PPA) (uint64, bool) {
	if page, ok := l.set(p); ok {
		return page, true
	}
	if s.again != nil {
		if strip := s.again[l.stripOf(p)]; strip != nil {
			return strip[int64(p)%Strip], true
		}
	}
	return 0, false
}

// Away reports whether the owners of a segment's places were dropped.
func (l *Ledger) Away(segment int64) bool { return l.sheets[segment].away }

// ReadOwners takes over the owners of a strip, as Read does its checksums.
func (l *Ledger) ReadOwners(segment, strip int64, owners *[Strip]uint64) {
	s := &l.sheets[segment]
	first, last := segment*l.pages/Strip, ((segment+1)*l.pages-1)/Strip
	if !s.away || strip < first || strip > last {
		return
	}
	if s.again == nil {
		s.again = make([]*[Strip]uint64, last-first+1)
		l.bytes += int64(len(s.again)) * 8
	}
	if s.again[strip-first] == nil {
		c := *owners
		for k := 0; k < Strip && len(l.named)+len(l.frozen) > 0; k++ {
			if page, ok := l.set(ftl.PPA(strip*Strip + int64(k))); ok {
				c[k] = page
			}
		}
		s.again[strip-first] = &c
		l.bytes += againBytes
	}
}

// set returns the owner of a place that was set since its segment's owners were dropped.
func (l *Ledger) set(p ftl.PPA) (uint64, bool) {
	page, ok := l.named[p]
	if !ok {
		page, ok = l.frozen[p]
	}
	return page, ok
}

// setAway is SetOwner for a segment whose owners were dropped.
func (l *Ledger) setAway(s *sheet, p ftl.PPA, page uint64) {
	l.named[p] = page
	if s.again != nil {
		if strip := s.again[l.stripOf(p)]; strip != nil {
			strip[int64(p)%Strip] = page
		}
	}
}

// Return brings the owners of all places of a segment, as the medium has them, back into memory.
func (l *Ledger) Return(segment int64, owners []uint64) {
	s := &l.sheets[segment]
	if !s.away {
		return
	}
	for k := range owners {
		if page, ok := l.awayOwner(s, ftl.PPA(segment*l.pages+int64(k))); ok {
			owners[k] = page
		}
	}
	l.forgetOwners(s, segment)
	s.owners, s.away = owners, false
	l.bytes += l.pages * 8
}

// forgetOwners drops the owners of a segment, those that were set since they were dropped too if it is given.
func (l *Ledger) forgetOwners(s *sheet, segment int64) {
	if s.owners != nil {
		l.bytes -= l.pages * 8
	}
	l.bytes -= int64(cap(s.runs)) * runBytes
	for _, strip := range s.again {
		if l.bytes -= 8; strip != nil {
			l.bytes -= againBytes
		}
	}
	s.owners, s.runs, s.again = nil, nil, nil
	if segment < 0 || !s.away {
		return
	}
	for _, m := range []map[ftl.PPA]uint64{l.named, l.frozen} {
		for k := int64(0); k < l.pages && len(m) > 0; k++ {
			delete(m, ftl.PPA(segment*l.pages+k))
		}
	}
}

// Freeze begins the time of a new checkpoint: owners set before it will be on the medium once it is in force, which
// Thaw reports.
func (l *Ledger) Freeze() {
	if len(l.frozen) == 0 {
		l.frozen, l.named = l.named, map[ftl.PPA]uint64{}
		return
	}
	maps.Copy(l.frozen, l.named)
	clear(l.named)
}

// Thaw forgets the owners that were set before Freeze, in segments whose owners are on the medium, but for those that
// must stay known.
func (l *Ledger) Thaw(stay func(ftl.PPA) bool) {
	for p, page := range l.frozen {
		if _, newer := l.named[p]; !newer && stay(p) {
			l.named[p] = page
		}
	}
	l.frozen = nil
}
