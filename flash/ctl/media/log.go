package media

// Kind is what a record of the log says.
type Kind uint8

// The kinds. Those of one mapping entry name the page and its place.
const (
	None  Kind = iota
	Write      // page LBA is at place PPA, where its content has this sum; what a move does as well
	// likewise, but the content is known not to have this sum: it was unreadable when it was moved, and stays so
	Keep
	Trim // Count pages from LBA on hold nothing
	Open // segment PPA was opened: what was in it is gone; it was erased Sum times before. LBA: see OpenedBy
	// Count pages from LBA on are now Count pages from PPA on: what these held is gone, and those hold nothing
	Move
	kinds
)

func (k Kind) String() string { return [...]string{"none", "write", "keep", "trim", "open", "move"}[k] }

// Record is one change of the mapping. Its number is its place in the order of all changes.
type Record struct {
	Kind  Kind
	Sum   uint32 // Write, Keep: of the content; Open: erases
	LBA   uint64 // below 2^52
	PPA   uint64 // below 2^48; Move: a page, below 2^52
	Count uint32 // Trim, Move
	// Joined says that the next record is in force only with this one, and this one only with it: they are in the
	// same page of the log, which is there as a whole or not at all.
	Joined bool
}

// counted reports whether records of this kind are about a number of pages, and have no sum.
func (k Kind) counted() bool { return k == Trim || k == Move }

// OpenedBy is the LBA of an Open record: the stream that the segment was opened for, and in which session.
func OpenedBy(stream uint8, session uint64) uint64 { return session&(1<<32-1)<<8 | uint64(stream) }

// Opener takes it apart.
func (r Record) Opener() (stream uint8, session uint32) { return uint8(r.LBA), uint32(r.LBA >> 8) }

const (
	recordSize = 20
	logHeader  = 76

	// RecordsPerPage is how many records a page of the log has room for.
	RecordsPerPage = (Grain - logHeader) / recordSize
	// MaxCount is the most pages that one record is about.
	MaxCount = 1<<32 - 1

	joined = 1 << 63 // in a record's first word
)

// LogPage is one page of the log. It names the one before by its sum, so that a page of an earlier time that
// was never overwritten is not taken for its successor.
type LogPage struct {
	Number  uint64 // counts pages from the pool's first on; its place in the ring is Number modulo LogPages
	Session uint64 // counts the times that the pool was opened
	Back    uint32 // the sum of the page before, or what the checkpoint says
	First   uint64 // number of the first record
	Mark    uint64 // records below this number were durable, with what they are about, when the page was written
	Records []Record
}

// Encode writes the page into a grain and returns its sum.
func (l *LogPage) Encode(page []byte, u UUID) uint32 {
	clear(page)
	le.PutUint32(page, magicLog)
	copy(page[8:], u[:])
	le.PutUint64(page[24:], l.Session)
	le.PutUint64(page[32:], l.Number)
	le.PutUint64(page[40:], l.First)
	le.PutUint64(page[48:], l.Mark)
	le.PutUint32(page[56:], l.Back)
	le.PutUint16(page[60:], uint16(len(l.Records)))
	for i, r := range l.Records {
		at := page[logHeader+i*recordSize:]
		head := uint64(r.Kind)<<56 | r.LBA
		if r.Joined {
			head |= joined
		}
		le.PutUint64(at, head)
		if r.Kind.counted() {
			le.PutUint32(at[8:], r.Count)
		} else {
			le.PutUint32(at[8:], r.Sum)
		}
		le.PutUint64(at[12:], r.PPA)
	}
	return seal(u.Seed(), page[:Grain])
}

// DecodeLogPage reads a page of the log and returns its sum. Records are appended to into.
func DecodeLogPage(page []byte, u UUID, into []Record) (l LogPage, sum uint32, err error) {
	switch {
	case len(page) != Grain || le.Uint32(page) != magicLog:
		return l, 0, foreign("log page", "there is none")
	case UUID(page[8:24]) != u:
		return l, 0, foreign("log page", "another pool's")
	case !sealed(u.Seed(), page):
		return l, 0, foreign("log page", "its sum is wrong")
	}
	l = LogPage{
		Session: le.Uint64(page[24:]), Number: le.Uint64(page[32:]), First: le.Uint64(page[40:]),
		Mark: le.Uint64(page[48:]), Back: le.Uint32(page[56:]),
	}
	n := int(le.Uint16(page[60:]))
	if n > RecordsPerPage {
		return l, 0, foreign("log page", "too many records")
	}
	for i := range n {
		at := page[logHeader+i*recordSize:]
		head := le.Uint64(at)
		r := Record{Kind: Kind(head &^ joined >> 56), LBA: head & (1<<56 - 1), PPA: le.Uint64(at[12:]),
			Joined: head&joined != 0}
		if r.Kind.counted() {
			r.Count = le.Uint32(at[8:])
		} else {
			r.Sum = le.Uint32(at[8:])
		}
		if r.Kind == None || r.Kind >= kinds {
			return l, 0, foreign("log page", "a record of an unknown kind")
		}
		if r.Joined && i == n-1 {
			return l, 0, foreign("log page", "its last record is joined to one that is not there")
		}
		into = append(into, r)
	}
	l.Records = into
	return l, le.Uint32(page[4:]), nil
}
