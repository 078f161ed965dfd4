// Package cfs is ContigFS, the file system of the flash pool. Every file occupies consecutive addresses of the pool's
// space, so that an offset becomes an address by one addition, and a server of the file does not need the file system
// on its data path.
//
// The main types are FS (an open file system: Create, Mkdir, Remove, Rename, List, Stat, Check), File (an open file:
// ReadAt, WriteAt, Truncate, Allocate, Pin) and Cred (the user). Format creates a file system in an empty pool, and
// Open opens an existing one. Package buddy decides where files lie.
//
// Every change of the tree is durable when its method returns. It is atomic across crashes, including the data that it
// moves or frees, because it is a single ctl.Pool.Remap. File data is durable after File.Sync. All methods of FS and
// File are safe for concurrent use: changes are serialised but share the wait for the device; reading and writing files
// blocks only for the instant in which addresses change.
//
// It leaves out hard and symbolic links, times other than that of the last change of size or name, quotas, and hole
// punching (ctl.Pool.Discard makes a hole). It follows FlashNet (Trivedi et al., ACM TOS 14(4), 2018), section 3.3;
// docs/adr/0020-contigfs.md covers the choices that the paper leaves open.
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

// Errors that callers may want to distinguish, in addition to fs.ErrNotExist, fs.ErrExist, fs.ErrPermission,
// fs.ErrClosed, and ctl's, of which ErrFull corresponds to ENOSPC.
var (
	ErrNoFS     = errors.New("no file system in this pool")
	ErrName     = errors.New("invalid file name")
	ErrLong     = errors.New("too long") // of an ErrName
	ErrStale    = errors.New("the file of a handle is gone")
	ErrNotDir   = errors.New("not a directory")
	ErrIsDir    = errors.New("is a directory")
	ErrNotEmpty = errors.New("directory not empty")
	ErrInside   = errors.New("a directory cannot be moved into itself")
	ErrTooLarge = errors.New("exceeds the maximum file size")
	ErrBusy     = errors.New("the file is pinned at its address and cannot be extended in place")
)

// Config holds a file system's settings.
type Config struct {
	Now func() time.Time // clock for file times; nil: no times
}

// FS is an open file system.
type FS struct {
	pool *ctl.Pool
	uuid media.UUID
	seed uint32
	now  func() time.Time

	change sync.Mutex   // serialises changes, until each takes effect
	mu     sync.RWMutex // guards all fields below; writers also hold change
	tree   *tree
	made   uint64       // files created since Open; guarded by change
	opened uint32       // time of Open
	filled [spares]bool // spare pages that are allocated, as all should be; guarded by change
	found  Found
	untidy bool // leftovers of a crash are still there, because the pool was opened read-only
}

// Found reports what Open cleaned up.
type Found struct {
	// files without a name that were removed: unlinked while open, or not yet named before a crash
	Nameless int
	Swept    uint64 // pages beyond the ends of files that were trimmed
}

// Format creates an empty file system in an empty pool.
func Format(pool *ctl.Pool, cfg Config) error {
	f := &FS{pool: pool, uuid: pool.Shape().UUID, now: cfg.Now}
	f.seed = f.uuid.Seed()
	page := make([]byte, ctl.Page)
	if err := pool.ReadAt(page, superPage*ctl.Page); err != nil {
		return fmt.Errorf("cfs: %w", err)
	}
	if _, _, err := decodeSuper(page, f.uuid); err == nil {
		return fmt.Errorf("cfs: the pool already has a file system: %w", fs.ErrExist)
	} else if !errors.Is(err, ErrNoFS) {
		return fmt.Errorf("cfs: %w", err)
	}
	for e := range f.inUse(extent{1 << dataShift, media.MaxLBA - 1<<dataShift}) {
		return fmt.Errorf("cfs: the pool holds data outside a file system, from page %d on: %w", e.first,
			fs.ErrExist)
	}
	// Remove the leftovers of an interrupted Format.
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
	encodeSuper(page, f.uuid, version, nil)
	if err := pool.WriteAt(page, superPage*ctl.Page, true); err != nil {
		return fmt.Errorf("cfs: %w", err)
	}
	return nil
}

// Open opens the file system of a pool, and cleans up after a crash unless the pool is read-only. The caller keeps
// ownership of the pool.
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
		return nil, fmt.Errorf("cfs: %w", ErrNoFS)
	}
	if err := f.begin(t); err != nil {
		return nil, err
	}
	return f, nil
}

// begin takes a tree into use, and cleans up.
func (f *FS) begin(t *tree) error {
	f.tree, f.opened = t, f.time()
	t.opening = uint32(f.pool.Found().Session)
	t.changes = uint64(t.opening) << 32
	for i := range f.filled {
		f.filled[i] = f.pool.Holds(uint64(sparePage + i))
	}
	if f.untidy = f.pool.ReadOnly() != nil; f.untidy {
		return nil
	}
	if err := f.tidy(); err != nil {
		return fmt.Errorf("cfs: cleaning up: %w", err)
	}
	return nil
}

// Found reports what Open cleaned up.
func (f *FS) Found() Found { return f.found }

// Usage is the space in use and the number of files.
type Usage struct {
	Used, Capacity     int64 // pages, of the whole pool
	Files, Directories int
}

// Version is the newest layout of a file system. Older ones work as they always did.
const Version = version

// Layout returns the layout of the file system, up to Version.
func (f *FS) Layout() int {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return int(f.tree.layout)
}

// Usage returns the space in use and the number of files.
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
	return seconds(f.now())
}

// tidy removes nameless files, trims pages beyond the ends of files, and allocates the spare pages as far as space
// permits.
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

// remap is Remap and waits until it is durable.
func (f *FS) remap(steps []ctl.Step) error {
	done := make(chan error, 1)
	if err := f.pool.Remap(steps, true, func(err error) { done <- err }); err != nil {
		return err
	}
	return <-done
}

// refill allocates the missing spare pages.
func (f *FS) refill() error {
	zeros := make([]byte, ctl.Page)
	for i := range f.filled {
		if f.filled[i] {
			continue
		}
		if err := f.pool.WriteFrom(zeros, uint64(sparePage+i)*ctl.Page, false, heat.Brief); err != nil {
			return fmt.Errorf("cfs: allocating spare pages: %w", err)
		}
		f.filled[i] = true
	}
	return nil
}

// written is a page, or the rest of one, that must be durable before a change takes effect.
type written struct {
	page uint64
	from int // offset in the page; earlier bytes are preserved
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
