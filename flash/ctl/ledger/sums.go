package ledger

import (
	"sync/atomic"

	"farflash/policy/ftl"
)

const stripBytes = Strip*4 + 32

func (l *Ledger) wholeBytes() int64 { return l.pages*4 + 64 }

// SumAt returns the checksum of a place's content, and whether it is in memory. It can be called at any time.
func (l *Ledger) SumAt(p ftl.PPA) (uint32, bool) {
	s, k := l.at(p)
	m := s.sums.Load()
	if m == nil {
		return 0, false
	}
	if !m.used.Load() {
		m.used.Store(true)
	}
	if m.whole != nil {
		return m.whole[k], true
	}
	strip := m.strips[l.stripOf(p)].Load()
	if strip == nil {
		return 0, false
	}
	return strip[int64(p)%Strip], true
}

// stripOf returns the strip of its segment that a place is in. Strips begin at multiples of Strip, counted over all
// segments.
func (l *Ledger) stripOf(p ftl.PPA) int64 {
	first := int64(p) / l.pages * l.pages
	return int64(p)/Strip - first/Strip
}

// Prepare makes space for the checksums of all places of the place's segment, none of which may be missing from memory.
func (l *Ledger) Prepare(p ftl.PPA) {
	s, _ := l.at(p)
	if m := s.sums.Load(); m == nil || m.whole == nil {
		l.forget(s)
		s.sums.Store(&Sums{whole: make([]uint32, l.pages)})
		l.bytes += l.wholeBytes()
	}
}

// SetSum sets a place's checksum, for which Prepare made space. It can be called at any time, before the place is live.
func (l *Ledger) SetSum(p ftl.PPA, sum uint32) {
	s, k := l.at(p)
	s.sums.Load().whole[k] = sum
}

// Whole reports whether the checksums of all places of a segment are in memory.
func (l *Ledger) Whole(segment int64) bool { return l.WholeOf(segment) != nil }

// WholeOf returns the checksums of a segment's places, or nil if not all are in memory.
func (l *Ledger) WholeOf(segment int64) []uint32 {
	if m := l.sheets[segment].sums.Load(); m != nil {
		return m.whole
	}
	return nil
}

// Read takes over the checksums of a strip, given by its first place, that were read from the medium. Each strip is of
// one segment: of those at a boundary, the part of the segment given counts.
func (l *Ledger) Read(segment, strip int64, sums *[Strip]uint32) {
	s := &l.sheets[segment]
	m := s.sums.Load()
	first, last := segment*l.pages/Strip, ((segment+1)*l.pages-1)/Strip
	switch {
	case strip < first || strip > last || m != nil && m.whole != nil:
		return
	case m == nil:
		m = &Sums{strips: make([]atomic.Pointer[[Strip]uint32], last-first+1)}
		s.sums.Store(m)
		l.bytes += int64(len(m.strips))*8 + 64
	}
	m.used.Store(true)
	if m.strips[strip-first].Load() == nil {
		l.bytes += stripBytes
		c := *sums
		m.strips[strip-first].Store(&c)
	}
}

// forget drops the checksums of a segment.
func (l *Ledger) forget(s *sheet) {
	m := s.sums.Load()
	if m == nil {
		return
	}
	if m.whole != nil {
		l.bytes -= l.wholeBytes()
	}
	if m.strips != nil {
		l.bytes -= int64(len(m.strips))*8 + 64
	}
	for i := range m.strips {
		if m.strips[i].Load() != nil {
			l.bytes -= stripBytes
		}
	}
	s.sums.Store(nil)
}

// Drop drops owners and checksums until everything takes at most most bytes: owners that take more memory than a few
// runs, and checksums that were not used for longest first. may reports whether a segment's checksums can be dropped,
// and then whether its owners can be. It examines at most looks segments.
func (l *Ledger) Drop(most int64, looks int, may func(segment int64) (sums, owners bool)) {
	for ; looks > 0 && l.Bytes() > most; looks-- {
		if l.hand++; l.hand >= int64(len(l.sheets)) {
			l.hand = 0
		}
		s := &l.sheets[l.hand]
		m := s.sums.Load()
		named := s.owners != nil || len(s.runs) > fewRuns || s.again != nil
		if m == nil && !named {
			continue
		}
		sums, owners := may(l.hand)
		if sums && owners && named {
			l.forgetOwners(s, -1)
			s.away = true
		}
		switch {
		case m == nil || !sums:
		case m.used.Load():
			m.used.Store(false)
		default:
			l.forget(s)
		}
	}
}
