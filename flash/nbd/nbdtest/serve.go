package nbdtest

import (
	"errors"
	"iter"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"farflash/flash/ctl"
	"farflash/flash/ctl/media"
	"farflash/flash/device"
	"farflash/flash/nbd"
	"farflash/flash/nbd/server"
	"farflash/flash/uring"
)

// One is Exports with a single export, whose name is also the default.
type One struct{ nbd.Export }

// List implements nbd.Exports.
func (o One) List() iter.Seq[nbd.Export] { return slices.Values([]nbd.Export{o.Export}) }

// Open implements nbd.Exports.
func (o One) Open(name string) (nbd.Export, error) {
	if name != "" && name != o.Name {
		return nbd.Export{}, errors.New("no such export")
	}
	return o.Export, nil
}

// Loops returns threads for a server's connections and its pool's device, closed when the test ends. The test is
// skipped where the kernel does not support them.
func Loops(t testing.TB) *uring.Loops {
	t.Helper()
	ls, err := uring.Start(2, 128)
	if uring.Forbidden(err) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ls.Close(); err != nil {
			t.Errorf("closing the loops: %v", err)
		}
	})
	if !ls.Sockets() {
		t.Skip("this kernel's io_uring lacks the required socket operations")
	}
	return ls
}

// Pool creates a pool on a file with a size in bytes and a number of frames, on a device driven by loops if given. When
// the test ends, the pool is checked and closed.
func Pool(t testing.TB, loops *uring.Loops, path string, bytes int64, frames int) *ctl.Pool {
	t.Helper()
	if path == "" {
		path = filepath.Join(t.TempDir(), "pool")
	}
	var dev device.Device
	var err error
	if loops != nil {
		dev, err = loops.Open(path, device.Mode{Create: bytes})
	} else {
		dev, err = uring.Open(path, device.Mode{Create: bytes}, 128)
	}
	if uring.Forbidden(err) {
		dev, err = device.OpenFile(path, device.Mode{Create: bytes}, 32)
	}
	if err != nil {
		t.Fatal(err)
	}
	layout := ctl.DefaultLayout()
	layout.UUID, layout.Segment = media.UUID{1, 2, 3}, 512
	shape, err := layout.Shape(dev.Size())
	if err != nil {
		t.Fatal(err)
	}
	if err := ctl.Format(shape, dev); err != nil {
		t.Fatal(err)
	}
	cfg := ctl.DefaultConfig()
	cfg.Frames = frames
	p, err := ctl.Open(cfg, dev)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, v := range p.Check(false).Violations {
			t.Errorf("%v", v)
		}
		if err := p.Close(); err != nil {
			t.Errorf("closing the pool: %v", err)
		}
	})
	return p
}

// Serve serves on a loopback port until the test ends.
func Serve(t testing.TB, cfg server.Config) (*server.Server, string) {
	t.Helper()
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		if err := s.Shutdown(); err != nil {
			t.Errorf("shutting down: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	return s, l.Addr().String()
}

// Dial connects with a deadline for the whole test.
func Dial(t testing.TB, addr string) *Client {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() }) // it may be closed already
	if err := nc.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	c, err := NewClient(nc, nbd.FlagFixedNewstyle|nbd.FlagNoZeroes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
