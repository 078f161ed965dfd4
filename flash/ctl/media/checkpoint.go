package media

import "iter"

// A checkpoint is the whole mapping, ordered by place: the use of each segment, and for each data grain its logical
// page and the checksum of its content. The header is written last, so that a checkpoint is either complete or invalid.

// Use is the state of a segment.
type Use uint8

// The uses.
const (
	Erased Use = iota
	Opened     // a stream's frontier: places from Written on are unused
	Filled
	uses
)

// Segment is a checkpoint's entry for a segment.
type Segment struct {
	Use    Use
	Stream uint8
	// Age is how many checkpoints in the same slot ago the groups with entries of this segment were written because of
	// it. They have not changed since, and are those of this checkpoint too.
	Age     uint16
	Still   bool   // its entries are those of the checkpoint before this one, in the other slot
	Written uint32 // Opened: data grains used
	Erases  uint32
	Session uint32 // in which it was opened
	Order   uint64 // fill order: the lower was filled first, or opened first if not yet filled
}

// Entry is a checkpoint's entry for a place. Page is the logical page plus 1, or 0 if the place is unused.
type Entry struct {
	Page    uint64
	Sum     uint32
	Renamed bool // the page had another number when it was written here, which the segment's summary may still have
}

// renamed is a flag in the first word of a checkpoint entry, and still one beside a segment's stream.
const (
	renamed = 1 << 63
	still   = 1 << 7
)

// Header is each of a checkpoint's first two grains.
type Header struct {
	Generation uint64 // the highest valid one is in force
	Session    uint64
	Next       uint64 // number of the first log page after it
	Record     uint64 // number of the first record after it
	Back       uint32 // the Back that this log page must have
	Clean      bool   // closed cleanly, with no changes after
	Writes     uint64 // the heat clock
	Leaves     uint64 // the place of the first page of the list of stored leaves, plus 1; 0: there is none
	Index      uint64 // the place of the first page of the index, plus 1; 0: there is none
}

const (
	bodyHeader  = 40
	segmentSize = 24
	entrySize   = 12

	segmentsPerPage = (Grain - bodyHeader) / segmentSize
	entriesPerPage  = (Grain - bodyHeader) / entrySize

	// EntriesPerPage is the number of places in a grain of entries.
	EntriesPerPage = entriesPerPage
)

// A checkpoint takes, in its slot, its header twice and then its body in groups of up to Group grains, each followed by
// their parity. So the loss of any one grain loses nothing.
const (
	Headers = 2
	Group   = 64
)

// BodyGrain returns the grain of a slot that holds grain i of the body. The parity of group g follows its last grain.
func BodyGrain(i int64) int64 { return Headers + i + i/Group }

// slotGrains returns the size of a slot for a body of n grains.
func slotGrains(n int64) int64 { return Headers + n + (n+Group-1)/Group }

// Parity adds a grain to the parity of its group, which starts with zeros. The parity of all grains of a group but
// one is that one.
func Parity(parity, grain []byte) {
	for i := 0; i < Grain; i += 8 {
		le.PutUint64(parity[i:], le.Uint64(parity[i:])^le.Uint64(grain[i:]))
	}
}

// Mend rebuilds the one grain of a group that is not that of a body, from the others and their parity, and returns its
// index, or -1 if all are right. The group begins with grain i, and its parity is the last grain of buf. If more are
// wrong, the error is that of the first.
func Mend(buf []byte, i int64, u UUID, generation uint64) (mended int64, err error) {
	n := int64(len(buf)/Grain) - 1
	bad := int64(-1)
	for k := range n {
		switch own := VerifyPage(buf[k*Grain:][:Grain], i+k, u, generation); {
		case own == nil:
		case bad >= 0:
			return -1, err
		default:
			bad, err = k, own
		}
	}
	if bad < 0 {
		return -1, nil
	}
	sum := make([]byte, Grain)
	for k := range n + 1 {
		if k != bad {
			Parity(sum, buf[k*Grain:][:Grain])
		}
	}
	if VerifyPage(sum, i+bad, u, generation) != nil {
		return -1, err
	}
	copy(buf[bad*Grain:], sum)
	return bad, nil
}

// Holds reports whether a checkpoint has the group of body grains that begins with grain i. The groups of the segments
// are always there; one of entries is only there if one of its places is in a segment that is in use, so that a
// checkpoint is no longer than what the pool holds. Segments must be set.
func (b *Body) Holds(i int64) bool {
	if i < segmentPages(int64(len(b.Segments))) {
		return true
	}
	from, to := b.Span(i)
	for _, s := range b.Segments[from:to] {
		if s.Use != Erased {
			return true
		}
	}
	return false
}

