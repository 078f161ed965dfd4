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
	"farflash/flash/verbs"
	"farflash/internal/patience"
	"farflash/numeric/rng"
)

// daemon is a server in this process, with a store's file in a pool in memory.
type daemon struct {
	t       testing.TB
	address string
}

func serve(t testing.TB, g kv.Geometry) *daemon {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	dev := device.NewMem((2*g.Size()/device.Grain + 4000) * device.Grain)
	layout := ctl.Layout{Segment: 64, OverProvision: 0.3, LogPages: 64}
	shape, err := layout.Shape(dev.Size())
	must(err)
	must(ctl.Format(shape, dev))
	cfg := ctl.DefaultConfig()
	cfg.Frames = 1024 // so few that pages leave and come back
	pool, err := ctl.Open(cfg, dev)
	must(err)
	must(cfs.Format(pool, cfs.Config{}))
	tree, err := cfs.Open(pool, cfs.Config{})
	must(err)
	f, err := tree.Create(cfs.Cred{}, "/store", 0o600, g.Size())
	must(err)
	must(f.Close())
	sc := server.DefaultConfig()
	sc.Pool, sc.Files = pool, server.Tree(tree, cfs.Cred{})
	sc.Address, sc.Connections, sc.Reads = "127.0.0.1:0", 16, 4
	loops, err := flashpool.Threads(flashpool.DefaultOptions(), 2)
	must(err)
	sc.Loops = loops
	s, err := server.New(sc)
	must(err)
	must(s.Listen())
	at, _, _ := s.Addresses()
	t.Cleanup(func() {
		must(s.Drain(time.Second))
		must(pool.Close())
		if loops != nil {
			must(loops.Close())
		}
	})
	d := &daemon{t, at}
	m, _, end := d.dial(at, 0)
	must(kv.Create(m, g))
	end()
	return d
}

// dial opens the store's file over an address.
func (d *daemon) dial(address string, seed uint64) (m *kv.Remote, c *client.Client, end func()) {
	d.t.Helper()
	cfg := client.DefaultConfig()
	cfg.Named = true
	cfg.Reconnect.First, cfg.Reconnect.Cap, cfg.Reconnect.Seed = time.Millisecond, 20*time.Millisecond, seed
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c, err := client.Dial(ctx, address, cfg)
	if err != nil {
		d.t.Fatal(err)
	}
	f, err := c.Open("store", verbs.RemoteRead|verbs.RemoteWrite|verbs.RemoteAtomic)
	if err == nil {
		m, err = kv.NewRemote(c, f)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	return m, c, func() { _ = c.Close() }
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
			d := serve(t, g)
			for seed := range uint64(worlds) {
				h := over(t, d, g, seed, size)
				if porcupine.CheckOperationsTimeout(register, h, 30*time.Second) == porcupine.Illegal {
					t.Fatalf("seed %d: not linearisable", seed)
				}
				d.empty(t)
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
