// Package workload defines what all sources of block requests share: a [Record], the [Source] that yields records in
// order of time, and the combinators [Merge], [Limit], [Flushed] and [Slice].
//
// The sources themselves are in its subpackages: trace reads and writes recorded workloads, synth generates synthetic
// ones, mqsimgen reproduces those of the simulator MQSim, and fiojob reads fio's job files; characterise measures any
// of them, and fit turns the measurements into synth's parameters.
//
// Not represented are the data that are read or written and, beyond its volume, the origin of a request.
package workload

import (
	"errors"
	"fmt"
	"io"

	"farflash/block"
	"farflash/numeric/units"
)

// NoResponse is the Response of a record whose source has no response time.
const NoResponse units.Duration = -1

// Record is one request.
type Record struct {
	Time     units.Duration // arrival, relative to the source's start; for a recorded trace, its first record
	Response units.Duration // response time when recorded, or NoResponse
	Offset   int64          // bytes from the start of the volume
	Size     int64          // bytes; 0 only for Flush and zone management
	Volume   uint32         // volume, disk, device or file; the source may have its name
	Op       block.Op
	Append   bool // a Zone Append: a Write to the zone that starts at Offset, after its data
}

// End returns the offset of the first byte after the request.
func (r *Record) End() int64 { return r.Offset + r.Size }

// Source yields records in order of time.
//
// Next fills in the caller's record, all fields of it, and returns nil, or returns an error and leaves the record
// undefined; io.EOF means that there are no more. After an error, every further call returns the same error.
type Source interface {
	Next(*Record) error
}

// failed is a source of nothing but an error: that of the arguments it was to be made with.
type failed struct{ err error }

func (f failed) Next(*Record) error { return f.err }

// errNil is the error of a source made of a nil one.
var errNil = errors.New("workload: the source is nil")

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

// Collect reads src to its end and holds it in memory, for tests and short workloads.
func Collect(src Source) ([]Record, error) {
	if src == nil {
		return nil, errNil
	}
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

// limited ends after a number of records or at a time.
type limited struct {
	src   Source
	left  int64
	until units.Duration
}

// Limit returns a Source that ends after n records of src, or before the first one at or after until; 0 is no limit.
func Limit(src Source, n int64, until units.Duration) Source {
	if src == nil {
		return failed{errNil}
	}
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

// flushed inserts a flush after every n-th write.
type flushed struct {
	src    Source
	every  int64
	writes int64
	due    bool
	last   Record
}

// Flushed inserts a flush of the volume after every n-th write of src, at its time.
func Flushed(src Source, n int64) Source {
	switch {
	case src == nil:
		return failed{errNil}
	case n < 1:
		return failed{fmt.Errorf("workload: a flush after every %d writes is not possible; use 1 or more", n)}
	}
	return &flushed{src: src, every: n}
}

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
