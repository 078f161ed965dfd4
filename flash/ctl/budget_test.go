package ctl_test

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"farflash/flash/ctl"
	"farflash/flash/ctl/media"
	"farflash/flash/device"
	"farflash/internal/patience"
	"farflash/numeric/rng"
)

// TestBudget divides budgets. The parts make up the whole, the least that suffices does, and less does not.
func TestBudget(t *testing.T) {
	for _, size := range []int64{1 << 26, 1 << 30, 1e11, 1e12, 8e12, 30e12} {
		layout := ctl.DefaultLayout()
		for size/ctl.Page/int64(layout.Segment) > 1<<17 {
			layout.Segment *= 2
		}
		if size < 1<<30 {
			layout.Segment = 64
		}
		layout.UUID[1] = 1
		shape, err := layout.Shape(size)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range []ctl.Budget{{}, {Least: 5000, Users: 20 << 20}, {Map: 1 << 30}, {Most: 512}} {
			var scarce *ctl.Scarce
			b.Memory = 1 << 20
			cfg := ctl.DefaultConfig()
			if _, err := b.Divide(shape, &cfg); !errors.As(err, &scarce) {
				t.Fatalf("%d bytes are enough for %.0f GB: %v", b.Memory, float64(size)/1e9, err)
			}
			for _, memory := range []int64{scarce.Need - 1<<20, scarce.Need, scarce.Need + 100<<20, 4 * scarce.Need} {
				b.Memory = memory
				d, err := b.Divide(shape, &cfg)
				if (err != nil) != (memory < scarce.Need) {
					t.Fatalf("%.0f GB, %+v: %v; %d bytes are the least", float64(size)/1e9, b, err, scarce.Need)
				}
				if err != nil {
					continue
				}
				sum := d.Pages + d.Map + d.Fixed + d.Spare
				switch {
				case sum != memory || d.Spare < (d.Map+d.Fixed)/6 || d.Frames != cfg.Frames || d.Map != cfg.Map:
					t.Errorf("%.0f GB, %+v: %+v, together %d", float64(size)/1e9, b, d, sum)
				case d.Frames < b.Least || b.Most > 0 && d.Frames > b.Most || d.Map < b.Map:
					t.Errorf("%.0f GB, %+v: %+v", float64(size)/1e9, b, d)
				}
				// What a user gives is not left idle unless it is of no use.
				if d.Spare > max(memory/3, 9<<20) && d.Frames < int(shape.Capacity) && b.Most == 0 {
					t.Errorf("%.0f GB, %+v: %+v are spare", float64(size)/1e9, b, d)
				}
			}
		}
	}
}

// TestBudgetKept opens pools with the least memory that suffices, and 16 MiB more, in processes of their own: a large
// one that was filled in order, which is read and overwritten at random, and a smaller one without any order. All
// memory of the process keeps within the budget, but for its own 64 MiB, from the first moment on. FARFLASH_LONG tries
// 8 TB.
func TestBudgetKept(t *testing.T) {
	const child = "FARFLASH_TEST_BUDGET"
	if raced {
		t.Skip("the race detector takes a multiple of the memory")
	}
	size, writes := int64(1e12), int64(150_000)
	if patience.Long(t) {
		size, writes = 8e12, 5_000_000
	}
	switch os.Getenv(child) {
	case "order":
		keepInOrder(t, size)
		return
	case "random":
		keepAtRandom(t, writes)
		return
	}
	for _, what := range []string{"order", "random"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestBudgetKept$", "-test.v")
		cmd.Env = append(os.Environ(), child+"="+what)
		out, err := cmd.CombinedOutput()
		t.Logf("%s: %s", what, out)
		if err != nil || !strings.Contains(string(out), "MiB of RSS") && !strings.Contains(string(out), "SKIP") {
			t.Error(err)
		}
	}
}

// openTight opens a pool with little memory. check compares the process's with it, but for what a device has.
func openTight(t *testing.T, shape media.Shape, dev device.Device, own func() int64) (p *ctl.Pool, check func(string)) {
	resident(t)
	cfg := ctl.DefaultConfig()
	var scarce *ctl.Scarce
	b := ctl.Budget{Memory: 1 << 20}
	if _, err := b.Divide(shape, &cfg); !errors.As(err, &scarce) {
		t.Fatal(err)
	}
	cfg.Budget = ctl.Budget{Memory: scarce.Need + 16<<20, Divided: func(x ctl.Division) {
		debug.SetMemoryLimit(x.Heap + 16<<20) // as package flashcli does
	}}
	p = open(t, cfg, dev)
	return p, func(when string) {
		t.Helper()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		is, most := resident(t)
		is, most = is-own(), most-own()
		t.Logf("%s: %d MiB of RSS, at most %d, of a budget of %d; heap %d MiB in %d collections", when, is>>20, most>>20,
			cfg.Budget.Memory>>20, m.HeapAlloc>>20, m.NumGC)
		if most > cfg.Budget.Memory+64<<20 {
			t.Errorf("%s: %d MiB were resident of a budget of %d", when, most>>20, cfg.Budget.Memory>>20)
		}
	}
}

func keepInOrder(t *testing.T, size int64) {
	d := newComputed(t, size)
	p, check := openTight(t, d.shape, d, func() int64 { return 0 })
	check("opened")
	used, _ := p.Use()
	draw := rng.NewStream(1, "budget")
	buf := make([]byte, ctl.Page)
	for range 50_000 {
		page := draw.IntN(used)
		if err := p.ReadAt(buf, uint64(page)*ctl.Page); err != nil || buf[0] != byte(page%251) {
			t.Fatalf("page %d has %d: %v", page, buf[0], err)
		}
	}
	check("read")
	for i := range uint64(2000) {
		page := uint64(draw.IntN(used))
		buf[0], buf[1] = byte(page%251), byte(i)
		if err := p.WriteAt(buf, page*ctl.Page, i%64 == 0); err != nil {
			t.Fatal(err)
		}
	}
	check("written")
	runtime.KeepAlive(p)
}

func keepAtRandom(t *testing.T, writes int64) {
	const pages = 1 << 18
	layout := ctl.DefaultLayout()
	layout.UUID, layout.Segment = media.UUID{9}, 512
	d := newBrief(t, pages*5/4+pages/8)
	shape := format(t, layout, d)
	p, check := openTight(t, shape, d, func() int64 {
		return int64(len(d.data)) + int64(len(d.others)+len(d.spare))*device.Grain
	})
	check("opened")
	draw := rng.NewStream(1, "budget")
	buf := make([]byte, ctl.Page)
	for i := range writes {
		page := uint64(draw.IntN(pages))
		binary.LittleEndian.PutUint64(buf, page+1)
		if err := p.WriteAt(buf, page*ctl.Page, false); err != nil {
			t.Fatal(err)
		}
		if i%(writes/4) == writes/8 {
			check("written")
		}
	}
	for range writes / 2 {
		page := uint64(draw.IntN(pages))
		if err := p.ReadAt(buf, page*ctl.Page); err != nil {
			t.Fatal(err)
		}
		if is := binary.LittleEndian.Uint64(buf); is != 0 && is != page+1 {
			t.Fatalf("page %d has %d", page, is)
		}
	}
	check("read")
	ofPages, ofPlaces := p.MapBytes()
	t.Logf("map: %d KiB of pages, %d of places; %+v", ofPages>>10, ofPlaces>>10, p.Stats())
	runtime.KeepAlive(p)
}
