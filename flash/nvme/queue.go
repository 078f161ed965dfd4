package nvme

import (
	"errors"
	"sync/atomic"

	"farflash/flash/nbd"
	"farflash/flash/nvme/chap"
	"farflash/flash/nvme/wire"
	"farflash/flash/reply"
	"farflash/internal/fifo"
)

// command is a host's command that has not been answered completely.
type command struct {
	sqe     wire.SQE
	entry   [wire.SQESize]byte
	slot    uint16 // also the tag of its R2T
	status  wire.Status
	result  uint64
	space   *space
	offset  uint64 // bytes
	length  uint32 // bytes to transfer or process
	next    uint32 // offset up to which chunks of data were begun
	tasks   int    // not finished
	kind    nbd.Kind
	queued  bool // waits for memory
	needs   int  // how much
	granted int  // memory that it waited for and has not used
	live    bool
	gather  bool // the data are parameters of the command, in one buffer

	// The request for data: an R2T, or the capsule itself.
	asked   bool
	from    uint32 // offset of its data in the command's
	filling *Task  // receives the data
	filled  int
	spoiled bool // a data digest was wrong

	ranges int // of Dataset Management, or namespaces of a Flush, that are done
	within uint64
	data   *reply.Buffer // parameters
	size   int           // of data

	stalled, resumed int64           // for its first task after a wait for memory
	answered         bool            // by respond
	sent             func(sent bool) // of the task on which the answer rests
}

// states of a connection.
const (
	opening = iota // an ICReq is expected
	joining        // only Connect is allowed
	proving        // only authentication is allowed
	serving
)

// Queue is one connection of a host. Calls must be serialized.
type Queue struct {
	target   *Target
	port     uint16
	peer     Peer
	done     func(*Task)
	state    int
	digests  wire.Digests
	align    uint8
	err      error
	term     []byte // to send before the connection is closed
	killed   atomic.Pointer[error]
	late     atomic.Bool // its Connect has waited too long
	patience int64       // when that is; guarded by the target's mu
	counters counters

	controller *controller
	id         uint16
	size       int  // entries
	unbounded  bool // without SQ flow control
	head       int
	auth       *chap.Controller // while the host proves who it is
	computing  bool             // a task has auth
	why        error            // the reason for leaving

	slots   []*command
	free    []uint16
	idents  [1 << 16 / 64]uint64 // identifiers of outstanding commands, as bits
	active  int
	leaving bool // the host has sent a Disconnect
	parked  int  // of these, Asynchronous Event Requests
	memory  int
	waiting fifo.Ring[*command] // for memory
	held    *command            // a Connect that waits for the host's earlier association

	tasks  []*Task // free
	starts []*Task
	batch  atomic.Pointer[[]*nbd.Task] // memory for Start
	out    reply.Queue[Task]

	body wire.Body // of the PDU being received
	into *command  // whose data it has; nil: they are discarded
}

// NewQueue returns the state of a connection that was accepted on a port. done is called as every task's Done; it must
// pass the task to the driver, which calls Finish.
func (t *Target) NewQueue(port uint16, peer Peer, done func(*Task)) *Queue {
	q := &Queue{target: t, port: port, peer: peer, done: done}
	q.resize(1)
	return q
}

// resize sets the number of entries. No command may be outstanding, except one in slot 0.
func (q *Queue) resize(n int) {
	q.size = n
	for len(q.slots) < n {
		q.slots = append(q.slots, &command{slot: uint16(len(q.slots))})
		q.free = append(q.free, uint16(len(q.slots)-1))
	}
}

// Err returns the reason why the connection must be closed, or nil.
func (q *Queue) Err() error {
	if q.err == nil && q.Over() {
		return q.why
	}
	return q.err
}

// Known reports that the host is part of an association.
func (q *Queue) Known() bool { return q.state == serving }

// Administers reports that the connection carries the admin queue of an association.
func (q *Queue) Administers() bool { return q.controller != nil && q.id == 0 }

// Ready reports that more input is of use: the connection has not failed.
func (q *Queue) Ready() bool { return q.err == nil }

// Drained reports that no command is outstanding, except Asynchronous Event Requests, or partially received.
func (q *Queue) Drained() bool { return q.active == q.parked && q.Pending() == 0 }

// Over reports that the host has disconnected and everything is answered.
func (q *Queue) Over() bool { return q.leaving && q.active == 0 && q.out.N == 0 }

// Pending is the number of bytes of the current PDU still to be received after its header; 0 between PDUs.
func (q *Queue) Pending() int { return q.body.Pending() }

