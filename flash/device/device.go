// Package device is the device interface of the flash controller: asynchronous reads, writes and flushes of 4 KiB
// grains, on files and block devices (File), and in memory with a volatile cache and seeded faults (Mem).
//
// Its main types are Op (one operation, which its submitter owns and reuses), Device, File, Mem and Faults; Arena
// allocates memory that is aligned for direct I/O. Package uring has a Device over io_uring. Conform, in devicetest,
// tests the behaviour required of every Device.
//
// It leaves out caching, scheduling, vectored I/O, and sizes other than whole grains. A completed write that was not
// flushed may be lost, torn at 512-byte sectors or reordered with other unflushed writes, as with every drive's
// volatile cache (NVM Express Base Specification 2.0, section 5.27.1.4). A completed Flush makes durable every write
// that completed before the Flush was submitted.
package device

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"
)

// Grain is the unit of all operations, in bytes; Sector is the unit at which a write can be torn.
const (
	Grain  = 4096
	Sector = 512
)

// Kind is the type of an Op.
type Kind uint8

// The kinds.
const (
	Read Kind = iota
	Write
	Flush
)

func (k Kind) String() string { return [...]string{"read", "write", "flush"}[k] }

// Errors of operations, in addition to those of the operating system. ErrShort is a read or write that transferred
// fewer bytes than requested.
var (
	ErrShort  = errors.New("device: short transfer")
	ErrRange  = errors.New("device: range beyond the end or not in whole grains")
	ErrClosed = errors.New("device: closed")
	ErrShrunk = errors.New("device: the file has shrunk while it was open")
	ErrIO     = error(syscall.EIO)
	ErrSpace  = error(syscall.ENOSPC)
)

// Op is one operation. The device owns it, and Buf, from Submit until it calls Done.
type Op struct {
	Done   func(*Op) // called once, on any goroutine, possibly before Submit returns; must not block
	Buf    []byte    // Read, Write: whole grains, aligned to a grain in memory
	Err    error     // the result, valid when Done is called
	Owner  any       // groups operations for More; nil if the submitter does not use More
	Offset int64     // Read, Write: byte offset, a multiple of Grain
	Token  uint64    // for the submitter's use
	Kind   Kind
	// Loop selects the thread that runs the operation if the device has several, for example the submitter's own; 0 for
	// any.
	Loop uint8
	// Lone is set if the submitter waits for this operation alone. If the device is idle, it may complete it before
	// Submit returns.
	Lone bool
	More bool // valid in Done: the same goroutine calls Done of another Op with this Owner next
}

// Device executes operations. It is safe for concurrent use.
type Device interface {
	// Submit starts operations, in no particular order.
	Submit(ops ...*Op)
	// Size returns the size in bytes, a multiple of Grain.
	Size() int64
	// Close closes the device, after the operations in flight have completed.
	Close() error
}

// Registrar is a Device that is faster for memory registered in advance. Register must be called before the first
// Submit.
type Registrar interface {
	Register(arena []byte) error
}

// Check returns ErrRange if the operation is invalid on a device of size bytes.
func (o *Op) Check(size int64) error {
	if o.Kind == Flush {
		return nil
	}
	n := int64(len(o.Buf))
	if n == 0 || n%Grain != 0 || o.Offset < 0 || o.Offset%Grain != 0 || o.Offset > size-n {
		return ErrRange
	}
	return nil
}

// Finish completes an operation.
func (o *Op) Finish(err error) {
	o.Err, o.More = err, false
	o.Done(o)
}

// Do submits one operation and waits for it.
func Do(d Device, kind Kind, offset int64, buf []byte) error {
	done := make(chan struct{})
	op := Op{Kind: kind, Offset: offset, Buf: buf, Lone: true, Done: func(*Op) { close(done) }}
	d.Submit(&op)
	<-done
	if op.Err != nil {
		return fmt.Errorf("%v of %d bytes at %d: %w", kind, len(buf), offset, op.Err)
	}
	return nil
}

// Arena allocates n bytes of zeroed, page-aligned memory outside of the Go heap.
func Arena(n int) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	m, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("device: allocating %d bytes of memory: %w", n, err)
	}
	return m, nil
}

// Release unmaps an arena.
func Release(arena []byte) error {
	if arena == nil {
		return nil
	}
	return syscall.Munmap(arena)
}

// Aligned allocates grain-aligned memory on the Go heap, for short-lived use.
func Aligned(n int) []byte {
	m := make([]byte, n+Grain)
	at := int(-uintptr(unsafe.Pointer(unsafe.SliceData(m))) & (Grain - 1))
	return m[at:][:n:n]
}
