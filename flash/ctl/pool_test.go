package ctl_test

import (
	"bytes"
	"errors"
	"testing"

	"farflash/flash/ctl"
	"farflash/flash/ctl/heat"
	"farflash/flash/ctl/media"
	"farflash/flash/device"
	"farflash/numeric/rng"
)

// small returns a pool that fills up and collects within a few hundred writes.
func small() (ctl.Config, ctl.Layout) {
	cfg := ctl.DefaultConfig()
	cfg.Frames, cfg.Chunk, cfg.Moves = 32, 4, 4
	cfg.Map = 1 // all that can be folded and dropped is
	return cfg, ctl.Layout{UUID: media.UUID{1, 2, 3}, Segment: 16, OverProvision: 0.3, LogPages: 32}
}

const smallGrains = 500

func format(t testing.TB, layout ctl.Layout, devices ...device.Device) media.Shape {
	t.Helper()
	var sizes []int64
	for _, d := range devices {
		sizes = append(sizes, d.Size())
	}
	shape, err := layout.Shape(sizes...)
	if err != nil {
		t.Fatal(err)
	}
	if err := ctl.Format(shape, devices...); err != nil {
		t.Fatal(err)
	}
	return shape
}

func open(t testing.TB, cfg ctl.Config, devices ...device.Device) *ctl.Pool {
	t.Helper()
	p, err := ctl.Open(cfg, devices...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func clean(t testing.TB, p *ctl.Pool, deep bool) {
	t.Helper()
	for _, v := range p.Check(deep).Violations {
		t.Error(v)
	}
	if t.Failed() {
		t.FailNow()
	}
}

// TestBytes writes, reads and discards at any byte offset, against a slice, and reopens the pool in between.
func TestBytes(t *testing.T) {
	cfg, layout := small()
	dev := device.NewMem(smallGrains * device.Grain)
	shape := format(t, layout, dev)
	size := shape.Capacity * ctl.Page * 9 / 10
	want := make([]byte, size)
	draw := rng.NewStream(1, "bytes")
	for round := range 4 {
		p := open(t, cfg, dev)
		if !p.Found().Clean {
			t.Fatalf("round %d: a pool that was closed is found %+v", round, p.Found())
		}
		for i := range 400 {
			at := draw.IntN(size)
			n := min(1+draw.IntN(3*ctl.Page), size-at)
			switch draw.IntN(4) {
			case 0:
				got := make([]byte, n)
				if err := p.ReadAt(got, uint64(at)); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, want[at:at+n]) {
					t.Fatalf("round %d, step %d: %d bytes at %d are not what was written", round, i, n, at)
				}
			case 1:
				if err := p.Discard(uint64(at), uint64(n), draw.IntN(2) == 0); err != nil {
					t.Fatal(err)
				}
				clear(want[at : at+n])
			default:
				b := make([]byte, n)
				for k := range b {
					b[k] = byte(draw.Uint64())
				}
				if err := p.WriteAt(b, uint64(at), draw.IntN(4) == 0); err != nil {
					t.Fatal(err)
				}
				copy(want[at:], b)
			}
		}
		got := make([]byte, size)
		if err := p.ReadAt(got, 0); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("round %d: the whole is not what was written: %v", round, err)
		}
		clean(t, p, true)
		t.Logf("%+v", p.Stats())
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		if err := p.ReadAt(got[:10], 0); !errors.Is(err, ctl.ErrClosed) {
			t.Fatalf("a closed pool: %v", err)
		}
		dev = dev.Reopen()
	}
}

