package initiator_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"farflash/flash/nbd"
	"farflash/flash/nbd/nbdtest"
	"farflash/flash/nvme"
	"farflash/flash/nvme/chap"
	"farflash/flash/nvme/initiator"
	"farflash/flash/nvme/nvmetest"
	"farflash/flash/nvme/server"
	"farflash/flash/nvme/wire"
	"farflash/internal/patience"
	"farflash/numeric/rng"
)

// soon bounds what must happen at once, on a busy machine.
const soon = 20 * time.Second

// ways runs a test against connections that have goroutines, and against loops.
func ways(t *testing.T, f func(t *testing.T, loops *server.Loops)) {
	t.Run("goroutines", func(t *testing.T) { f(t, nil) })
	t.Run("loops", func(t *testing.T) { f(t, nbdtest.Loops(t)) })
}

// serve serves a target for a test. Hosts that are silent end after their keep-alive, without further patience.
func serve(t testing.TB, cfg nvme.Config, loops *server.Loops, spaces ...nvme.Namespace) (*nvme.Target, *server.Server,
	string) {
	t.Helper()
	cfg.Grace = int64(100 * time.Millisecond)
	target := nvmetest.Target(t, cfg, spaces...)
	s := server.DefaultConfig()
	s.Target, s.Loops, s.Drain = target, loops, time.Second
	running, addr := nvmetest.Serve(t, s)
	return target, running, addr
}

func config(queues int) initiator.Config {
	cfg := initiator.DefaultConfig()
	cfg.Subsystem, cfg.Host, cfg.Queues = nvmetest.Subsystem, nvmetest.HostName, queues
	cfg.Reconnect = initiator.Reconnect{} // most tests are about single associations
	return cfg
}

