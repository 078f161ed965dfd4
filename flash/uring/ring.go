// Package uring drives Linux io_uring through its three system calls. It provides rings, threads with one ring each,
// and two users of these threads: devices, with fixed buffers where memory is registered, and sockets.
//
// Its main types are Ring, the kernel's two queues only; Loops, threads that submit operations and process completions;
// Device, a device.Device over a file or block device, with a loop of its own (Open) or on shared loops (Loops.Open);
// and Socket, whose Handler is called by its loop. Where io_uring is forbidden, New and Open return an error that
// Forbidden recognises, and device.File provides the same with pread and pwrite.
//
// It leaves out polling by the kernel (SQPOLL, IOPOLL), linked operations, registered files, sends, multishot
// operations, and every operation except read, write, fsync, receive, poll and cancel. Structures follow the kernel's
// include/uapi/linux/io_uring.h (5.1 and later; sockets from 5.19). docs/adr/0024-loops.md explains why devices and
// sockets share threads.
package uring

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// System calls, with the same numbers on all architectures that have them.
const (
	sysSetup    = 425
	sysEnter    = 426
	sysRegister = 427
)

// Operations of a submission entry.
const (
	opReadVector = 1
	opFsync      = 3
	opReadFixed  = 4
	opWriteFixed = 5
	opRead       = 22
	opWrite      = 23

	fsyncDatasync     = 1
	enterGetEvents    = 1
	featSingleMap     = 1
	registerBuffers   = 0
	unregisterBuffers = 1

	// Completions are delivered only when the single submitting thread asks for them, so that no thread is interrupted
	// or woken for them (Linux 6.1).
	setupSingleIssuer = 1 << 12
	setupDeferTaskrun = 1 << 13

	offSubmission = 0
	offEntries    = 0x10000000
)

// params is struct io_uring_params.
type params struct {
	sqEntries, cqEntries, flags, sqCPU, sqIdle, features, wqFD uint32
	_                                                          [3]uint32
	sq                                                         struct {
		head, tail, mask, entries, flags, dropped, array, _ uint32
		_                                                   uint64
	}
	cq struct {
		head, tail, mask, entries, overflow, cqes, flags, _ uint32
		_                                                   uint64
	}
}

// submission is struct io_uring_sqe, completion struct io_uring_cqe.
type submission struct {
	opcode, flags uint8
	priority      uint16
	fd            int32
	offset        uint64
	address       uint64
	length        uint32
	opFlags       uint32
	token         uint64
	buffer        uint16
	_             [22]byte
}

type completion struct {
	token  uint64
	result int32
	_      uint32
}

// Ring is a submission and a completion queue. It belongs to one thread.
type Ring struct {
	fd                     int
	rings, entries         []byte
	sqHead, sqTail, cqHead *atomic.Uint32
	cqTail                 *atomic.Uint32
	sqMask, cqMask         uint32
	array                  []uint32
	sqes                   []submission
	cqes                   []completion
	size                   uint32
}

// Forbidden reports whether an error of New or Open means that io_uring is unavailable here, as opposed to any other
// failure.
func Forbidden(err error) bool {
	return errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) ||
		errors.Is(err, syscall.ENOMEM)
}

