package server_test

import (
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"farflash/flash/nbd"
	"farflash/flash/nbd/nbdtest"
	"farflash/flash/nbd/server"
)

// short is a listener that fails with EMFILE a number of times.
type short struct {
	net.Listener
	left atomic.Int32
}

func (s *short) Accept() (net.Conn, error) {
	if s.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: s.Addr(), Err: syscall.EMFILE}
	}
	return s.Listener.Accept()
}

// still is a volume that is never read.
type still struct{ nbd.Volume }

func (still) Size() uint64 { return 1 << 20 }

// TestShortOfDescriptors verifies that the server reports EMFILE and accepts again once descriptors are available, and
// that it can be shut down while there are none.
func TestShortOfDescriptors(t *testing.T) {
	for _, recovers := range []bool{true, false} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		at := &short{Listener: l}
		at.left.Store(3)
		if !recovers {
			at.left.Store(1 << 30)
		}
		cfg := server.DefaultConfig()
		cfg.Exports = server.Fixed(nbdtest.One{Export: nbd.Export{Name: "disk", Volume: still{}}})
		said := make(chan error, 1<<10)
		cfg.Failed = func(_ net.Addr, err error) {
			select {
			case said <- err:
			default:
			}
		}
		s, err := server.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(at) }()
		select {
		case err := <-said:
			if !errors.Is(err, syscall.EMFILE) {
				t.Errorf("it is said that %v", err)
			}
		case err := <-ended:
			t.Fatalf("nobody is accepted any more: %v", err)
		}
		if recovers {
			c := nbdtest.Dial(t, l.Addr().String())
			if err := c.Go("disk", true); err != nil {
				t.Errorf("after there are descriptors again: %v", err)
			}
		}
		if err := s.Shutdown(); err != nil {
			t.Error(err)
		}
		if !recovers {
			at.left.Store(0)
		}
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("it does not end")
		}
	}
}