// Span returns the first segment with entries in the group of body grains that begins with grain i, and the one after
// the last.
func (b *Body) Span(i int64) (from, to int64) { return Span(i, int64(len(b.Segments)), b.Pages) }

// Span is Body.Span for that many segments of the given pages.
func Span(i, segments int64, pages int) (from, to int64) {
	first := segmentPages(segments)
	if i+Group <= first {
		return 0, 0
	}
	from = max(i-first, 0) * entriesPerPage / int64(pages)
	to = ((i-first+Group)*entriesPerPage-1)/int64(pages) + 1
	return min(from, segments), min(to, segments)
}

// Generation returns the generation of the group that has grain i, in the checkpoint of a generation: that of the
// youngest segment with entries in it. Groups of the segments themselves are always written. Segments must be set.
func (b *Body) Generation(i int64, generation uint64) uint64 {
	group := i / Group * Group
	if group < segmentPages(int64(len(b.Segments))) {
		return generation
	}
	from, to := b.Span(group)
	age := uint16(0)
	for k, s := range b.Segments[from:to] {
		if k == 0 || s.Age < age {
			age = s.Age
		}
	}
	return generation - 2*uint64(age)
}

// BodyPages returns the number of grains of the body, for the given segments of the given pages.
func BodyPages(segments int64, pages int) int64 {
	return segmentPages(segments) + (segments*int64(pages)+entriesPerPage-1)/entriesPerPage
}

// EntriesGrain returns the grain of the body with the entries of the places from strip*EntriesPerPage on.
func EntriesGrain(strip, segments int64) int64 { return segmentPages(segments) + strip }

// Sums returns the checksums in a grain of entries, which VerifyPage has accepted.
func Sums(page []byte) (sums [EntriesPerPage]uint32) {
	for k := range sums {
		sums[k] = le.Uint32(page[bodyHeader+k*entrySize+8:])
	}
	return sums
}

// EntryAt returns entry k of a grain of entries, which VerifyPage has accepted.
func EntryAt(page []byte, k int) Entry { return EntriesOf(page, k, 1).At(0) }

// Entries is entries one after another, as the grains of a checkpoint have them.
type Entries []byte

// EntriesOf returns n entries in a grain, which VerifyPage has accepted, from one on.
func EntriesOf(page []byte, from, n int) Entries {
	return page[bodyHeader+from*entrySize:][:n*entrySize]
}

// MakeEntries returns n entries of no page.
func MakeEntries(n int) Entries { return make(Entries, n*entrySize) }

// Len returns the number of entries.
func (e Entries) Len() int { return len(e) / entrySize }

// Copy copies entries to e from k on, as many as both have, and returns how many.
func (e Entries) Copy(k int, from Entries) int { return copy(e[k*entrySize:], from) / entrySize }

// At returns entry k.
func (e Entries) At(k int) Entry {
	at := e[k*entrySize:]
	word := le.Uint64(at)
	return Entry{word &^ renamed, le.Uint32(at[8:]), word&renamed != 0}
}

// Run returns the page of entry k and the number of entries from there on that have one page after the other, and are
// all renamed or all not. The run of an entry without a page is that of all without one.
func (e Entries) Run(k int) (first Entry, n int) {
	first = e.At(k)
	word, step := le.Uint64(e[k*entrySize:]), uint64(1)
	if first.Page == 0 {
		step = 0
	}
	for at := (k + 1) * entrySize; at < len(e); at += entrySize {
		if word += step; le.Uint64(e[at:]) != word {
			return first, at/entrySize - k
		}
	}
	return first, e.Len() - k
}

func segmentPages(segments int64) int64 { return (segments + segmentsPerPage - 1) / segmentsPerPage }

// Encode writes the header into a grain.
func (h *Header) Encode(page []byte, u UUID) {
	clear(page)
	le.PutUint32(page, magicCheckpoint)
	copy(page[8:], u[:])
	le.PutUint64(page[24:], h.Generation)
	le.PutUint64(page[32:], h.Session)
	le.PutUint64(page[40:], h.Next)
	le.PutUint64(page[48:], h.Record)
	le.PutUint32(page[56:], h.Back)
	if h.Clean {
		page[60] = 1
	}
	le.PutUint64(page[64:], h.Writes)
	le.PutUint64(page[88:], h.Index)
	le.PutUint64(page[80:], h.Leaves) // a list of leaves without checksums was at 72
	seal(u.Seed(), page[:Grain])
}

