package ctl_test

import (
	"testing"

	"farflash/flash/ctl"
	"farflash/flash/device"
)

// TestLogPageLost damages one page of the log of a pool whose process was killed. The page after it repeats it, so no
// write is lost; it is reported if a later page says that it was durable, and not if it may only have been in flight.
func TestLogPageLost(t *testing.T) {
	for _, durable := range []bool{true, false} {
		cfg, layout := small()
		cfg.Unflushed, layout.LogPages = 1<<30, 128
		dev := device.NewMem(2000 * device.Grain)
		shape := format(t, layout, dev)
		p := open(t, cfg, dev)
		b := make([]byte, ctl.Page)
		const pages = 800
		for i := range uint64(pages) {
			stamp(b, i, i+1)
			if err := p.WriteAt(b, i*ctl.Page, durable && i%100 == 99); err != nil {
				t.Fatal(err)
			}
		}
		left := dev.Reopen() // with all that was written
		var logged []int64   // offsets
		for k := range shape.LogPages {
			at := (shape.LogStart() + k) * ctl.Page
			if err := device.Do(left, device.Read, at, b); err != nil {
				t.Fatal(err)
			}
			if b[0]|b[8]|b[16]|b[24] != 0 {
				logged = append(logged, at)
			}
		}
		if len(logged) < 5 {
			t.Fatalf("%d pages of the log are written", len(logged))
		}
		gone := logged[len(logged)/2]
		clear(b)
		if err := device.Do(left, device.Write, gone, b); err != nil {
			t.Fatal(err)
		}
		again := open(t, cfg, left)
		lost := again.Found().Lost
		if want := map[bool]int{true: 1}[durable]; len(lost) != want || want == 1 && lost[0].Offset != gone {
			t.Errorf("durable %v: the page at %d is gone, and lost are %+v", durable, gone, lost)
		}
		kept := 0
		for i := range uint64(pages) {
			if err := again.ReadAt(b, i*ctl.Page); err != nil {
				t.Fatal(err)
			}
			if s, err := serialOf(b, i); err != nil || s != 0 && s != i+1 {
				t.Errorf("page %d is %d, %v", i, s, err)
			} else if s > 0 {
				kept++
			}
		}
		// Without a flush, chunks that are not full are in memory only.
		if durable && kept < pages || kept < pages/2 {
			t.Errorf("durable %v: %d of %d pages are kept", durable, kept, pages)
		}
	}
}
