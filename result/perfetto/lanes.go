package perfetto

import (
	"fmt"
	"sort"
	"strconv"

	"farflash/sim"
)

// Lanes is a group of tracks over which slices that may overlap are spread, such as the requests of an initiator.
// Slices come in order of their ends, as a simulator learns of them.
//
// Each slice goes to the lane that has been free for the shortest time, and a new lane is opened if none is. That
// rule takes no more lanes than slices overlap at most: it is the greedy schedule of intervals on equal machines by
// their ends, which leaves out none that any schedule could take (Carlisle and Lloyd, "On the k-coloring of
// intervals", Discrete Applied Mathematics 59, 1995).
type Lanes struct {
	w     *Writer
	group Track
	lanes []lane // by the end of their last slices, which is the order in which they were used last
	last  sim.Time
}

type lane struct {
	track Track
	end   sim.Time
}

// Lanes adds a group of lanes below parent. Lanes are tracks "1", "2" and so on in it, and are there from their first
// slice on.
func (w *Writer) Lanes(parent Track, name string) *Lanes {
	return &Lanes{w: w, group: w.Track(parent, name)}
}

// Group is the track that the lanes are below. Other tracks may be added to it.
func (l *Lanes) Group() Track { return l.group }

// Len is how many lanes there are.
func (l *Lanes) Len() int { return len(l.lanes) }

// Slice writes a slice on a lane that is free, and returns that lane. It returns an error, and writes nothing, if the
// slice ends before one that was given earlier, or for what Writer.Slice refuses.
func (l *Lanes) Slice(s Slice) (Track, error) {
	if s.End < l.last {
		return Top, fmt.Errorf("perfetto: slice %q of %q ends at %v, before %v, where the slice given before it ends",
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
