// Package cfs is ContigFS, the file system of the flash pool: every file lies in consecutive addresses of the pool's
// space, so that an offset becomes an address by an addition, and whoever serves the file needs no file system to do
// it.
//
// The main types are FS (an open file system: Create, Mkdir, Remove, Rename, List, Stat, Check), File (an open file:
// ReadAt, WriteAt, Truncate, Allocate, Pin) and Cred (who asks). Format makes one in an empty pool, Open finds it.
// Package buddy has the policy of where files lie.
//
// Every change of the tree is durable when its method returns, and is wholly there or not at all after a crash, with
// the data that it moves or frees: it is one ctl.Pool.Remap. Data are durable after File.Sync. All methods of FS and
// File may be called side by side: changes are made one after the other, but wait for the device together; reading
// and writing files waits for no change but for the instant in which addresses change.
//
// What it leaves out: hard and symbolic links, times other than that of the last change of size or name, quotas,
// sparse files that shrink (a hole is made by ctl.Pool.Discard). It follows FlashNet (Trivedi et al., ACM TOS 14(4),
// 2018), section 3.3; docs/adr/0020-contigfs.md has what the paper leaves open.
package cfs

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"farflash/flash/ctl"
	"farflash/flash/ctl/heat"
	"farflash/flash/ctl/media"
)

// Errors that callers may want to tell apart, beside fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, fs.ErrClosed, and
// ctl's: ErrFull is ENOSPC.
var (
	ErrNone     = errors.New("there is no file system in this pool")
	ErrName     = errors.New("no name for a file")
	ErrNotDir   = errors.New("not a directory")
	ErrIsDir    = errors.New("is a directory")
	ErrNotEmpty = errors.New("the directory is not empty")
	ErrInside   = errors.New("a directory cannot go into itself")
	ErrTooLarge = errors.New("larger than a file can be")
	ErrBusy     = errors.New("the file is in use at its address, and there is no room behind it")
)

// Config is how a file system is used.
type Config struct {
	Now func() time.Time // for the times of files; nil: they have none
}

// FS is an open file system.
type FS struct {
	pool *ctl.Pool
	uuid media.UUID
	seed uint32
	now  func() time.Time

	change sync.Mutex   // held by who changes something, until it is in force
	mu     sync.RWMutex // of all below: written only by who has change as well
	tree   *tree
	filled [spares]bool // spare pages that are in use, as they should be; with change only
	found  Found
	untidy bool // what a crash left is still there, as the pool was read-only from the beginning
}

// Found says what Open put in order.
type Found struct {
	// files without a name that were removed: unlinked while they were open, or not named before a crash
	Nameless int
	Swept    uint64 // pages behind the ends of files that were trimmed
}

// Format makes an empty file system in a pool that holds nothing.
func Format(pool *ctl.Pool, cfg Config) error {
	f := &FS{pool: pool, uuid: pool.Shape().UUID, now: cfg.Now}
	f.seed = f.uuid.Seed()
	page := make([]byte, ctl.Page)
	if err := pool.ReadAt(page, superPage*ctl.Page); err != nil {
		return fmt.Errorf("cfs: %w", err)
	}
	if err := decodeSuper(page, f.uuid); err == nil {
		return fmt.Errorf("cfs: there is a file system already: %w", fs.ErrExist)
	} else if !errors.Is(err, ErrNone) {
		return fmt.Errorf("cfs: %w", err)
	}
	for e := range f.inUse(extent{1 << dataShift, media.MaxLBA - 1<<dataShift}) {
		return fmt.Errorf("cfs: the pool holds data, from page %d on, that are in no file system: %w", e.first,
			fs.ErrExist)
	}
	// What a formatting that was cut left behind.
	if err := f.remap([]ctl.Step{{From: 0, Count: 1 << dataShift, Drop: true}}); err != nil {
		return fmt.Errorf("cfs: %w", err)
	}
	root := inode{kind: Directory, order: noOrder, perm: 0o755, mtime: f.time()}
	root.encode(page[rootInode*inodeSize:], f.seed, rootInode)
	if err := pool.WriteAt(page, inodePage*ctl.Page, true); err != nil {
		return fmt.Errorf("cfs: %w", err)
	}
	if err := f.refill(); err != nil {
		return err
	}
	if err := pool.Sync(); err != nil {
		return fmt.Errorf("cfs: %w", err)
	}
	encodeSuper(page, f.uuid)
	if err := pool.WriteAt(page, superPage*ctl.Page, true); err != nil {
		return fmt.Errorf("cfs: %w", err)
	}
	return nil
}

