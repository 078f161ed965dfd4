package ctl_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"testing"

	"farflash/flash/ctl"
	"farflash/flash/ctl/heat"
	"farflash/flash/device"
	"farflash/ftl"
	"farflash/rng"
)

// world is a pool whose device does operations when and in the order that a random stream says, in one goroutine, and what may be found after a cut.
type world struct {
	t     testing.TB
	cfg   ctl.Config
	dev   *device.Mem
	pool  *ctl.Pool
	draw  rng.Stream
	pages []history
	label string

	cuts, dropped, recovered int64
}

// history is what was done to a page: serial numbers of contents, 0 for a trim, in order.
type history struct {
	serials []uint64
	floor   int // what was done before it has been overtaken by what is durable
	suspect int // what was done up to it may be lost, an error said
	busy    bool
}

var serial uint64

// stamp makes a page's content from its number and a serial number; read takes it back, and says if it is one content.
func stamp(b []byte, page, serial uint64) {
	for i := 0; i < len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], rng.Mix(page<<40^serial)+uint64(i)*serial)
	}
	binary.LittleEndian.PutUint64(b, serial)
}

func serialOf(b []byte, page uint64) (uint64, error) {
	s := binary.LittleEndian.Uint64(b)
	var want [ctl.Page]byte
	if s != 0 {
		stamp(want[:], page, s)
	}
	if [ctl.Page]byte(b) != want {
		return s, fmt.Errorf("page %d is a mix, beginning with %d", page, s)
	}
	return s, nil
}

func newWorld(t testing.TB, seed uint64) *world {
	w := &world{t: t, draw: rng.NewStream(seed, "world"), label: fmt.Sprint("seed ", seed)}
	cfg, layout := small()
	w.cfg = cfg
	w.cfg.PutThrough = w.draw.IntN(3) == 0
	w.cfg.Chunk = int(1 + w.draw.IntN(6))
	w.cfg.Writes = int(8 + w.draw.IntN(24))
	w.cfg.Frames = int(8 + w.draw.IntN(24))
	w.cfg.Victim = []ftl.Victim{ftl.CostAge, ftl.Greedy}[w.draw.IntN(2)]
	layout.Segment = int(8 + w.draw.IntN(12))
	layout.LogPages, layout.OverProvision = 8+w.draw.IntN(24), 0.6
	w.dev = device.NewMem((300 + w.draw.IntN(120)) * device.Grain)
	shape := format(t, layout, w.dev)
	w.pages = make([]history, max(4, shape.Capacity*(60+w.draw.IntN(40))/100))
	for i := range w.pages {
		w.pages[i].serials = []uint64{0}
	}
	w.pool = open(t, w.cfg, w.dev)
	w.dev.Hold(true)
	return w
}

// act does something at random.
func (w *world) act() {
	i := w.draw.IntN(int64(len(w.pages)))
	if w.draw.IntN(2) == 0 {
		i = w.draw.IntN(int64(len(w.pages)+9) / 10) // often the same
	}
	h := &w.pages[i]
	switch k := w.draw.IntN(20); {
	case k < 9 && !h.busy:
		w.put(uint64(i), h, w.draw.IntN(3) == 0)
	case k < 10 && !h.busy:
		n := min(1+w.draw.IntN(4), int64(len(w.pages))-i)
		for j := i; j < i+n; j++ {
			if w.pages[j].busy {
				return
			}
		}
		w.trim(uint64(i), uint64(n))
	case k < 11:
		marks := make([]int, len(w.pages))
		for j := range w.pages {
			marks[j] = len(w.pages[j].serials) - 1
		}
		pages := w.pages
		w.pool.Flush(func(err error) {
			if err != nil {
				w.t.Fatalf("%s: flush: %v", w.label, err)
			}
			for j := range pages {
				pages[j].floor = max(pages[j].floor, marks[j])
			}
		})
	case k < 12 && !h.busy:
		h.busy = true
		w.pool.Get(uint64(i), ctl.Reading, func(r ctl.Ref, err error) {
			h.busy = false
			if err != nil {
				w.t.Fatalf("%s: reading page %d: %v", w.label, i, err)
			}
			if s, err := serialOf(r.Data, uint64(i)); err != nil || s != h.serials[len(h.serials)-1] {
				w.t.Fatalf("%s: page %d reads %d, %v; it was put as %d", w.label, i, s, err, h.serials[len(h.serials)-1])
			}
			w.pool.Put(r, ctl.Kept, heat.Auto, nil)
		})
	default:
		w.dev.Step(&w.draw)
	}
}

