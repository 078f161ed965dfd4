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

// most is the number of pages that a File keeps in flight at once.
const most = 64

// File is an open file. Its methods are safe for concurrent use; after Close they fail.
type File struct {
	fs     *FS
	n      *node
	user   *ctl.User // of the whole pool, because Sync covers all files
	rights Rights
	pinned bool
	closed atomic.Bool
}

// open counts a file as open. The caller holds change or mu, so that the file cannot be removed concurrently.
func (f *FS) open(n *node, rights Rights) *File {
	n.opens++
	return &File{fs: f, n: n, rights: rights, user: f.pool.User(0, math.MaxUint64)}
}

// Open opens a file for the given rights: Read, Write or both.
func (f *FS) Open(who Cred, path string, rights Rights) (*File, error) {
	return f.OpenAt(who, Place{Path: path}, rights)
}

// OpenAt is Open of a place.
func (f *FS) OpenAt(who Cred, p Place, rights Rights) (*File, error) {
	f.change.Lock()
	defer f.change.Unlock()
	n, err := f.tree.lookup(who, p)
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

// Create creates a file of size bytes, all zeros and without space allocated, and opens it.
func (f *FS) Create(who Cred, path string, perm uint16, size int64) (file *File, err error) {
	err = f.do(func(c *change) error {
		n, err := c.named(who, who, Place{Path: path}, Regular, perm)
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
		return fmt.Errorf("%d bytes, the maximum is %d: %w", size, int64(MaxSize), ErrTooLarge)
	}
	return c.resize(n, uint64(size))
}

// Temp creates a file without a name. It is removed when it is closed, or after a crash, unless it is named first.
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

// Name names a nameless file, replacing an existing file of that name, or failing if there is one and keep is set. It
// syncs the file first, so that the name never leads to partial contents.
func (f *File) Name(who Cred, path string, keep bool) error {
	if err := f.Sync(); err != nil {
		return err
	}
	return f.fs.do(func(c *change) error {
		if f.closed.Load() {
			return fs.ErrClosed
		}
		_, err := c.name(who, f.n, Place{Path: path}, keep)
		return err
	})
}

// name gives a nameless file a name in a directory, which it returns.
func (c *change) name(who Cred, n *node, p Place, keep bool) (dir *node, err error) {
	dir, name, there, err := c.place(who, p)
	switch {
	case err != nil:
		return nil, err
	case !n.nameless:
		return nil, fmt.Errorf("%s: the file already has a name: %w", n.path(), fs.ErrExist)
	}
	in := n.inode
	in.nameless = false
	c.inodes[n.number] = in
	return dir, c.put(dir, name, there, n, keep)
}

// Pin returns the file's address and size. The file keeps this address until it is closed; if it is removed or replaced
// before that, its data stays until then too. A pinned file can grow, but beyond the size that Stat reports as Block
// only while the space after it is free; otherwise growing fails with ErrBusy.
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

// Grow enlarges a pinned file to at least size bytes, and returns its address and size. Both may be others than before:
// the caller does not use the earlier address any more. If others have pinned the file it can grow in place only, as
// by Truncate.
func (f *File) Grow(size int64) (base uint64, now int64, err error) {
	if f.rights&Write == 0 {
		return 0, 0, fmt.Errorf("%s: %w", f.path(), fs.ErrPermission)
	}
	err = f.fs.do(func(c *change) error {
		switch {
		case f.closed.Load() || !f.pinned:
			return fs.ErrClosed
		case size <= int64(f.n.size):
			return nil
		}
		c.loose = f.n
		return c.sized(f.n, size)
	})
	f.fs.mu.RLock()
	defer f.fs.mu.RUnlock()
	return f.n.base * pageSize, int64(f.n.size), err
}

// Identity returns the number of the file's inode, which no other file has while this one exists, and the file's place
// among those created since the file system was opened, 0 if it was there before. Together they distinguish all files
// from opening to closing of the file system, those removed included.
func (f *File) Identity() (inode uint32, made uint64) { return f.n.number, f.n.made }

// Birth returns a small number that the file keeps for ever. It differs from that of the file that had the inode
// before, except by chance (1 in 63) if the file system was closed in between. It is 0 in a file system of the first
// layout.
func (f *File) Birth() uint8 { return f.n.birth }

// Drained reports whether the file is drained now; see FS.Drain.
func (f *File) Drained() bool {
	f.fs.mu.RLock()
	defer f.fs.mu.RUnlock()
	return f.n.drained
}

// Size returns the file's size in bytes.
func (f *File) Size() int64 {
	f.fs.mu.RLock()
	defer f.fs.mu.RUnlock()
	return int64(f.n.size)
}

// path returns the file's current path.
func (f *File) path() string {
	f.fs.mu.RLock()
	defer f.fs.mu.RUnlock()
	return f.n.path()
}

// Close closes a file, and removes it if it has no name.
func (f *File) Close() error {
	if f.closed.Swap(true) {
		return fs.ErrClosed
	}
	return f.fs.do(func(c *change) error {
		// Update the counts first, whether or not the change below succeeds: closing the file in memory always takes
		// effect.
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
			c.trimBlock(f.n)
		}
		return nil
	})
}

// Truncate changes the file's size. Data beyond a smaller size is discarded; the extension to a larger size reads as
// zeros and takes no space.
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

// extend enlarges the file to at least size bytes.
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

// Allocate enlarges the file to at least size bytes and allocates space for all of it, so that later writes cannot find
// the pool full. If there is not enough space, the file stays as it was, except for space allocated within its size.
// Concurrent writes are preserved in either case.
func (f *File) Allocate(size int64) error {
	switch {
	case f.rights&Write == 0:
		return fmt.Errorf("%s: %w", f.path(), fs.ErrPermission)
	case size < 0 || size > MaxSize:
		return fmt.Errorf("%s: %d bytes, the maximum is %d: %w", f.path(), size, int64(MaxSize), ErrTooLarge)
	}
	f.taking(1)
	defer f.taking(-1)
	for {
		if again, err := f.allocate(uint64(size)); err != nil || !again {
			return err
		}
	}
}

// taking counts the Allocates in progress, which use pages beyond the file's end.
func (f *File) taking(n int) {
	f.fs.change.Lock()
	defer f.fs.change.Unlock()
	f.n.taking += n
}

// allocate first allocates the space beyond the file's end, where no data can be, and then moves the end. If space runs
// out, it can therefore release those pages without losing data. It reports again if the file was truncated
// concurrently and lost the pages just allocated.
func (f *File) allocate(size uint64) (again bool, err error) {
	var cuts uint64
	err = f.fs.do(func(c *change) error {
		if f.closed.Load() {
			return fs.ErrClosed
		}
		cuts = f.n.cuts
		return c.ensureBlock(f.n, size)
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
			c.trimBlock(n)
		}
		return nil
	})
	if back != nil {
		return false, fmt.Errorf("%w; then, while undoing it: %w", err, back)
	}
	return false, err
}

