package ctl_test

import (
	"testing"

	"farflash/flash/ctl"
	"farflash/flash/device"
)

// TestVerify verifies the recovery of writes that nobody flushed, after the process is killed: it reads each page
// once, in large pieces, and loses none; and the pool flushes by itself after Config.Unflushed changes, so that there
// are few.
func TestVerify(t *testing.T) {
	for _, unflushed := range []int{1 << 30, 256} {
		const pages = 3000
		cfg := ctl.DefaultConfig()
		cfg.Unflushed = unflushed
		dev := device.NewMem(8000 * device.Grain)
		layout := ctl.DefaultLayout()
		layout.UUID[0], layout.Segment, layout.LogPages = 1, 256, 256
		format(t, layout, dev)
		pool := open(t, cfg, dev)
		b := make([]byte, ctl.Page)
		for i := range uint64(pages) {
			stamp(b, i, i+1)
			if err := pool.WriteAt(b, i*ctl.Page, false); err != nil {
				t.Fatal(err)
			}
		}
		left := dev.Reopen()
		before, _ := left.Operations(device.Read)
		again := open(t, cfg, left)
		after, _ := left.Operations(device.Read)
		x := again.Found()
		t.Logf("flushed after %d changes: %+v, %d reads", unflushed, x, after-before)
		lost := 0
		for i := range uint64(pages) {
			if err := again.ReadAt(b, i*ctl.Page); err != nil {
				t.Fatal(err)
			}
			if s, err := serialOf(b, i); err != nil || s == 0 {
				lost++
			} else if s != i+1 {
				t.Fatalf("page %d is %d", i, s)
			}
		}
		// What is in memory only is lost: the records of the last page of the log, and the pages of open chunks.
		if lost > 256 {
			t.Errorf("%d of %d pages are lost", lost, pages)
		}
		switch {
		case x.Checked > int64(unflushed)+512:
			t.Errorf("%d pages were verified, though the pool flushed every %d", x.Checked, unflushed)
		case unflushed > pages && (x.Checked < pages-256 || x.Dropped > 0):
			t.Errorf("%d pages were verified and %d dropped", x.Checked, x.Dropped)
		case after-before > 60+x.Checked/32:
			t.Errorf("%d pages were verified with %d reads", x.Checked, after-before)
		}
		clean(t, again, true)
	}
}
