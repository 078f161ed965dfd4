package client

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"farflash/flash/client/resume"
	"farflash/flash/verbs"
	"farflash/flash/verbs/control"
	"farflash/flash/wire"
)

// File is an open export.
type File struct {
	client *Client
	export *export
	ctx    context.Context
}

// export is what the Files of one Open share. Client.mu guards it.
type export struct {
	name     string
	at       control.Handle // of Files.Open; zero: it was opened by its name
	want     verbs.Rights
	reply    control.Reply
	instance string // of the server that sent reply
	err      error  // why it cannot be used any more
	dirty    uint64 // number of the last change that is not flushed; 0: none
	lost     bool   // such changes may be lost, and Flush has not reported it
}

// differs compares an export with what its name opens now. The last part of an identity counts within one instance of
// the server only.
func (e *export) differs(r control.Reply, instance string) error {
	was, is := e.reply.Text, r.Text
	if instance != e.instance {
		was, is = stable(was), stable(is)
	}
	switch {
	case was != is:
		return fmt.Errorf("%s %w: another one has its name", e.name, ErrChanged)
	case r.Length < e.reply.Length:
		return fmt.Errorf("%s %w: it has %d bytes, and had %d", e.name, ErrChanged, r.Length, e.reply.Length)
	case e.reply.Rights&^r.Rights != 0:
		return fmt.Errorf("%s: %w", e.name, fs.ErrPermission)
	}
	return nil
}

func stable(identity string) string {
	return identity[:max(0, strings.LastIndexByte(identity, '/'))]
}

// Within returns the same file, whose operations do not wait for a connection when ctx is done. One that is in progress
// then returns as soon as its buffer is not in use: when the connection has answered it, or is lost.
func (f *File) Within(ctx context.Context) *File { return &File{f.client, f.export, ctx} }

// now returns the current state of the export.
func (f *File) now() control.Reply {
	f.client.mu.Lock()
	defer f.client.mu.Unlock()
	return f.export.reply
}

// Instance identifies the server's opening of the pool at the time when the export was opened last; it is empty if the
// client does not reconnect and has no name. Another instance may have lost what was not flushed.
func (f *File) Instance() string {
	f.client.mu.Lock()
	defer f.client.mu.Unlock()
	return f.export.instance
}

// Size is the length in bytes.
func (f *File) Size() uint64 { return f.now().Length }

// Rights are the granted rights.
func (f *File) Rights() verbs.Rights { return f.now().Rights }

// Region returns the export's STag, without semantics flags, and the address of its first byte. They change with the
// connection.
func (f *File) Region() (stag uint32, address uint64) {
	r := f.now()
	return r.STag, r.Address
}

// Close closes the export. It returns an error if what WriteAt has written did not reach the server.
func (f *File) Close() error {
	_, _, err := f.client.ask(f.ctx, f.export, control.Request{Op: control.Close})
	f.client.mu.Lock()
	defer f.client.mu.Unlock()
	delete(f.client.files, f.export)
	if f.export.err == nil {
		f.export.err = fmt.Errorf("client: %s: %w", f.export.name, fs.ErrClosed)
	}
	return err
}

// Flush returns when all earlier writes to the export, by any client, are on flash. If some may be lost, because the
// server ended in between or could not write them, it returns an error once, which is ErrLost in the first case.
func (f *File) Flush() error {
	c, e := f.client, f.export
	c.mu.Lock()
	last := c.ledger.Last()
	c.mu.Unlock()
	_, _, err := c.ask(f.ctx, e, control.Request{Op: control.Flush})
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && !errors.Is(err, control.Failed) {
		return err // nothing was flushed, and no loss reported
	}
	if e.dirty <= last {
		e.dirty = 0
	}
	if err == nil && e.lost {
		err = fmt.Errorf("client: %s: %w", e.name, ErrLost)
	}
	e.lost = false
	return err
}