// dial makes an association, which ends with the test.
func dial(t testing.TB, addr string, cfg initiator.Config) *initiator.Association {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a, err := initiator.Dial(ctx, addr, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return a
}

func space(t testing.TB, a *initiator.Association, id uint32) *initiator.Namespace {
	t.Helper()
	n, err := a.Namespace(id)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestNamespaces verifies what the initiator learns of namespaces.
func TestNamespaces(t *testing.T) {
	readOnly := nvmetest.Space(7, nvmetest.NewMemory(1<<30))
	readOnly.ReadOnly = true
	_, _, addr := serve(t, nvme.DefaultConfig(), nil, nvmetest.Space(1, nvmetest.NewMemory(1<<20)), readOnly)
	a := dial(t, addr, config(3))
	if c := a.Controller(); a.Queues() != 3 || c.Subsystem != nvmetest.Subsystem || c.InCapsule != 8192 {
		t.Errorf("%+v with %d queues", c, a.Queues())
	}
	all, err := a.Namespaces()
	if err != nil || len(all) != 2 {
		t.Fatalf("%v, %v", all, err)
	}
	if n := all[0]; n.ID() != 1 || n.Size() != 1<<20 || n.Block() != 512 || n.ReadOnly() || n.UUID()[15] != 1 {
		t.Errorf("%+v", n)
	}
	if n := all[1]; n.ID() != 7 || n.Size() != 1<<30 || !n.ReadOnly() || n.UUID()[15] != 7 {
		t.Errorf("%+v", n)
	}
	if _, err := a.Namespace(3); !errors.Is(err, wire.InvalidNamespace|wire.NoRetry) {
		t.Errorf("a namespace that does not exist: %v", err)
	}
}

// TestData has concurrent readers and writers, each on its own part of a namespace, with commands of all sizes up to
// several of the longest: without and with digests, in capsules and by R2Ts.
func TestData(t *testing.T) { ways(t, testData) }

func testData(t *testing.T, loops *server.Loops) {
	for name, d := range map[string]wire.Digests{"plain": {}, "header": {Header: true}, "data": {Data: true},
		"both": {Header: true, Data: true}} {
		for _, capsule := range []int{0, 8192} {
			t.Run(fmt.Sprintf("%s,capsule=%d", name, capsule), func(t *testing.T) {
				t.Parallel()
				cfg := nvme.DefaultConfig()
				cfg.Limits.InCapsule = capsule
				const users, part = 12, 3 << 20
				m := nvmetest.NewMemory(users * part)
				_, _, addr := serve(t, cfg, loops, nvmetest.Space(1, m))
				c := config(3)
				c.Digests, c.Depth = d, 6 // so that calls wait for others
				n := space(t, dial(t, addr, c), 1)
				var running sync.WaitGroup
				for i := range users {
					running.Go(func() {
						if err := use(t, n, uint64(i), int64(i)*part, part); err != nil {
							t.Errorf("user %d: %v", i, err)
						}
					})
				}
				running.Wait()
				for begun := time.Now(); m.Borrowed() != 0; time.Sleep(time.Millisecond) {
					if time.Since(begun) > soon {
						t.Fatalf("the memory of %d reads is still lent", m.Borrowed())
					}
				}
			})
		}
	}
}

// use makes random calls on a part of a namespace and compares it with a byte slice.
func use(t *testing.T, n *initiator.Namespace, seed uint64, from int64, size int) error {
	draw := rng.NewStream(seed, "calls")
	want, got := make([]byte, size), make([]byte, size)
	calls := 12
	if patience.Long(t) {
		calls = 1000
	}
	for range calls {
		length := int(1+draw.IntN(32)) * 512
		if draw.IntN(6) == 0 {
			length = int(1+draw.IntN(1<<11)) * 512 // up to 1 MiB
		}
		if draw.IntN(12) == 0 {
			length = 2<<20 + 512 // three commands
		}
		at := int(draw.IntN(int64(size-length)/512)) * 512
		p := want[at:][:length]
		switch kind := draw.IntN(8); kind {
		case 0:
			clear(p)
			if err := n.WriteZeroes(from+int64(at), int64(length)); err != nil {
				return err
			}
		case 1:
			at, end := (at+4095)/4096*4096, (at+length)/4096*4096
			if at >= end {
				continue
			}
			clear(want[at:end])
			if err := n.Discard(from+int64(at), int64(end-at)); err != nil {
				return err
			}
		case 2:
			if err := n.Flush(); err != nil {
				return err
			}
		case 3, 4, 5:
			for i := 0; i < length; i += 8 {
				binary.LittleEndian.PutUint64(p[i:], draw.Uint64())
			}
			write := n.WriteAt
			if kind == 3 {
				write = n.WriteDurable
			}
			if done, err := write(p, from+int64(at)); err != nil || done != length {
				return fmt.Errorf("%d of %d bytes written: %w", done, length, err)
			}
		default:
			b := got[:length]
			if done, err := n.ReadAt(b, from+int64(at)); err != nil || done != length {
				return fmt.Errorf("%d of %d bytes read: %w", done, length, err)
			}
			if !bytes.Equal(b, p) {
				return fmt.Errorf("%d bytes at %d are not those that were written", length, at)
			}
		}
	}
	if _, err := n.ReadAt(got, from); err != nil || !bytes.Equal(got, want) {
		return fmt.Errorf("not what was written in the end, %w", err)
	}
	return nil
}

// TestRefused verifies the errors of calls, after each of which the association goes on.
func TestRefused(t *testing.T) {
	readOnly := nvmetest.Space(2, nvmetest.NewMemory(1<<20))
	readOnly.ReadOnly = true
	broken := nvmetest.NewMemory(4 << 20)
	broken.Before = func(task *nbd.Task) bool {
		if task.Kind == nbd.Read && task.Offset >= 2<<20 {
			task.Err = nbd.EIO
			task.Done(task)
			return false
		}
		return true
	}
	target, _, addr := serve(t, nvme.DefaultConfig(), nil, nvmetest.Space(1, nvmetest.NewMemory(1<<20)), readOnly,
		nvmetest.Space(3, broken))
	a := dial(t, addr, config(1))
	one, two, three := space(t, a, 1), space(t, a, 2), space(t, a, 3)
	b := make([]byte, 8192)
	long := make([]byte, 4<<20)
	status := func(what string, err error, want wire.Status) {
		t.Helper()
		var e *initiator.Error
		if !errors.Is(err, want) || !errors.As(err, &e) || !strings.Contains(err.Error(), "nvme: namespace ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := one.ReadAt(b, 1<<20-4096)
	status("a read beyond the end", err, wire.OutOfRange)
	_, err = one.WriteAt(b, 1<<20)
	status("a write beyond the end", err, wire.OutOfRange)
	_, err = one.WriteAt(long[:1<<18], 1<<20-4096)
	status("a long write beyond the end", err, wire.OutOfRange)
	status("zeros beyond the end", one.WriteZeroes(1<<20, 512), wire.OutOfRange)
	_, err = two.WriteAt(b, 0)
	status("a write of what can only be read", err, wire.WriteProtected)
	status("a discard of what can only be read", two.Discard(0, 4096), wire.WriteProtected)
	if done, err := three.ReadAt(long, 0); done != 2<<20 {
		t.Errorf("%d bytes read before those that cannot be, %v", done, err)
	} else {
		status("a read of damaged data", err, wire.UnrecoveredRead)
	}
	for _, x := range []struct{ n, at int64 }{{100, 0}, {512, 1}, {512, -512}, {513, 512}} {
		if _, err := one.ReadAt(make([]byte, x.n), x.at); !errors.Is(err, initiator.ErrUnaligned) {
			t.Errorf("a read of %d bytes at %d: %v", x.n, x.at, err)
		}
		if _, err := one.WriteAt(make([]byte, x.n), x.at); !errors.Is(err, initiator.ErrUnaligned) {
			t.Errorf("a write of %d bytes at %d: %v", x.n, x.at, err)
		}
		if err := one.Discard(x.at, x.n); !errors.Is(err, initiator.ErrUnaligned) {
			t.Errorf("a discard of %d bytes at %d: %v", x.n, x.at, err)
		}
	}
	if err := one.WriteZeroes(-512, -512); !errors.Is(err, initiator.ErrUnaligned) {
		t.Errorf("less than nothing: %v", err)
	}
	if n, err := one.ReadAt(nil, 0); n != 0 || err != nil {
		t.Errorf("a read of nothing: %d, %v", n, err)
	}
	if err := target.Set(nvme.Subsystem{Name: nvmetest.Subsystem, Serial: "1",
		Namespaces: []nvme.Namespace{readOnly}}); err != nil {
		t.Fatal(err)
	}
	_, err = one.ReadAt(b, 0)
	status("a read of a namespace that was removed", err, wire.InvalidNamespace)
	if _, err := two.ReadAt(b, 0); err != nil {
		t.Errorf("after all of them: %v", err)
	}
	if a.Err() != nil {
		t.Error(a.Err())
	}
}

// TestKeys verifies that a host with the right key, and only such a host, gets in; and that the controller must have
// its own if the host has a key for it.
func TestKeys(t *testing.T) {
	var k [3]chap.Key
	for i := range k {
		var err error
		if k[i], err = chap.NewKey(rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	cfg := nvme.DefaultConfig()
	cfg.Random = rand.Reader
	cfg.Subsystems = []nvme.Subsystem{{Name: "nqn.2026-01.example:open", Serial: "2"}}
	target, _, addr := serve(t, cfg, nil)
	if err := target.Set(nvme.Subsystem{Name: nvmetest.Subsystem,
		Namespaces: []nvme.Namespace{nvmetest.Space(1, nvmetest.NewMemory(1<<20))},
		Keys:       map[string]chap.Keys{nvmetest.HostName: {Host: k[0], Controller: k[1]}}}); err != nil {
		t.Fatal(err)
	}
	try := func(subsystem, host string, keys chap.Keys) error {
		c := config(1)
		c.Subsystem, c.Host, c.Keys = subsystem, host, keys
		a, err := initiator.Dial(t.Context(), addr, c)
		if err != nil {
			return err
		}
		_, err = a.Namespaces()
		return errors.Join(err, a.Close())
	}
	for _, x := range []struct {
		what, subsystem, host string
		keys                  chap.Keys
		want                  string // part of the error; "" for none
	}{
		{"the right key", nvmetest.Subsystem, nvmetest.HostName, chap.Keys{Host: k[0]}, ""},
		{"both keys", nvmetest.Subsystem, nvmetest.HostName, chap.Keys{Host: k[0], Controller: k[1]}, ""},
		{"no key", nvmetest.Subsystem, nvmetest.HostName, chap.Keys{}, "there is no key"},
		{"a wrong key", nvmetest.Subsystem, nvmetest.HostName, chap.Keys{Host: k[2]}, "proving who the host is"},
		{"a wrong key of the controller", nvmetest.Subsystem, nvmetest.HostName,
			chap.Keys{Host: k[0], Controller: k[2]}, "proving who the host is"},
		{"another host", nvmetest.Subsystem, "nqn.2026-01.example:other", chap.Keys{Host: k[0]}, "not allowed"},
		{"a controller without a key", "nqn.2026-01.example:open", nvmetest.HostName,
			chap.Keys{Host: k[0], Controller: k[1]}, "does not prove"},
		{"no key where none is asked for", "nqn.2026-01.example:open", nvmetest.HostName, chap.Keys{}, ""},
		{"no such subsystem", "nqn.2026-01.example:nothing", nvmetest.HostName, chap.Keys{},
			"invalid parameters of Connect"},
	} {
		err := try(x.subsystem, x.host, x.keys)
		if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)) {
			t.Errorf("%s: %v", x.what, err)
		}
	}
}

// stuck is a volume that keeps its tasks until it is released.
type stuck struct {
	*nvmetest.Memory
	mu    sync.Mutex
	tasks []*nbd.Task
	free  bool
	held  atomic.Int32
}

func newStuck() *stuck {
	s := &stuck{Memory: nvmetest.NewMemory(1 << 24)}
	s.Before = func(t *nbd.Task) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.free {
			return true
		}
		s.tasks = append(s.tasks, t)
		s.held.Add(1)
		return false
	}
	return s
}

// release finishes the tasks, and lets others through, so that the server can end.
func (s *stuck) release() {
	s.mu.Lock()
	tasks := s.tasks
	s.tasks, s.free = nil, true
	s.mu.Unlock()
	for _, t := range tasks {
		s.Execute(t)
	}
}

// outstanding starts calls that the volume keeps, and returns their errors.
func outstanding(t *testing.T, n *initiator.Namespace, s *stuck) <-chan error {
	t.Helper()
	const readers, writers = 40, 8
	errs := make(chan error, readers+writers)
	for i := range readers + writers {
		go func() {
			var err error
			if i < readers {
				_, err = n.ReadAt(make([]byte, 4096), int64(i)*4096)
			} else {
				_, err = n.WriteAt(make([]byte, 1<<20), int64(i)<<17)
			}
			errs <- err
		}()
	}
	for begun := time.Now(); s.held.Load() < readers+writers/2; time.Sleep(time.Millisecond) {
		if time.Since(begun) > soon {
			t.Fatalf("only %d tasks have begun", s.held.Load())
		}
	}
	return errs
}

// all verifies that every call returns an error that want accepts.
func all(t *testing.T, errs <-chan error, want func(error) bool) {
	t.Helper()
	late := time.After(soon)
	for i := range cap(errs) {
		select {
		case err := <-errs:
			if err == nil || !want(err) {
				t.Errorf("call %d: %v", i, err)
			}
		case <-late:
			t.Fatalf("only %d of %d calls have returned", i, cap(errs))
		}
	}
}

// proxy passes connections on until stopped, as a network does that a server is lost behind.
type proxy struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
	mute  atomic.Bool // drop what the server sends
}

func newProxy(t *testing.T, to string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l}
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				_ = from.Close()
				return
			}
			p.mu.Lock()
			p.conns = append(p.conns, from, far)
			p.mu.Unlock()
			go func() { _, _ = io.Copy(far, from) }()
			go func() { _, _ = io.Copy(writer{from, p}, far) }()
		}
	}()
	t.Cleanup(p.stop)
	return p
}

