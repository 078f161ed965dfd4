package uring

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"farflash/flash/device"
	"farflash/internal/fifo"
)

// Device is a file or block device whose operations go through a ring of its own, which one thread has: it submits what has been asked for meanwhile
// and takes completions with the same system call, many at a time when there are many. A lone operation is done by pread or pwrite
// when nothing else is under way: the way through the ring costs two changes of thread, which one operation does not win back.
type Device struct {
	handle device.Handle
	ring   *Ring
	arena  []byte // registered: operations in it need no mapping of their memory
	event  int    // an eventfd, which wakes the thread

	mu     sync.Mutex
	queue  fifo.Ring[*device.Op] // not yet submitted
	orders []func()              // what only the thread may do
	asleep bool                  // the thread waits for the kernel, or is about to
	shut   bool
	idle   *sync.Cond

	under atomic.Int64 // operations under way, lone ones included
	done  chan struct{}

	// Of the thread alone.
	slots  []*device.Op
	free   []uint32
	batch  []*device.Op
	signal uint64 // what is read from event
	armed  bool   // that read is under way
	over   bool
}

// woken is the token of the read of the eventfd.
const woken = ^uint64(0)

// Open opens a file or block device with a ring of so many entries.
func Open(path string, mode device.Mode, entries int) (*Device, error) {
	d := &Device{done: make(chan struct{})}
	d.idle = sync.NewCond(&d.mu)
	made := make(chan error)
	go func() {
		runtime.LockOSThread() // it ends with the goroutine
		ring, err := New(entries + 1)
		d.ring = ring
		if made <- err; err == nil && <-made == nil {
			d.turn()
		}
		close(d.done)
	}()
	if err := <-made; err != nil {
		return nil, err
	}
	fail := func(err error) (*Device, error) {
		made <- err
		<-d.done
		return nil, errors.Join(err, d.ring.Close())
	}
	event, _, no := syscall.Syscall(syscall.SYS_EVENTFD2, 0, syscall.O_CLOEXEC, 0)
	if no != 0 {
		return fail(fmt.Errorf("uring: %w", no))
	}
	d.event = int(event)
	h, err := device.OpenHandle(path, mode)
	if err != nil {
		return fail(errors.Join(err, syscall.Close(d.event)))
	}
	d.handle, d.slots = h, make([]*device.Op, d.ring.size-1) // one entry is the eventfd's
	for i := range d.slots {
		d.free = append(d.free, uint32(i))
	}
	made <- nil
	return d, nil
}

// Register implements device.Registrar.
func (d *Device) Register(arena []byte) error {
	done := make(chan error)
	d.order(func() {
		err := d.ring.register(arena)
		if err == nil {
			d.arena = arena
		}
		done <- err
	})
	return <-done
}

// order has the thread do something.
func (d *Device) order(f func()) {
	d.mu.Lock()
	d.orders = append(d.orders, f)
	wake := d.asleep
	d.asleep = false
	d.mu.Unlock()
	if wake {
		d.wake()
	}
}

