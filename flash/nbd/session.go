package nbd

import (
	"encoding/binary"
	"fmt"

	"farflash/flash/reply"
	"farflash/internal/fifo"
)

// Limits bound the resources of one connection.
type Limits struct {
	Depth  int // commands outstanding at a time
	Memory int // bytes of outstanding reads and writes, at least Window
	Ahead  int // outstanding tasks per command, at least 1
	// Queued means that the volume queues reads and bounds what those hold that it has begun: Memory is of writes only.
	Queued bool
}

// DefaultLimits returns limits of 128 commands and 8 MiB.
func DefaultLimits() Limits { return Limits{Depth: 128, Memory: 8 << 20, Ahead: 4} }

const (
	maxExtents = 1024           // extents per block status reply
	maxWaste   = 2 * MaxPayload // longest payload that is skipped when a write is refused
)

// command is a client's command that has not been answered completely.
type command struct {
	cookie uint64
	offset uint64
	length uint32
	next   uint32 // offset up to which tasks were created
	charge int    // bytes charged to the session's memory
	tasks  int    // created and not finished: neither done nor, if sent, sent
	doing  int    // of these, still with the volume
	extra  int    // of these, charged a Window of their own
	flags  uint16
	kind   Command
	err    Errno
	told   bool // part of the reply has been queued

	stalled, resumed int64 // for its first task
}

// zeros is the source of zero bytes for clients that do not understand holes.
var zeros = make([]byte, 64<<10)

// Session is the server's side of transmission. Calls must be serialized.
type Session struct {
	volume     Volume
	size       uint64
	limits     Limits
	done       func(*Task)
	readOnly   bool
	structured bool
	context    bool

	commands []*command // free commands, and below free tasks
	tasks    []*Task
	active   int // outstanding commands
	memory   int
	starts   []*Task
	out      reply.Queue[Task]
	half     *command                       // command whose simple reply is partly in out; its bytes must follow
	held     fifo.Ring[*reply.Output[Task]] // to send after it

	write   *command // command whose payload is being received
	filling *Task    // task that receives it
	filled  int
	skip    uint64 // payload bytes still to discard
	stalled bool
	leaving bool // the client has sent a disconnect
	err     error

	peer  fmt.Stringer
	clock func() int64
	since int64 // when the next command began to wait for memory; 0: it does not
}

// NewSession starts transmission of the export that a handshake chose. done is called as every task's Done; it must
// pass the task to the driver, which calls Finish.
func NewSession(h *Handshake, limits Limits, done func(*Task)) *Session {
	e, structured, context := h.Chosen()
	limits.Depth, limits.Memory, limits.Ahead = max(1, limits.Depth), max(Window, limits.Memory), max(1, limits.Ahead)
	return &Session{
		volume: e.Volume, size: e.Volume.Size(), readOnly: e.ReadOnly, structured: structured, context: context,
		limits: limits, done: done,
	}
}

// Follow has tasks know their client's address and, by a clock in nanoseconds, how long they waited for memory. It is
// called before any input.
func (s *Session) Follow(peer fmt.Stringer, clock func() int64) { s.peer, s.clock = peer, clock }

// Err returns the reason why the connection must be closed immediately, or nil.
func (s *Session) Err() error { return s.err }

// Over reports that the client has disconnected and all earlier commands have been answered.
func (s *Session) Over() bool { return s.leaving && s.active == 0 && s.out.N == 0 }

// Ready reports that more input is of use. It is not while Input waits for outstanding commands to finish, and after a
// disconnect or an error.
func (s *Session) Ready() bool { return !s.stalled && !s.leaving && s.err == nil }

// Drained reports that every completely received command has been answered.
func (s *Session) Drained() bool { return s.active == 0 || s.active == 1 && s.write != nil }

// Pending is the number of payload bytes still to be received; 0 between commands.
func (s *Session) Pending() int {
	if s.write != nil {
		return int(s.write.length-s.write.next) - s.filled
	}
	return int(s.skip)
}

// Starts appends the tasks to start, and forgets them.
func (s *Session) Starts(into []*Task) []*Task {
	if len(s.starts) == 1 {
		s.starts[0].Sole = s.active == 1
	}
	into = append(into, s.starts...)
	s.starts = s.starts[:0]
	return into
}

