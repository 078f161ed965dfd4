// Package perfetto writes the timeline of a simulation as a trace that Perfetto's viewer and its SQL shell open: lanes
// of slices for the stages of requests and the work of dies and links, and counters for continuous quantities.
//
// Its main types are [Writer], [Track], [Slice] and [Lanes]. A slice is written as soon as it is complete, so memory
// grows with the number of tracks and of distinct names, not with the length of the run. Slices that may overlap go
// through Lanes, which opens only as many tracks as are in use at once.
//
// The format is Perfetto's own, a stream of protocol buffers ("TrackEvent"), defined in protos/perfetto/trace of
// https://github.com/google/perfetto and described at https://perfetto.dev/docs/reference/synthetic-track-event; the
// few messages needed are encoded by hand here. A reader sorts events by time and keeps the order of those in the same
// nanosecond, so slices of different tracks can come in any order, and those of one track in order of time.
//
// Perfetto counts nanoseconds. All times are rounded down, which keeps their order: slices that do not overlap in
// picoseconds do not overlap in nanoseconds. Each slice carries its exact times as annotations begin_ps and
// duration_ps.
//
// The package leaves out threads and processes, which a simulation does not have, scheduling and other data of real
// machines, and reading.
package perfetto

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"farflash/sim"
)

// Track is a row of the timeline. It is valid only with the writer that made it.
type Track uint64

// Top is the parent of tracks at the top level.
const Top Track = 0

// Slice is an interval of time on a track.
type Slice struct {
	Name        string
	Begin, End  sim.Time // End is exclusive
	Annotations []Annotation
	Parts       []Slice // nested in it, in order of time, without overlap; they can have parts again
	// The viewer joins slices of one flow, such as those of one request, by arrows in order of time. 0 is no flow.
	Flow uint64
}

// Annotation is a named value that the viewer shows with a slice.
type Annotation struct {
	name string
	kind uint64 // field number in the message: annotationInt, annotationDouble or annotationString
	n    int64
	f    float64
	s    string
}

// Int returns an annotation with an integer value.
func Int(name string, v int64) Annotation { return Annotation{name: name, kind: annotationInt, n: v} }

// Float returns an annotation with a floating-point value.
func Float(name string, v float64) Annotation {
	return Annotation{name: name, kind: annotationDouble, f: v}
}

// Text returns an annotation with a string value.
func Text(name, v string) Annotation { return Annotation{name: name, kind: annotationString, s: v} }

// Names of the annotations that every slice and instant has: its exact times in picoseconds.
const (
	BeginAnnotation    = "begin_ps"
	DurationAnnotation = "duration_ps"
)

// mostNames bounds the number of interned names, which are written once; later names are written in full at each use.
const mostNames = 1 << 14

// Writer writes a trace. After an error of the underlying writer every call returns that error. After an error about a
// slice, which is then not written, the writer remains usable.
type Writer struct {
	w       *bufio.Writer
	written int64
	tracks  []track
	events  names
	notes   names
	began   bool
	closed  bool

	// Messages nest with their lengths in front, so each level is assembled in a buffer of its own.
	packet, event, inner, interned, entry []byte
}

// track is the writer's state of a track.
type track struct {
	name     string
	counter  bool
	children int32
	last     sim.Time // end of its last slice
}

// names are the strings of one kind that are interned already, with their IDs in the file.
type names struct {
	field uint64 // in InternedData
	id    map[string]uint64
}

// NewWriter starts a trace on w. The caller must call Close, which does not close w.
func NewWriter(w io.Writer) *Writer {
	return &Writer{w: bufio.NewWriterSize(w, 1<<16), events: names{internedEvents, map[string]uint64{}},
		notes: names{internedAnnotations, map[string]uint64{}}}
}

// Written returns the number of bytes of the trace so far, including buffered ones. A caller that limits the size on
// disk can stop at any time: the trace is always complete.
func (w *Writer) Written() int64 { return w.written }

// Track adds a track for slices below parent, after its existing children, or a group for other tracks. It panics if
// the parent does not exist.
func (w *Writer) Track(parent Track, name string) Track { return w.describe(parent, name, false, "") }

// CounterTrack adds a track for a counter; unit, such as "B/s", may be empty. It panics if the parent does not exist.
func (w *Writer) CounterTrack(parent Track, name, unit string) Track {
	return w.describe(parent, name, true, unit)
}

