package live_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"farflash/flash/cfs"
	"farflash/flash/cfs/live"
	"farflash/flash/cfs/transfer"
	"farflash/flash/ctl"
	"farflash/flash/ctl/media"
	"farflash/flash/device"
)

// served is a file system, and the server of it.
type served struct {
	t      *testing.T
	device string
	tree   *cfs.FS
	s      *live.Server
}

func serve(t *testing.T) *served {
	t.Helper()
	before := runtime.NumGoroutine()
	dev := device.NewMem(4000 * device.Grain)
	layout := ctl.Layout{UUID: media.UUID{1}, Segment: 32, OverProvision: 0.3}
	shape, err := layout.Shape(dev.Size())
	if err == nil {
		err = ctl.Format(shape, dev)
	}
	if err != nil {
		t.Fatal(err)
	}
	cfg := ctl.DefaultConfig()
	cfg.Frames = 256
	pool, err := ctl.Open(cfg, dev)
	if err == nil {
		err = cfs.Format(pool, cfs.Config{})
	}
	if err != nil {
		t.Fatal(err)
	}
	s := &served{t: t, device: filepath.Join(t.TempDir(), "pool")}
	if s.tree, err = cfs.Open(pool, cfs.Config{}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.device, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.listen()
	t.Cleanup(func() {
		if err := s.s.Close(10 * time.Second); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		for _, v := range s.tree.Check().Violations {
			t.Error(v)
		}
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
		for i := 0; runtime.NumGoroutine() > before; i++ {
			if i == 500 {
				buf := make([]byte, 1<<16)
				t.Fatalf("goroutines are left:\n%s", buf[:runtime.Stack(buf, true)])
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	return s
}

func (s *served) listen() {
	s.t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: live.Socket(s.device), Net: "unix"})
	if err == nil {
		s.s, err = live.Serve(s.tree, l, live.Daemon{Report: func() any { return []int{5} },
			Control: func(order json.RawMessage) (any, error) {
				if string(order) == "[6]" {
					return []int{7}, nil
				}
				return nil, fmt.Errorf("not this order: %s", order)
			}}, s.device)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *served) dial() *live.Files {
	s.t.Helper()
	f, err := live.Dial("", s.device)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = f.Close() })
	return f
}

// step is one request with the reply that is due on either way.
type step struct {
	r    live.Request
	in   string
	want error
	out  string
}

// TestAlike executes the same requests by a file system of this process and of a served one, and verifies that replies,
// streams and errors are the same, and those expected.
func TestAlike(t *testing.T) {
	big := string(bytes.Repeat([]byte("some content "), 250_000)) + string(make([]byte, 2<<20))
	steps := []step{
		{r: live.Request{Op: live.Mkdir, Path: "/a", Perm: 0o750, UID: 7, GID: 8}},
		{r: live.Request{Op: live.Mkdir, Path: "/a"}, want: fs.ErrExist},
		{r: live.Request{Op: live.Put, Path: "/a/empty", Perm: 0o600}},
		{r: live.Request{Op: live.Put, Path: "/a/big", Perm: 0o640, UID: 3}, in: big},
		{r: live.Request{Op: live.Put, Path: "/a/big"}, in: "x", want: fs.ErrExist},
		{r: live.Request{Op: live.Get, Path: "/a/big"}, out: big},
		{r: live.Request{Op: live.Put, Path: "/a/big", Replace: true}, in: "small"},
		{r: live.Request{Op: live.Get, Path: "/a/big"}, out: "small"},
		{r: live.Request{Op: live.Get, Path: "/a/none"}, want: fs.ErrNotExist},
		{r: live.Request{Op: live.Get, Path: "/a"}, want: cfs.ErrIsDir},
		{r: live.Request{Op: live.Put, Path: "/full"}, in: string(bytes.Repeat([]byte{1}, 20<<20)), want: ctl.ErrFull},
		{r: live.Request{Op: live.List, Path: "/a"}},
		{r: live.Request{Op: live.List, Path: "/a/big"}},
		{r: live.Request{Op: live.List, Path: "/a/../b"}, want: cfs.ErrName},
		{r: live.Request{Op: live.Stat, Path: "/a/big"}},
		{r: live.Request{Op: live.Stat, Path: "/a/big/x"}, want: cfs.ErrNotDir},
		{r: live.Request{Op: live.Usage}},
		{r: live.Request{Op: live.Resize, Path: "/s", Size: 5000}, want: fs.ErrNotExist},
		{r: live.Request{Op: live.Resize, Path: "/s", Size: 5000, Create: true, Perm: 0o644}},
		{r: live.Request{Op: live.Resize, Path: "/s", Size: 100_000, Allocate: true}},
		{r: live.Request{Op: live.Resize, Path: "/s", Size: 1 << 60}, want: cfs.ErrTooLarge},
		{r: live.Request{Op: live.Resize, Path: "/thick", Size: 1 << 30, Create: true, Allocate: true},
			want: ctl.ErrFull},
		{r: live.Request{Op: live.Rename, Path: "/s", To: "/a/big"}, want: fs.ErrExist},
		{r: live.Request{Op: live.Rename, Path: "/s", To: "/a/big", Replace: true}},
		{r: live.Request{Op: live.Rename, Path: "/a", To: "/a/in"}, want: cfs.ErrInside},
		{r: live.Request{Op: live.Remove, Path: "/a"}, want: cfs.ErrNotEmpty},
		{r: live.Request{Op: live.List, Path: "/"}},
		{r: live.Request{Op: live.Remove, Path: "/a", Recursive: true}},
		{r: live.Request{Op: live.Usage}},
		{r: live.Request{Op: "other"}},
	}
	run := func(open func() *live.Files) (said []string) {
		f := open()
		for _, x := range steps {
			var out bytes.Buffer
			y, err := f.Do(context.Background(), x.r, bytes.NewReader([]byte(x.in)), &out)
			if x.want != nil && !errors.Is(err, x.want) || x.want == nil && err != nil && x.r.Op != "other" {
				t.Errorf("%+v: %v, want %v", x.r, err, x.want)
			}
			if out.String() != x.out {
				t.Errorf("%+v: %d bytes, want %d", x.r, out.Len(), len(x.out))
			}
			said = append(said, fmt.Sprintf("%+v: %+v, %v", x.r, y, err))
			if err != nil && (x.r.Op == live.Put || x.r.Op == live.Get) {
				f = open()
			}
		}
		return said
	}
	here, there := serve(t), serve(t)
	a := run(func() *live.Files { return live.Local(here.tree) })
	b := run(there.dial)
	for i := range a {
		if a[i] != b[i] {
			t.Errorf("here:  %s\nthere: %s", a[i], b[i])
		}
	}
}

// endless is a stream without an end, which fails or blocks after a number of bytes.
type endless struct {
	left  int
	err   error
	block chan struct{}
}

func (e *endless) Read(b []byte) (int, error) {
	if e.left <= 0 {
		if e.block != nil {
			<-e.block
			return 0, io.ErrClosedPipe
		}
		return 0, e.err
	}
	n := min(len(b), e.left)
	e.left -= n
	for i := range b[:n] {
		b[i] = 1
	}
	return n, nil
}

// TestBrokenStreams verifies that a copy whose source fails, blocks, or is interrupted leaves no file and returns, and
// the same for one whose destination fails.
func TestBrokenStreams(t *testing.T) {
	s := serve(t)
	put := live.Request{Op: live.Put, Path: "/x"}
	absent := func() {
		t.Helper()
		if err := s.dial().Change(live.Request{Op: live.Stat, Path: "/x"}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v", err)
		}
	}
	if _, err := s.dial().Do(context.Background(), put, &endless{left: 3 << 20, err: syscall.EISDIR},
		nil); !errors.Is(err,
		syscall.EISDIR) {
		t.Errorf("a source that fails: %v", err)
	}
	absent()
	block := make(chan struct{})
	defer close(block)
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := s.dial().Do(ctx, put, &endless{left: 3 << 20, block: block}, nil); !errors.Is(err,
		transfer.ErrInterrupted) {
		t.Errorf("interrupted: %v", err)
	}
	absent()
	// The pool is full, and the source has not ended.
	if _, err := s.dial().Do(context.Background(), put, &endless{left: 40 << 20, block: block}, nil); !errors.Is(err,
		ctl.ErrFull) {
		t.Errorf("a full pool: %v", err)
	}
	absent()
	if _, err := s.dial().Do(context.Background(), put, &endless{left: 5 << 20, err: io.EOF}, nil); err != nil {
		t.Fatal(err)
	}
	get := live.Request{Op: live.Get, Path: "/x"}
	if _, err := s.dial().Do(context.Background(), get, nil, iotest.TruncateWriter(failing{}, 0)); !errors.Is(err,
		nil) {
		t.Errorf("a destination that takes everything: %v", err)
	}
	if _, err := s.dial().Do(context.Background(), get, nil, failing{}); !errors.Is(err, transfer.ErrLocal) {
		t.Errorf("a destination that fails: %v", err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.dial().Do(ended, get, nil, io.Discard); !errors.Is(err, transfer.ErrInterrupted) {
		t.Errorf("an interrupted get: %v", err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestClose closes the server while clients copy and wait: all return, with an error that names the reason, nothing is
// left, and later there is no server.
func TestClose(t *testing.T) {
	s := serve(t)
	block := make(chan struct{})
	defer close(block)
	var all sync.WaitGroup
	for i := range 4 {
		f := s.dial()
		all.Go(func() {
			_, err := f.Do(context.Background(), live.Request{Op: live.Put, Path: fmt.Sprint("/", i)},
				&endless{left: 1 << 20, block: block}, nil)
			if !errors.Is(err, transfer.ErrInterrupted) {
				t.Errorf("a copy without an end: %v", err)
			}
		})
	}
	idle := s.dial()
	time.Sleep(50 * time.Millisecond)
	if err := s.s.Close(50 * time.Millisecond); err != nil {
		t.Error(err)
	}
	all.Wait()
	if err := idle.Change(live.Request{Op: live.Usage}); !errors.Is(err, syscall.EIO) {
		t.Errorf("an idle connection: %v", err)
	}
	if _, err := live.Dial("", s.device); !errors.Is(err, live.ErrAbsent) {
		t.Errorf("without a server: %v", err)
	}
	if list, err := s.tree.List(cfs.Cred{}, "/"); err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
	// What a killed process leaves.
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: live.Socket(s.device), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := live.Dial("", s.device); !errors.Is(err, live.ErrAbsent) {
		t.Errorf("with a socket that nobody serves: %v", err)
	}
	if err := os.Remove(live.Socket(s.device)); err != nil {
		t.Fatal(err)
	}
	s.listen()
	if err := s.dial().Change(live.Request{Op: live.Usage}); err != nil {
		t.Error(err)
	}
}

// TestHostile sends what no client sends, and verifies that the server ends such connections and serves others, that
// the socket is the owner's only, and that a process with another pool refuses.
func TestHostile(t *testing.T) {
	s := serve(t)
	info, err := os.Stat(live.Socket(s.device))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	hello := append([]byte{'h', 0, 0, 0, byte(len(s.device))}, s.device...)
	draw := rand.New(rand.NewPCG(1, 1))
	noise := make([]byte, 10_000)
	for i := range noise {
		noise[i] = byte(draw.Uint32())
	}
	for name, b := range map[string][]byte{
		"nothing":      nil,
		"noise":        noise,
		"no hello":     {'q', 0, 0, 0, 2, '{', '}'},
		"huge hello":   {'h', 0xff, 0xff, 0xff, 0xff},
		"huge request": append(bytes.Clone(hello), 'q', 0xff, 0xff, 0xff, 0xff),
		"no request":   append(bytes.Clone(hello), 'd', 0, 0, 0, 0),
		"no JSON":      append(bytes.Clone(hello), 'q', 0, 0, 0, 3, 'x', 'y', 'z'),
		"noise in a put": append(append(bytes.Clone(hello),
			"q\x00\x00\x00\x1c{\"Op\":\"put\",\"Path\":\"/noise\"}"...), noise...),
	} {
		nc, err := net.Dial("unix", live.Socket(s.device))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := nc.Write(b); err != nil && !errors.Is(err, syscall.EPIPE) {
			t.Errorf("%s: %v", name, err)
		}
		if err := nc.(*net.UnixConn).CloseWrite(); err == nil {
			_ = nc.SetReadDeadline(time.Now().Add(20 * time.Second))
			if _, err := io.Copy(io.Discard, nc); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: the connection goes on", name)
			}
		}
		_ = nc.Close()
		if err := s.dial().Change(live.Request{Op: live.Usage}); err != nil {
			t.Errorf("after %s: %v", name, err)
		}
	}
	other := filepath.Join(t.TempDir(), "other")
	if err := errors.Join(os.WriteFile(other, nil, 0o600),
		os.Symlink(live.Socket(s.device), live.Socket(other))); err != nil {
		t.Fatal(err)
	}
	if _, err := live.Dial("", other); err == nil || errors.Is(err, live.ErrAbsent) {
		t.Errorf("another pool: %v", err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(s.device, link); err != nil {
		t.Fatal(err)
	}
	if f, err := live.Dial("", "nothing", link); err != nil {
		t.Errorf("by another name: %v", err)
	} else {
		_ = f.Close()
	}
}

// TestSideBySide has several clients change the same tree; its invariants are checked at the end.
func TestSideBySide(t *testing.T) {
	s := serve(t)
	var all sync.WaitGroup
	for g := range 6 {
		f := s.dial()
		all.Go(func() {
			draw := rand.New(rand.NewPCG(uint64(g), 0))
			for range 60 {
				at, to := fmt.Sprint("/", draw.IntN(5)), fmt.Sprint("/", draw.IntN(5))
				var err error
				switch draw.IntN(6) {
				case 0:
					_, err = f.Do(context.Background(), live.Request{Op: live.Put, Path: at, Replace: true},
						&endless{left: draw.IntN(100_000), err: io.EOF}, nil)
				case 1:
					_, err = f.Do(context.Background(), live.Request{Op: live.Get, Path: at}, nil, io.Discard)
				case 2:
					err = f.Change(live.Request{Op: live.Remove, Path: at})
				case 3:
					err = f.Change(live.Request{Op: live.Rename, Path: at, To: to, Replace: true})
				case 4:
					err = f.Change(live.Request{Op: live.Resize, Path: at, Size: draw.Int64N(200_000), Create: true})
				case 5:
					err = f.Change(live.Request{Op: live.List, Path: "/"})
				}
				if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// TestDaemon verifies that a daemon is asked about itself and given orders, and that only a daemon is.
func TestDaemon(t *testing.T) {
	s := serve(t)
	f := s.dial()
	for _, c := range []struct {
		r         live.Request
		want, err string
	}{{live.Request{Op: live.Report}, "[5]", ""}, {live.Request{Op: live.Control, Order: []byte("[6]")}, "[7]", ""},
		{live.Request{Op: live.Control, Order: []byte("{}")}, "", "not this order: {}"}} {
		y, err := f.Do(context.Background(), c.r, nil, nil)
		if string(y.Report) != c.want || (err != nil) != (c.err != "") || err != nil && err.Error() != c.err {
			t.Errorf("%+v: %s, %v", c.r, y.Report, err)
		}
		if _, err := live.Local(s.tree).Do(context.Background(), c.r, nil, nil); !errors.Is(err, live.ErrLocal) {
			t.Errorf("%+v without a daemon: %v", c.r, err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