// Sink returns memory into which the next payload bytes can be read directly, or nil. The driver then calls Sunk with
// the number of bytes read. This saves a copy of long payloads.
func (s *Session) Sink() []byte {
	if s.write == nil || s.err != nil || !s.fill() {
		return nil
	}
	return s.filling.Payload[s.filled:]
}

// Sunk reports how many bytes were read into Sink.
func (s *Session) Sunk(n int) { s.arrived(n) }

// Input consumes received bytes and returns the number consumed. The caller passes the remainder again with more bytes,
// or once the session is Ready.
func (s *Session) Input(b []byte) int {
	n := 0
	s.stalled = false
	for s.err == nil && !s.leaving {
		k := s.step(b[n:])
		if k == 0 {
			break
		}
		n += k
	}
	return n
}

func (s *Session) step(b []byte) int {
	switch {
	case len(b) == 0:
		return 0
	case s.skip > 0:
		n := min(s.skip, uint64(len(b)))
		s.skip -= n
		return int(n)
	case s.write != nil:
		if !s.fill() {
			return 0
		}
		n := copy(s.filling.Payload[s.filled:], b)
		s.arrived(n)
		return n
	case len(b) < requestSize:
		return 0
	}
	h := requestHeader(b[:requestSize])
	if h.magic() != magicRequest {
		s.err = errMagic
		return 0
	}
	if h.command() == CmdDisconnect {
		s.leaving = true
		return requestSize
	}
	charge := 0
	if h.command() == CmdRead && !s.limits.Queued || h.command() == CmdWrite {
		charge = int(min(h.length(), Window))
	}
	if s.active >= s.limits.Depth || s.memory+charge > s.limits.Memory {
		if s.stalled = true; s.active < s.limits.Depth && s.clock != nil && s.since == 0 {
			s.since = s.clock()
		}
		return 0
	}
	s.begin(h, charge)
	return requestSize
}

// fill provides a task for the payload of a write and reports false if there is no memory for one.
func (s *Session) fill() bool {
	if s.filling != nil {
		return true
	}
	c := s.write
	if c.tasks > 0 && !s.more(c) {
		s.stalled = true
		return false
	}
	t := s.task(c, Write, c.offset+uint64(c.next), min(Window, c.length-c.next))
	t.Payload = t.answer.Memory(int(t.Length))
	s.filling, s.filled = t, 0
	return true
}

// more reports whether a command may have another task, and charges it.
func (s *Session) more(c *command) bool {
	if c.kind == CmdRead && s.limits.Queued {
		return c.tasks < s.limits.Ahead
	}
	if c.tasks >= s.limits.Ahead || s.memory+Window > s.limits.Memory {
		return false
	}
	s.memory += Window
	c.extra++
	return true
}

// arrived counts n payload bytes of a write and queues its task when the last one has arrived.
func (s *Session) arrived(n int) {
	s.filled += n
	t, c := s.filling, s.write
	if s.filled < int(t.Length) {
		return
	}
	s.filling, s.filled = nil, 0
	c.next += t.Length
	if c.next == c.length {
		s.write = nil
	}
	s.starts = append(s.starts, t)
}

// task creates a task of a command.
func (s *Session) task(c *command, k Kind, offset uint64, n uint32) *Task {
	var t *Task
	if i := len(s.tasks); i > 0 {
		t, s.tasks = s.tasks[i-1], s.tasks[:i-1]
	} else {
		t = &Task{Done: s.done, Peer: s.peer}
		t.answer.Task = t
	}
	t.Kind, t.Offset, t.Length, t.Err, t.Sole = k, offset, n, 0, false
	t.Durable = c.flags&CmdFUA != 0
	t.NoHole = c.flags&CmdNoHole != 0
	t.Stalled, t.Resumed, c.stalled, c.resumed = c.stalled, c.resumed, 0, 0
	t.command = c
	c.tasks++
	c.doing++
	return t
}

// replyTask creates a task that no volume sees, to carry the reply to a command.
func (s *Session) replyTask(c *command) *Task { return s.task(c, Flush, 0, 0) }

