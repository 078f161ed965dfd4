// Package mount shows the files of a pool in a directory, by FUSE.
//
// Mount attaches a Tree, which is Remote, the files of a server over the network, or Local, those of a pool that this
// process has open. Names, attributes and sizes are asked for anew each time, unless Config.Cache allows otherwise, so
// mounts on several machines see one another's changes of them at once. Data are kept by the kernel's page cache while
// a file is open; close and fsync make them durable, and an open sees all that was closed before (close-to-open).
//
// It leaves out links, extended attributes and devices, which the file system does not have, access times, and locks
// beyond this machine. Linux only.
package mount

import (
	"context"
	"errors"
	"io"
	"time"

	"farflash/flash/verbs/control"
)

// Config configures a mount.
type Config struct {
	Source string // how the mount is called in the list of mounts
	// Cache is how long the kernel keeps names and attributes. More than 0 is for a pool without other clients.
	Cache    time.Duration
	ReadOnly bool
}

// Tree is a file system. Its methods are safe for concurrent use. Errors are control.Status or others, which become
// EIO. A call that waits for a connection ends when ctx does.
type Tree interface {
	// Do executes a request other than those that open files.
	Do(ctx context.Context, r control.FileRequest) (control.FileReply, error)
	// Open opens a file.
	Open(ctx context.Context, h control.Handle, write bool) (File, control.Attributes, error)
}

// File is an open file. It must be enlarged before it is written beyond its end.
type File interface {
	io.Closer
	// ReadAt and WriteAt access bytes within the size that the last Grow, or Open, returned.
	ReadAt(ctx context.Context, b []byte, off int64) error
	WriteAt(ctx context.Context, b []byte, off int64) error
	// Grow enlarges the file to at least size bytes, and returns its attributes. No other method is in progress.
	Grow(ctx context.Context, size uint64) (control.Attributes, error)
	// Flush makes everything written durable. It reports a loss once.
	Flush(ctx context.Context) error
}

var (
	// ErrUnavailable is the error of a machine that cannot mount.
	ErrUnavailable = errors.New("FUSE is not available")
	// errChanged is the error of a File that must be opened again.
	errChanged = errors.New("the file must be opened again")
)
