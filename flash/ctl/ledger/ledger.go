// Package ledger is what a flash controller knows of every place on its medium: whose page is there, whether the
// mapping refers to it, and the checksum of its content.
//
// Its main types are Ledger and Sums, the checksums of one segment's places. Memory follows what a segment holds, not
// its size: bitmaps exist only where some bits differ from the others, pages in the order of their places are runs
// (Seal), and checksums that are also on the medium can be dropped and read again in strips, as the grains of a
// checkpoint have them.
//
// It leaves out which checksums may be dropped, and where they are on the medium (package ctl). The caller serialises
// all calls except SumAt and SetSum.
package ledger

import (
	"math/bits"
	"slices"
	"sort"
	"sync/atomic"

	"farflash/flash/ctl/media"
	"farflash/internal/divide"
	"farflash/policy/ftl"
)

// Strip is the number of places whose checksums are read together.
const Strip = 338

// Ledger has a sheet for each segment.
type Ledger struct {
	sheets []sheet
	pages  int64 // per segment
	div    divide.By
	lives  int64
	loose  []int64 // segments that were unsealed, oldest first
	bytes  int64   // of all that Bytes counts
	hand   int64   // where the search for what to drop resumes
	// Owners of places whose segments' owners were dropped before these were set: since the last call of Freeze, and
	// before.
	named, frozen map[ftl.PPA]uint64
}

// sheet is the state of a segment's places.
type sheet struct {
	sums    atomic.Pointer[Sums]
	live    []uint64 // nil if none or all are
	renamed []uint64 // as live
	owners  []uint64 // nil if there are none, or runs instead
	runs    []run
	lives   int32
	renames int32
	away    bool             // owners are only on the medium, but for those read again
	again   []*[Strip]uint64 // owners read again, by strip; nil if there are none
}

// run is the owners of places from at up to the next run's: page, and those that follow it.
type run struct {
	page uint64
	at   int32
}

// Sums is the checksums of a segment's places as far as they are in memory: all of them, or some strips.
type Sums struct {
	whole  []uint32
	strips []atomic.Pointer[[Strip]uint32] // nil with whole
	used   atomic.Bool
}

// New returns the ledger of a medium of the given number of segments and of pages per segment.
func New(segments int64, pages int) *Ledger {
	return &Ledger{sheets: make([]sheet, segments), pages: int64(pages), div: divide.New(uint64(pages)),
		named: map[ftl.PPA]uint64{}}
}

// Places returns the number of places.
func (l *Ledger) Places() int64 { return int64(len(l.sheets)) * l.pages }

// Lives returns the number of places that the mapping refers to.
func (l *Ledger) Lives() int64 { return l.lives }

func (l *Ledger) at(p ftl.PPA) (*sheet, int64) {
	s, in := l.div.Split(uint64(p))
	return &l.sheets[s], int64(in)
}

// has reports whether bit k of a set of n of the given size is set.
func has(set []uint64, n int32, k int64) bool {
	if set == nil {
		return n > 0
	}
	return set[k>>6]>>(k&63)&1 != 0
}

// change sets or clears bit k, which has the other value, of a set of n out of all.
func change(set []uint64, n int32, k, all int64, on bool) ([]uint64, int32) {
	if set == nil {
		set = make([]uint64, (all+63)/64)
		for i := int64(0); i < all && n > 0; i++ {
			set[i>>6] |= 1 << (i & 63)
		}
	}
	set[k>>6] ^= 1 << (k & 63)
	if n--; on {
		n += 2
	}
	if n == 0 || int64(n) == all {
		set = nil
	}
	return set, n
}

// IsLive reports whether the mapping refers to a place.
func (l *Ledger) IsLive(p ftl.PPA) bool {
	s, k := l.at(p)
	return has(s.live, s.lives, k)
}

// SetLive records whether the mapping refers to a place.
func (l *Ledger) SetLive(p ftl.PPA, on bool) {
	s, k := l.at(p)
	if has(s.live, s.lives, k) == on {
		return
	}
	was, words := s.lives, len(s.live)
	s.live, s.lives = change(s.live, s.lives, k, l.pages, on)
	l.lives += int64(s.lives - was)
	l.bytes += int64(len(s.live)-words) * 8
}

