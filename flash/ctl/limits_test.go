package ctl_test

import (
	"errors"
	"math"
	"testing"

	"farflash/flash/ctl"
	"farflash/flash/ctl/heat"
	"farflash/flash/ctl/media"
	"farflash/flash/device"
	"farflash/numeric/rng"
)

// TestLimits tests each limit of the settings from both sides.
func TestLimits(t *testing.T) {
	for name, x := range map[string]struct {
		set     func(c *ctl.Config, n float64)
		in, out []float64
	}{
		"frames": {func(c *ctl.Config, n float64) { c.Frames = int(n) }, []float64{8, 1 << 26},
			[]float64{-1, 0, 7, 1<<26 + 1}},
		"writes": {func(c *ctl.Config, n float64) { c.Writes = int(n) }, []float64{8, 1024},
			[]float64{-1, 0, 7, 1025}},
		"chunk":   {func(c *ctl.Config, n float64) { c.Chunk = int(n) }, []float64{1, 1024}, []float64{-1, 0, 1025}},
		"moves":   {func(c *ctl.Config, n float64) { c.Moves = int(n) }, []float64{1, 1024}, []float64{-1, 0, 1025}},
		"map":     {func(c *ctl.Config, n float64) { c.Map = int64(n) }, []float64{0, 1, 1 << 50}, []float64{-1}},
		"retries": {func(c *ctl.Config, n float64) { c.Retries = int(n) }, []float64{0, 100}, []float64{-1, 101}},
		"weight": {func(c *ctl.Config, n float64) { c.Heat.Weight = n }, []float64{1e-9, 1},
			[]float64{0, -0.1, 1.0001, math.NaN()}},
		// at most Warm, which is 1
		"hot":  {func(c *ctl.Config, n float64) { c.Heat.Hot = n }, []float64{0, 1}, []float64{-0.1, 1.0001}},
		"warm": {func(c *ctl.Config, n float64) { c.Heat.Warm = n }, []float64{0.07, 9}, []float64{0.0699, -1}},
	} {
		for _, n := range x.in {
			c := ctl.DefaultConfig()
			if x.set(&c, n); c.Validate() != nil {
				t.Errorf("%s %v: %v", name, n, c.Validate())
			}
		}
		for _, n := range x.out {
			c := ctl.DefaultConfig()
			if x.set(&c, n); c.Validate() == nil {
				t.Errorf("%s %v is taken", name, n)
			}
		}
	}
	for name, x := range map[string]struct {
		set     func(l *ctl.Layout, n float64)
		in, out []float64
	}{
		"over-provisioning": {func(l *ctl.Layout, n float64) { l.OverProvision = n }, []float64{0, 0.07, 10},
			[]float64{-0.01, 1000, math.NaN()}},
		"segment": {func(l *ctl.Layout, n float64) { l.Segment = int(n) }, []float64{16, 200},
			[]float64{0, -1}},
		"log": {func(l *ctl.Layout, n float64) { l.LogPages = int64(n) }, []float64{0, 64},
			[]float64{-1, 1e9}},
	} {
		for i, n := range append(x.in, x.out...) {
			_, l := small()
			x.set(&l, n)
			shape, err := l.Shape(8000 * device.Grain)
			if (err == nil) != (i < len(x.in)) {
				t.Errorf("%s %v: %v", name, n, err)
			}
			if err == nil && (shape.Capacity < 1 || shape.Capacity > shape.AllSegments()*int64(shape.Pages)) {
				t.Errorf("%s %v: %d pages in %d segments of %d", name, n, shape.Capacity, shape.AllSegments(),
					shape.Pages)
			}
		}
	}
}

// failing is a device on which a given number of writes to a range fail.
type failing struct {
	*device.Mem
	from, to int64
	left     int
}

func (f *failing) Submit(ops ...*device.Op) {
	for _, op := range ops {
		if f.left > 0 && op.Kind == device.Write && op.Offset >= f.from && op.Offset < f.to {
			f.left--
			op.Finish(device.ErrIO)
			continue
		}
		f.Mem.Submit(op)
	}
}