// ErrEnded is the reason why an I/O queue ends with the admin queue of its association.
var ErrEnded = errors.New("nvme: the connection of the admin queue has ended")

// kill makes the connection end, from any goroutine.
func (q *Queue) kill(why error) {
	q.killed.CompareAndSwap(nil, &why)
	q.peer.Wake()
}

// Turn does what other queues of the association, or the target, have caused: the driver calls it after Wake.
func (q *Queue) Turn() {
	if q.err != nil {
		return
	}
	if why := q.killed.Load(); why != nil {
		q.err = *why
		return
	}
	if c := q.held; c != nil {
		q.held = nil
		q.connect(c)
	}
	if q.controller != nil && q.id == 0 {
		q.report()
	}
}

// fail ends the connection for an error of its host.
func (q *Queue) fail(f wire.Fault, header []byte) {
	if q.err != nil {
		return
	}
	q.err = f
	if q.state != serving || q.target.cfg.Terminate {
		q.term = wire.AppendTerm(q.term[:0], wire.C2HTermReq, f, header)
	}
}

// Last is what to send before the connection is closed, after all output; it may be empty.
func (q *Queue) Last() []byte { return q.term }

// Input consumes received bytes and returns the number consumed. The caller passes the remainder again with more bytes.
// A header is consumed only as a whole, so the caller's buffer must hold at least wire.Longest+wire.DigestSize bytes.
func (q *Queue) Input(b []byte) int {
	n := 0
	for q.err == nil {
		k := q.parse(b[n:])
		if k == 0 {
			break
		}
		n += k
	}
	return n
}

func (q *Queue) parse(b []byte) int {
	switch {
	case q.body.Pending() > 0:
		n, ended, sound := q.body.Take(b)
		if ended {
			q.delivered(sound)
		}
		return n
	case len(b) < wire.CommonSize:
		return 0
	}
	if q.state == opening {
		if b[0] == byte(wire.ICReq) && len(b) < wire.ICSize {
			return 0
		}
		q.initialize(b)
		return min(len(b), wire.ICSize)
	}
	most := max(wire.AdminCapsule, q.target.cfg.Limits.InCapsule, Window)
	h, n, bad, f := q.body.Begin(b, true, q.digests, most)
	if bad != nil {
		q.fail(f, bad)
	}
	if n == 0 {
		return 0
	}
	q.into = nil
	switch data := q.body.Data(); h.Type {
	case wire.CapsuleCmd:
		q.capsule(b[wire.CommonSize:][:wire.SQESize], data)
	case wire.H2CData:
		q.data(h, b[:wire.DataSize], data)
	case wire.H2CTermReq:
		q.err = errors.Join(errors.New("nvme: the host ends the connection"), wire.Term(b))
	default: // another ICReq
		q.fail(wire.Fault{Status: wire.FaultSequence}, b[:h.HLen])
	}
	return n
}

// initialize answers an ICReq.
func (q *Queue) initialize(b []byte) {
	if b[0] != byte(wire.ICReq) {
		q.fail(wire.Fault{Status: wire.FaultSequence}, b[:wire.CommonSize])
		return
	}
	x, f, ok := wire.DecodeIC(b, wire.ICReq)
	if !ok {
		q.fail(f, b[:wire.ICSize])
		return
	}
	q.digests, q.align, q.state = x.Digests, x.Align, joining
	t := q.take(nil)
	t.answer.Head = wire.IC{Digests: x.Digests, Limit: Window}.Append(t.answer.Head, wire.ICResp)
	t.answer.Vec = append(t.answer.Vec, t.answer.Head)
	q.out.Push(&t.answer)
}

// Sink returns memory into which the next data bytes can be read directly, or nil. The driver then calls Sunk with the
// number of bytes read. This saves a copy of long data.
func (q *Queue) Sink() []byte {
	if q.err != nil {
		return nil
	}
	return q.body.Sink()
}

// Sunk reports how many bytes were read into Sink.
func (q *Queue) Sunk(n int) {
	if q.body.Sunk(n) {
		q.delivered(true)
	}
}

// receive makes the data of the current PDU the next ones of a command.
func (q *Queue) receive(c *command) {
	q.into = c
	if c.filling != nil {
		q.body.Into(c.filling.Payload[c.filled:])
	} else {
		q.body.Into(c.data.B[c.filled:c.size])
	}
	c.filled += q.body.Data()
}

