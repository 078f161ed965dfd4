package kv_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"farflash/flash/cfs"
	"farflash/flash/client"
	"farflash/flash/ctl"
	"farflash/flash/device"
	"farflash/flash/kv"
	flashpool "farflash/flash/pool"
	"farflash/flash/server"
	"farflash/flash/uring"
	"farflash/flash/verbs"
	"farflash/internal/patience"
	"farflash/numeric/rng"
)

// daemon is a server in this process, with a store's file in a pool in memory.
type daemon struct {
	t       testing.TB
	dev     *device.Mem
	pool    *ctl.Pool
	tree    *cfs.FS
	s       *server.Server
	loops   *uring.Loops
	address string
}

func serve(t testing.TB, g kv.Geometry) *daemon {
	t.Helper()
	d := &daemon{t: t, dev: device.NewMem((2*g.Size()/device.Grain + 4000) * device.Grain)}
	layout := ctl.Layout{Segment: 64, OverProvision: 0.3, LogPages: 64}
	shape, err := layout.Shape(d.dev.Size())
	d.must(err)
	d.must(ctl.Format(shape, d.dev))
	d.loops, err = flashpool.Threads(flashpool.DefaultOptions(), 2)
	d.must(err)
	t.Cleanup(func() {
		d.stop()
		if d.loops != nil {
			d.must(d.loops.Close())
		}
	})
	d.open(func() { d.must(cfs.Format(d.pool, cfs.Config{})) })
	f, err := d.tree.Create(cfs.Cred{}, "/store", 0o600, g.Size())
	d.must(err)
	d.must(f.Close())
	m, _, end := d.dial(d.address, 0)
	d.must(kv.Create(m, g))
	end()
	return d
}

func (d *daemon) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// open opens the pool and serves it.
func (d *daemon) open(format func()) {
	d.t.Helper()
	cfg := ctl.DefaultConfig()
	cfg.Frames = 1024 // so few that pages leave and come back
	var err error
	d.pool, err = ctl.Open(cfg, d.dev)
	d.must(err)
	format()
	d.tree, err = cfs.Open(d.pool, cfs.Config{})
	d.must(err)
	sc := server.DefaultConfig()
	sc.Pool, sc.Files, sc.Loops = d.pool, server.Tree(d.tree, cfs.Cred{}), d.loops
	sc.Address, sc.Connections, sc.Reads = "127.0.0.1:0", 16, 4
	d.s, err = server.New(sc)
	d.must(err)
	d.must(d.s.Listen())
	d.address, _, _ = d.s.Addresses()
}

func (d *daemon) stop() { d.must(errors.Join(d.s.Drain(0), d.pool.Close())) }

// crash cuts the power, and serves the content of the flash.
func (d *daemon) crash(draw *rng.Stream) {
	d.t.Helper()
	after := d.dev.Crash(draw)
	d.stop()
	d.dev = after
	d.open(func() {})
}

// dial opens the store's file over an address.
func (d *daemon) dial(address string, seed uint64) (m *kv.Remote, c *client.Client, end func()) {
	d.t.Helper()
	m, c, err := reach(address, seed)
	d.must(err)
	return m, c, func() { _ = c.Close() }
}

func reach(address string, seed uint64) (m *kv.Remote, c *client.Client, err error) {
	cfg := client.DefaultConfig()
	cfg.Named = true
	cfg.Reconnect.First, cfg.Reconnect.Cap, cfg.Reconnect.Seed = time.Millisecond, 20*time.Millisecond, seed
	cfg.Reconnect.Limit = 5 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if c, err = client.Dial(ctx, address, cfg); err != nil {
		return nil, nil, err
	}
	f, err := c.Open("store", verbs.RemoteRead|verbs.RemoteWrite|verbs.RemoteAtomic)
	if err == nil {
		m, err = kv.NewRemote(c, f)
	}
	if err != nil {
		_ = c.Close()
	}
	return m, c, err
}

// empty deletes the keys of a history.
func (d *daemon) empty(t *testing.T) {
	t.Helper()
	m, _, end := d.dial(d.address, 1)
	defer end()
	s, err := kv.Open(context.Background(), m, m, m.Options())
	if err != nil {
		t.Fatal(err)
	}
	for k := range 3 {
		if _, err := s.Delete(context.Background(), []byte(fmt.Sprint(k))); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// cutter forwards connections, and cuts all of them on demand.
type cutter struct {
	l    net.Listener
	mu   sync.Mutex
	open map[net.Conn]bool
	all  sync.WaitGroup
}

func newCutter(t testing.TB, to string) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	x := &cutter{l: l, open: map[net.Conn]bool{}}
	x.all.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				_ = near.Close()
				continue
			}
			x.mu.Lock()
			x.open[near], x.open[far] = true, true
			x.mu.Unlock()
			for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
				x.all.Go(func() {
					_, _ = io.Copy(pair[0], pair[1])
					_, _ = pair[0].Close(), pair[1].Close()
				})
			}
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		x.cut()
		x.all.Wait()
	})
	return x
}