// Open opens the file system of a pool, and puts in order what a crash left, unless the pool is read-only. The pool
// stays the caller's.
func Open(pool *ctl.Pool, cfg Config) (*FS, error) {
	f := &FS{pool: pool, uuid: pool.Shape().UUID, now: cfg.Now}
	f.seed = f.uuid.Seed()
	t, violations := f.load()
	if len(violations) > 0 {
		all := []error{errDamaged}
		for _, v := range violations {
			all = append(all, errors.New(v.String()))
		}
		return nil, fmt.Errorf("cfs: %w", errors.Join(all...))
	}
	if t == nil {
		return nil, fmt.Errorf("cfs: %w", ErrNone)
	}
	f.tree = t
	for i := range f.filled {
		f.filled[i] = pool.Holds(uint64(sparePage + i))
	}
	if f.untidy = pool.ReadOnly() != nil; f.untidy {
		return f, nil
	}
	if err := f.tidy(); err != nil {
		return nil, fmt.Errorf("cfs: putting in order what was left: %w", err)
	}
	return f, nil
}

// Found says what Open put in order.
func (f *FS) Found() Found { return f.found }

// Usage is how full the file system is.
type Usage struct {
	Used, Capacity     int64 // pages, of the whole pool
	Files, Directories int
}

// Usage says how full the file system is.
func (f *FS) Usage() Usage {
	var u Usage
	u.Used, u.Capacity = f.pool.Use()
	f.mu.RLock()
	defer f.mu.RUnlock()
	for _, n := range f.tree.nodes {
		switch {
		case n == nil:
		case n.kind == Directory:
			u.Directories++
		default:
			u.Files++
		}
	}
	return u
}

func (f *FS) time() uint32 {
	if f.now == nil {
		return 0
	}
	return uint32(min(max(f.now().Unix(), 0), 1<<32-1))
}

// tidy removes nameless files, trims what is behind the ends of files, and fills the spare pages as far as there is
// room.
func (f *FS) tidy() error {
	for _, n := range f.tree.nodes {
		if n == nil || !n.nameless {
			continue
		}
		f.found.Nameless++
		if err := f.do(func(c *change) error { c.remove(n); return nil }); err != nil {
			return err
		}
	}
	stray := f.strays(f.tree)
	for len(stray) > 0 {
		var steps []ctl.Step
		for len(stray) > 0 && len(steps) < ctl.MaxSteps/2 {
			steps = append(steps, ctl.Step{From: stray[0].first, Count: stray[0].count, Drop: true})
			f.found.Swept += stray[0].count
			stray = stray[1:]
		}
		if err := f.remap(steps); err != nil {
			return err
		}
	}
	if err := f.refill(); err != nil && !errors.Is(err, ctl.ErrFull) {
		return err
	}
	return nil
}

// remap is a Remap that is waited for.
func (f *FS) remap(steps []ctl.Step) error {
	done := make(chan error, 1)
	if err := f.pool.Remap(steps, true, func(err error) { done <- err }); err != nil {
		return err
	}
	return <-done
}

// refill writes the spare pages that are not in use.
func (f *FS) refill() error {
	zeros := make([]byte, ctl.Page)
	for i := range f.filled {
		if f.filled[i] {
			continue
		}
		if err := f.pool.WriteFrom(zeros, uint64(sparePage+i)*ctl.Page, false, heat.Brief); err != nil {
			return fmt.Errorf("cfs: keeping room for changes: %w", err)
		}
		f.filled[i] = true
	}
	return nil
}

// written is a page, or a part of one, that is to be durable before a change is in force.
type written struct {
	page uint64
	from int // in the page; the bytes before are left as they are
	b    []byte
}

// write writes pages and waits until all are durable.
func (f *FS) write(all []written) error {
	results := make(chan error, len(all))
	for _, w := range all {
		mode := ctl.Whole
		if w.from > 0 {
			mode = ctl.Writing
		}
		f.pool.Get(w.page, mode, func(r ctl.Ref, err error) {
			if err != nil {
				results <- err
				return
			}
			copy(r.Data[w.from:], w.b)
			f.pool.Put(r, ctl.Durable, heat.Brief, func(err error) { results <- err })
		})
	}
	var first error
	for range all {
		if err := <-results; err != nil && first == nil {
			first = err
		}
	}
	return first
}