// capsule begins a command. Its data, if it has any in the capsule, follow.
func (q *Queue) capsule(entry []byte, data int) {
	s := wire.SQE(entry)
	if len(q.free) == 0 {
		q.err = errors.New("nvme: the host has more commands outstanding than the queue has entries")
		return
	}
	slot := q.free[len(q.free)-1]
	q.free = q.free[:len(q.free)-1]
	c := q.slots[slot]
	*c = command{slot: slot, live: true}
	copy(c.entry[:], entry)
	c.sqe = c.entry[:]
	q.active++
	if q.head++; q.head >= q.size {
		q.head = 0
	}
	if q.controller != nil {
		q.controller.heard.Store(true)
	}
	word, bit := &q.idents[s.CID()/64], uint64(1)<<(s.CID()%64)
	if *word&bit != 0 {
		// Its answer would be taken for the other command's.
		q.err = errors.New("nvme: the host uses the identifier of an outstanding command")
		return
	}
	*word |= bit
	n, in, st := q.describe(c, data)
	if st == 0 {
		st = q.admit(c, n)
	}
	if st == 0 && n > 0 && s.Direction() == wire.ToController {
		if in {
			q.expect(c, n)
			q.receive(c)
			return
		}
		if data == 0 {
			q.proceed(c)
			return
		}
		st = wire.InvalidField | wire.NoRetry // data in the capsule that the SGL does not describe
	}
	c.status = st
	if data > 0 { // to discard first
		if st == 0 {
			c.status = wire.InvalidField | wire.NoRetry
		}
	}
	if c.status != 0 {
		q.respond(c)
		return
	}
	q.proceed(c)
}

// describe checks the description of a command's data: their length, and whether they are in the capsule.
func (q *Queue) describe(c *command, data int) (n uint32, in bool, st wire.Status) {
	s := c.sqe
	x := s.SGL()
	if s.Fused() != 0 || !s.Pointers() {
		return 0, false, wire.InvalidField | wire.NoRetry
	}
	if s.Direction() == wire.NoData {
		return 0, false, 0
	}
	most := wire.AdminCapsule
	if q.id != 0 && s.Opcode() != wire.Fabrics {
		most = q.target.cfg.Limits.InCapsule
	}
	switch {
	case x.Length == 0:
		return 0, false, 0
	case x.Type == wire.Transport:
		return x.Length, false, 0
	case x.Type != wire.InCapsule || s.Direction() == wire.ToHost:
		return 0, false, wire.WrongSGLType | wire.NoRetry
	case x.Address != 0:
		return 0, false, wire.WrongSGLOffset | wire.NoRetry
	case uint64(x.Length) != uint64(data) || data > most:
		return 0, false, wire.WrongSGLLength | wire.NoRetry
	}
	return x.Length, true, 0
}

// expect prepares for n bytes of the command's data, from c.next on.
func (q *Queue) expect(c *command, n uint32) {
	c.asked, c.from, c.filled, c.spoiled = true, c.next, 0, false
	if c.gather {
		c.data, c.size = reply.Get(int(n)), int(n)
	} else {
		t := q.task(c, c.kind, n)
		t.Payload = t.answer.Memory(int(n))
		t.Durable = c.kind == nbd.Write && c.sqe.Word(12)&wire.FUA != 0
		c.filling = t
	}
	c.next += n
}

// request asks the host for n bytes of a command's data.
func (q *Queue) request(c *command, n uint32) {
	q.expect(c, n)
	t := q.take(nil)
	t.answer.Head = wire.AppendR2T(t.answer.Head, q.digests,
		wire.Transfer{Command: c.sqe.CID(), Tag: c.slot, Offset: c.from, Length: n})
	t.answer.Vec = append(t.answer.Vec, t.answer.Head)
	q.out.Push(&t.answer)
}

// data begins the data of an R2T (TCP 3.3.2.1).
func (q *Queue) data(h wire.Header, header []byte, n int) {
	x := wire.DecodeTransfer(header)
	if int(x.Tag) >= len(q.slots) || !q.slots[x.Tag].live || !q.slots[x.Tag].asked {
		q.fail(wire.Fault{Status: wire.FaultHeader, Field: 10}, header)
		return
	}
	c := q.slots[x.Tag]
	ends := c.size
	if c.filling != nil {
		ends = int(c.filling.Length)
	}
	switch {
	case x.Command != c.sqe.CID():
		q.fail(wire.Fault{Status: wire.FaultHeader, Field: 8}, header)
	case int(x.Length) != n || n == 0:
		q.fail(wire.Fault{Status: wire.FaultHeader, Field: 16}, header)
	case uint64(x.Offset) != uint64(c.from)+uint64(c.filled):
		q.fail(wire.Fault{Status: wire.FaultRange, Field: 12}, header)
	case n > ends-c.filled:
		q.fail(wire.Fault{Status: wire.FaultRange, Field: 16}, header)
	case h.Flags&wire.FlagLast != 0 != (n == ends-c.filled):
		q.fail(wire.Fault{Status: wire.FaultHeader, Field: 1}, header)
	default:
		q.receive(c)
	}
}

