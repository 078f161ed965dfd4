package ftl_test

import (
	"testing"

	"farflash/policy/ftl"
)

// TestFastByHand: blocks have 8 pages, fast ones 3, and there are at most two fast blocks, so the third block is a
// normal one. When the driver signals that there is time, the layer folds the fast blocks in the order they were
// opened, into a normal block of the survivors' stream, without the pages overwritten in the meantime.
func TestFastByHand(t *testing.T) {
	cfg := ftl.DefaultConfig()
	cfg.BlocksPerPool, cfg.PagesPerBlock = 16, 8
	cfg.Fast = ftl.Fast{Streams: 1, Pages: 3, Most: 2}
	d, err := newFlash(cfg, 20, nil)
	if err != nil {
		t.Fatal(err)
	}
	first := map[ftl.Block]int{}
	fast := 0
	for lpa := range ftl.LPA(8) {
		if !d.begin(0, 0, lpa) {
			t.Fatalf("no page for %d", lpa)
		}
		at := d.writes[len(d.writes)-1].ppa
		first[d.BlockOf(at)]++
		if d.IsFast(at) {
			fast++
		}
		d.finish(len(d.writes) - 1)
	}
	if len(first) != 3 || fast != 6 || d.FastBlocks(0) != 2 || d.Free(0) != 13 {
		t.Fatalf("%v pages of each block, %d in fast ones; %d blocks are fast, %d free", first, fast, d.FastBlocks(0),
			d.Free(0))
	}
	if a, ok := d.Next(0); ok {
		t.Fatalf("without time %+v is wanted", a)
	}
	d.begin(0, 0, 1) // again, in the normal block
	d.finish(len(d.writes) - 1)

	d.Fold(0, true)
	var moved []ftl.LPA
	for a, ok := d.Next(0); ok; a, ok = d.Next(0) {
		if a.Why != ftl.Folding {
			t.Fatalf("%+v is not for folding", a)
		}
		if a.Kind == ftl.Erase {
			d.wipe(a.Block)
			d.Erased(a.Block)
			continue
		}
		dst, ok := d.Relocate(a.Source, 1)
		if !ok || d.IsFast(dst) || d.StreamOf(d.BlockOf(dst)) != 1 {
			t.Fatalf("page %d is moved to %d of stream %d: %v", a.LPA, dst, d.StreamOf(d.BlockOf(dst)), ok)
		}
		moved = append(moved, a.LPA)
		d.pages[dst] = d.pages[a.Source]
		d.Moved(a.Source, dst, 1)
	}
	if s := d.Stats(); len(moved) != 5 || moved[0] != 0 || moved[4] != 5 || s.FoldPrograms != 5 || s.Folds != 2 ||
		s.Erases != 2 || s.GCPrograms != 0 || d.FastBlocks(0) != 0 {
		t.Errorf("%v were moved: %+v; %d blocks are fast", moved, s, d.FastBlocks(0))
	}
	d.UseFast(false)
	for lpa := range ftl.LPA(12) {
		d.begin(0, 0, lpa)
		d.finish(len(d.writes) - 1)
	}
	if d.FastBlocks(0) != 0 {
		t.Error("a block was opened fast although it must not be")
	}
	if err := d.verify(); err != nil {
		t.Error(err)
	}
}
