package runs

import (
	"fmt"
	"io"

	"farflash/workload"
	"farflash/workload/trace"
)

// Open gathers the writes of the trace at a path.
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

// Read gathers the writes of a trace, and closes it.
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

// Fit maps the runs to at most this many pages: either pages grow by powers of two until they fit, or each run is
// replicated back to back to cover as many pages.
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

// Layout returns the number of blocks of a drive for the runs, and of pages per block, at most most. A short trace gets
// smaller blocks, so that there are enough of them; with little spare space, blocks of 32 pages have an eighth less
// write amplification than blocks of 128.
func (r *Runs) Layout(most int) (blocks, pages int, err error) {
	const wanted, leastPages, leastBlocks = 64, 32, 8
	pages = min(most, max(leastPages, int(r.Pages)/wanted))
	blocks = (int(r.Pages) + pages - 1) / pages
	if blocks < leastBlocks {
		return 0, 0, fmt.Errorf(
			"the trace writes %d pages of %v, too few to fill a drive of %d blocks of %d pages; use a longer trace",
			r.Pages, r.Page, leastBlocks, pages)
	}
	return blocks, pages, nil
}