type writer struct {
	net.Conn
	p *proxy
}

// Write implements io.Writer.
func (w writer) Write(b []byte) (int, error) {
	if w.p.mute.Load() {
		return len(b), nil
	}
	return w.Conn.Write(b)
}

func (p *proxy) stop() {
	_ = p.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
}

// TestLost verifies that all calls return at once when the server dies, those on other queues and later ones too.
func TestLost(t *testing.T) {
	s := newStuck()
	_, _, addr := serve(t, nvme.DefaultConfig(), nil, nvmetest.Space(1, s))
	t.Cleanup(s.release) // before the server ends
	p := newProxy(t, addr)
	a := dial(t, p.Addr().String(), config(3))
	n := space(t, a, 1)
	errs := outstanding(t, n, s)
	p.stop()
	lost := func(err error) bool { return !errors.Is(err, io.EOF) && !errors.Is(err, initiator.ErrClosed) }
	all(t, errs, lost)
	if _, err := n.ReadAt(make([]byte, 512), 0); err == nil || !lost(err) {
		t.Errorf("a call afterwards: %v", err)
	}
	if err := n.Flush(); err == nil || a.Err() == nil {
		t.Errorf("a call afterwards: %v, %v", err, a.Err())
	}
}

// TestClose verifies that Close ends all calls.
func TestClose(t *testing.T) {
	s := newStuck()
	target, _, addr := serve(t, nvme.DefaultConfig(), nil, nvmetest.Space(1, s))
	t.Cleanup(s.release)
	a := dial(t, addr, config(2))
	n := space(t, a, 1)
	errs := outstanding(t, n, s)
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	all(t, errs, func(err error) bool { return errors.Is(err, initiator.ErrClosed) })
	if _, err := n.ReadAt(make([]byte, 512), 0); !errors.Is(err, initiator.ErrClosed) {
		t.Errorf("a call afterwards: %v", err)
	}
	s.release()
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		alive, dying := target.Associations()
		if alive+dying == 0 {
			break
		}
		if time.Since(begun) > soon {
			t.Fatalf("%d associations are alive, %d dying", alive, dying)
		}
	}
}

