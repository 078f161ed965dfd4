package ctl_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"farflash/flash/ctl"
	"farflash/flash/ctl/media"
	"farflash/flash/ctl/remains"
	"farflash/flash/device"
	"farflash/internal/patience"
	"farflash/numeric/rng"
)

// wreck is a pool whose every change was durable when it was made, and the content that each page has had since.
type wreck struct {
	t     *testing.T
	cfg   ctl.Config
	shape media.Shape
	dev   *device.Mem
	pool  *ctl.Pool
	draw  rng.Stream
	// had has the contents of each page in order: a serial number, 0 for zeros.
	had [][]uint64
}

const wreckPages = 70

// patient lets an examination go on.
func patient(int64, int64) error { return nil }

func newWreck(t *testing.T, seed uint64, layout ctl.Layout) *wreck {
	w := &wreck{t: t, draw: rng.NewStream(seed, "wreck"), had: make([][]uint64, wreckPages)}
	w.cfg, _ = small()
	w.dev = device.NewMem(smallGrains * device.Grain)
	w.shape = format(t, layout, w.dev)
	w.pool = open(t, w.cfg, w.dev)
	for i := range w.had {
		w.had[i] = []uint64{0}
	}
	return w
}

// mark fills a page with nothing but its serial number, so that it can be recognised wherever it was moved.
func mark(b []byte, serial uint64) {
	for i := 0; i < len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], serial*uint64(i+1))
	}
}

func marked(b []byte) uint64 {
	var want [ctl.Page]byte
	s := binary.LittleEndian.Uint64(b)
	if mark(want[:], s); s != 0 && [ctl.Page]byte(b) != want {
		return ^uint64(0)
	}
	return s
}

func (w *wreck) now(i uint64) uint64 { return w.had[i][len(w.had[i])-1] }

// change makes n changes.
func (w *wreck) change(n int) {
	b := make([]byte, ctl.Page)
	for range n {
		i, k := uint64(w.draw.IntN(wreckPages)), w.draw.IntN(20)
		if w.draw.IntN(3) == 0 {
			i %= 7
		}
		switch {
		case k == 0:
			if err := w.pool.Discard(i*ctl.Page, ctl.Page, true); err != nil {
				w.t.Fatal(err)
			}
			w.had[i] = append(w.had[i], 0)
		case k == 1:
			to := (i + 1 + uint64(w.draw.IntN(wreckPages-1))) % wreckPages
			done := make(chan error, 1)
			if err := w.pool.Remap([]ctl.Step{{From: i, To: to, Count: 1}}, true,
				func(err error) { done <- err }); err != nil {
				w.t.Fatal(err)
			}
			if err := <-done; err != nil {
				w.t.Fatal(err)
			}
			w.had[to] = append(w.had[to], w.now(i))
			w.had[i] = append(w.had[i], 0)
		default:
			serial++
			mark(b, serial)
			if err := w.pool.WriteAt(b, i*ctl.Page, true); err != nil {
				w.t.Fatal(err)
			}
			w.had[i] = append(w.had[i], serial)
		}
	}
}

// outcome counts the pages of an examined pool.
type outcome struct{ newest, doubtful, older, zero, lost int }

func (o *outcome) add(x outcome) {
	o.newest, o.doubtful, o.older = o.newest+x.newest, o.doubtful+x.doubtful, o.older+x.older
	o.zero, o.lost = o.zero+x.zero, o.lost+x.lost
}