// call is one operation.
type call struct {
	kind  resume.Kind
	need  verbs.Rights
	off   int64
	size  int
	flags verbs.Semantics
	dirty bool // it changes the export without waiting for the flash
	keep  bool // it need not be answered if the ledger keeps it
	works [2]verbs.Work
	n     int
}

// refuses returns an error if the export does not allow a call, for which the server would end the connection.
func (e *export) refuses(x *call) error {
	switch size := e.reply.Length; {
	case e.err != nil:
		return e.err
	case x.off < 0 || uint64(x.off) > size || uint64(x.size) > size-uint64(x.off):
		return fmt.Errorf("client: %d bytes at %d exceed the %d bytes of %s", x.size, x.off, size, e.name)
	case e.reply.Rights&x.need != x.need:
		return fmt.Errorf("client: %s: %w", e.name, fs.ErrPermission)
	}
	return nil
}

// do executes a call.
func (f *File) do(x *call) (verbs.Completion, error) {
	c := f.client
	var i int
	select {
	case i = <-c.free:
	case <-c.over:
		return verbs.Completion{}, c.end
	case <-f.ctx.Done():
		return verbs.Completion{}, fmt.Errorf("client: %w", context.Cause(f.ctx))
	}
	y, err := f.in(i, x)
	c.slots[i].works = [2]verbs.Work{}
	c.free <- i
	return y, err
}

// in executes a call in a slot.
func (f *File) in(i int, x *call) (y verbs.Completion, err error) {
	c, s := f.client, &f.client.slots[i]
	if err := f.start(i, x); err != nil || x.size == 0 {
		return y, err
	}
	select {
	case y = <-s.done:
	case <-f.ctx.Done():
		c.leave(i, f.ctx)
		y = <-s.done
	}
	if y.Err != nil {
		return y, fmt.Errorf("client: %w", y.Err)
	}
	return y, nil
}

// start posts a call, unless it has no bytes.
func (f *File) start(i int, x *call) error {
	c, e, s := f.client, f.export, &f.client.slots[i]
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.link == nil {
		if err := c.missing(f.ctx); err != nil {
			return err
		}
	}
	if err := e.refuses(x); err != nil || x.size == 0 {
		return err
	}
	l := c.link
	s.file, s.off, s.flags, s.since, s.leaving = e, x.off, x.flags, 0, nil
	s.works, s.n = x.works, x.n
	number := c.ledger.Begin(i, x.kind)
	keeps := x.keep && c.resumes(l) && c.ledger.Keep(i, kept{e, x.flags}, x.off, s.works[0].Local)
	if x.keep && (keeps || !c.resumes(l)) {
		s.n = 1
	}
	if x.dirty {
		e.dirty = number
	}
	switch err := c.post(l, i); {
	case err == nil:
	case c.resumes(l) && errors.Is(err, verbs.ErrClosed):
		c.ledger.Unsent(i) // and lost decides
	case errors.Is(err, verbs.ErrClosed):
	default:
		c.ledger.End(i)
		return fmt.Errorf("client: %w", err)
	}
	if keeps && c.ledger.Full() {
		c.answer(l)
	}
	return nil
}

// post posts the operation in a slot on a link. c.mu is locked.
func (c *Client) post(l *link, i int) error {
	s := &c.slots[i]
	s.works[0].STag = s.file.reply.STag | uint32(s.flags)
	s.works[0].Offset = s.file.reply.Address + uint64(s.off)
	for k := range s.n {
		s.works[k].ID, s.works[k].Quiet = uint64(i), k < s.n-1
	}
	c.ledger.Posted(s.n)
	return l.conn.Post(s.works[:s.n]...)
}

// leave ends the operation in a slot as soon as its buffer is not in use.
func (c *Client) leave(i int, ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	why := context.Cause(ctx)
	if c.slots[i].works[0].Op != wire.ReadReq {
		why = fmt.Errorf("%w: %w", ErrUnknown, why)
	}
	if c.link == nil && c.sending == nil {
		c.fail(i, why)
		return
	}
	c.slots[i].leaving = why
}

