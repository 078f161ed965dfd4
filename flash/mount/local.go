package mount

import (
	"context"
	"errors"
	"io"

	"farflash/flash/cfs"
	"farflash/flash/cfs/requests"
	"farflash/flash/verbs/control"
)

// Local is the tree of a file system that this process has open.
func Local(files *cfs.FS) Tree { return local{requests.Tree{Files: files}} }

type local struct{ requests.Tree }

func (t local) Do(_ context.Context, r control.FileRequest) (control.FileReply, error) {
	reply := t.Tree.Do(r)
	if reply.Status != control.OK {
		return reply, reply.Status
	}
	return reply, nil
}

func (t local) Open(_ context.Context, h control.Handle, write bool) (File, control.Attributes, error) {
	rights := cfs.Read
	if write {
		rights |= cfs.Write
	}
	f, err := t.Files.OpenAt(t.Who, requests.Place(h, ""), rights)
	if err != nil {
		return nil, control.Attributes{}, requests.Status(err)
	}
	return near{f, t.Tree}, requests.Attributes(f.Outcome().Status), nil
}

type near struct {
	*cfs.File
	t requests.Tree
}

// status makes an error of the file system the one that a server would return.
func status(err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(requests.Status(err), err)
}

func (f near) ReadAt(_ context.Context, b []byte, off int64) error {
	n, err := f.File.ReadAt(b, off)
	if errors.Is(err, io.EOF) { // truncated meanwhile: as a server reads beyond the end
		clear(b[n:])
		return nil
	}
	return status(err)
}

func (f near) WriteAt(_ context.Context, b []byte, off int64) error {
	_, err := f.File.WriteAt(b, off)
	return status(err)
}

func (f near) Grow(_ context.Context, size uint64) (control.Attributes, error) {
	h := requests.Attributes(f.Outcome().Status).Handle
	o, err := f.t.Files.Resize(f.t.Who, requests.Place(h, ""), int64(min(size, cfs.MaxSize+1)), true)
	return requests.Attributes(o.Status), status(err)
}

func (f near) Flush(context.Context) error { return status(f.Sync()) }
