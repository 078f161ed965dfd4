package ctl_test

import (
	"bytes"
	"fmt"
	"testing"

	"farflash/flash/ctl"
	"farflash/flash/ctl/heat"
	"farflash/flash/device"
	"farflash/internal/patience"
	"farflash/numeric/rng"
)

// shared is the model of a page that several holders share, overwrite, give up and trim.
type shared struct {
	now     byte // content that a new holder sees
	holders int  // current holders
	asked   int  // outstanding requests
	filler  bool // the holder is overwriting all of it, and requests wait
	trims   int  // trims waiting for the last holder
	// trims may be waiting or done already; the model does not know how far the outstanding requests have got
	late bool
}

// settle models the release of the last reference.
func (s *shared) settle() {
	if s.holders == 0 && (s.trims > 0) {
		s.now, s.trims = 0, 0
	}
}

// sharing is the set of held pages and their model.
type sharing struct {
	t     *testing.T
	label string
	pool  *ctl.Pool
	draw  rng.Stream
	pages []shared
	held  []owned
	begun int // trims
	told  int
}

type owned struct {
	ref  ctl.Ref
	page int
	mode ctl.Mode
}

func (w *sharing) get() {
	page, mode := int(w.draw.IntN(int64(len(w.pages)))), ctl.Mode(w.draw.IntN(3))
	s := &w.pages[page]
	s.asked++
	w.pool.Get(uint64(page), mode, func(r ctl.Ref, err error) {
		if err != nil {
			w.t.Fatalf("%s: page %d: %v", w.label, page, err)
		}
		s.asked--
		if s.filler || r.Fill && s.holders > 0 {
			w.t.Fatalf("%s: page %d is given while somebody overwrites it", w.label, page)
		}
		s.holders++
		if s.late && (r.Fill || r.Data[0] == 0) { // it was not in memory when it was trimmed
			s.now, s.trims = 0, 0
		}
		if s.filler = r.Fill; !r.Fill {
			if !bytes.Equal(r.Data, filled(s.now)) {
				w.t.Fatalf("%s: page %d begins with %d, and must with %d (%+v)", w.label, page, r.Data[0], s.now, *s)
			}
		}
		s.late = false
		w.held = append(w.held, owned{r, page, mode})
	})
}

func (w *sharing) put() {
	if len(w.held) == 0 {
		return
	}
	i := int(w.draw.IntN(int64(len(w.held))))
	o := w.held[i]
	w.held = append(w.held[:i], w.held[i+1:]...)
	s := &w.pages[o.page]
	change := ctl.Kept
	if o.mode != ctl.Reading {
		change = ctl.Change(w.draw.IntN(3))
	}
	if change != ctl.Kept {
		s.now = byte(1 + w.draw.IntN(255))
		copy(o.ref.Data, filled(s.now))
	}
	s.holders--
	waited := s.filler && s.asked > 0
	s.filler = false
	switch {
	case !waited:
		s.settle()
	case change == ctl.Kept: // before the waiting requests are served
		s.settle()
	case s.trims > 0:
		// Waiting requests get the written content, and the trim takes effect with the last of them, unless they were
		// waiting for memory.
		s.late = true
	}
	w.pool.Put(o.ref, change, heat.Auto, func(err error) {
		if err != nil {
			w.t.Errorf("%s: page %d: %v", w.label, o.page, err)
		}
	})
}

func (w *sharing) trim() {
	first := int(w.draw.IntN(int64(len(w.pages))))
	n := min(int(1+w.draw.IntN(3)), len(w.pages)-first)
	for i := first; i < first+n; i++ {
		s := &w.pages[i]
		switch {
		case s.holders > 0:
			s.trims++
		case s.asked > 0:
			s.trims, s.late = s.trims+1, true
		default:
			s.now, s.trims = 0, 0
		}
	}
	w.begun++
	w.pool.Trim(uint64(first), uint64(n), w.draw.IntN(3) == 0, func(err error) {
		if err != nil {
			w.t.Errorf("%s: trimming: %v", w.label, err)
		}
		w.told++
	})
}

// TestSharedPages verifies that all holders of a page see the same content, and the content that a model predicts,
// whatever else is read, overwritten, given up, trimmed or waiting, in a pool with very little memory. Each trim
// completes, and the final contents equal the model's.
func TestSharedPages(t *testing.T) {
	seeds := uint64(150)
	if patience.Long(t) {
		seeds = 5000
	}
	for seed := range seeds {
		w := &sharing{t: t, label: fmt.Sprint("seed ", seed), draw: rng.NewStream(seed, "shared")}
		cfg, layout := small()
		cfg.Frames = int(8 + w.draw.IntN(6))
		cfg.PutThrough = w.draw.IntN(4) == 0
		layout.LogPages = 8 + w.draw.IntN(24)
		dev := device.NewMem(smallGrains * device.Grain)
		format(t, layout, dev)
		w.pool = open(t, cfg, dev)
		w.pages = make([]shared, 6+w.draw.IntN(14))
		dev.Hold(true)
		for range 1500 {
			switch k := w.draw.IntN(20); {
			case k < 6:
				asked := 0
				for i := range w.pages {
					asked += w.pages[i].asked
				}
				if len(w.held) < 6 && asked < 10 {
					w.get()
				}
			case k < 13:
				w.put()
			case k < 15:
				w.trim()
			case k < 16:
				w.pool.Flush(func(err error) {
					if err != nil {
						t.Errorf("%s: %v", w.label, err)
					}
				})
			default:
				dev.Step(&w.draw)
			}
		}
		for busy := true; busy; {
			busy = len(w.held) > 0
			w.put()
			busy = dev.Step(&w.draw) || busy
		}
		dev.Hold(false)
		if w.told != w.begun {
			t.Fatalf("%s: %d of %d trims have ended", w.label, w.told, w.begun)
		}
		for i := range w.pages {
			s := &w.pages[i]
			if s.asked > 0 || s.holders > 0 {
				t.Fatalf("%s: page %d is waited for and never comes: %+v", w.label, i, *s)
			}
			pageIs(t, w.pool, uint64(i), filled(s.now), fmt.Sprintf("%s: page %d", w.label, i))
		}
		if t.Failed() {
			return
		}
		clean(t, w.pool, true)
		if err := w.pool.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