// TestRetries fails a log page as often as it is retried, which stays invisible, and once more, which makes the pool
// read-only. It does the same for data pages, which are written elsewhere and counted as rewritten.
func TestRetries(t *testing.T) {
	for _, retries := range []int{0, 1, 3} {
		for _, x := range []struct {
			name  string
			where func(s media.Shape) (from, to int64)
			log   bool
		}{
			{"log", func(s media.Shape) (int64, int64) {
				return s.LogStart() * ctl.Page, (s.LogStart() + s.LogPages) * ctl.Page
			}, true},
			{"data", func(s media.Shape) (int64, int64) { return s.Start(0) * ctl.Page, math.MaxInt64 }, false},
		} {
			for more := range 2 {
				cfg, layout := small()
				cfg.Retries = retries
				mem := device.NewMem(smallGrains * device.Grain)
				shape := format(t, layout, mem)
				dev := &failing{Mem: mem}
				dev.from, dev.to = x.where(shape)
				p := open(t, cfg, dev)
				before := p.Stats()
				dev.left = retries + more
				b := []byte{9}
				err := p.WriteAt(b, 100, true)
				s := p.Stats().Sub(before)
				switch {
				case (err == nil) != (more == 0):
					t.Errorf("%s, %d retries, %d failures: %v", x.name, retries, retries+more, err)
				case more > 0 && !errors.Is(err, device.ErrIO):
					t.Errorf("%s: %v does not say why", x.name, err)
				case x.log && (p.ReadOnly() != nil) != (more > 0):
					t.Errorf("%s: read-only since %v", x.name, p.ReadOnly())
				case !x.log && p.ReadOnly() != nil:
					t.Errorf("%s: read-only since %v", x.name, p.ReadOnly())
				case !x.log && s.Rewritten != int64(retries):
					t.Errorf("%s, %d retries: %d pages were written once more", x.name, retries, s.Rewritten)
				case x.log && more == 0 && s.Log != int64(1+retries):
					t.Errorf("%s, %d retries: %d pages of the log were written", x.name, retries, s.Log)
				}
				dev.left = 0
				if more == 0 {
					clean(t, p, true)
				}
				_ = p.Close() // may be read-only
			}
		}
	}
}

// TestTogetherRefused requests pages together, some of which must be refused: each request gets its own result.
func TestTogetherRefused(t *testing.T) {
	cfg, layout := small()
	dev := device.NewMem(smallGrains * device.Grain)
	format(t, layout, dev)
	p := open(t, cfg, dev)
	ask := func() map[uint64]error {
		got := map[uint64]error{}
		var wants []ctl.Want
		for _, page := range []uint64{media.MaxLBA, 1, media.MaxLBA + 5, 2, 1<<64 - 1, 3} {
			wants = append(wants, ctl.Want{Page: page, Mode: ctl.Reading, Fn: func(r ctl.Ref, err error) {
				if _, twice := got[page]; twice || r.Page != page {
					t.Errorf("page %d is answered twice, or as %d", page, r.Page)
				}
				if got[page] = err; err == nil {
					p.Put(r, ctl.Kept, heat.Auto, nil)
				}
			}})
		}
		p.GetAll(0, wants)
		return got
	}
	for page, err := range ask() {
		if page < 4 && err != nil || page > 4 && !errors.Is(err, ctl.ErrRange) {
			t.Errorf("page %d: %v", page, err)
		}
	}
	if n := len(ask()); n != 6 {
		t.Errorf("%d of 6 are answered", n)
	}
	clean(t, p, true)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	got := ask()
	for page, err := range got {
		if page < 4 && !errors.Is(err, ctl.ErrClosed) || page > 4 && !errors.Is(err, ctl.ErrRange) || len(got) != 6 {
			t.Errorf("page %d of a closed pool: %v", page, err)
		}
	}
}

