// Package timelinetest reads timelines back, for tests.
//
// Its main type is Picture, the slices of each track with their exact times; Read returns one and verifies that no
// slices of a track overlap. It leaves out the expected contents of a timeline.
package timelinetest

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"farflash/result/perfetto"
	"farflash/result/perfetto/perfettotest"
	"farflash/sim"
)

// Span is a slice with its exact times.
type Span struct {
	perfettotest.Slice
	From, Took sim.Time
	Parts      []Span
}

// Picture is a parsed timeline: the slices of each track by its path.
type Picture struct {
	Spans map[string][]Span
	Trace perfettotest.Trace
}

// Read reads a timeline, and verifies that no slices of a track overlap and that parts are within their slices, to the
// picosecond.
func Read(t testing.TB, b []byte) Picture {
	t.Helper()
	trace, found := perfettotest.Read(t, b)
	p := Picture{Spans: map[string][]Span{}, Trace: trace}
	for id, path := range trace.Paths() {
		var list []Span
		for _, x := range found[id] {
			s := Span{Slice: x}
			s.From = sim.Time(x.Notes[perfetto.BeginAnnotation].(int64))
			if d, ok := x.Notes[perfetto.DurationAnnotation]; ok {
				s.Took = sim.Time(d.(int64))
			}
			if x.Depth > 0 {
				last := &list[len(list)-1]
				last.Parts = append(last.Parts, s)
				continue
			}
			list = append(list, s)
		}
		at := sim.Time(0)
		for i, s := range list {
			if s.From < at {
				t.Fatalf("%s: slice %d (%s) begins at %v, before %v, where the one before it ends", path, i, s.Name,
					s.From, at)
			}
			at = s.From + s.Took
			if len(s.Parts) > 0 &&
				(s.Parts[0].From < s.From || s.Parts[len(s.Parts)-1].From+s.Parts[len(s.Parts)-1].Took > at) {
				t.Fatalf("%s: parts of slice %d lie outside of it", path, i)
			}
		}
		p.Spans[path] = list
	}
	return p
}

// Tiled verifies that a slice's parts are contiguous from its start to its end.
func (s *Span) Tiled(t testing.TB) {
	t.Helper()
	at := s.From
	for _, x := range s.Parts {
		if x.From != at {
			t.Fatalf("%s at %v: part %s begins at %v and not at %v", s.Name, s.From, x.Name, x.From, at)
		}
		at += x.Took
	}
	if at != s.From+s.Took {
		t.Fatalf("%s at %v: its parts end at %v and not at %v", s.Name, s.From, at, s.From+s.Took)
	}
}

// Below returns the slices of all tracks whose path has the given prefix and suffix, in order of time.
func (p *Picture) Below(from, to string) []Span {
	var out []Span
	for path, list := range p.Spans {
		if strings.HasPrefix(path, from) && strings.HasSuffix(path, to) {
			out = append(out, list...)
		}
	}
	slices.SortFunc(out, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	return out
}

// LanesBelow returns the slices of a group's tracks.
func (p *Picture) LanesBelow(group string) []Span {
	var out []Span
	for path, list := range p.Spans {
		if rest, ok := strings.CutPrefix(path, group+" / "); ok && !strings.Contains(rest, "/") {
			out = append(out, list...)
		}
	}
	slices.SortFunc(out, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	return out
}

// Sum returns the total time and bytes of slices.
func Sum(list []Span) (took sim.Time, bytes int64) {
	for _, s := range list {
		took += s.Took
		if n, ok := s.Notes["bytes"]; ok {
			bytes += n.(int64)
		}
	}
	return took, bytes
}
