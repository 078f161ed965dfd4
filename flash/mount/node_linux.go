package mount

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"farflash/flash/verbs/control"
)

// rootInode is the number of the root directory.
const rootInode = 1

// tree is what the nodes of a mount share.
type tree struct {
	Tree
	ctx context.Context // ends with the mount
	cfg Config
}

// grace is how long an operation whose program was interrupted goes on. A signal that ends no program should not end a
// call that would succeed; without a connection the program must be able to end.
const grace = time.Second

// within returns a context for an operation of a program.
func (t *tree) within(ctx context.Context) (context.Context, func()) {
	own, cancel := context.WithCancel(t.ctx)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	return own, func() {
		stop()
		cancel()
	}
}

// node is a file or directory that the kernel knows.
type node struct {
	fs.Inode
	t      *tree
	handle atomic.Pointer[control.Handle]
	size   atomic.Uint64 // as far as is known
	time   atomic.Uint32 // the server's

	mu    sync.RWMutex // held for reading while data move, and for writing while file changes
	file  File         // nil unless open
	opens int
	reach uint64 // size of the file that file allows to access

	dirty atomic.Bool // data were written since the last flush
	aged  atomic.Bool // data were written since the time was set
}

func newNode(t *tree) *node {
	n := &node{t: t}
	n.handle.Store(&control.Handle{})
	return n
}

// errno is the error number of an error.
func errno(err error) syscall.Errno {
	var s control.Status
	if err == nil {
		return 0
	}
	if !errors.As(err, &s) {
		if errors.Is(err, context.Canceled) {
			return syscall.EINTR
		}
		return syscall.EIO
	}
	switch s {
	case control.OK:
		return 0
	case control.NotFound:
		return syscall.ENOENT
	case control.Denied:
		return syscall.EACCES
	case control.Exists:
		return syscall.EEXIST
	case control.NotEmpty:
		return syscall.ENOTEMPTY
	case control.Busy, control.Draining:
		return syscall.EBUSY
	case control.NoSpace:
		return syscall.ENOSPC
	case control.TooLong:
		return syscall.ENAMETOOLONG
	case control.TooLarge:
		return syscall.EFBIG
	case control.IsDirectory:
		return syscall.EISDIR
	case control.NotDirectory:
		return syscall.ENOTDIR
	case control.Inside, control.Malformed:
		return syscall.EINVAL
	case control.StaleFile:
		return syscall.ESTALE
	case control.ReadOnly:
		return syscall.EROFS
	case control.TooMany:
		return syscall.ENFILE
	}
	return syscall.EIO
}

// do sends a request about this node, or about a name in it.
func (n *node) do(ctx context.Context, r control.FileRequest) (control.FileReply, syscall.Errno) {
	ctx, end := n.t.within(ctx)
	defer end()
	r.At = *n.handle.Load()
	reply, err := n.t.Do(ctx, r)
	return reply, errno(err)
}

// seen takes over attributes of the node.
func (n *node) seen(x control.Attributes) {
	h := x.Handle
	n.handle.Store(&h)
	n.size.Store(x.Size)
	n.time.Store(x.Time)
}

// fill converts attributes.
func (n *node) fill(out *fuse.Attr, r control.FileReply) {
	x := r.File
	out.Ino, out.Size, out.Blocks, out.Blksize = uint64(x.Handle.Inode), x.Size, (x.Size+511)/512, 4096
	out.Mode, out.Uid, out.Gid = syscall.S_IFREG|uint32(x.Perm), x.UID, x.GID
	out.Mtime, out.Ctime, out.Atime = uint64(x.Time), uint64(x.Time), uint64(x.Time)
	out.Nlink = 1
	switch {
	case x.Kind == control.Directory:
		out.Mode = syscall.S_IFDIR | uint32(x.Perm)
		out.Nlink = 2
		if r.Directory == 0 && x.Handle.Inode != rootInode {
			out.Nlink = 0
		}
	case r.Directory == 0:
		out.Nlink = 0 // it has no name
	}
}

// child returns the node of a reply, and fills in what the kernel learns of it.
func (n *node) child(ctx context.Context, r control.FileReply, out *fuse.EntryOut) (*node, *fs.Inode) {
	mode := uint32(syscall.S_IFREG)
	if r.File.Kind == control.Directory {
		mode = syscall.S_IFDIR
	}
	i := n.NewInode(ctx, newNode(n.t), fs.StableAttr{Mode: mode, Ino: uint64(r.File.Handle.Inode),
		Gen: uint64(r.File.Handle.Birth)})
	c := i.Operations().(*node) // an earlier one, if the kernel knows the file
	c.seen(r.File)
	c.fill(&out.Attr, r)
	return c, i
}

