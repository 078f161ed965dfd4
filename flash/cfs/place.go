package cfs

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// Handle identifies a file or directory whatever its name, as long as it exists, also when the file system is opened
// again. The zero Handle is the root directory. A handle of a file that is gone does not become that of another one,
// except by chance (1 in 63) if both changes happened while the file system was closed and opened again.
type Handle struct {
	Inode   uint32
	Birth   uint8
	Made    uint32 // its place among the files created in Opening, modulo 2^32; 0: it was there before
	Opening uint32 // of the file system, in which the handle was made
}

// Place is a path from a file or directory on: the handle's own with an empty path, and an absolute path with the zero
// Handle.
type Place struct {
	At   Handle
	Path string
}

// Outcome is what a change leaves, at the instant at which it takes effect.
type Outcome struct {
	Status    Status // of the file or directory, if it is not gone
	Directory uint64 // Status.Changed of the directory in which a name has changed
	Tree      uint64 // increases with every change of the tree
}

func (t *tree) handle(n *node) Handle {
	return Handle{Inode: n.number, Birth: n.birth, Made: uint32(n.made), Opening: t.opening}
}

// find returns the node of a handle.
func (t *tree) find(h Handle) (*node, error) {
	if h == (Handle{}) {
		return t.root(), nil
	}
	n := t.get(h.Inode)
	switch {
	case n == nil, n.birth != h.Birth, h.Opening == t.opening && uint32(n.made) != h.Made,
		h.Opening != t.opening && n.made != 0:
		return nil, fmt.Errorf("inode %d: %w", h.Inode, ErrStale)
	}
	return n, nil
}

// leave fills in an outcome when the change takes effect. dir and n may be nil.
func (c *change) leave(to *Outcome, n, dir *node) {
	c.then = append(c.then, func() { *to = c.tree.outcome(n, dir) })
}

func (t *tree) outcome(n, dir *node) Outcome {
	o := Outcome{Tree: t.changes}
	if n != nil {
		o.Status = t.stat(n)
	}
	if dir != nil {
		o.Directory = t.stat(dir).Changed
	}
	return o
}

// StatAt returns the status of a place, without Used, and the counters.
func (f *FS) StatAt(who Cred, p Place) (Outcome, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	n, err := f.tree.lookup(who, p)
	if err != nil {
		return Outcome{Tree: f.tree.changes}, err
	}
	return f.tree.outcome(n, n.parent), nil
}

// ListAt returns the entries of a directory whose names follow after, up to most of them and sorted by name, and the
// status of the directory itself.
func (f *FS) ListAt(who Cred, p Place, after string, most int) ([]Status, Outcome, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	n, err := f.tree.lookup(who, p)
	switch {
	case err != nil:
	case n.kind != Directory:
		err = fmt.Errorf("%s: %w", n.path(), ErrNotDir)
	case !n.allows(who, Read):
		err = fmt.Errorf("%s: %w", n.path(), fs.ErrPermission)
	}
	if err != nil {
		return nil, Outcome{Tree: f.tree.changes}, err
	}
	var names []string
	for name := range n.children {
		if name > after {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, strings.Compare)
	all := make([]Status, 0, min(most, len(names)))
	for _, name := range names[:min(most, len(names))] {
		all = append(all, f.tree.stat(n.children[name]))
	}
	return all, f.tree.outcome(n, n.parent), nil
}

// Changes returns Outcome.Tree.
func (f *FS) Changes() uint64 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.tree.changes
}

// Sync makes all earlier writes to all files durable.
func (f *FS) Sync() error { return f.pool.Sync() }

// Outcome returns the status of an open file, and the counters.
func (f *File) Outcome() Outcome {
	f.fs.mu.RLock()
	defer f.fs.mu.RUnlock()
	return f.fs.tree.outcome(f.n, f.n.parent)
}

// Fits reports whether the file can have size bytes without being moved.
func (f *File) Fits(size int64) bool {
	f.fs.mu.RLock()
	defer f.fs.mu.RUnlock()
	return f.n.order != noOrder && size <= pageSize<<f.n.order
}

// Make creates a file or directory of an owner. A file has size bytes, all zeros and without space allocated.
func (f *FS) Make(who, owner Cred, p Place, kind Kind, perm uint16, size int64) (o Outcome, err error) {
	err = f.do(func(c *change) error {
		n, err := c.named(who, owner, p, kind, perm)
		if err != nil {
			return err
		}
		dir, _, _, err := c.place(who, p)
		if err == nil && kind == Regular {
			err = c.sized(n, size)
		}
		c.leave(&o, n, dir)
		return err
	})
	return o, err
}