// TestDamageCounted verifies that damaged pages found by collection are counted once per move.
func TestDamageCounted(t *testing.T) {
	cfg, layout := small()
	cfg.PutThrough = true
	dev := device.NewMem(smallGrains * device.Grain)
	shape := format(t, layout, dev)
	p := open(t, cfg, dev)
	b := make([]byte, ctl.Page)
	for i := range uint64(40) {
		if err := p.WriteAt(b, i*ctl.Page, true); err != nil {
			t.Fatal(err)
		}
	}
	first := shape.Start(0)
	for g := first; g < first+shape.AllSegments()*int64(shape.Pages+1); g++ {
		dev.Corrupt(g*device.Grain + 77)
	}
	draw := rng.NewStream(3, "damage")
	for range 2000 {
		if err := p.WriteAt(b, uint64(40+draw.IntN(200))*ctl.Page, false); err != nil {
			t.Fatal(err)
		}
	}
	if s := p.Stats(); s.Moved < 40 || s.Damaged == 0 || s.Damaged > s.Moved {
		t.Errorf("%+v", s)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFullInMemory fills a pool and requests pages that have no content. Reading is granted. Writing the same page, now
// in memory but still without content, is refused immediately and leaves no trace. Existing pages can still be written.
func TestFullInMemory(t *testing.T) {
	cfg, layout := small()
	dev := device.NewMem(smallGrains * device.Grain)
	shape := format(t, layout, dev)
	p := open(t, cfg, dev)
	b := make([]byte, ctl.Page)
	for i := range uint64(shape.Capacity) {
		if err := p.WriteAt(b, i*ctl.Page, false); err != nil {
			t.Fatal(err)
		}
	}
	other := uint64(shape.Capacity) + 7
	var held ctl.Ref
	p.Get(other, ctl.Reading, func(r ctl.Ref, err error) {
		if err != nil {
			t.Fatal(err)
		}
		held = r
	})
	for _, mode := range []ctl.Mode{ctl.Writing, ctl.Whole} {
		for _, page := range []uint64{other, other + 1} { // in memory, and not in memory
			answers := 0
			p.Get(page, mode, func(r ctl.Ref, err error) {
				if answers++; !errors.Is(err, ctl.ErrFull) || r.Page != page {
					t.Errorf("page %d, mode %v: %v", page, mode, err)
				}
			})
			if answers != 1 {
				t.Errorf("page %d, mode %v: %d answers", page, mode, answers)
			}
		}
	}
	p.Put(held, ctl.Kept, heat.Auto, nil)
	if used, most := p.Use(); used != most || p.Holds(other) || p.Holds(other+1) {
		t.Errorf("%d of %d pages are in use", used, most)
	}
	if err := p.WriteAt(b, 3*ctl.Page, true); err != nil {
		t.Error(err)
	}
	if err := p.Discard(5*ctl.Page, ctl.Page, true); err != nil {
		t.Error(err)
	}
	if err := p.WriteAt(b, other*ctl.Page, true); err != nil {
		t.Errorf("there is room for one page: %v", err)
	}
	clean(t, p, true)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

// disturbed is a device that calls a function of the test before each read.
type disturbed struct {
	*device.Mem
	before func()
}

func (d *disturbed) Submit(ops ...*device.Op) {
	for _, op := range ops {
		if op.Owner == nil && op.Kind == device.Read && d.before != nil {
			d.before()
		}
		d.Mem.Submit(op)
	}
}

// TestFullUnderCheck overwrites pages of a full pool while a check reads each segment in turn and so keeps it from
// being erased. Writes that need its space wait for the check to finish, and none is refused.
func TestFullUnderCheck(t *testing.T) {
	cfg, layout := small()
	dev := &disturbed{Mem: device.NewMem(smallGrains * device.Grain)}
	shape := format(t, layout, dev)
	p := open(t, cfg, dev)
	b := make([]byte, ctl.Page)
	for i := range uint64(shape.Capacity) {
		if err := p.WriteAt(b, i*ctl.Page, false); err != nil {
			t.Fatal(err)
		}
	}
	draw := rng.NewStream(1, "under check")
	begun, ended, late := 0, 0, 0
	dev.before = func() {
		for range 200 {
			begun++
			p.Get(uint64(draw.IntN(shape.Capacity)), ctl.Whole, func(r ctl.Ref, err error) {
				if err != nil {
					t.Fatal(err)
				}
				clear(r.Data)
				p.Put(r, ctl.Durable, heat.Auto, func(err error) {
					if err != nil {
						t.Fatal(err)
					}
					ended++
				})
			})
			if ended < begun {
				late++
				return // the others would queue behind it
			}
		}
	}
	clean(t, p, true)
	dev.before = nil
	if err := p.Sync(); err != nil {
		t.Fatal(err)
	}
	if ended != begun || late == 0 {
		t.Errorf("%d of %d overwrites ended, %d of them waited", ended, begun, late)
	}
	clean(t, p, true)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}
