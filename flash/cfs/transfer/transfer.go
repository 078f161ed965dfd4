// Package transfer copies whole files into and out of a pool's file system, as the command line does. A copy is
// complete or does not exist.
//
// Put, Get and Save are the main functions. Runs of zeros are not written, so they take no space on either side.
//
// It leaves out copying within a pool, directories, and the network.
package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"farflash/flash/cfs"
)

// Errors that callers may want to distinguish: the context was cancelled; the copy outside of the pool could not be
// written.
var (
	ErrInterrupted = errors.New("interrupted")
	ErrLocal       = errors.New("writing the local copy")
)

// Target is the file that Put creates.
type Target struct {
	Path     string
	Perm     uint16
	UID, GID uint32
	Replace  bool // replace an existing file of that name
}

const copyChunk = 1 << 20

// Put copies a stream into a file, which appears under its name once all of it is durable.
func Put(ctx context.Context, files *cfs.FS, who cfs.Cred, in io.Reader, to Target) error {
	file, err := files.Temp(cfs.Cred{UID: to.UID, GID: to.GID}, to.Perm)
	if err != nil {
		return err
	}
	if err = copyIn(ctx, file, in); err == nil {
		err = file.Name(who, to.Path, !to.Replace)
	}
	return errors.Join(err, file.Close())
}

func copyIn(ctx context.Context, file *cfs.File, in io.Reader) error {
	type piece struct {
		b   []byte
		err error
	}
	pieces, empty := make(chan piece), make(chan []byte, 2)
	empty <- make([]byte, copyChunk)
	empty <- make([]byte, copyChunk)
	stop := make(chan struct{})
	defer close(stop)
	go func() { // a read from a pipe can block indefinitely and ignores the context
		for {
			b := <-empty
			n, err := io.ReadFull(in, b[:copyChunk])
			select {
			case pieces <- piece{b[:n], err}:
			case <-stop:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	var size, room int64
	for {
		var next piece
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w after %d bytes; no file was created", ErrInterrupted, size)
		case next = <-pieces:
		}
		buf, n, err := next.b, len(next.b), next.err
		if n > 0 {
			// Double the size each time, to avoid moving the file for every piece; truncated to size at the end.
			if size+int64(n) > room {
				room = min(max(2*room, size+int64(n)), cfs.MaxSize)
				if err := file.Truncate(room); err != nil {
					return err
				}
			}
			if !bytes.Equal(buf[:n], zeros[:n]) {
				if _, err := file.WriteAt(buf[:n], size); err != nil {
					return err
				}
			}
			size += int64(n)
		}
		empty <- buf
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return file.Truncate(size)
		case err != nil:
			return err
		}
	}
}

// Get copies a file to a stream.
func Get(ctx context.Context, files *cfs.FS, who cfs.Cred, from string, out io.Writer) error {
	file, err := files.Open(who, from, cfs.Read)
	if err != nil {
		return err
	}
	return errors.Join(drain(ctx, file, out), file.Close())
}

// Save creates a file of the local file system from what get writes, as Get does. It appears under its name once it is
// complete.
func Save(to string, replace bool, get func(out io.Writer) error) error {
	switch there, err := os.Lstat(to); {
	case err != nil:
	case !replace:
		return fmt.Errorf("%s: %w", to, fs.ErrExist)
	case there.Mode()&(fs.ModeType&^fs.ModeSymlink) != 0: // a rename would replace a device
		return fmt.Errorf("%s is not a file; use - for standard output", to)
	}
	out, err := os.CreateTemp(filepath.Dir(to), ".farflash-get-*")
	if err != nil {
		return err
	}
	if err = get(&sparse{file: out}); err == nil {
		err = out.Chmod(0o644)
	}
	if err = errors.Join(err, out.Close()); err == nil {
		err = os.Rename(out.Name(), to)
	}
	if err != nil {
		return errors.Join(err, os.Remove(out.Name()))
	}
	return nil
}

// sparse writes a file, and makes holes of writes of zeros.
type sparse struct {
	file *os.File
	at   int64
}

var zeros [copyChunk]byte

// Write implements io.Writer.
func (s *sparse) Write(b []byte) (int, error) {
	var err error
	if len(b) <= len(zeros) && bytes.Equal(b, zeros[:len(b)]) {
		err = s.file.Truncate(s.at + int64(len(b)))
	} else {
		_, err = s.file.WriteAt(b, s.at)
	}
	if err != nil {
		return 0, err
	}
	s.at += int64(len(b))
	return len(b), nil
}

// drain writes all of a file to out.
func drain(ctx context.Context, file *cfs.File, out io.Writer) error {
	buf := make([]byte, copyChunk)
	for at := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%w before the copy was complete", ErrInterrupted)
		}
		n, err := file.ReadAt(buf, at)
		if n > 0 {
			if _, err := out.Write(buf[:n]); err != nil {
				return fmt.Errorf("%w: %w", ErrLocal, err)
			}
			at += int64(n)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// RemoveAll removes a directory and its contents, one change at a time.
func RemoveAll(files *cfs.FS, who cfs.Cred, at string) error {
	err := files.Remove(who, at)
	if !errors.Is(err, cfs.ErrNotEmpty) {
		return err
	}
	all, err := files.List(who, at)
	for _, x := range all {
		if err == nil {
			err = RemoveAll(files, who, x.Path)
		}
	}
	if err != nil {
		return err
	}
	return files.Remove(who, at)
}