// Sync makes all earlier writes to all files durable. It reports writes lost since the file was opened or last synced
// once.
func (f *File) Sync() error {
	if f.closed.Load() {
		return fs.ErrClosed
	}
	return f.user.Sync()
}

// end returns the file's size. The caller holds fs.mu.
func (f *File) end() uint64 { return f.n.size }

// ReadAt implements io.ReaderAt. If the file is truncated concurrently, the read ends at the new size.
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
	// Pages that were requested before a truncation but arrived after it no longer belonged to the file.
	if n = int(min(int64(n), max(f.Size()-off, 0))); n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt implements io.WriterAt. The data is durable after a Sync. If the file must grow, the new size is made durable
// first, and the extension reads as zeros until it is written.
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
	// Pages beyond the end by now are skipped, as if the file had been truncated after the write.
	if _, err := f.each(off, len(b), f.end, ctl.Whole, ctl.Changed,
		func(r ctl.Ref, in, from, n int) { copy(r.Data[in:], b[from:from+n]) }); err != nil {
		return 0, err
	}
	return len(b), nil
}

// each calls do for every page of a range of the file, in the order of arrival, with up to most pages in flight. It
// returns the number of bytes covered, which ends at end(); end is evaluated with fs.mu held before each batch, because
// the size can change. With Whole, pages partly in the range use Writing.
func (f *File) each(off int64, n int, end func() uint64, mode ctl.Mode, change ctl.Change,
	do func(r ctl.Ref, in, from, n int)) (int, error) {
	results := make(chan error, most)
	from := 0
	for over := false; from < n && !over; {
		if f.closed.Load() {
			return from, fs.ErrClosed
		}
		asked := 0
		f.fs.mu.RLock() // addresses are stable while it is held; pages already requested follow a later move
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