// begin admits a command.
func (s *Session) begin(h requestHeader, charge int) {
	var c *command
	if n := len(s.commands); n > 0 {
		c, s.commands = s.commands[n-1], s.commands[:n-1]
	} else {
		c = new(command)
	}
	*c = command{cookie: h.cookie(), offset: h.offset(), length: h.length(), flags: h.flags(), kind: h.command(),
		charge: charge}
	if s.since != 0 {
		c.stalled, c.resumed, s.since = s.since, s.clock(), 0
	}
	s.active++
	s.memory += charge
	if c.err = s.refused(c); c.err != 0 {
		if c.kind == CmdWrite {
			if c.length > maxWaste {
				s.err = fmt.Errorf("nbd: write of %d bytes is too long", c.length)
				return
			}
			s.skip = uint64(c.length)
		}
		s.answer(s.replyTask(c))
		return
	}
	switch c.kind {
	case CmdWrite:
		if c.length > 0 {
			s.write = c
			return
		}
	case CmdBlockStatus:
		s.status(c)
		return
	case CmdFlush:
		s.starts = append(s.starts, s.task(c, Flush, 0, 0))
		return
	case CmdTrim, CmdWriteZeroes:
		if c.length > 0 && (c.kind == CmdTrim || c.flags&CmdNoHole == 0) {
			k := Trim
			if c.kind == CmdWriteZeroes {
				k = Zero
			}
			c.next = c.length
			s.starts = append(s.starts, s.task(c, k, c.offset, c.length))
			return
		}
	}
	if c.length == 0 {
		s.answer(s.replyTask(c))
		return
	}
	s.proceed(c)
}

// refused validates a command before any of its bytes move, and returns the error or 0.
func (s *Session) refused(c *command) Errno {
	allowed := uint16(CmdFUA)
	beyond := EINVAL
	switch c.kind {
	case CmdRead:
		if s.structured {
			allowed |= CmdDF
		}
	case CmdWriteZeroes:
		allowed |= CmdNoHole | CmdFastZero
		beyond = ENOSPC
	case CmdWrite:
		beyond = ENOSPC
	case CmdBlockStatus:
		allowed |= CmdOne
		if !s.context || c.length == 0 {
			return EINVAL
		}
	case CmdFlush, CmdTrim, CmdCache:
	default:
		return EINVAL
	}
	switch {
	case c.flags&^allowed != 0:
		return EINVAL
	case s.readOnly && (c.kind == CmdWrite || c.kind == CmdTrim || c.kind == CmdWriteZeroes):
		return EPERM
	case c.kind == CmdFlush:
		return 0
	case c.offset > s.size || uint64(c.length) > s.size-c.offset:
		return beyond
	case charged(c.kind) && c.length > MaxPayload:
		return EINVAL
	case c.kind == CmdRead && c.flags&CmdDF != 0 && c.length > Window:
		return EOVERFLOW
	case c.flags&CmdFastZero != 0 && c.flags&CmdNoHole != 0:
		return ENOTSUP // zeros that keep their space allocated are written like any data
	}
	return 0
}

// charged reports whether a command has payload in either direction.
func charged(c Command) bool { return c == CmdRead || c == CmdWrite }

// proceed creates tasks of a command, up to its limit of outstanding tasks.
func (s *Session) proceed(c *command) {
	kind, most := Read, s.limits.Ahead
	switch c.kind {
	case CmdRead:
		if !s.structured {
			most = 1 // the parts of a simple reply carry no offsets, so they must go in order
		}
	case CmdCache:
		kind, most = Cache, 1
	case CmdWriteZeroes:
		kind, most = Zero, 1
	case CmdWrite:
		return // write tasks are created as payload arrives
	}
	for c.next < c.length && c.err == 0 && c.tasks < most {
		if c.tasks > 0 && !s.more(c) {
			return
		}
		n := min(Window, c.length-c.next)
		s.starts = append(s.starts, s.task(c, kind, c.offset+uint64(c.next), n))
		c.next += n
	}
}

// ended removes a task from its command.
func (s *Session) ended(c *command) {
	c.tasks--
	if c.extra > 0 {
		c.extra--
		s.memory -= Window
	}
}

// recycle keeps a task for reuse.
func (s *Session) recycle(t *Task) {
	t.Recycle(s.err == nil)
	t.answer.Clear()
	t.Payload, t.command = nil, nil
	clear(t.Pieces)
	t.Pieces = t.Pieces[:0]
	s.tasks = append(s.tasks, t)
}