func (w *Writer) describe(parent Track, name string, counter bool, unit string) Track {
	rank := int32(0)
	if parent != Top {
		p := w.at(parent)
		rank = p.children
		p.children++
	}
	w.tracks = append(w.tracks, track{name: name, counter: counter})
	id := Track(len(w.tracks))
	e := appendVarintField(w.event[:0], descriptorUUID, uint64(id))
	e = appendTextField(e, descriptorName, valid(name))
	if parent != Top {
		e = appendVarintField(e, descriptorParent, uint64(parent))
	}
	if counter {
		w.inner = w.inner[:0]
		if unit != "" {
			w.inner = appendTextField(w.inner, counterUnitName, valid(unit))
		}
		e = appendBytesField(e, descriptorCounter, w.inner)
	}
	e = appendVarintField(e, descriptorOrdering, orderingExplicit)
	if parent != Top {
		e = appendVarintField(e, descriptorRank, uint64(rank))
	}
	// By default viewers draw siblings of the same name as one row.
	w.event = appendVarintField(e, descriptorMerge, mergeNever)
	w.packet = appendBytesField(w.packet[:0], packetDescriptor, w.event)
	w.flush(false)
	return id
}

// at returns the state of a track. It panics if the track does not exist.
func (w *Writer) at(t Track) *track {
	if t == Top || uint64(t) > uint64(len(w.tracks)) {
		panic(fmt.Sprintf("perfetto: no track %d", t))
	}
	return &w.tracks[t-1]
}

// Slice writes a slice. Slices of one track must not overlap and must come in order of time; a slice may begin where
// its predecessor ended. Slice returns an error and writes no event if the slice violates that, if it ends before it
// begins or begins before time 0, or if a part lies outside it or overlaps another. It panics if the track does not
// exist or belongs to a counter.
func (w *Writer) Slice(t Track, s Slice) error {
	x := w.at(t)
	if x.counter {
		panic("perfetto: slice on a counter track")
	}
	if s.Begin < x.last {
		return fmt.Errorf("perfetto: slice %q on track %q starts at %v, before %v, where the previous slice ends",
			s.Name, x.name, s.Begin, x.last)
	}
	if err := s.valid(); err != nil {
		return fmt.Errorf("perfetto: track %q: %w", x.name, err)
	}
	x.last = s.End
	w.slice(t, &s)
	return w.failed()
}

// valid checks a slice and its parts.
func (s *Slice) valid() error {
	if s.Begin < 0 || s.End < s.Begin {
		return fmt.Errorf("slice %q extends from %v to %v", s.Name, s.Begin, s.End)
	}
	from := s.Begin
	for i := range s.Parts {
		p := &s.Parts[i]
		if p.Begin < from || p.End > s.End {
			return fmt.Errorf("part %q of slice %q extends from %v to %v, outside %v to %v", p.Name,
				s.Name, p.Begin, p.End, from, s.End)
		}
		if err := p.valid(); err != nil {
			return err
		}
		from = p.End
	}
	return nil
}

func (w *Writer) slice(t Track, s *Slice) {
	w.begin(t, typeBegin, s.Name)
	w.annotate(Int(BeginAnnotation, int64(s.Begin)))
	w.annotate(Int(DurationAnnotation, int64(s.End-s.Begin)))
	for i := range s.Annotations {
		w.annotate(s.Annotations[i])
	}
	if s.Flow != 0 {
		w.event = appendFixedField(w.event, eventFlow, s.Flow)
	}
	w.put(s.Begin)
	for i := range s.Parts {
		w.slice(t, &s.Parts[i])
	}
	w.interned = w.interned[:0]
	w.event = appendVarintField(w.event[:0], eventType, typeEnd)
	w.event = appendVarintField(w.event, eventTrack, uint64(t))
	w.put(s.End)
}

// Instant writes an event without duration, which takes its place in the order of the track's slices.
func (w *Writer) Instant(t Track, name string, at sim.Time, annotations ...Annotation) error {
	x := w.at(t)
	if x.counter {
		panic("perfetto: moment on a counter track")
	}
	if at < x.last {
		return fmt.Errorf("perfetto: moment %q on track %q at %v, before %v, where the previous slice ends", name,
			x.name, at, x.last)
	}
	x.last = at
	w.begin(t, typeInstant, name)
	w.annotate(Int(BeginAnnotation, int64(at)))
	for _, a := range annotations {
		w.annotate(a)
	}
	w.put(at)
	return w.failed()
}

