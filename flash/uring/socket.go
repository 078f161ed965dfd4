package uring

import (
	"errors"
	"syscall"
	"unsafe"
)

// Operations and flags of sockets.
const (
	opPoll    = 6
	opCancel  = 14
	opReceive = 27

	pollFirst = 1 << 0 // of a receive: nothing is there yet, so it is waited for before it is tried
	pollOut   = 4
)

// Handler is who a socket tells of what has happened to it: on its loop's thread, one call at a time, and not from
// within a call of the socket.
type Handler interface {
	// Turn comes after Wake: once, however often it was called.
	Turn()
	// Received ends a Receive: so many bytes, 0 where the peer has sent its last, or an error.
	Received(n int, err error)
	// Writable ends an AwaitRoom.
	Writable(err error)
}

// Socket is a connected socket whose I/O a loop does. Wake and Send may be called from anywhere, all else on the
// loop's thread alone.
type Socket struct {
	loop    *loop
	handler Handler
	fd      int
	index   uint32
	buf     []byte // kept while it is received into

	receiving, waiting bool // what is under way
	queued             bool // under the loop's lock
}

// Lane is the lane of the loop that has the fewest sockets: a socket's handler has its operations of devices done by
// its own loop if they have its lane.
func (ls *Loops) Lane() uint8 {
	from := int(ls.next.Add(1))
	best := from % len(ls.all)
	for i := range ls.all {
		if k := (from + i) % len(ls.all); ls.all[k].held.Load() < ls.all[best].held.Load() {
			best = k
		}
	}
	return uint8(best + 1)
}

// Attach gives a connected socket, by a descriptor that is nobody else's, to the loop that has a lane. It stays the
// caller's to close, after Detach. The handler is called from Begin on, first with Turn.
func (ls *Loops) Attach(lane uint8, fd int, h Handler) (*Socket, error) {
	if !ls.sockets {
		return nil, errors.New("uring: this kernel's rings do not receive from sockets as is needed")
	}
	// Where reads of a descriptor are not to wait, a ring does not wait either.
	if err := syscall.SetNonblock(fd, false); err != nil {
		return nil, err
	}
	l := ls.of(lane)
	l.held.Add(1)
	return &Socket{loop: l, handler: h, fd: fd}, nil
}

// Begin has the socket's handler called from now on.
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

// Wake has the handler's Turn called.
func (s *Socket) Wake() {
	l := s.loop
	l.mu.Lock()
	if s.queued {
		l.mu.Unlock()
		return
	}
	s.queued = true
	l.ready = append(l.ready, s)
	l.rouse()
}

// Duplicate is another descriptor of the same socket, for Attach.
func Duplicate(raw syscall.RawConn) (fd int, err error) {
	outer := raw.Control(func(old uintptr) {
		n, _, no := syscall.Syscall(syscall.SYS_FCNTL, old, syscall.F_DUPFD_CLOEXEC, 0)
		if fd = int(n); no != 0 {
			err = no
		}
	})
	return fd, errors.Join(outer, err)
}

func (s *Socket) token(what uint64) uint64 {
	return socketToken | uint64(s.index)<<socketShift | what
}

// Receive receives into b, once; b is the kernel's until Received.
func (s *Socket) Receive(b []byte) {
	s.receiving, s.buf = true, b
	s.loop.push(submission{
		opcode: opReceive, priority: pollFirst, fd: int32(s.fd),
		address: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))), length: uint32(len(b)),
		token: s.token(socketReceive),
	})
}

// AwaitRoom waits until there is room to send.
func (s *Socket) AwaitRoom() {
	s.waiting = true
	s.loop.push(submission{opcode: opPoll, fd: int32(s.fd), opFlags: pollOut, token: s.token(socketPoll)})
}

// Busy reports what is under way: a Receive, an AwaitRoom.
func (s *Socket) Busy() (receiving, waiting bool) { return s.receiving, s.waiting }

// Cancel ends a Receive, and, if all, an AwaitRoom, with the handler called as for any other end.
func (s *Socket) Cancel(all bool) {
	for _, x := range [...]struct {
		under bool
		what  uint64
	}{{s.receiving, socketReceive}, {s.waiting && all, socketPoll}} {
		if x.under {
			s.loop.push(submission{opcode: opCancel, fd: -1, address: s.token(x.what), token: s.token(socketCancel)})
		}
	}
}

// Detach takes the socket from its loop; nothing of it is under way. No call of the handler's comes any more.
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
	s.queued = true // nothing wakes it again
	l.mu.Unlock()
}

// happened takes in a completion.
func (s *Socket) happened(c completion) {
	if s == nil {
		return // a Cancel that found nothing, of a socket that has gone
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

// Send sends what the socket takes at once, perhaps nothing.
func (s *Socket) Send(b []byte) (int, error) {
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

// SendVectors is Send of several pieces of memory, at least one.
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
