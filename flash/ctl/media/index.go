package media

// A checkpoint of a pool that is closed has an index, with all that a recovery needs of entries, so that it need not
// read them. It is a chain of pages in segments that hold nothing else, as stored leaves are, and just as redundant.

// IndexKind is the type of an item of an index.
type IndexKind uint8

// The kinds.
const (
	IndexRun     IndexKind = 1 + iota // Count pages from Page on are at places from Place on
	IndexWhole                        // all places of Count segments from Segment on are live
	IndexLive                         // Words of the bits of a segment's live places
	IndexRenamed                      // Words of the bits of its renamed ones
	indexKinds
)

// IndexItem is an item of an index.
type IndexItem struct {
	Kind    IndexKind
	From    int // of Words, the first
	Count   uint32
	Page    uint64 // or Segment
	Place   uint64
	Words   []uint64
	Segment int64
}

const (
	indexHeader = 56
	indexItem   = 16 // before a place or words
	indexRoom   = Grain - indexHeader
)

// IndexPage is a page of an index that is being made.
type IndexPage struct {
	page []byte
	used int
}

// NewIndexPage begins a page in a grain.
func NewIndexPage(page []byte) IndexPage {
	clear(page)
	return IndexPage{page: page[:Grain]}
}

func (x *IndexPage) add(kind IndexKind, from int, count uint32, at uint64, words []uint64) {
	to := x.page[indexHeader+x.used:]
	to[0] = byte(kind)
	le.PutUint16(to[2:], uint16(from))
	le.PutUint32(to[4:], count)
	le.PutUint64(to[8:], at)
	for i, w := range words {
		le.PutUint64(to[indexItem+i*8:], w)
	}
	x.used += indexItem + len(words)*8
}

// Run adds pages in the order of their places, of which there is at least one, and reports whether there was space.
func (x *IndexPage) Run(page, place uint64, n uint32) bool {
	if x.used+indexItem+8 > indexRoom {
		return false
	}
	x.add(IndexRun, 0, n, page, []uint64{place})
	return true
}

// Whole adds segments all places of which are live, and reports whether there was space.
func (x *IndexPage) Whole(segment int64, n uint32) bool {
	if x.used+indexItem > indexRoom {
		return false
	}
	x.add(IndexWhole, 0, n, uint64(segment), nil)
	return true
}

// Bits adds as many words of a segment's bits, from one on, as there is space for, and returns how many those are.
func (x *IndexPage) Bits(kind IndexKind, segment int64, from int, words []uint64) int {
	n := min(len(words), (indexRoom-x.used-indexItem)/8)
	if n <= 0 {
		return 0
	}
	x.add(kind, from, uint32(n), uint64(segment), words[:n])
	return n
}

// Seal completes the page of the index of a checkpoint. next is the place of the page after it plus 1, or 0.
func (x *IndexPage) Seal(u UUID, generation, next uint64) {
	le.PutUint32(x.page, magicIndex)
	copy(x.page[8:], u[:])
	le.PutUint64(x.page[24:], generation)
	le.PutUint64(x.page[32:], next)
	le.PutUint64(x.page[40:], uint64(x.used))
	seal(u.Seed(), x.page)
}

// DecodeIndex reads a page of the index of a checkpoint of a pool of that many segments, and calls each for each of its
// items until it returns an error. Words are only valid until each returns.
func DecodeIndex(page []byte, u UUID, generation uint64, segments int64, pages int,
	each func(*IndexItem) error) (next uint64, err error) {
	places := segments * int64(pages)
	switch {
	case len(page) != Grain || le.Uint32(page) != magicIndex:
		return 0, foreign("index", "missing")
	case UUID(page[8:24]) != u:
		return 0, foreign("index", "belongs to another pool")
	case !sealed(u.Seed(), page):
		return 0, foreign("index", "checksum mismatch")
	case le.Uint64(page[24:]) != generation:
		return 0, foreign("index", "belongs to another checkpoint")
	case le.Uint64(page[32:]) > uint64(places) || le.Uint64(page[40:]) > indexRoom:
		return 0, foreign("index", "too long")
	}
	var words [indexRoom / 8]uint64
	for at := page[indexHeader:][:le.Uint64(page[40:])]; len(at) > 0; {
		if len(at) < indexItem {
			return 0, foreign("index", "half an item")
		}
		x := IndexItem{Kind: IndexKind(at[0]), From: int(le.Uint16(at[2:])), Count: le.Uint32(at[4:]),
			Page: le.Uint64(at[8:])}
		x.Segment = int64(x.Page)
		n := 0 // words
		switch x.Kind {
		case IndexRun:
			n = 1
		case IndexLive, IndexRenamed:
			n = int(x.Count)
		}
		if at = at[indexItem:]; n > len(at)/8 || x.Kind == 0 || x.Kind >= indexKinds {
			return 0, foreign("index", "no such item")
		}
		for i := range n {
			words[i] = le.Uint64(at[i*8:])
		}
		x.Words, at = words[:n], at[n*8:]
		beyond := false
		switch x.Kind {
		case IndexRun:
			x.Place = words[0]
			n := uint64(x.Count)
			beyond = x.From > 0 || n == 0 || n > uint64(places) || x.Page > MaxLBA-n || x.Place > uint64(places)-n
		case IndexWhole:
			beyond = x.From > 0 || x.Page > uint64(segments) || uint64(x.Count) > uint64(segments)-x.Page
		default:
			beyond = x.Page >= uint64(segments) || x.From+n > (pages+63)/64
			if last := pages & 63; !beyond && n > 0 && x.From+n == (pages+63)/64 && last > 0 {
				beyond = words[n-1]>>last != 0
			}
		}
		if beyond {
			return 0, foreign("index", "item beyond the space")
		}
		if err := each(&x); err != nil {
			return 0, err
		}
	}
	return le.Uint64(page[32:]), nil
}
