package runs

import (
	"fmt"
	"io"

	"farflash/workload"
	"farflash/workload/trace"
)

// Open gathers what the trace at a path writes.
func Open(path string) (*Runs, error) {
	r, err := trace.Open(path, trace.Options{Seed: 1})
	if err != nil {
		return nil, err
	}
	out, err := Read(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return out, nil
}

// Read gathers what a trace writes, and closes it.
func Read(r *trace.Reader) (*Runs, error) {
	defer r.Close()
	g := New()
	for {
		var x workload.Record
		switch err := r.Next(&x); err {
		case nil:
		case io.EOF:
			return g.Gathered()
		default:
			return nil, err
		}
		if err := g.Add(&x); err != nil {
			return nil, err
		}
	}
}

// Fit are the runs on so many pages: pages become larger by a power of two until they are no more, or each run is as
// many behind each other, so that what is written covers as many.
func (r *Runs) Fit(pages int32) [][2]int32 {
	shift := 0
	for r.Pages>>shift > pages {
		shift++
	}
	copies := int32(1)
	if shift == 0 {
		copies = max(1, pages/r.Pages)
	}
	out := make([][2]int32, 0, len(r.Runs)*int(copies))
	for _, x := range r.Runs {
		first, n := x[0]>>shift, (x[0]+x[1]-1)>>shift-x[0]>>shift+1
		for c := range copies {
			out = append(out, [2]int32{first*copies + c*n, n})
		}
	}
	return out
}

// Layout lays the runs out on a drive: of how many blocks, of at most so many pages. A short trace gets smaller
// blocks, so that there are enough of them; with little spare space 32 pages a block are amplified an eighth less
// than 128.
func (r *Runs) Layout(most int) (blocks, pages int, err error) {
	const wanted, leastPages, leastBlocks = 64, 32, 8
	pages = min(most, max(leastPages, int(r.Pages)/wanted))
	blocks = (int(r.Pages) + pages - 1) / pages
	if blocks < leastBlocks {
		return 0, 0, fmt.Errorf(
			"the trace writes %d pages of %v, which fill no drive of %d blocks of %d pages; take a longer trace",
			r.Pages, r.Page, leastBlocks, pages)
	}
	return blocks, pages, nil
}
