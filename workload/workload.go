// Package workload holds what all sources of block requests share: a [Record], the [Source] that yields records in
// order of time, and the combinators [Merge], [Limit], [Flushed] and [Slice].
//
// The sources themselves are its subpackages: trace reads and writes recorded workloads, synth makes synthetic ones,
// mqsimgen makes the ones that the simulator MQSim makes, fiojob reads fio's job files; characterise measures any of
// them and fit turns the measurements into synth's parameters.
//
// What it leaves out: the data that is read or written, and who issues a request beyond the volume it goes to.
package workload

import (
	"io"

	"farflash/block"
	"farflash/numeric/units"
)

// NoResponse is the Response of a record whose source has no response time.
const NoResponse units.Duration = -1

// Record is one request.
type Record struct {
	Time     units.Duration // arrival, from where the source begins; of a recorded trace that is its first record
	Response units.Duration // how long it took where it was recorded, or NoResponse
	Offset   int64          // bytes from the start of the volume
	Size     int64          // bytes; 0 only for Flush and what is about a zone
	Volume   uint32         // which volume, disk, device or file; the source can name it
	Op       block.Op
	Append   bool // a Write to the zone that begins at Offset, behind its data
}

// End returns the first byte behind the request.
func (r *Record) End() int64 { return r.Offset + r.Size }

// Source yields records in order of time.
//
// Next fills in the caller's record, all fields of it, and returns nil, or returns an error and leaves the record
// undefined; io.EOF means that there are no more. After an error, every further call returns the same error.
type Source interface {
	Next(*Record) error
}

// sliceSource yields the records of a slice.
type sliceSource struct {
	records []Record
}

// Slice returns a Source of the given records, which it does not copy.
func Slice(records []Record) Source { return &sliceSource{records} }

func (s *sliceSource) Next(r *Record) error {
	if len(s.records) == 0 {
		return io.EOF
	}
	*r = s.records[0]
	s.records = s.records[1:]
	return nil
}

// Collect reads src to its end. It is for tests and short workloads: the whole of it is held in memory.
func Collect(src Source) ([]Record, error) {
	var records []Record
	var r Record
	for {
		switch err := src.Next(&r); err {
		case nil:
			records = append(records, r)
		case io.EOF:
			return records, nil
		default:
			return records, err
		}
	}
}

// limited yields no more than a number of records, and none from a time on.
type limited struct {
	src   Source
	left  int64
	until units.Duration
}

// Limit returns a Source that ends after n records of src (0: no limit), or before the first one that does not arrive
// before until (0: no limit), whichever is first.
func Limit(src Source, n int64, until units.Duration) Source {
	if n <= 0 {
		n = -1
	}
	return &limited{src, n, until}
}

func (l *limited) Next(r *Record) error {
	if l.left == 0 {
		return io.EOF
	}
	if err := l.src.Next(r); err != nil {
		return err
	}
	if l.until > 0 && r.Time >= l.until {
		l.left = 0
		return io.EOF
	}
	if l.left > 0 {
		l.left--
	}
	return nil
}

// flushed follows every so many writes with a flush.
type flushed struct {
	src    Source
	every  int64
	writes int64
	due    bool
	last   Record
}

// Flushed returns a Source that has a flush of the volume behind every n-th write of src, at the write's time.
func Flushed(src Source, n int64) Source { return &flushed{src: src, every: n} }

func (f *flushed) Next(r *Record) error {
	if f.due {
		f.due = false
		*r = Record{Time: f.last.Time, Response: NoResponse, Volume: f.last.Volume, Op: block.Flush}
		return nil
	}
	if err := f.src.Next(r); err != nil {
		return err
	}
	if r.Op == block.Write {
		if f.writes++; f.writes == f.every {
			f.writes, f.due, f.last = 0, true, *r
		}
	}
	return nil
}