// examine verifies that each page has its newest content, or is named: as lost, or as doubtful with an earlier
// content. If the log ends at a damaged page, anything may be missing, because it cannot be distinguished from a page
// that was being written.
func (w *wreck) examine(label string, x *ctl.Examined) (o outcome) {
	w.t.Helper()
	bad := map[uint64]bool{}
	all, err := x.Read(patient)
	if err != nil {
		w.t.Fatalf("%s: %v", label, err)
	}
	for _, b := range all {
		bad[b.Page] = true
	}
	b := make([]byte, ctl.Page)
	for i := range uint64(wreckPages) {
		if err := x.ReadAt(b, i*ctl.Page); bad[i] {
			if o.lost++; !errors.Is(err, ctl.ErrDamaged) {
				w.t.Fatalf("%s: page %d is lost, but reads as %v", label, i, err)
			}
			continue
		} else if err != nil {
			w.t.Fatalf("%s: %v", label, err)
		}
		is, known := marked(b), false
		for _, s := range w.had[i] {
			known = known || s == is
		}
		switch {
		case is == w.now(i):
			if o.newest++; !x.Certain(i) {
				o.doubtful++
			}
		case x.Certain(i) && len(x.Tail) == 0:
			w.t.Fatalf("%s: page %d is %d, of %v, without being named (%+v)", label, i, is, w.had[i], x.Damage)
		case is == 0:
			o.zero++
		case !known && !w.moved(is):
			w.t.Fatalf("%s: page %d is %d, which nobody wrote", label, i, is)
		default:
			o.older++
		}
	}
	for _, v := range x.Check(false).Violations {
		w.t.Errorf("%s: %v", label, v)
	}
	return o
}

// moved reports whether any page has had a content.
func (w *wreck) moved(serial uint64) bool {
	for _, h := range w.had {
		for _, s := range h {
			if s == serial {
				return true
			}
		}
	}
	return false
}

// metadata returns the grains of the pool's own records.
func (w *wreck) metadata() []int64 {
	var all []int64
	for g := range w.shape.Start(0) {
		all = append(all, g)
	}
	for i := range w.shape.AllSegments() {
		_, at := w.shape.Place(i)
		all = append(all, at/device.Grain+int64(w.shape.Pages))
	}
	return all
}

// ruin damages a grain so that no sector of it can be believed.
func ruin(dev *device.Mem, grain int64) {
	for _, at := range []int64{30, 100, 2000, 4000} {
		dev.Corrupt(grain*device.Grain + at)
	}
}

// TestRuin damages each page of a pool's records, and each two neighbours, when the pool is young, old, and closed.
func TestRuin(t *testing.T) {
	_, layout := small()
	type step struct {
		changes int
		close   bool
	}
	steps := []step{{12, false}, {400, false}, {437, true}}
	if patience.Long(t) {
		steps = append(steps, step{90, false}, step{60, true}, step{1000, false}, step{700, false})
	}
	for seed, step := range steps {
		w := newWreck(t, uint64(seed), layout)
		w.change(step.changes)
		left := w.dev.Reopen()
		if step.close {
			if err := w.pool.Close(); err != nil {
				t.Fatal(err)
			}
			left = w.dev.Reopen()
		}
		records := w.metadata()
		for pair := range 2 {
			var all outcome
			refused := 0
			for k := range len(records) - pair {
				dev := left.Reopen()
				for _, g := range records[k : k+1+pair] {
					ruin(dev, g)
				}
				label := fmt.Sprintf("%+v: grains %v", step, records[k:k+1+pair])
				x, err := ctl.Examine(w.cfg, patient, dev)
				if k == 0 && pair == 1 && step.changes < 50 && errors.Is(err, remains.ErrUnknown) {
					continue // no segment is full yet, and the length of the log is not the default
				}
				if err != nil {
					t.Fatalf("%s: %v", label, err)
				}
				if x.Refused != nil {
					refused++
				}
				o := w.examine(label, x)
				if pair == 0 && (o.older+o.zero > 1 || o.older+o.zero > 0 && len(x.Tail) == 0 || o.lost > 0 ||
					x.Refused != nil) {
					t.Errorf("%s: %+v", label, o)
				}
				all.add(o)
				if ops, _ := dev.Operations(device.Write); ops > 0 {
					t.Fatalf("%s: %d writes", label, ops)
				}
				if err := x.Repair(nil, patient); err != nil {
					t.Fatalf("%s: repairing: %v", label, err)
				}
				if err := x.Close(); err != nil {
					t.Fatal(err)
				}
				p := open(t, w.cfg, dev.Reopen())
				if r := p.Check(true); len(r.Violations) > 0 || len(p.Found().Lost) > 0 {
					t.Fatalf("%s: after the repair, %v and %v", label, r.Violations, p.Found().Lost)
				}
				if err := p.Close(); err != nil {
					t.Fatal(err)
				}
			}
			t.Logf("%+v, %d damaged: %d of %d refused by Open; pages %+v", step, 1+pair, refused, len(records), all)
		}
	}
}

