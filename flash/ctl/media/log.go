package media

// Kind is the type of a log record.
type Kind uint8

// The kinds. Write and Keep each set one mapping entry: a page and its place.
const (
	None  Kind = iota
	Write      // page LBA is at place PPA, with this checksum; moves by collection log it too
	// like Write, but the content is known not to match the checksum: the page was damaged when it was moved
	Keep
	Trim // discard Count pages from LBA on
	Open // segment PPA was opened and its old content is gone; it was erased Sum times before. LBA: see OpenedBy
	// Count pages from LBA on move to PPA on; the previous content of the destination is discarded, and the source is
	// empty
	Move
	// The Count writes from record PPA on, of earlier sessions, do not count: their content was missing after a crash.
	Drop
	Resume // a session goes on with the log that a crash left; PPA: the generation of its next checkpoint
	kinds
)

func (k Kind) String() string {
	return [...]string{"none", "write", "keep", "trim", "open", "move", "drop", "resume"}[k]
}

// Record is one change of the mapping. Records are numbered in the order of the changes.
type Record struct {
	Kind  Kind
	Sum   uint32 // Write, Keep: of the content; Open: erases
	LBA   uint64 // below 2^52
	PPA   uint64 // below 2^48; Move: a page, below 2^52; Drop: a record
	Count uint32 // Trim, Move, Drop
	// Joined makes this record and the next atomic. Both are in the same log page, which is either valid as a whole or
	// not at all.
	Joined bool
}

// counted reports whether records of this kind carry a count instead of a checksum.
func (k Kind) counted() bool { return k == Trim || k == Move || k == Drop }

// OpenedBy packs the LBA of an Open record: the stream that the segment was opened for, and the session.
func OpenedBy(stream uint8, session uint64) uint64 { return session&(1<<32-1)<<8 | uint64(stream) }

// Opener unpacks OpenedBy.
func (r Record) Opener() (stream uint8, session uint32) { return uint8(r.LBA), uint32(r.LBA >> 8) }

const (
	recordSize = 20
	logHeader  = 76

	// RecordsPerPage is the number of records that a log page adds. As many again fit: those of the page before it.
	RecordsPerPage = (Grain - logHeader) / recordSize / 2
	// MaxCount is the largest Count of one record.
	MaxCount = 1<<32 - 1

	joined = 1 << 63 // flag in a record's first word
)

// LogPage is one page of the log. It names its predecessor by checksum, so that a stale page left over from an
// earlier pass through the ring is not taken for a successor, and repeats its predecessor's records, so that the loss
// of one page loses none.
type LogPage struct {
	Number  uint64 // counts pages since the pool was formatted; its slot in the ring is Number modulo LogPages
	Session uint64 // counts how often the pool was opened
	Back    uint32 // checksum of the previous page, or as the checkpoint has it
	First   uint64 // number of the first record
	Mark    uint64 // when the page was written, records below this number were durable, with the data they refer to
	Records []Record
	Again   []Record // those of the page before
}

// Encode writes the page into a grain and returns its checksum.
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
	le.PutUint16(page[62:], uint16(len(l.Again)))
	encodeRecords(encodeRecords(page[logHeader:], l.Again), l.Records)
	return seal(u.Seed(), page[:Grain])
}

// encodeRecords writes records one after another, and returns the space after them.
func encodeRecords(at []byte, records []Record) []byte {
	for _, r := range records {
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
		at = at[recordSize:]
	}
	return at
}

// DecodeLogPage reads a log page and returns its checksum.
func DecodeLogPage(page []byte, u UUID) (l LogPage, sum uint32, err error) {
	l, n, again, sum, err := InspectLogPage(page, u)
	if err != nil {
		return l, 0, err
	}
	l.Again = decodeRecords(page[logHeader:], again)
	l.Records = decodeRecords(page[logHeader+again*recordSize:], n)
	return l, sum, nil
}

// errNoLogPage is made once, because most of a new pool's log is not written yet.
var errNoLogPage = foreign("log page", "missing")

// InspectLogPage is DecodeLogPage without the records, of which it returns the numbers: of the page's own, and of those
// of the page before.
func InspectLogPage(page []byte, u UUID) (l LogPage, n, again int, sum uint32, err error) {
	switch {
	case len(page) != Grain || le.Uint32(page) != magicLog:
		return l, 0, 0, 0, errNoLogPage
	case UUID(page[8:24]) != u:
		return l, 0, 0, 0, foreign("log page", "belongs to another pool")
	case !sealed(u.Seed(), page):
		return l, 0, 0, 0, foreign("log page", "checksum mismatch")
	}
	l = LogPage{
		Session: le.Uint64(page[24:]), Number: le.Uint64(page[32:]), First: le.Uint64(page[40:]),
		Mark: le.Uint64(page[48:]), Back: le.Uint32(page[56:]),
	}
	n, again = int(le.Uint16(page[60:])), int(le.Uint16(page[62:]))
	if n > RecordsPerPage || again > RecordsPerPage {
		return l, 0, 0, 0, foreign("log page", "too many records")
	}
	if err = checkRecords(page[logHeader:], again); err == nil {
		err = checkRecords(page[logHeader+again*recordSize:], n)
	}
	return l, n, again, le.Uint32(page[4:]), err
}

// checkRecords reports whether n records are of known kinds, and whole groups.
func checkRecords(from []byte, n int) error {
	for i := range n {
		switch r := decodeRecord(from[i*recordSize:]); {
		case r.Kind == None || r.Kind >= kinds:
			return foreign("log page", "record of unknown kind")
		case r.Joined && i == n-1:
			return foreign("log page", "its last record is joined to a missing one")
		}
	}
	return nil
}

func decodeRecord(at []byte) Record {
	head := le.Uint64(at)
	r := Record{Kind: Kind(head &^ joined >> 56), LBA: head & (1<<56 - 1), PPA: le.Uint64(at[12:]),
		Joined: head&joined != 0}
	if r.Kind.counted() {
		r.Count = le.Uint32(at[8:])
	} else {
		r.Sum = le.Uint32(at[8:])
	}
	return r
}

// decodeRecords reads n records, which checkRecords has accepted.
func decodeRecords(from []byte, n int) []Record {
	if n == 0 {
		return nil
	}
	out := make([]Record, n)
	for i := range out {
		out[i] = decodeRecord(from[i*recordSize:])
	}
	return out
}
