package ctl_test

import (
	"bytes"
	"errors"
	"testing"

	"farflash/flash/ctl"
	"farflash/flash/ctl/media"
	"farflash/flash/device"
	"farflash/rng"
)

// small is a pool that fills up and collects within a few hundred writes.
func small() (ctl.Config, ctl.Layout) {
	cfg := ctl.DefaultConfig()
	cfg.Frames, cfg.Chunk, cfg.Moves = 32, 4, 4
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

// TestBytes writes, reads and discards at any byte, against a slice, with the pool closed and opened between.
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
