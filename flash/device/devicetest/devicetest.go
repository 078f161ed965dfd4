// Package devicetest is the conformance test for implementations of device.Device. For tests only.
//
// Its main part is Conform. It leaves out the effects of a power cut, which only a device in memory can show.
package devicetest

import (
	"bytes"
	"errors"
	"sync"
	"testing"

	"farflash/flash/device"
	"farflash/numeric/rng"
)

// Grains is the size of the devices under test, in grains.
const Grains = 256

// Conform tests the devices returned by open, which must have Grains grains, all zero.
func Conform(t *testing.T, open func(t *testing.T) device.Device) {
	for _, c := range []struct {
		name string
		test func(*testing.T, device.Device)
	}{
		{"content", content}, {"refused", refused}, {"concurrent submitters", sideBySide}, {"submitting from Done", fromWithin},
		{"closed", closed},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := open(t)
			if d.Size() != Grains*device.Grain {
				t.Fatalf("the device has %d bytes, want %d", d.Size(), Grains*device.Grain)
			}
			c.test(t, d)
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// must executes an operation that must succeed.
func must(t *testing.T, d device.Device, kind device.Kind, grain int64, buf []byte) {
	t.Helper()
	if err := device.Do(d, kind, grain*device.Grain, buf); err != nil {
		t.Fatal(err)
	}
}

func pattern(b []byte, seed uint64) {
	draw := rng.NewStream(seed, "pattern")
	for i := range b {
		b[i] = byte(draw.Uint64())
	}
}

func content(t *testing.T, d device.Device) {
	b, got := device.Aligned(7*device.Grain), device.Aligned(9*device.Grain)
	pattern(b, 1)
	must(t, d, device.Write, 100, b)
	must(t, d, device.Flush, 0, nil)
	must(t, d, device.Read, 99, got)
	want := append(append(make([]byte, device.Grain), b...), make([]byte, device.Grain)...)
	if !bytes.Equal(got, want) {
		t.Fatal("a read of the written range and its neighbours returns other content")
	}
	must(t, d, device.Write, Grains-1, b[:device.Grain])
	must(t, d, device.Read, Grains-1, got[:device.Grain])
	if !bytes.Equal(got[:device.Grain], b[:device.Grain]) {
		t.Fatal("a read of the last grain returns other content than was written")
	}
}

func refused(t *testing.T, d device.Device) {
	b := device.Aligned(2 * device.Grain)
	for _, c := range []struct{ offset, n int64 }{{-device.Grain, device.Grain},
		{(Grains - 1) * device.Grain, 2 * device.Grain}, {512, device.Grain}, {0, 512}, {0, 0},
		{1 << 62, device.Grain}} {
		for _, kind := range []device.Kind{device.Read, device.Write} {
			if err := device.Do(d, kind, c.offset, b[:c.n]); !errors.Is(err, device.ErrRange) {
				t.Errorf("%v of %d bytes at %d: %v", kind, c.n, c.offset, err)
			}
		}
	}
}

// sideBySide has several submitters, each with many operations in flight in a range of its own, and some alone.
func sideBySide(t *testing.T, d device.Device) {
	const each = 32
	var all sync.WaitGroup
	for s := range int64(8) {
		all.Add(1)
		go func() {
			defer all.Done()
			var bufs [each][]byte
			for round := range uint64(5) {
				var under sync.WaitGroup
				ops := make([]device.Op, each)
				var list []*device.Op
				for i := range ops {
					bufs[i] = device.Aligned(device.Grain)
					pattern(bufs[i], uint64(s)<<32|uint64(i)<<8|round)
					ops[i] = device.Op{Kind: device.Write, Buf: bufs[i], Offset: (s*each + int64(i)) * device.Grain,
						Done: func(*device.Op) { under.Done() }}
					list = append(list, &ops[i])
				}
				under.Add(each)
				d.Submit(list...)
				under.Wait()
				for i := range ops {
					if ops[i].Err != nil {
						t.Error(ops[i].Err)
					}
					got := device.Aligned(device.Grain)
					if err := device.Do(d, device.Read, ops[i].Offset, got); err != nil {
						t.Error(err)
					} else if !bytes.Equal(got, bufs[i]) {
						t.Errorf("submitter %d, round %d: grain %d has other content than was written", s, round, i)
					}
				}
			}
		}()
	}
	all.Wait()
}

// fromWithin submits operations from Done.
func fromWithin(t *testing.T, d device.Device) {
	const chains, links = 16, 40
	var left sync.WaitGroup
	left.Add(chains)
	for c := range int64(chains) {
		op := &device.Op{Kind: device.Write, Buf: device.Aligned(device.Grain), Offset: c * device.Grain}
		n := 0
		op.Done = func(o *device.Op) {
			if o.Err != nil {
				t.Error(o.Err)
			}
			if n++; n == links {
				left.Done()
				return
			}
			o.Kind = device.Kind(n % 3)
			o.Err = nil
			d.Submit(o)
		}
		d.Submit(op)
	}
	left.Wait()
}

func closed(t *testing.T, d device.Device) {
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := device.Do(d, device.Read, 0, device.Aligned(device.Grain)); !errors.Is(err, device.ErrClosed) {
		t.Errorf("reading from a closed device: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
}