// Lookup implements fs.NodeLookuper.
func (n *node) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	r, no := n.do(ctx, control.FileRequest{Op: control.Lookup, Path: name})
	if no == syscall.EINVAL {
		no = syscall.ENOENT // no file can have such a name
	}
	if no != 0 {
		return nil, no
	}
	_, i := n.child(ctx, r, out)
	return i, 0
}

// Getattr implements fs.NodeGetattrer.
func (n *node) Getattr(ctx context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	r, no := n.do(ctx, control.FileRequest{Op: control.Lookup})
	if no == 0 {
		n.seen(r.File)
		n.fill(&out.Attr, r)
	}
	return no
}

// permissions returns those of a mode, or EPERM if it has bits that files here cannot have.
func permissions(mode uint32) (uint16, syscall.Errno) {
	if mode&(syscall.S_ISUID|syscall.S_ISGID|syscall.S_ISVTX) != 0 {
		return 0, syscall.EPERM
	}
	return uint16(mode & 0o777), 0
}

// Setattr implements fs.NodeSetattrer. There are no access times.
func (n *node) Setattr(ctx context.Context, _ fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if size, ok := in.GetSize(); ok {
		if no := n.resize(ctx, size); no != 0 {
			return no
		}
	}
	set := control.FileRequest{Op: control.Set}
	if mode, ok := in.GetMode(); ok {
		perm, no := permissions(mode)
		if no != 0 {
			return no
		}
		set.Mask, set.Perm = set.Mask|control.SetPerm, perm
	}
	if uid, ok := in.GetUID(); ok {
		set.Mask, set.UID = set.Mask|control.SetUID, uid
	}
	if gid, ok := in.GetGID(); ok {
		set.Mask, set.GID = set.Mask|control.SetGID, gid
	}
	if at, ok := in.GetMTime(); ok {
		set.Mask, set.Size = set.Mask|control.SetTime, uint64(min(max(at.Unix(), 0), 1<<32-1))
		n.aged.Store(false)
	}
	if set.Mask != 0 {
		if _, no := n.do(ctx, set); no != 0 {
			return no
		}
	}
	return n.Getattr(ctx, nil, out)
}

// resize sets the size of a file.
func (n *node) resize(ctx context.Context, size uint64) syscall.Errno {
	n.mu.RLock()
	open := n.file != nil
	n.mu.RUnlock()
	if r, no := n.do(ctx, control.FileRequest{Op: control.Lookup}); no != 0 {
		return no
	} else if open && size > r.File.Size {
		return n.grow(ctx, size) // it may have to be moved
	}
	r, no := n.do(ctx, control.FileRequest{Op: control.Truncate, Size: size})
	if no == 0 {
		n.seen(r.File)
	}
	return no
}

// grow enlarges an open file to at least size bytes. With 0 it makes all of it accessible that there is.
func (n *node) grow(ctx context.Context, size uint64) syscall.Errno {
	ctx, end := n.t.within(ctx)
	defer end()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.file == nil {
		return syscall.EIO // it could not be opened again
	}
	x, err := n.file.Grow(ctx, size)
	if errors.Is(err, errChanged) {
		if err = n.again(ctx); err == nil {
			x, err = n.file.Grow(ctx, size)
		}
	}
	if err == nil {
		n.seen(x)
		n.reach = x.Size
	}
	return errno(err)
}

// again opens the file again, which has become another one or shorter while there was no connection. n.mu is locked.
func (n *node) again(ctx context.Context) error {
	_ = n.file.Close() // it has failed
	n.file = nil
	f, x, err := n.t.Open(ctx, *n.handle.Load(), !n.t.cfg.ReadOnly)
	if err != nil {
		return err
	}
	n.seen(x)
	n.file, n.reach = f, x.Size
	if n.dirty.Load() {
		return errors.New("writes may be lost") // once
	}
	return nil
}

// Open implements fs.NodeOpener.
func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	if flags&syscall.O_TRUNC != 0 {
		if r, no := n.do(ctx, control.FileRequest{Op: control.Truncate}); no != 0 {
			return nil, 0, no
		} else {
			n.seen(r.File)
		}
	}
	return opened{}, 0, n.open(ctx)
}

// opened is a file handle: all handles of a node share its file.
type opened struct{}

func (n *node) open(ctx context.Context) syscall.Errno {
	ctx, end := n.t.within(ctx)
	defer end()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.file == nil {
		f, x, err := n.t.Open(ctx, *n.handle.Load(), !n.t.cfg.ReadOnly)
		if err != nil {
			return errno(err)
		}
		n.seen(x)
		n.file, n.reach = f, x.Size
	}
	n.opens++
	return 0
}

