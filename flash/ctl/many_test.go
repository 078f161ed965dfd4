package ctl_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"farflash/flash/ctl"
	"farflash/flash/ctl/heat"
	"farflash/flash/device"
)

// TestTogether gets pages together and one by one, and queries which have content, and compares both with the pages
// written.
func TestTogether(t *testing.T) {
	onFiles(t, func(t testing.TB, name string, openDevice func(string, int64) device.Device) {
		cfg, layout := small()
		cfg.Frames = 16
		d := openDevice("a", 700*device.Grain)
		format(t, layout, d)
		pool := open(t, cfg, d)
		const pages = 60
		held := make([]bool, pages)
		for page := range uint64(pages) {
			if held[page] = page%7 < 4; held[page] {
				b := make([]byte, ctl.Page)
				b[0] = byte(page) + 1
				if err := pool.WriteAt(b, page*ctl.Page, false); err != nil {
					t.Fatal(err)
				}
			}
		}
		type got struct {
			ref ctl.Ref
			err error
		}
		answers := make(chan got, pages)
		take := func(r ctl.Ref, err error) { answers <- got{r, err} }
		check := func(n int) {
			for range n {
				x := <-answers
				want := byte(0)
				if held[x.ref.Page] {
					want = byte(x.ref.Page) + 1
				}
				if x.err != nil || x.ref.Data[0] != want {
					t.Fatalf("%s: page %d is not what was written: %v", name, x.ref.Page, x.err)
				}
				pool.Put(x.ref, ctl.Kept, heat.Auto, nil)
			}
		}
		for first := uint64(0); first < pages; first += 12 { // fewer than there are frames
			var wants []ctl.Want
			for page := first; page < first+12; page++ {
				wants = append(wants, ctl.Want{Page: page, Mode: ctl.Reading, Fn: take})
			}
			pool.GetAll(0, wants)
			check(12)
		}
		for page := range uint64(pages) {
			pool.GetExclusive(page, take)
			check(1)
		}
		for first := range pages {
			n := 1
			for first+n < pages && held[first+n] == held[first] {
				n++
			}
			if k, is := pool.Run(uint64(first), uint64(pages-first)); int(k) != n || is != held[first] {
				t.Errorf("%s: from page %d on %d are alike, content %v; they are %d, %v", name, first, k, is, n,
					held[first])
			}
		}
		clean(t, pool, true)
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestRunWhileChanging verifies that Run is consistent for the first page and those after it, while the first page is
// concurrently written and trimmed.
func TestRunWhileChanging(t *testing.T) {
	cfg, layout := small()
	dev := device.NewMem(500 * device.Grain)
	format(t, layout, dev)
	pool := open(t, cfg, dev)
	const pages = 20
	b := make([]byte, pages*ctl.Page)
	if err := pool.WriteAt(b, 0, false); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	var ended atomic.Bool
	go func() {
		defer ended.Store(true)
		for range 30_000 {
			if err := errors.Join(pool.Discard(0, ctl.Page, false), pool.WriteAt(b[:ctl.Page], 0, false)); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for !ended.Load() {
		if n, held := pool.Run(0, pages); n != 1 && !held || n != pages && held {
			t.Errorf("%d pages are alike, content %v", n, held)
			break
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
