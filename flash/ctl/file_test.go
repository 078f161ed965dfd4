package ctl_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"farflash/flash/ctl"
	"farflash/flash/ctl/heat"
	"farflash/flash/device"
	"farflash/flash/uring"
	"farflash/internal/patience"
	"farflash/numeric/rng"
)

// onFiles runs each on file devices: through goroutines and, where available, through io_uring.
func onFiles(t testing.TB, each func(t testing.TB, name string, open func(name string, bytes int64) device.Device)) {
	dir := t.TempDir()
	must := func(d device.Device, err error) device.Device {
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	each(t, "goroutines", func(name string, bytes int64) device.Device {
		d, err := device.OpenFile(filepath.Join(dir, name), device.Mode{Create: bytes}, 8)
		return must(d, err)
	})
	if r, err := uring.New(2); err != nil {
		t.Logf("no ring: %v", err)
		return
	} else if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	each(t, "ring", func(name string, bytes int64) device.Device {
		d, err := uring.Open(filepath.Join(dir, "ring-"+name), device.Mode{Create: bytes}, 64)
		return must(d, err)
	})
}

// TestSideBySide has many goroutines write and read pages of their own, and bytes of their own in shared pages, on two
// files, interleaved with flushes and trims, and then reopens the pool.
func TestSideBySide(t *testing.T) {
	onFiles(t, func(t testing.TB, name string, openDevice func(string, int64) device.Device) {
		before := runtime.NumGoroutine()
		cfg, layout := small()
		cfg.Frames = 48
		devices := func() []device.Device {
			return []device.Device{openDevice("a", 700*device.Grain), openDevice("b", 500*device.Grain)}
		}
		d := devices()
		format(t, layout, d...)
		pool := open(t, cfg, d...)
		const workers, own, shared = 8, 20, 6
		final := make([][]byte, workers)
		var all sync.WaitGroup
		for w := range workers {
			all.Add(1)
			go func() {
				defer all.Done()
				draw := rng.NewStream(uint64(w), "worker")
				mine := make([]byte, own*ctl.Page)
				part := make([]byte, shared*ctl.Page/workers)
				buf := make([]byte, 3*ctl.Page)
				base := uint64(w+1)<<40 + 512
				for i := range 250 {
					at := int(draw.IntN(int64(len(mine))))
					n := min(1+int(draw.IntN(int64(len(buf)))), len(mine)-at)
					var err error
					switch k := draw.IntN(10); {
					case k < 4:
						for j := range n {
							mine[at+j] = byte(draw.Uint64())
						}
						err = pool.WriteAt(mine[at:at+n], base+uint64(at), draw.IntN(5) == 0)
					case k < 7:
						if err = pool.ReadAt(buf[:n], base+uint64(at)); err == nil &&
							!bytes.Equal(buf[:n], mine[at:at+n]) {
							err = fmt.Errorf("step %d: %d bytes at %d are not what was written", i, n, at)
						}
					case k < 8:
						clear(mine[at : at+n])
						err = pool.Discard(base+uint64(at), uint64(n), false)
					case k < 9:
						// Each worker owns every eighth byte of the shared pages: small concurrent writes to the same
						// page.
						j := int(draw.IntN(int64(len(part))))
						part[j] = byte(draw.Uint64())
						err = pool.WriteAt(part[j:j+1], uint64(j*workers+w), draw.IntN(5) == 0)
					default:
						err = pool.Sync()
					}
					if err != nil {
						t.Errorf("%s, worker %d: %v", name, w, err)
						return
					}
				}
				final[w] = append(mine, part...)
			}()
		}
		all.Wait()
		if t.Failed() {
			return
		}
		clean(t, pool, true)
		if err := pool.Close(); err != nil {
			t.Fatal(err)
		}
		again := devices()
		pool = open(t, cfg, again[1], again[0]) // in any order
		if !pool.Found().Clean {
			t.Errorf("%s: found %+v", name, pool.Found())
		}
		got := make([]byte, own*ctl.Page)
		all6 := make([]byte, shared*ctl.Page)
		if err := pool.ReadAt(all6, 0); err != nil {
			t.Fatal(err)
		}
		for w := range workers {
			if err := pool.ReadAt(got, uint64(w+1)<<40+512); err != nil || !bytes.Equal(got, final[w][:len(got)]) {
				t.Errorf("%s, worker %d: its pages are not what it wrote: %v", name, w, err)
			}
			for j, b := range final[w][len(got):] {
				if all6[j*workers+w] != b {
					t.Errorf("%s, worker %d: shared byte %d is %d, not %d", name, w, j, all6[j*workers+w], b)
				}
			}
		}
		if err := pool.Close(); err != nil {
			t.Fatal(err)
		}
		for range 50 {
			if runtime.NumGoroutine() <= before {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if after := runtime.NumGoroutine(); after > before {
			t.Errorf("%s: %d goroutines before, %d after", name, before, after)
		}
	})
}

// TestRecoveryTime fills a pool of 10 GiB, abandons it as a crash does, and reopens it. It needs the disk space, so it
// runs only with FARFLASH_LONG.
func TestRecoveryTime(t *testing.T) {
	patience.SkipUnlessLong(t)
	path := filepath.Join(t.TempDir(), "pool")
	openFile := func() device.Device {
		f, err := device.OpenFile(path, device.Mode{Create: 10 << 30}, 16)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	layout := ctl.DefaultLayout()
	layout.UUID[0] = 1
	d := openFile()
	shape := format(t, layout, d)
	pool := open(t, ctl.DefaultConfig(), d)
	b := make([]byte, 1<<20)
	for at := uint64(0); at < uint64(shape.Capacity)*ctl.Page-uint64(len(b)); at += uint64(len(b)) {
		b[0], b[ctl.Page] = byte(at>>20), byte(at>>28)
		if err := pool.WriteAt(b, at, false); err != nil {
			t.Fatal(err)
		}
	}
	draw := rng.NewStream(1, "overwrites")
	for range 300_000 {
		if err := pool.WriteFrom(b[:ctl.Page], uint64(draw.IntN(shape.Capacity-256))*ctl.Page, false,
			heat.Auto); err != nil {
			t.Fatal(err)
		}
	}
	s := pool.Stats() // nothing was flushed but what the pool flushes by itself
	// Pull the device from under the pool, so that Close cannot write a checkpoint.
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = openFile()
	begin := time.Now()
	again := open(t, ctl.DefaultConfig(), d)
	took := time.Since(begin)
	t.Logf("%+v, after %+v: %v", again.Found(), s, took)
	if again.Found().Clean || again.Found().Mapped < shape.Capacity-512 {
		t.Errorf("found %+v", again.Found())
	}
	if took > 5*time.Second {
		t.Errorf("recovery took %v", took)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCheckedAtWork checks a pool while others write: the check reads the device concurrently and must not block the
// pool's own operations.
func TestCheckedAtWork(t *testing.T) {
	onFiles(t, func(t testing.TB, name string, openDevice func(string, int64) device.Device) {
		cfg, layout := small()
		d := openDevice("checked", 700*device.Grain)
		format(t, layout, d)
		pool := open(t, cfg, d)
		stop := make(chan struct{})
		var all sync.WaitGroup
		for w := range 4 {
			all.Go(func() {
				page := make([]byte, ctl.Page)
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					if err := pool.WriteAt(page, uint64(w*20+i%20)*ctl.Page, i%3 == 0); err != nil {
						t.Errorf("%s: %v", name, err)
						return
					}
				}
			})
		}
		for range 60 {
			clean(t, pool, true)
		}
		close(stop)
		all.Wait()
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	})
}
