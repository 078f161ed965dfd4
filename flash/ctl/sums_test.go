package ctl_test

import (
	"errors"
	"testing"

	"farflash/flash/ctl"
	"farflash/flash/ctl/media"
	"farflash/flash/device"
	"farflash/numeric/rng"
)

// inOrder returns a closed pool whose pages were written in order, and their number.
func inOrder(t *testing.T, grains int64) (ctl.Config, *device.Mem, media.Shape, uint64) {
	cfg, layout := small()
	layout.Segment, layout.LogPages = 64, 64
	dev := device.NewMem(grains * device.Grain)
	shape := format(t, layout, dev)
	p := open(t, cfg, dev)
	b := make([]byte, ctl.Page)
	pages := uint64(shape.Capacity * 9 / 10)
	for page := range pages {
		stamp(b, page, page+1)
		if err := p.WriteAt(b, page*ctl.Page, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	return cfg, dev.Reopen(), shape, pages
}

// TestSums reads, moves and overwrites pages whose checksums are in no memory, through checkpoints, power cuts and
// checks. Every page has its newest content.
func TestSums(t *testing.T) {
	cfg, dev, _, pages := inOrder(t, 3000)
	p := open(t, cfg, dev)
	b := make([]byte, ctl.Page)
	newest := make([]uint64, pages)
	for i := range newest {
		newest[i] = uint64(i) + 1
	}
	all := func() {
		t.Helper()
		for page, want := range newest {
			if err := p.ReadAt(b, uint64(page)*ctl.Page); err != nil {
				t.Fatal(err)
			}
			if is, err := serialOf(b, uint64(page)); err != nil || is != want {
				t.Fatalf("page %d is %d, %v; it was %d", page, is, err, want)
			}
		}
	}
	all()
	if s := p.Stats(); s.Sums == 0 || s.Misses != int64(pages) {
		t.Errorf("%d pages of checksums were read for %d pages", s.Sums, s.Misses)
	}
	draw := rng.NewStream(1, "sums")
	for round := range uint64(8) {
		before := p.Stats()
		for i := range uint64(3000) {
			page := uint64(draw.IntN(int64(pages)))
			newest[page] = 1e6*(round+1) + i
			stamp(b, page, newest[page])
			if err := p.WriteAt(b, page*ctl.Page, false); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Sync(); err != nil {
			t.Fatal(err)
		}
		if s := p.Stats().Sub(before); s.Sums == 0 || s.Moved == 0 || s.Checkpoints == 0 || s.Damaged > 0 {
			t.Errorf("round %d: not everything happened: %+v", round, s)
		}
		all()
		clean(t, p, true)
		cut := rng.NewStream(round, "cut")
		dev = dev.Crash(&cut)
		p = open(t, cfg, dev)
		all()
		clean(t, p, true)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// TestSumsDamaged damages the checkpoint in force while the pool is open: one page of it loses nothing, and of two that
// share a parity only the pages whose checksums are there cannot be read.
func TestSumsDamaged(t *testing.T) {
	for _, damaged := range []int{1, 2} {
		cfg, dev, shape, pages := inOrder(t, 3000)
		troubles := 0
		cfg.Trouble = func(ctl.Trouble) { troubles++ }
		p := open(t, cfg, dev)
		// The first checkpoint is that of Format, so the second slot has the one of Close, if there was no other.
		segments := shape.AllSegments()
		for slot := range 2 {
			for strip := range int64(damaged) {
				grain := media.BodyGrain(media.EntriesGrain(strip, segments))
				dev.Corrupt((shape.CheckpointStart(slot) + grain) * ctl.Page)
			}
		}
		b := make([]byte, ctl.Page)
		lost := uint64(0)
		for page := range pages {
			switch err := p.ReadAt(b, page*ctl.Page); {
			case errors.Is(err, ctl.ErrDamaged):
				lost++
			case err != nil:
				t.Fatal(err)
			default:
				if is, err := serialOf(b, page); err != nil || is != page+1 {
					t.Fatalf("page %d is %d, %v", page, is, err)
				}
			}
		}
		if (lost > 0) != (damaged > 1) || lost > 2*media.EntriesPerPage || troubles == 0 {
			t.Errorf("%d pages of %d are lost with %d damaged, and %d troubles were reported", lost, pages, damaged,
				troubles)
		}
		_ = p.Close() // fails: the lost checksums cannot be copied
	}
}