// Create implements fs.NodeCreater.
func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode,
	fs.FileHandle, uint32, syscall.Errno) {
	r, no := n.make(ctx, control.Create, name, mode)
	if no == syscall.EEXIST && flags&syscall.O_EXCL == 0 { // another machine was faster
		r, no = n.do(ctx, control.FileRequest{Op: control.Lookup, Path: name})
		if no == 0 && r.File.Kind == control.Directory {
			no = syscall.EISDIR
		}
	}
	if no != 0 {
		return nil, nil, 0, no
	}
	c, i := n.child(ctx, r, out)
	_, _, no = c.Open(ctx, flags&syscall.O_TRUNC)
	return i, opened{}, 0, no
}

// make creates a file or directory of the caller.
func (n *node) make(ctx context.Context, op control.Op, name string, mode uint32) (control.FileReply, syscall.Errno) {
	perm, no := permissions(mode)
	if no != 0 {
		return control.FileReply{}, no
	}
	r := control.FileRequest{Op: op, Path: name, Perm: perm}
	if who, ok := fuse.FromContext(ctx); ok {
		r.UID, r.GID = who.Uid, who.Gid
	}
	return n.do(ctx, r)
}

// Mkdir implements fs.NodeMkdirer.
func (n *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	r, no := n.make(ctx, control.Mkdir, name, mode)
	if no != 0 {
		return nil, no
	}
	_, i := n.child(ctx, r, out)
	return i, 0
}

// Mknod implements fs.NodeMknoder, for regular files.
func (n *node) Mknod(ctx context.Context, name string, mode, _ uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	if mode&syscall.S_IFMT != syscall.S_IFREG {
		return nil, syscall.EPERM
	}
	r, no := n.make(ctx, control.Create, name, mode)
	if no != 0 {
		return nil, no
	}
	_, i := n.child(ctx, r, out)
	return i, 0
}

// Link implements fs.NodeLinker: there are no links.
func (n *node) Link(context.Context, fs.InodeEmbedder, string, *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return nil, syscall.EPERM
}

// Symlink implements fs.NodeSymlinker: there are no links.
func (n *node) Symlink(context.Context, string, string, *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return nil, syscall.EPERM
}

// Unlink implements fs.NodeUnlinker.
func (n *node) Unlink(ctx context.Context, name string) syscall.Errno {
	_, no := n.do(ctx, control.FileRequest{Op: control.Unlink, Path: name})
	return no
}

// Rmdir implements fs.NodeRmdirer.
func (n *node) Rmdir(ctx context.Context, name string) syscall.Errno {
	_, no := n.do(ctx, control.FileRequest{Op: control.Rmdir, Path: name})
	return no
}

// Rename implements fs.NodeRenamer.
func (n *node) Rename(ctx context.Context, name string, to fs.InodeEmbedder, as string, flags uint32) syscall.Errno {
	if flags&^unix.RENAME_NOREPLACE != 0 {
		return syscall.EINVAL
	}
	_, no := n.do(ctx, control.FileRequest{Op: control.Rename, Path: name, To: *to.(*node).handle.Load(), Other: as,
		Keep: flags != 0})
	return no
}

// Readdir implements fs.NodeReaddirer.
func (n *node) Readdir(ctx context.Context) (fs.DirStream, syscall.Errno) {
	var all []fuse.DirEntry
	for after := ""; ; {
		r, no := n.do(ctx, control.FileRequest{Op: control.List, Other: after,
			Count: control.MaxFileReply - control.FileReplyLength})
		if no != 0 {
			return nil, no
		}
		entries, err := r.Entries()
		if err != nil {
			return nil, syscall.EIO
		}
		if len(entries) == 0 {
			return fs.NewListDirStream(all), 0
		}
		for _, e := range entries {
			mode := uint32(syscall.S_IFREG)
			if e.Kind == control.Directory {
				mode = syscall.S_IFDIR
			}
			all = append(all, fuse.DirEntry{Name: e.Name, Mode: mode, Ino: uint64(e.Handle.Inode)})
			after = e.Name
		}
	}
}

// Statfs implements fs.NodeStatfser.
func (n *node) Statfs(ctx context.Context, out *fuse.StatfsOut) syscall.Errno {
	ctx, end := n.t.within(ctx)
	defer end()
	r, err := n.t.Do(ctx, control.FileRequest{Op: control.Usage})
	if err != nil {
		return errno(err)
	}
	x, err := r.Space()
	if err != nil {
		return syscall.EIO
	}
	out.Bsize, out.Frsize, out.NameLen = 4096, 4096, 255
	out.Blocks = x.Capacity / 4096
	out.Bfree = (x.Capacity - min(x.Used, x.Capacity)) / 4096
	out.Bavail = out.Bfree
	out.Files = x.Files + x.Directories
	return 0
}

