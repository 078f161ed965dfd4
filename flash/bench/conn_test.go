package bench

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// pair returns a client's socket and the other end of its connection.
func pair(t *testing.T) (*socket, *net.TCPConn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSocket(near)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { far.Close() })
	return s, far.(*net.TCPConn)
}

// TestSocket verifies that a client's socket blocks like a net.Conn, until its deadlines, and that its non-blocking
// calls do not.
func TestSocket(t *testing.T) {
	s, far := pair(t)
	b := make([]byte, 1<<20)
	if n, err := s.receive(b); n != 0 || err != nil {
		t.Errorf("%d bytes of nothing, %v", n, err)
	}
	if err := s.SetDeadline(time.Now().Add(5 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Read(b); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes, %v", n, err)
	}
	// The other end does not read.
	wrote, err := 0, error(nil)
	for err == nil {
		var n int
		n, err = s.Write(b)
		wrote += n
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) || wrote == 0 {
		t.Errorf("%d bytes, %v", wrote, err)
	}
	if n, err := s.send(b); n != 0 || err != nil {
		t.Errorf("%d bytes go on to a connection that takes none, %v", n, err)
	}
	if err := s.SetDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	// Now it reads, and sends a message.
	got := make(chan int64)
	go func() {
		n, err := io.Copy(io.Discard, far)
		if err != nil {
			t.Error(err)
		}
		if _, err := far.Write([]byte("end")); err != nil {
			t.Error(err)
		}
		got <- n
		far.Close()
	}()
	n, err := s.Write(b)
	if wrote += n; err != nil || n != len(b) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if err := s.CloseWrite(); err != nil {
		t.Error(err)
	}
	if n := <-got; n != int64(wrote) {
		t.Errorf("%d of %d bytes came", n, wrote)
	}
	if all, err := io.ReadAll(s); string(all) != "end" || err != nil {
		t.Errorf("%q, %v", all, err)
	}
	if n, err := s.receive(b); n != 0 || err != io.EOF {
		t.Errorf("%d bytes after the end, %v", n, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestNoSocket verifies that a connection without a descriptor is refused and closed.
func TestNoSocket(t *testing.T) {
	near, far := net.Pipe()
	if _, err := newSocket(near); err == nil {
		t.Error("a pipe in memory is a socket")
	}
	if _, err := far.Write([]byte{0}); err == nil {
		t.Error("it is open still")
	}
}
