package initiator_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"farflash/flash/cfs"
	"farflash/flash/ctl"
	"farflash/flash/device"
	"farflash/flash/nbd"
	"farflash/flash/nvme"
	"farflash/flash/nvme/initiator"
	"farflash/flash/nvme/nvmetest"
	flashserver "farflash/flash/server"
	"farflash/internal/patience"
	"farflash/numeric/rng"
)

// relay passes connections on to a server that may be replaced.
type relay struct {
	l  net.Listener
	mu sync.Mutex
	at string // of the server; empty: none
	// connections to end, and what passes their bytes on
	conns   map[net.Conn]bool
	running sync.WaitGroup
	count   int
}

func newRelay(t testing.TB) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{l: l, conns: map[net.Conn]bool{}}
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			r.pass(in)
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		r.to("")
	})
	return r
}

func (r *relay) pass(in net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out, err := net.Dial("tcp", r.at)
	if r.at == "" || err != nil {
		_ = in.Close()
		return
	}
	r.count++
	for _, x := range [][2]net.Conn{{in, out}, {out, in}} {
		r.conns[x[0]] = true
		r.running.Go(func() {
			_, _ = io.Copy(x[0], x[1])
			_ = x[0].Close()
			_ = x[1].Close()
		})
	}
}

// to ends all connections, and passes later ones on to another server. Nothing of the earlier one arrives any more.
func (r *relay) to(at string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = at
	for c := range r.conns {
		_ = c.Close()
		delete(r.conns, c)
	}
	r.running.Wait()
}

// machine is a daemon on a device in memory, whose power can be cut.
type machine struct {
	t     testing.TB
	dev   *device.Mem
	pool  *ctl.Pool
	tree  *cfs.FS
	s     *flashserver.Server
	relay *relay
}

const diskSize = 8 << 20

func newMachine(t testing.TB) *machine {
	t.Helper()
	m := &machine{t: t, dev: device.NewMem(8000 * device.Grain), relay: newRelay(t)}
	layout := ctl.Layout{Segment: 32, OverProvision: 0.3, LogPages: 24}
	shape, err := layout.Shape(m.dev.Size())
	if err == nil {
		err = ctl.Format(shape, m.dev)
	}
	if err != nil {
		t.Fatal(err)
	}
	m.start(func() error {
		if err := cfs.Format(m.pool, cfs.Config{}); err != nil {
			return err
		}
		tree, err := cfs.Open(m.pool, cfs.Config{})
		if err != nil {
			return err
		}
		f, err := tree.Create(cfs.Cred{}, "disk", 0o600, diskSize)
		if err != nil {
			return err
		}
		return f.Close()
	})
	t.Cleanup(m.stop)
	return m
}

// start opens the pool and serves it.
func (m *machine) start(before func() error) {
	m.t.Helper()
	cfg := ctl.DefaultConfig()
	cfg.Frames, cfg.Chunk = 4096, 8
	var err error
	if m.pool, err = ctl.Open(cfg, m.dev); err == nil {
		err = before()
	}
	if err == nil {
		m.tree, err = cfs.Open(m.pool, cfs.Config{})
	}
	if err != nil {
		m.t.Fatal(err)
	}
	sc := flashserver.DefaultConfig()
	sc.Pool, sc.Files = m.pool, flashserver.Tree(m.tree, cfs.Cred{})
	sc.Address, sc.NVMe, sc.Queues, sc.Subsystem = "", []string{"127.0.0.1:0"}, 2, nvmetest.Subsystem
	if m.s, err = flashserver.New(sc); err == nil {
		err = m.s.Listen()
	}
	if err != nil {
		m.t.Fatal(err)
	}
	m.relay.to(m.s.Paths()[0].String())
}

func (m *machine) stop() {
	m.relay.to("")
	if err := errors.Join(m.s.Drain(0), m.pool.Close()); err != nil {
		m.t.Error(err)
	}
}

// kill ends the daemon as a power cut does, and starts another one.
func (m *machine) kill(draw *rng.Stream) {
	m.t.Helper()
	m.relay.to("")
	after := m.dev.Crash(draw)
	m.stop()
	m.dev = after
	m.start(func() error { return nil })
}