// DecodeHeader reads a checkpoint's header.
func DecodeHeader(page []byte, u UUID) (h Header, err error) {
	switch {
	case len(page) != Grain || le.Uint32(page) != magicCheckpoint:
		return h, foreign("checkpoint", "missing")
	case UUID(page[8:24]) != u:
		return h, foreign("checkpoint", "belongs to another pool")
	case !sealed(u.Seed(), page):
		return h, foreign("checkpoint", "checksum mismatch")
	}
	return Header{
		Generation: le.Uint64(page[24:]), Session: le.Uint64(page[32:]), Next: le.Uint64(page[40:]),
		Record: le.Uint64(page[48:]),
		Back:   le.Uint32(page[56:]), Clean: page[60] == 1, Writes: le.Uint64(page[64:]),
		Leaves: le.Uint64(page[80:]), Index: le.Uint64(page[88:]),
	}, nil
}

// Body is the state that a checkpoint records.
type Body struct {
	Segments []Segment
	Entries  [][]Entry // by segment; nil for one that is erased
	Pages    int       // per segment
}

// parts iterates over the entries of the k-th grain of entries, in pieces of one segment each. Those of an erased
// segment are zeros that belong to nobody.
func (b *Body) parts(k int64) iter.Seq[[]Entry] {
	return func(yield func([]Entry) bool) {
		pages := int64(b.Pages)
		from, to := k*entriesPerPage, min((k+1)*entriesPerPage, int64(len(b.Segments))*pages)
		for from < to {
			segment, in := from/pages, from%pages
			n := min(to-from, pages-in)
			if b.Segments[segment].Use != Erased && b.Entries[segment] != nil {
				if !yield(b.Entries[segment][in : in+n]) {
					return
				}
			} else if !yield(make([]Entry, n)) {
				return
			}
			from += n
		}
	}
}

// EncodePage writes grain i of the body. Each grain carries the generation, so that grains of two checkpoints are never
// mixed.
func (b *Body) EncodePage(page []byte, i int64, u UUID, generation uint64) {
	clear(page)
	le.PutUint32(page, magicBody)
	copy(page[8:], u[:])
	le.PutUint64(page[24:], generation)
	le.PutUint64(page[32:], uint64(i))
	at := page[bodyHeader:Grain]
	if first := segmentPages(int64(len(b.Segments))); i >= first {
		for part := range b.parts(i - first) {
			for _, e := range part {
				word := e.Page
				if e.Renamed {
					word |= renamed
				}
				le.PutUint64(at, word)
				le.PutUint32(at[8:], e.Sum)
				at = at[entrySize:]
			}
		}
	} else {
		from := i * segmentsPerPage
		for _, s := range b.Segments[from:min(from+segmentsPerPage, int64(len(b.Segments)))] {
			if at[0], at[1] = uint8(s.Use), s.Stream; s.Still {
				at[1] |= still
			}
			le.PutUint16(at[2:], s.Age)
			le.PutUint32(at[4:], s.Written)
			le.PutUint32(at[8:], s.Erases)
			le.PutUint32(at[12:], s.Session)
			le.PutUint64(at[16:], s.Order)
			at = at[segmentSize:]
		}
	}
	seal(u.Seed(), page[:Grain])
}

// Covers returns what grain i of a body describes, of that many segments: segments from to to, or places, counted over
// all segments.
func Covers(i, segments int64, pages int) (from, to int64, places bool) {
	first := segmentPages(segments)
	if i < first {
		return i * segmentsPerPage, min((i+1)*segmentsPerPage, segments), false
	}
	k := i - first
	return k * entriesPerPage, min((k+1)*entriesPerPage, segments*int64(pages)), true
}

// Generation returns the generation of a page that is grain i of a body.
func Generation(page []byte, i int64, u UUID) (uint64, error) {
	if len(page) != Grain {
		return 0, foreign("checkpoint body", "missing")
	}
	generation := le.Uint64(page[24:])
	return generation, VerifyPage(page, i, u, generation)
}

// VerifyPage reports whether a page is grain i of the body of that generation.
func VerifyPage(page []byte, i int64, u UUID, generation uint64) error {
	switch {
	case len(page) != Grain || le.Uint32(page) != magicBody:
		return foreign("checkpoint body", "missing")
	case UUID(page[8:24]) != u:
		return foreign("checkpoint body", "belongs to another pool")
	case !sealed(u.Seed(), page):
		return foreign("checkpoint body", "checksum mismatch")
	case le.Uint64(page[24:]) != generation || le.Uint64(page[32:]) != uint64(i):
		return foreign("checkpoint body", "belongs to another checkpoint or position")
	}
	return nil
}