// TestKeepAlive verifies that an idle association stays as long as it shows that it is alive, and ends if either side
// is silent.
func TestKeepAlive(t *testing.T) {
	_, _, addr := serve(t, nvme.DefaultConfig(), nil, nvmetest.Space(1, nvmetest.NewMemory(1<<20)))
	c := config(1)
	c.KeepAlive = 400 * time.Millisecond
	kept := dial(t, addr, c)
	// A host that does not send any, as the test's own does not.
	silent, err := nvmetest.Open(addr, nvmetest.Login{Queues: 1, KeepAlive: 400,
		Identity: wire.Identity{HostID: [16]byte{2}, Subsystem: nvmetest.Subsystem, Host: nvmetest.HostName}})
	if err != nil {
		t.Fatal(err)
	}
	if err := silent.Admin.SetDeadline(time.Now().Add(soon)); err != nil {
		t.Fatal(err)
	}
	if _, err := silent.Admin.Next(); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a silent host: %v", err)
	}
	if err := errors.Join(silent.Close(), kept.Err()); err != nil {
		t.Errorf("the other: %v", err)
	}
	if _, err := space(t, kept, 1).ReadAt(make([]byte, 512), 0); err != nil {
		t.Errorf("after three times the keep-alive: %v", err)
	}

	// A controller whose answers are lost.
	p := newProxy(t, addr)
	a := dial(t, p.Addr().String(), c)
	n := space(t, a, 1)
	p.mute.Store(true)
	errs := make(chan error, 1)
	go func() {
		_, err := n.ReadAt(make([]byte, 512), 0)
		errs <- err
	}()
	all(t, errs, func(err error) bool {
		return strings.Contains(err.Error(), "has not answered a keep-alive within 400ms")
	})
}

