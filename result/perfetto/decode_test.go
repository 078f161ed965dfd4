package perfetto

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"
)

// What a reader of the format makes of a file, written from Perfetto's protos without the writer's code, so that both would have
// to be wrong in the same way.
type (
	readTrack struct {
		uuid, parent uint64
		name, unit   string
		counter      bool
		rank         uint64
	}
	readEvent struct {
		ts, kind, track uint64
		name            string
		notes           map[string]any
		value           float64
		flows           []uint64
	}
	readTrace struct {
		tracks []readTrack
		events []readEvent
	}
	// readSlice is a slice after begins and ends were matched.
	readSlice struct {
		name       string
		begin, end uint64
		depth      int
		notes      map[string]any
		flows      []uint64
	}
)

// field is one field of a message: v for numbers, b for texts and messages.
type field struct {
	number, wire, v uint64
	b               []byte
}

// fields cuts a message into its fields.
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

// reader holds the state of a sequence.
type reader struct {
	trace        readTrace
	events, note map[uint64]string
	known        map[uint64]bool
}

func decode(b []byte) (readTrace, error) {
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
		if err != nil || to == nil || len(entry) != 2 || entry[0].number != 1 || entry[1].number != 2 || entry[0].v == 0 {
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
	var t readTrack
	var ordering, merge uint64
	for _, f := range list {
		switch f.number {
		case 1:
			t.uuid = f.v
		case 2:
			t.name = string(f.b)
		case 5:
			t.parent = f.v
		case 8:
			t.counter = true
			inner, err := fields(f.b)
			if err != nil {
				return err
			}
			for _, g := range inner {
				if g.number != 6 {
					return fmt.Errorf("unknown field %d of a counter", g.number)
				}
				t.unit = string(g.b)
			}
		case 11:
			ordering = f.v
		case 12:
			t.rank = f.v
		case 15:
			merge = f.v
		default:
			return fmt.Errorf("unknown field %d of a track", f.number)
		}
	}
	if t.uuid == 0 || r.known[t.uuid] || t.parent != 0 && !r.known[t.parent] || ordering != 3 || merge != 2 {
		return fmt.Errorf("bad track %+v", t)
	}
	r.known[t.uuid] = true
	r.trace.tracks = append(r.trace.tracks, t)
	return nil
}

func (r *reader) event(b []byte, ts uint64) error {
	list, err := fields(b)
	if err != nil {
		return err
	}
	e := readEvent{ts: ts, notes: map[string]any{}}
	for _, f := range list {
		switch f.number {
		case 4:
			if err := r.annotation(f.b, e.notes); err != nil {
				return err
			}
		case 9:
			e.kind = f.v
		case 10:
			name, ok := r.events[f.v]
			if !ok {
				return fmt.Errorf("no name %d", f.v)
			}
			e.name = name
		case 11:
			e.track = f.v
		case 23:
			e.name = string(f.b)
		case 44:
			e.value = math.Float64frombits(f.v)
		case 47:
			if f.wire != 1 {
				return fmt.Errorf("flow as wire type %d", f.wire)
			}
			e.flows = append(e.flows, f.v)
		default:
			return fmt.Errorf("unknown field %d of an event", f.number)
		}
	}
	if !r.known[e.track] {
		return fmt.Errorf("event on track %d, which is not described", e.track)
	}
	r.trace.events = append(r.trace.events, e)
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

// slicesOf does what Perfetto's importer does: events in order of time, those of one nanosecond in the order of the file; an end
// closes the slice that was opened last. It fails on ends without a begin and on slices that are never closed.
func slicesOf(trace readTrace) (map[uint64][]readSlice, error) {
	events := slices.Clone(trace.events)
	slices.SortStableFunc(events, func(a, b readEvent) int {
		switch {
		case a.ts < b.ts:
			return -1
		case a.ts > b.ts:
			return 1
		}
		return 0
	})
	out := map[uint64][]readSlice{}
	open := map[uint64][]int{}
	for _, e := range events {
		switch e.kind {
		case 1, 3:
			out[e.track] = append(out[e.track], readSlice{e.name, e.ts, e.ts, len(open[e.track]), e.notes, e.flows})
			if e.kind == 1 {
				open[e.track] = append(open[e.track], len(out[e.track])-1)
			}
		case 2:
			stack := open[e.track]
			if len(stack) == 0 {
				return nil, fmt.Errorf("an end on track %d at %d closes nothing", e.track, e.ts)
			}
			out[e.track][stack[len(stack)-1]].end = e.ts
			open[e.track] = stack[:len(stack)-1]
		}
	}
	for track, stack := range open {
		if len(stack) > 0 {
			return nil, fmt.Errorf("track %d has slices that do not end", track)
		}
	}
	return out, nil
}

// read decodes a trace or fails the test.
func read(t testing.TB, b []byte) (readTrace, map[uint64][]readSlice) {
	t.Helper()
	trace, err := decode(b)
	if err != nil {
		t.Fatal(err)
	}
	s, err := slicesOf(trace)
	if err != nil {
		t.Fatal(err)
	}
	return trace, s
}
