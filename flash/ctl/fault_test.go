package ctl_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"farflash/flash/ctl"
	"farflash/flash/ctl/heat"
	"farflash/flash/device"
	"farflash/internal/patience"
	"farflash/numeric/rng"
)

// story runs a fixed sequence of operations on a fresh pool whose device fails as configured. Operations may return
// errors, but everything acknowledged as durable must be there afterwards, and no resource may leak.
type story struct {
	t     testing.TB
	label string
	draw  rng.Stream
	pages []history
	errs  int
}

func (s *story) run(dev *device.Mem, cfg ctl.Config, pages int) {
	pool, err := ctl.Open(cfg, dev)
	if err != nil {
		s.errs++
		return
	}
	fail := func(err error) bool {
		if err != nil {
			s.errs++
		}
		return err != nil
	}
	b := make([]byte, ctl.Page)
	for range 5 * pages {
		i := uint64(s.draw.IntN(int64(pages)))
		h := &s.pages[i]
		switch k := s.draw.IntN(10); {
		case k < 5:
			serial++
			stamp(b, i, serial)
			h.serials = append(h.serials, serial)
			sync := s.draw.IntN(3) == 0
			if last := len(h.serials) - 1; fail(pool.WriteAt(b, i*ctl.Page, sync)) {
				h.suspect = last
			} else if sync {
				h.floor = last
			}
		case k < 6:
			h.serials = append(h.serials, 0)
			if last := len(h.serials) - 1; fail(pool.Discard(i*ctl.Page, ctl.Page, true)) {
				h.suspect = last
			} else {
				h.floor = last
			}
		case k < 7:
			failed := fail(pool.Sync())
			for j := range s.pages {
				h := &s.pages[j]
				switch last := len(h.serials) - 1; {
				case failed:
					h.suspect = last // an earlier write was lost, which is reported once
				case last > h.suspect:
					h.floor = max(h.floor, last)
				}
			}
		default:
			if !fail(pool.ReadAt(b, i*ctl.Page)) {
				s.possible(b, i, 0)
			}
		}
	}
	for _, v := range pool.Check(false).Violations {
		s.t.Errorf("%s: %v", s.label, v)
	}
	if err := pool.Close(); err != nil {
		s.errs++
		if strings.Contains(err.Error(), "held") {
			s.t.Fatalf("%s: %v", s.label, err)
		}
	}
}

// possible verifies that a page reads as one of its versions from index from on.
func (s *story) possible(b []byte, page uint64, from int) {
	s.t.Helper()
	x, err := serialOf(b, page)
	if err != nil {
		s.t.Fatalf("%s: %v", s.label, err)
	}
	for _, y := range s.pages[page].serials[from:] {
		if x == y {
			return
		}
	}
	s.t.Fatalf("%s: page %d reads %d; %v were written, from number %d on it may be any", s.label, page, x,
		s.pages[page].serials, from)
}

// after reopens the medium on a working device and verifies everything that was acknowledged.
func (s *story) after(dev *device.Mem, cfg ctl.Config) {
	pool, err := ctl.Open(cfg, dev)
	if err != nil {
		s.t.Fatalf("%s: afterwards: %v", s.label, err)
	}
	b := make([]byte, ctl.Page)
	for i := range s.pages {
		if err := pool.ReadAt(b, uint64(i)*ctl.Page); err != nil {
			s.t.Fatalf("%s: afterwards: %v", s.label, err)
		}
		s.possible(b, uint64(i), s.pages[i].floor)
	}
	for _, v := range pool.Check(true).Violations {
		s.t.Errorf("%s: afterwards: %v", s.label, v)
	}
	if err := pool.Close(); err != nil {
		s.t.Fatalf("%s: afterwards: %v", s.label, err)
	}
}

func newStory(t testing.TB, seed uint64, label string, pages int) *story {
	s := &story{t: t, label: label, draw: rng.NewStream(seed, "story"), pages: make([]history, pages)}
	for i := range s.pages {
		s.pages[i].serials = []uint64{0}
	}
	return s
}