// TestBackPressure requests more pages than there are frames: each is served when another is put, the last one through
// the lock-free path.
func TestBackPressure(t *testing.T) {
	cfg, layout := small()
	cfg.Frames = 8
	dev := device.NewMem(smallGrains * device.Grain)
	format(t, layout, dev)
	p := open(t, cfg, dev)
	var given []ctl.Ref
	for i := range uint64(50) {
		p.Get(i, ctl.Reading, func(r ctl.Ref, err error) {
			if err != nil {
				t.Error(err)
			}
			if r.Page != i {
				t.Errorf("page %d is given as %d", r.Page, i)
			}
			given = append(given, r)
		})
	}
	for n := range 50 {
		if len(given) != min(50, 8+n) {
			t.Fatalf("%d pages are given after %d were put", len(given), n)
		}
		p.Put(given[n], ctl.Kept, heat.Auto, nil)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestWholeIsHidden verifies that a page being overwritten is invisible until it is put, and unchanged if it is given
// up.
func TestWholeIsHidden(t *testing.T) {
	cfg, layout := small()
	dev := device.NewMem(smallGrains * device.Grain)
	format(t, layout, dev)
	p := open(t, cfg, dev)
	old := bytes.Repeat([]byte{1}, ctl.Page)
	if err := p.WriteAt(old, 0, true); err != nil {
		t.Fatal(err)
	}
	for _, change := range []ctl.Change{ctl.Kept, ctl.Changed} {
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		dev = dev.Reopen()
		p = open(t, cfg, dev) // so that the page is in no frame
		var mine, theirs ctl.Ref
		p.Get(0, ctl.Whole, func(r ctl.Ref, err error) { mine = r })
		if !mine.Fill {
			t.Fatal("a page that is overwritten whole was read")
		}
		p.Get(0, ctl.Reading, func(r ctl.Ref, err error) { theirs = r })
		copy(mine.Data, bytes.Repeat([]byte{2}, ctl.Page))
		if theirs.Data != nil {
			t.Fatal("a page that is being overwritten was given to a reader")
		}
		p.Put(mine, change, heat.Auto, nil)
		want := byte(1)
		if change == ctl.Changed {
			want = 2
		}
		if theirs.Data == nil || theirs.Data[0] != want || theirs.Data[ctl.Page-1] != want {
			t.Fatalf("change %d: the reader got %v", change, theirs.Data[:1])
		}
		p.Put(theirs, ctl.Kept, heat.Auto, nil)
	}
	clean(t, p, true)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestAbsorbed has ten concurrent writers of one page: they share its memory, and the last put writes it once.
func TestAbsorbed(t *testing.T) {
	cfg, layout := small()
	dev := device.NewMem(smallGrains * device.Grain)
	format(t, layout, dev)
	p := open(t, cfg, dev)
	var refs []ctl.Ref
	durable := 0
	for range 10 {
		p.Get(3, ctl.Writing, func(r ctl.Ref, err error) {
			if err != nil {
				t.Fatal(err)
			}
			refs = append(refs, r)
		})
	}
	for i, r := range refs {
		r.Data[i] = byte(i + 1)
		p.Put(r, ctl.Durable, heat.Auto, func(err error) {
			if err != nil {
				t.Error(err)
			}
			durable++
		})
		if i < 9 && durable > 0 {
			t.Fatal("a page that others have is durable")
		}
	}
	if s := p.Stats(); durable != 10 || s.Puts != 1 {
		t.Errorf("%d of 10 are durable, %d pages were written", durable, s.Puts)
	}
	if reads, _ := p.Heat(3); reads != 0 {
		t.Errorf("%d reads were counted", reads)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

// hot returns a pool with a page in memory.
func hot(t testing.TB) (*ctl.Pool, func()) {
	cfg, layout := small()
	cfg.Frames = 64
	dev := device.NewMem(smallGrains * device.Grain)
	format(t, layout, dev)
	p := open(t, cfg, dev)
	if err := p.WriteAt([]byte{1}, 0, false); err != nil {
		t.Fatal(err)
	}
	return p, func() {
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestHotAllocates verifies that a page in memory is got and put, changed or not, without allocation.
func TestHotAllocates(t *testing.T) {
	p, end := hot(t)
	defer end()
	change := ctl.Kept
	fn := func(r ctl.Ref, err error) { p.Put(r, change, heat.Auto, nil) }
	for range 2000 { // warm up, until collection and checkpoints have allocated their buffers
		change = ctl.Changed
		p.Get(0, ctl.Writing, fn)
	}
	change = ctl.Kept
	if n := testing.AllocsPerRun(1000, func() { p.Get(0, ctl.Reading, fn) }); n != 0 {
		t.Errorf("getting and putting a page in memory allocates %v times", n)
	}
	// The memory device copies each grain, the summary of a segment is one buffer, and an occasional checkpoint
	// allocates: below two allocations per write.
	change = ctl.Changed
	if n := testing.AllocsPerRun(1000, func() { p.Get(0, ctl.Writing, fn) }); n > 2 {
		t.Errorf("changing a page allocates %v times", n)
	}
}

func BenchmarkGetPut(b *testing.B) {
	p, end := hot(b)
	fn := func(r ctl.Ref, err error) { p.Put(r, ctl.Kept, heat.Auto, nil) }
	b.ReportAllocs()
	for range b.N {
		p.Get(0, ctl.Reading, fn)
	}
	b.StopTimer()
	end()
}

func BenchmarkGetPutParallel(b *testing.B) {
	p, end := hot(b)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		fn := func(r ctl.Ref, err error) { p.Put(r, ctl.Kept, heat.Auto, nil) }
		for pb.Next() {
			p.Get(0, ctl.Reading, fn)
		}
	})
	b.StopTimer()
	end()
}

func BenchmarkChange(b *testing.B) {
	p, end := hot(b)
	fn := func(r ctl.Ref, err error) { p.Put(r, ctl.Changed, heat.Auto, nil) }
	b.ReportAllocs()
	for range b.N {
		p.Get(0, ctl.Writing, fn)
	}
	b.StopTimer()
	end()
}
