package device_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"farflash/flash/device"
	"farflash/flash/device/devicetest"
	"farflash/numeric/rng"
)

func TestMem(t *testing.T) {
	devicetest.Conform(t, func(*testing.T) device.Device { return device.NewMem(devicetest.Grains * device.Grain) })
}

func TestFile(t *testing.T) {
	for _, cached := range []bool{false, true} {
		t.Run(fmt.Sprintf("cached %v", cached), func(t *testing.T) {
			devicetest.Conform(t, func(t *testing.T) device.Device {
				f, err := device.OpenFile(filepath.Join(t.TempDir(), "dev"),
					device.Mode{Create: devicetest.Grains * device.Grain, Cached: cached}, 4)
				if err != nil {
					t.Fatal(err)
				}
				return f
			})
		})
	}
}

func TestOpenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dev")
	if _, err := device.OpenFile(path, device.Mode{}, 1); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	f, err := device.OpenFile(path, device.Mode{Create: 10*device.Grain + 5}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if f.Size() != 10*device.Grain {
		t.Errorf("%d bytes", f.Size())
	}
	if _, err := device.OpenFile(path, device.Mode{}, 1); err == nil {
		t.Error("a file was opened twice")
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := device.OpenFile(path, device.Mode{}, 1); err == nil {
		t.Error("a file of five bytes was opened")
	}
}

// TestCrashKeepsWhatWasFlushed writes, flushes part, and cuts the power: flushed data is there, and every other sector
// is one of its versions.
func TestCrashKeepsWhatWasFlushed(t *testing.T) {
	draw := rng.NewStream(1, "crash")
	version := func(v byte) []byte { return bytes.Repeat([]byte{v}, device.Grain) }
	survived, lost, torn := 0, 0, 0
	for range 300 {
		m := device.NewMem(8 * device.Grain)
		for g := range int64(8) {
			for v, kinds := range [][]device.Kind{{device.Write, device.Flush}, {device.Write}, {device.Write}} {
				for _, k := range kinds {
					if err := device.Do(m, k, g*device.Grain,
						version(byte(v + 1))[:map[bool]int{true: device.Grain}[k == device.Write]]); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		c := m.Crash(&draw)
		b := make([]byte, device.Grain)
		for g := range int64(8) {
			c.Peek(g*device.Grain, b)
			least, most := b[0], b[0]
			for s := 0; s < device.Grain; s += device.Sector {
				if !bytes.Equal(b[s:s+device.Sector], version(b[s])[:device.Sector]) || b[s] < 1 || b[s] > 3 {
					t.Fatalf("grain %d, sector %d: not a version", g, s/device.Sector)
				}
				least, most = min(least, b[s]), max(most, b[s])
			}
			switch {
			case least != most:
				torn++
			case most == 1:
				lost++
			default:
				survived++
			}
		}
	}
	if survived == 0 || lost == 0 || torn == 0 {
		t.Errorf("%d survived, %d lost, %d torn: not all of it comes up", survived, lost, torn)
	}
}

// TestFaults verifies that each kind of fault occurs when requested.
func TestFaults(t *testing.T) {
	b := device.Aligned(2 * device.Grain)
	for _, c := range []struct {
		f    device.Faults
		kind device.Kind
		want error
	}{
		{device.Faults{ReadError: 1}, device.Read, device.ErrIO},
		{device.Faults{WriteError: 1}, device.Write, device.ErrIO},
		{device.Faults{FlushError: 1}, device.Flush, device.ErrIO},
		{device.Faults{Full: 1}, device.Write, device.ErrSpace},
		{device.Faults{Short: 1}, device.Read, device.ErrShort},
		{device.Faults{Short: 1}, device.Write, device.ErrShort},
		{device.Faults{FailAt: 1}, device.Flush, device.ErrIO},
		{device.Faults{FailFrom: 1, FailFull: true}, device.Write, device.ErrSpace},
		{device.Faults{FailAt: 2}, device.Write, nil},
	} {
		m := device.NewMem(8 * device.Grain)
		m.SetFaults(c.f)
		buf := b
		if c.kind == device.Flush {
			buf = nil
		}
		if err := device.Do(m, c.kind, 0, buf); !errors.Is(err, c.want) {
			t.Errorf("%+v, %v: %v", c.f, c.kind, err)
		}
	}
}

func TestArena(t *testing.T) {
	m, err := device.Arena(3 * device.Grain)
	if err != nil || len(m) != 3*device.Grain || !device.AlignedTo(m) {
		t.Fatalf("%d bytes, aligned %v: %v", len(m), device.AlignedTo(m), err)
	}
	if err := device.Release(m); err != nil {
		t.Error(err)
	}
	if b := device.Aligned(5 * device.Grain); !device.AlignedTo(b) || len(b) != 5*device.Grain {
		t.Errorf("%d bytes, aligned %v", len(b), device.AlignedTo(b))
	}
}

func Example() {
	m := device.NewMem(1 << 20)
	page := device.Aligned(device.Grain)
	copy(page, "flushed, so it stays")
	fmt.Println(device.Do(m, device.Write, 0, page), device.Do(m, device.Flush, 0, nil))
	draw := rng.NewStream(1, "cut")
	found := m.Crash(&draw)
	found.Peek(0, page)
	fmt.Println(string(page[:20]))
	// Output:
	// <nil> <nil>
	// flushed, so it stays
}
