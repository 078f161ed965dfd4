package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"farflash/flash/cfs/requests"
	"farflash/flash/verbs"
	"farflash/flash/verbs/control"
)

// Files sends file requests: to create, rename, remove, list and open files of the server. All methods are safe for
// concurrent use; requests are sent one after the other.
//
// A request that changes something is executed once, also if the connection is lost before it has been answered: it is
// sent again with its number, and the server has kept its reply. If the server has been started again meanwhile, or has
// given the client up, the request returns ErrUnknown. It is not executed later than the next request.
type Files struct {
	client *Client
	turn   chan struct{} // has an element while a request is in progress; guards the fields below

	link     *link // on which the fields below have been learnt
	features control.Features
	name     string              // the client's; numbers count since it has it
	number   uint32              // of the last request
	pending  control.FileRequest // the last request, if it has not been answered
}

// Errors of servers that execute no file requests.
var (
	ErrOldServer = errors.New("the server is too old for file requests")
	ErrNoFiles   = errors.New("the server executes no file requests; start it with --files")
)

// Files returns the file requests of the client.
func (c *Client) Files() *Files { return c.requests }

// meet learns what a link can do. It reports whether the server still knows the numbers of earlier requests.
func (f *Files) meet(l *link) (known bool, err error) {
	c := f.client
	if f.link == l {
		return true, nil
	}
	r, err := c.exchange(l, nil, control.Request{Op: control.Ask})
	switch {
	case err != nil:
		return false, err
	case r.Status == control.Malformed:
		return false, fmt.Errorf("client: %w", ErrOldServer)
	case r.Status != control.OK:
		return false, fmt.Errorf("client: %w", r.Status)
	case r.Length == 0:
		return false, fmt.Errorf("client: %w", ErrNoFiles)
	}
	f.features = control.Features(r.Length)
	name := ""
	if l.instance != "" {
		if r, err = c.exchange(l, nil, control.Request{Op: control.Whoami}); err == nil && r.Status != control.OK {
			err = fmt.Errorf("client: %w", r.Status)
		}
		if err != nil {
			return false, err
		}
		name = r.Text
	}
	f.link = l
	if name == "" || name != f.name {
		f.name, f.number = name, 0
		return false, nil
	}
	return true, nil
}

// Features asks what the server executes.
func (f *Files) Features(ctx context.Context) (control.Features, error) {
	_, _, err := f.do(ctx, control.FileRequest{Op: control.Usage})
	if err != nil {
		return 0, err
	}
	f.turn <- struct{}{}
	defer func() { <-f.turn }()
	return f.features, nil
}

// Do sends a request other than control.OpenFile, Temp and Extend, and returns its reply. The error is a control.Status
// if the server refuses, which is an error of io/fs where there is one. ctx limits the wait for a connection.
func (f *Files) Do(ctx context.Context, r control.FileRequest) (control.FileReply, error) {
	reply, _, err := f.do(ctx, r)
	return reply, err
}

func (f *Files) do(ctx context.Context, r control.FileRequest) (reply control.FileReply, l *link, err error) {
	if err := r.Fits(); err != nil {
		return reply, nil, fmt.Errorf("client: %w", err)
	}
	select {
	case f.turn <- struct{}{}:
	case <-ctx.Done():
		return reply, nil, fmt.Errorf("client: %w", context.Cause(ctx))
	}
	defer func() { <-f.turn }()
	if reply, l, err = f.send(ctx, r); err != nil {
		return reply, l, err
	}
	if reply.Status != control.OK {
		err = fmt.Errorf("client: %s: %w", r.Path, reply.Status)
	}
	return reply, l, err
}

// send sends a request until it is answered.
func (f *Files) send(ctx context.Context, r control.FileRequest) (reply control.FileReply, l *link, err error) {
	c, sent := f.client, false
	for {
		if l, err = c.current(ctx); err != nil {
			break
		}
		known, err := f.meet(l)
		switch {
		case errors.Is(err, errLink):
			<-l.gone
			continue
		case err != nil:
			return reply, l, f.unknown(sent, err)
		case !known && sent:
			f.pending = control.FileRequest{}
			return reply, l, f.unknown(true, errors.New("the server has been started again, or has given the client up"))
		case !known:
			f.pending = control.FileRequest{}
		case f.pending.Op != 0 && !sent: // of an earlier call, which has returned
			if reply, err = c.fileExchange(l, nil, f.pending); errors.Is(err, errLink) {
				<-l.gone
				continue
			}
			f.pending = control.FileRequest{}
		}
		if r.Op.Changes() && !sent {
			if f.name != "" {
				f.number = requests.Next(f.number)
				r.Sequence = f.number
				f.pending = r
			}
			sent = true
		}
		reply, err = c.fileExchange(l, nil, r)
		if errors.Is(err, errLink) {
			<-l.gone
			continue
		}
		f.pending = control.FileRequest{}
		return reply, l, f.unknown(sent, err)
	}
	return reply, l, f.unknown(sent, err)
}