func (x *cutter) cut() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for c := range x.open {
		_ = c.Close()
		delete(x.open, c)
	}
}

// stalled is a client that stands still in the middle of things now and then, for longer than others have patience.
type stalled struct {
	*kv.Remote
	long time.Duration

	mu   sync.Mutex
	draw rng.Stream
}

func (x *stalled) CompareSwapBits(off int64, old, oldMask, value, mask uint64, durable bool) (uint64, error) {
	x.mu.Lock()
	still := x.draw.IntN(60) == 0
	x.mu.Unlock()
	if still {
		time.Sleep(x.long)
	}
	return x.Remote.CompareSwapBits(off, old, oldMask, value, mask, durable)
}

// TestRemoteHistories: the same over a server with two threads, and with connections that are cut: histories of clients
// with values of one page and of several segments are those of registers.
func TestRemoteHistories(t *testing.T) {
	worlds := 20
	if testing.Short() {
		worlds = 4
	}
	if patience.Long(t) {
		worlds = 1000
	}
	for _, size := range []int{4000, 65000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			g, err := kv.NewGeometry(100, 16, size, kv.Async, 1)
			if err != nil {
				t.Fatal(err)
			}
			for seed := range uint64(worlds) {
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					// The first client of a fresh server counts the slots. It may be the one whose connections are cut.
					h := over(t, serve(t, g), g, seed, size)
					if porcupine.CheckOperationsTimeout(register, h, 30*time.Second) == porcupine.Illegal {
						t.Errorf("seed %d: not linearisable", seed)
					}
				})
			}
		})
	}
}

// over lets four clients do operations over connections that are cut, and returns their history.
func over(t *testing.T, d *daemon, g kv.Geometry, seed uint64, size int) []porcupine.Operation {
	t.Helper()
	var mu sync.Mutex
	var all []porcupine.Operation
	began := time.Now()
	var running, cutting sync.WaitGroup
	over := make(chan struct{})
	for c := range 4 {
		x := newCutter(t, d.address)
		running.Go(func() {
			draw := rng.NewStream(seed, fmt.Sprint("client ", c))
			m, _, end := d.dial(x.l.Addr().String(), seed*4+uint64(c)+1)
			defer end()
			if c == 0 { // one whose connections are cut
				cutting.Go(func() {
					draw := rng.NewStream(seed, "cuts")
					for {
						select {
						case <-over:
							return
						case <-time.After(time.Duration(1+draw.IntN(8)) * time.Millisecond):
							x.cut()
						}
					}
				})
			}
			slow := &stalled{Remote: m, long: 30 * time.Millisecond, draw: rng.NewStream(seed, fmt.Sprint("stalls ", c))}
			o := m.Options()
			o.Patience = time.Second
			s, err := kv.Open(context.Background(), slow, m, o)
			if err != nil {
				t.Errorf("seed %d: open: %v", seed, err)
				return
			}
			defer func() {
				if err := s.Close(); err != nil && !errors.Is(err, client.ErrFenced) {
					t.Errorf("seed %d: close: %v", seed, err)
				}
			}()
			for i := range 20 {
				in := input{op: []string{"get", "get", "put", "del", "add", "add"}[draw.IntN(6)],
					key: fmt.Sprint(draw.IntN(3))}
				switch in.op {
				case "put":
					text := fmt.Sprint(c, ".", i, " ")
					in.value = strings.Repeat(text, (size-100)/len(text))[:int(draw.IntN(int64(size-100)))]
				case "add":
					in.value = fmt.Sprint(1 << draw.IntN(20))
				}
				call := time.Since(began)
				out, err := ask(s, in)
				back := time.Since(began)
				switch {
				case errors.Is(err, kv.ErrUnknown), errors.Is(err, client.ErrFenced):
					out, back = output{unknown: true}, time.Hour
				case err != nil:
					t.Errorf("seed %d: %s of %s: %v", seed, in.op, in.key, err)
					return
				}
				mu.Lock()
				all = append(all, porcupine.Operation{ClientId: c, Input: in, Output: out, Call: int64(call),
					Return: int64(back)})
				mu.Unlock()
				if errors.Is(err, client.ErrFenced) {
					return
				}
			}
		})
	}
	running.Wait()
	close(over)
	cutting.Wait()
	return all
}

