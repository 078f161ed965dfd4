// Package perfettotest decodes Perfetto traces, for tests of packages that write them.
//
// Its main types are [Trace], [Track], [Event] and [Slice]. It follows Perfetto's protos and behaves as Perfetto's
// importer does. It shares no code with the writer, so a mistake escapes only if both make it. It is strict: a field
// that the writer does not use is an error.
//
// It leaves out everything that the writer does not write.
package perfettotest

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"
)

// Track is a row of the timeline, or a group of rows.
type Track struct {
	ID, Parent uint64
	Name, Unit string
	Counter    bool
	Rank       uint64
}

// Event is one event, as recorded in the file.
type Event struct {
	// Time is in nanoseconds. Kind 1 begins a slice, 2 ends it, 3 is an instant, 4 a counter's value.
	Time, Kind, Track uint64
	Name              string
	Notes             map[string]any // annotations: int64, float64 or string
	Value             float64
	Flows             []uint64
}

// Trace is the contents of a file.
type Trace struct {
	Tracks []Track
	Events []Event
}

// Slice is a slice, or an instant, after begins and ends are matched.
type Slice struct {
	Name       string
	Begin, End uint64 // nanoseconds
	Depth      int    // 1 for a part of another slice
	Notes      map[string]any
	Flows      []uint64
}

// field is one field of a message: v for numbers, b for strings and messages.
type field struct {
	number, wire, v uint64
	b               []byte
}

// fields splits a message into its fields.
func fields(b []byte) ([]field, error) {
	var out []field
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, fmt.Errorf("bad tag")
		}
		b = b[n:]
		f := field{number: tag >> 3, wire: tag & 7}
		switch f.wire {
		case 0:
			if f.v, n = binary.Uvarint(b); n <= 0 {
				return nil, fmt.Errorf("field %d: bad number", f.number)
			}
			b = b[n:]
		case 1:
			if len(b) < 8 {
				return nil, fmt.Errorf("field %d: too short", f.number)
			}
			f.v, b = binary.LittleEndian.Uint64(b), b[8:]
		case 2:
			length, n := binary.Uvarint(b)
			if n <= 0 || length > uint64(len(b)-n) {
				return nil, fmt.Errorf("field %d: bad length", f.number)
			}
			f.b, b = b[n:n+int(length)], b[n+int(length):]
		default:
			return nil, fmt.Errorf("field %d: wire type %d", f.number, f.wire)
		}
		out = append(out, f)
	}
	return out, nil
}

// reader is the decoder's state of a packet sequence.
type reader struct {
	trace        Trace
	events, note map[uint64]string
	known        map[uint64]bool
}

// decode decodes a file.
func decode(b []byte) (Trace, error) {
	r := reader{events: map[uint64]string{}, note: map[uint64]string{}, known: map[uint64]bool{}}
	packets, err := fields(b)
	if err != nil {
		return r.trace, err
	}
	for i, p := range packets {
		if p.number != 1 || p.wire != 2 {
			return r.trace, fmt.Errorf("packet %d: field %d in the trace", i, p.number)
		}
		if err := r.packet(p.b, i == 0); err != nil {
			return r.trace, fmt.Errorf("packet %d: %w", i, err)
		}
	}
	return r.trace, nil
}

func (r *reader) packet(b []byte, first bool) error {
	list, err := fields(b)
	if err != nil {
		return err
	}
	var ts, flags uint64
	var timed, sequenced, isFirst bool
	var event, descriptor []byte
	for _, f := range list {
		switch f.number {
		case 8:
			ts, timed = f.v, true
		case 10:
			sequenced = f.v == 1
		case 11:
			event = f.b
		case 12:
			if err := r.intern(f.b); err != nil {
				return err
			}
		case 13:
			flags = f.v
		case 60:
			descriptor = f.b
		case 87:
			isFirst = f.v == 1
		default:
			return fmt.Errorf("unknown field %d", f.number)
		}
	}
	if !sequenced || isFirst != first || first != (flags&1 != 0) || (event == nil) == (descriptor == nil) {
		return fmt.Errorf("sequence, flags %d or content is wrong", flags)
	}
	if descriptor != nil {
		return r.descriptor(descriptor)
	}
	if !timed || flags&2 == 0 {
		return fmt.Errorf("event without a time or without need of state")
	}
	return r.event(event, ts)
}

func (r *reader) intern(b []byte) error {
	list, err := fields(b)
	if err != nil {
		return err
	}
	for _, f := range list {
		to := map[uint64]map[uint64]string{2: r.events, 3: r.note}[f.number]
		entry, err := fields(f.b)
		if err != nil || to == nil || len(entry) != 2 || entry[0].number != 1 || entry[1].number != 2 ||
			entry[0].v == 0 {
			return fmt.Errorf("bad interned entry %v", f)
		}
		if _, twice := to[entry[0].v]; twice {
			return fmt.Errorf("number %d is given twice", entry[0].v)
		}
		to[entry[0].v] = string(entry[1].b)
	}
	return nil
}