// lasting is a configuration that reconnects fast enough for a test.
func lasting(queues int) initiator.Config {
	cfg := config(queues)
	cfg.Reconnect = initiator.DefaultConfig().Reconnect
	cfg.Reconnect.First, cfg.Reconnect.Cap = time.Millisecond, 20*time.Millisecond
	return cfg
}

// filled is a number of pages of one version.
func filled(version uint64, pages int) []byte {
	return bytes.Repeat(binary.LittleEndian.AppendUint64(nil, version), pages*ctl.Page/8)
}

// TestKilled cuts the power of a server and starts it again, 50 times (5 with -short), while several goroutines read
// and write, and verifies all contents: what was durable is there, what a Flush has made so as well unless it said that
// it may be lost, and nothing is older than it may be.
func TestKilled(t *testing.T) {
	defer patience.Limit()()
	kills := 50
	if testing.Short() {
		kills = 5
	}
	m := newMachine(t)
	a := dial(t, m.relay.l.Addr().String(), lasting(2))
	var done atomic.Bool
	var work sync.WaitGroup
	var losses, calls atomic.Int64
	// The last worker's pages are long enough for a write of several commands.
	const workers, pages = 5, 4
	long := func(g int) int {
		if g == workers-1 {
			return 300
		}
		return 1 + 2*g
	}
	first := 0
	for g := range workers {
		n := space(t, a, 1) // of its own, because each reports a loss once
		from, unit := first, long(g)
		first += pages * unit
		work.Go(func() {
			defer done.Store(true) // after a failure
			r := rand.New(rand.NewPCG(1, uint64(g)))
			var newest, floor [pages]uint64 // versions: written last, and at least there
			var gone [pages]bool            // the newest may be lost, as a Flush has reported
			at := func(page int) int64 { return int64(from+page*unit) * ctl.Page }
			verify := func(page int) error {
				got := make([]byte, unit*ctl.Page)
				if _, err := n.ReadAt(got, at(page)); err != nil {
					return err
				}
				for i := range unit {
					b := got[i*ctl.Page:][:ctl.Page]
					if v := binary.LittleEndian.Uint64(b); v < floor[page] || v > newest[page] ||
						!bytes.Equal(b, filled(v, 1)) {
						return fmt.Errorf("version %d, want %d to %d", v, floor[page], newest[page])
					}
				}
				return nil
			}
			step := func(page int) (err error) {
				switch k := r.IntN(10); {
				case k < 4:
					newest[page]++
					gone[page] = false
					_, err = n.WriteAt(filled(newest[page], unit), at(page))
				case k < 6:
					newest[page]++
					gone[page] = false
					if _, err = n.WriteDurable(filled(newest[page], unit), at(page)); err == nil {
						floor[page] = newest[page]
					}
				case k < 7:
					err = n.Flush()
					if errors.Is(err, initiator.ErrLost) {
						losses.Add(1)
						for i := range pages {
							gone[i] = newest[i] > floor[i]
						}
						return nil
					}
					for i := range pages {
						if err == nil && !gone[i] {
							floor[i] = newest[i]
						}
					}
				default:
					err = verify(page)
				}
				return err
			}
			for !done.Load() {
				page := r.IntN(pages)
				if err := step(page); err != nil {
					t.Errorf("goroutine %d, page %d: %v", g, page, err)
					return
				}
				calls.Add(1)
			}
			for page := range pages {
				if err := verify(page); err != nil {
					t.Errorf("in the end: goroutine %d, page %d: %v", g, page, err)
				}
			}
		})
	}
	draw := rng.NewStream(1, "kills")
	for range kills {
		for from := calls.Load(); calls.Load() < from+50 && !done.Load(); {
			time.Sleep(time.Millisecond)
		}
		if done.Load() {
			break
		}
		m.kill(&draw)
	}
	done.Store(true)
	work.Wait()
	m.relay.mu.Lock()
	n := m.relay.count
	m.relay.mu.Unlock()
	t.Logf("%d calls, %d connections, %d losses reported", calls.Load(), n, losses.Load())
	if n < 2*kills {
		t.Errorf("only %d connections", n)
	}
}

