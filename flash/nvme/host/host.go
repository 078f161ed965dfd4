// Package host implements the host's side of an NVMe/TCP queue as a plain state machine over byte slices. Queue is one
// connection, which carries the admin queue or an I/O queue of an association; Command is a command on it.
//
// Submit takes commands, any number at a time. Vectors has what to send: the queue's own headers and the commands' data
// where they are. Input takes what the controller sent, and Sink has the memory into which long data can be received
// directly. A command is done when its answer has arrived and none of its data is still to be sent, so that the caller
// can use the memory again. Package initiator does the I/O.
//
// The queue believes nothing that the controller says: whatever arrives, it writes only into the memory of commands
// that are outstanding, and a command succeeds only with all of its data. It leaves out the meaning of commands,
// asynchronous events, fused operations, and repeating commands on another connection.
package host

import (
	"errors"
	"fmt"
	"math"

	"farflash/flash/nvme/wire"
	"farflash/flash/reply"
	"farflash/internal/fifo"
)

// Command is a command. The caller sets Request, except CID and SGL, and the fields up to Done. Until Done is called,
// it belongs to the queue, with Out and In.
type Command struct {
	wire.Request
	Out, In []byte // data to the controller, or from it; at most one of them
	Done    func() // called once, from any method of the queue
	CQE     wire.CQE
	Err     error // why there was no answer, of which CQE then has nothing

	cid     uint16
	capsule bool   // Out are in the capsule
	last    bool   // all data that will come have come
	spoiled bool   // a data digest was wrong
	ended   bool   // answered, but pieces are still to be sent
	got     uint32 // bytes of In
	due     uint32 // bytes of Out that were asked for
	asks    int    // R2Ts whose data are not sent
	pieces  int    // of output, that are not sent
}

// Status returns the outcome: nil, Err, or the status as a wire.Status.
func (c *Command) Status() error {
	switch {
	case c.Err != nil:
		return c.Err
	case c.CQE.Status != 0:
		return c.CQE.Status
	}
	return nil
}

// piece is a PDU to send.
type piece struct {
	reply.Output[piece]
	command *Command // nil: of none
	answers bool     // the last one for an R2T
}

// longestHead is the length of the longest header with its digest or padding, and the digest of its data.
const longestHead = wire.Longest + wire.DigestSize + wire.DigestSize

// MaxDepth is the maximum number of commands outstanding on a queue. It leaves bits of an identifier for a count, so
// that a second answer to a command is not taken for that to a later one.
const (
	MaxDepth  = 1 << depthBits
	depthBits = 10
)

// Config configures a Queue.
type Config struct {
	Digests wire.Digests
	// Depth is the number of commands outstanding at most; further ones wait.
	Depth int
	// InCapsule is the number of bytes of data that the controller takes in a capsule. Fabrics commands may have
	// wire.AdminCapsule bytes anyway.
	InCapsule int
}

// Queue is one connection to a controller. Calls must be serialized.
type Queue struct {
	cfg   Config
	open  bool // the ICResp has come
	align uint8
	limit uint32 // MAXH2CDATA
	err   error
	term  []byte

	slots   []*Command // by the low bits of the identifier
	count   []uint16   // of uses of the slot, in the high bits
	free    []uint16
	waiting fifo.Ring[*Command] // for a slot, or for the ICResp
	out     reply.Queue[piece]
	spare   []*piece
	entry   [wire.SQESize]byte

	body    wire.Body // of the PDU being received
	into    *Command  // whose data it has; nil: they are discarded
	success bool      // the command ends with it
}

// New returns the state of a connection that was just made. Its output begins with an ICReq.
func New(cfg Config) (*Queue, error) {
	if cfg.Depth < 1 || cfg.Depth > MaxDepth {
		return nil, fmt.Errorf("nvme: %d commands outstanding on a queue; use 1 to %d", cfg.Depth, MaxDepth)
	}
	q := &Queue{cfg: cfg, slots: make([]*Command, cfg.Depth), count: make([]uint16, cfg.Depth),
		free: make([]uint16, cfg.Depth)}
	for i := range q.free {
		q.free[i] = uint16(cfg.Depth - 1 - i)
	}
	p := q.piece(nil)
	p.Head = wire.IC{Digests: cfg.Digests}.Append(p.Head, wire.ICReq)
	q.push(p, nil)
	return q, nil
}

// Err returns the reason why the connection must be closed, or nil.
func (q *Queue) Err() error { return q.err }

// Last is what to send before the connection is closed, after all output; it may be empty.
func (q *Queue) Last() []byte { return q.term }

// Outstanding is the number of commands that are not done.
func (q *Queue) Outstanding() int { return len(q.slots) - len(q.free) + int(q.waiting.N) }

