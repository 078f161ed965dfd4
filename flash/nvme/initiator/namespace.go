package initiator

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"farflash/flash/nvme/host"
	"farflash/flash/nvme/wire"
)

// Error is the status that a controller gave a call. errors.Is finds a wire.Status, with or without its bit for not
// retrying.
type Error struct {
	Call   string // such as "read of 4096 bytes at 0"
	Status wire.Status
}

// Error describes the error.
func (e *Error) Error() string { return e.Call + ": " + e.Status.Error() }

// Is reports whether a target is the same status.
func (e *Error) Is(target error) bool {
	s, ok := target.(wire.Status)
	return ok && s&^wire.NoRetry == e.Status&^wire.NoRetry
}

// ErrUnaligned is wrapped by the errors of calls whose offset or length is not a multiple of the block's size, or is
// negative.
var ErrUnaligned = errors.New("not whole blocks of the namespace")

// call is a command with what its goroutine waits for.
type call struct {
	host.Command
	done chan struct{}
}

// calls are reused, with the commands' memory.
var calls = sync.Pool{New: func() any {
	c := &call{done: make(chan struct{}, 1)}
	c.Done = func() { c.done <- struct{}{} }
	return c
}}

// begin submits a command to a connection.
func begin(on *conn, r wire.Request, out, in []byte) *call {
	c := calls.Get().(*call) //nolint:forcetypeassert // the pool has only these
	c.Request, c.Out, c.In = r, out, in
	on.submit(&c.Command)
	return c
}

// end waits for a command and returns its result.
func (c *call) end() (result uint64, err error) {
	<-c.done
	result, err = c.CQE.Result, c.Status()
	if c.Err != nil {
		err = &lost{c.Err}
	}
	c.Out, c.In, c.Err = nil, nil, nil
	calls.Put(c)
	return result, err
}

// run executes a command that is not of a namespace.
func (a *session) run(on *conn, x *host.Command) (result uint64, err error) {
	result, err = begin(on, x.Request, x.Out, x.In).end()
	return result, a.because(err)
}

// because returns the reason for which the association has ended in place of an error that follows from it.
func (a *session) because(err error) error {
	l, is := err.(*lost)
	if why := a.reason(); is && why != nil {
		return &lost{why}
	}
	if is {
		return l
	}
	return err
}

func (a *session) property(on *conn, k wire.FabricsType, p wire.Property) (uint64, error) {
	v, err := a.run(on, &host.Command{Request: wire.Request{Opcode: wire.Fabrics, Fabrics: k, Words: p.Words()}})
	if err != nil {
		return 0, fmt.Errorf("property %#x: %w", p.Offset, err)
	}
	return v, nil
}

func (a *session) identify(on *conn, cns wire.CNS, nsid uint32) ([]byte, error) {
	x := &host.Command{Request: wire.Request{Opcode: wire.Identify, NSID: nsid, Words: [6]uint32{uint32(cns)}},
		In: make([]byte, wire.IdentifySize)}
	if _, err := a.run(on, x); err != nil {
		return nil, fmt.Errorf("identify %#x: %w", uint8(cns), err)
	}
	return x.In, nil
}