// DecodePage reads grain i of the body into b. The grains of the segments come first: they say which entries there are.
func (b *Body) DecodePage(page []byte, i int64, u UUID, generation uint64) error {
	if err := VerifyPage(page, i, u, generation); err != nil {
		return err
	}
	at := page[bodyHeader:Grain]
	if first := segmentPages(int64(len(b.Segments))); i >= first {
		from, to, _ := Covers(i, int64(len(b.Segments)), b.Pages)
		for g := from / int64(b.Pages); from < to && g <= (to-1)/int64(b.Pages); g++ {
			if b.Segments[g].Use != Erased && b.Entries[g] == nil {
				b.Entries[g] = make([]Entry, b.Pages)
			}
		}
		for part := range b.parts(i - first) {
			for k := range part {
				word := le.Uint64(at)
				part[k] = Entry{word &^ renamed, le.Uint32(at[8:]), word&renamed != 0}
				if part[k].Page > MaxLBA {
					return foreign("checkpoint body", "page beyond the logical space")
				}
				at = at[entrySize:]
			}
		}
		return nil
	}
	from := i * segmentsPerPage
	part := b.Segments[from:min(from+segmentsPerPage, int64(len(b.Segments)))]
	for k := range part {
		part[k] = Segment{Use: Use(at[0]), Stream: at[1] &^ still, Age: le.Uint16(at[2:]), Still: at[1]&still != 0,
			Written: le.Uint32(at[4:]), Erases: le.Uint32(at[8:]), Session: le.Uint32(at[12:]),
			Order: le.Uint64(at[16:])}
		if part[k].Use >= uses || part[k].Use == Opened && int(part[k].Written) >= b.Pages {
			return foreign("checkpoint body", "invalid segment state")
		}
		at = at[segmentSize:]
	}
	return nil
}

const summaryHeader = 72

// Summary follows a segment's data grains once all are written. Check compares it with the mapping and the log. Being
// written with the data, it also identifies a segment that lies where another should be.
type Summary struct {
	Segment uint64
	Session uint64 // in which the segment was opened
	Erases  uint32
	Stream  uint8
	Back    uint64 // the segment that the same stream filled before, plus 1; 0: none
	Order   uint64 // number of the next record when the segment was filled
	Entries []Entry
}

// IsSummary reports whether a grain begins like a summary.
func IsSummary(page []byte) bool { return le.Uint32(page) == magicSummary }

// Encode writes the summary into its grains.
func (s *Summary) Encode(grains []byte, u UUID) {
	clear(grains)
	le.PutUint32(grains, magicSummary)
	copy(grains[8:], u[:])
	le.PutUint64(grains[24:], s.Segment)
	le.PutUint64(grains[32:], s.Session)
	le.PutUint64(grains[40:], s.Back)
	le.PutUint64(grains[48:], s.Order)
	le.PutUint32(grains[56:], s.Erases)
	le.PutUint32(grains[60:], uint32(len(s.Entries)))
	grains[64] = s.Stream
	for i, e := range s.Entries {
		le.PutUint64(grains[summaryHeader+12*i:], e.Page)
		le.PutUint32(grains[summaryHeader+12*i+8:], e.Sum)
	}
	seal(u.Seed(), grains)
}

// DecodeSummary reads a summary with the given number of entries.
func DecodeSummary(grains []byte, u UUID, entries int) (s Summary, err error) {
	switch {
	case len(grains) < summaryHeader+12*entries || le.Uint32(grains) != magicSummary:
		return s, foreign("segment summary", "missing")
	case UUID(grains[8:24]) != u:
		return s, foreign("segment summary", "belongs to another pool")
	case !sealed(u.Seed(), grains):
		return s, foreign("segment summary", "checksum mismatch")
	case int64(le.Uint32(grains[60:])) != int64(entries):
		return s, foreign("segment summary", "belongs to a segment of another size")
	}
	s = Summary{
		Segment: le.Uint64(grains[24:]), Session: le.Uint64(grains[32:]), Back: le.Uint64(grains[40:]),
		Order:  le.Uint64(grains[48:]),
		Erases: le.Uint32(grains[56:]), Stream: grains[64], Entries: make([]Entry, entries),
	}
	for i := range s.Entries {
		s.Entries[i] = Entry{Page: le.Uint64(grains[summaryHeader+12*i:]),
			Sum: le.Uint32(grains[summaryHeader+12*i+8:])}
	}
	return s, nil
}
