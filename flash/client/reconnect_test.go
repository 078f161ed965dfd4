package client_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"farflash/flash/cfs"
	"farflash/flash/client"
	"farflash/flash/ctl"
	"farflash/flash/device"
	"farflash/flash/pool"
	"farflash/flash/server"
	"farflash/flash/uring"
	"farflash/flash/verbs"
	"farflash/flash/verbs/control"
	"farflash/internal/patience"
	"farflash/numeric/rng"
)

const all = verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic

// host is a server on a device in memory, which can be killed.
type host struct {
	t    testing.TB
	dev  *device.Mem
	pool *ctl.Pool
	tree *cfs.FS
	s    *server.Server
	// loops, if set, do the I/O of connections in place of goroutines.
	loops *uring.Loops
}

const fileSize = 64 * ctl.Page

// newHost starts a server with one file, disk.
func newHost(t testing.TB) *host { t.Helper(); return newHostOn(t, nil) }

func newHostOn(t testing.TB, loops *uring.Loops) *host {
	t.Helper()
	h := &host{t: t, dev: device.NewMem(1600 * device.Grain), loops: loops}
	layout := ctl.Layout{Segment: 32, OverProvision: 0.3, LogPages: 24}
	shape, err := layout.Shape(h.dev.Size())
	if err == nil {
		err = ctl.Format(shape, h.dev)
	}
	if err != nil {
		t.Fatal(err)
	}
	h.open(func() {
		if err := cfs.Format(h.pool, cfs.Config{}); err != nil {
			t.Fatal(err)
		}
	})
	h.create("/disk", fileSize)
	t.Cleanup(h.stop)
	return h
}

func (h *host) open(format func()) {
	h.t.Helper()
	cfg := ctl.DefaultConfig()
	cfg.Frames, cfg.Chunk = 1024, 8
	var err error
	if h.pool, err = ctl.Open(cfg, h.dev); err != nil {
		h.t.Fatal(err)
	}
	format()
	if h.tree, err = cfs.Open(h.pool, cfs.Config{}); err != nil {
		h.t.Fatal(err)
	}
	h.serve()
}