// TestRemoteCrash cuts the power of a real server while clients change a store, several times. A durable one goes on as
// if only operations in progress had been cut off, and one of the class Data has values that it once had.
func TestRemoteCrash(t *testing.T) {
	crashes := 6
	if testing.Short() {
		crashes = 2
	}
	if patience.Long(t) {
		crashes = 300
	}
	for _, class := range []kv.Class{kv.Data, kv.Durable} {
		t.Run(class.String(), func(t *testing.T) {
			g, err := kv.NewGeometry(100, 16, 4000, class, 1)
			if err != nil {
				t.Fatal(err)
			}
			d := serve(t, g)
			draw := rng.NewStream(uint64(class), "power")
			h := &record{began: time.Now()}
			for n := range crashes {
				var gate sync.RWMutex // read-locked while an answer is taken: none counts after the cut
				var running sync.WaitGroup
				off, address := false, d.address
				for c := range 4 {
					running.Go(func() { h.until(t, address, uint64(n*4+c), &gate, &off) })
				}
				time.Sleep(time.Duration(5+draw.IntN(60)) * time.Millisecond)
				gate.Lock()
				off = true
				gate.Unlock()
				d.crash(&draw)
				h.part() // the next server has another address
				running.Wait()
				if t.Failed() {
					return
				}
				if class == kv.Durable && n%6 == 5 { // histories become too long to check
					h.check(t)
					d.empty(t)
					h.all = nil
				}
			}
			h.check(t)
		})
	}
}

// record is the history of a test.
type record struct {
	mu    sync.Mutex
	began time.Time
	all   []porcupine.Operation
	class kv.Class
	ends  []func() // of clients
}

// part ends all clients.
func (h *record) part() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, end := range h.ends {
		end()
	}
	h.ends = nil
}

// until lets a client do operations until the power is off.
func (h *record) until(t *testing.T, address string, seed uint64, gate *sync.RWMutex, off *bool) {
	m, c, err := reach(address, seed+1)
	var s *kv.Store
	if err == nil {
		h.mu.Lock()
		h.ends = append(h.ends, func() { _ = c.Close() })
		h.mu.Unlock()
		s, err = kv.Open(context.Background(), m, m, m.Options())
	}
	if err != nil {
		gate.RLock()
		defer gate.RUnlock()
		if !*off {
			t.Errorf("open: %v", err)
		}
		return
	}
	h.mu.Lock()
	h.class = s.Geometry().Class
	h.mu.Unlock()
	draw := rng.NewStream(seed, "crashed client")
	for i := 0; ; i++ {
		in := input{op: []string{"get", "put", "del", "add"}[draw.IntN(4)], key: fmt.Sprint(draw.IntN(3))}
		switch in.op {
		case "put":
			in.value = strings.Repeat(fmt.Sprint(seed, ".", i, " "), 1+int(draw.IntN(300)))
		case "add":
			in.value = fmt.Sprint(1 << draw.IntN(20))
		}
		x := porcupine.Operation{ClientId: int(seed % 4), Input: in, Output: output{unknown: true},
			Call: int64(time.Since(h.began)), Return: 1 << 62}
		out, err := ask(s, in)
		gate.RLock()
		if err == nil && !*off {
			x.Output, x.Return = out, int64(time.Since(h.began))
		}
		if err != nil && !*off {
			t.Errorf("%s of %s: %v", in.op, in.key, err)
		}
		over := *off
		gate.RUnlock()
		h.mu.Lock()
		h.all = append(h.all, x)
		h.mu.Unlock()
		if over || err != nil {
			return
		}
	}
}

// check checks the history, as far as the class promises something.
func (h *record) check(t *testing.T) {
	t.Helper()
	if h.class == kv.Durable {
		if porcupine.CheckOperationsTimeout(register, h.all, time.Minute) == porcupine.Illegal {
			t.Fatal("not linearisable over power cuts")
		}
		return
	}
	wrote := map[string]bool{}
	for _, x := range h.all {
		if in := x.Input.(input); in.op == "put" {
			wrote[in.key+" "+in.value] = true
		}
	}
	for _, x := range h.all {
		in, out := x.Input.(input), x.Output.(output)
		if in.op == "get" && out.ok && strings.Contains(out.value, ".") && !wrote[in.key+" "+out.value] {
			t.Fatalf("%s has %.40q, which no client wrote", in.key, out.value)
		}
	}
}

// ask does an operation.
func ask(s *kv.Store, x input) (y output, err error) {
	ctx := context.Background()
	switch x.op {
	case "get":
		var v []byte
		v, y.ok, err = s.Get(ctx, []byte(x.key), nil)
		y.value = string(v)
	case "put":
		err = s.Put(ctx, []byte(x.key), []byte(x.value))
	case "del":
		y.ok, err = s.Delete(ctx, []byte(x.key))
	default:
		err = s.Update(ctx, []byte(x.key), func(old []byte, _ bool) ([]byte, kv.Action) {
			y.value = fmt.Sprint(number(string(old)) + number(x.value))
			return []byte(y.value), kv.Set
		})
	}
	return y, err
}
