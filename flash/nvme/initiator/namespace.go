package initiator

import (
	"errors"
	"fmt"
	"math"
	"sync"

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
	c.Out, c.In, c.Err = nil, nil, nil
	calls.Put(c)
	return result, err
}

// run executes a command that is not of a namespace.
func (a *Association) run(on *conn, x *host.Command) (result uint64, err error) {
	result, err = begin(on, x.Request, x.Out, x.In).end()
	return result, a.because(err)
}

// because returns the reason for which the association has ended in place of an error that follows from it.
func (a *Association) because(err error) error {
	if err == nil {
		return nil
	}
	var s wire.Status
	if why := a.reason(); why != nil && !errors.As(err, &s) {
		return why
	}
	return err
}

func (a *Association) property(on *conn, k wire.FabricsType, p wire.Property) (uint64, error) {
	v, err := a.run(on, &host.Command{Request: wire.Request{Opcode: wire.Fabrics, Fabrics: k, Words: p.Words()}})
	if err != nil {
		return 0, fmt.Errorf("property %#x: %w", p.Offset, err)
	}
	return v, nil
}

func (a *Association) identify(on *conn, cns wire.CNS, nsid uint32) ([]byte, error) {
	x := &host.Command{Request: wire.Request{Opcode: wire.Identify, NSID: nsid, Words: [6]uint32{uint32(cns)}},
		In: make([]byte, wire.IdentifySize)}
	if _, err := a.run(on, x); err != nil {
		return nil, fmt.Errorf("identify %#x: %w", uint8(cns), err)
	}
	return x.In, nil
}

// Namespaces returns the active namespaces, by their identifiers.
func (a *Association) Namespaces() (all []*Namespace, err error) {
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
			n, err := a.Namespace(id)
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

// Namespace returns a namespace by its identifier.
func (a *Association) Namespace(id uint32) (*Namespace, error) {
	b, err := a.identify(a.conns[0], wire.CNSNamespace, id)
	if err != nil {
		return nil, fmt.Errorf("nvme: namespace %d: %w", id, err)
	}
	x := wire.DecodeNamespace(b)
	if x.Shift < 9 || x.Shift > 16 || x.Blocks > math.MaxInt64>>x.Shift {
		return nil, fmt.Errorf("nvme: namespace %d has %d blocks of 1<<%d bytes", id, x.Blocks, x.Shift)
	}
	n := &Namespace{association: a, id: id, shift: x.Shift, size: int64(x.Blocks << x.Shift), readOnly: x.ReadOnly}
	if b, err = a.identify(a.conns[0], wire.CNSDescriptors, id); err != nil {
		return nil, fmt.Errorf("nvme: namespace %d: %w", id, err)
	}
	_, n.uuid, _ = wire.DecodeDescriptors(b)
	return n, nil
}

// Namespace is a namespace, as it was when the association was asked. It is safe for concurrent use.
type Namespace struct {
	association *Association
	id          uint32
	shift       uint8
	size        int64
	readOnly    bool
	uuid        [16]byte
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
	a := n.association
	c, err := a.queue()
	if err == nil {
		_, err = begin(c, wire.Request{Opcode: wire.Flush, NSID: n.id}, nil, nil).end()
	}
	if err != nil {
		return n.wrong(err, "flush", -1, 0)
	}
	return nil
}

// WriteZeroes makes a range of whole blocks zeros, and may free its space.
func (n *Namespace) WriteZeroes(offset, length int64) error {
	most := int64(1 << 16) // blocks of a command
	if z := n.association.zeroes; z > 0 {
		most = min(most, int64(z>>n.shift))
	} else {
		most = min(most, int64(n.association.most>>n.shift))
	}
	return n.each("write of zeros", offset, length, most, func(c *conn, slba uint64, blocks uint32) *call {
		return begin(c, wire.Request{Opcode: wire.WriteZeroes, NSID: n.id,
			Words: [6]uint32{uint32(slba), uint32(slba >> 32), blocks - 1 | wire.Deallocate}}, nil, nil)
	})
}

// Discard frees the space of a range of whole blocks, as far as the controller can. Their content is then undefined;
// farflash's are zeros where a whole page of 4 KiB was discarded, and unchanged elsewhere.
func (n *Namespace) Discard(offset, length int64) error {
	return n.each("discard", offset, length, 1<<31, func(c *conn, slba uint64, blocks uint32) *call {
		return begin(c, wire.Request{Opcode: wire.Dataset, NSID: n.id, Words: [6]uint32{0, wire.DatasetDiscard}},
			wire.Range{Start: slba, Blocks: blocks}.Append(nil), nil)
	})
}

// each executes commands without data, of at most most blocks each, one after the other.
func (n *Namespace) each(what string, offset, length, most int64, begin func(*conn, uint64, uint32) *call) error {
	if !n.whole(offset, length) {
		return n.wrong(ErrUnaligned, what, offset, length)
	}
	for at := offset; at < offset+length; {
		blocks := min(most, (offset+length-at)>>n.shift)
		c, err := n.association.queue()
		if err == nil {
			_, err = begin(c, uint64(at)>>n.shift, uint32(blocks)).end()
		}
		if err != nil {
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
func (a *Association) queue() (*conn, error) {
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
	return fmt.Errorf("%s: %w", what, n.association.because(err))
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
	most := n.association.most
	if len(p) <= most {
		if c, err := n.start(k, p, offset, flags); err != nil {
			return 0, n.wrong(err, what, offset, int64(len(p)))
		} else if _, err := c.end(); err != nil {
			return 0, n.wrong(err, what, offset, int64(len(p)))
		}
		return len(p), nil
	}
	parts := make([]*call, 0, (len(p)+most-1)/most)
	for at := 0; at < len(p); at += most {
		c, wrong := n.start(k, p[at:min(at+most, len(p))], offset+int64(at), flags)
		if wrong != nil {
			return 0, n.wrong(wrong, what, offset, int64(len(p)))
		}
		parts = append(parts, c)
	}
	for i, c := range parts {
		size := min(most, len(p)-i*most)
		_, wrong := c.end()
		switch {
		case err != nil:
		case wrong != nil:
			err = n.wrong(wrong, what, offset+int64(done), int64(size))
		default:
			done += size
		}
	}
	return done, err
}

// start begins one command of a transfer.
func (n *Namespace) start(k wire.Opcode, p []byte, offset int64, flags uint32) (*call, error) {
	c, err := n.association.queue()
	if err != nil {
		return nil, err
	}
	slba := uint64(offset) >> n.shift
	r := wire.Request{Opcode: k, NSID: n.id,
		Words: [6]uint32{uint32(slba), uint32(slba >> 32), uint32(len(p)>>n.shift-1) | flags}}
	if k == wire.Read {
		return begin(c, r, nil, p), nil
	}
	return begin(c, r, p, nil), nil
}
