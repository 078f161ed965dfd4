package uring

import (
	"errors"
	"sync"
	"sync/atomic"

	"farflash/flash/device"
)

// Device is a file or block device whose operations go through the rings of Loops: one of their threads submits and
// completes them, in batches under load. A lone operation on an idle device runs by pread or pwrite instead, because
// the path through a ring costs two thread switches, which a single operation does not recover. An operation with a
// lane comes from a loop's own thread, where neither applies.
type Device struct {
	handle device.Handle
	fd     uintptr
	loops  *Loops
	own    bool // the loops belong to this device alone
	arena  []byte

	under atomic.Int64 // operations in flight, including lone ones
	shut  atomic.Bool
	mu    sync.Mutex
	idle  *sync.Cond
}

// Open opens a file or block device with a ring of its own of the given number of entries.
func Open(path string, mode device.Mode, entries int) (*Device, error) {
	loops, err := Start(1, entries)
	if err != nil {
		return nil, err
	}
	d, err := loops.Open(path, mode)
	if err != nil {
		return nil, errors.Join(err, loops.Close())
	}
	d.own = true
	return d, nil
}

// Open opens a file or block device on the loops. Close the loops after it.
func (ls *Loops) Open(path string, mode device.Mode) (*Device, error) {
	h, err := device.OpenHandle(path, mode)
	if err != nil {
		return nil, err
	}
	d := &Device{handle: h, fd: h.File.Fd(), loops: ls}
	d.idle = sync.NewCond(&d.mu)
	return d, nil
}

// Register implements device.Registrar.
func (d *Device) Register(arena []byte) error {
	d.arena = arena
	return d.loops.register(arena)
}

// Size implements device.Device.
func (d *Device) Size() int64 { return d.handle.Bytes }

// Submit implements device.Device.
func (d *Device) Submit(ops ...*device.Op) {
	if len(ops) == 1 && ops[0].Lone && ops[0].Loop == 0 && d.under.CompareAndSwap(0, 1) {
		err := device.ErrClosed
		if !d.shut.Load() {
			err = d.handle.Run(ops[0])
		}
		d.ended(1)
		ops[0].Finish(err)
		return
	}
	// Close waits for every operation counted here; count before the check of shut.
	d.under.Add(int64(len(ops)))
	shut := d.shut.Load()
	var l *loop
	var refused []*device.Op
	for _, op := range ops {
		if shut || op.Check(d.handle.Bytes) != nil {
			refused = append(refused, op)
			continue
		}
		// A run of operations for the same loop takes its lock once and wakes it once.
		if at := d.loops.of(op.Loop); at != l {
			if l != nil {
				l.wakeIfAsleep()
			}
			l = at
			l.mu.Lock()
		}
		l.queue.Push(task{op, d})
	}
	if l != nil {
		l.wakeIfAsleep()
	}
	if len(refused) == 0 {
		return
	}
	d.ended(int64(len(refused)))
	for _, op := range refused {
		if shut {
			op.Finish(device.ErrClosed)
		} else {
			op.Finish(device.ErrRange)
		}
	}
}

// of returns the loop of a lane.
func (ls *Loops) of(lane uint8) *loop {
	if lane == 0 {
		return ls.all[0]
	}
	return ls.all[int(lane-1)%len(ls.all)]
}

// ended counts n operations as completed.
func (d *Device) ended(n int64) {
	if d.under.Add(-n) == 0 && d.shut.Load() {
		d.mu.Lock()
		d.idle.Broadcast()
		d.mu.Unlock()
	}
}

// Close implements device.Device.
func (d *Device) Close() error {
	if d.shut.Swap(true) {
		return nil
	}
	d.mu.Lock()
	// Submit counts an operation before it checks shut, so none starts after this wait.
	for d.under.Load() > 0 {
		d.idle.Wait()
	}
	d.mu.Unlock()
	var err error
	if d.own {
		err = d.loops.Close()
	} else if d.arena != nil {
		err = d.loops.forget(d.arena)
	}
	return errors.Join(err, d.handle.End())
}

// Name returns the path that the file was opened by.
func (d *Device) Name() string { return d.handle.Name() }
