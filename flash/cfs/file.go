package cfs

import (
	"fmt"
	"io"
	"io/fs"
	"math"
	"sync/atomic"

	"farflash/flash/ctl"
	"farflash/flash/ctl/heat"
)

const pageSize = ctl.Page

// most is how many pages a File has under way at once.
const most = 64

// File is an open file. Its methods may be called side by side, but Close ends it.
type File struct {
	fs     *FS
	n      *node
	user   *ctl.User // of the whole pool: Sync is about all files
	rights Rights
	pinned bool
	closed atomic.Bool
}

// open notes that a file is open. It is called with change or mu held, so that nobody removes it meanwhile.
func (f *FS) open(n *node, rights Rights) *File {
	n.opens++
	return &File{fs: f, n: n, rights: rights, user: f.pool.User(0, math.MaxUint64)}
}

// Open opens a file to do with it what rights say: Read, Write or both.
func (f *FS) Open(who Cred, path string, rights Rights) (*File, error) {
	f.change.Lock()
	defer f.change.Unlock()
	n, err := f.tree.lookup(who, path)
	switch {
	case err != nil:
		return nil, err
	case n.kind != Regular:
		return nil, fmt.Errorf("%s: %w", n.path(), ErrIsDir)
	case rights&(Read|Write) == 0 || !n.allows(who, rights&(Read|Write)):
		return nil, fmt.Errorf("%s: %w", n.path(), fs.ErrPermission)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open(n, rights), nil
}

// Create makes a file of so many bytes, all zeros, which take no room yet, and opens it.
func (f *FS) Create(who Cred, path string, perm uint16, size int64) (file *File, err error) {
	err = f.do(func(c *change) error {
		n, err := c.named(who, path, Regular, perm)
		if err != nil {
			return err
		}
		c.then = append(c.then, func() { file = f.open(n, Read|Write) })
		return c.sized(n, size)
	})
	if err != nil {
		return nil, err
	}
	return file, nil
}

func (c *change) sized(n *node, size int64) error {
	if size < 0 || size > MaxSize {
		return fmt.Errorf("%d bytes, at most %d: %w", size, int64(MaxSize), ErrTooLarge)
	}
	return c.resize(n, uint64(size))
}

// Temp makes a file without a name, which is gone when it is closed, or after a crash, unless it was given one.
func (f *FS) Temp(who Cred, perm uint16) (file *File, err error) {
	err = f.do(func(c *change) error {
		n, err := c.create(who, Regular, perm)
		if err != nil {
			return err
		}
		in := c.inodes[n.number]
		in.nameless = true
		c.inodes[n.number] = in
		c.then = append(c.then, func() { file = f.open(n, Read|Write) })
		return nil
	})
	if err != nil {
		return nil, err
	}
	return file, nil
}

// Name gives a file that has no name one, in place of the file that has it; with keep only if there is none. What was
// put into it is made durable first, so whoever finds the name finds all of it.
func (f *File) Name(who Cred, path string, keep bool) error {
	if err := f.Sync(); err != nil {
		return err
	}
	return f.fs.do(func(c *change) error {
		dir, name, there, err := c.place(who, path)
		switch {
		case f.closed.Load():
			return fs.ErrClosed
		case err != nil:
			return err
		case !f.n.nameless:
			return fmt.Errorf("%s: the file has a name: %w", f.n.path(), fs.ErrExist)
		}
		in := f.n.inode
		in.nameless = false
		c.inodes[f.n.number] = in
		return c.put(dir, name, there, f.n, keep)
	})
}

// Pin says where the file is: it stays at this address until it is closed, and if it is removed or replaced
// meanwhile, so do its data. It may grow behind its end, but not past what Stat calls Block unless what is behind
// that is free; else who wants it larger is told ErrBusy.
func (f *File) Pin() (base uint64, size int64, err error) {
	f.fs.change.Lock()
	defer f.fs.change.Unlock()
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.closed.Load() {
		return 0, 0, fs.ErrClosed
	}
	if !f.pinned {
		f.pinned = true
		f.n.pins++
	}
	return f.n.base * pageSize, int64(f.n.size), nil
}

// Size is how many bytes the file has.
func (f *File) Size() int64 {
	f.fs.mu.RLock()
	defer f.fs.mu.RUnlock()
	return int64(f.n.size)
}

// path is what the file is called now.
func (f *File) path() string {
	f.fs.mu.RLock()
	defer f.fs.mu.RUnlock()
	return f.n.path()
}

// Inode is the file's number, which tells whether two Files are of one.
func (f *File) Inode() uint32 { return f.n.number }

// Close ends the use of a file. What has no name then is removed.
func (f *File) Close() error {
	if f.closed.Swap(true) {
		return fs.ErrClosed
	}
	return f.fs.do(func(c *change) error {
		// An instant that is the file's last changes nothing else: so it is counted whatever comes of the rest.
		c.mu.Lock()
		f.n.opens--
		unpinned := false
		if f.pinned {
			f.n.pins--
			unpinned = f.n.pins == 0
		}
		c.mu.Unlock()
		switch {
		case f.n.opens == 0 && f.n.nameless:
			c.remove(f.n)
		case unpinned:
			c.tighten(f.n)
		}
		return nil
	})
}

// Truncate has the file end elsewhere: what is behind a new end is gone, what is before it and was not there reads as
// zeros and takes no room.
func (f *File) Truncate(size int64) error {
	if f.rights&Write == 0 {
		return fmt.Errorf("%s: %w", f.path(), fs.ErrPermission)
	}
	return f.fs.do(func(c *change) error {
		if f.closed.Load() {
			return fs.ErrClosed
		}
		if size == int64(f.n.size) {
			return nil
		}
		return c.sized(f.n, size)
	})
}

// extend makes the file at least so large.
func (f *File) extend(size int64) error {
	return f.fs.do(func(c *change) error {
		if f.closed.Load() {
			return fs.ErrClosed
		}
		if size <= int64(f.n.size) {
			return nil
		}
		return c.sized(f.n, size)
	})
}

// Allocate makes the file at least so large, and takes room for all of it, so that writing to it cannot find the pool
// full. If there is not enough the file is as it was, but for what was taken within its end. What others write
// meanwhile stays, whatever comes of it.
func (f *File) Allocate(size int64) error {
	switch {
	case f.rights&Write == 0:
		return fmt.Errorf("%s: %w", f.path(), fs.ErrPermission)
	case size < 0 || size > MaxSize:
		return fmt.Errorf("%s: %d bytes, at most %d: %w", f.path(), size, int64(MaxSize), ErrTooLarge)
	}
	f.taking(1)
	defer f.taking(-1)
	for {
		if again, err := f.allocate(uint64(size)); err != nil || !again {
			return err
		}
	}
}

// taking notes that pages behind the file's end are in use.
func (f *File) taking(n int) {
	f.fs.change.Lock()
	defer f.fs.change.Unlock()
	f.n.taking += n
}

// allocate takes the room first, behind the end, where nobody has anything, and then has the file end there. So what
// is given back if there is not enough is nobody's. It reports that the file was cut meanwhile, and what had been
// taken with it.
func (f *File) allocate(size uint64) (again bool, err error) {
	var cuts uint64
	err = f.fs.do(func(c *change) error {
		if f.closed.Load() {
			return fs.ErrClosed
		}
		cuts = f.n.cuts
		return c.house(f.n, size)
	})
	if err != nil {
		return false, err
	}
	end := func() uint64 {
		if f.n.cuts != cuts {
			return 0
		}
		return size
	}
	if _, err = f.each(0, int(size), end, ctl.Writing, ctl.Changed, func(ctl.Ref, int, int, int) {}); err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = f.fs.do(func(c *change) error {
			again = f.n.cuts != cuts
			switch {
			case f.closed.Load():
				return fs.ErrClosed
			case again || size <= f.n.size:
				return nil
			}
			return c.grow(f.n, size)
		})
	}
	if err == nil {
		return again, nil
	}
	back := f.fs.do(func(c *change) error {
		if n := f.n; size > n.size && c.tree.get(n.number) == n {
			c.tighten(n)
		}
		return nil
	})
	if back != nil {
		return false, fmt.Errorf("%w; and afterwards: %w", err, back)
	}
	return false, err
}