// unknown is an error after which the outcome of a request that was sent is not known.
func (f *Files) unknown(sent bool, err error) error {
	if sent && err != nil {
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return err
}

// List returns the entries of a directory whose names follow after, in order of names, and its attributes. There are no
// more if it returns none. Names that are there throughout several calls are returned once, whatever else changes.
func (f *Files) List(ctx context.Context, at control.Handle, path, after string) ([]control.Entry,
	control.Attributes, error) {
	reply, err := f.Do(ctx, control.FileRequest{Op: control.List, At: at, Path: path, Other: after,
		Count: control.MaxFileReply - control.FileReplyLength})
	if err != nil {
		return nil, control.Attributes{}, err
	}
	all, err := reply.Entries()
	return all, reply.File, err
}

// Open opens the file at a place. It stays the same file when it is renamed, and it can Grow.
func (f *Files) Open(ctx context.Context, at control.Handle, path string, rights verbs.Rights) (*File,
	control.Attributes, error) {
	return f.open(ctx, control.FileRequest{Op: control.OpenFile, At: at, Path: path, Rights: rights})
}

// Temp opens a new file without a name, which a control.Name request gives it. Until then it is removed when it is
// closed, or the connection is lost.
func (f *Files) Temp(ctx context.Context, perm uint16, uid, gid uint32, rights verbs.Rights) (*File,
	control.Attributes, error) {
	return f.open(ctx, control.FileRequest{Op: control.Temp, Perm: perm, UID: uid, GID: gid, Rights: rights})
}

func (f *Files) open(ctx context.Context, r control.FileRequest) (*File, control.Attributes, error) {
	c := f.client
	for {
		reply, l, err := f.do(ctx, r)
		if err != nil {
			return nil, reply.File, err
		}
		x, err := reply.Opened()
		if err != nil {
			return nil, reply.File, fmt.Errorf("client: %w", err)
		}
		e := &export{name: r.Path, want: r.Rights, reply: x, instance: l.instance, at: reply.File.Handle}
		c.mu.Lock()
		there := c.link == l
		if there {
			c.files[e] = struct{}{}
		}
		c.mu.Unlock()
		if there || !c.resumes(l) {
			return &File{c, e, context.Background()}, reply.File, nil
		}
	}
}

// reopen opens an export of Files again on a new link.
func (e *export) reopen(ask *control.Client) (control.Reply, error) {
	reply, err := ask.File(control.FileRequest{Op: control.OpenFile, At: e.at, Rights: e.want})
	if errors.Is(err, control.StaleFile) || errors.Is(err, control.Malformed) {
		return control.Reply{}, control.NotFound
	}
	if err != nil {
		return control.Reply{}, err
	}
	return reply.Opened()
}

// Grow enlarges a file that Files has opened to at least size bytes, and returns its attributes. No other operation on
// the file is in progress, because the server may have to move it. If another client has it open, it may be too busy:
// control.Busy.
func (f *File) Grow(size uint64) (control.Attributes, error) {
	c, e := f.client, f.export
	for {
		l, err := c.current(f.ctx)
		if err != nil {
			return control.Attributes{}, err
		}
		reply, err := c.fileExchange(l, e, control.FileRequest{Op: control.Extend, Size: size})
		if errors.Is(err, errLink) {
			<-l.gone
			continue
		}
		if err != nil {
			return control.Attributes{}, err
		}
		c.mu.Lock()
		there := c.link == l
		if there && len(reply.Body) > 0 {
			if x, failed := reply.Opened(); failed == nil {
				e.reply = x
			} else {
				err = failed
			}
		}
		c.mu.Unlock()
		switch {
		case !there && c.resumes(l):
			continue
		case err == nil && reply.Status != control.OK:
			err = reply.Status
		}
		if err != nil {
			return reply.File, fmt.Errorf("client: %s: %w", e.name, err)
		}
		return reply.File, nil
	}
}

// fileExchange sends a file request on a link, concerning an export if e is not nil.
func (c *Client) fileExchange(l *link, e *export, r control.FileRequest) (reply control.FileReply, err error) {
	err = c.message(l, e, func(id, stag uint32) []byte {
		r.ID = id
		if e != nil {
			r.Count = stag
		}
		return r.Append(nil)
	}, func(b []byte) error {
		if reply, err = control.ParseFileReply(bytes.Clone(b)); err != nil {
			return err
		}
		if reply.ID != r.ID || reply.Op != r.Op {
			return fmt.Errorf("reply to request %d, want %d", reply.ID, r.ID)
		}
		return nil
	})
	return reply, err
}
