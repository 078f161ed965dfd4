package waf

import (
	"fmt"
	"math"
	"slices"

	"farflash/numeric/rng"
)

// Writer writes to its own part of the drive: at random places and sequentially round it, or as Runs specify. Parts are
// laid out in the order of the writers.
type Writer struct {
	Space  float64 // share of the logical space; the writers' shares add up to 1
	Writes float64 // share of the page writes; the shares add up to 1
	// Sequential is the share of its page writes that overwrite its part in order, again and again.
	Sequential float64
	// Runs, if not empty, replaces these writes: one run is drawn, its pages are written in order, then the next is
	// drawn. Each run is its first page, relative to the part, and its number of pages. Runs that extend beyond the
	// part's end wrap to its first page.
	Runs [][2]int32
}

// checkWriters validates a list of writers.
func checkWriters(list []Writer) error {
	space, writes := 0.0, 0.0
	for i, w := range list {
		if !(w.Space >= 0) || !(w.Writes >= 0) || !(w.Sequential >= 0 && w.Sequential <= 1) {
			return fmt.Errorf("waf: writer %d has %v of the space, %v of the writes and %v of them sequential; shares must be 0 to 1", i, w.Space, w.Writes, w.Sequential)
		}
		if slices.ContainsFunc(w.Runs, func(r [2]int32) bool { return r[0] < 0 || r[1] < 1 }) {
			return fmt.Errorf("waf: writer %d has an invalid run; its first page must be 0 or more, its length at least 1", i)
		}
		space, writes = space+w.Space, writes+w.Writes
	}
	if math.Abs(space-1) > 1e-9 || math.Abs(writes-1) > 1e-9 {
		return fmt.Errorf("waf: the writers have %v of the space and %v of the writes; both must add up to 1", space, writes)
	}
	return nil
}

// part is a writer's range of pages and its position in it.
type part struct {
	first, pages int32
	at           int32 // next page of the sequential writes
	sequential   float64
	runs         [][2]int32
}

// writers draws the pages that writers write.
type writers struct {
	parts []part
	upTo  []float64 // cumulative probability that each is next
	now   *part     // the part whose run continues
	at    int32     // its next page
	left  int32
}

// writers divides the given number of pages among the writers, with at least one for each that writes.
func (e Experiment) writers(pages int32) *writers {
	w := &writers{}
	space, sum := 0.0, 0.0
	for i := range e.Writers {
		x := &e.Writers[i]
		first := int32(math.Round(float64(space * float64(pages))))
		space += x.Space
		p := part{first: min(first, pages-1), sequential: x.Sequential, runs: x.Runs}
		p.pages = max(1, min(pages, int32(math.Round(float64(space*float64(pages)))))-p.first)
		w.parts = append(w.parts, p)
		each := 1.0 // pages written at once
		if x.Runs != nil {
			n := 0.0
			for _, r := range x.Runs {
				n += float64(r[1])
			}
			each = n / float64(len(x.Runs))
		}
		sum += x.Writes / each
		w.upTo = append(w.upTo, sum)
	}
	for i := range w.upTo {
		w.upTo[i] /= sum
	}
	return w
}

// next returns the next page to write.
func (w *writers) next(r *rng.Stream) int32 {
	if w.left > 0 {
		w.left--
		p := w.now.first + w.at
		if w.at++; w.at == w.now.pages {
			w.at = 0
		}
		return p
	}
	i, _ := slices.BinarySearch(w.upTo, r.Float64())
	p := &w.parts[min(i, len(w.parts)-1)]
	switch {
	case p.runs != nil:
		x := p.runs[r.IntN(int64(len(p.runs)))]
		w.now, w.at, w.left = p, x[0]%p.pages, x[1]
		return w.next(r)
	case p.sequential > 0 && r.Float64() < p.sequential:
		if p.at++; p.at >= p.pages {
			p.at = 0
		}
		return p.first + p.at
	}
	return p.first + int32(r.IntN(int64(p.pages)))
}
