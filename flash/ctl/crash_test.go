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
	"farflash/internal/patience"
	"farflash/numeric/rng"
	"farflash/policy/ftl"
)

// world is a pool on devices that execute operations in random order, in one goroutine, together with a model of the
// states that are valid after a power cut or a kill of its process.
type world struct {
	t     testing.TB
	cfg   ctl.Config
	devs  []*device.Mem
	pool  *ctl.Pool
	draw  rng.Stream
	aside rng.Stream // for draws that leave those of draw as they are
	pages []history
	label string
	lax   bool // never syncs: log pages fill up and stay in the devices' caches

	cuts, kills, several, broken, dropped, recovered, indexed int64
}

// devices converts memory devices to the interface.
func devices(mems []*device.Mem) []device.Device {
	var all []device.Device
	for _, m := range mems {
		all = append(all, m)
	}
	return all
}

func (w *world) hold(on bool) {
	for _, m := range w.devs {
		m.Hold(on)
	}
}

// step executes one queued operation of any device, and reports whether there was one.
func (w *world) step() bool {
	n := 0
	for _, m := range w.devs {
		n += m.Held()
	}
	if n == 0 {
		return false
	}
	k := int(w.draw.IntN(int64(n)))
	for _, m := range w.devs {
		if k < m.Held() {
			return m.Step(&w.draw)
		}
		k -= m.Held()
	}
	return false
}

// history is a page's sequence of versions, in order: serial numbers of contents, 0 for a trim.
type history struct {
	serials []uint64
	floor   int // versions before this index were superseded by a durable one
	suspect int // versions up to this index may be lost, because an error was reported
	busy    bool
}

var serial uint64

// stamp fills a page's content from its number and a serial number; read recovers them, and reports whether the page is
// a single version.
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

func newWorld(t testing.TB, seed uint64) *world { return newWorldOf(t, seed, 300) }

// newWorldOf returns a world whose first device has at least the given number of grains.
func newWorldOf(t testing.TB, seed uint64, grains int64) *world {
	w := &world{t: t, draw: rng.NewStream(seed, "world"), aside: rng.NewStream(seed, "aside"), label: fmt.Sprint("seed ", seed)}
	cfg, layout := small()
	w.cfg = cfg
	w.cfg.Map = int64(seed % 2) // every other world folds and drops
	w.cfg.PutThrough = w.draw.IntN(3) == 0
	w.cfg.Chunk = int(1 + w.draw.IntN(6))
	w.cfg.Writes = int(8 + w.draw.IntN(24))
	w.cfg.Frames = int(8 + w.draw.IntN(24))
	w.cfg.Victim = []ftl.Victim{ftl.CostAge, ftl.Greedy}[w.draw.IntN(2)]
	layout.Segment = int(8 + w.draw.IntN(12))
	layout.LogPages, layout.OverProvision = 8+w.draw.IntN(24), 0.6
	w.devs = []*device.Mem{device.NewMem((grains + w.draw.IntN(120)) * device.Grain)}
	for range w.draw.IntN(3) {
		w.devs = append(w.devs, device.NewMem((60+w.draw.IntN(120))*device.Grain))
	}
	shape := format(t, layout, devices(w.devs)...)
	w.pages = make([]history, max(4, shape.Capacity*(60+w.draw.IntN(40))/100))
	for i := range w.pages {
		w.pages[i].serials = []uint64{0}
	}
	w.pool = open(t, w.cfg, devices(w.devs)...)
	w.hold(true)
	return w
}

// act performs a random operation.
func (w *world) act() {
	i := w.draw.IntN(int64(len(w.pages)))
	if w.draw.IntN(2) == 0 {
		i = w.draw.IntN(int64(len(w.pages)+9) / 10) // skewed towards few pages
	}
	h := &w.pages[i]
	switch k := w.draw.IntN(20); {
	case k < 9 && !h.busy:
		w.put(uint64(i), h, !w.lax && w.draw.IntN(3) == 0)
	case k < 10 && !h.busy:
		n := min(1+w.draw.IntN(4), int64(len(w.pages))-i)
		for j := i; j < i+n; j++ {
			if w.pages[j].busy {
				return
			}
		}
		w.trim(uint64(i), uint64(n))
	case k < 11 && !w.lax:
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
				w.t.Fatalf("%s: page %d reads %d, %v; it was put as %d", w.label, i, s, err,
					h.serials[len(h.serials)-1])
			}
			w.pool.Put(r, ctl.Kept, heat.Auto, nil)
		})
	default:
		w.step()
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
	sync := !w.lax && w.draw.IntN(2) == 0
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

