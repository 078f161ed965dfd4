// Package device is what the flash controller stands on: an asynchronous device of 4 KiB grains that reads, writes and
// flushes, as files and block devices (File), and in memory with a volatile cache and faults drawn by seed (Mem).
//
// Its main types are Op (one operation, which its submitter owns and uses again), Device, File, Mem and Faults; Arena
// is memory that is aligned as direct I/O wants it. Package uring has a Device over io_uring. Conform, in devicetest,
// is what every one must do.
//
// What it leaves out: caching, scheduling, vectors, and sizes other than whole grains. A write that was completed but
// not flushed may be lost, torn at 512-byte sectors or reordered with others that were not flushed, as with every
// drive's volatile cache (NVM Express Base Specification 2.0, section 5.27.1.4); a completed Flush makes what was
// completed before it was submitted durable.
package device

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"
)

// Grain is the unit of all operations, in bytes; Sector is what a write may be torn at.
const (
	Grain  = 4096
	Sector = 512
)

// Kind is what an Op does.
type Kind uint8

// The kinds.
const (
	Read Kind = iota
	Write
	Flush
)

func (k Kind) String() string { return [...]string{"read", "write", "flush"}[k] }

// Errors of operations, beside those of the operating system. ErrShort is a read or write that moved fewer bytes than
// it was asked to.
var (
	ErrShort  = errors.New("device: fewer bytes than asked for")
	ErrRange  = errors.New("device: beyond its end, or not whole grains")
	ErrClosed = errors.New("device: closed")
	ErrIO     = error(syscall.EIO)
	ErrSpace  = error(syscall.ENOSPC)
)

// Op is one operation. The device has it, and Buf, from Submit until Done is called.
type Op struct {
	Done   func(*Op) // called once, by any goroutine, perhaps before Submit returns; it must not block
	Buf    []byte    // Read, Write: whole grains, aligned to a grain in memory
	Err    error     // how it went, when Done is called
	Owner  any       // who counts on More, by whom operations of others beside him are told apart; nil if nobody does
	Offset int64     // Read, Write: bytes, a multiple of Grain
	Token  uint64    // the submitter's own
	Kind   Kind
	// which of its threads, if the device has several, does it: the submitter's own, perhaps; 0 if that does not
	// matter
	Lane uint8
	// the submitter waits for this alone: the device may do it before Submit returns, if it has nothing else under
	// way
	Lone bool
	More bool // when Done is called: the same goroutine calls that of another one with the same Owner next
}

// Device does operations, of different submitters side by side.
type Device interface {
	// Submit begins operations, in no order.
	Submit(ops ...*Op)
	// Size is how many bytes it has, a multiple of Grain.
	Size() int64
	// Close ends it; operations under way are finished first.
	Close() error
}

// Registrar is a Device that does operations faster in memory that it was told of beforehand. Register is called
// before the first Submit.
type Registrar interface {
	Register(arena []byte) error
}

// Check says what is wrong with an operation on a device of so many bytes: ErrRange, or nothing.
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

// Finish ends an operation.
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

// Arena is memory outside of the collector's reach, aligned to pages, zero, of so many bytes.
func Arena(n int) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	m, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("device: %d bytes of memory: %w", n, err)
	}
	return m, nil
}

// Release gives an arena back.
func Release(arena []byte) error {
	if arena == nil {
		return nil
	}
	return syscall.Munmap(arena)
}

// Aligned is memory of the collector's, aligned to grains, for what is used once.
func Aligned(n int) []byte {
	m := make([]byte, n+Grain)
	at := int(-uintptr(unsafe.Pointer(unsafe.SliceData(m))) & (Grain - 1))
	return m[at:][:n:n]
}