// TestEveryOperationFails fails each operation of a story once with EIO, then each with ENOSPC, then all operations
// from each one on.
func TestEveryOperationFails(t *testing.T) {
	cfg, layout := small()
	cfg.Frames = 12
	const pages = 150
	blank := device.NewMem(420 * device.Grain)
	format(t, layout, blank)
	whole := newStory(t, 1, "nothing fails", pages)
	dev := blank.Reopen()
	dev.SetFaults(device.Faults{})
	whole.run(dev, cfg, pages)
	if whole.errs > 0 {
		t.Fatalf("%d errors without a fault", whole.errs)
	}
	all := dev.Count()
	step := int64(23)
	switch {
	case raced:
		step = 199 // single-threaded: no races to find
	case patience.Long(t):
		step = 1
	}
	before := runtime.NumGoroutine()
	runs, errs := 0, 0
	for at := int64(1); at <= all; at += step {
		for _, f := range []device.Faults{{FailAt: at}, {FailAt: at, FailFull: true}, {FailFrom: at},
			{FailFrom: at, FailFull: true}} {
			s := newStory(t, 1, faultName(f), pages)
			dev := blank.Reopen()
			dev.SetFaults(f)
			s.run(dev, cfg, pages)
			s.after(dev.Reopen(), cfg)
			runs++
			errs += s.errs
		}
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines before, %d after", before, after)
	}
	t.Logf("%d operations, %d runs, %d errors to callers", all, runs, errs)
}

func faultName(f device.Faults) string { return fmt.Sprintf("%+v", f) }

// TestFaultsAtRandom fails random operations, of all kinds.
func TestFaultsAtRandom(t *testing.T) {
	cfg, layout := small()
	cfg.Frames = 12
	const pages = 150
	worlds := 60
	switch {
	case raced:
		worlds = 3
	case patience.Long(t):
		worlds = 2000
	}
	blank := device.NewMem(500 * device.Grain)
	format(t, layout, blank)
	errs := 0
	for seed := range uint64(worlds) {
		draw := rng.NewStream(seed, "faults")
		f := device.Faults{
			Seed: seed, ReadError: 0.02 * draw.Float64(), WriteError: 0.02 * draw.Float64(),
			Full: 0.01 * draw.Float64(), Short: 0.01 * draw.Float64(),
		}
		if draw.IntN(3) == 0 {
			f.FlushError = 0.01 * draw.Float64()
		}
		s := newStory(t, seed, "seed "+faultName(f), pages)
		dev := blank.Reopen()
		dev.SetFaults(f)
		s.run(dev, cfg, pages)
		errs += s.errs
		// A page that could not be read when it was moved is permanently damaged: reading it is an error and never
		// returns other content.
		pool, err := ctl.Open(cfg, dev.Reopen())
		if err != nil {
			t.Fatalf("%s: afterwards: %v", s.label, err)
		}
		b := make([]byte, ctl.Page)
		for i := range s.pages {
			switch err := pool.ReadAt(b, uint64(i)*ctl.Page); {
			case err == nil:
				s.possible(b, uint64(i), s.pages[i].floor)
			case !errors.Is(err, ctl.ErrDamaged):
				t.Fatalf("%s: afterwards: %v", s.label, err)
			}
		}
		for _, v := range pool.Check(false).Violations {
			t.Errorf("%s: afterwards: %v", s.label, v)
		}
		if err := pool.Close(); err != nil {
			t.Fatalf("%s: afterwards: %v", s.label, err)
		}
	}
	t.Logf("%d stories, %d errors to callers", worlds, errs)
}

