package device

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Mode controls how a file or block device is opened.
type Mode struct {
	Create int64 // size that the file is created or extended to; 0: it must exist with its size
	Cached bool  // use the page cache instead of O_DIRECT
	Shared bool  // do not lock: the caller coordinates access
	// ReadOnly opens it for reading: writes fail. Others may read it too.
	ReadOnly bool
}

// Handle is an open file or block device, locked against other processes.
type Handle struct {
	File   *os.File // referenced, because the finalizer of an os.File closes its descriptor
	Bytes  int64
	Direct bool // O_DIRECT is in effect; on a file system that refuses it (tmpfs) the cache is used
}

// OpenHandle opens a file or block device.
func OpenHandle(path string, mode Mode) (Handle, error) {
	flags := os.O_RDWR
	switch {
	case mode.ReadOnly:
		flags = os.O_RDONLY
	case mode.Create > 0:
		flags |= os.O_CREATE
	}
	var h Handle
	var err error
	if !mode.Cached {
		if h.File, err = os.OpenFile(path, flags|syscall.O_DIRECT, 0o600); err == nil {
			h.Direct = true
		} else if !errors.Is(err, syscall.EINVAL) {
			return h, err
		}
	}
	if h.File == nil {
		if h.File, err = os.OpenFile(path, flags, 0o600); err != nil {
			return h, err
		}
	}
	if err = h.prepare(path, mode); err != nil {
		_ = h.File.Close() // the first error is more informative
		return Handle{}, err
	}
	return h, nil
}

// lock locks the file unless it is shared. After a process is killed, the kernel keeps its files open until its ring is
// torn down, so lock retries for a moment.
func (h *Handle) lock(mode Mode) error {
	how := syscall.LOCK_EX
	if mode.ReadOnly {
		how = syscall.LOCK_SH
	}
	for i := 0; !mode.Shared; i++ {
		err := syscall.Flock(int(h.File.Fd()), how|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) || i == 20 {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil
}

func (h *Handle) prepare(path string, mode Mode) error {
	if err := h.lock(mode); err != nil {
		return fmt.Errorf("%s is in use by another process: %w", path, err)
	}
	end, err := h.File.Seek(0, io.SeekEnd) // also works for block devices, whose Stat size is 0
	if err != nil {
		return err
	}
	if end < mode.Create {
		if err := h.File.Truncate(mode.Create); err != nil {
			return fmt.Errorf("%s has %d bytes and cannot be extended to %d: %w", path, end, mode.Create, err)
		}
		end = mode.Create
	}
	h.Bytes = end / Grain * Grain
	if h.Bytes == 0 {
		return fmt.Errorf("%s has %d bytes; a device needs at least %d", path, end, Grain)
	}
	return nil
}

// Name returns the path that the file was opened by.
func (h *Handle) Name() string { return h.File.Name() }

// End closes the file. It returns ErrShrunk if the file became smaller while it was open: no operation need have
// failed, because writes beyond the end extend a file, and what was there need not have been read.
func (h *Handle) End() error {
	end, err := h.File.Seek(0, io.SeekEnd)
	if err == nil && end < h.Bytes {
		err = fmt.Errorf("%w: %s, from %d to %d bytes; what was beyond is lost", ErrShrunk, h.Name(), h.Bytes, end)
	}
	return errors.Join(err, h.File.Close())
}

// Run executes one operation synchronously.
func (h *Handle) Run(op *Op) error {
	if err := op.Check(h.Bytes); err != nil {
		return err
	}
	var n int
	var err error
	switch op.Kind {
	case Read:
		n, err = h.File.ReadAt(op.Buf, op.Offset)
	case Write:
		n, err = h.File.WriteAt(op.Buf, op.Offset)
	case Flush:
		// The size does not change while the file is open, so only data must be synced.
		return syscall.Fdatasync(int(h.File.Fd()))
	}
	var wrong *os.PathError
	switch {
	case errors.Is(err, io.EOF), err == nil && n < len(op.Buf):
		return ErrShort
	case errors.As(err, &wrong):
		return wrong.Err
	}
	return err
}

// File is a file or block device accessed by pread and pwrite from a pool of goroutines.
type File struct {
	Handle
	work  chan *Op
	done  sync.WaitGroup
	under atomic.Int64 // operations in flight
	once  sync.Once
	gate  sync.RWMutex // held for writing by Close
	shut  bool
}

// OpenFile opens a file or block device and starts the given number of goroutines for it.
func OpenFile(path string, mode Mode, goroutines int) (*File, error) {
	h, err := OpenHandle(path, mode)
	if err != nil {
		return nil, err
	}
	f := &File{Handle: h, work: make(chan *Op, 1024)}
	for range max(1, goroutines) {
		f.done.Add(1)
		go func() {
			defer f.done.Done()
			for op := range f.work {
				f.run(op)
			}
		}()
	}
	return f, nil
}

func (f *File) run(op *Op) {
	err := f.Run(op)
	f.under.Add(-1)
	op.Finish(err)
}

// Submit implements Device.
func (f *File) Submit(ops ...*Op) {
	for _, op := range ops {
		f.gate.RLock()
		if f.shut {
			f.gate.RUnlock()
			op.Finish(ErrClosed)
			continue
		}
		if f.under.Add(1) == 1 && op.Lone && len(ops) == 1 {
			f.gate.RUnlock()
			f.run(op)
			continue
		}
		select {
		case f.work <- op:
			f.gate.RUnlock()
		default:
			// All goroutines are busy and the queue is full. Submit may be running on one of them, so it must not
			// block.
			f.done.Add(1)
			f.gate.RUnlock()
			go func() {
				defer f.done.Done()
				f.run(op)
			}()
		}
	}
}

// Size implements Device.
func (f *File) Size() int64 { return f.Bytes }

// Close implements Device.
func (f *File) Close() error {
	var err error
	f.once.Do(func() {
		f.gate.Lock()
		f.shut = true
		f.gate.Unlock()
		close(f.work)
		f.done.Wait()
		err = f.End()
	})
	return err
}