// RemoveAt is Remove of a place, which fails unless it is of a kind: ErrIsDir for a directory, and ErrNotDir for a
// file. With None both are removed.
func (f *FS) RemoveAt(who Cred, p Place, kind Kind) (o Outcome, err error) {
	err = f.do(func(c *change) error {
		dir, _, there, err := c.place(who, p)
		switch {
		case err != nil:
			return err
		case there == nil:
			return fmt.Errorf("%s: %w", p.Path, fs.ErrNotExist)
		case kind == Regular && there.kind == Directory:
			return fmt.Errorf("%s: %w", there.path(), ErrIsDir)
		case kind == Directory && there.kind != Directory:
			return fmt.Errorf("%s: %w", there.path(), ErrNotDir)
		case len(there.children) > 0:
			return fmt.Errorf("%s: %w", there.path(), ErrNotEmpty)
		}
		c.unlink(there)
		c.remove(there)
		c.leave(&o, nil, dir)
		return nil
	})
	return o, err
}

// RenameAt is Rename of a place to another.
func (f *FS) RenameAt(who Cred, from, to Place, keep bool) (o Outcome, err error) {
	err = f.do(func(c *change) error {
		_, _, n, err := c.place(who, from)
		if err != nil {
			return err
		}
		if n == nil {
			return fmt.Errorf("%s: %w", from.Path, fs.ErrNotExist)
		}
		dir, name, there, err := c.place(who, to)
		switch {
		case err != nil:
			return err
		case there == n:
			c.leave(&o, n, dir)
			return nil
		case dir.within(n):
			return fmt.Errorf("%s: %w", n.path(), ErrInside)
		}
		if err := c.put(dir, name, there, n, keep); err != nil {
			return err
		}
		c.unlink(n)
		c.leave(&o, n, dir)
		return nil
	})
	return o, err
}

// Resize changes a file's size. With grow it only enlarges it.
func (f *FS) Resize(who Cred, p Place, size int64, grow bool) (o Outcome, err error) {
	err = f.do(func(c *change) error {
		n, err := c.tree.lookup(who, p)
		switch {
		case err != nil:
			return err
		case n.kind != Regular:
			return fmt.Errorf("%s: %w", n.path(), ErrIsDir)
		case !n.allows(who, Write):
			return fmt.Errorf("%s: %w", n.path(), fs.ErrPermission)
		}
		if size != int64(n.size) && (size > int64(n.size) || !grow) {
			err = c.sized(n, size)
		}
		c.leave(&o, n, nil)
		return err
	})
	return o, err
}

// Attributes are what Set changes; nil: not.
type Attributes struct {
	Perm     *uint16
	UID, GID *uint32
	Time     *time.Time // of the last change, in seconds
}

// Set changes attributes. Only UID 0 may change the owner, only it and the owner the permissions, and they and those
// with the right to write the time.
func (f *FS) Set(who Cred, p Place, x Attributes) (o Outcome, err error) {
	err = f.do(func(c *change) error {
		n, err := c.tree.lookup(who, p)
		if err != nil {
			return err
		}
		owner := who.UID == 0 || who.UID == n.uid
		if who.UID != 0 && (x.UID != nil || x.GID != nil) || !owner && (x.Perm != nil || !n.allows(who, Write)) {
			return fmt.Errorf("%s: %w", n.path(), fs.ErrPermission)
		}
		in := n.inode
		if x.Perm != nil {
			in.perm = *x.Perm & 0o777
		}
		if x.UID != nil {
			in.uid = *x.UID
		}
		if x.GID != nil {
			in.gid = *x.GID
		}
		if x.Time != nil {
			in.mtime = seconds(*x.Time)
		}
		if in != n.inode {
			c.inodes[n.number] = in
		}
		c.leave(&o, n, nil)
		return nil
	})
	return o, err
}

// NameAt is File.Name of the nameless file of a handle.
func (f *FS) NameAt(who Cred, h Handle, to Place, keep bool) (o Outcome, err error) {
	if err := f.Sync(); err != nil {
		return o, fmt.Errorf("cfs: %w", err)
	}
	err = f.do(func(c *change) error {
		n, err := c.tree.find(h)
		if err != nil {
			return err
		}
		dir, err := c.name(who, n, to, keep)
		c.leave(&o, n, dir)
		return err
	})
	return o, err
}

// seconds is a time as it is stored.
func seconds(t time.Time) uint32 { return uint32(min(max(t.Unix(), 0), 1<<32-1)) }
