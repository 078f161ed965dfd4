package flows

import (
	"fmt"
	"math"
	"slices"

	"farflash/numeric/units"
)

// Reactive is a source that yields only its first flows through Next. The others start when earlier flows end.
type Reactive interface {
	Source
	// Ended must be called for each flow of the source, as it was yielded, when its last byte has been delivered and, a
	// second time, when the sender has the last acknowledgement. It appends the flows that start because of it to out.
	// They start at that time or later.
	Ended(f *Flow, acked bool, at units.Duration, out []Flow) []Flow
	// Left is the number of flows that neither Next nor Ended has returned yet.
	Left() int
}

// Upon is the end of another flow that a flow waits for.
type Upon uint8

// The two ends of a flow.
const (
	Delivered    Upon = iota // its last byte has arrived
	Acknowledged             // its sender has the last acknowledgement
)

var uponNames = units.Names[Upon]{"delivered", "acknowledged"}

// String is the name in scenarios.
func (u Upon) String() string { return uponNames.Name(u) }

// MarshalText writes the name.
func (u Upon) MarshalText() ([]byte, error) { return uponNames.Marshal(u) }

// UnmarshalText parses a name.
func (u *Upon) UnmarshalText(text []byte) error { return uponNames.Unmarshal(text, u) }

// sequel is a list in which flows wait for others.
type sequel struct {
	sliceSource
	all    []Flow // by number
	delays []units.Duration
	waits  []int32 // number of flows that each still waits for
	upon   []Upon
	first  []int32 // index in next of each flow's sequels; one extra element at the end
	next   []int32
	left   int
}

// newSequel returns a list of flows, some of which wait for others; flows has them in list order.
func newSequel(list []Entry, flows []Flow) (Source, error) {
	number := map[string]int32{}
	for i, e := range list {
		if e.Name == "" {
			continue
		}
		if k, ok := number[e.Name]; ok {
			return nil, units.Wrong(fmt.Sprintf("[%d].name", i), "%q is already the name of [%d]; use another", e.Name,
				k)
		}
		number[e.Name] = int32(i)
	}
	s := &sequel{all: flows, delays: make([]units.Duration, len(list)), waits: make([]int32, len(list)),
		upon: make([]Upon, len(list)), first: make([]int32, len(list)+1)}
	before := make([][]int32, len(list))
	for i, e := range list {
		s.upon[i], s.delays[i], s.all[i].ID = e.Upon, e.Start, uint32(i)
		for k, name := range e.After {
			key := fmt.Sprintf("[%d].after[%d]", i, k)
			of, ok := number[name]
			switch {
			case !ok:
				return nil, units.Wrong(key, "no flow in the list is named %q", name)
			case int(of) == i:
				return nil, units.Wrong(key, "%q waits for itself", name)
			case slices.Contains(before[i], of):
				return nil, units.Wrong(key, "%q is named twice", name)
			}
			before[i] = append(before[i], of)
			s.first[of+1]++
		}
		if s.waits[i] = int32(len(before[i])); s.waits[i] == 0 {
			s.flows = append(s.flows, s.all[i])
		} else {
			s.left++
		}
	}
	for i := range list {
		s.first[i+1] += s.first[i]
	}
	s.next = make([]int32, s.first[len(list)])
	at := slices.Clone(s.first)
	for i := range list {
		for _, of := range before[i] {
			s.next[at[of]] = int32(i)
			at[of]++
		}
	}
	if i := s.circle(); i >= 0 {
		return nil, units.Wrong(fmt.Sprintf("[%d].after", i),
			"flows wait for each other in a cycle, so none of them starts")
	}
	Sort(s.flows)
	return s, nil
}

// circle returns a flow that never starts, or -1 if all do.
func (s *sequel) circle() int {
	waits := slices.Clone(s.waits)
	var ready []int32
	for i, w := range waits {
		if w == 0 {
			ready = append(ready, int32(i))
		}
	}
	for len(ready) > 0 {
		i := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		for _, j := range s.next[s.first[i]:s.first[i+1]] {
			if waits[j]--; waits[j] == 0 {
				ready = append(ready, j)
			}
		}
	}
	return slices.IndexFunc(waits, func(w int32) bool { return w > 0 })
}

// Left implements Reactive.
func (s *sequel) Left() int { return s.left }

// Ended implements Reactive.
func (s *sequel) Ended(f *Flow, acked bool, at units.Duration, out []Flow) []Flow {
	for _, j := range s.next[s.first[f.ID]:s.first[f.ID+1]] {
		if (s.upon[j] == Acknowledged) != acked {
			continue
		}
		if s.waits[j]--; s.waits[j] == 0 {
			s.left--
			g := s.all[j]
			g.Start = later(at, s.delays[j])
			out = append(out, g)
		}
	}
	return out
}

// later adds two times, saturating at the end of time.
func later(at, by units.Duration) units.Duration {
	if by > math.MaxInt64-at {
		return units.Forever
	}
	return at + by
}