// TestFailedFlush verifies that after a failed flush no write is issued and none is reported durable.
func TestFailedFlush(t *testing.T) {
	cfg, layout := small()
	dev := device.NewMem(500 * device.Grain)
	format(t, layout, dev)
	pool := open(t, cfg, dev)
	b := make([]byte, ctl.Page)
	b[0] = 1
	if err := pool.WriteAt(b, 0, true); err != nil {
		t.Fatal(err)
	}
	dev.SetFaults(device.Faults{FlushError: 1})
	if err := pool.WriteAt(b, ctl.Page, true); !errors.Is(err, ctl.ErrReadOnly) || !errors.Is(err, device.ErrIO) {
		t.Fatalf("a write whose flush failed: %v", err)
	}
	dev.SetFaults(device.Faults{})
	if err := pool.WriteAt(b, ctl.Page, true); !errors.Is(err, ctl.ErrReadOnly) {
		t.Fatalf("a write after a flush that failed: %v", err)
	}
	if err := pool.Sync(); !errors.Is(err, ctl.ErrReadOnly) {
		t.Fatalf("a flush after one that failed: %v", err)
	}
	if err := pool.ReadAt(b, 0); err != nil || b[0] != 1 {
		t.Fatalf("reading what was durable: %v", err)
	}
	if err := pool.Close(); !errors.Is(err, ctl.ErrReadOnly) {
		t.Fatalf("closing: %v", err)
	}
}