func (d *Device) wake() {
	one := [8]byte{0: 1}
	for {
		if _, err := syscall.Write(d.event, one[:]); err == nil {
			return
		} else if !errors.Is(err, syscall.EINTR) {
			panic("uring: waking the thread: " + err.Error()) // operations hold memory that nothing says is free again
		}
	}
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
	taken := int64(0)
	d.mu.Lock()
	shut := d.shut
	for _, op := range ops {
		if shut || op.Check(d.handle.Bytes) != nil {
			bad = append(bad, op)
			continue
		}
		d.queue.Push(op)
		taken++
	}
	d.under.Add(taken)
	wake := d.asleep && taken > 0
	if wake {
		d.asleep = false
	}
	d.mu.Unlock()
	if wake {
		d.wake()
	}
	for _, op := range bad {
		if shut {
			op.Finish(device.ErrClosed)
		} else {
			op.Finish(device.ErrRange)
		}
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

// turn is the thread: it submits and hands out completions until the device is closed.
func (d *Device) turn() {
	for !d.over {
		d.mu.Lock()
		n := d.take()
		orders := d.orders
		d.orders = nil
		d.mu.Unlock()
		for _, f := range orders {
			f()
		}
		d.collect()
		wait := n == 0 && len(d.batch) == 0 && len(orders) == 0 || n > 0 && len(d.batch) == 0
		if wait {
			d.mu.Lock()
			// What cannot be submitted for want of a slot waits for a completion, and needs nobody to wake the thread.
			wait = (d.queue.N == 0 || len(d.free) == 0) && len(d.orders) == 0
			d.asleep = wait
			d.mu.Unlock()
		}
		if wait && !d.armed {
			d.armed = true
			d.ring.push(submission{
				opcode: opRead, fd: int32(d.event), offset: ^uint64(0), address: uint64(uintptr(unsafe.Pointer(&d.signal))), length: 8, token: woken,
			})
			n++
		}
		if n > 0 || wait {
			d.submit(n, wait)
		}
		if wait {
			d.mu.Lock()
			d.asleep = false
			d.mu.Unlock()
			d.collect()
		}
		d.finish()
	}
}

// take pushes what is asked for into free slots, and reports how many; d.mu is held.
func (d *Device) take() int {
	n := 0
	for d.queue.N > 0 && len(d.free) > 0 {
		op := d.queue.Pop()
		slot := d.free[len(d.free)-1]
		d.free = d.free[:len(d.free)-1]
		d.slots[slot] = op
		d.ring.push(d.entry(op, uint64(slot)))
		n++
	}
	return n
}

// submit has the kernel take n entries. What it refuses for good ends with its error.
func (d *Device) submit(n int, wait bool) {
	for {
		got, err := d.ring.enter(n, wait)
		n -= got
		switch {
		case err == nil && n == 0:
			return
		case err == nil:
			wait = false // it was short of something for the rest
		case errors.Is(err, syscall.EINTR):
			if n == 0 {
				return
			}
		case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EBUSY):
			d.collect()
			time.Sleep(50 * time.Microsecond) // the kernel is short of memory, or of room for completions
		case n == 0:
			panic("uring: waiting for completions: " + err.Error()) // operations hold memory that nothing says is free again
		default:
			// The entries that were not taken are the last n; they are taken back.
			tail := d.ring.sqTail.Load()
			for i := range uint32(n) {
				slot := d.ring.sqes[(tail-1-i)&d.ring.sqMask].token
				if slot == woken {
					panic("uring: waking the thread: " + err.Error())
				}
				op := d.slots[slot]
				d.slots[slot] = nil
				d.free = append(d.free, uint32(slot))
				op.Err = fmt.Errorf("uring: %w", err)
				d.batch = append(d.batch, op)
			}
			d.ring.sqTail.Store(tail - uint32(n))
			return
		}
	}
}

// collect takes completions that there are.
func (d *Device) collect() {
	for {
		c, ok := d.ring.reap()
		if !ok {
			return
		}
		if c.token == woken {
			d.armed = false
			continue
		}
		op := d.slots[c.token]
		d.slots[c.token] = nil
		d.free = append(d.free, uint32(c.token))
		op.Err = nil
		switch {
		case c.result < 0:
			op.Err = syscall.Errno(-c.result)
		case op.Kind != device.Flush && int(c.result) < len(op.Buf):
			op.Err = device.ErrShort
		}
		d.batch = append(d.batch, op)
	}
}

// finish tells submitters of what was collected.
func (d *Device) finish() {
	if len(d.batch) == 0 {
		return
	}
	d.ended(int64(len(d.batch)))
	for i, op := range d.batch {
		d.batch[i] = nil
		op.More = i+1 < len(d.batch)
		op.Done(op)
	}
	d.batch = d.batch[:0]
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
	d.mu.Unlock()
	d.order(func() { d.over = true })
	<-d.done
	return errors.Join(d.ring.Close(), syscall.Close(d.event), d.handle.File.Close())
}
