package perfetto

import (
	"fmt"
	"sort"
	"strconv"

	"farflash/sim"
)

// Lanes is a group of tracks over which slices that may overlap are spread, such as the requests of an initiator.
// Slices must come in order of their ends, as a simulator learns of them.
//
// Each slice goes to the free lane that was used last, and a new lane is opened if none is free. This rule opens no
// more lanes than the largest number of slices that overlap: it is the greedy schedule of intervals on identical
// machines in order of their ends, which drops no interval that any schedule could place (Carlisle and Lloyd, "On the
// k-coloring of intervals", Discrete Applied Mathematics 59, 1995).
type Lanes struct {
	w     *Writer
	group Track
	lanes []lane // by end of their last slices, which is the order of last use
	last  sim.Time
}

type lane struct {
	track Track
	end   sim.Time
}

// Lanes adds a group of lanes below parent. The lanes are tracks "1", "2" and so on in the group; each is created with
// its first slice.
func (w *Writer) Lanes(parent Track, name string) *Lanes {
	return &Lanes{w: w, group: w.Track(parent, name)}
}

// Len returns the number of lanes.
func (l *Lanes) Len() int { return len(l.lanes) }

// Slice writes a slice on a free lane and returns that lane. It returns an error and writes no event if the slice ends
// before an earlier one, or for the errors of Writer.Slice.
func (l *Lanes) Slice(s Slice) (Track, error) {
	if s.End < l.last {
		return Top, fmt.Errorf("perfetto: slice %q of %q ends at %v, before %v, where the previous slice ends",
			s.Name, l.w.at(l.group).name, s.End, l.last)
	}
	if err := s.valid(); err != nil {
		return Top, fmt.Errorf("perfetto: lanes of %q: %w", l.w.at(l.group).name, err)
	}
	i := sort.Search(len(l.lanes), func(i int) bool { return l.lanes[i].end > s.Begin }) - 1
	var t Track
	if i < 0 {
		t = l.w.Track(l.group, strconv.Itoa(len(l.lanes)+1))
		l.lanes = append(l.lanes, lane{})
	} else {
		t = l.lanes[i].track
		copy(l.lanes[i:], l.lanes[i+1:])
	}
	l.lanes[len(l.lanes)-1] = lane{t, s.End}
	l.last = s.End
	return t, l.w.Slice(t, s)
}