// New creates a ring with the given number of entries, rounded up to a power of two. Only the creating thread may
// submit and wait.
func New(entries int) (*Ring, error) {
	p := params{flags: setupSingleIssuer | setupDeferTaskrun}
	fd, _, no := syscall.Syscall(sysSetup, uintptr(entries), uintptr(unsafe.Pointer(&p)), 0)
	if no == syscall.EINVAL { // an older kernel, which interrupts the submitter for completions
		p = params{}
		fd, _, no = syscall.Syscall(sysSetup, uintptr(entries), uintptr(unsafe.Pointer(&p)), 0)
	}
	if no != 0 {
		return nil, fmt.Errorf("uring: creating a ring of %d entries: %w", entries, no)
	}
	r := &Ring{fd: int(fd), size: p.sqEntries}
	if p.features&featSingleMap == 0 {
		_ = syscall.Close(r.fd) // a close error is harmless here
		return nil, fmt.Errorf("uring: this kernel cannot map both queues at once; Linux 5.4 or later is required: %w",
			syscall.ENOSYS)
	}
	n := max(p.sq.array+4*p.sqEntries, p.cq.cqes+uint32(unsafe.Sizeof(completion{}))*p.cqEntries)
	var err error
	if r.rings, err = r.mapped(offSubmission, int(n)); err == nil {
		r.entries, err = r.mapped(offEntries, int(p.sqEntries)*int(unsafe.Sizeof(submission{})))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("uring: mapping the queues: %w", err), r.Close())
	}
	word := func(at uint32) *atomic.Uint32 { return (*atomic.Uint32)(unsafe.Pointer(&r.rings[at])) }
	r.sqHead, r.sqTail, r.cqHead, r.cqTail = word(p.sq.head), word(p.sq.tail), word(p.cq.head), word(p.cq.tail)
	r.sqMask, r.cqMask = word(p.sq.mask).Load(), word(p.cq.mask).Load()
	r.array = unsafe.Slice((*uint32)(unsafe.Pointer(&r.rings[p.sq.array])), p.sqEntries)
	r.sqes = unsafe.Slice((*submission)(unsafe.Pointer(&r.entries[0])), p.sqEntries)
	r.cqes = unsafe.Slice((*completion)(unsafe.Pointer(&r.rings[p.cq.cqes])), p.cqEntries)
	return r, nil
}

func (r *Ring) mapped(offset int64, n int) ([]byte, error) {
	return syscall.Mmap(r.fd, offset, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED|syscall.MAP_POPULATE)
}

// register registers memory for fixed-buffer operations.
func (r *Ring) register(arena []byte) error {
	v := syscall.Iovec{Base: unsafe.SliceData(arena), Len: uint64(len(arena))}
	_, _, no := syscall.Syscall6(sysRegister, uintptr(r.fd), registerBuffers, uintptr(unsafe.Pointer(&v)), 1, 0, 0)
	runtime.KeepAlive(arena)
	if no != 0 {
		return fmt.Errorf("uring: registering %d bytes: %w", len(arena), no)
	}
	return nil
}

// unregister unregisters the memory.
func (r *Ring) unregister() error {
	if _, _, no := syscall.Syscall6(sysRegister, uintptr(r.fd), unregisterBuffers, 0, 0, 0, 0); no != 0 {
		return fmt.Errorf("uring: unregistering buffers: %w", no)
	}
	return nil
}

// push adds an entry to the submission queue. The caller ensures that there is space (loop.push). The kernel reads
// the entry once it sees the tail, so the tail is stored last.
func (r *Ring) push(s submission) {
	tail := r.sqTail.Load()
	if tail-r.sqHead.Load() >= r.size {
		panic("uring: submission queue overflow")
	}
	r.sqes[tail&r.sqMask] = s
	r.array[tail&r.sqMask] = tail & r.sqMask
	r.sqTail.Store(tail + 1)
}

// enter submits n entries and lets the kernel deliver completions; with wait it blocks until there is at least one. It
// returns the number of entries accepted.
func (r *Ring) enter(n int, wait bool) (int, error) {
	least := uintptr(0)
	if wait {
		least = 1
	}
	var got uintptr
	var no syscall.Errno
	if wait {
		got, _, no = syscall.Syscall6(sysEnter, uintptr(r.fd), uintptr(n), least, enterGetEvents, 0, 0)
	} else { // returns immediately, so the Go scheduler need not hand off the processor
		got, _, no = syscall.RawSyscall6(sysEnter, uintptr(r.fd), uintptr(n), least, enterGetEvents, 0, 0)
	}
	if no != 0 {
		return 0, no
	}
	return int(got), nil
}

// reap removes a completion, and reports false if there is none. The entry is copied first: the kernel can reuse it
// once the head has moved.
func (r *Ring) reap() (completion, bool) {
	head := r.cqHead.Load()
	if head == r.cqTail.Load() {
		return completion{}, false
	}
	c := r.cqes[head&r.cqMask]
	r.cqHead.Store(head + 1)
	return c, true
}

// Close releases the ring. No operation may be in flight.
func (r *Ring) Close() error {
	var errs []error
	for _, m := range [][]byte{r.rings, r.entries} {
		if m != nil {
			errs = append(errs, syscall.Munmap(m))
		}
	}
	r.rings, r.entries = nil, nil
	return errors.Join(append(errs, syscall.Close(r.fd))...)
}