// TestDamage verifies that content which the medium lost, misplaced or never wrote yields an error, not data.
func TestDamage(t *testing.T) {
	cfg, layout := small()
	cfg.PutThrough = true
	write := func(f device.Faults, n int) (*device.Mem, *ctl.Pool) {
		dev := device.NewMem(500 * device.Grain)
		format(t, layout, dev)
		pool := open(t, cfg, dev)
		dev.SetFaults(f)
		b := make([]byte, ctl.Page)
		for i := range uint64(n) {
			serial++
			stamp(b, i, serial)
			if err := pool.WriteAt(b, i*ctl.Page, true); err != nil {
				t.Fatal(err)
			}
		}
		return dev, pool
	}
	b := make([]byte, ctl.Page)
	for _, c := range []struct {
		name string
		f    device.Faults
	}{{"lost", device.Faults{Lose: 4}}, {"misdirected", device.Faults{Misdirect: 4}}} {
		_, pool := write(c.f, 3)
		if err := pool.ReadAt(b, ctl.Page); !errors.Is(err, ctl.ErrDamaged) {
			t.Errorf("a %s write reads as %v", c.name, err)
		}
		if n := len(pool.Check(true).Violations); n == 0 {
			t.Errorf("a %s write is not found by a deep check", c.name)
		}
		if err := pool.ReadAt(b, 0); err != nil {
			t.Errorf("%s: the page before: %v", c.name, err)
		}
		// It can be overwritten; until then collection preserves it as damaged.
		if err := pool.WriteAt(b, ctl.Page, true); err != nil {
			t.Error(err)
		}
		if err := pool.ReadAt(b, ctl.Page); err != nil {
			t.Errorf("%s, written anew: %v", c.name, err)
		}
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	}
	dev, pool := write(device.Faults{}, 40)
	shape := pool.Shape()
	first := shape.Start(0)
	for g := first; g < first+shape.AllSegments()*int64(shape.Pages+1); g++ {
		dev.Corrupt(g*device.Grain + 77)
	}
	for i := range uint64(40) {
		if err := pool.ReadAt(b, i*ctl.Page); !errors.Is(err, ctl.ErrDamaged) {
			t.Fatalf("page %d of a rotten medium reads as %v", i, err)
		}
	}
	// Collection moves damaged pages, and they stay damaged.
	draw := rng.NewStream(3, "damage")
	for range 2000 {
		if err := pool.WriteAt(b, uint64(40+draw.IntN(200))*ctl.Page, false); err != nil {
			t.Fatal(err)
		}
	}
	if pool.Stats().Moved == 0 {
		t.Fatal("nothing was moved")
	}
	for i := range uint64(40) {
		if err := pool.ReadAt(b, i*ctl.Page); !errors.Is(err, ctl.ErrDamaged) {
			t.Fatalf("page %d of a rotten medium reads as %v after it was moved", i, err)
		}
	}
	if n := len(pool.Check(true).Violations); n < 40 {
		t.Errorf("a deep check finds %d violations, not all 40", n)
	}
	if err := pool.Close(); err != nil {
		t.Fatal(err)
	}
	pool = open(t, cfg, dev.Reopen())
	for i := range uint64(40) {
		if err := pool.ReadAt(b, i*ctl.Page); !errors.Is(err, ctl.ErrDamaged) {
			t.Fatalf("page %d of a rotten medium reads as %v after it was opened again", i, err)
		}
	}
	if err := pool.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFull fills a pool to its capacity: one more page is refused, existing pages can be overwritten, and a trim frees
// space.
func TestFull(t *testing.T) {
	cfg, layout := small()
	dev := device.NewMem(500 * device.Grain)
	shape := format(t, layout, dev)
	pool := open(t, cfg, dev)
	b := make([]byte, ctl.Page)
	for i := range uint64(shape.Capacity) {
		serial++
		stamp(b, i, serial)
		if err := pool.WriteFrom(b, i*ctl.Page, false, heat.Steady); err != nil {
			t.Fatal(err)
		}
	}
	far := uint64(1) << 63
	if err := pool.WriteAt(b, far, true); !errors.Is(err, ctl.ErrFull) {
		t.Fatalf("one page too many: %v", err)
	}
	draw := rng.NewStream(1, "full")
	for range 3000 {
		if err := pool.WriteAt(b, uint64(draw.IntN(shape.Capacity))*ctl.Page, draw.IntN(20) == 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := pool.Discard(5*ctl.Page, ctl.Page, false); err != nil {
		t.Fatal(err)
	}
	if err := pool.WriteAt(b[:7], far+9, true); err != nil {
		t.Fatal(err)
	}
	clean(t, pool, true)
	if used, capacity := pool.Use(); used != capacity {
		t.Errorf("%d of %d pages are in use", used, capacity)
	}
	if err := pool.WriteAt(b, ^uint64(0)-100, false); !errors.Is(err, ctl.ErrRange) {
		t.Errorf("beyond the end: %v", err)
	}
	if err := pool.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestLostGrain damages each grain of the superblocks, checkpoints and log of a crashed pool, one at a time. Open
// recovers the newest state. The one exception is the last log page, which cannot be distinguished from a page that
// was being written: the pool is as it was before that.
func TestLostGrain(t *testing.T) {
	cfg, layout := small()
	dev := device.NewMem(500 * device.Grain)
	shape := format(t, layout, dev)
	pool := open(t, cfg, dev)
	const pages = 60
	want := make([]uint64, pages)
	b := make([]byte, ctl.Page)
	write := func(n int) {
		draw := rng.NewStream(uint64(n), "pages")
		for range n {
			i := uint64(draw.IntN(pages))
			serial++
			stamp(b, i, serial)
			if err := pool.WriteAt(b, i*ctl.Page, true); err != nil {
				t.Fatal(err)
			}
			want[i] = serial
		}
	}
	for _, n := range []int{3, 55, 41} { // before the pool's first own checkpoint, after several, and a little later
		write(n)
		opened, refused, older, named := 0, 0, 0, 0
		for g := range shape.Start(0) {
			left := dev.Reopen()
			left.Corrupt(g*device.Grain + 100)
			left.Corrupt(g*device.Grain + 30)
			found, err := ctl.Open(cfg, left)
			if err != nil {
				refused++
				continue
			}
			opened++
			lost := found.Found().Lost
			if len(lost) > 1 || len(lost) == 1 && (lost[0].Device != 0 || lost[0].Offset != g*device.Grain) {
				t.Errorf("grain %d: reported as lost are %v", g, lost)
			}
			named += len(lost)
			old := false
			for i := range uint64(pages) {
				if err := found.ReadAt(b, i*ctl.Page); err != nil {
					t.Fatalf("grain %d: %v", g, err)
				}
				s, err := serialOf(b, i)
				if err != nil {
					t.Fatal(err)
				}
				old = old || s != want[i]
			}
			if old {
				older++
			}
			if err := found.Close(); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("%d opened, %d refused, %d as they were before the last write; %d named what was lost", opened, refused,
			older, named)
		// The two superblocks, and the checkpoint in force.
		if refused > 0 || older > 1 || named < 3 {
			t.Errorf("%d opened, %d refused, %d as they were before", opened, refused, older)
		}
	}
	if err := pool.Close(); err != nil {
		t.Fatal(err)
	}
}
