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

// Layout lays the runs out on a drive: of how many blocks, of at most so many pages. A short trace gets smaller blocks, so that there are enough of them; with
// little spare space 32 pages a block are amplified an eighth less than 128.
func (r *Runs) Layout(most int) (blocks, pages int, err error) {
	const wanted, leastPages, leastBlocks = 64, 32, 8
	pages = min(most, max(leastPages, int(r.Pages)/wanted))
	blocks = (int(r.Pages) + pages - 1) / pages
	if blocks < leastBlocks {
		return 0, 0, fmt.Errorf("the trace writes %d pages of %v, which fill no drive of %d blocks of %d pages; take a longer trace", r.Pages, r.Page, leastBlocks, pages)
	}
	return blocks, pages, nil
}