// parts returns groups of records that are damaged together, by name.
func (w *wreck) parts() map[string][]int64 {
	span := func(from, n int64) (all []int64) {
		for g := range n {
			all = append(all, from+g)
		}
		return all
	}
	one, two, log, end := w.shape.CheckpointStart(0), w.shape.CheckpointStart(1), w.shape.LogStart(), w.shape.Start(0)
	join := func(all ...[]int64) (out []int64) {
		for _, a := range all {
			out = append(out, a...)
		}
		return out
	}
	var summaries []int64
	for _, g := range w.metadata() {
		if g >= end {
			summaries = append(summaries, g)
		}
	}
	return map[string][]int64{
		"both headers":     join(span(one, 2), span(two, 2)),
		"both checkpoints": span(one, log-one),
		"both states of segments": {one + media.Headers, two + media.Headers, one + media.Headers + 1,
			two + media.Headers + 1},
		"entries of both": {one + media.Headers + 1, two + media.Headers + 1, one + media.Headers + 2,
			two + media.Headers + 2},
		"the log":                span(log, end-log),
		"half of the log":        span(log, (end-log)/2),
		"the other half":         span(log+(end-log)/2, (end-log)/2),
		"three of the log":       span(log+5, 3),
		"headers and log":        join(span(one, 2), span(two, 2), span(log+3, 2)),
		"checkpoints and log":    join(span(one, log-one), span(log+9, 4)),
		"summaries":              summaries,
		"checkpoints, summaries": join(span(one, log-one), summaries),
	}
}

