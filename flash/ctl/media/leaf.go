package media

import "math/bits"

// Leaves of the mapping by page can be stored in segments that hold nothing else, so that a pool needs not have all of
// its mapping in memory. A checkpoint's header leads to the list of those that are as the mapping is at the checkpoint,
// but for pages that records of the log after it change. They are redundant: a checkpoint's entries have all that they
// have. A program that does not know of them takes their segments for erased ones.

// LeafPages is the number of pages of a leaf.
const LeafPages = 512

const (
	listHeader  = 56
	listEntry   = 20
	leavesOfOne = (Grain - listHeader) / listEntry
)

// Leaf is LeafPages consecutive pages, the first of which has a number that is a multiple of as many: for each its
// place plus 1, in the low PlaceBits bits, and above them as much of the checksum of its content as they hold. 0 is a
// page without a place, and a checksum of 0 is not known. A leaf fills its grain, so the tag that identifies it
// stands beside each reference to it.
type Leaf [LeafPages]uint64

// PlaceBits returns the bits that a place of a leaf takes: 32 below 16 TiB, which leave all of a checksum.
func PlaceBits(places int64) uint { return uint(max(32, bits.Len64(uint64(places)))) }

// tagOf returns the tag of the leaf of a number, from the bytes of its grain.
func tagOf(page []byte, u UUID, number uint64) uint32 {
	var own [8]byte
	le.PutUint64(own[:], number)
	return Sum(Sum(u.Seed(), own[:]), page)
}

// Encode writes the leaf of a number into a grain, and returns its tag.
func (l *Leaf) Encode(page []byte, u UUID, number uint64) (tag uint32) {
	for i, entry := range l {
		le.PutUint64(page[i*8:], entry)
	}
	return tagOf(page[:Grain], u, number)
}

// DecodeLeaf reads the leaf of a number and a tag, of a pool of that many places. Of the tag, as much counts as an
// entry has of a checksum.
func DecodeLeaf(page []byte, u UUID, number uint64, tag uint32, places int64, l *Leaf) error {
	free := PlaceBits(places)
	if len(page) != Grain || uint64(tagOf(page, u, number))<<free != uint64(tag)<<free {
		return foreign("leaf", "checksum mismatch")
	}
	for i := range l {
		l[i] = le.Uint64(page[i*8:])
		if l[i]&(1<<free-1) > uint64(places) {
			return foreign("leaf", "place beyond the medium")
		}
	}
	return nil
}

// Leaves is a page of the list of stored leaves.
type Leaves struct {
	Generation uint64 // of the checkpoint
	Next       uint64 // the place of the list's next page, plus 1; 0: this is the last
	List       []Stored
}

// Stored is a leaf by its number, and the place where it is, which is below 2^48.
type Stored struct {
	Number, Place uint64
	Tag           uint32
}

// LeavesPerPage is the number of leaves in a page of the list.
const LeavesPerPage = leavesOfOne

// Encode writes the page into a grain.
func (l *Leaves) Encode(page []byte, u UUID) {
	clear(page)
	le.PutUint32(page, magicLeaves)
	copy(page[8:], u[:])
	le.PutUint64(page[24:], l.Generation)
	le.PutUint64(page[32:], l.Next)
	le.PutUint64(page[40:], uint64(len(l.List)))
	at := page[listHeader:]
	for _, s := range l.List {
		le.PutUint64(at, s.Number)
		le.PutUint64(at[8:], s.Place)
		le.PutUint32(at[16:], s.Tag)
		at = at[listEntry:]
	}
	seal(u.Seed(), page[:Grain])
}

// DecodeLeaves reads a page of the list of a checkpoint. Its places are below the given one.
func DecodeLeaves(page []byte, u UUID, generation uint64, places int64) (l Leaves, err error) {
	switch {
	case len(page) != Grain || le.Uint32(page) != magicLeaves:
		return l, foreign("list of leaves", "missing")
	case UUID(page[8:24]) != u:
		return l, foreign("list of leaves", "belongs to another pool")
	case !sealed(u.Seed(), page):
		return l, foreign("list of leaves", "checksum mismatch")
	case le.Uint64(page[24:]) != generation:
		return l, foreign("list of leaves", "belongs to another checkpoint")
	case le.Uint64(page[40:]) > leavesOfOne || le.Uint64(page[32:]) > uint64(places):
		return l, foreign("list of leaves", "too long")
	}
	l.Generation, l.Next, l.List = generation, le.Uint64(page[32:]), make([]Stored, le.Uint64(page[40:]))
	at := page[listHeader:]
	for i := range l.List {
		s := Stored{le.Uint64(at), le.Uint64(at[8:]), le.Uint32(at[16:])}
		if s.Number >= MaxLBA/LeafPages || s.Place >= uint64(places) {
			return l, foreign("list of leaves", "leaf beyond the space")
		}
		l.List[i] = s
		at = at[listEntry:]
	}
	return l, nil
}
