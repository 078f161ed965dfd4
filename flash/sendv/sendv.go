// Package sendv sends slices of memory over a connection with one system call, without copying or allocating. Sender is
// its main type; the servers of NBD and of NVMe over TCP send their answers with it.
//
// It leaves out connections without a descriptor, such as those of TLS, and waiting for many connections.
package sendv

import (
	"syscall"
	"unsafe"
)

// Sender sends the output of one connection. It keeps its closures, so that a call does not allocate. It is not safe
// for concurrent use.
type Sender struct {
	iov  []syscall.Iovec
	n    int
	err  error
	once func(fd uintptr) bool
	full func(fd uintptr) bool
}

// Most is the maximum number of slices in a call; the kernel's limit is 1024.
const Most = 512

// Prepare makes the sender ready.
func (s *Sender) Prepare() {
	s.iov = make([]syscall.Iovec, Most)
	s.once = func(fd uintptr) bool { s.call(fd); return true }
	s.full = func(fd uintptr) bool { s.call(fd); return s.err != syscall.EAGAIN }
}

func (s *Sender) call(fd uintptr) {
	for {
		n, _, no := syscall.Syscall(syscall.SYS_WRITEV, fd, uintptr(unsafe.Pointer(&s.iov[0])), uintptr(len(s.iov)))
		if no == syscall.EINTR {
			continue
		}
		s.n, s.err = int(n), nil
		if no != 0 {
			s.n, s.err = 0, no
		}
		return
	}
}

// Load returns at most Most slices as the kernel takes them. The caller clears the result after its system call.
func (s *Sender) Load(vec [][]byte) []syscall.Iovec {
	s.iov = s.iov[:len(vec)]
	for i, v := range vec {
		s.iov[i].Base = unsafe.SliceData(v)
		s.iov[i].SetLen(len(v))
	}
	return s.iov
}

// Try writes as much as the connection accepts without blocking, possibly 0 bytes.
func (s *Sender) Try(raw syscall.RawConn, vec [][]byte) (int, error) {
	s.Load(vec)
	outer := raw.Write(s.once)
	clear(s.iov)
	switch {
	case outer != nil:
		return 0, outer
	case s.err == syscall.EAGAIN:
		return 0, nil
	}
	return s.n, s.err
}

// Wait writes, blocking until the connection accepts some bytes or the deadline expires.
func (s *Sender) Wait(raw syscall.RawConn, vec [][]byte) (int, error) {
	s.Load(vec)
	outer := raw.Write(s.full)
	clear(s.iov)
	if outer != nil {
		return 0, outer
	}
	return s.n, s.err
}