func (h *host) serve() {
	h.t.Helper()
	sc := server.DefaultConfig()
	sc.Pool, sc.Files, sc.Requests = h.pool, server.Tree(h.tree, cfs.Cred{}), server.Requests(h.tree, cfs.Cred{})
	sc.Address, sc.Connections, sc.Reads, sc.Loops = "127.0.0.1:0", 8, 4, h.loops
	var err error
	if h.s, err = server.New(sc); err == nil {
		err = h.s.Listen()
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) create(name string, size int64) {
	h.t.Helper()
	f, err := h.tree.Create(cfs.Cred{}, name, 0o600, size)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) address() string {
	a, _, _ := h.s.Addresses()
	return a
}

// kill ends the server as a power cut does, and starts another one. Nothing that it does after the cut reaches clients
// of the proxy.
func (h *host) kill(p *proxy, draw *rng.Stream) {
	h.t.Helper()
	p.to("")
	after := h.dev.Crash(draw)
	h.stop()
	h.dev = after
	h.open(func() {})
	p.to(h.address())
}

func (h *host) stop() {
	if err := errors.Join(h.s.Drain(0), h.pool.Close()); err != nil {
		h.t.Error(err)
	}
}

// quick is a configuration that reconnects fast enough for a test.
func quick() client.Config {
	c := client.DefaultConfig()
	c.Reconnect.First, c.Reconnect.Cap, c.Reconnect.Seed = time.Millisecond, 20*time.Millisecond, 1
	c.Reconnect.Silence, c.Reconnect.Attempt = 300*time.Millisecond, time.Second
	return c
}

func dial(t testing.TB, address string, cfg client.Config) *client.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c, err := client.Dial(ctx, address, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func open(t testing.TB, c *client.Client, name string) *client.File {
	t.Helper()
	f, err := c.Open(name, all)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// bounded fails a test that hangs, with the stacks of all goroutines.
func bounded(t *testing.T, wall time.Duration) {
	t.Helper()
	t.Cleanup(patience.Watch(time.Hour, wall, func(why string) {
		buf := make([]byte, 1<<20)
		panic(fmt.Sprintf("%s: %s\n%s", t.Name(), why, buf[:runtime.Stack(buf, true)]))
	}))
}

// TestCutEverywhere cuts the connection of a short exchange at every byte, in both directions and in every way, and
// verifies that every operation succeeds on another connection, except an atomic whose outcome is unknown.
func TestCutEverywhere(t *testing.T) {
	bounded(t, 5*time.Minute)
	h := newHost(t)
	p := newProxy(t, h.address(), never)
	sum := uint64(0)
	round := func(value uint64) error {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		cfg := quick()
		cfg.Reconnect.Silence = 40 * time.Millisecond
		cfg.Stream.Setup, cfg.Reconnect.Attempt = 40*time.Millisecond, 100*time.Millisecond
		c, err := client.Dial(ctx, p.address(), cfg)
		if err != nil {
			return nil // the first connection is made by the caller's own attempts
		}
		defer c.Close()
		f, err := c.Open("disk", all)
		if err != nil {
			return fmt.Errorf("open: %w", err)
		}
		b := binary.LittleEndian.AppendUint64(nil, value)
		if _, err := f.WriteAt(b, 0); err != nil {
			return fmt.Errorf("write: %w", err)
		}
		if _, err := f.WriteDurable(b, 8); err != nil {
			return fmt.Errorf("durable write: %w", err)
		}
		was, err := f.FetchAdd(16, 1, false)
		if err != nil && !errors.Is(err, client.ErrUnknown) || err == nil && was != sum {
			return fmt.Errorf("addition to %d, want %d: %w", was, sum, err)
		}
		got := make([]byte, 24)
		if _, err := f.ReadAt(got, 0); err != nil {
			return fmt.Errorf("read: %w", err)
		}
		now := binary.LittleEndian.Uint64(got[16:])
		if !bytes.Equal(got[:8], b) || !bytes.Equal(got[8:16], b) || now != sum+1 && (now != sum || err == nil) {
			return fmt.Errorf("read %x of value %x and sum %d", got, value, sum)
		}
		sum = now
		if err := f.Flush(); err != nil {
			return fmt.Errorf("flush: %w", err)
		}
		if err := f.Close(); err != nil {
			return fmt.Errorf("close: %w", err)
		}
		return nil
	}
	if err := round(1); err != nil {
		t.Fatal(err)
	}
	up, down := p.last()
	if up < 400 || down < 200 {
		t.Fatalf("an exchange of %d and %d bytes", up, down)
	}
	stride := 5
	if patience.Long(t) {
		stride = 1
	}
	value := uint64(1)
	for cut := 0; cut < up+down; cut += stride {
		value++
		w := way{cut: cut, end: int(value) % ends, late: 2 * time.Millisecond}
		if cut >= up {
			w.cut, w.down = cut-up, true
		}
		first := true
		p.set(func(int) way {
			if first {
				first = false
				return w
			}
			return way{cut: -1}
		})
		if err := round(value); err != nil {
			t.Errorf("%+v: %v", w, err)
		}
	}
}

// TestLateWrite: bytes of a lost connection that reach the server after the client has written the same place again, on
// the next connection, change nothing.
func TestLateWrite(t *testing.T) {
	bounded(t, time.Minute)
	h := newHost(t)
	p := newProxy(t, h.address(), func(n int) way {
		if n == 0 {
			return way{cut: 1500, end: hold, late: 100 * time.Millisecond}
		}
		return way{cut: -1}
	})
	f := open(t, dial(t, p.address(), quick()), "disk")
	old, fresh, got := bytes.Repeat([]byte{1}, 4096), bytes.Repeat([]byte{2}, 4096), make([]byte, 4096)
	if _, err := f.WriteAt(old, 0); err != nil {
		t.Fatal(err)
	}
	for p.connections() < 2 {
		time.Sleep(time.Millisecond)
	}
	if _, err := f.WriteDurable(fresh, 0); err != nil {
		t.Fatal(err)
	}
	for range 30 {
		if _, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, fresh) {
			t.Fatalf("read what begins with %d: %v", got[0], err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestChaos runs several goroutines over connections that break all the time, with and without a server that is killed,
// 50 times for the first seed (5 with -short), and verifies all data read against the data written.
func TestChaos(t *testing.T) {
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("kills=%v", killed), func(t *testing.T) {
			seeds := uint64(1)
			if patience.Long(t) {
				seeds = 40
			}
			for seed := range seeds {
				kills := 0
				switch {
				case killed && seed == 0 && !testing.Short():
					kills = 50
				case killed:
					kills = 5
				}
				chaosRound(t, seed, kills)
				if t.Failed() {
					return
				}
			}
		})
	}
}

func chaosRound(t *testing.T, seed uint64, kills int) {
	bounded(t, 2*time.Minute)
	var loops *uring.Loops
	if kills > 0 {
		var err error
		if loops, err = pool.Threads(pool.DefaultOptions(), 2); err != nil {
			t.Fatal(err)
		}
	}
	if loops != nil {
		t.Cleanup(func() {
			if err := loops.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	h := newHostOn(t, loops)
	p := newProxy(t, h.address(), never)
	cfg := quick()
	cfg.Reconnect.Seed = seed + 1
	cfg.Reconnect.Unanswered = 64 << 10
	cfg.Stream.Setup, cfg.Reconnect.Silence = 300*time.Millisecond, 100*time.Millisecond
	c := dial(t, p.address(), cfg)
	f := open(t, c, "disk")
	p.set(chaos(seed, 40_000))
	p.to(h.address()) // ends the first connection
	var done, killed atomic.Bool
	killed.Store(kills == 0)
	var work, killer sync.WaitGroup
	var losses, unknown atomic.Int64
	const workers, pages = 6, 4
	for g := range workers {
		f := open(t, c, "disk") // of its own, because each open file gets each loss reported once
		work.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(g)))
			var newest, floor [pages]uint64 // versions: written last, and at least there
			var gone [pages]bool            // the newest may be lost, as a Flush has reported
			version := uint64(0)
			fail := func(what string, err error) {
				t.Errorf("seed %d, goroutine %d: %s: %v", seed, g, what, err)
				done.Store(true)
			}
			at := func(page int) int64 { return int64(g*pages+page) * ctl.Page }
			verify := func(page int) bool {
				got := make([]byte, ctl.Page)
				if _, err := f.ReadAt(got, at(page)); err != nil {
					fail("read", err)
					return false
				}
				v := binary.LittleEndian.Uint64(got)
				low := newest[page]
				if kills > 0 {
					low = floor[page]
				}
				if v < low || v > newest[page] || !bytes.Equal(got, filled(v)) {
					fail(fmt.Sprintf("page %d", page), fmt.Errorf("version %d, want %d to %d", v, low, newest[page]))
					return false
				}
				return true
			}
			for i := 0; i < 150 || !killed.Load(); i++ {
				if done.Load() {
					return
				}
				page := r.IntN(pages)
				switch k := r.IntN(10); {
				case k < 4:
					version++
					newest[page], gone[page] = version, false
					if _, err := f.WriteAt(filled(version), at(page)); err != nil {
						fail("write", err)
						return
					}
				case k < 6:
					version++
					newest[page], gone[page] = version, false
					if _, err := f.WriteDurable(filled(version), at(page)); err != nil {
						fail("durable write", err)
						return
					}
					floor[page] = version
				case k < 7:
					switch err := f.Flush(); {
					case errors.Is(err, client.ErrLost) && kills > 0:
						losses.Add(1)
						for i := range pages {
							gone[i] = newest[i] > floor[i]
						}
					case err != nil:
						fail("flush", err)
						return
					default:
						for i := range pages {
							if !gone[i] {
								floor[i] = newest[i]
							}
						}
					}
				default:
					if !verify(page) {
						return
					}
				}
			}
			for page := range pages {
				verify(page)
			}
		})
	}
	work.Go(func() { // one that counts
		sum := uint64(0)
		for i := 0; i < 100 || !killed.Load(); i++ {
			if done.Load() {
				return
			}
			was, err := f.FetchAdd(workers*pages*ctl.Page, 1, true)
			if err == nil && was != sum {
				t.Errorf("seed %d: an addition found %d, want %d", seed, was, sum)
				return
			}
			if err == nil {
				sum++
				continue
			}
			got := make([]byte, 8)
			if !errors.Is(err, client.ErrUnknown) {
				t.Errorf("seed %d: addition: %v", seed, err)
				return
			}
			unknown.Add(1)
			if _, err := f.ReadAt(got, workers*pages*ctl.Page); err != nil {
				t.Errorf("seed %d: reading the sum: %v", seed, err)
				return
			}
			now := binary.LittleEndian.Uint64(got)
			if now != sum && now != sum+1 {
				t.Errorf("seed %d: the sum is %d after an addition to %d of unknown outcome", seed, now, sum)
				return
			}
			sum = now
		}
	})
	if kills > 0 {
		killer.Go(func() {
			defer killed.Store(true)
			draw := rng.NewStream(seed, "kills")
			for i := 0; i < kills && !done.Load(); i++ {
				time.Sleep(100 * time.Millisecond)
				h.kill(p, &draw)
			}
		})
	}
	work.Wait()
	done.Store(true)
	killer.Wait()
	n := p.connections()
	t.Logf("seed %d: %d connections, %d losses reported, %d outcomes unknown", seed, n, losses.Load(), unknown.Load())
	if n < 5 {
		t.Errorf("only %d connections", n)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// filled is a page of one version.
func filled(version uint64) []byte {
	return bytes.Repeat(binary.LittleEndian.AppendUint64(nil, version), ctl.Page/8)
}

// TestLost: after the server was killed, the next Flush of a file with unflushed writes reports ErrLost, once, and that
// of a file without reports nothing. After a mere loss of the connection nothing is lost.
func TestLost(t *testing.T) {
	bounded(t, time.Minute)
	h := newHost(t)
	h.create("/clean", ctl.Page)
	p := newProxy(t, h.address(), never)
	c := dial(t, p.address(), quick())
	disk, clean := open(t, c, "disk"), open(t, c, "clean")
	write := func(f *client.File, v uint64) {
		t.Helper()
		if _, err := f.WriteAt(filled(v), 0); err != nil {
			t.Fatal(err)
		}
	}
	read := func(f *client.File, v uint64) {
		t.Helper()
		got := make([]byte, ctl.Page)
		if _, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, filled(v)) {
			t.Fatalf("read %d, want %d: %v", got[0], v, err)
		}
	}
	stream := rng.NewStream(1, "lost")
	draw := &stream
	write(clean, 1)
	if err := clean.Flush(); err != nil {
		t.Fatal(err)
	}
	write(disk, 1)
	p.to(h.address())
	if err := disk.Flush(); err != nil {
		t.Errorf("flush after the connection was lost: %v", err)
	}
	write(disk, 2)
	read(disk, 2) // it has been executed, so the client no longer has it
	h.kill(p, draw)
	if err := clean.Flush(); err != nil {
		t.Errorf("flush of a file without unflushed writes: %v", err)
	}
	if err := disk.Flush(); !errors.Is(err, client.ErrLost) {
		t.Errorf("flush after unflushed writes were lost: %v", err)
	}
	if err := disk.Flush(); err != nil {
		t.Errorf("the next flush: %v", err)
	}
	write(disk, 3)
	if err := disk.Flush(); err != nil {
		t.Error(err)
	}
	h.kill(p, draw)
	read(disk, 3)
	read(clean, 1)
	if err := disk.Flush(); err != nil {
		t.Errorf("flush after all was flushed: %v", err)
	}
}

// TestAnotherFile: a file that is gone, shorter, or another one under its name when the connection comes back is
// reported, and other files go on.
func TestAnotherFile(t *testing.T) {
	bounded(t, time.Minute)
	root := cfs.Cred{}
	for _, x := range []struct {
		name    string
		restart bool
		change  func(h *host) error
		want    error
	}{
		{"gone", false, func(h *host) error { return h.tree.Remove(root, "/other") }, fs.ErrNotExist},
		{"made again", false, func(h *host) error {
			err := h.tree.Remove(root, "/other")
			h.create("/other", fileSize)
			return err
		}, client.ErrChanged},
		{"replaced", false, func(h *host) error {
			h.create("/new", fileSize)
			return h.tree.Rename(root, "/new", "/other", false)
		}, client.ErrChanged},
		{"replaced before a restart", true, func(h *host) error {
			h.create("/new", fileSize)
			return h.tree.Rename(root, "/new", "/other", false)
		}, client.ErrChanged},
		{"shorter", false, func(h *host) error {
			f, err := h.tree.Open(root, "/other", cfs.Read|cfs.Write)
			if err != nil {
				return err
			}
			return errors.Join(f.Truncate(ctl.Page), f.Close())
		}, client.ErrChanged},
		{"longer", false, func(h *host) error {
			f, err := h.tree.Open(root, "/other", cfs.Read|cfs.Write)
			if err != nil {
				return err
			}
			return errors.Join(f.Truncate(fileSize+1), f.Close())
		}, nil},
		{"drained", false, func(h *host) error { _, err := h.s.DrainExport("other"); return err }, control.Draining},
		{"the same after a restart", true, func(*host) error { return nil }, nil},
	} {
		t.Run(x.name, func(t *testing.T) {
			h := newHost(t)
			h.create("/other", fileSize)
			p := newProxy(t, h.address(), never)
			c := dial(t, p.address(), quick())
			f, good := open(t, c, "other"), open(t, c, "disk")
			b := make([]byte, 8)
			if _, err := f.ReadAt(b, 0); err != nil {
				t.Fatal(err)
			}
			p.to("") // the server closes its uses
			for h.s.Connections() > 0 {
				time.Sleep(time.Millisecond)
			}
			if err := x.change(h); err != nil {
				t.Fatal(err)
			}
			if x.restart {
				if err := h.pool.Sync(); err != nil {
					t.Fatal(err)
				}
				stream := rng.NewStream(1, "restart")
				h.kill(p, &stream)
			}
			p.to(h.address())
			if _, err := f.ReadAt(b, 0); !errors.Is(err, x.want) {
				t.Errorf("read: %v, want %v", err, x.want)
			} else {
				t.Log(err)
			}
			if _, err := good.ReadAt(b, 0); err != nil {
				t.Errorf("another file: %v", err)
			}
			if x.name == "longer" && f.Size() != fileSize+1 {
				t.Errorf("%d bytes", f.Size())
			}
		})
	}
}

// TestGiveUp: without a server, operations return after the limit with the error of the last attempt, and the client
// has ended; a context or Close ends the wait at once.
func TestGiveUp(t *testing.T) {
	bounded(t, time.Minute)
	h := newHost(t)
	p := newProxy(t, h.address(), never)
	cfg := quick()
	cfg.Reconnect.Limit = 300 * time.Millisecond
	c := dial(t, p.address(), cfg)
	f := open(t, c, "disk")
	p.to("")
	began := time.Now()
	_, err := f.ReadAt(make([]byte, 8), 0)
	if took := time.Since(began); err == nil || took < 200*time.Millisecond || took > 10*time.Second {
		t.Errorf("after %v: %v", took, err)
	}
	t.Log(err)
	if _, err := f.WriteAt(make([]byte, 8), 0); err == nil {
		t.Error("the client has not ended")
	}
	if _, _, err := c.Stat("disk"); err == nil {
		t.Error("the client has not ended")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}

	p.to(h.address())
	cfg.Reconnect.Limit = time.Hour
	c = dial(t, p.address(), cfg)
	f = open(t, c, "disk")
	p.to("")
	errs := make(chan error)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, err := f.Within(ctx).ReadAt(make([]byte, 8), 0)
		errs <- err
	}()
	time.Sleep(20 * time.Millisecond)
	cancel()
	if err := <-errs; !errors.Is(err, context.Canceled) {
		t.Errorf("a read whose context has ended: %v", err)
	}
	for range 3 {
		go func() {
			_, err := f.WriteDurable(make([]byte, 8), 0)
			errs <- err
		}()
		go func() { errs <- f.Flush() }()
	}
	time.Sleep(20 * time.Millisecond)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	for range 6 {
		if err := <-errs; !errors.Is(err, verbs.ErrClosed) {
			t.Errorf("a wait when the client was closed: %v", err)
		}
	}
}

// TestConfig verifies that settings with which a client would wait for ever, or not at all, are refused.
func TestConfig(t *testing.T) {
	for _, change := range []func(r *client.Reconnect){
		func(r *client.Reconnect) { r.Limit = -1 }, func(r *client.Reconnect) { r.First = 0 },
		func(r *client.Reconnect) { r.Cap = r.First - 1 }, func(r *client.Reconnect) { r.Attempt = 0 },
		func(r *client.Reconnect) { r.Silence = -1 }, func(r *client.Reconnect) { r.Unanswered = -1 },
	} {
		cfg := client.DefaultConfig()
		change(&cfg.Reconnect)
		if _, err := client.Dial(context.Background(), "127.0.0.1:1", cfg); err == nil ||
			!strings.HasPrefix(err.Error(), "client: ") || errors.As(err, new(*net.OpError)) {
			t.Errorf("%+v: %v", cfg.Reconnect, err)
		}
	}
}

// TestInProgress: operations in progress on a connection that falls silent are executed on the next one, and a context
// that ends meanwhile ends a write with an unknown outcome.
func TestInProgress(t *testing.T) {
	bounded(t, time.Minute)
	h := newHost(t)
	p := newProxy(t, h.address(), func(n int) way {
		if n == 0 {
			return way{cut: 4000, end: mute}
		}
		return way{cut: -1}
	})
	cfg := quick()
	cfg.Reconnect.Limit = time.Hour
	c := dial(t, p.address(), cfg)
	f := open(t, c, "disk")
	if _, err := f.WriteDurable(filled(7), 0); err != nil {
		t.Fatal(err)
	}
	if n := h.s.Connections(); n != 1 {
		t.Errorf("%d connections", n)
	}
	// The next one: the server disappears with a write in progress.
	p.set(func(int) way { return way{cut: 4000, end: mute} })
	p.to(h.address())
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err := f.Within(ctx).WriteDurable(filled(8), ctl.Page)
	if !errors.Is(err, client.ErrUnknown) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a write whose context ends: %v", err)
	}
	p.set(never)
	p.to(h.address())
	got := make([]byte, ctl.Page)
	if _, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, filled(7)) {
		t.Errorf("read %d: %v", got[0], err)
	}
}

// TestFault: an operation that the server answers with a fault fails, is not repeated, and later ones succeed. What was
// not flushed before it is reported as lost.
func TestFault(t *testing.T) {
	bounded(t, time.Minute)
	h := newHost(t)
	p := newProxy(t, h.address(), never)
	c := dial(t, p.address(), quick())
	f := open(t, c, "disk")
	if _, err := f.WriteDurable(filled(1), 0); err != nil {
		t.Fatal(err)
	}
	stream := rng.NewStream(1, "fault")
	h.kill(p, &stream) // recovery writes a checkpoint, so the page is no longer taken for one that was being written
	page, found := make([]byte, ctl.Page), false
	for g := range int64(1600) {
		if h.dev.Peek(g*device.Grain, page); bytes.Equal(page, filled(1)) {
			h.dev.Corrupt(g*device.Grain + 5)
			found = true
		}
	}
	if !found {
		t.Fatal("the page is not on the device")
	}
	h.kill(p, &stream)
	for range 3 {
		if _, err := f.WriteAt(filled(2), 2*ctl.Page); err != nil {
			t.Fatal(err)
		}
		if _, err := f.ReadAt(page, 0); !errors.As(err, new(verbs.Terminated)) {
			t.Errorf("read of a damaged page: %v", err)
		}
		if _, err := f.ReadAt(page, ctl.Page); err != nil {
			t.Errorf("read of another: %v", err)
		}
		if err := f.Flush(); !errors.Is(err, client.ErrLost) {
			t.Errorf("flush after a fault: %v", err)
		}
		if err := f.Flush(); err != nil {
			t.Errorf("the next flush: %v", err)
		}
	}
}