func (w *world) put(page uint64, h *history, sync bool) {
	h.busy = true
	mode := ctl.Mode(1 + w.draw.IntN(2))
	w.pool.Get(page, mode, func(r ctl.Ref, err error) {
		h.busy = false
		if err != nil {
			w.t.Fatalf("%s: getting page %d: %v", w.label, page, err)
		}
		serial++
		stamp(r.Data, page, serial)
		h.serials = append(h.serials, serial)
		at := len(h.serials) - 1
		change := ctl.Changed
		if sync {
			change = ctl.Durable
		}
		w.pool.Put(r, change, heat.Auto, func(err error) {
			if err != nil {
				w.t.Fatalf("%s: putting page %d: %v", w.label, page, err)
			}
			if sync {
				h.floor = max(h.floor, at)
			}
		})
	})
}

func (w *world) trim(page, n uint64) {
	sync := w.draw.IntN(2) == 0
	at := make([]int, n)
	for k := range n {
		h := &w.pages[page+k]
		h.serials = append(h.serials, 0)
		at[k] = len(h.serials) - 1
	}
	pages := w.pages
	w.pool.Trim(page, n, sync, func(err error) {
		if err != nil {
			w.t.Fatalf("%s: trimming page %d: %v", w.label, page, err)
		}
		for k := range n {
			if sync {
				pages[page+k].floor = max(pages[page+k].floor, at[k])
			}
		}
	})
}

// cut has the power cut, looks at what is found, and goes on from there if asked to.
func (w *world) cut(goOn bool) {
	w.cuts++
	dev := w.dev.Crash(&w.draw)
	pool, err := ctl.Open(w.cfg, dev)
	if err != nil {
		w.t.Fatalf("%s, cut %d: %v", w.label, w.cuts, err)
	}
	w.dropped += pool.Found().Dropped
	w.recovered += pool.Found().Records
	found := make([]history, len(w.pages))
	var b [ctl.Page]byte
	for i := range w.pages {
		h := &w.pages[i]
		if err := pool.ReadAt(b[:], uint64(i)*ctl.Page); err != nil {
			w.t.Fatalf("%s, cut %d: %v (found %+v)", w.label, w.cuts, err, pool.Found())
		}
		s, err := serialOf(b[:], uint64(i))
		if err != nil {
			w.t.Fatalf("%s, cut %d: %v", w.label, w.cuts, err)
		}
		ok := false
		for _, possible := range h.serials[h.floor:] {
			ok = ok || possible == s
		}
		if !ok {
			w.t.Fatalf("%s, cut %d: page %d is %d; %v were put, from number %d on it may be any (found %+v)", w.label, w.cuts, i, s, h.serials, h.floor, pool.Found())
		}
		found[i].serials = []uint64{s}
	}
	if w.draw.IntN(4) == 0 || goOn {
		for _, v := range pool.Check(true).Violations {
			w.t.Errorf("%s, cut %d: %v", w.label, w.cuts, v)
		}
		if w.t.Failed() {
			w.t.FailNow()
		}
	}
	if !goOn {
		if err := pool.Close(); err != nil {
			w.t.Fatalf("%s, cut %d: %v", w.label, w.cuts, err)
		}
		return
	}
	w.end()
	w.dev, w.pool, w.pages = dev, pool, found
	w.dev.Hold(true)
}

// end closes the pool, and sees that nothing is left behind.
func (w *world) end() {
	for w.dev.Step(&w.draw) {
	}
	w.dev.Hold(false)
	if err := w.pool.Close(); err != nil {
		w.t.Fatalf("%s: %v", w.label, err)
	}
	for i := range w.pages {
		if w.pages[i].busy {
			w.t.Fatalf("%s: page %d was never given", w.label, i)
		}
	}
}

// TestCrash cuts the power some thousand times (FARFLASH_LONG: a hundred thousand), in the midst of everything, several times in a row. What
// was said to be durable must be there, no page may be a mix of two, and all invariants must hold. FARFLASH_CASE runs one seed alone.
func TestCrash(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // small pools, made and left by the thousand
	worlds, only := 40, -1
	switch {
	case raced:
		worlds = 2 // all of it is in one goroutine
	case os.Getenv("FARFLASH_LONG") != "":
		worlds = 2000
	}
	if s := os.Getenv("FARFLASH_CASE"); s != "" {
		only, _ = strconv.Atoi(s)
		worlds = only + 1
	}
	var cuts, dropped, recovered int64
	for seed := max(0, only); seed < worlds; seed++ {
		w := newWorld(t, uint64(seed))
		for range 60 {
			for range 1 + w.draw.IntN(60) {
				w.act()
			}
			w.cut(w.draw.IntN(6) == 0)
		}
		for _, v := range w.pool.Check(false).Violations {
			t.Errorf("%s: %v", w.label, v)
		}
		w.end()
		cuts, dropped, recovered = cuts+w.cuts, dropped+w.dropped, recovered+w.recovered
	}
	t.Logf("%d cuts; %d records of the log applied, %d writes dropped that nothing said were durable", cuts, recovered, dropped)
	if only < 0 && !raced && (cuts < 2400 || dropped == 0 || recovered == 0) {
		t.Errorf("%d cuts, %d dropped, %d recovered: too little was tried", cuts, dropped, recovered)
	}
}