// LivesOf returns the number of live places of a segment.
func (l *Ledger) LivesOf(segment int64) int { return int(l.sheets[segment].lives) }

// Bits sets a bit for each live place of a segment, or each renamed one, and returns their number.
func (l *Ledger) Bits(segment int64, renamed bool, set []uint64) (n int) {
	s := &l.sheets[segment]
	bits, n := s.live, int(s.lives)
	if renamed {
		bits, n = s.renamed, int(s.renames)
	}
	if copy(set, bits) > 0 {
		return n
	}
	clear(set)
	for k := 0; k < n; k += 64 { // none or all
		set[k>>6] = ^uint64(0) >> (64 - min(64, n-k))
	}
	return n
}

// NextLive returns the first live place of a segment from k on, or the number of its places.
func (l *Ledger) NextLive(segment int64, k int) int {
	s := &l.sheets[segment]
	switch {
	case s.lives == 0 || int64(k) >= l.pages:
		return int(l.pages)
	case s.live == nil:
		return k
	}
	word := s.live[k>>6] &^ (1<<(k&63) - 1)
	for i := k >> 6; ; word = s.live[i] {
		if word != 0 {
			return i<<6 + bits.TrailingZeros64(word)
		}
		if i++; i == len(s.live) {
			return int(l.pages)
		}
	}
}

// IsRenamed reports whether a place's page had another number when it was written there.
func (l *Ledger) IsRenamed(p ftl.PPA) bool {
	s, k := l.at(p)
	return has(s.renamed, s.renames, k)
}

// SetRenamed records whether a place's page had another number when it was written there.
func (l *Ledger) SetRenamed(p ftl.PPA, on bool) {
	s, k := l.at(p)
	if has(s.renamed, s.renames, k) != on {
		words := len(s.renamed)
		s.renamed, s.renames = change(s.renamed, s.renames, k, l.pages, on)
		l.bytes += int64(len(s.renamed)-words) * 8
	}
}

// Owner returns the page that a live place holds, and whether it is in memory. That of another place is one that it
// once had, or any.
func (l *Ledger) Owner(p ftl.PPA) (page uint64, known bool) {
	s, k := l.at(p)
	switch {
	case s.away:
		return l.awayOwner(s, p)
	case s.owners != nil:
		return s.owners[k], true
	case len(s.runs) == 0:
		return 0, true
	}
	return s.runs[s.runOf(k)].owner(k), true
}

func (s *sheet) runOf(k int64) int {
	if len(s.runs) == 1 {
		return 0
	}
	return sort.Search(len(s.runs), func(i int) bool { return int64(s.runs[i].at) > k }) - 1
}

func (r *run) owner(k int64) uint64 { return r.page + uint64(k-int64(r.at)) }

// SetOwner sets the page of a place.
func (l *Ledger) SetOwner(p ftl.PPA, page uint64) {
	s, k := l.at(p)
	if s.away {
		l.setAway(s, p, page)
		return
	}
	if s.owners == nil {
		s.owners = make([]uint64, l.pages)
		l.bytes += l.pages * 8
		if len(s.runs) > 0 {
			for i, r := 0, 0; i < len(s.owners); i++ {
				if r+1 < len(s.runs) && int(s.runs[r+1].at) == i {
					r++
				}
				s.owners[i] = s.runs[r].owner(int64(i))
			}
			l.bytes -= int64(cap(s.runs)) * runBytes
			s.runs = nil
			l.loosen(int64(p) / l.pages)
		}
	}
	s.owners[k] = page
}

// Fill sets the state of a segment's places to that of the entries of a checkpoint. Its checksums stay on the medium,
// and so do its owners unless they are a few runs.
func (l *Ledger) Fill(segment int64, entries media.Entries) {
	s := &l.sheets[segment]
	runs := make([]run, 0, fewRuns)
	s.away = false
	for k := 0; k < entries.Len(); {
		e, n := entries.Run(k)
		if e.Page != 0 {
			l.mark(&s.live, &s.lives, k, n)
			if e.Renamed {
				l.mark(&s.renamed, &s.renames, k, n)
			}
			r := run{e.Page - 1, int32(k)}
			if len(runs) == 0 {
				r = run{e.Page - 1 - uint64(k), 0} // as Seal has it
			}
			if j := len(runs); j == 0 || runs[j-1].owner(int64(k)) != e.Page-1 {
				if s.away = s.away || j == fewRuns; !s.away {
					runs = append(runs, r)
				}
			}
		}
		k += n
	}
	l.lives += int64(s.lives)
	if !s.away && len(runs) > 0 {
		s.runs = runs
		l.bytes += int64(cap(runs)) * runBytes
	}
}

