package ctl

import (
	"fmt"
	"strings"
	"testing"

	"farflash/flash/ctl/heat"
	"farflash/flash/ctl/table"
	"farflash/flash/device"
	"farflash/policy/ftl"
)

// TestCheckSees corrupts one item of a pool's memory at a time: Check reports each with its path, and reports no
// violation of an intact pool.
func TestCheckSees(t *testing.T) {
	begin := func() (*Pool, Ref) {
		cfg := DefaultConfig()
		cfg.Frames, cfg.Chunk = 16, 2
		layout := Layout{Segment: 8, OverProvision: 0.5, LogPages: 32}
		layout.UUID[0] = 1
		dev := device.NewMem(200 * device.Grain)
		shape, err := layout.Shape(dev.Size())
		if err != nil {
			t.Fatal(err)
		}
		if err := Format(shape, dev); err != nil {
			t.Fatal(err)
		}
		p, err := Open(cfg, dev)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, Page)
		for i := range uint64(40) {
			b[0] = byte(i)
			if err := p.WriteAt(b, i*Page, false); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Sync(); err != nil {
			t.Fatal(err)
		}
		var held Ref
		p.Get(1, Writing, func(r Ref, err error) {
			if err != nil {
				t.Fatal(err)
			}
			held = r
		})
		if r := p.Check(true); len(r.Violations) > 0 {
			t.Fatalf("a pool that is whole: %v", r.Violations)
		}
		return p, held
	}
	// mapped returns a page that is on the medium only, and its place.
	mapped := func(c *core) (page uint64, at ftl.PPA) {
		for page, slot := range c.table.Used(0, 100) {
			if w := slot.Load(); w.State() == table.OnMedium {
				return page, w.Place()
			}
		}
		t.Fatal("every page is in memory")
		return 0, 0
	}
	for _, x := range []struct {
		name string
		harm func(p *Pool, c *core, held Ref)
		path string // a substring of one violation's path
		what string
	}{
		{"a frame that is free and somebody's",
			func(_ *Pool, c *core,
				held Ref) {
				c.free = append(c.free, held.frame)
			}, "frame ", "is free, but belongs to page 1"},
		{"a frame that is free twice", func(_ *Pool, c *core, _ Ref) {
			at := int32(len(c.frames)) // a frame without a page
			c.frames = append(c.frames, frame{place: ftl.NoPPA})
			c.free = append(c.free, at, at)
		}, "frame 16", "is free twice"},
		{"a frame that is nobody's",
			func(_ *Pool, c *core,
				_ Ref) {
				c.frames = append(c.frames, frame{place: ftl.NoPPA})
			}, "frame 16", "is neither free nor in use"},
		{"a free frame that is waited for", func(_ *Pool, c *core, _ Ref) {
			c.frames = append(c.frames, frame{place: ftl.NoPPA, writing: 2})
			c.free = append(c.free, 16)
		}, "frame 16", "2 writes in flight and 0 waiters"},
		{"a frame of another page", func(_ *Pool, c *core, held Ref) { c.frames[held.frame].page = 77 },
			"page 1/frame", "belongs to page 77"},
		{"a page in a frame that there is not", func(_ *Pool, c *core, _ Ref) { c.frames = c.frames[:1] }, "page ",
			"of 1"},
		{"a page in no frame of its own", func(_ *Pool, c *core, held Ref) {
			other := (held.frame + 1) % 16
			c.frames[other].slot.Store(held.slot)
		}, "frame ", "which is"},
		{"a place that the mapping does not lead to", func(_ *Pool, c *core, _ Ref) {
			page, at := mapped(c)
			c.table.Make(page).Store(0)
			_ = at
		}, "segment ", "belongs to page"},
		{"a place that is not in use", func(_ *Pool, c *core, _ Ref) {
			_, at := mapped(c)
			c.ledger.SetLive(at, false)
		}, "page ", "the place is not in use"},
		{"a place of another page", func(_ *Pool, c *core, _ Ref) {
			_, at := mapped(c)
			c.ledger.SetOwner(at, 99)
		}, "page ", "the place belongs to page 99"},
		{"a place that the translation layer has not", func(p *Pool, c *core, _ Ref) {
			_, at := mapped(c)
			c.ftl.Invalidate(at, 0)
		}, "translation layer", "the count is"},

		{"a count of pages in use", func(_ *Pool, c *core, _ Ref) { c.used-- }, "pool",
			"in use or reserved; the count is 39"},
		{"more in use than there is room for", func(_ *Pool, c *core, _ Ref) { c.shape.Capacity = 10 }, "pool",
			"the capacity is 10"},
		{"a segment that was written beyond what was handed out", func(_ *Pool, c *core, _ Ref) {
			for i := range c.segments {
				if s := &c.segments[i]; s.opened {
					s.programmed = s.written + 1
					return
				}
			}
		}, "segment ", "were allocated"},
		{"a place that was not handed out", func(_ *Pool, c *core, _ Ref) {
			_, at := mapped(c)
			c.segments[c.segmentOf(at)].opened = false
		}, "segment ", "is in use, but was not allocated"},
		{"content that is not what was written", func(_ *Pool, c *core, _ Ref) {
			_, at := mapped(c)
			c.ledger.SetSum(at, c.sum(at)^1)
		}, "segment ", ErrDamaged.Error()},
		{"a summary that says otherwise", func(_ *Pool, c *core, _ Ref) {
			for i := range c.ledger.Places() {
				at := ftl.PPA(i)
				if c.ledger.IsLive(at) && int(c.segments[c.segmentOf(at)].programmed) == c.shape.Pages {
					c.ledger.SetSum(at, c.sum(at)^1)
					return
				}
			}
			t.Fatal("no segment is full")
		}, "segment ", "the summary has page"},
	} {
		t.Run(x.name, func(t *testing.T) {
			p, held := begin()
			x.harm(p, p.core, held)
			r := p.Check(true)
			for _, v := range r.Violations {
				if strings.Contains(v.Path, x.path) && strings.Contains(v.What, x.what) {
					return
				}
			}
			t.Errorf("it is not said of %q that %q: %v", x.path, x.what, r.Violations)
		})
	}
	p, held := begin()
	p.Put(held, Kept, heat.Auto, nil)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if text := (Violation{"page 1", "is lost"}).String(); text != fmt.Sprintf("%s: %s", "page 1", "is lost") {
		t.Error(text)
	}
}
