package uring

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"farflash/flash/device"
	"farflash/internal/fifo"
)

// grains returns one-grain operations of one device at the given grains; a negative number is a write.
func grains(dev *Device, at ...int64) (q fifo.Ring[task]) {
	for _, g := range at {
		kind := device.Read
		if g < 0 {
			kind, g = device.Write, -g
		}
		q.Push(task{&device.Op{Kind: kind, Offset: g * device.Grain, Buf: device.Aligned(device.Grain)}, dev})
	}
	return q
}

// TestTogether verifies which operations are merged into one entry: adjacent reads of one device, up to the limit.
func TestTogether(t *testing.T) {
	dev := &Device{}
	many := make([]int64, together+3)
	for i := range many {
		many[i] = int64(7 + i)
	}
	for _, x := range []struct {
		at   []int64
		want []int // operations per entry
	}{
		{[]int64{5}, []int{1}},
		{[]int64{5, 6, 7, 9}, []int{3, 1}},
		{[]int64{5, 5, 4}, []int{1, 1, 1}},
		{[]int64{5, -6, -7, 8, 9}, []int{1, 1, 1, 2}},
		{many, []int{together, 3}},
	} {
		q := grains(dev, x.at...)
		var s slot
		for k, want := range x.want {
			first := q.First().op
			if s.fill(&q); len(s.more)+1 != want || s.first.op != first {
				t.Errorf("%v: entry %d has %d operations, not %d", x.at, k, len(s.more)+1, want)
			}
			if len(s.more) > 0 && len(s.vector) != want {
				t.Errorf("%v: entry %d has %d pieces of memory", x.at, k, len(s.vector))
			}
		}
		if q.N != 0 {
			t.Errorf("%v: %d operations are left", x.at, q.N)
		}
	}
	q := grains(dev, 3)
	q.Push(task{grains(nil, 4).Items[0].op, &Device{}})
	var s slot
	if s.fill(&q); len(s.more) != 0 {
		t.Error("reads of two devices are one")
	}
}

// TestTake verifies that adjacent reads take one entry, and repeated reads one each.
func TestTake(t *testing.T) {
	skipped(t)
	ring, err := New(8)
	if err != nil {
		t.Fatal(err)
	}
	l := &loop{ring: ring, slots: make([]slot, 6), free: []uint32{0, 1, 2, 3, 4, 5},
		queue: grains(&Device{}, 5, 6, 7, 9, 10)}
	if l.take(); l.ahead != 2 || l.queue.N != 0 || len(l.free) != 4 {
		t.Errorf("five reads are %d entries, and %d wait", l.ahead, l.queue.N)
	}
	if e := ring.sqes[0]; e.opcode != opReadVector || e.length != 3 || e.offset != 5*device.Grain {
		t.Errorf("the first entry is operation %d of %d pieces at %d", e.opcode, e.length, e.offset)
	}
	l.ended(completion{token: 5, result: -int32(syscall.EIO)})
	if l.take(); l.ahead != 5 || len(l.again) != 0 || len(l.batch) != 0 {
		t.Errorf("%d entries when three reads are done again, %d wait", l.ahead, len(l.again))
	}
	if err := ring.Close(); err != nil { // no entry was submitted
		t.Fatal(err)
	}
}

// TestDivide verifies that of merged reads the complete ones finish and the others are repeated.
func TestDivide(t *testing.T) {
	for _, x := range []struct{ got, over int }{
		{3 * device.Grain, 3}, {2*device.Grain + 512, 2}, {device.Grain, 1}, {0, 0}, {-int(syscall.EIO), 0},
	} {
		q := grains(&Device{}, 5, 6, 7)
		var s slot
		s.fill(&q)
		over, again := s.divide(x.got, nil, nil)
		if len(over) != x.over || len(again) != 3-x.over || len(s.more) != 0 || s.first.op != nil {
			t.Errorf("of %d bytes %d are over and %d are done again", x.got, len(over), len(again))
		}
		for i, r := range append(over, again...) {
			if r.op.Offset != int64(5+i)*device.Grain {
				t.Errorf("of %d bytes: operation %d is at %d", x.got, i, r.op.Offset)
			}
		}
	}
}

// TestReadsTogether reads adjacent pages through a ring: each arrives in its own buffer, and if the file is truncated,
// only the reads beyond its end fail.
func TestReadsTogether(t *testing.T) {
	skipped(t)
	const pages, kept = 100, 70
	path := filepath.Join(t.TempDir(), "dev")
	d, err := Open(path, device.Mode{Create: pages * device.Grain}, 4)
	if err != nil {
		t.Fatal(err)
	}
	content := func(i int) []byte { return bytes.Repeat([]byte{byte(i), byte(i >> 8), 1, 2}, device.Grain/4) }
	whole := make([]byte, 0, pages*device.Grain)
	for i := range pages {
		whole = append(whole, content(i)...)
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{pages, kept} {
		if err := os.Truncate(path, int64(size)*device.Grain); err != nil {
			t.Fatal(err)
		}
		done := make(chan *device.Op, pages)
		var ops []*device.Op
		for i := range pages {
			ops = append(ops, &device.Op{
				Kind: device.Read, Offset: int64(i) * device.Grain, Buf: device.Aligned(device.Grain),
				Token: uint64(i), Done: func(o *device.Op) { done <- o },
			})
		}
		d.Submit(ops...)
		for range pages {
			o := <-done
			i := int(o.Token)
			switch {
			case i >= size && !errors.Is(o.Err, device.ErrShort):
				t.Errorf("page %d of %d: %v", i, size, o.Err)
			case i < size && (o.Err != nil || !bytes.Equal(o.Buf, content(i))):
				t.Errorf("page %d of %d: %v, or other bytes", i, size, o.Err)
			}
		}
	}
	if err := d.Close(); !errors.Is(err, device.ErrShrunk) {
		t.Errorf("the close of a truncated file returned: %v", err)
	}
}