// TestDial verifies that the context ends attempts to connect, to an address that does not answer among them.
func TestDial(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepted by the kernel, and never answered
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	begun := time.Now()
	if _, err := initiator.Dial(ctx, l.Addr().String(), config(1)); !errors.Is(err, context.Canceled) ||
		time.Since(begun) > soon {
		t.Errorf("%v after %v", err, time.Since(begun))
	}
	if _, err := initiator.Dial(ctx, l.Addr().String(), config(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
	for what, change := range map[string]func(*initiator.Config){
		"no subsystem":    func(c *initiator.Config) { c.Subsystem = "" },
		"a bad host name": func(c *initiator.Config) { c.Host = "me" },
		"no depth":        func(c *initiator.Config) { c.Depth = 0 },
		"too deep":        func(c *initiator.Config) { c.Depth = 5000 },
		"less than none":  func(c *initiator.Config) { c.Queues = -1 },
		"a short life":    func(c *initiator.Config) { c.KeepAlive = time.Millisecond },
	} {
		c := config(1)
		change(&c)
		if _, err := initiator.Dial(t.Context(), "127.0.0.1:1", c); err == nil || !strings.Contains(err.Error(), "use ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	// No names: the host makes its own.
	_, _, addr := serve(t, nvme.DefaultConfig(), nil, nvmetest.Space(1, nvmetest.NewMemory(1<<20)))
	c := config(0)
	c.Host = ""
	a := dial(t, addr, c)
	if _, err := space(t, a, 1).ReadAt(make([]byte, 512), 0); err == nil || !strings.Contains(err.Error(), "no I/O queues") {
		t.Errorf("a read without I/O queues: %v", err)
	}
	for _, number := range []int{0, 2} {
		if _, _, err := a.NewQueue(number); err == nil || !strings.Contains(err.Error(), "granted 1 to 1") {
			t.Errorf("I/O queue %d: %v", number, err)
		}
	}
}
