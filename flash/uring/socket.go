package uring

import (
	"errors"
	"syscall"
	"unsafe"
)

// Operations and flags for sockets.
const (
	opPoll    = 6
	opCancel  = 14
	opReceive = 27

	pollFirst = 1 << 0 // poll before the first attempt, because no data is expected yet
	pollOut   = 4
)

// Handler receives a socket's events: on its loop's thread, one call at a time, and never from within a call to the
// socket.
type Handler interface {
	// Turn follows Wake, once for any number of calls.
	Turn()
	// Received completes a Receive: n bytes, 0 at the end of the stream, or an error.
	Received(n int, err error)
	// Writable completes an AwaitWritable.
	Writable(err error)
}

// Socket is a connected socket whose I/O runs on a loop. Wake and Send are safe for concurrent use; all other methods
// must be called on the loop's thread.
type Socket struct {
	loop    *loop
	handler Handler
	fd      int
	index   uint32
	buf     []byte // kept alive while a receive is in flight

	receiving, waiting bool // operations in flight
	queued             bool // guarded by the loop's mu
}

// Next returns the lane of the loop with the fewest sockets. Device operations submitted with a socket's lane run on
// the socket's own loop.
func (ls *Loops) Next() uint8 {
	from := int(ls.next.Add(1))
	best := from % len(ls.all)
	for i := range ls.all {
		if k := (from + i) % len(ls.all); ls.all[k].held.Load() < ls.all[best].held.Load() {
			best = k
		}
	}
	return uint8(best + 1)
}

// Attach assigns a connected socket to the loop of a lane. The caller must own fd exclusively, and closes it after
// Detach. The handler is called from Begin on, first with Turn.
func (ls *Loops) Attach(lane uint8, fd int, h Handler) (*Socket, error) {
	if !ls.sockets {
		return nil, errors.New("uring: this kernel's io_uring lacks the required socket operations")
	}
	// On a non-blocking descriptor io_uring does not wait either.
	if err := syscall.SetNonblock(fd, false); err != nil {
		return nil, err
	}
	l := ls.of(lane)
	l.held.Add(1)
	return &Socket{loop: l, handler: h, fd: fd}, nil
}

// Begin starts the calls of the socket's handler.
func (s *Socket) Begin() {
	l := s.loop
	l.order(func() {
		if n := len(l.spaces); n > 0 {
			s.index, l.spaces = l.spaces[n-1], l.spaces[:n-1]
			l.sockets[s.index] = s
		} else {
			s.index = uint32(len(l.sockets))
			l.sockets = append(l.sockets, s)
		}
		s.handler.Turn()
	})
}

// Wake schedules a call of the handler's Turn.
func (s *Socket) Wake() {
	l := s.loop
	l.mu.Lock()
	if s.queued {
		l.mu.Unlock()
		return
	}
	s.queued = true
	l.ready = append(l.ready, s)
	l.wakeIfAsleep()
}

// Duplicate returns a duplicate descriptor of the socket, for Attach. The original is then closed, so that the
// runtime's poller no longer watches the socket.
func Duplicate(raw syscall.RawConn) (fd int, err error) {
	outer := raw.Control(func(old uintptr) {
		n, _, no := syscall.Syscall(syscall.SYS_FCNTL, old, syscall.F_DUPFD_CLOEXEC, 0)
		if fd = int(n); no != 0 {
			err = no
		}
	})
	return fd, errors.Join(outer, err)
}

// token encodes a socket's index and the kind of an operation, for happened.
func (s *Socket) token(what uint64) uint64 {
	return socketToken | uint64(s.index)<<socketShift | what
}

// Receive receives into b once. The kernel owns b until Received.
func (s *Socket) Receive(b []byte) {
	s.receiving, s.buf = true, b
	s.loop.push(submission{
		opcode: opReceive, priority: pollFirst, fd: int32(s.fd),
		address: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))), length: uint32(len(b)),
		token: s.token(socketReceive),
	})
}

// AwaitWritable waits until the socket is writable.
func (s *Socket) AwaitWritable() {
	s.waiting = true
	s.loop.push(submission{opcode: opPoll, fd: int32(s.fd), opFlags: pollOut, token: s.token(socketPoll)})
}

// Busy reports which operations are in flight: a Receive, an AwaitWritable.
func (s *Socket) Busy() (receiving, waiting bool) { return s.receiving, s.waiting }

// Cancel cancels a Receive and, if all is set, an AwaitWritable. The handler is called as for any other completion.
func (s *Socket) Cancel(all bool) {
	for _, x := range [...]struct {
		under bool
		what  uint64
	}{{s.receiving, socketReceive}, {s.waiting && all, socketPoll}} {
		// A cancel entry names its operation by token.
		if x.under {
			s.loop.push(submission{opcode: opCancel, fd: -1, address: s.token(x.what), token: s.token(socketCancel)})
		}
	}
}

// Detach removes the socket from its loop. No operation may be in flight. The handler is not called again. Its index
// can be reused at once: only the completion of a Cancel may still arrive, which has no effect.
func (s *Socket) Detach() {
	l := s.loop
	l.sockets[s.index] = nil
	l.spaces = append(l.spaces, s.index)
	l.held.Add(-1)
	l.mu.Lock()
	for i, x := range l.ready {
		if x == s {
			l.ready = append(l.ready[:i], l.ready[i+1:]...)
			break
		}
	}
	s.queued = true // disables Wake
	l.mu.Unlock()
}

// happened processes a completion.
func (s *Socket) happened(c completion) {
	if s == nil {
		return // a Cancel without effect, of a socket already detached
	}
	n, err := int(c.result), error(nil)
	if n < 0 {
		n, err = 0, syscall.Errno(-n)
	}
	switch c.token & (1<<socketShift - 1) {
	case socketReceive:
		s.receiving, s.buf = false, nil
		s.handler.Received(n, err)
	case socketPoll:
		s.waiting = false
		s.handler.Writable(err)
	}
}

// Send sends as much as the socket accepts without blocking, possibly 0 bytes.
func (s *Socket) Send(b []byte) (int, error) {
	// A raw system call: it returns immediately, so the Go scheduler need not hand off the processor.
	for {
		n, _, no := syscall.RawSyscall6(syscall.SYS_SENDTO, uintptr(s.fd),
			uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)),
			syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL, 0, 0)
		switch no {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, nil
		default:
			return 0, no
		}
	}
}

// SendVectors is Send for several buffers, at least one.
func (s *Socket) SendVectors(v []syscall.Iovec) (int, error) {
	m := syscall.Msghdr{Iov: &v[0], Iovlen: uint64(len(v))}
	for {
		n, _, no := syscall.RawSyscall(syscall.SYS_SENDMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&m)),
			syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL)
		switch no {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, nil
		default:
			return 0, no
		}
	}
}