// Leave records that the owners of a segment's places are only on the medium, as its checksums are.
func (l *Ledger) Leave(segment int64) { l.sheets[segment].away = true }

// FillWhole makes all places of a segment live, none of which was.
func (l *Ledger) FillWhole(segment int64) {
	s := &l.sheets[segment]
	l.mark(&s.live, &s.lives, 0, int(l.pages))
	l.lives += l.pages
}

// FillBits sets words of the bits of a segment's live or renamed places, none of which was set before.
func (l *Ledger) FillBits(segment int64, renamed bool, from int, words []uint64) {
	s := &l.sheets[segment]
	set, count, was := &s.live, &s.lives, s.lives
	if renamed {
		set, count = &s.renamed, &s.renames
	}
	for i, w := range words {
		for k := 0; k < 64 && w>>k != 0; {
			k += bits.TrailingZeros64(w >> k)
			n := bits.TrailingZeros64(^(w >> k))
			l.mark(set, count, (from+i)*64+k, n)
			k += n
		}
	}
	if !renamed {
		l.lives += int64(s.lives - was)
	}
}

// mark sets n bits of a set from bit k on, which are not set, and counts them.
func (l *Ledger) mark(set *[]uint64, count *int32, k, n int) {
	if *count += int32(n); int64(*count) == l.pages {
		l.bytes -= int64(len(*set)) * 8
		*set = nil
		return
	}
	if *set == nil {
		*set = make([]uint64, (l.pages+63)/64)
		l.bytes += int64(len(*set)) * 8
	}
	for end := k + n; k < end; {
		m := min(64-k&63, end-k)
		(*set)[k>>6] |= ^uint64(0) >> (64 - m) << (k & 63)
		k += m
	}
}

// mostLoose is the number of segments that stay unsealed after SetOwner.
const mostLoose = 64

// loosen seals the segment that was unsealed longest ago if there are many. A move of addresses visits them in turn.
func (l *Ledger) loosen(segment int64) {
	if len(l.loose) == mostLoose {
		l.Seal(l.loose[0])
		copy(l.loose, l.loose[1:])
		l.loose = l.loose[:mostLoose-1]
	}
	l.loose = append(l.loose, segment)
}

// Seal replaces the owners of a segment's places by runs, if that takes at most half of the memory. Places that are not
// live no longer have an owner of their own. The segment must be full.
func (l *Ledger) Seal(segment int64) {
	s := &l.sheets[segment]
	if s.owners == nil {
		return
	}
	runs := make([]run, 0, 2)
	for k := l.NextLive(segment, 0); k < int(l.pages); k = l.NextLive(segment, k+1) {
		if n := len(runs); n > 0 && runs[n-1].owner(int64(k)) == s.owners[k] {
			continue
		}
		r := run{s.owners[k], int32(k)}
		if len(runs) == 0 { // the difference may wrap, and owner wraps it back
			r = run{s.owners[k] - uint64(k), 0}
		}
		runs = append(runs, r)
		if int64(len(runs))*4 > l.pages {
			return
		}
	}
	s.runs, s.owners = slices.Clone(runs), nil
	l.bytes += int64(cap(s.runs))*runBytes - l.pages*8
}

// Erase forgets a segment's places, none of which is live.
func (l *Ledger) Erase(segment int64) {
	s := &l.sheets[segment]
	l.forget(s)
	l.forgetOwners(s, segment)
	// The segment's next use must not be sealed before it is full.
	l.loose = slices.DeleteFunc(l.loose, func(i int64) bool { return i == segment })
	l.bytes -= int64(len(s.renamed)) * 8
	s.renamed, s.renames, s.away = nil, 0, false
}

// Bytes returns the memory, in bytes, of the state of places, besides a sheet for each segment.
func (l *Ledger) Bytes() int64 { return l.bytes + int64(len(l.named)+len(l.frozen))*namedBytes }
