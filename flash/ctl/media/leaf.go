package media

// Leaves of the mapping by page can be stored in segments that hold nothing else, so that a pool needs not have all of
// its mapping in memory. A checkpoint's header leads to the list of those that are as the mapping is at the checkpoint,
// but for pages that records of the log after it change. They are redundant: a checkpoint's entries have all that they
// have. A program that does not know of them takes their segments for erased ones.

// LeafPages is the number of pages of a leaf.
const LeafPages = 512

const (
	leafHeader  = 40
	leafEntry   = 6
	listHeader  = 56
	listEntry   = 16
	leavesOfOne = (Grain - listHeader) / listEntry
)

// Leaf is the places of LeafPages consecutive pages, the first of which has a number that is Number times as many.
type Leaf struct {
	Number     uint64
	Generation uint64           // of the checkpoint that it was stored for
	Places     [LeafPages]int64 // -1: none
}

// Encode writes the leaf into a grain, and returns its tag, by which a grain that was not written is found out.
func (l *Leaf) Encode(page []byte, u UUID) (tag uint16) {
	clear(page)
	le.PutUint32(page, magicLeaf)
	copy(page[8:], u[:])
	le.PutUint64(page[24:], l.Number)
	le.PutUint64(page[32:], l.Generation)
	at := page[leafHeader:]
	for _, p := range l.Places {
		le.PutUint32(at, uint32(p+1))
		le.PutUint16(at[4:], uint16((p+1)>>32))
		at = at[leafEntry:]
	}
	return uint16(seal(u.Seed(), page[:Grain]))
}

// DecodeLeaf reads the leaf of a number and a tag. Its places are below the given one.
func DecodeLeaf(page []byte, u UUID, number uint64, tag uint16, places int64, l *Leaf) error {
	switch {
	case len(page) != Grain || le.Uint32(page) != magicLeaf:
		return foreign("leaf", "missing")
	case UUID(page[8:24]) != u:
		return foreign("leaf", "belongs to another pool")
	case !sealed(u.Seed(), page):
		return foreign("leaf", "checksum mismatch")
	case le.Uint64(page[24:]) != number || le.Uint16(page[4:]) != tag:
		return foreign("leaf", "is another one")
	}
	l.Number, l.Generation = number, le.Uint64(page[32:])
	at := page[leafHeader:]
	for i := range l.Places {
		l.Places[i] = int64(le.Uint32(at)) | int64(le.Uint16(at[4:]))<<32 - 1
		if l.Places[i] >= places {
			return foreign("leaf", "place beyond the medium")
		}
		at = at[leafEntry:]
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
	Tag           uint16
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
		le.PutUint64(at[8:], s.Place|uint64(s.Tag)<<48)
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
		s := Stored{le.Uint64(at), le.Uint64(at[8:]) & (1<<48 - 1), le.Uint16(at[14:])}
		if s.Number >= MaxLBA/LeafPages || s.Place >= uint64(places) {
			return l, foreign("list of leaves", "leaf beyond the space")
		}
		l.List[i] = s
		at = at[listEntry:]
	}
	return l, nil
}