// Read implements fs.NodeReader.
func (n *node) Read(ctx context.Context, _ fs.FileHandle, b []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	if uint64(off)+uint64(len(b)) > n.size.Load() { // another machine may have written more
		r, no := n.do(ctx, control.FileRequest{Op: control.Lookup})
		if no != 0 {
			return nil, no
		}
		n.seen(r.File)
	}
	size := n.size.Load()
	if uint64(off) >= size {
		return fuse.ReadResultData(nil), 0
	}
	b = b[:min(uint64(len(b)), size-uint64(off))]
	no := n.move(ctx, uint64(off)+uint64(len(b)), 0, func(ctx context.Context) error {
		return n.file.ReadAt(ctx, b, off)
	})
	return fuse.ReadResultData(b), no
}

// Write implements fs.NodeWriter.
func (n *node) Write(ctx context.Context, _ fs.FileHandle, b []byte, off int64) (uint32, syscall.Errno) {
	end := uint64(off) + uint64(len(b))
	if end > n.size.Load() {
		if no := n.grow(ctx, end); no != 0 {
			return 0, no
		}
	}
	no := n.move(ctx, end, end, func(ctx context.Context) error {
		n.dirty.Store(true)
		n.aged.Store(true)
		return n.file.WriteAt(ctx, b, off)
	})
	if no != 0 {
		return 0, no
	}
	return uint32(len(b)), 0
}

// move moves data up to an end in the file. If the file is not accessible up to there it is enlarged to at least size
// first.
func (n *node) move(ctx context.Context, end, size uint64, do func(context.Context) error) syscall.Errno {
	own, stop := n.t.within(ctx)
	defer stop()
	for try := 0; ; try++ {
		n.mu.RLock()
		err, there := error(nil), n.file != nil && end <= n.reach
		if there {
			err = do(own)
		}
		n.mu.RUnlock()
		switch {
		case there && !errors.Is(err, errChanged), try == tries:
			return errno(err)
		}
		if no := n.grow(ctx, size); no != 0 {
			return no
		}
	}
}

// tries bounds how often a file that others truncate meanwhile is opened again for one read.
const tries = 3

// Fsync implements fs.NodeFsyncer.
func (n *node) Fsync(ctx context.Context, _ fs.FileHandle, _ uint32) syscall.Errno {
	if n.Inode.IsDir() {
		return 0 // changes of names are durable when they are made
	}
	return n.flush(ctx)
}

// Flush implements fs.NodeFlusher, which is called by close.
func (n *node) Flush(ctx context.Context, _ fs.FileHandle) syscall.Errno {
	if n.dirty.Load() {
		if no := n.flush(ctx); no != 0 {
			return no
		}
	}
	if now := time.Now(); n.aged.Swap(false) && uint32(now.Unix()) != n.time.Load() {
		r, no := n.do(ctx, control.FileRequest{Op: control.Set, Mask: control.SetTime, Size: uint64(now.Unix())})
		if no != 0 {
			return no
		}
		n.seen(r.File)
	}
	return 0
}

// flush makes what was written durable.
func (n *node) flush(ctx context.Context) syscall.Errno {
	ctx, end := n.t.within(ctx)
	defer end()
	n.mu.RLock()
	defer n.mu.RUnlock()
	if n.file == nil {
		return syscall.EIO
	}
	n.dirty.Store(false) // an error is reported once
	return errno(n.file.Flush(ctx))
}

// Release implements fs.NodeReleaser.
func (n *node) Release(context.Context, fs.FileHandle) syscall.Errno {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.opens--; n.opens > 0 || n.file == nil {
		return 0
	}
	f := n.file
	n.file, n.reach = nil, 0
	if err := f.Close(); err != nil {
		return syscall.EIO
	}
	return 0
}

// Allocate implements fs.NodeAllocater.
func (n *node) Allocate(ctx context.Context, _ fs.FileHandle, off, size uint64, mode uint32) syscall.Errno {
	if mode != 0 {
		return syscall.ENOTSUP
	}
	if no := n.grow(ctx, off+size); no != 0 {
		return no
	}
	r, no := n.do(ctx, control.FileRequest{Op: control.Allocate, Size: off + size})
	if no == 0 {
		n.seen(r.File)
	}
	return no
}
