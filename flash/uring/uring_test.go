package uring

import (
	"os"
	"path/filepath"
	"testing"

	"farflash/flash/device"
	"farflash/flash/device/devicetest"
)

// skipped skips the test where io_uring is unavailable.
func skipped(t testing.TB) {
	r, err := New(4)
	if Forbidden(err) {
		t.Skipf("io_uring is not to be had here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDevice runs the device conformance tests on a ring with fewer slots than operations.
func TestDevice(t *testing.T) {
	skipped(t)
	for _, entries := range []int{2, 64} {
		devicetest.Conform(t, func(t *testing.T) device.Device {
			d, err := Open(filepath.Join(t.TempDir(), "dev"), device.Mode{Create: devicetest.Grains * device.Grain},
				entries)
			if err != nil {
				t.Fatal(err)
			}
			return d
		})
	}
}

// TestFixed runs operations in registered memory, and verifies by their opcodes that they used fixed buffers.
func TestFixed(t *testing.T) {
	skipped(t)
	d, err := Open(filepath.Join(t.TempDir(), "dev"), device.Mode{Create: 16 * device.Grain}, 8)
	if err != nil {
		t.Fatal(err)
	}
	arena, err := device.Arena(4 * device.Grain)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Register(arena); err != nil {
		if Forbidden(err) {
			t.Skipf("memory cannot be registered here: %v", err)
		}
		t.Fatal(err)
	}
	for _, c := range []struct {
		buf  []byte
		kind device.Kind
		want uint8
	}{
		{arena[:device.Grain], device.Write, opWriteFixed}, {arena[3*device.Grain:], device.Read, opReadFixed},
		{device.Aligned(device.Grain), device.Read, opRead}, {device.Aligned(device.Grain), device.Write, opWrite},
		{nil, device.Flush, opFsync},
	} {
		op := device.Op{Kind: c.kind, Buf: c.buf}
		if e := d.loops.all[0].entry(&slot{first: task{&op, d}}, 0); e.opcode != c.want {
			t.Errorf("%v in %d bytes goes as operation %d, not %d", c.kind, len(c.buf), e.opcode, c.want)
		}
	}
	copy(arena, "through the ring")
	done := make(chan error, 1)
	op := device.Op{Kind: device.Write, Buf: arena[:device.Grain], Offset: 5 * device.Grain,
		Done: func(o *device.Op) { done <- o.Err }}
	d.Submit(&op)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	op.Kind, op.Buf = device.Read, arena[2*device.Grain:3*device.Grain]
	d.Submit(&op)
	if err := <-done; err != nil || string(op.Buf[:16]) != "through the ring" {
		t.Fatalf("%q, %v", op.Buf[:16], err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := device.Release(arena); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkRead compares 4 KiB reads through the ring with reads by goroutines, 32 in flight.
func BenchmarkRead(b *testing.B) {
	const grains = 1 << 16
	path := filepath.Join(b.TempDir(), "dev")
	whole := make([]byte, grains*device.Grain)
	for i := range whole {
		whole[i] = byte(i >> 12) // no holes, which would be read without accessing the device
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		open func() (device.Device, error)
	}{
		{"ring", func() (device.Device, error) { return Open(path, device.Mode{Create: grains * device.Grain}, 64) }},
		{"goroutines", func() (device.Device, error) {
			return device.OpenFile(path, device.Mode{Create: grains * device.Grain}, 32)
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			if c.name == "ring" {
				skipped(b)
			}
			d, err := c.open()
			if err != nil {
				b.Fatal(err)
			}
			done := make(chan *device.Op, 32)
			for range 32 {
				done <- &device.Op{Kind: device.Read, Buf: device.Aligned(device.Grain),
					Done: func(o *device.Op) { done <- o }}
			}
			b.ReportAllocs()
			b.ResetTimer()
			x := uint64(1)
			for range b.N {
				op := <-done
				if op.Err != nil {
					b.Fatal(op.Err)
				}
				x = x*6364136223846793005 + 1
				op.Offset = int64(x>>40%grains) * device.Grain
				d.Submit(op)
			}
			for range 32 {
				<-done
			}
			b.StopTimer()
			if err := d.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
