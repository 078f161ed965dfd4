package bench

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"farflash/flash/uring"
)

// detach removes a connection from the runtime's poller, which would be woken for all input, and returns the
// non-blocking socket.
func detach(nc net.Conn) (fd int, err error) {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return -1, errors.Join(errors.New("bench: the connection has no socket"), nc.Close())
	}
	raw, err := tcp.SyscallConn()
	if err == nil {
		fd, err = uring.Duplicate(raw)
	}
	return fd, errors.Join(err, nc.Close()) // the duplicate stays open
}

// socket is a connection of a client thread that waits for many at once. Its Read and Write block like those of a
// net.Conn, for startup and shutdown; calls through SyscallConn do not block. It is not safe for concurrent use.
type socket struct {
	net.Conn // closed; kept for its addresses
	fd       int
	reads    time.Time // deadlines
	writes   time.Time
}

func newSocket(nc net.Conn) (*socket, error) {
	fd, err := detach(nc)
	if err != nil {
		return nil, err
	}
	return &socket{Conn: nc, fd: fd}, nil
}

// Read implements net.Conn.
func (s *socket) Read(b []byte) (int, error) {
	for {
		n, err := s.receive(b)
		switch {
		case err != nil:
			return 0, err
		case n > 0 || len(b) == 0:
			return n, nil
		}
		if err := s.await(unix.POLLIN, s.reads); err != nil {
			return 0, err
		}
	}
}

// Write implements net.Conn.
func (s *socket) Write(b []byte) (done int, err error) {
	for {
		n, err := s.send(b[done:])
		if done += n; err != nil || done == len(b) {
			return done, err
		}
		if err := s.await(unix.POLLOUT, s.writes); err != nil {
			return done, err
		}
	}
}

// receive reads without blocking, possibly 0 bytes; io.EOF is the end.
func (s *socket) receive(b []byte) (int, error) {
	n, some, err := s.once("read", unix.Read, b)
	if some && n == 0 && len(b) > 0 {
		return 0, io.EOF
	}
	return n, err
}

// send writes as much as the socket accepts without blocking, possibly 0 bytes.
func (s *socket) send(b []byte) (int, error) {
	n, _, err := s.once("write", unix.Write, b)
	return n, err
}

// once makes a non-blocking call and reports whether it succeeded rather than returning EAGAIN.
func (s *socket) once(name string, call func(int, []byte) (int, error), b []byte) (n int, some bool, err error) {
	for {
		switch n, err = call(s.fd, b); err {
		case nil:
			return n, true, nil
		case unix.EINTR:
		case unix.EAGAIN:
			return 0, false, nil
		default:
			return 0, false, os.NewSyscallError(name, err)
		}
	}
}

// reader adapts a function to io.Reader.
type reader func([]byte) (int, error)

// Read implements io.Reader.
func (r reader) Read(b []byte) (int, error) { return r(b) }

// await blocks until the socket is ready.
func (s *socket) await(events int16, until time.Time) error {
	for {
		wait := -1
		if !until.IsZero() {
			wait = int(max(0, time.Until(until)+time.Millisecond-1) / time.Millisecond)
		}
		switch n, err := unix.Poll([]unix.PollFd{{Fd: int32(s.fd), Events: events}}, wait); {
		case err == unix.EINTR:
		case err != nil:
			return os.NewSyscallError("poll", err)
		case n == 0:
			return os.ErrDeadlineExceeded
		default:
			return nil
		}
	}
}

// Close implements net.Conn.
func (s *socket) Close() error { return os.NewSyscallError("close", unix.Close(s.fd)) }

// CloseWrite shuts down the sending direction.
func (s *socket) CloseWrite() error {
	return os.NewSyscallError("shutdown", unix.Shutdown(s.fd, unix.SHUT_WR))
}

// SetDeadline implements net.Conn.
func (s *socket) SetDeadline(t time.Time) error {
	s.reads, s.writes = t, t
	return nil
}

// SetReadDeadline implements net.Conn.
func (s *socket) SetReadDeadline(t time.Time) error {
	s.reads = t
	return nil
}

// SetWriteDeadline implements net.Conn.
func (s *socket) SetWriteDeadline(t time.Time) error {
	s.writes = t
	return nil
}

// SyscallConn returns a RawConn for non-blocking calls.
func (s *socket) SyscallConn() (syscall.RawConn, error) { return attempts(s.fd), nil }

// attempts is a syscall.RawConn that makes each call once.
type attempts int

// Control implements syscall.RawConn.
func (a attempts) Control(f func(uintptr)) error {
	f(uintptr(a))
	return nil
}

// Read implements syscall.RawConn.
func (a attempts) Read(f func(uintptr) bool) error {
	f(uintptr(a))
	return nil
}

// Write implements syscall.RawConn.
func (a attempts) Write(f func(uintptr) bool) error {
	f(uintptr(a))
	return nil
}