// delivered ends a PDU with data.
func (q *Queue) delivered(sound bool) {
	c := q.into
	if q.into = nil; c == nil {
		return // discarded
	}
	c.spoiled = c.spoiled || !sound
	t := c.filling
	if t != nil && c.filled < int(t.Length) || t == nil && c.filled < c.size {
		return
	}
	c.asked, c.filling = false, nil
	if c.spoiled {
		c.status = wire.TransientError
	}
	switch {
	case t == nil:
		q.proceed(c)
	case c.status != 0:
		q.finish(t)
	default:
		q.starts = append(q.starts, t)
		if c.next < c.length {
			q.proceed(c)
		}
	}
}

// take returns a task of a command, or one to carry output only.
func (q *Queue) take(c *command) *Task {
	var t *Task
	if i := len(q.tasks); i > 0 {
		t, q.tasks = q.tasks[i-1], q.tasks[:i-1]
	} else {
		t = new(Task)
		t.Peer = q.peer
		t.Done = func(*nbd.Task) { q.done(t) }
		t.answer.Task, t.answer.Head = t, make([]byte, 0, maxHead)
	}
	t.command, t.space = c, nil
	t.refused, t.Err, t.Sole, t.NoHole, t.Durable, t.Stalled, t.Resumed = 0, 0, false, false, false, 0, 0
	t.answer.Begin()
	return t
}

// task returns a task of a command for its volume, of n bytes from c.next on.
func (q *Queue) task(c *command, k nbd.Kind, n uint32) *Task {
	t := q.take(c)
	t.space = c.space
	t.Kind, t.Offset, t.Length = k, c.offset+uint64(c.next), n
	t.Stalled, t.Resumed, c.stalled, c.resumed = c.stalled, c.resumed, 0, 0
	c.tasks++
	return t
}

// charge reserves n bytes of memory, or makes the command wait for them.
func (q *Queue) charge(c *command, n int) bool {
	if c.granted > 0 { // after waiting
		c.granted = 0
		return true
	}
	if q.waiting.N > 0 || q.memory+n > q.target.cfg.Limits.Memory {
		c.queued, c.needs, c.stalled = true, n, q.now()
		q.waiting.Push(c)
		return false
	}
	q.memory += n
	return true
}

// now is the time of the target's clock, 0 without one.
func (q *Queue) now() int64 {
	if q.target.cfg.Clock == nil {
		return 0
	}
	return q.target.cfg.Clock()
}

// refund returns a task's memory.
func (q *Queue) refund(t *Task) {
	q.memory -= t.charge
	t.charge = 0
}

// resume lets waiting commands proceed, in order, while there is memory.
func (q *Queue) resume() {
	for q.waiting.N > 0 && q.err == nil {
		c := *q.waiting.First()
		if q.memory+c.needs > q.target.cfg.Limits.Memory {
			return
		}
		q.waiting.Pop()
		q.memory += c.needs
		c.queued, c.granted, c.resumed = false, c.needs, q.now()
		q.proceed(c)
	}
}

// Starts appends the tasks to start, and forgets them.
func (q *Queue) Starts(into []*Task) []*Task {
	if len(q.starts) == 1 {
		q.starts[0].Sole = q.active-q.parked == 1
	}
	into = append(into, q.starts...)
	clear(q.starts)
	q.starts = q.starts[:0]
	return into
}

// Fail ends the connection and releases all pending output. Tasks with volumes must still be passed to Finish.
func (q *Queue) Fail(err error) {
	if q.err == nil {
		q.err = err
	}
	q.target.ended(q)
	for q.out.N > 0 {
		t := q.out.Pop().Task
		q.release(t)
		q.recycle(t)
	}
	for _, t := range q.starts {
		q.recycle(t)
	}
	q.starts = nil
}

// Close ends the queue, after Fail, when all its tasks are finished.
func (q *Queue) Close() {
	for _, c := range q.slots {
		if c.live {
			q.drop(c)
		}
	}
	q.target.settled(q)
}
