// Package requests executes the file requests of the control protocol on a file system.
//
// Tree executes a request; Last makes the numbered requests of one client take effect once, although the client sends
// the last one again when its reply was lost. Both are called by the server for each connection, and Tree by a mount of
// a pool that is open in the same process.
//
// It leaves out the wire (flash/verbs/control), who may send requests, and opening files for access (flash/server).
package requests

import (
	"errors"
	"io/fs"
	"time"

	"farflash/flash/cfs"
	"farflash/flash/ctl"
	"farflash/flash/verbs/control"
)

// Tree is a file system with the rights of one user.
type Tree struct {
	Files *cfs.FS
	Who   cfs.Cred
}

// Features implements control.Files.
func (t Tree) Features() control.Features { return control.FilesRead | control.FilesChange }

// mostEntries bounds the entries of a List.
const mostEntries = 256

// Place converts a place of a request.
func Place(h control.Handle, path string) cfs.Place {
	return cfs.Place{At: cfs.Handle{Inode: h.Inode, Birth: h.Birth, Made: h.Made, Opening: h.Opening}, Path: path}
}

// Attributes converts a status.
func Attributes(x cfs.Status) control.Attributes {
	h := x.Handle
	return control.Attributes{Handle: control.Handle{Inode: h.Inode, Birth: h.Birth, Made: h.Made, Opening: h.Opening},
		Kind: control.Kind(x.Kind), Perm: x.Perm, UID: x.UID, GID: x.GID, Size: uint64(x.Size),
		Time: uint32(x.Time.Unix()), Changed: x.Changed}
}

// Reply is the reply to a request with this outcome.
func Reply(o cfs.Outcome, err error) control.FileReply {
	return control.FileReply{Status: Status(err), Tree: o.Tree, Directory: o.Directory, File: Attributes(o.Status)}
}

// Do executes a request other than those that open files. It ignores sequence numbers.
func (t Tree) Do(r control.FileRequest) control.FileReply {
	o, body, err := t.do(r)
	if o.Tree == 0 {
		o.Tree = t.Files.Changes()
	}
	if err != nil {
		o = cfs.Outcome{Tree: o.Tree}
	}
	reply := Reply(o, err)
	reply.Body = body
	return reply
}

func (t Tree) do(r control.FileRequest) (o cfs.Outcome, body []byte, err error) {
	f, who, owner := t.Files, t.Who, cfs.Cred{UID: r.UID, GID: r.GID}
	at, to := Place(r.At, r.Path), Place(r.To, r.Other)
	size := int64(min(r.Size, cfs.MaxSize+1))
	switch r.Op {
	case control.Lookup:
		o, err = f.StatAt(who, at)
	case control.List:
		var all []cfs.Status
		all, o, err = f.ListAt(who, at, r.Other, mostEntries)
		most := min(int(r.Count), control.MaxFileReply-control.FileReplyLength)
		for i, ok := 0, true; i < len(all) && ok; i++ {
			body, ok = control.AppendEntry(body, control.Entry{Name: all[i].Name, Attributes: Attributes(all[i])}, most)
		}
	case control.Usage:
		u := f.Usage()
		body = control.AppendSpace(nil, control.Space{Used: uint64(u.Used) * ctl.Page,
			Capacity: uint64(u.Capacity) * ctl.Page, Files: uint64(u.Files), Directories: uint64(u.Directories)})
	case control.Sync:
		err = f.Sync()
	case control.Create, control.Mkdir:
		if who.UID != 0 && owner != who {
			return o, nil, fs.ErrPermission
		}
		kind := cfs.Regular
		if r.Op == control.Mkdir {
			kind = cfs.Directory
		}
		o, err = f.Make(who, owner, at, kind, r.Perm, size)
	case control.Unlink:
		o, err = f.RemoveAt(who, at, cfs.Regular)
	case control.Rmdir:
		o, err = f.RemoveAt(who, at, cfs.Directory)
	case control.Rename:
		o, err = f.RenameAt(who, at, to, r.Keep)
	case control.Truncate:
		o, err = f.Resize(who, at, size, r.Keep)
	case control.Allocate:
		o, err = t.allocate(at, size)
	case control.Set:
		o, err = f.Set(who, at, changed(r))
	case control.Name:
		o, err = f.NameAt(who, at.At, to, r.Keep)
	default:
		err = control.Malformed
	}
	return o, body, err
}

// changed are the attributes that a Set changes.
func changed(r control.FileRequest) (x cfs.Attributes) {
	if r.Mask&control.SetPerm != 0 {
		x.Perm = &r.Perm
	}
	if r.Mask&control.SetUID != 0 {
		x.UID = &r.UID
	}
	if r.Mask&control.SetGID != 0 {
		x.GID = &r.GID
	}
	if r.Mask&control.SetTime != 0 {
		at := time.Unix(int64(r.Size), 0)
		x.Time = &at
	}
	return x
}

func (t Tree) allocate(at cfs.Place, size int64) (o cfs.Outcome, err error) {
	file, err := t.Files.OpenAt(t.Who, at, cfs.Write)
	if err != nil {
		return o, err
	}
	err = file.Allocate(size)
	o = file.Outcome()
	return o, errors.Join(err, file.Close())
}

// Status is that of an error of cfs.
func Status(err error) control.Status {
	for _, x := range []struct {
		is error
		s  control.Status
	}{{cfs.ErrLong, control.TooLong}, {cfs.ErrName, control.Malformed}, {cfs.ErrStale, control.StaleFile},
		{cfs.ErrNotDir, control.NotDirectory}, {cfs.ErrIsDir, control.IsDirectory}, {cfs.ErrNotEmpty, control.NotEmpty},
		{cfs.ErrInside, control.Inside}, {cfs.ErrTooLarge, control.TooLarge}, {cfs.ErrBusy, control.Busy},
		{ctl.ErrFull, control.NoSpace}, {ctl.ErrReadOnly, control.ReadOnly}, {fs.ErrExist, control.Exists},
		{fs.ErrNotExist, control.NotFound}, {fs.ErrPermission, control.Denied}} {
		if errors.Is(err, x.is) {
			return x.s
		}
	}
	if err == nil {
		return control.OK
	}
	return control.StatusOf(err)
}

// Last is the last numbered request of a client, with its reply.
type Last struct {
	request control.FileRequest
	reply   control.FileReply
}

// Next is the number after one of a client's requests.
func Next(n uint32) uint32 { return max(n+1, 1) }

// Once executes a request by do unless it is the last one again, which has the same reply. A request out of sequence is
// not executed; one without a number always is.
func (l *Last) Once(r control.FileRequest, do func(control.FileRequest) control.FileReply) control.FileReply {
	again := l.request
	again.ID = r.ID // differs on another connection
	switch {
	case r.Sequence == 0:
		return do(r)
	case r == again:
		return l.reply
	case r.Sequence != Next(l.request.Sequence):
		return control.FileReply{Status: control.Sequence}
	}
	reply := do(r)
	l.request, l.reply = r, reply
	return reply
}