// Finish takes back a task that the volume has completed.
func (s *Session) Finish(t *Task) {
	c := t.command
	c.doing--
	if t.Err != 0 && c.err == 0 {
		c.err = t.Err
	}
	if s.err != nil { // no more replies are sent
		s.release(t)
		s.recycle(t)
		return
	}
	if c.kind == CmdRead {
		s.read(t)
		return
	}
	t.answer.Free()
	if c.tasks == 1 && (c.next == c.length || c.err != 0 && c.kind != CmdWrite || c.kind == CmdFlush) {
		s.answer(t)
		return
	}
	s.ended(c)
	s.recycle(t)
	s.proceed(c)
}

// read answers with one part of a read.
func (s *Session) read(t *Task) {
	c := t.command
	if c.err == 0 {
		s.pieces(t)
		return
	}
	s.release(t)
	switch {
	case c.doing > 0: // the last task reports the error
		s.ended(c)
		s.recycle(t)
	case !s.structured && c.told:
		s.err = fmt.Errorf("nbd: read failed after part of its reply: %w", c.err) // too late for an error reply
		s.recycle(t)
	default:
		s.answer(t)
	}
}

// release returns the volume's memory.
func (s *Session) release(t *Task) {
	if t.Kind == Read && t.Err == 0 && len(t.Pieces) > 0 {
		s.volume.Release(t)
		clear(t.Pieces)
		t.Pieces = t.Pieces[:0]
	}
	t.answer.Lent = false
}

// answer completes a command whose only task is t, with its error or success.
func (s *Session) answer(t *Task) {
	c, a := t.command, &t.answer
	a.Begin()
	a.Last = true
	switch {
	case c.err != 0 && s.structured:
		text := errnoNames[c.err]
		a.Head = appendChunk(a.Head, ChunkDone, ChunkError, c.cookie, uint32(6+len(text)))
		a.Head = binary.BigEndian.AppendUint32(a.Head, uint32(c.err))
		a.Head = binary.BigEndian.AppendUint16(a.Head, uint16(len(text)))
		a.Head = append(a.Head, text...)
	case c.kind == CmdRead && s.structured:
		a.Head = appendChunk(a.Head, ChunkDone, ChunkNone, c.cookie, 0)
	default:
		a.Head = appendSimple(a.Head, c.err, c.cookie)
	}
	a.Vec = append(a.Vec, a.Head)
	s.push(t)
}

// push queues a task's output. A simple reply must be contiguous, so the output of other commands waits until the reply
// is complete. Waiting output is copied, because the memory it would hold may be what the rest of the reply needs.
func (s *Session) push(t *Task) {
	if s.half != nil && s.half != t.command {
		t.answer.Detach(s.release)
		s.held.Push(&t.answer)
		return
	}
	s.follow(t)
	for s.half == nil && s.held.N > 0 {
		s.follow(s.held.Pop().Task)
	}
}

// follow queues a task's bytes as the next to send.
func (s *Session) follow(t *Task) {
	s.half = nil
	if !s.structured && !t.answer.Last {
		s.half = t.command
	}
	s.out.Push(&t.answer)
}

// pieces queues the data of a read.
func (s *Session) pieces(t *Task) {
	c, a := t.command, &t.answer
	last := c.next == c.length && c.doing == 0 // the tasks done before it are queued ahead of it
	a.Begin()
	a.Last, a.Lent = last, true // below, the head may move when it grows; vectors keep pointing into the old array
	switch {
	case !s.structured:
		if !c.told {
			a.Head = appendSimple(a.Head, 0, c.cookie)
			a.Vec = append(a.Vec, a.Head)
		}
		s.run(a, t.Pieces)
	case c.flags&CmdDF != 0:
		s.dataChunk(t, last, t.Offset, t.Length)
		s.run(a, t.Pieces)
	default:
		s.chunks(t, last)
	}
	c.told = true
	s.push(t)
	if !last {
		s.proceed(c)
	}
}

// chunks creates one chunk per run of data or zeros.
func (s *Session) chunks(t *Task, last bool) {
	a, offset := &t.answer, t.Offset
	for i := 0; i < len(t.Pieces); {
		n, hole, from := uint32(0), t.Pieces[i].Data == nil, i
		for ; i < len(t.Pieces) && (t.Pieces[i].Data == nil) == hole; i++ {
			n += uint32(len(t.Pieces[i].Data) + t.Pieces[i].Zeros)
		}
		end := last && i == len(t.Pieces)
		if hole {
			at := len(a.Head)
			a.Head = appendChunk(a.Head, flag(end), ChunkHole, t.command.cookie, 12)
			a.Head = binary.BigEndian.AppendUint64(a.Head, offset)
			a.Head = binary.BigEndian.AppendUint32(a.Head, n)
			a.Vec = append(a.Vec, a.Head[at:])
		} else {
			s.dataChunk(t, end, offset, n)
			s.run(a, t.Pieces[from:i])
		}
		offset += uint64(n)
	}
}