// Namespaces returns the active namespaces, by their identifiers.
func (a *Association) Namespaces() (all []*Namespace, err error) {
	err = a.each(func(s *session) error {
		found, err := s.namespaces()
		all = all[:0]
		for _, x := range found {
			all = append(all, x.of(a, s))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Namespace returns a namespace by its identifier.
func (a *Association) Namespace(id uint32) (n *Namespace, err error) {
	err = a.each(func(s *session) error {
		x, err := s.namespace(id)
		if err == nil {
			n = x.of(a, s)
		}
		return err
	})
	return n, err
}

// described is a namespace as a controller describes it.
type described struct {
	id       uint32
	shift    uint8
	size     int64
	readOnly bool
	uuid     [16]byte
}

func (x described) of(a *Association, s *session) *Namespace {
	n := &Namespace{association: a, described: x}
	n.seen.Store(s)
	return n
}

func (a *session) namespaces() (all []described, err error) {
	for after := uint32(0); ; {
		b, err := a.identify(a.conns[0], wire.CNSActive, after)
		if err != nil {
			return nil, err
		}
		ids := wire.DecodeList(b)
		for _, id := range ids {
			if id <= after {
				return nil, errors.New("nvme: the controller's list of namespaces is not in order")
			}
			after = id
			n, err := a.namespace(id)
			if err != nil {
				return nil, err
			}
			all = append(all, n)
		}
		if len(ids) < wire.IdentifySize/4 {
			return all, nil
		}
	}
}

func (a *session) namespace(id uint32) (n described, err error) {
	b, err := a.identify(a.conns[0], wire.CNSNamespace, id)
	if err != nil {
		return n, fmt.Errorf("nvme: namespace %d: %w", id, err)
	}
	x := wire.DecodeNamespace(b)
	if x.Shift < 9 || x.Shift > 16 || x.Blocks > math.MaxInt64>>x.Shift {
		return n, fmt.Errorf("nvme: namespace %d has %d blocks of 1<<%d bytes", id, x.Blocks, x.Shift)
	}
	n = described{id: id, shift: x.Shift, size: int64(x.Blocks << x.Shift), readOnly: x.ReadOnly}
	if b, err = a.identify(a.conns[0], wire.CNSDescriptors, id); err != nil {
		return n, fmt.Errorf("nvme: namespace %d: %w", id, err)
	}
	_, n.uuid, _ = wire.DecodeDescriptors(b)
	return n, nil
}

// Namespace is a namespace, as it was when the association was asked. It is safe for concurrent use.
type Namespace struct {
	association *Association
	described

	seen atomic.Pointer[session] // on which it was verified
	// The numbers of changes that were started and that have ended, and of those up to which all are durable, not
	// counting durable writes.
	started, ended, clean atomic.Int64
	lost                  atomic.Bool // some of them may be

	mu  sync.Mutex // guards err, and changes of seen
	err error      // why the namespace cannot be used any more
}

// ID is the namespace's identifier, and UUID its name.
func (n *Namespace) ID() uint32     { return n.id }
func (n *Namespace) UUID() [16]byte { return n.uuid }

// Size is the namespace's size and Block that of a block, in bytes.
func (n *Namespace) Size() int64 { return n.size }
func (n *Namespace) Block() int  { return 1 << n.shift }

// ReadOnly reports that writes are refused.
func (n *Namespace) ReadOnly() bool { return n.readOnly }

// ReadAt reads whole blocks. It implements io.ReaderAt, except that a read beyond the end is the controller's error.
func (n *Namespace) ReadAt(p []byte, offset int64) (int, error) {
	return n.transfer(wire.Read, "read", p, offset, 0)
}

// WriteAt writes whole blocks. They are durable after a later Flush.
func (n *Namespace) WriteAt(p []byte, offset int64) (int, error) {
	return n.transfer(wire.Write, "write", p, offset, 0)
}

// WriteDurable writes whole blocks, which are durable when it returns: a write with FUA.
func (n *Namespace) WriteDurable(p []byte, offset int64) (int, error) {
	return n.transfer(wire.Write, "durable write", p, offset, wire.FUA)
}

// Flush makes all writes durable that have returned.
func (n *Namespace) Flush() error {
	ended := n.ended.Load()
	started := n.started.Load() // equal if no change was in progress in between
	if err := n.execute(wire.Request{Opcode: wire.Flush, NSID: n.id}, nil, nil, trial{}); err != nil {
		return n.wrong(err, "flush", -1, 0)
	}
	for ended == started {
		was := n.clean.Load()
		if was >= started || n.clean.CompareAndSwap(was, started) {
			break
		}
	}
	if n.lost.Swap(false) {
		return n.wrong(ErrLost, "flush", -1, 0)
	}
	return nil
}

// WriteZeroes makes a range of whole blocks zeros, and may free its space.
func (n *Namespace) WriteZeroes(offset, length int64) error {
	s := n.association.latest()
	most := int64(1 << 16) // blocks of a command
	if z := s.zeroes; z > 0 {
		most = min(most, int64(z>>n.shift))
	} else {
		most = min(most, int64(s.most>>n.shift))
	}
	return n.each("write of zeros", offset, length, most, func(slba uint64, blocks uint32) (wire.Request, []byte) {
		return wire.Request{Opcode: wire.WriteZeroes, NSID: n.id,
			Words: [6]uint32{uint32(slba), uint32(slba >> 32), blocks - 1 | wire.Deallocate}}, nil
	})
}

// Discard frees the space of a range of whole blocks, as far as the controller can. Their content is then undefined;
// farflash's are zeros where a whole page of 4 KiB was discarded, and unchanged elsewhere.
func (n *Namespace) Discard(offset, length int64) error {
	return n.each("discard", offset, length, 1<<31, func(slba uint64, blocks uint32) (wire.Request, []byte) {
		return wire.Request{Opcode: wire.Dataset, NSID: n.id, Words: [6]uint32{0, wire.DatasetDiscard}},
			wire.Range{Start: slba, Blocks: blocks}.Append(nil)
	})
}

// each executes commands without a caller's data, of at most most blocks each, one after the other.
func (n *Namespace) each(what string, offset, length, most int64, command func(uint64, uint32) (wire.Request,
	[]byte)) error {
	if !n.whole(offset, length) {
		return n.wrong(ErrUnaligned, what, offset, length)
	}
	n.started.Add(1)
	defer n.ended.Add(1)
	for at := offset; at < offset+length; {
		blocks := min(most, (offset+length-at)>>n.shift)
		r, out := command(uint64(at)>>n.shift, uint32(blocks))
		if err := n.execute(r, out, nil, trial{}); err != nil {
			return n.wrong(err, what, at, blocks<<n.shift)
		}
		at += blocks << n.shift
	}
	return nil
}

// whole reports whether a range is one of blocks.
func (n *Namespace) whole(offset, length int64) bool {
	mask := int64(1)<<n.shift - 1
	return offset >= 0 && length >= 0 && (offset|length)&mask == 0 && offset <= math.MaxInt64-length
}

// queue returns the connection for the next command: the queues take turns.
func (a *session) queue() (*conn, error) {
	if len(a.io) == 0 {
		return nil, errors.New("nvme: the association has no I/O queues")
	}
	return a.io[int(a.next.Add(1))%len(a.io)], nil
}

// wrong describes an error of a call.
func (n *Namespace) wrong(err error, what string, at, length int64) error {
	if at >= 0 {
		what = fmt.Sprintf("%s of %d bytes at %d", what, length, at)
	}
	what = fmt.Sprintf("nvme: namespace %d: %s", n.id, what)
	if s, ok := err.(wire.Status); ok {
		return &Error{what, s}
	}
	return fmt.Errorf("%s: %w", what, err)
}

// execute executes a command of the namespace, on one session after the other while connections are lost.
func (n *Namespace) execute(r wire.Request, out, in []byte, t trial) error {
	a := n.association
	for {
		s, err := a.session()
		if err == nil {
			var c *call
			if c, err = n.begin(s, r, out, in); err == nil {
				t.sent = true
				err = n.end(s, c)
			}
		}
		switch {
		case err == nil:
			return nil
		case s != nil && a.again(&t, s, err):
		case t.sent && changes(r.Opcode) && !answered(err):
			return fmt.Errorf("%w: %w", ErrUnknown, err)
		default:
			return err
		}
	}
}

// changes reports whether a command changes data.
func changes(k wire.Opcode) bool {
	return k == wire.Write || k == wire.WriteZeroes || k == wire.Dataset
}

// answered reports whether an error is the controller's answer.
func answered(err error) bool {
	_, is := err.(wire.Status)
	return is
}

// begin submits a command of the namespace on a session.
func (n *Namespace) begin(s *session, r wire.Request, out, in []byte) (*call, error) {
	if err := n.on(s); err != nil {
		return nil, err
	}
	c, err := s.queue()
	if err != nil {
		return nil, err
	}
	return begin(c, r, out, in), nil
}

// end waits for a command.
func (n *Namespace) end(s *session, c *call) error {
	_, err := c.end()
	if err = s.because(err); (err == nil || answered(err)) && !s.answered.Load() {
		s.answered.Store(true)
	}
	return err
}

// transfer reads or writes p, by one command or by several at the same time. It returns the bytes before the first
// command that failed.
func (n *Namespace) transfer(k wire.Opcode, what string, p []byte, offset int64, flags uint32) (done int, err error) {
	if !n.whole(offset, int64(len(p))) {
		return 0, n.wrong(ErrUnaligned, what, offset, int64(len(p)))
	}
	if len(p) == 0 {
		return 0, nil
	}
	if k == wire.Write && flags&wire.FUA == 0 {
		n.started.Add(1)
		defer n.ended.Add(1)
	}
	most := n.association.latest().most
	if len(p) <= most {
		r, out, in := n.command(k, p, offset, flags)
		if err := n.execute(r, out, in, trial{}); err != nil {
			return 0, n.wrong(err, what, offset, int64(len(p)))
		}
		return len(p), nil
	}
	type part struct {
		on   *session
		call *call
		err  error
	}
	parts := make([]part, 0, (len(p)+most-1)/most)
	for at := 0; at < len(p); at += most {
		var x part
		if x.on, x.err = n.association.session(); x.err == nil {
			r, out, in := n.command(k, p[at:min(at+most, len(p))], offset+int64(at), flags)
			x.call, x.err = n.begin(x.on, r, out, in)
		}
		parts = append(parts, x)
	}
	for i, x := range parts {
		at := i * most
		b := p[at:min(at+most, len(p))]
		t := trial{sent: x.call != nil}
		if x.call != nil {
			x.err = n.end(x.on, x.call)
		}
		var l *lost
		if errors.As(x.err, &l) { // the rest of its course is that of a single command
			r, out, in := n.command(k, b, offset+int64(at), flags)
			switch {
			case n.association.again(&t, x.on, x.err):
				x.err = n.execute(r, out, in, t)
			case t.sent && changes(k):
				x.err = fmt.Errorf("%w: %w", ErrUnknown, x.err)
			}
		}
		switch {
		case err != nil:
		case x.err != nil:
			err = n.wrong(x.err, what, offset+int64(done), int64(len(b)))
		default:
			done += len(b)
		}
	}
	return done, err
}

// command returns a command of a transfer.
func (n *Namespace) command(k wire.Opcode, p []byte, offset int64, flags uint32) (r wire.Request, out, in []byte) {
	slba := uint64(offset) >> n.shift
	r = wire.Request{Opcode: k, NSID: n.id,
		Words: [6]uint32{uint32(slba), uint32(slba >> 32), uint32(len(p)>>n.shift-1) | flags}}
	if k == wire.Read {
		return r, nil, p
	}
	return r, p, nil
}
