package ctl

import (
	"strings"
	"sync"
	"testing"

	"farflash/flash/device"
	"farflash/policy/ftl"
)

// unreadable is a device on which the next reads of a place fail.
type unreadable struct {
	*device.Mem
	mu    sync.Mutex
	at    int64
	fails int
}

func (d *unreadable) Submit(ops ...*device.Op) {
	for _, op := range ops {
		d.mu.Lock()
		fail := d.fails > 0 && op.Kind == device.Read && op.Offset <= d.at && d.at < op.Offset+int64(len(op.Buf))
		if fail {
			d.fails--
		}
		d.mu.Unlock()
		if fail {
			op.Finish(device.ErrIO)
			continue
		}
		d.Mem.Submit(op)
	}
}

// filled returns a pool that is full but for a tenth, with its map on the device too if that is large.
func filled(t *testing.T, retries int, grains int64) (*Pool, *unreadable) {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Frames, cfg.Chunk, cfg.Moves, cfg.Map, cfg.Retries = 32, 4, 4, 1, retries
	layout := Layout{Segment: 16, OverProvision: 0.3, LogPages: 32}
	layout.UUID[0] = 1
	dev := &unreadable{Mem: device.NewMem(grains * device.Grain)}
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
	pages := uint64(shape.Capacity) * 9 / 10
	for i := range pages {
		page := i * 101 % pages // in an order that the map cannot fold
		b[0], b[1] = byte(page), byte(page>>8)
		if err := p.WriteAt(b, page*Page, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Sync(); err != nil {
		t.Fatal(err)
	}
	return p, dev
}

// TestCheckSeesPlaces corrupts the state of the places of the map, one item at a time: Check reports each.
func TestCheckSeesPlaces(t *testing.T) {
	for _, x := range []struct {
		name       string
		harm       func(c *core)
		path, what string
	}{
		{"nothing", func(*core) {}, "", ""},
		{"a count of places", func(c *core) { c.stores[0].n++ }, "segment ", "places of the map; the count is "},
		{"a place that nothing uses", func(c *core) {
			s := &c.stores[0]
			for k := range c.shape.Pages {
				if s.used[k>>6]>>(k&63)&1 == 0 {
					s.used[k>>6] |= 1 << (k & 63)
					s.n++
					return
				}
			}
			panic("the segment is full")
		}, "pool", "the map uses "},
		{"a place that is used twice", func(c *core) {
			c.homes.from(0, func(leaf uint64) bool {
				at, _, _ := c.homes.get(leaf)
				c.superseded = append(c.superseded, at)
				return false
			})
		}, "place ", "is used twice by the map"},
		{"a place in a segment of pages", func(c *core) {
			for s := range c.segments {
				if c.storeOf(int64(s)) == nil {
					c.superseded = append(c.superseded, ftl.PPA(s*c.shape.Pages))
					return
				}
			}
		}, "place ", "is not its own"},
		{"a page among the map", func(c *core) {
			c.ledger.SetLive(ftl.PPA(c.stores[0].segment*int64(c.shape.Pages)), true)
		}, "segment ", "has pages beside the map"},
	} {
		p, _ := filled(t, 0, 3000)
		if len(p.core.stores) == 0 {
			t.Fatal("no part of the map is stored")
		}
		x.harm(p.core)
		found := x.what == ""
		list := p.Check(false).Violations
		for _, v := range list {
			found = found || x.what != "" && strings.HasPrefix(v.Path, x.path) && strings.Contains(v.What, x.what)
		}
		if !found || x.what == "" && len(list) > 0 {
			t.Errorf("%s: %v, not %s: %s", x.name, list, x.path, x.what)
		}
	}
}

// TestMoveRetries fails the read of a page that collection moves as often as it is retried, which stays invisible, and
// once more, which loses the page.
func TestMoveRetries(t *testing.T) {
	const page = 7
	for _, retries := range []int{0, 2} {
		for more := range 2 {
			p, dev := filled(t, retries, 500)
			p.lock()
			at := p.core.Lookup(page)
			_, offset := p.core.at(at)
			p.leave()
			dev.mu.Lock()
			dev.at, dev.fails = offset, retries+more
			dev.mu.Unlock()
			b := make([]byte, Page)
			moved := false
			for i := uint64(0); i < 20_000 && !moved; i++ {
				other := i * 101 % 200
				if other == page {
					continue
				}
				b[0], b[1], b[2] = byte(other), byte(other>>8), byte(i)
				if err := p.WriteAt(b, other*Page, false); err != nil {
					t.Fatal(err)
				}
				p.lock()
				moved = p.core.Lookup(page) != at
				p.leave()
			}
			dev.mu.Lock()
			left := dev.fails
			dev.mu.Unlock()
			if !moved || left > 0 {
				t.Fatalf("page %d moved: %v; %d failures are left", page, moved, left)
			}
			err := p.ReadAt(b, page*Page)
			if lost := p.Stats().Damaged > 0; lost != (more > 0) || (err != nil) != (more > 0) ||
				more == 0 && (b[0] != page || b[1] != 0) {
				t.Errorf("%d retries, %d failures: lost %v, %v", retries, retries+more, lost, err)
			}
			_ = p.Close() // reports the loss
		}
	}
}
