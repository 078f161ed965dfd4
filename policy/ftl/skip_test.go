package ftl_test

import (
	"slices"
	"testing"

	"farflash/numeric/rng"
	"farflash/policy/ftl"
)

// TestSkip verifies that skipped pages hold no data and need no program: a block that ends with them becomes a
// candidate when the rest is programmed.
func TestSkip(t *testing.T) {
	cfg := ftl.DefaultConfig()
	cfg.PagesPerBlock, cfg.BlocksPerPool = 8, 16
	d, err := newFlash(cfg, 8, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.begin(0, 0, 0)
	d.begin(0, 0, 1)
	if n := d.Skip(4, 1); n != 2 {
		t.Errorf("%d pages skipped, want 2", n)
	}
	if n := d.Skip(4, 1); n != 0 {
		t.Errorf("%d pages skipped again", n)
	}
	d.begin(0, 0, 2)
	if ppa := d.writes[2].ppa; ppa != 4 {
		t.Errorf("page %d follows, want 4", ppa)
	}
	d.Align(0, 4, 1)
	d.Align(0, 4, 1)
	for len(d.writes) > 0 {
		d.finish(0)
	}
	if got := d.Valid(0); got != 3 {
		t.Errorf("%d pages are valid, want 3", got)
	}
	if s := d.Stats(); s.Skipped != 5 || s.HostPrograms != 3 {
		t.Errorf("%d skipped, %d programmed; want 5 and 3", s.Skipped, s.HostPrograms)
	}
	if y := d.Yield(0); y != 5 {
		t.Errorf("the block yields %d pages, want 5", y)
	}
	d.begin(0, 0, 3)
	if ppa := d.writes[0].ppa; ppa != 8 {
		t.Errorf("page %d follows, want the next block's first", ppa)
	}
	if err := d.Check(); err != nil {
		t.Error(err)
	}
}

// TestHeld verifies that a victim whose survivors are held but not programmed is erased, and that the survivors' block
// becomes a candidate only when they are programmed.
func TestHeld(t *testing.T) {
	cfg := ftl.DefaultConfig()
	cfg.PagesPerBlock, cfg.BlocksPerPool = 4, 8
	d, err := newFlash(cfg, 24, nil)
	if err != nil {
		t.Fatal(err)
	}
	for lpa := range ftl.LPA(24) { // six of eight blocks
		d.begin(0, 0, lpa)
		d.finish(0)
	}
	d.trim(0) // of the first block
	for lpa := range ftl.LPA(4) {
		d.begin(0, 0, 4+lpa)
		d.finish(0)
	}
	erased := false
	for d.pull(0) {
		for i := len(d.moves) - 1; i >= 0; i-- {
			d.step(i) // relocated, or erased
		}
		erased = erased || d.Stats().Erases > 0
		for i := len(d.moves) - 1; i >= 0; i-- {
			d.hold(i)
		}
	}
	if !erased {
		t.Error("no block was erased before what survived of it was programmed")
	}
	if err := d.verify(); err != nil {
		t.Error(err)
	}
	d.programHeld()
	if err := d.verify(); err != nil {
		t.Error(err)
	}
}

// TestCloneOfLargeBlocks verifies that a copy of a drive with bitmaps larger than one chunk shares no change with the
// original: part of a block, blocks the other never used, blocks that were erased.
func TestCloneOfLargeBlocks(t *testing.T) {
	cfg := ftl.DefaultConfig()
	cfg.PagesPerBlock, cfg.BlocksPerPool = 17_000, 9 // 266 words: a full chunk and a partial one
	const pages = 3 * 17_000
	base := mustFlash(t, cfg, pages)
	addresses := rng.NewStream(1, "addresses")
	work := func(d *flash, n int) {
		for range n {
			if !d.put(0, 0, ftl.LPA(addresses.IntN(pages))) {
				t.Fatal("no page")
			}
		}
	}
	for lpa := range ftl.LPA(pages) {
		base.put(0, 0, lpa)
	}
	work(base, 5_000)
	copyOf := func(d *flash) *flash {
		c := &flash{to: slices.Clone(d.to), pages: slices.Clone(d.pages), latest: slices.Clone(d.latest), now: d.now,
			serial: d.serial}
		c.FTL = d.Clone(c, nil)
		return c
	}
	a := copyOf(base)
	work(a, 100)
	b := copyOf(a)
	work(a, 60_000)
	work(b, 10_000)
	for i, d := range []*flash{base, a, b} {
		if err := d.verify(); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		if n := d.Valid(0); n != pages {
			t.Errorf("%d: %d pages are valid, want %d", i, n, pages)
		}
	}
}
