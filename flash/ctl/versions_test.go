package ctl_test

import (
	"encoding/binary"
	"os"
	"strconv"
	"testing"

	"farflash/flash/ctl"
	"farflash/flash/ctl/media"
	"farflash/flash/device"
	"farflash/internal/patience"
	"farflash/numeric/rng"
)

// TestCheckpointSize closes and opens a full pool. A checkpoint writes the states of segments and those groups of
// entries that have changed since the one before it in its slot, and no others. FARFLASH_LONG tries 1 TB, or
// FARFLASH_SIZE as many bytes.
func TestCheckpointSize(t *testing.T) {
	if raced {
		t.Skip("one goroutine: no races to find")
	}
	size, writes := int64(30e9), int64(20)
	if patience.Long(t) {
		size, writes = 1e12, 1000
	}
	if text := os.Getenv("FARFLASH_SIZE"); text != "" {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		size = int64(n)
	}
	d := newComputed(t, size)
	segments := d.shape.AllSegments()
	all := media.BodyPages(segments, d.shape.Pages)
	table := media.EntriesGrain(0, segments)
	draw := rng.NewStream(1, "checkpoint")
	buf := make([]byte, ctl.Page)
	newest := map[uint64]byte{}
	// written returns the pages of the checkpoint that Close writes after some writes.
	written := func(n int64) int64 {
		t.Helper()
		p := open(t, ctl.DefaultConfig(), d)
		if !p.Found().Clean {
			t.Fatal("the pool is not clean")
		}
		used, _ := p.Use()
		for page, is := range newest {
			if err := p.ReadAt(buf, page*ctl.Page); err != nil || buf[1] != is {
				t.Fatalf("page %d is %d, not %d: %v", page, buf[1], is, err)
			}
		}
		for i := range n {
			page := uint64(draw.IntN(used))
			clear(buf)
			buf[0], buf[1] = byte(page%251), byte(i)
			newest[page] = byte(i)
			if err := p.WriteAt(buf, page*ctl.Page, false); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		return p.Stats().Checkpoint
	}
	full := written(0) // the device computes the checkpoint of one slot only
	if least := all * 3 / 4; full < least {
		t.Errorf("the first checkpoint has %d pages of %d", full, all)
	}
	some := written(writes)
	again := written(0) // in the other slot
	none := written(0)
	// The groups of the states of segments, and of the segments whose turn it is; up to two for the place that each
	// write frees, and those of the segments that were opened.
	always := (table/media.Group + 2 + 2) * (media.Group + 1)
	bound := always + (2*writes+8)*(media.Group+1)
	t.Logf("%.0f GB: %d pages in full, %d after %d writes, %d in the other slot, %d without a change", float64(size)/1e9,
		full, some, writes, again, none)
	if some > bound || again > bound || none > always+2*(media.Group+1) || some < writes/2 {
		t.Errorf("more than %d or %d pages", bound, always)
	}
	for _, v := range open(t, ctl.DefaultConfig(), d).Check(false).Violations {
		t.Error(v)
	}
}

// TestCheckpointParts writes, trims and moves few of many pages between checkpoints, which are then partly of several
// generations. After clean ends and crashes, with all of the map in memory and with little, every page is right.
func TestCheckpointParts(t *testing.T) {
	if raced {
		t.Skip("one goroutine: no races to find")
	}
	const pages = 60_000 // their entries are six groups of a checkpoint
	cfg, layout := small()
	layout.Segment, layout.LogPages, layout.OverProvision = 256, 512, 0.3
	cfg.Frames, cfg.Moves = 256, 16
	dev := device.NewMem(pages * 3 / 2 * device.Grain)
	format(t, layout, dev)
	p := open(t, cfg, dev)
	draw := rng.NewStream(1, "parts")
	newest := make([]uint64, pages)
	b := make([]byte, ctl.Page)
	put := func(page uint64) {
		t.Helper()
		serial++
		newest[page] = serial
		clear(b)
		binary.LittleEndian.PutUint64(b, serial)
		if err := p.WriteAt(b, page*ctl.Page, false); err != nil {
			t.Fatal(err)
		}
	}
	for page := range uint64(pages) {
		put(page)
	}
	for round := range uint64(14) {
		from := uint64(draw.IntN(pages))
		for range 1 + draw.IntN(400) {
			switch page := (from + uint64(draw.IntN(300))) % pages; draw.IntN(12) {
			case 0:
				newest[page] = 0
				if err := p.Discard(page*ctl.Page, ctl.Page, false); err != nil {
					t.Fatal(err)
				}
			case 1:
				to := uint64(draw.IntN(pages))
				if to == page {
					continue
				}
				newest[to], newest[page] = newest[page], 0
				if err := p.Remap([]ctl.Step{{From: page, To: to, Count: 1}}, false, func(error) {}); err != nil {
					t.Fatal(err)
				}
			default:
				put(page)
			}
		}
		all := cfg
		if round%3 == 0 {
			all.Map = 0
		}
		if round%4 == 3 {
			if err := p.Sync(); err != nil {
				t.Fatal(err)
			}
			cut := rng.NewStream(round, "cut")
			dev = dev.Crash(&cut)
		} else {
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			dev = dev.Reopen()
		}
		if p = open(t, all, dev); len(p.Found().Lost) > 0 {
			t.Fatalf("round %d: %v", round, p.Found().Lost)
		}
		for page, want := range newest {
			if round%2 == 0 && page%7 > 0 {
				continue
			}
			if err := p.ReadAt(b, uint64(page)*ctl.Page); err != nil {
				t.Fatal(err)
			}
			if is := binary.LittleEndian.Uint64(b); is != want {
				t.Fatalf("round %d: page %d is %d, not %d", round, page, is, want)
			}
		}
		clean(t, p, round%4 == 1)
	}
}
