package ctl_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"farflash/flash/ctl"
	"farflash/flash/ctl/heat"
	"farflash/flash/device"
	"farflash/numeric/rng"
)

// hoard takes all frames of a pool, so that requests for other pages wait until release is called.
func hoard(t *testing.T, p *ctl.Pool) (release func()) {
	t.Helper()
	var all []ctl.Ref
	for i := range p.Frames() {
		n := len(all)
		p.Get(1<<40+uint64(i), ctl.Whole, func(r ctl.Ref, err error) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, r)
		})
		if len(all) == n {
			t.Fatalf("%d of %d frames are free", n, p.Frames())
		}
	}
	return func() {
		for _, r := range all {
			p.Put(r, ctl.Kept, heat.Auto, nil)
		}
	}
}

// filled returns a page with all bytes b.
func filled(b byte) []byte { return bytes.Repeat([]byte{b}, ctl.Page) }

// pageIs verifies a page's content.
func pageIs(t *testing.T, p *ctl.Pool, page uint64, want []byte, what string) {
	t.Helper()
	got := make([]byte, ctl.Page)
	if err := p.ReadAt(got, page*ctl.Page); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s begins with %d, and must with %d", what, got[0], want[0])
	}
}

// tight returns an open pool of 8 frames with the given pages.
func tight(t *testing.T, pages map[uint64]byte) *ctl.Pool {
	t.Helper()
	cfg, layout := small()
	cfg.Frames = 8
	return holding(t, cfg, layout, device.NewMem(smallGrains*device.Grain), pages)
}

