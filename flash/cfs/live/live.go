// Package live executes the operations of the command line on a pool's file system, whether this process has the pool
// open or another one that serves it.
//
// Files is the file system: Local of this process, or Dial of another one, which has a Server on a Unix socket beside
// the pool's first device (Socket) or elsewhere. Both execute a Request by the same code. Only the owner of the serving
// process and the superuser may connect, and both have all rights in the file system: they could change the devices
// themselves.
//
// It leaves out access by several users, and anything beyond this machine (flash/server).
package live

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"path/filepath"

	"farflash/flash/cfs"
	"farflash/flash/cfs/transfer"
)

// Op is the kind of a request.
type Op string

// The operations. List, Stat and Usage change nothing. Resize sets the size of a file, or creates one. Put copies a
// stream to a file, and Get a file to a stream. Report and Control
// are about the serving process itself.
const (
	List    Op = "list"
	Stat    Op = "stat"
	Usage   Op = "usage"
	Mkdir   Op = "mkdir"
	Remove  Op = "remove"
	Rename  Op = "rename"
	Resize  Op = "resize"
	Put     Op = "put"
	Get     Op = "get"
	Report  Op = "report"
	Control Op = "control"
)

// changes reports whether the operation can change the tree or the size of a file.
func (o Op) changes() bool {
	return o != List && o != Stat && o != Usage && o != Get && o != Report && o != Control
}

// Request is one operation. Each Op uses some of the fields besides Path.
type Request struct {
	Op        Op
	Path      string
	To        string // Rename
	Replace   bool   // Rename, Put: an existing file
	Recursive bool   // Remove
	Perm      uint16 // Mkdir, Put, Resize that creates
	UID, GID  uint32 // Mkdir, Put
	Size      int64  // Resize
	Allocate  bool   // Resize: the whole file
	Create    bool   // Resize: a missing file
	// Control: what the serving process shall do, in JSON
	Order json.RawMessage `json:",omitempty"`
}

// Reply is the result of a request.
type Reply struct {
	Entries []cfs.Status // List; Stat: one
	Usage   cfs.Usage    // Usage
	// Report: what the serving process says of itself, and Control: its answer, in JSON
	Report json.RawMessage `json:",omitempty"`
}

// ErrLocal is the error of a Report or Control where no other process serves the pool.
var ErrLocal = errors.New("no daemon serves the pool")

// super is the user: whoever can reach the devices can change everything in them.
var super = cfs.Cred{}

// errOp is the error for an Op that this program does not know.
var errOp = errors.New("the serving process does not know this operation; it is another version")

// execute executes a request. Put reads in, and Get writes out.
func execute(ctx context.Context, files *cfs.FS, r Request, in io.Reader, out io.Writer) (y Reply, err error) {
	switch r.Op {
	case Report, Control:
		err = ErrLocal // a Server answers it itself
	case List:
		y.Entries, err = files.List(super, r.Path)
	case Stat:
		var x cfs.Status
		x, err = files.Stat(super, r.Path)
		y.Entries = []cfs.Status{x}
	case Usage:
		y.Usage = files.Usage()
	case Mkdir:
		if err = files.Mkdir(super, r.Path, r.Perm); err == nil && (r.UID != 0 || r.GID != 0) {
			err = files.Chown(super, r.Path, r.UID, r.GID)
		}
	case Remove:
		err = files.Remove(super, r.Path)
		if r.Recursive && errors.Is(err, cfs.ErrNotEmpty) {
			err = transfer.RemoveAll(files, super, r.Path)
		}
	case Rename:
		err = files.Rename(super, r.Path, r.To, !r.Replace)
	case Resize:
		err = resize(files, r)
	case Put:
		err = transfer.Put(ctx, files, super, in,
			transfer.Target{Path: r.Path, Perm: r.Perm, UID: r.UID, GID: r.GID, Replace: r.Replace})
	case Get:
		err = transfer.Get(ctx, files, super, r.Path, out)
	default:
		err = errOp
	}
	return y, err
}

// resize sets the size of a file. A new one gets its name only after its size.
func resize(files *cfs.FS, r Request) error {
	file, err := files.Open(super, r.Path, cfs.Read|cfs.Write)
	made := errors.Is(err, fs.ErrNotExist) && r.Create
	if made {
		file, err = files.Temp(super, r.Perm)
	}
	if err != nil {
		return err
	}
	if r.Allocate && r.Size >= file.Size() {
		err = file.Allocate(r.Size)
	} else {
		err = file.Truncate(r.Size)
	}
	if made && err == nil {
		err = file.Name(super, r.Path, true)
	}
	return errors.Join(err, file.Close())
}

// Files is a file system, of this process or of another one. Its methods must not be called concurrently.
type Files struct {
	local *cfs.FS
	conn  *conn
}

// Local returns a file system that this process has open.
func Local(files *cfs.FS) *Files { return &Files{local: files} }

// Do executes a request. Put reads in, and Get writes out; they end when ctx is done, other requests do not. After an
// error of Put or Get, a file system of another process cannot be used any more.
func (f *Files) Do(ctx context.Context, r Request, in io.Reader, out io.Writer) (Reply, error) {
	if f.local != nil {
		return execute(ctx, f.local, r, in, out)
	}
	return f.conn.do(ctx, r, in, out)
}

// Change is Do for a request without a stream, of which only the error matters.
func (f *Files) Change(r Request) error {
	_, err := f.Do(context.Background(), r, nil, nil)
	return err
}

// Stat returns the attributes of a file or directory.
func (f *Files) Stat(path string) (cfs.Status, error) {
	y, err := f.Do(context.Background(), Request{Op: Stat, Path: path}, nil, nil)
	if err != nil {
		return cfs.Status{}, err
	}
	return y.Entries[0], nil
}

// Close ends the use of a file system. One of this process stays open.
func (f *Files) Close() error {
	if f.conn != nil {
		_ = f.conn.Close() // an interrupted request has closed it
	}
	return nil
}

// Socket is the path of the socket of a process that serves a pool whose first device is this one.
func Socket(device string) string {
	if real, err := filepath.EvalSymlinks(device); err == nil {
		device = real
	}
	return device + ".socket"
}
