// Package runs gathers the writes of a trace as runs: pages that are written consecutively. Drawing runs at random,
// repeatedly, gives an endless load with the trace's own mix of sequential and random writes, its sizes, and its write
// frequency per page, which determine write amplification.
//
// The package leaves out reads, times, and the order of runs: a page that is written in bursts is written as often, but
// evenly.
package runs

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"farflash/block"
	"farflash/numeric/units"
	"farflash/workload"
)

// Limits.
const (
	// Page is the minimum page size.
	Page = 4 * units.KiB
	// mostRuns is the maximum number of runs of a trace.
	mostRuns = 1 << 24
	// mostPages is the maximum number of written pages; the page size is 4 KiB times the power of two that achieves
	// this.
	mostPages = 1 << 22
	// followed is the number of recent runs that a write may continue.
	followed = 32
)

// run is a range of 4 KiB pages, with the volume in the high bits.
type run struct{ first, end int64 }

// An int64 of bytes has fewer than 2^volumeShift pages of 4 KiB.
const (
	volumeShift = 51
	mostVolumes = 1 << 12
)

// Gatherer collects the writes of a trace, request by request.
type Gatherer struct {
	runs    []run
	latest  [followed]int32  // indices, most recent first; -1 is empty
	volumes map[uint32]int64 // numbered by first appearance
}

// New returns an empty Gatherer.
func New() *Gatherer {
	g := &Gatherer{volumes: map[uint32]int64{}}
	for i := range g.latest {
		g.latest[i] = -1
	}
	return g
}

// Add takes a request; only writes count. A partly written page counts as written.
func (g *Gatherer) Add(r *workload.Record) error {
	if r.Op != block.Write || r.Size <= 0 {
		return nil
	}
	volume, known := g.volumes[r.Volume]
	if !known {
		if volume = int64(len(g.volumes)); volume == mostVolumes {
			return fmt.Errorf("writes to more than %d volumes; use a part of the trace", mostVolumes)
		}
		g.volumes[r.Volume] = volume
	}
	base := volume << volumeShift
	x := run{base + r.Offset/int64(Page), base + (r.Offset+r.Size-1)/int64(Page) + 1}
	for k, i := range g.latest {
		if i < 0 {
			break
		}
		if g.runs[i].end == x.first {
			g.runs[i].end = x.end
			copy(g.latest[1:k+1], g.latest[:k])
			g.latest[0] = i
			return nil
		}
	}
	if len(g.runs) == mostRuns {
		return fmt.Errorf("more than %d runs of writes; use a part of the trace", mostRuns)
	}
	g.runs = append(g.runs, x)
	copy(g.latest[1:], g.latest[:followed-1])
	g.latest[0] = int32(len(g.runs) - 1)
	return nil
}

// Runs are the writes of a trace.
type Runs struct {
	Runs  [][2]int32  // first page and length of each; pages are numbered from 0, and each is in some run
	Pages int32       // total
	Page  units.Bytes // page size
	Mean  float64     // pages per run
	Turns float64     // mean number of writes per page
}

// Gathered returns the writes so far. Pages are numbered by volume and address, skipping those never written.
func (g *Gatherer) Gathered() (*Runs, error) {
	if len(g.runs) == 0 {
		return nil, errors.New("the trace has no writes")
	}
	out := &Runs{Page: Page}
	for shift := 0; ; shift++ {
		runs := make([]run, len(g.runs))
		for i, x := range g.runs {
			runs[i] = run{x.first >> shift, (x.end-1)>>shift + 1}
		}
		covered, pages := union(runs)
		if pages > mostPages {
			out.Page *= 2
			continue
		}
		out.Pages = int32(pages)
		written := int64(0)
		for _, x := range runs {
			at, _ := slices.BinarySearchFunc(covered, x.first,
				func(c cover, first int64) int { return cmp.Compare(c.end-1, first) })
			out.Runs = append(out.Runs,
				[2]int32{int32(covered[at].number + x.first - covered[at].first), int32(x.end - x.first)})
			written += x.end - x.first
		}
		out.Mean = float64(written) / float64(len(runs))
		out.Turns = float64(written) / float64(pages)
		return out, nil
	}
}

// cover is a range of pages that are all written, with the number of the first.
type cover struct {
	run
	number int64
}

// union returns the ranges that the runs cover, in order, and their total number of pages.
func union(runs []run) (covered []cover, pages int64) {
	sorted := slices.Clone(runs)
	slices.SortFunc(sorted, func(a, b run) int { return cmp.Compare(a.first, b.first) })
	for _, x := range sorted {
		if n := len(covered); n > 0 && x.first <= covered[n-1].end {
			c := &covered[n-1]
			pages += max(0, x.end-c.end)
			c.end = max(c.end, x.end)
			continue
		}
		covered = append(covered, cover{x, pages})
		pages += x.end - x.first
	}
	return covered, pages
}