// ReadAt reads all of b.
func (f *File) ReadAt(b []byte, off int64) (int, error) {
	x := call{kind: resume.Reading, need: verbs.RemoteRead, off: off, size: len(b), n: 1,
		works: [2]verbs.Work{{Op: wire.ReadReq, Local: b}}}
	if _, err := f.do(&x); err != nil {
		return 0, err
	}
	return len(b), nil
}

// WriteAt writes b. When it returns, b can be reused, but whether the server has the data is unknown; Flush returns
// when it is on flash. If the connection ends before a later operation is answered, the write may be executed late,
// after writes of other clients that began when this one had returned, and twice with Config.Reconnect but without
// Config.Named.
func (f *File) WriteAt(b []byte, off int64) (int, error) { return f.hand(b, off, verbs.Async) }

// WriteAhead is WriteAt of data that are on flash before any later operation of the client is executed, so that
// references to them are never on flash without them.
func (f *File) WriteAhead(b []byte, off int64) (int, error) { return f.hand(b, off, verbs.Sync) }

// hand hands a write to the network.
func (f *File) hand(b []byte, off int64, flags verbs.Semantics) (int, error) {
	x := call{kind: resume.Writing, need: verbs.RemoteWrite, off: off, size: len(b), flags: flags, dirty: true,
		keep: true, n: 2, works: [2]verbs.Work{{Op: wire.Write, Local: b}, {Op: wire.ReadReq}}}
	if _, err := f.do(&x); err != nil {
		return 0, err
	}
	return len(b), nil
}

// WriteDurable writes b and returns when it is on flash.
func (f *File) WriteDurable(b []byte, off int64) (int, error) {
	x := call{kind: resume.Writing, need: verbs.RemoteWrite, off: off, size: len(b), flags: verbs.Sync, n: 2,
		works: [2]verbs.Work{{Op: wire.Write, Local: b}, {Op: wire.ReadReq}}}
	if _, err := f.do(&x); err != nil {
		return 0, err
	}
	return len(b), nil
}

// CompareSwap replaces the eight bytes at off, little-endian, with value if they equal old, and returns the previous
// value. With durable set, it returns when the new value is on flash. After a loss of the connection it returns
// ErrUnknown unless it was certainly not executed.
func (f *File) CompareSwap(off int64, old, value uint64, durable bool) (uint64, error) {
	return f.atomic(off, wire.CmpSwap,
		wire.Operand{Data: value, Mask: ^uint64(0), Compare: old, CompareMask: ^uint64(0)}, durable)
}

// CompareSwapBits replaces the bits of mask by those of value if the bits of oldMask equal those of old. Otherwise it
// is like CompareSwap.
func (f *File) CompareSwapBits(off int64, old, oldMask, value, mask uint64, durable bool) (uint64, error) {
	return f.atomic(off, wire.CmpSwap,
		wire.Operand{Data: value, Mask: mask, Compare: old, CompareMask: oldMask}, durable)
}

// FetchAdd adds n to the eight bytes at off, little-endian, and returns the previous value. With durable set, it
// returns when the sum is on flash. ErrUnknown is as for CompareSwap.
func (f *File) FetchAdd(off int64, n uint64, durable bool) (uint64, error) {
	return f.atomic(off, wire.FetchAdd, wire.Operand{Data: n}, durable)
}

func (f *File) atomic(off int64, op wire.AtomicOp, o wire.Operand, durable bool) (uint64, error) {
	x := call{kind: resume.Once, need: verbs.RemoteAtomic, off: off, size: 8, flags: verbs.Async, dirty: !durable, n: 1,
		works: [2]verbs.Work{{Op: wire.AtomicReq, Atomic: op, Operand: o}}}
	if durable {
		x.flags = verbs.Sync
	}
	y, err := f.do(&x)
	return y.Original, err
}