// Sync makes everything that was written before durable, in all files. Of what could not be, and was lost since the
// file was opened or last synced, it says so once.
func (f *File) Sync() error {
	if f.closed.Load() {
		return fs.ErrClosed
	}
	return f.user.Sync()
}

// end is where the file ends; with fs.mu.
func (f *File) end() uint64 { return f.n.size }

// ReadAt implements io.ReaderAt. If the file is cut meanwhile, so is what is read.
func (f *File) ReadAt(b []byte, off int64) (int, error) {
	switch {
	case f.rights&Read == 0:
		return 0, fmt.Errorf("%s: %w", f.path(), fs.ErrPermission)
	case off < 0:
		return 0, fmt.Errorf("%s: offset %d: %w", f.path(), off, fs.ErrInvalid)
	case off >= f.Size():
		return 0, io.EOF
	}
	n, err := f.each(off, len(b), f.end, ctl.Reading, ctl.Kept,
		func(r ctl.Ref, in, from, n int) { copy(b[from:from+n], r.Data[in:]) })
	if err != nil {
		return 0, err
	}
	// What was asked for before the file was cut, and came after, was no longer the file's.
	if n = int(min(int64(n), max(f.Size()-off, 0))); n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt implements io.WriterAt. What is written is durable after a Sync. A file that has to be larger is made so
// first, durably, and reads as zeros there until it is written.
func (f *File) WriteAt(b []byte, off int64) (int, error) {
	switch {
	case f.rights&Write == 0:
		return 0, fmt.Errorf("%s: %w", f.path(), fs.ErrPermission)
	case off < 0 || off > MaxSize-int64(len(b)):
		return 0, fmt.Errorf("%s: offset %d: %w", f.path(), off, ErrTooLarge)
	}
	if end := off + int64(len(b)); end > f.Size() {
		if err := f.extend(end); err != nil {
			return 0, err
		}
	}
	// What is behind the end by now is left out, as if the file had been cut afterwards.
	if _, err := f.each(off, len(b), f.end, ctl.Whole, ctl.Changed,
		func(r ctl.Ref, in, from, n int) { copy(r.Data[in:], b[from:from+n]) }); err != nil {
		return 0, err
	}
	return len(b), nil
}

// each does something with every page of a range of the file, as they come, some at a time, and returns how many
// bytes that were: it ends where end says, which is asked with fs.mu whenever some more are asked for, for it may
// change meanwhile. Whole is for pages of which all is in the range.
func (f *File) each(off int64, n int, end func() uint64, mode ctl.Mode, change ctl.Change,
	do func(r ctl.Ref, in, from, n int)) (int, error) {
	results := make(chan error, most)
	from := 0
	for over := false; from < n && !over; {
		if f.closed.Load() {
			return from, fs.ErrClosed
		}
		asked := 0
		f.fs.mu.RLock() // while it is held no address changes; a page that was asked for goes wherever it is moved
		for last := int64(end()); asked < most && from < n; {
			at := off + int64(from)
			if over = at >= last; over {
				break
			}
			in := int(at % pageSize)
			part := int(min(int64(min(n-from, pageSize-in)), last-at))
			begin, how := from, mode
			if mode == ctl.Whole && part < pageSize {
				how = ctl.Writing
			}
			f.fs.pool.Get(f.n.base+uint64(at)/pageSize, how, func(r ctl.Ref, err error) {
				if err != nil {
					results <- err
					return
				}
				do(r, in, begin, part)
				f.fs.pool.Put(r, change, heat.Auto, func(err error) { results <- err })
			})
			asked++
			from += part
		}
		f.fs.mu.RUnlock()
		var first error
		for range asked {
			if err := <-results; err != nil && first == nil {
				first = err
			}
		}
		if first != nil {
			return from, fmt.Errorf("%s: %w", f.path(), first)
		}
	}
	return from, nil
}
