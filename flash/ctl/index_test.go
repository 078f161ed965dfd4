package ctl_test

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"farflash/flash/ctl"
	"farflash/flash/ctl/media"
	"farflash/flash/device"
	"farflash/numeric/rng"
)

// indexed is a pool with little memory for its map, and the versions of its pages: 0 for none.
type indexed struct {
	t      *testing.T
	cfg    ctl.Config
	dev    *device.Mem
	pool   *ctl.Pool
	pages  []uint32
	serial uint32
	draw   rng.Stream
}

func newIndexed(t *testing.T, pages int64, seed uint64) *indexed {
	layout := ctl.DefaultLayout()
	layout.UUID, layout.Segment = media.UUID{6}, int(pages>>6)
	x := &indexed{t: t, cfg: ctl.DefaultConfig(), dev: device.NewMem(pages * 3 / 2 * device.Grain),
		pages: make([]uint32, pages), draw: rng.NewStream(seed, "index")}
	format(t, layout, x.dev)
	x.cfg.Frames, x.cfg.Map = 64, pages*4
	x.pool = open(t, x.cfg, x.dev)
	return x
}

func (x *indexed) write(page uint64) {
	x.t.Helper()
	x.serial++
	x.pages[page] = x.serial
	b := make([]byte, ctl.Page)
	binary.LittleEndian.PutUint64(b, uint64(x.serial))
	if err := x.pool.WriteAt(b, page*ctl.Page, false); err != nil {
		x.t.Fatal(err)
	}
}

// change writes, trims and moves pages: some in order, others not.
func (x *indexed) change(n int) {
	x.t.Helper()
	for range n {
		all := int64(len(x.pages))
		count := 1 + x.draw.IntN(all/32)
		first := x.draw.IntN(all - count)
		switch x.draw.IntN(8) {
		case 0:
			if err := x.pool.Discard(uint64(first)*ctl.Page, uint64(count)*ctl.Page, false); err != nil {
				x.t.Fatal(err)
			}
			clear(x.pages[first : first+count])
		case 1:
			to := x.draw.IntN(all - count)
			if first < to+count && to < first+count {
				continue
			}
			s := ctl.Step{From: uint64(first), To: uint64(to), Count: uint64(count)}
			done := make(chan error, 1)
			if err := x.pool.Remap([]ctl.Step{s}, false, func(err error) { done <- err }); err != nil {
				x.t.Fatal(err)
			}
			if err := <-done; err != nil {
				x.t.Fatal(err)
			}
			copy(x.pages[to:to+count], x.pages[first:first+count])
			clear(x.pages[first : first+count])
		case 2, 3:
			for page := first; page < first+count; page++ {
				x.write(uint64(page))
			}
		default:
			for range count / 8 {
				x.write(uint64(x.draw.IntN(all)))
			}
		}
	}
}

// verify reads all pages, and checks the pool.
func (x *indexed) verify() {
	x.t.Helper()
	b := make([]byte, ctl.Page)
	for page, is := range x.pages {
		if err := x.pool.ReadAt(b, uint64(page)*ctl.Page); err != nil {
			x.t.Fatal(err)
		}
		if has := binary.LittleEndian.Uint64(b); has != uint64(is) {
			x.t.Fatalf("page %d is version %d, not %d; found %+v", page, has, is, x.pool.Found())
		}
	}
	clean(x.t, x.pool, true)
}

// reopen opens the pool again.
func (x *indexed) reopen(dev *device.Mem, wantIndexed bool) ctl.Recovery {
	x.t.Helper()
	x.dev = dev
	x.pool = open(x.t, x.cfg, dev)
	found := x.pool.Found()
	if found.Indexed != wantIndexed {
		x.t.Fatalf("indexed: %v, not %v; found %+v", found.Indexed, wantIndexed, found)
	}
	return found
}

// TestIndex closes pools and opens them by the index of their last checkpoint: all is as it was, also after a crash of
// the next session, and of the one after it, which still begin with that checkpoint.
func TestIndex(t *testing.T) {
	for seed := range uint64(4) {
		x := newIndexed(t, 1<<12, seed)
		x.change(40)
		for round := range 6 {
			if err := x.pool.Close(); err != nil {
				t.Fatal(err)
			}
			if found := x.reopen(x.dev.Crash(&x.draw), true); !found.Clean {
				t.Errorf("seed %d, round %d: not clean: %+v", seed, round, found)
			}
			x.verify()
			for range round % 3 {
				x.change(1)
				if err := x.pool.Sync(); err != nil {
					t.Fatal(err)
				}
				dev := x.dev.Crash(&x.draw)
				x.reopen(dev, x.pool.Stats().Checkpoints == 0)
				x.verify()
			}
			x.change(10)
		}
	}
}

// TestIndexDamaged damages each page of an index, and each of the list of stored leaves. The pool opens by its entries
// and says which page is lost.
func TestIndexDamaged(t *testing.T) {
	x := newIndexed(t, 1<<13, 9)
	x.change(30)
	if err := x.pool.Close(); err != nil {
		t.Fatal(err)
	}
	n, shape := 0, x.pool.Shape()
	b := make([]byte, device.Grain)
	for at := int64(0); at < x.dev.Size(); at += device.Grain {
		dev := x.dev.Crash(&x.draw)
		if err := device.Do(dev, device.Read, at, b); err != nil {
			t.Fatal(err)
		}
		if magic := binary.LittleEndian.Uint32(b); magic != 0x46464958 && magic != 0x46464c54 { // FFIX, FFLT
			continue
		}
		if _, err := media.DecodeIndex(b, shape.UUID, binary.LittleEndian.Uint64(b[24:]), shape.AllSegments(),
			shape.Pages, func(*media.IndexItem) error { return nil }); err == nil {
			n++
		}
		b[100] ^= 1
		if err := device.Do(dev, device.Write, at, b); err != nil {
			t.Fatal(err)
		}
		y := *x
		y.dev, y.pool = dev, open(t, x.cfg, dev)
		if found := y.pool.Found(); !found.Indexed && !slices.ContainsFunc(found.Lost, func(l ctl.Lost) bool {
			return l.Offset == at && strings.Contains(l.What, "of checkpoint")
		}) {
			t.Errorf("the page at %d is damaged, but: %+v", at, found)
		}
		y.verify()
	}
	if n < 2 {
		t.Errorf("the index has %d pages", n)
	}
}
