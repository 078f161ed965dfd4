package uring

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"farflash/flash/device"
)

// Device is a file or block device whose operations go through a ring of its own. A lone operation is done by pread
// or pwrite when nothing else is under way: the way through the ring costs two changes of goroutine, which one operation does not win back.
type Device struct {
	handle device.Handle
	ring   *Ring
	arena  []byte // registered: operations in it need no mapping of their memory

	mu      sync.Mutex // the submission side
	slots   []*device.Op
	free    []uint32
	waiting []*device.Op // that found no slot, first come
	shut    bool
	idle    *sync.Cond

	under  atomic.Int64 // operations under way, lone ones included
	reaper sync.WaitGroup
}

// quit is the token of the entry that ends the reaper.
const quit = ^uint64(0)

// Open opens a file or block device with a ring of so many entries.
func Open(path string, mode device.Mode, entries int) (*Device, error) {
	ring, err := New(entries)
	if err != nil {
		return nil, err
	}
	h, err := device.OpenHandle(path, mode)
	if err != nil {
		return nil, errors.Join(err, ring.Close())
	}
	d := &Device{handle: h, ring: ring, slots: make([]*device.Op, ring.size)}
	d.idle = sync.NewCond(&d.mu)
	for i := range d.slots {
		d.free = append(d.free, uint32(i))
	}
	d.reaper.Add(1)
	go d.reap()
	return d, nil
}

// Register implements device.Registrar.
func (d *Device) Register(arena []byte) error {
	if err := d.ring.register(arena); err != nil {
		return err
	}
	d.arena = arena
	return nil
}

// Size implements device.Device.
func (d *Device) Size() int64 { return d.handle.Bytes }

// Direct reports whether O_DIRECT is in force.
func (d *Device) Direct() bool { return d.handle.Direct }

// Submit implements device.Device.
func (d *Device) Submit(ops ...*device.Op) {
	if len(ops) == 1 && ops[0].Lone && d.under.CompareAndSwap(0, 1) {
		d.mu.Lock()
		shut := d.shut
		d.mu.Unlock()
		err := device.ErrClosed
		if !shut {
			err = d.handle.Run(ops[0])
		}
		d.ended(1)
		ops[0].Finish(err)
		return
	}
	var bad []*device.Op
	d.mu.Lock()
	for _, op := range ops {
		if d.shut || op.Check(d.handle.Bytes) != nil {
			bad = append(bad, op)
			continue
		}
		d.under.Add(1)
		d.waiting = append(d.waiting, op)
	}
	shut := d.shut
	failed, err := d.pump()
	d.mu.Unlock()
	for _, op := range bad {
		if shut {
			op.Finish(device.ErrClosed)
		} else {
			op.Finish(device.ErrRange)
		}
	}
	d.refuse(failed, err)
}

// refuse ends operations that the kernel did not take.
func (d *Device) refuse(failed []*device.Op, err error) {
	for _, op := range failed {
		d.ended(1)
		op.Finish(fmt.Errorf("uring: %w", err))
	}
}

// ended counts operations that are over.
func (d *Device) ended(n int64) {
	if d.under.Add(-n) == 0 {
		d.mu.Lock()
		d.idle.Broadcast()
		d.mu.Unlock()
	}
}

// pump pushes operations that wait into free slots. What the kernel refuses for good is returned.
func (d *Device) pump() (failed []*device.Op, err error) {
	n := 0
	for len(d.waiting) > 0 && len(d.free) > 0 {
		op := d.waiting[0]
		d.waiting = d.waiting[1:]
		slot := d.free[len(d.free)-1]
		d.free = d.free[:len(d.free)-1]
		d.slots[slot] = op
		d.ring.push(d.entry(op, uint64(slot)))
		n++
	}
	for n > 0 {
		got, err := d.ring.submit(n)
		switch {
		case err == nil:
			n -= got
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EBUSY):
			time.Sleep(50 * time.Microsecond) // the kernel is short of memory, or of room for completions, which the reaper makes
		default:
			// The entries that were not taken are the last n; they are taken back.
			tail := d.ring.sqTail.Load()
			for i := range uint32(n) {
				slot := d.ring.sqes[(tail-1-i)&d.ring.sqMask].token
				failed = append(failed, d.slots[slot])
				d.slots[slot] = nil
				d.free = append(d.free, uint32(slot))
			}
			d.ring.sqTail.Store(tail - uint32(n))
			return failed, err
		}
	}
	return nil, nil
}

func (d *Device) entry(op *device.Op, token uint64) submission {
	s := submission{fd: int32(d.handle.File.Fd()), token: token}
	if op.Kind == device.Flush {
		s.opcode, s.opFlags = opFsync, fsyncDatasync
		return s
	}
	base := uintptr(unsafe.Pointer(unsafe.SliceData(op.Buf)))
	s.opcode = opRead
	if op.Kind == device.Write {
		s.opcode = opWrite
	}
	arena := uintptr(unsafe.Pointer(unsafe.SliceData(d.arena)))
	if d.arena != nil && base >= arena && base+uintptr(len(op.Buf)) <= arena+uintptr(len(d.arena)) {
		s.opcode = opReadFixed + (s.opcode - opRead)
	}
	s.offset, s.address, s.length = uint64(op.Offset), uint64(base), uint32(len(op.Buf))
	return s
}

// reap hands out completions until the ring is closed.
func (d *Device) reap() {
	defer d.reaper.Done()
	for {
		c, ok := d.ring.reap()
		if !ok {
			if err := d.ring.wait(); err != nil {
				panic("uring: waiting for completions: " + err.Error()) // operations hold memory that nothing says is free again
			}
			continue
		}
		if c.token == quit {
			return
		}
		d.mu.Lock()
		op := d.slots[c.token]
		d.slots[c.token] = nil
		d.free = append(d.free, uint32(c.token))
		failed, refused := d.pump()
		d.mu.Unlock()
		d.refuse(failed, refused)
		var err error
		switch {
		case c.result < 0:
			err = syscall.Errno(-c.result)
		case op.Kind != device.Flush && int(c.result) < len(op.Buf):
			err = device.ErrShort
		}
		d.ended(1)
		op.Finish(err)
	}
}

// Close implements device.Device.
func (d *Device) Close() error {
	d.mu.Lock()
	if d.shut {
		d.mu.Unlock()
		return nil
	}
	d.shut = true
	for d.under.Load() > 0 {
		d.idle.Wait()
	}
	d.ring.push(submission{opcode: opNop, token: quit})
	for {
		if n, err := d.ring.submit(1); err == nil && n == 1 {
			break
		} else if err != nil && !errors.Is(err, syscall.EINTR) && !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EBUSY) {
			d.mu.Unlock()
			return fmt.Errorf("uring: closing: %w", err)
		}
	}
	d.mu.Unlock()
	d.reaper.Wait()
	return errors.Join(d.ring.Close(), d.handle.File.Close())
}
