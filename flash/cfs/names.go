package cfs

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// Status describes a file or directory.
type Status struct {
	Path     string
	Name     string
	Kind     Kind
	Size     int64  // bytes
	Drained  bool   // see Drain
	Perm     uint16 // mode bits: read 4, write 2, search 1, for the owner, its group, and others
	UID, GID uint32
	Time     time.Time // of the last change of the size, or of a directory's names
	Inode    uint32
	Base     uint64 // its first address
	Block    uint64 // bytes to which it can grow without being moved
	Used     int64  // bytes of pages with space allocated; filled in by Stat only
	Handle   Handle
	// Changed increases with every change of the tree that concerns this file or directory, but not with its data. It
	// never repeats, even after the file system has been opened again.
	Changed uint64
}

func (t *tree) stat(n *node) Status {
	i := Status{
		Path: n.path(), Name: n.name, Kind: n.kind, Size: int64(n.size), Perm: n.perm, UID: n.uid, GID: n.gid,
		Time:  time.Unix(int64(n.mtime), 0).UTC(),
		Inode: n.number, Base: n.base * pageSize, Drained: n.drained,
		Handle: t.handle(n), Changed: max(n.changed, uint64(t.opening)<<32),
	}
	if n.order != noOrder {
		i.Block = pageSize << n.order
	}
	return i
}

// Stat returns the status of a path.
func (f *FS) Stat(who Cred, path string) (Status, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	n, err := f.tree.lookup(who, Place{Path: path})
	if err != nil {
		return Status{}, err
	}
	i := f.tree.stat(n)
	for e := range f.inUse(extent{n.base, pages(n.size)}) {
		i.Used += int64(e.count) * pageSize
	}
	return i, nil
}

// List returns the contents of a directory, sorted by name; for a file, the file itself.
func (f *FS) List(who Cred, path string) ([]Status, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	n, err := f.tree.lookup(who, Place{Path: path})
	switch {
	case err != nil:
		return nil, err
	case n.kind != Directory:
		return []Status{f.tree.stat(n)}, nil
	case !n.allows(who, Read):
		return nil, fmt.Errorf("%s: %w", n.path(), fs.ErrPermission)
	}
	all := make([]Status, 0, len(n.children))
	for _, child := range n.children {
		all = append(all, f.tree.stat(child))
	}
	slices.SortFunc(all, func(a, b Status) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// place looks up the directory and name in which a path's last element is, or would be, with the right to change it.
func (c *change) place(who Cred, p Place) (dir *node, name string, there *node, err error) {
	dir, name, there, err = c.tree.place(who, p)
	if err == nil && !dir.allows(who, Write|Search) {
		err = fmt.Errorf("%s: %w", dir.path(), fs.ErrPermission)
	}
	return dir, name, there, err
}

// Mkdir makes a directory.
func (f *FS) Mkdir(who Cred, path string, perm uint16) error {
	return f.do(func(c *change) error {
		_, err := c.named(who, who, Place{Path: path}, Directory, perm)
		return err
	})
}

// named creates a file or directory of an owner under a name not in use.
func (c *change) named(who, owner Cred, p Place, kind Kind, perm uint16) (*node, error) {
	dir, name, there, err := c.place(who, p)
	switch {
	case err != nil:
		return nil, err
	case there != nil:
		return nil, fmt.Errorf("%s: %w", there.path(), fs.ErrExist)
	}
	n, err := c.create(owner, kind, perm)
	if err != nil {
		return nil, err
	}
	return n, c.link(dir, name, n)
}

// Remove removes a file or an empty directory. A file's space is freed immediately, or when the file is closed if it is
// open.
func (f *FS) Remove(who Cred, path string) error {
	_, err := f.RemoveAt(who, Place{Path: path}, None)
	return err
}

// Rename renames a file or directory, possibly into another directory. A file replaces a file and a directory an empty
// directory; with keep an existing target is an error.
func (f *FS) Rename(who Cred, from, to string, keep bool) error {
	_, err := f.RenameAt(who, Place{Path: from}, Place{Path: to}, keep)
	return err
}

// put gives n a name, replacing the node there if there is one.
func (c *change) put(dir *node, name string, there, n *node, keep bool) error {
	switch {
	case there == nil:
		return c.link(dir, name, n)
	case keep:
		return fmt.Errorf("%s: %w", there.path(), fs.ErrExist)
	case n.kind == Directory && there.kind != Directory:
		return fmt.Errorf("%s: %w", there.path(), ErrNotDir)
	case n.kind != Directory && there.kind == Directory:
		return fmt.Errorf("%s: %w", there.path(), ErrIsDir)
	case len(there.children) > 0:
		return fmt.Errorf("%s: %w", there.path(), ErrNotEmpty)
	}
	c.relink(there, n)
	if in := c.inodeOf(n); there.drained && n.kind == Regular {
		in.drained = true // draining an export to replace its file must not reopen it
		c.inodes[n.number] = in
	}
	c.remove(there)
	return nil
}

// Chmod changes the permissions of a file or directory. Only its owner and UID 0 may do so.
func (f *FS) Chmod(who Cred, path string, perm uint16) error {
	return f.own(path, who, func(in *inode) { in.perm = perm & 0o777 },
		func(n *node) bool { return who.UID == 0 || who.UID == n.uid })
}

// Drain marks a regular file as drained, or takes the mark away. The file system only keeps it, for whoever serves the
// file: with the file wherever it is moved, with its name if another file replaces it, and when the file system is
// opened again, unless brief says why not. Only its owner and UID 0 may do so.
func (f *FS) Drain(who Cred, path string, on bool) (brief, err error) {
	if brief = f.pool.ReadOnly(); f.Layout() < drainedVersion {
		brief = fmt.Errorf("layout %d of the file system cannot keep it; stop the daemon, then: farflash flash upgrade",
			f.Layout())
	}
	return brief, f.do(func(c *change) error {
		n, err := c.tree.lookup(who, Place{Path: path})
		switch {
		case err != nil:
			return err
		case n.kind != Regular:
			return fmt.Errorf("%s: %w", n.path(), ErrIsDir)
		case who.UID != 0 && who.UID != n.uid:
			return fmt.Errorf("%s: %w", n.path(), fs.ErrPermission)
		case n.drained == on:
		case brief != nil:
			c.mu.Lock()
			n.drained = on
			c.mu.Unlock()
		default:
			in := n.inode
			in.drained = on
			c.inodes[n.number] = in
		}
		return nil
	})
}

// Drained returns the paths of all drained files, sorted.
func (f *FS) Drained() (all []string) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	for _, n := range f.tree.nodes {
		if n != nil && n.drained && !n.nameless {
			all = append(all, n.path())
		}
	}
	slices.Sort(all)
	return all
}

// Chown changes the owner of a file or directory. Only UID 0 may do so.
func (f *FS) Chown(who Cred, path string, uid, gid uint32) error {
	return f.own(path, who, func(in *inode) { in.uid, in.gid = uid, gid }, func(*node) bool { return who.UID == 0 })
}

func (f *FS) own(path string, who Cred, set func(*inode), may func(*node) bool) error {
	return f.do(func(c *change) error {
		n, err := c.tree.lookup(who, Place{Path: path})
		if err != nil {
			return err
		}
		if !may(n) {
			return fmt.Errorf("%s: %w", n.path(), fs.ErrPermission)
		}
		in := n.inode
		set(&in)
		c.inodes[n.number] = in
		return nil
	})
}