// found returns the devices as they are after a power cut or, if killed, after only the process died.
func (w *world) found(from []*device.Mem, killed bool) []*device.Mem {
	var all []*device.Mem
	for _, m := range from {
		if killed {
			all = append(all, m.Kill(&w.draw))
		} else {
			all = append(all, m.Crash(&w.draw))
		}
	}
	return all
}

// interrupted starts a recovery that fails at a random operation, followed by a power cut. A pool that got as far as
// collection counts unreadable pages as lost, so its devices are discarded.
func (w *world) interrupted(devs []*device.Mem) []*device.Mem {
	var before []*device.Mem
	for _, m := range devs {
		before = append(before, m.Crash(&w.aside))
	}
	devs[w.draw.IntN(int64(len(devs)))].SetFaults(device.Faults{FailFrom: 1 + w.draw.IntN(40)})
	p, err := ctl.Open(w.cfg, devices(devs)...) // may fail
	if err == nil && p.Stats().Damaged > 0 {
		return before
	}
	w.broken++
	return w.found(devs, false)
}

// cut cuts the power or kills the process, verifies the recovered state, and resumes from it if goOn is set.
func (w *world) cut(goOn bool) {
	w.cuts++
	killed := w.draw.IntN(3) == 0
	if killed {
		w.kills++
	}
	if len(w.devs) > 1 {
		w.several++
	}
	devs := w.found(w.devs, killed)
	if w.draw.IntN(4) == 0 {
		devs = w.interrupted(devs)
	}
	pool, err := ctl.Open(w.cfg, devices(devs)...)
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
			w.t.Fatalf("%s, cut %d: page %d is %d; %v were put, from number %d on it may be any (found %+v)", w.label,
				w.cuts, i, s, h.serials, h.floor, pool.Found())
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
		if w.aside.IntN(4) == 0 {
			w.again(devs, found)
		}
		return
	}
	w.end()
	w.devs, w.pool, w.pages = devs, pool, found
	w.hold(true)
}

// again opens a pool once more that was closed, and verifies that it is the same.
func (w *world) again(devs []*device.Mem, pages []history) {
	var same []*device.Mem
	for _, m := range devs {
		same = append(same, m.Crash(&w.aside))
	}
	pool, err := ctl.Open(w.cfg, devices(same)...)
	if err != nil {
		w.t.Fatalf("%s, after cut %d: %v", w.label, w.cuts, err)
	}
	if found := pool.Found(); found.Indexed {
		w.indexed++
	}
	var b [ctl.Page]byte
	for i := range pages {
		if err := pool.ReadAt(b[:], uint64(i)*ctl.Page); err != nil {
			w.t.Fatalf("%s, after cut %d: %v (found %+v)", w.label, w.cuts, err, pool.Found())
		}
		if s, err := serialOf(b[:], uint64(i)); err != nil || s != pages[i].serials[0] {
			w.t.Fatalf("%s, after cut %d: page %d is %d, and was %d: %v (found %+v)", w.label, w.cuts, i, s,
				pages[i].serials[0], err, pool.Found())
		}
	}
	for _, v := range pool.Check(true).Violations {
		w.t.Errorf("%s, after cut %d: %v", w.label, w.cuts, v)
	}
	if err := pool.Close(); err != nil || w.t.Failed() {
		w.t.Fatalf("%s, after cut %d: %v", w.label, w.cuts, err)
	}
}

// end closes the pool and checks for leaks.
func (w *world) end() {
	for w.step() {
	}
	w.hold(false)
	if err := w.pool.Close(); err != nil {
		w.t.Fatalf("%s: %v", w.label, err)
	}
	for i := range w.pages {
		if w.pages[i].busy {
			w.t.Fatalf("%s: page %d was never given", w.label, i)
		}
	}
}

