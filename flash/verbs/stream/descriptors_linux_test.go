package stream_test

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"farflash/flash/verbs/stream"
)

// TestNoDescriptors verifies that running out of file descriptors for a loop's connection is an ordinary error: there
// is no Conn, no resource leaks, and the peer sees the connection close.
func TestNoDescriptors(t *testing.T) { ways(t, testNoDescriptors) }

func testNoDescriptors(t *testing.T) {
	goroutines(t)
	cfg := config(t)
	if cfg.Loops == nil {
		return
	}
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	restore := func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
			t.Error(err)
		}
	}
	defer restore()
	cfg.Prepare = func(*stream.Conn) error {
		return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 1, Max: was.Max})
	}
	a, b := sockets(t, false)
	d := domain(t)
	ended := make(chan error, 1)
	go func() {
		c, err := stream.Server(b, d, cfg)
		if c != nil {
			t.Error("there is a connection that nothing drives")
		}
		ended <- err
	}()
	// The client side works normally until the server gives up.
	client := stream.DefaultConfig()
	c, err := stream.Client(a, domain(t), client)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, syscall.EMFILE) {
		t.Errorf("the server says %v", err)
	}
	restore()
	select {
	case <-c.Done():
	case <-time.After(20 * time.Second):
		t.Error("the peer's connection goes on")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