func (r *reader) descriptor(b []byte) error {
	list, err := fields(b)
	if err != nil {
		return err
	}
	var t Track
	var ordering, merge uint64
	for _, f := range list {
		switch f.number {
		case 1:
			t.ID = f.v
		case 2:
			t.Name = string(f.b)
		case 5:
			t.Parent = f.v
		case 8:
			t.Counter = true
			inner, err := fields(f.b)
			if err != nil {
				return err
			}
			for _, g := range inner {
				if g.number != 6 {
					return fmt.Errorf("unknown field %d of a counter", g.number)
				}
				t.Unit = string(g.b)
			}
		case 11:
			ordering = f.v
		case 12:
			t.Rank = f.v
		case 15:
			merge = f.v
		default:
			return fmt.Errorf("unknown field %d of a track", f.number)
		}
	}
	if t.ID == 0 || r.known[t.ID] || t.Parent != 0 && !r.known[t.Parent] || ordering != 3 || merge != 2 {
		return fmt.Errorf("bad track %+v", t)
	}
	r.known[t.ID] = true
	r.trace.Tracks = append(r.trace.Tracks, t)
	return nil
}

func (r *reader) event(b []byte, ts uint64) error {
	list, err := fields(b)
	if err != nil {
		return err
	}
	e := Event{Time: ts, Notes: map[string]any{}}
	for _, f := range list {
		switch f.number {
		case 4:
			if err := r.annotation(f.b, e.Notes); err != nil {
				return err
			}
		case 9:
			e.Kind = f.v
		case 10:
			name, ok := r.events[f.v]
			if !ok {
				return fmt.Errorf("no name %d", f.v)
			}
			e.Name = name
		case 11:
			e.Track = f.v
		case 23:
			e.Name = string(f.b)
		case 44:
			e.Value = math.Float64frombits(f.v)
		case 47:
			if f.wire != 1 {
				return fmt.Errorf("flow as wire type %d", f.wire)
			}
			e.Flows = append(e.Flows, f.v)
		default:
			return fmt.Errorf("unknown field %d of an event", f.number)
		}
	}
	if !r.known[e.Track] {
		return fmt.Errorf("event on track %d, which is not described", e.Track)
	}
	r.trace.Events = append(r.trace.Events, e)
	return nil
}

func (r *reader) annotation(b []byte, to map[string]any) error {
	list, err := fields(b)
	if err != nil {
		return err
	}
	if len(list) != 2 {
		return fmt.Errorf("an annotation has %d fields", len(list))
	}
	name := string(list[0].b)
	if list[0].number == 1 {
		var ok bool
		if name, ok = r.note[list[0].v]; !ok {
			return fmt.Errorf("no annotation %d", list[0].v)
		}
	} else if list[0].number != 10 {
		return fmt.Errorf("annotation's name in field %d", list[0].number)
	}
	if _, twice := to[name]; twice {
		return fmt.Errorf("annotation %s twice", name)
	}
	switch v := list[1]; v.number {
	case 4:
		to[name] = int64(v.v)
	case 5:
		to[name] = math.Float64frombits(v.v)
	case 6:
		to[name] = string(v.b)
	default:
		return fmt.Errorf("annotation's value in field %d", v.number)
	}
	return nil
}

// slices matches begins and ends, by track, as Perfetto's importer does: events are in order of time, those in one
// nanosecond in file order, and an end closes the slice that was opened last. It fails on an end without a begin and on
// a slice that is never closed.
func (trace *Trace) slices() (map[uint64][]Slice, error) {
	events := slices.Clone(trace.Events)
	slices.SortStableFunc(events, func(a, b Event) int {
		switch {
		case a.Time < b.Time:
			return -1
		case a.Time > b.Time:
			return 1
		}
		return 0
	})
	out := map[uint64][]Slice{}
	open := map[uint64][]int{}
	for _, e := range events {
		switch e.Kind {
		case 1, 3:
			out[e.Track] = append(out[e.Track], Slice{e.Name, e.Time, e.Time, len(open[e.Track]), e.Notes, e.Flows})
			if e.Kind == 1 {
				open[e.Track] = append(open[e.Track], len(out[e.Track])-1)
			}
		case 2:
			stack := open[e.Track]
			if len(stack) == 0 {
				return nil, fmt.Errorf("an end on track %d at %d closes nothing", e.Track, e.Time)
			}
			out[e.Track][stack[len(stack)-1]].End = e.Time
			open[e.Track] = stack[:len(stack)-1]
		}
	}
	for track, stack := range open {
		if len(stack) > 0 {
			return nil, fmt.Errorf("track %d has slices that do not end", track)
		}
	}
	return out, nil
}

// Read decodes a trace with its slices, or fails the test.
func Read(t testing.TB, b []byte) (Trace, map[uint64][]Slice) {
	t.Helper()
	trace, err := decode(b)
	if err != nil {
		t.Fatal(err)
	}
	s, err := trace.slices()
	if err != nil {
		t.Fatal(err)
	}
	return trace, s
}

// Paths returns each track's name preceded by those of its groups, such as "target 0 / NIC".
func (trace *Trace) Paths() map[uint64]string {
	paths := map[uint64]string{}
	for _, x := range trace.Tracks {
		paths[x.ID] = x.Name
		if x.Parent != 0 {
			paths[x.ID] = paths[x.Parent] + " / " + x.Name
		}
	}
	return paths
}