func flag(done bool) uint16 {
	if done {
		return ChunkDone
	}
	return 0
}

// dataChunk appends the header of a data chunk.
func (s *Session) dataChunk(t *Task, last bool, offset uint64, n uint32) {
	a := &t.answer
	at := len(a.Head)
	a.Head = appendChunk(a.Head, flag(last), ChunkData, t.command.cookie, 8+n)
	a.Head = binary.BigEndian.AppendUint64(a.Head, offset)
	a.Vec = append(a.Vec, a.Head[at:])
}

// run appends pieces as bytes.
func (s *Session) run(a *reply.Output[Task], pieces []Piece) {
	for _, p := range pieces {
		if p.Data != nil {
			a.Vec = append(a.Vec, p.Data)
			continue
		}
		for n := p.Zeros; n > 0; n -= len(zeros) {
			a.Vec = append(a.Vec, zeros[:min(n, len(zeros))])
		}
	}
}

// status answers which extents are allocated, merging neighbours in the same state.
func (s *Session) status(c *command) {
	t := s.replyTask(c)
	a := &t.answer
	most := maxExtents
	if c.flags&CmdOne != 0 {
		most = 1
	}
	a.Begin()
	a.Head, a.Last = append(a.Head, make([]byte, structuredSize+4)...), true
	offset, left, was := c.offset, uint64(c.length), uint32(0)
	for n := 0; left > 0; {
		length, allocated, err := s.volume.Extent(offset, left)
		if err != nil || length == 0 {
			c.err = EIO
			s.answer(t)
			return
		}
		length = min(length, left)
		state := uint32(0)
		if !allocated {
			state = StateHole | StateZero
		}
		if n > 0 && state == was {
			at := len(a.Head) - 8
			binary.BigEndian.PutUint32(a.Head[at:], binary.BigEndian.Uint32(a.Head[at:])+uint32(length))
		} else {
			if n == most {
				break
			}
			a.Head = binary.BigEndian.AppendUint32(a.Head, uint32(length))
			a.Head = binary.BigEndian.AppendUint32(a.Head, state)
			n, was = n+1, state
		}
		offset, left = offset+length, left-length
	}
	appendChunk(a.Head[:0], ChunkDone, ChunkStatus, c.cookie, uint32(len(a.Head)-structuredSize))
	binary.BigEndian.PutUint32(a.Head[structuredSize:], allocationID)
	a.Vec = append(a.Vec, a.Head)
	s.push(t)
}

// Vectors appends the output, at most `most` slices; none after an error.
func (s *Session) Vectors(into [][]byte, most int) [][]byte {
	if s.err != nil {
		return into
	}
	return s.out.Vectors(into, most)
}

// Sent reports that n bytes of Vectors have been sent.
func (s *Session) Sent(n int) { s.out.Sent(n, s.sent) }

// sent finishes a task whose output has been sent completely.
func (s *Session) sent(t *Task) {
	c, last := t.command, t.answer.Last
	s.release(t)
	s.ended(c)
	s.recycle(t)
	if last {
		s.memory -= c.charge
		s.active--
		s.commands = append(s.commands, c)
		return
	}
	s.proceed(c)
}

// Detach copies pending output out of the volume's memory and releases that memory, so that a client that does not read
// cannot hold up others.
func (s *Session) Detach() { s.out.Detach(s.release) }

// Fail ends the session and releases all pending output. Tasks with the volume must still be passed to Finish.
func (s *Session) Fail(err error) {
	if s.err == nil {
		s.err = err
	}
	for _, q := range []*fifo.Ring[*reply.Output[Task]]{&s.out.Ring, &s.held} {
		for q.N > 0 {
			t := q.Pop().Task
			s.release(t)
			s.recycle(t)
		}
	}
	for _, t := range s.starts {
		s.recycle(t)
	}
	s.starts = nil
	if s.filling != nil {
		s.recycle(s.filling)
		s.filling = nil
	}
	s.write = nil
}