// Counter sets a counter's value from a time onwards. It returns an error and writes no event if the value is not
// finite or the time is negative. It panics if the track does not exist or is not a counter's.
func (w *Writer) Counter(t Track, at sim.Time, v float64) error {
	x := w.at(t)
	if !x.counter {
		panic("perfetto: counter value on a slice track")
	}
	if math.IsNaN(v) || math.IsInf(v, 0) || at < 0 {
		return fmt.Errorf("perfetto: counter %q is %v at %v", x.name, v, at)
	}
	w.interned = w.interned[:0]
	w.event = appendVarintField(w.event[:0], eventType, typeCounter)
	w.event = appendVarintField(w.event, eventTrack, uint64(t))
	w.event = appendFixedField(w.event, eventDouble, math.Float64bits(v))
	w.put(at)
	return w.failed()
}

// Close writes the buffered bytes. It returns the first error of the underlying writer.
func (w *Writer) Close() error {
	if w.closed {
		return errors.New("perfetto: closed twice")
	}
	w.closed = true
	return w.w.Flush()
}

// failed returns the error of the underlying writer, which bufio keeps.
func (w *Writer) failed() error {
	if w.closed {
		return errors.New("perfetto: the trace is closed")
	}
	_, err := w.w.Write(nil)
	return err
}

// begin starts a named event in w.event, and the definition of its name, if it is new, in w.interned.
func (w *Writer) begin(t Track, kind uint64, name string) {
	w.interned = w.interned[:0]
	w.event = appendVarintField(w.event[:0], eventType, kind)
	w.event = appendVarintField(w.event, eventTrack, uint64(t))
	if id := w.intern(&w.events, name); id != 0 {
		w.event = appendVarintField(w.event, eventNameID, id)
		return
	}
	w.event = appendTextField(w.event, eventName, valid(name))
}

// annotate adds an annotation to w.event.
func (w *Writer) annotate(a Annotation) {
	e := w.inner[:0]
	if id := w.intern(&w.notes, a.name); id != 0 {
		e = appendVarintField(e, annotationNameID, id)
	} else {
		e = appendTextField(e, annotationName, valid(a.name))
	}
	switch a.kind {
	case annotationInt:
		e = appendVarintField(e, annotationInt, uint64(a.n)) // two's complement, the encoding of int64 fields
	case annotationDouble:
		e = appendFixedField(e, annotationDouble, math.Float64bits(a.f))
	case annotationString:
		e = appendTextField(e, annotationString, valid(a.s))
	}
	w.inner = e
	w.event = appendBytesField(w.event, eventAnnotation, e)
}

// intern returns the ID of a name, and adds the definition to w.interned if the name is new. It returns 0 if the table
// is full.
func (w *Writer) intern(n *names, name string) uint64 {
	if id, ok := n.id[name]; ok {
		return id
	}
	if len(n.id) >= mostNames {
		return 0
	}
	id := uint64(len(n.id) + 1)
	n.id[strings.Clone(name)] = id
	w.entry = appendVarintField(w.entry[:0], internedID, id)
	w.entry = appendTextField(w.entry, internedName, valid(name))
	w.interned = appendBytesField(w.interned, n.field, w.entry)
	return id
}

// put writes w.event as one packet.
func (w *Writer) put(at sim.Time) {
	w.packet = appendVarintField(w.packet[:0], packetTime, uint64(at/sim.Time(picosPerNano)))
	w.packet = appendBytesField(w.packet, packetEvent, w.event)
	if len(w.interned) > 0 {
		w.packet = appendBytesField(w.packet, packetInterned, w.interned)
	}
	w.flush(true)
}

const picosPerNano = 1000

// flush completes w.packet and writes it. A packet that refers to interned names sets needs, because it depends on the
// packets before it.
func (w *Writer) flush(needs bool) {
	flags := uint64(0)
	if needs {
		flags = flagNeedsState
	}
	w.packet = appendVarintField(w.packet, packetSequence, 1)
	if !w.began {
		w.began = true
		flags |= flagClearsState
		w.packet = appendVarintField(w.packet, packetFirst, 1)
	}
	if flags != 0 {
		w.packet = appendVarintField(w.packet, packetFlags, flags)
	}
	w.entry = appendTag(w.entry[:0], tracePacket, wireBytes)
	w.entry = appendVarint(w.entry, uint64(len(w.packet)))
	w.w.Write(w.entry)
	w.w.Write(w.packet)
	w.written += int64(len(w.entry) + len(w.packet))
}

// valid replaces invalid UTF-8, which strings of protocol buffers must not contain.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