// Submit begins a command. After an error of the queue, it is done at once.
func (q *Queue) Submit(c *Command) {
	c.CQE, c.Err = wire.CQE{}, nil
	c.last, c.spoiled, c.ended, c.got, c.due, c.asks, c.pieces = false, false, false, 0, 0, 0, 0
	switch {
	case q.err != nil:
		c.Err = q.err
		c.Done()
	case len(c.In) > 0 && len(c.Out) > 0 || len(c.In) > math.MaxInt32 || len(c.Out) > math.MaxInt32:
		c.Err = errors.New("nvme: a command has data in one direction, of less than 2 GiB")
		c.Done()
	case !q.open || len(q.free) == 0:
		q.waiting.Push(c)
	default:
		q.begin(c)
	}
}

// begin sends a command; there is a free slot.
func (q *Queue) begin(c *Command) {
	n := len(q.free) - 1
	slot := q.free[n]
	q.free = q.free[:n]
	q.slots[slot] = c
	c.cid = slot | q.count[slot]<<depthBits
	q.count[slot]++
	most := q.cfg.InCapsule
	if c.Opcode == wire.Fabrics {
		most = max(most, wire.AdminCapsule)
	}
	c.capsule = len(c.Out) > 0 && len(c.Out) <= most
	c.CID, c.SGL = c.cid, wire.SGL{Length: uint32(len(c.Out) + len(c.In)), Type: wire.Transport}
	var data []byte
	if c.capsule {
		c.SGL.Type, data = wire.InCapsule, c.Out
	}
	p := q.piece(c)
	p.Head = wire.AppendCommand(p.Head, q.cfg.Digests, c.Append(q.entry[:0]), len(data))
	q.push(p, data)
}

// piece returns an empty PDU of a command, or of none.
func (q *Queue) piece(c *Command) *piece {
	var p *piece
	if n := len(q.spare); n > 0 {
		p, q.spare = q.spare[n-1], q.spare[:n-1]
	} else {
		p = &piece{}
		p.Task, p.Head, p.Vec = p, make([]byte, 0, longestHead), make([][]byte, 0, 3)
	}
	p.Begin()
	p.command, p.answers = c, false
	if c != nil {
		c.pieces++
	}
	return p
}

// push sends a PDU, with data and, if data have one, their digest.
func (q *Queue) push(p *piece, data []byte) {
	head := len(p.Head)
	if len(data) > 0 && q.cfg.Digests.Data {
		d := wire.Digest(0, data)
		p.Head = append(p.Head, byte(d), byte(d>>8), byte(d>>16), byte(d>>24))
	}
	p.Vec = append(p.Vec, p.Head[:head])
	if len(data) > 0 {
		p.Vec = append(p.Vec, data)
	}
	if len(p.Head) > head {
		p.Vec = append(p.Vec, p.Head[head:])
	}
	q.out.Push(&p.Output)
}

// Vectors appends what to send, at most `most` slices. They stay valid until Sent has reported them, or Fail.
func (q *Queue) Vectors(into [][]byte, most int) [][]byte { return q.out.Vectors(into, most) }

// Sent reports that n bytes of Vectors have been sent.
func (q *Queue) Sent(n int) { q.out.Sent(n, q.sent) }

func (q *Queue) sent(p *piece) {
	c := p.command
	p.Clear()
	p.command = nil
	q.spare = append(q.spare, p)
	if c == nil {
		return
	}
	c.pieces--
	if p.answers {
		c.asks--
	}
	if c.ended && c.pieces == 0 {
		q.finish(c)
	}
}

// end notes a command's answer.
func (q *Queue) end(c *Command) {
	c.ended = true
	if c.spoiled {
		c.CQE.Status = wire.TransientError
	}
	if c.pieces == 0 {
		q.finish(c)
	}
}

// finish gives a command back, and begins one that waits.
func (q *Queue) finish(c *Command) {
	slot := c.cid % MaxDepth
	q.slots[slot] = nil
	q.free = append(q.free, slot)
	c.Done()
	if q.waiting.N > 0 && q.open && q.err == nil {
		q.begin(q.waiting.Pop())
	}
}

// Fail ends the queue: every command that is not done is done with the error. Nothing may be using Vectors or Sink any
// more.
func (q *Queue) Fail(err error) {
	if q.err == nil {
		q.err = err
	}
	for q.out.N > 0 {
		p := q.out.Pop().Task
		p.Clear()
	}
	q.body, q.into = wire.Body{}, nil
	for slot, c := range q.slots {
		if c != nil {
			q.slots[slot] = nil
			q.free = append(q.free, uint16(slot))
			q.drop(c)
		}
	}
	for q.waiting.N > 0 {
		q.drop(q.waiting.Pop())
	}
}

// drop ends a command whose answer will not come, or came while its data were on their way.
func (q *Queue) drop(c *Command) {
	if !c.ended {
		c.Err = q.err
	}
	c.Done()
}

// fail ends the connection for an error of the controller.
func (q *Queue) fail(f wire.Fault, header []byte, why string) {
	if q.err == nil {
		q.err = fmt.Errorf("%w: %s", f, why)
		q.term = wire.AppendTerm(q.term[:0], wire.H2CTermReq, f, header)
	}
}