// holding returns an open pool on a device with the given pages.
func holding(t *testing.T, cfg ctl.Config, layout ctl.Layout, dev device.Device, pages map[uint64]byte) *ctl.Pool {
	t.Helper()
	format(t, layout, dev)
	p := open(t, cfg, dev)
	for page, b := range pages {
		if err := p.WriteAt(filled(b), page*ctl.Page, true); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// shut closes a pool that must be free of violations and have the given number of pages in use.
func shut(t *testing.T, p *ctl.Pool, pages int64) {
	t.Helper()
	if err := p.Sync(); err != nil {
		t.Error(err)
	}
	if used, _ := p.Use(); used != pages {
		t.Errorf("%d pages are in use, and must be %d", used, pages)
	}
	clean(t, p, true)
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// TestDroppedWhileQueued verifies that a request whose page is dropped or overwritten by a move while it waits for
// memory neither sees nor changes the page that now has the address. Its writes vanish with the dropped page.
func TestDroppedWhileQueued(t *testing.T) {
	const a, b, twin = 10, 20, 30
	overtaken := map[string][]ctl.Step{
		"dropped, and another moved there": {{From: a, Count: 1, Drop: true}, {From: b, To: a, Count: 1}},
		"moved onto":                       {{From: b, To: a, Count: 1}},
		"moved, and moved onto there": {{From: a, To: twin, Count: 1}, {From: b, To: twin, Count: 1},
			{From: twin, To: a, Count: 1}},
	}
	for name, steps := range overtaken {
		for _, mode := range []ctl.Mode{ctl.Reading, ctl.Writing, ctl.Whole} {
			for _, change := range []ctl.Change{ctl.Kept, ctl.Changed, ctl.Durable} {
				if mode == ctl.Reading && change != ctl.Kept {
					continue
				}
				p := tight(t, map[uint64]byte{a: 1, b: 2})
				release := hoard(t, p)
				given, done := 0, make(chan error, 2)
				for range 2 {
					p.Get(a, mode, func(r ctl.Ref, err error) {
						if err != nil {
							done <- err
							return
						}
						given++
						if r.Page != a {
							t.Errorf("%s: page %d was asked for, %d is given", name, a, r.Page)
						}
						if !r.Fill && !bytes.Equal(r.Data, make([]byte, ctl.Page)) {
							t.Errorf("%s: mode %d is given what begins with %d", name, mode, r.Data[0])
						}
						if change != ctl.Kept {
							copy(r.Data, filled(3))
						}
						p.Put(r, change, heat.Auto, func(err error) { done <- err })
					})
				}
				if given > 0 {
					t.Fatalf("a page is given where no frame is free")
				}
				if err := p.Remap(steps, false, nil); err != nil {
					t.Fatal(err)
				}
				release()
				for range 2 {
					if err := <-done; err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
				pageIs(t, p, a, filled(2), name+": the page that was moved there")
				shut(t, p, 1)
			}
		}
	}
}

// TestGivenUpAfterDrop verifies the same for a request that waits for a page which another holder was overwriting, and
// gives up after the page was dropped.
func TestGivenUpAfterDrop(t *testing.T) {
	const a, b = 10, 20
	p := tight(t, map[uint64]byte{a: 1, b: 2})
	hoard(t, p)() // evicts everything from memory
	var fill ctl.Ref
	p.Get(a, ctl.Whole, func(r ctl.Ref, err error) {
		if err != nil {
			t.Fatal(err)
		}
		fill = r
	})
	done := make(chan error, 1)
	p.Get(a, ctl.Writing, func(r ctl.Ref, err error) {
		if err == nil && !bytes.Equal(r.Data, make([]byte, ctl.Page)) {
			t.Errorf("he is given what begins with %d", r.Data[0])
		}
		copy(r.Data, filled(3))
		p.Put(r, ctl.Changed, heat.Auto, func(err error) { done <- err })
	})
	if err := p.Remap([]ctl.Step{{From: b, To: a, Count: 1}}, false, nil); err != nil {
		t.Fatal(err)
	}
	p.Put(fill, ctl.Kept, heat.Auto, nil)
	if err := <-done; err != nil {
		t.Error(err)
	}
	pageIs(t, p, a, filled(2), "the page that was moved there")
	shut(t, p, 1)
}

// TestTrimOfGivenUp verifies that a page being overwritten is trimmed when its holder gives up, no matter who gets the
// page or its frame next, and that no other page is.
func TestTrimOfGivenUp(t *testing.T) {
	const a, other = 10, 20
	for _, waits := range []struct {
		name string
		page uint64
		mode ctl.Mode
	}{{"a reader of the page", a, ctl.Reading}, {"a writer of the page", a, ctl.Writing},
		{"a reader of another", other, ctl.Reading}, {"a writer of a new one", other + 1, ctl.Writing}} {
		p := tight(t, map[uint64]byte{a: 1, other: 2})
		release := hoard(t, p)
		var fill ctl.Ref
		begun := make(chan error, 1)
		p.Get(a, ctl.Whole, func(r ctl.Ref, err error) {
			fill = r
			begun <- err
		})
		release() // one of the waiters holds the page from here on
		if err := <-begun; err != nil {
			t.Fatal(err)
		}
		var rest []ctl.Ref
		for i := range p.Frames() - 1 {
			p.Get(1<<40+uint64(i), ctl.Whole, func(r ctl.Ref, _ error) { rest = append(rest, r) })
		}
		done := make(chan error, 1)
		p.Get(waits.page, waits.mode, func(r ctl.Ref, err error) {
			if err != nil {
				done <- err
				return
			}
			if waits.mode == ctl.Writing {
				copy(r.Data, filled(3))
				p.Put(r, ctl.Changed, heat.Auto, func(err error) { done <- err })
				return
			}
			if want := byte(2); waits.page == other && r.Data[0] != want {
				t.Errorf("%s: what begins with %d", waits.name, r.Data[0])
			}
			p.Put(r, ctl.Kept, heat.Auto, func(err error) { done <- err })
		})
		trimmed := make(chan error, 1)
		p.Trim(a, 1, false, func(err error) { trimmed <- err })
		p.Put(fill, ctl.Kept, heat.Auto, nil)
		for _, c := range []chan error{done, trimmed} {
			if err := <-c; err != nil {
				t.Errorf("%s: %v", waits.name, err)
			}
		}
		for _, r := range rest {
			p.Put(r, ctl.Kept, heat.Auto, nil)
		}
		used := int64(1)
		switch {
		case waits.page == other+1:
			used++
			pageIs(t, p, other+1, filled(3), waits.name+": what he wrote")
			fallthrough
		case waits.mode == ctl.Reading:
			pageIs(t, p, a, make([]byte, ctl.Page), waits.name+": the page that was trimmed")
		default: // requested before the trim, but served after it
			used++
			pageIs(t, p, a, filled(3), waits.name+": what he wrote")
		}
		pageIs(t, p, other, filled(2), waits.name+": another page")
		shut(t, p, used)
	}
}

// TestTrimsWithoutEnd verifies back-pressure: a caller that writes and trims endlessly, faster than the devices absorb
// the log, is slowed down if it waits for each trim, and refused if it does not. All accepted requests complete, and so
// do those of other callers.
func TestTrimsWithoutEnd(t *testing.T) {
	for _, logPages := range []int64{8, 16, 64} {
		for _, patient := range []bool{true, false} {
			label := fmt.Sprintf("a log of %d pages, patient %v", logPages, patient)
			cfg, layout := small()
			layout.LogPages = logPages
			dev := device.NewMem(smallGrains * device.Grain)
			format(t, layout, dev)
			p := open(t, cfg, dev)
			dev.Hold(true)
			draw := rng.NewStream(uint64(logPages), "without end")
			asked, told, refused := 0, 0, 0
			for turn := range 30_000 {
				if turn%500 == 0 {
					dev.Step(&draw)
				}
				if patient && asked > told {
					continue
				}
				page := uint64(turn % 4)
				p.Get(page, ctl.Whole, func(r ctl.Ref, err error) {
					if err != nil {
						t.Fatal(err)
					}
					p.Put(r, ctl.Changed, heat.Auto, nil)
				})
				asked++
				p.Trim(page, 1, false, func(err error) {
					told++
					switch {
					case errors.Is(err, ctl.ErrLogFull):
						refused++
					case err != nil:
						t.Error(err)
					}
				})
			}
			switch {
			case patient && (refused > 0 || asked > 25_000):
				t.Errorf("%s: %d trims are asked for and %d refused, by who waits for each", label, asked, refused)
			case !patient && refused == 0:
				t.Errorf("%s: %d trims are taken, and nothing of them is logged", label, asked)
			}
			flushed := false
			p.Flush(func(err error) {
				if err != nil {
					t.Error(err)
				}
				flushed = true
			})
			for dev.Step(&draw) {
			}
			if !flushed || told != asked {
				t.Fatalf("%s: nothing is under way, and %d of %d trims are done, the flush: %v; %+v", label, told,
					asked, flushed, p.Stats())
			}
			dev.Hold(false)
			if err := p.Discard(0, 4*ctl.Page, true); err != nil {
				t.Error(err)
			}
			shut(t, p, 0)
		}
	}
}

// TestRemapsWithoutEnd verifies the same for endless moves.
func TestRemapsWithoutEnd(t *testing.T) {
	cfg, layout := small()
	layout.LogPages = 16
	dev := device.NewMem(smallGrains * device.Grain)
	format(t, layout, dev)
	p := open(t, cfg, dev)
	if err := p.WriteAt(filled(1), 0, true); err != nil {
		t.Fatal(err)
	}
	dev.Hold(true)
	draw := rng.NewStream(1, "without end")
	at, taken, told := uint64(0), 0, 0
	for range 30_000 {
		err := p.Remap([]ctl.Step{{From: at, To: 1 - at, Count: 1}}, true, func(err error) {
			if err != nil {
				t.Error(err)
			}
			told++
		})
		if errors.Is(err, ctl.ErrLogFull) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		at = 1 - at
		taken++
	}
	for dev.Step(&draw) {
	}
	if taken == 30_000 || told != taken {
		t.Fatalf("%d moves are taken, and %d said to be durable; %+v", taken, told, p.Stats())
	}
	dev.Hold(false)
	pageIs(t, p, at, filled(1), "the page that was moved")
	shut(t, p, 1)
}

// TestDiscardAll verifies that discarding the whole address space logs only the pages in use, however far apart, and
// survives a crash.
func TestDiscardAll(t *testing.T) {
	at := []uint64{0, 7, 1<<32 - 1, 1 << 32, 1 << 40, 1<<52 - 2}
	pages := map[uint64]byte{}
	for i, page := range at {
		pages[page] = byte(i + 1)
	}
	cfg, layout := small()
	dev := device.NewMem(smallGrains * device.Grain)
	p := holding(t, cfg, layout, dev, pages)
	before := p.Stats().Log
	if err := p.Discard(0, 1<<64-ctl.Page, true); err != nil {
		t.Fatal(err)
	}
	if n := p.Stats().Log - before; n > 4 {
		t.Errorf("%d pages of the log say it", n)
	}
	draw := rng.NewStream(1, "all")
	again := open(t, cfg, dev.Crash(&draw))
	for _, pool := range []*ctl.Pool{p, again} {
		for _, page := range at {
			pageIs(t, pool, page, make([]byte, ctl.Page), fmt.Sprint("page ", page))
		}
		shut(t, pool, 0)
	}
}
