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
	"unsafe"
)

// Mode says how a file or block device is opened.
type Mode struct {
	Create int64 // bytes that the file is made or extended to; 0: it must be there and have its size
	Cached bool  // through the page cache, instead of O_DIRECT
	Shared bool  // without the lock: whoever opens it knows who else has it
}

// Handle is an open file or block device, which nobody else has: it is locked against other processes.
type Handle struct {
	File   *os.File // kept, because a file that only its number is left of is closed by the collector
	Bytes  int64
	Direct bool // O_DIRECT is in force; a file system that refuses it (tmpfs) is used through its cache
}

// OpenHandle opens a file or block device.
func OpenHandle(path string, mode Mode) (Handle, error) {
	flags := os.O_RDWR
	if mode.Create > 0 {
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
		_ = h.File.Close() // what went wrong before says more
		return Handle{}, err
	}
	return h, nil
}

// lock locks the file, unless it is to be shared. A process that was killed has its files until the kernel has ended
// its ring, a moment later: that long is waited.
func (h *Handle) lock(mode Mode) error {
	for i := 0; !mode.Shared; i++ {
		err := syscall.Flock(int(h.File.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
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
	end, err := h.File.Seek(0, io.SeekEnd) // for block devices as well, of which Stat says 0
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
		return fmt.Errorf("%s has %d bytes; a device has at least %d", path, end, Grain)
	}
	return nil
}

// Run does one operation, and waits for it.
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
		// The size of the file never changes while it is open, so its data are all that there is to be made durable.
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

// File is a file or block device that is read and written by pread and pwrite, each waited for by one of its
// goroutines.
type File struct {
	Handle
	work  chan *Op
	done  sync.WaitGroup
	under atomic.Int64 // operations under way
	once  sync.Once
	gate  sync.RWMutex // held for writing when it closes
	shut  bool
}

// OpenFile opens a file or block device and starts so many goroutines for it.
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
			// All goroutines are busy and the queue is full. One of them may be what submits, so it must not wait for
			// room.
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
		err = f.File.Close()
	})
	return err
}

// AlignedTo reports whether memory begins at a grain, as direct I/O wants it.
func AlignedTo(b []byte) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(b)))%Grain == 0
}
