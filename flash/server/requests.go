package server

import (
	"io/fs"
	"math"

	"farflash/flash/cfs"
	"farflash/flash/cfs/requests"
	"farflash/flash/verbs"
	"farflash/flash/verbs/control"
)

// Requests lets clients change the files of a file system with the credentials of one user.
func Requests(tree *cfs.FS, who cfs.Cred) *requests.Tree {
	return &requests.Tree{Files: tree, Who: who}
}

// Features implements control.Files.
func (e *exports) Features() control.Features {
	all := e.s.cfg.Requests.Features()
	if e.s.cfg.ReadOnly {
		all &^= control.FilesChange
	}
	return all
}

// Do implements control.Files.
func (e *exports) Do(r control.FileRequest) control.FileReply {
	t := e.s.cfg.Requests
	switch {
	case !r.Op.Changes():
		return t.Do(r)
	case e.s.cfg.ReadOnly:
		return control.FileReply{Status: control.ReadOnly}
	}
	do := func(r control.FileRequest) control.FileReply {
		reply := t.Do(r)
		e.s.Refresh()
		return reply
	}
	if r.Sequence == 0 {
		return do(r)
	}
	last := e.s.seats.last(e.seat)
	if last == nil {
		return control.FileReply{Status: control.Sequence}
	}
	return last.Once(r, do)
}

// OpenFile implements control.Files.
func (e *exports) OpenFile(r control.FileRequest) (control.Export, control.FileReply) {
	t := e.s.cfg.Requests
	if r.Op == control.Temp && e.s.cfg.ReadOnly {
		return control.Export{}, control.FileReply{Status: control.ReadOnly}
	}
	rights := r.Rights
	if e.s.cfg.ReadOnly {
		rights &= verbs.RemoteRead
	}
	name := Name(r.Path)
	if o, err := t.Files.StatAt(t.Who, requests.Place(r.At, r.Path)); err == nil && r.Op != control.Temp {
		name = Name(o.Status.Path)
	}
	x, f, err := e.open(name, func() (File, error) {
		if r.Op == control.OpenFile {
			return files{t.Files, t.Who}.open(requests.Place(r.At, r.Path), rights)
		}
		owner := cfs.Cred{UID: r.UID, GID: r.GID}
		if t.Who.UID != 0 && owner != t.Who {
			return File{}, fs.ErrPermission
		}
		file, err := t.Files.Temp(owner, r.Perm)
		if err != nil {
			return File{}, err
		}
		return pinned(file, rights)
	})
	if err != nil {
		return x, requests.Reply(cfs.Outcome{Tree: t.Files.Changes()}, err)
	}
	return x, requests.Reply(f.file.Outcome(), nil)
}

// grow enlarges a file without accesses in progress through f. Before the file is moved, writes to it are made
// durable, because a loss is reported to users of the address at which it happens.
func (f *File) grow(size uint64, flush func() error) control.FileReply {
	to := int64(min(size, math.MaxInt64))
	var err error
	if !f.file.Fits(to) {
		err = flush()
	}
	if err == nil {
		var now int64
		f.Base, now, err = f.file.Grow(to)
		f.Size = uint64(now)
	}
	return requests.Reply(f.file.Outcome(), err)
}