// TestLostWrites verifies that the next Flush of each Namespace with writes that were not flushed reports that they may
// be lost, once, when the server was started again; not after a lost connection to the same server, and not without
// such writes.
func TestLostWrites(t *testing.T) {
	m := newMachine(t)
	a := dial(t, m.relay.l.Addr().String(), lasting(1))
	wrote, flushed, durable, idle := space(t, a, 1), space(t, a, 1), space(t, a, 1), space(t, a, 1)
	b := filled(1, 1)
	all := map[*initiator.Namespace]string{wrote: "wrote", flushed: "flushed", durable: "durable", idle: "idle"}
	write := func(n *initiator.Namespace, how func([]byte, int64) (int, error)) {
		t.Helper()
		if _, err := how(b, 0); err != nil {
			t.Fatal(all[n], err)
		}
	}
	flush := func(when string, lost ...*initiator.Namespace) {
		t.Helper()
		for n, name := range all {
			err := n.Flush()
			for _, x := range lost {
				if x == n && errors.Is(err, initiator.ErrLost) {
					err = nil
				} else if x == n {
					t.Errorf("%s, %s: no loss: %v", when, name, err)
				}
			}
			if err != nil {
				t.Errorf("%s, %s: %v", when, name, err)
			}
		}
	}
	before := func() {
		write(wrote, wrote.WriteAt)
		write(flushed, flushed.WriteAt)
		write(durable, durable.WriteDurable)
		if err := flushed.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	before()
	m.relay.to(m.s.Paths()[0].String())
	flush("another connection")
	before()
	draw := rng.NewStream(1, "kill")
	m.kill(&draw)
	flush("another server", wrote)
	flush("once more")
	m.kill(&draw)
	flush("yet another server, without writes since")
	if err := wrote.WriteZeroes(0, ctl.Page); err != nil {
		t.Fatal(err)
	}
	m.kill(&draw)
	flush("zeros were written", wrote)
}

// TestChanged verifies that a Namespace whose file is another one after the loss, is gone or is smaller cannot be used
// any more, and that others can.
func TestChanged(t *testing.T) {
	for name, change := range map[string]func(m *machine) error{
		"another": func(m *machine) error {
			f, err := m.tree.Create(cfs.Cred{}, "new", 0o600, diskSize)
			if err != nil {
				return err
			}
			return errors.Join(f.Close(), m.tree.Rename(cfs.Cred{}, "new", "disk", false))
		},
		"gone": func(m *machine) error { return m.tree.Remove(cfs.Cred{}, "disk") },
		"smaller": func(m *machine) error {
			f, err := m.tree.Open(cfs.Cred{}, "disk", cfs.Read|cfs.Write)
			if err != nil {
				return err
			}
			return errors.Join(f.Truncate(diskSize/2), f.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			f, err := m.tree.Create(cfs.Cred{}, "other", 0o600, 1<<20)
			if err != nil || f.Close() != nil {
				t.Fatal(err)
			}
			m.s.Refresh()
			a := dial(t, m.relay.l.Addr().String(), lasting(1))
			all, err := a.Namespaces()
			if err != nil || len(all) != 2 {
				t.Fatal(all, err)
			}
			disk, other := all[0], all[1]
			b := make([]byte, ctl.Page)
			if _, err := disk.WriteDurable(b, diskSize-ctl.Page); err != nil {
				t.Fatal(err)
			}
			m.relay.to("")
			if err := change(m); err != nil {
				t.Fatal(err)
			}
			m.stop()
			m.dev = m.dev.Reopen()
			m.start(func() error { return nil })
			for range 2 {
				if _, err := disk.ReadAt(b, 0); !errors.Is(err, initiator.ErrChanged) {
					t.Errorf("read: %v", err)
				}
			}
			if _, err := other.WriteDurable(b, 0); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestGiveUp verifies that without a server calls return after the limit, a change as one of unknown outcome if it was
// sent, and that the association has then ended; and that Close interrupts the wait.
func TestGiveUp(t *testing.T) {
	m := nvmetest.NewMemory(4 << 20)
	held := make(chan *nbd.Task, 64)
	var hold atomic.Bool
	m.Before = func(x *nbd.Task) bool {
		if hold.Load() {
			held <- x
			return false
		}
		return true
	}
	_, _, addr := serve(t, nvme.DefaultConfig(), nil, nvmetest.Space(1, m))
	r := newRelay(t)
	r.to(addr)
	b := make([]byte, 4096)
	long := make([]byte, 3<<20)
	for name, closes := range map[string]bool{"limit": false, "close": true} {
		cfg := lasting(1)
		if !closes {
			cfg.Reconnect.Limit = 200 * time.Millisecond
		}
		a := dial(t, r.l.Addr().String(), cfg)
		n := space(t, a, 1)
		hold.Store(true)
		errs := make([]error, 4)
		var calls sync.WaitGroup
		for i, call := range []func() error{
			func() error { _, err := n.WriteAt(b, 0); return err },
			func() error { _, err := n.ReadAt(b, 8192); return err },
			func() error { return n.Discard(0, 4096) },
			func() error { _, err := n.WriteDurable(long, 0); return err },
		} {
			calls.Go(func() { errs[i] = call() })
		}
		var tasks []*nbd.Task
		for began := 0; began < 6; { // the last is three commands, of several tasks each
			x := <-held
			tasks = append(tasks, x)
			if x.Kind != nbd.Write || x.Offset%(1<<20) == 0 {
				began++
			}
		}
		r.to("")
		if closes {
			time.Sleep(20 * time.Millisecond)
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		}
		calls.Wait()
		for i, err := range errs {
			if err == nil || errors.Is(err, initiator.ErrUnknown) != (i != 1) ||
				errors.Is(err, initiator.ErrClosed) != closes {
				t.Errorf("%s, call %d: %v", name, i, err)
			}
		}
		if _, err := n.WriteAt(b, 0); err == nil || errors.Is(err, initiator.ErrUnknown) || a.Err() == nil {
			t.Errorf("%s, afterwards: %v, %v", name, err, a.Err())
		} else if !closes && !strings.Contains(err.Error(), "no connection for 200ms") {
			t.Errorf("%s, afterwards: %v", name, err)
		}
		hold.Store(false)
		for _, x := range tasks { // so that the host is let in again
			m.Execute(x)
		}
		for len(held) > 0 {
			m.Execute(<-held)
		}
		r.to(addr)
	}
}

// TestViolation verifies that what an answer that violates the protocol interrupts is not repeated, and that later
// calls succeed.
func TestViolation(t *testing.T) {
	m := nvmetest.NewMemory(1 << 20)
	held := make(chan *nbd.Task, 8)
	var hold atomic.Bool
	var seen atomic.Int64
	m.Before = func(x *nbd.Task) bool {
		seen.Add(1)
		if hold.Load() {
			held <- x
			return false
		}
		return true
	}
	_, _, addr := serve(t, nvme.DefaultConfig(), nil, nvmetest.Space(1, m))
	r := newRelay(t)
	r.to(addr)
	a := dial(t, r.l.Addr().String(), lasting(1))
	n := space(t, a, 1)
	b := make([]byte, 4096)
	hold.Store(true)
	failed := make(chan error, 1)
	go func() { _, err := n.WriteAt(b, 0); failed <- err }()
	task := <-held
	r.inject([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	if err := <-failed; !errors.Is(err, initiator.ErrUnknown) {
		t.Errorf("the write: %v", err)
	}
	hold.Store(false)
	m.Execute(task) // so that the host is let in again
	was := seen.Load()
	if _, err := n.ReadAt(b, 0); err != nil || seen.Load() != was+1 {
		t.Errorf("a read afterwards: %v, and %d commands", err, seen.Load()-was)
	}
}

// inject sends bytes to the host as if they came from the controller, on all its connections.
func (r *relay) inject(b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		if c.LocalAddr().String() == r.l.Addr().String() {
			_, _ = c.Write(b)
		}
	}
}

// TestIdle verifies that a loss long after another one, between which nothing was read or written, is a new outage.
func TestIdle(t *testing.T) {
	_, _, addr := serve(t, nvme.DefaultConfig(), nil, nvmetest.Space(1, nvmetest.NewMemory(1<<20)))
	r := newRelay(t)
	r.to(addr)
	cfg := lasting(1)
	cfg.Reconnect.Limit = 2 * time.Second
	a := dial(t, r.l.Addr().String(), cfg)
	n := space(t, a, 1)
	r.to(addr)
	if _, err := a.Namespaces(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(cfg.Reconnect.Limit + 100*time.Millisecond)
	r.to(addr)
	if _, err := n.ReadAt(make([]byte, 4096), 0); err != nil {
		t.Error(err)
	}
}