// TestRuins damages whole parts of a pool's records. The pages that come back are those that the remains have records
// of; none comes back out of date without being named.
func TestRuins(t *testing.T) {
	_, layout := small()
	sums := map[string]outcome{}
	for seed := range uint64(12) {
		w := newWreck(t, 100+seed, layout)
		w.change(int(20 + 60*seed))
		for name, grains := range w.parts() {
			dev := w.dev.Reopen()
			for _, g := range grains {
				ruin(dev, g)
			}
			label := fmt.Sprintf("seed %d, %s", seed, name)
			x, err := ctl.Examine(w.cfg, patient, dev)
			if err != nil {
				t.Errorf("%s: %v", label, err)
				continue
			}
			o := w.examine(label, x)
			sum := sums[name]
			sum.add(o)
			sums[name] = sum
			if err := x.Repair(nil, patient); err != nil {
				t.Fatalf("%s: repairing: %v", label, err)
			}
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
			p := open(t, w.cfg, dev.Reopen())
			if r := p.Check(true); len(r.Violations) > o.lost {
				t.Fatalf("%s: after the repair, %v", label, r.Violations)
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, o := range sums {
		t.Logf("%-24s %+v", name, o)
	}
}

// contents returns what each page reads as; a page that cannot be read is ^0.
func contents(x *ctl.Examined) []uint64 {
	b, out := make([]byte, ctl.Page), make([]uint64, wreckPages)
	for i := range out {
		if out[i] = ^uint64(0); x.ReadAt(b, uint64(i)*ctl.Page) == nil {
			out[i] = marked(b)
		}
	}
	return out
}

// TestRepairCut cuts the power at operations of a repair (FARFLASH_LONG: at each), and again at some operation of the
// repair after that. The pool is afterwards as it was examined first, or repaired.
func TestRepairCut(t *testing.T) {
	_, layout := small()
	cuts, interrupted, seeds, stride := 0, 0, uint64(1), int64(30)
	if patience.Long(t) {
		seeds, stride = 6, 1
	}
	for seed := range seeds {
		w := newWreck(t, 200+seed, layout)
		w.change(int(150 + 100*seed))
		draw := rng.NewStream(seed, "cuts")
		one, two := w.shape.CheckpointStart(0)+media.Headers, w.shape.CheckpointStart(1)+media.Headers
		for _, x := range []struct {
			name   string
			grains []int64
		}{
			{"superblock", []int64{1}}, {"old checkpoint", []int64{one, one + 1}},
			{"new checkpoint", []int64{two, two + 1}}, {"both", []int64{one, one + 2, two, two + 1}},
			{"headers", []int64{one - 1, one - 2, two - 1, two - 2}},
			{"header and body", []int64{one - 1, one - 2, one + 1, two - 1, two - 2, two, two + 2}},
			{"hole", []int64{two + 1, one + 1, w.shape.LogStart() + 3, w.shape.LogStart() + 4, two + 2, one + 2}},
		} {
			name, grains := x.name, x.grains
			left := w.dev.Reopen()
			for _, g := range grains {
				ruin(left, g)
			}
			begin := func(dev *device.Mem, label string) *ctl.Examined {
				x, err := ctl.Examine(w.cfg, patient, dev)
				if err != nil {
					t.Fatalf("%s: %v", label, err)
				}
				return x
			}
			want := contents(begin(left, name))
			for k := int64(1); ; k += 1 + draw.IntN(stride) {
				label := fmt.Sprintf("seed %d, %s, cut at %d", seed, name, k)
				dev, failed := left, false
				for round := range 2 {
					dev = dev.Reopen()
					x := begin(dev, label)
					at := k
					if round > 0 {
						at = 1 + draw.IntN(k+10)
					}
					dev.SetFaults(device.Faults{FailFrom: at})
					if err := x.Repair(nil, patient); err != nil {
						failed = failed || round == 0
						interrupted++
					}
					dev = dev.Crash(&draw)
					cuts++
				}
				x := begin(dev, label)
				if is := contents(x); !slices.Equal(is, want) {
					t.Fatalf("%s: pages read\n%v; they were\n%v (%+v)", label, is, want, x.Damage)
				}
				if err := x.Repair(nil, patient); err != nil {
					t.Fatalf("%s: repairing: %v", label, err)
				}
				p := open(t, w.cfg, dev.Reopen())
				if r := p.Check(true); len(r.Violations) > 0 {
					t.Fatalf("%s: after the repair, %v", label, r.Violations)
				}
				if !failed {
					break
				}
			}
		}
	}
	t.Logf("%d cuts, %d repairs interrupted", cuts, interrupted)
}

// TestNewestUnreadable has a recovery that must use the older checkpoint, because the newest has lost two grains of one
// group, interrupted at each operation. The grains that it writes over those of the newest must not be taken for part
// of that.
func TestNewestUnreadable(t *testing.T) {
	_, layout := small()
	for seed := range uint64(3) {
		w := newWreck(t, 300+seed, layout)
		w.change(int(60 + 7*seed))
		draw := rng.NewStream(seed, "newest")
		tried := 0
		for slot := range 2 {
			for _, pair := range [][2]int64{{0, 1}, {0, 2}, {1, 2}} {
				left := w.dev.Reopen()
				for _, g := range pair {
					ruin(left, w.shape.CheckpointStart(slot)+media.Headers+g)
				}
				if p, err := ctl.Open(w.cfg, left.Reopen()); err != nil {
					continue // the older one does not reach far enough
				} else if err := p.Close(); err != nil {
					t.Fatal(err)
				}
				for k := int64(1); k < 60; k++ {
					dev := left.Reopen()
					dev.SetFaults(device.Faults{FailFrom: k})
					if p, err := ctl.Open(w.cfg, dev); err == nil && p.ReadOnly() == nil {
						break
					}
					tried++
					dev = dev.Crash(&draw)
					p, err := ctl.Open(w.cfg, dev)
					if err != nil {
						t.Fatalf("seed %d, slot %d, cut at %d: %v", seed, slot, k, err)
					}
					b := make([]byte, ctl.Page)
					for i := range uint64(wreckPages) {
						if err := p.ReadAt(b, i*ctl.Page); err != nil || marked(b) != w.now(i) {
							t.Fatalf("seed %d, slot %d, cut at %d: page %d is %d, %v; it was %d", seed, slot, k, i,
								marked(b), err, w.now(i))
						}
					}
				}
			}
		}
		t.Logf("%d interrupted", tried)
	}
}

// TestDamageAtRandom damages 1 % of all pages of a pool, wherever they are. Whatever is left is a pool after the
// repair.
func TestDamageAtRandom(t *testing.T) {
	_, layout := small()
	for i := range uint64(2) { // new pools cost more than damage
		w := newWreck(t, 400+i, layout)
		w.change(int(130 + 250*i))
		left, all, refused, tried := w.dev.Reopen(), outcome{}, 0, 0
		rapid.Check(t, func(rt *rapid.T) {
			dev := left.Reopen()
			grains := rapid.SliceOfNDistinct(rapid.Int64Range(0, smallGrains-1), 1, 1+smallGrains/100,
				rapid.ID).Draw(rt, "grains")
			for _, g := range grains {
				ruin(dev, g)
			}
			x, err := ctl.Examine(w.cfg, patient, dev)
			if err != nil {
				if !slices.Contains(grains, 0) || !slices.Contains(grains, 1) {
					rt.Fatal(err)
				}
				return
			}
			if tried++; x.Refused != nil {
				refused++
			}
			o := w.examine(fmt.Sprint(grains), x)
			all.add(o)
			var drop []uint64
			bad, err := x.Read(patient)
			for _, b := range bad {
				drop = append(drop, b.Page)
			}
			if err = errors.Join(err, x.Repair(drop, patient), x.Close()); err != nil {
				rt.Fatal(err)
			}
			p := open(t, w.cfg, dev.Reopen())
			if r := p.Check(true); len(r.Violations) > 0 || len(p.Found().Lost) > 0 {
				rt.Fatalf("after the repair, %v and %v", r.Violations, p.Found().Lost)
			}
			if err := p.Close(); err != nil {
				rt.Fatal(err)
			}
		})
		t.Logf("%d tried, %d refused by Open; pages %+v", tried, refused, all)
	}
}

// TestNoSuperblock has a pool of three devices lose both superblocks of one. Its place follows from the others, but a
// device that has no other record of the pool either is refused, because a repair would write to it.
func TestNoSuperblock(t *testing.T) {
	cfg, layout := small()
	devs := []*device.Mem{device.NewMem(smallGrains * device.Grain), device.NewMem(200 * device.Grain),
		device.NewMem(300 * device.Grain)}
	format(t, layout, devices(devs)...)
	p := open(t, cfg, devices(devs)...)
	b := make([]byte, ctl.Page)
	for i := range uint64(1500) {
		mark(b, i+1)
		if err := p.WriteAt(b, i%200*ctl.Page, i%50 == 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range devs {
		left := []*device.Mem{devs[0].Reopen(), devs[1].Reopen(), devs[2].Reopen()}
		ruin(left[i], 0)
		ruin(left[i], 1)
		order := []device.Device{left[2], left[0], left[1]}
		if _, err := ctl.Open(cfg, order...); err == nil {
			t.Fatalf("device %d: opened", i)
		}
		x, err := ctl.Examine(cfg, patient, order...)
		if err != nil {
			t.Fatalf("device %d: %v", i, err)
		}
		if bad, err := x.Read(patient); err != nil || len(bad) > 0 ||
			len(x.Copies) != 2 {
			t.Errorf("device %d: %v, %v, %+v", i, bad, err, x.Damage)
		}
		if err := errors.Join(x.Repair(nil, patient), x.Close()); err != nil {
			t.Fatal(err)
		}
		p := open(t, cfg, left[0].Reopen(), left[1].Reopen(), left[2].Reopen())
		clean(t, p, true)
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		foreign := []device.Device{devs[0].Reopen(), devs[1].Reopen(), devs[2].Reopen()}
		foreign[i] = device.NewMem(devs[i].Size())
		if _, err := ctl.Examine(cfg, patient, foreign...); err == nil ||
			!strings.Contains(err.Error(), "any other record") {
			t.Errorf("device %d: of another pool: %v", i, err)
		}
	}
}

// TestRuinAfterCrash cuts the power while many operations are under way, on one to three devices, and damages pages of
// the records. A certain page has a content that it may have after the crash, and others one that they had.
func TestRuinAfterCrash(t *testing.T) {
	worlds := 6
	if patience.Long(t) {
		worlds = 300
	}
	tried, refused, doubtful := 0, 0, int64(0)
	for seed := range worlds {
		w := newWorld(t, 5000+uint64(seed))
		shape := w.pool.Shape()
		draw := rng.NewStream(uint64(seed), "ruin after a crash")
		for range 12 {
			for range 1 + draw.IntN(300) {
				w.act()
			}
			left := w.found(w.devs, draw.IntN(2) == 0)
			for range 1 + draw.IntN(5) {
				g := draw.IntN(shape.Start(0))
				ruin(left[0], g)
				if draw.IntN(2) == 0 {
					ruin(left[0], min(g+1, shape.Start(0)-1))
				}
			}
			label := fmt.Sprintf("world %d, after %d", seed, tried)
			x, err := ctl.Examine(w.cfg, patient, devices(left)...)
			if errors.Is(err, remains.ErrUnknown) || errors.Is(err, media.ErrForeign) && len(left) > 1 {
				continue // both superblocks
			}
			if err != nil {
				t.Fatalf("%s: %v", label, err)
			}
			if tried++; x.Refused != nil {
				refused++
			}
			doubtful += x.Doubtful
			w.plausible(label, x)
			bad, err := x.Read(patient)
			var drop []uint64
			for _, b := range bad {
				drop = append(drop, b.Page)
			}
			if err = errors.Join(err, x.Repair(drop, patient), x.Close()); err != nil {
				t.Fatalf("%s: repairing: %v", label, err)
			}
			var again []*device.Mem
			for _, m := range left {
				again = append(again, m.Reopen())
			}
			p := open(t, w.cfg, devices(again)...)
			if r := p.Check(true); len(r.Violations) > 0 || len(p.Found().Lost) > 0 {
				t.Fatalf("%s: after the repair, %v and %v", label, r.Violations, p.Found().Lost)
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
		}
		w.end()
	}
	t.Logf("%d tried, %d refused by Open, %d pages doubtful", tried, refused, doubtful)
}

// plausible verifies the pages of a world.
func (w *world) plausible(label string, x *ctl.Examined) {
	w.t.Helper()
	b := make([]byte, ctl.Page)
	for i := range w.pages {
		h := &w.pages[i]
		err := x.ReadAt(b, uint64(i)*ctl.Page)
		if errors.Is(err, ctl.ErrDamaged) {
			continue
		}
		s, mixed := serialOf(b, uint64(i))
		if err = errors.Join(err, mixed); err != nil {
			w.t.Fatalf("%s: %v", label, err)
		}
		possible := h.serials
		if x.Certain(uint64(i)) && len(x.Tail) == 0 {
			possible = h.serials[h.floor:]
		}
		if !slices.Contains(possible, s) && (s != 0 || x.Certain(uint64(i)) && len(x.Tail) == 0) {
			w.t.Fatalf("%s: page %d is %d, of %v, from number %d on (%+v)", label, i, s, h.serials, h.floor, x.Damage)
		}
	}
}