// TestCrash cuts the power or kills the process some thousand times (FARFLASH_LONG: a hundred thousand) at random
// points, including during recovery and several times in a row, of pools on one to three devices. Everything reported
// durable must be there, no page may be a mix of two versions, and all invariants must hold. FARFLASH_CASE runs a
// single seed.
func TestCrash(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // thousands of small, short-lived pools
	worlds, only := 40, -1
	switch {
	case raced:
		worlds = 2 // single-threaded: no races to find
	case patience.Long(t):
		worlds = 2000
	}
	if s := os.Getenv("FARFLASH_CASE"); s != "" {
		only, _ = strconv.Atoi(s)
		worlds = only + 1
	}
	var cuts, kills, several, broken, dropped, recovered, indexed int64
	// Regressions: an empty frontier was counted as an empty segment; two torn writes made up a page of a log whose end
	// was decided.
	seeds := []int{1262, 953}
	for seed := max(0, only); seed < worlds; seed++ {
		seeds = append(seeds, seed)
	}
	if only >= 0 {
		seeds = seeds[2:]
	}
	for _, seed := range seeds {
		w := newWorld(t, uint64(seed))
		for range 60 {
			acts := 1 + w.draw.IntN(60)
			if w.lax = w.draw.IntN(6) == 0; w.lax {
				acts *= 20
			}
			for range acts {
				w.act()
			}
			w.cut(w.draw.IntN(6) == 0)
		}
		for _, v := range w.pool.Check(false).Violations {
			t.Errorf("%s: %v", w.label, v)
		}
		w.end()
		cuts, kills, several, broken = cuts+w.cuts, kills+w.kills, several+w.several, broken+w.broken
		dropped, recovered, indexed = dropped+w.dropped, recovered+w.recovered, indexed+w.indexed
	}
	t.Logf("%d cuts, of these %d of the process alone, %d of several devices, %d with a recovery cut as well; %d "+
		"records of the log applied, %d writes dropped that nothing said were durable; %d openings by an "+
		"index",
		cuts, kills, several, broken, recovered, dropped, indexed)
	if only < 0 && !raced &&
		(cuts < 2400 || kills < 500 || several < 1000 || broken < 300 || dropped == 0 || recovered == 0 ||
			indexed == 0) {
		t.Errorf("%d cuts, %d kills, %d of several devices, %d recoveries cut, %d dropped, %d recovered: too little "+
			"was tried", cuts, kills, several, broken, dropped, recovered)
	}
}

// TestMapCrash is TestCrash of pools whose map has several parts, of which few are in memory.
func TestMapCrash(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	worlds := 8
	switch {
	case raced:
		worlds = 1
	case patience.Long(t):
		worlds = 200
	}
	if s := os.Getenv("FARFLASH_CASE"); s != "" {
		worlds, _ = strconv.Atoi(s)
		worlds++
	}
	var sum ctl.Stats
	for seed := range worlds {
		w := newWorldOf(t, uint64(seed), 2200)
		w.cfg.Map = 1
		w.hold(false)
		if err := w.pool.Close(); err != nil {
			t.Fatal(err)
		}
		for i := range w.devs {
			w.devs[i] = w.devs[i].Reopen()
		}
		w.pool = open(t, w.cfg, devices(w.devs)...)
		w.hold(true)
		for cut := range 25 {
			for range 1 + w.draw.IntN(3000) {
				w.act()
			}
			s := w.pool.Stats()
			sum.MapReads, sum.MapWrites = sum.MapReads+s.MapReads, sum.MapWrites+s.MapWrites
			w.cfg.Map = min(1, w.draw.IntN(4)) // sometimes the next has all of the map in memory
			w.cut(cut%3 > 0)
		}
		w.end()
	}
	t.Logf("%d reads and %d writes of the map", sum.MapReads, sum.MapWrites)
	if raced {
		return
	}
	if sum.MapReads < 1000 || sum.MapWrites < 100 {
		t.Errorf("%d reads and %d writes of the map: too little was tried", sum.MapReads, sum.MapWrites)
	}
}

// TestSessions verifies that no two openings share a session number, even if only segment writes of the earlier one
// survive: summaries are matched by that number.
func TestSessions(t *testing.T) {
	cfg, layout := small()
	dev := device.NewMem(smallGrains * device.Grain)
	format(t, layout, dev)
	draw := rng.NewStream(1, "sessions")
	for last := uint64(0); last < 20; {
		pool := open(t, cfg, dev)
		if now := pool.Found().Session; now <= last {
			t.Fatalf("session %d follows %d", now, last)
		}
		last = pool.Found().Session
		if last%5 == 0 {
			if err := pool.Close(); err != nil {
				t.Fatal(err)
			}
			dev = dev.Reopen()
			continue
		}
		dev = dev.Crash(&draw)
	}
}
