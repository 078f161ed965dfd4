// Package runs gathers what a trace writes as runs: pages that are written one behind the other. Drawn again and
// again in any order they are a load without an end that has the trace's own mix of sequential and random writes, its
// sizes, and how often which page is written; what write amplification follows from.
//
// It leaves out reads, times, and in which order runs come: a page that is written in bursts is written as often, but
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

// Bounds of what is gathered.
const (
	// Page is the least page.
	Page = 4 * units.KiB
	// MostRuns is how many runs a trace may have.
	MostRuns = 1 << 24
	// MostPages is how many pages what is written comes to at most: pages are 4 KiB, or larger by a power of two.
	MostPages = 1 << 22
	// followed is how many runs are looked at, the latest first, for one that a write goes on with.
	followed = 32
)

// run is pages of 4 KiB, the volume in the high bits.
type run struct{ first, end int64 }

// An int64 of bytes has fewer pages of 4 KiB than 2^volumeShift.
const (
	volumeShift = 51
	mostVolumes = 1 << 12
)

// Gatherer takes what a trace writes, request by request.
type Gatherer struct {
	runs    []run
	latest  [followed]int32  // indices, the latest first, and -1
	volumes map[uint32]int64 // in the order in which they came
}

// New returns a gatherer of nothing.
func New() *Gatherer {
	g := &Gatherer{volumes: map[uint32]int64{}}
	for i := range g.latest {
		g.latest[i] = -1
	}
	return g
}

// Add takes a request; all but writes are passed over. A page of which a part is written is written.
func (g *Gatherer) Add(r *workload.Record) error {
	if r.Op != block.Write || r.Size <= 0 {
		return nil
	}
	volume, known := g.volumes[r.Volume]
	if !known {
		if volume = int64(len(g.volumes)); volume == mostVolumes {
			return fmt.Errorf("writes to more than %d volumes; take a part of the trace", mostVolumes)
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
	if len(g.runs) == MostRuns {
		return fmt.Errorf("more than %d runs of writes; take a part of the trace", MostRuns)
	}
	g.runs = append(g.runs, x)
	copy(g.latest[1:], g.latest[:followed-1])
	g.latest[0] = int32(len(g.runs) - 1)
	return nil
}

// Runs are what a trace writes.
type Runs struct {
	Runs  [][2]int32  // the first page of each, and how many; pages are counted from 0, and each is in some run
	Pages int32       // in all
	Page  units.Bytes // of one
	Mean  float64     // pages of a run
	Turns float64     // how often a page is written on average
}

// Gathered returns what was written so far. The pages are numbered by volume and address, without what nobody wrote.
func (g *Gatherer) Gathered() (*Runs, error) {
	if len(g.runs) == 0 {
		return nil, errors.New("the trace writes nothing")
	}
	out := &Runs{Page: Page}
	for shift := 0; ; shift++ {
		runs := make([]run, len(g.runs))
		for i, x := range g.runs {
			runs[i] = run{x.first >> shift, (x.end-1)>>shift + 1}
		}
		covered, pages := union(runs)
		if pages > MostPages {
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

// cover is pages all of which are written, with the number of the first.
type cover struct {
	run
	number int64
}

// union returns what runs cover, in order, and how many pages that is.
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
