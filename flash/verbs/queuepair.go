package verbs

import (
	"fmt"

	"farflash/flash/wire"
)

// Config is what one end of a connection wants. The zero value of a field is not its
// default: DefaultConfig has those.
type Config struct {
	// Initiator sends the MPA Request; the responder waits for it.
	Initiator bool
	// Revision is MPA's: 1, or 2 with RFC 6581's negotiation. Of an initiator; a responder
	// takes both.
	Revision uint8
	// CRC wants CRC32C in FPDUs. They are off only if both ends do without.
	CRC bool
	// Markers wants markers in what is received.
	Markers bool
	// PeerToPeer, of an initiator of revision 2, has the connection's first message sent
	// by itself, of one of these kinds, so that the responder may speak first.
	PeerToPeer bool
	RTR        wire.RTR
	// IRD and ORD bound reads and atomics under way: of the peer's, and to the peer.
	IRD, ORD int
	// Sends and Receives are the lengths of the queues.
	Sends, Receives int
	// MaxSegment bounds the DDP segments that are sent, in bytes with their header.
	MaxSegment int
	// Window is how much of one read from a Store is asked for at a time, in bytes.
	Window int
	// Private is the private data of an initiator's request.
	Private []byte
	// Wake, if set, is called on any goroutine when a Store has called back and the queue
	// pair is not at work: Step is to be called. It must not call the queue pair.
	Wake func()
	// Lane names the thread that drives the connection to stores whose devices have threads of their own, which may
	// be the same; 0 is none of them.
	Lane uint8
	// Notice, if set, is told of errors of a Store, which the peer only sees as a lost
	// connection.
	Notice func(error)
}

// DefaultConfig is a responder's: CRCs, no markers, revision 2, sixteen reads each way,
// FPDUs up to 64 KiB.
func DefaultConfig() Config {
	return Config{
		Revision: 2, CRC: true, RTR: wire.RTRSend | wire.RTRWrite | wire.RTRRead,
		IRD: 16, ORD: 16, Sends: 64, Receives: 64, MaxSegment: wire.MaxULPDU, Window: 256 << 10,
	}
}

func (c *Config) validate() error {
	bad := func(format string, args ...any) error { return fmt.Errorf(format, args...) }
	switch {
	case c.Revision != 1 && c.Revision != 2:
		return bad("MPA revision %d is neither 1 nor 2", c.Revision)
	case c.IRD < 0 || c.IRD >= wire.Unnegotiated || c.ORD < 0 || c.ORD >= wire.Unnegotiated:
		return bad("IRD %d and ORD %d are to be between 0 and %d", c.IRD, c.ORD, wire.Unnegotiated-1)
	case c.Sends < 1 || c.Receives < 0 || c.Sends > 1<<20 || c.Receives > 1<<20:
		return bad("queues of %d sends and %d receives", c.Sends, c.Receives)
	case c.MaxSegment < 128 || c.MaxSegment > wire.MaxULPDU:
		return bad("segments of %d bytes are to have between 128 and %d", c.MaxSegment, wire.MaxULPDU)
	case c.Window < 4096 || c.Window > 1<<30:
		return bad("a window of %d bytes is to have between 4096 and %d", c.Window, 1<<30)
	case len(c.Private) > wire.MaxPrivate-wire.EnhancedLength:
		return bad("%d bytes of private data are more than %d", len(c.Private), wire.MaxPrivate-wire.EnhancedLength)
	case c.PeerToPeer && (c.Revision < 2 || !c.Initiator):
		return bad("peer to peer is an initiator's, and of revision 2")
	case c.RTR == 0 || c.RTR > wire.RTRSend|wire.RTRWrite|wire.RTRRead:
		return bad("there is to be an RTR message that can be used")
	}
	return nil
}

// State is where a connection is.
type State uint8

// The states. Starting: startup frames are under way. Asked: a responder has the request,
// and Accept or Reject is due. Running: messages. Ending: a Terminate has been written and
// is to be sent, nothing else is. Closed: nothing is.
const (
	Starting State = iota
	Asked
	Running
	Ending
	Closed
)

var stateNames = [...]string{"starting", "asked", "running", "ending", "closed"}

// String is the state's name.
func (s State) String() string { return stateNames[s] }

// QueuePair is one end of a connection. Its methods are for one goroutine at a time.
type QueuePair struct {
	adapter *Adapter
	domain  *Domain
	cfg     Config
	sendCQ  *CompletionQueue
	recvCQ  *CompletionQueue
	send    holding
	receive holding

	state    State
	err      error
	framer   wire.Framer
	deframer wire.Deframer
	frame    []byte // of startup, to be sent
	asked    []byte // a responder's copy of the request
	reply    []byte // an initiator's of the reply
	heard    bool   // a valid FPDU has come; before, a responder sends none
	tail     bool   // the FPDU that is being looked at is the last that has come
	ird, ord int
	rtr      bool // the first work is the RTR message
	need     int

	// What came in.
	head      int // length of the segment that waits at the front of the input, and
	headTotal int // of its FPDU; 0 if none waits
	sequence  [wire.Queues]uint32
	last      *Region // that was used last
	rq        []Receive
	rqHead    uint64
	rqTail    uint64
	placed    uint32 // bytes of the message that fills the receive at rqHead
	filling   bool   // it has begun, and is of this opcode
	fillingOp wire.Op
	writing   *Access
	writingTo *Region
	syncs     int // puts and atomics that later work waits for
	barrier   bool

	// Reads and atomics of the peer, to be answered in order.
	irq     []response
	irqHead uint64
	irqTail uint64

	// Work.
	sq        []work
	sqHead    uint64 // oldest that has not completed
	sqSent    uint64 // first that the driver has not confirmed as sent
	sqNext    uint64 // being sent
	sqTail    uint64
	sqAwait   uint64 // where to look for the oldest read or atomic without an answer
	sqOffset  uint32 // bytes of the one at sqNext that are sent
	waiting   int    // reads and atomics without an answer
	numbers   [wire.Queues]uint32
	sink      uint32 // the STag that this end's reads carry; nobody can write to it
	sinkNext  uint64
	answering bool // a response is being sent, and not yet at its end
	turn      bool // the send queue's

	term    [wire.MaxTerminate]byte
	termLen int

	inbox    inbox
	draining bool
	fresh    bool
	free     []*Access
	orphans  []orphan
	accesses int
	counters Counters

	// Of stores that were changed without waiting: whose losses end the connection.
	reports []report
	watched *Region // the last of them
}

// Counters are what a connection has done.
type Counters struct {
	SegmentsIn, SegmentsOut uint64
	// Reads, writes (in segments) and atomics of the peer, and bytes of theirs.
	Reads, Writes, Atomics uint64
	ReadBytes, WriteBytes  uint64
	// Stalls is how often input waited for a store.
	Stalls uint64
}

// NewQueuePair returns an end of a connection in a domain. The completion queues may be
// one; they must have room for all that can be posted.
func NewQueuePair(d *Domain, cfg Config, sends, receives *CompletionQueue) (*QueuePair, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if err := sends.reserve(cfg.Sends); err != nil {
		return nil, err
	}
	q := &QueuePair{adapter: d.adapter, domain: d, cfg: cfg, sendCQ: sends, recvCQ: receives, ird: cfg.IRD,
		ord: cfg.ORD}
	q.send.depth, q.receive.depth = cfg.Sends, cfg.Receives
	if err := receives.reserve(cfg.Receives); err != nil {
		sends.leave(&q.send)
		return nil, err
	}
	// One place more for the RTR message.
	q.sq, q.rq = make([]work, cfg.Sends+1), make([]Receive, cfg.Receives)
	for i := range q.sequence {
		q.sequence[i], q.numbers[i] = 1, 1
	}
	d.adapter.mu.Lock()
	q.sink = d.adapter.name() << 8
	d.adapter.mu.Unlock()
	q.need = wire.StartupLength
	if cfg.Initiator {
		q.request()
	}
	return q, nil
}

// State is where the connection is.
func (q *QueuePair) State() State { return q.state }

// Err is why the connection has ended: Terminated, Lost, ErrClosed, ErrRejected, or nil.
func (q *QueuePair) Err() error { return q.err }

// Counters are what the connection has done so far.
func (q *QueuePair) Counters() Counters { return q.counters }

// Limits are how many reads and atomics may be under way: the peer's and to the peer, as
// negotiated.
func (q *QueuePair) Limits() (ird, ord int) { return q.ird, q.ord }

// Settled reports whether no store has anything of the connection's. It comes after the
// connection's end, when the last Done has; until then Step is to be called.
func (q *QueuePair) Settled() bool { return q.accesses == 0 }

// Quiet reports whether nothing is under way: all that has come was done, answered and put, and all that was posted
// was sent.
func (q *QueuePair) Quiet() bool {
	return q.accesses == 0 && q.irqHead == q.irqTail && q.headTotal == 0 && q.sqNext == q.sqTail &&
		len(q.frame) == 0 && q.termLen == 0
}

// Stalled reports whether input waits for a store: nothing is to be read meanwhile.
func (q *QueuePair) Stalled() bool { return q.headTotal > 0 }

// Need is how many bytes of input are needed at once before more of it can be taken.
func (q *QueuePair) Need() int { return q.need }

// Post puts a request on the send queue. ErrFull: so many are outstanding, or completed
// and not polled.
func (q *QueuePair) Post(w Work) error {
	if q.state >= Ending {
		return ErrClosed
	}
	bad := ""
	switch w.Op {
	case wire.Send, wire.SendSE, wire.SendInv, wire.SendSEInv, wire.Write:
	case wire.ReadReq, wire.AtomicReq:
		switch {
		case q.cfg.ORD == 0:
			bad = "the connection has an ORD of 0"
		case w.Op == wire.AtomicReq && !w.Atomic.Valid():
			bad = "there is no such atomic operation"
		case w.Op == wire.AtomicReq && w.Offset%8 != 0:
			bad = "an atomic's offset is a multiple of 8"
		}
	case wire.Imm, wire.ImmSE:
		if len(w.Local) > 0 {
			bad = "it has no bytes but its immediate ones"
		}
	default:
		bad = "it is not a request"
	}
	if uint64(len(w.Local)) > 1<<32-1 {
		bad = "a message has less than 4 GiB"
	}
	if bad != "" {
		return fmt.Errorf("%v of %d bytes at %d cannot be posted: %s", w.Op, len(w.Local), w.Offset, bad)
	}
	if int(q.send.held.Load()) >= q.cfg.Sends {
		return ErrFull
	}
	q.send.held.Add(1)
	q.push(w, false)
	return nil
}

func (q *QueuePair) push(w Work, internal bool) {
	q.sq[q.sqTail%uint64(len(q.sq))] = work{Work: w, internal: internal}
	q.sqTail++
}

// PostReceive puts a buffer on the receive queue.
func (q *QueuePair) PostReceive(r Receive) error {
	if q.state >= Ending {
		return ErrClosed
	}
	if int(q.receive.held.Load()) >= q.cfg.Receives {
		return ErrFull
	}
	q.receive.held.Add(1)
	q.rq[q.rqTail%uint64(len(q.rq))] = r
	q.rqTail++
	return nil
}

// Fresh reports whether a store has called back since the last call of it: any method takes
// callbacks in. Then Input may take more of what waits, and Fill give more.
func (q *QueuePair) Fresh() bool {
	was := q.fresh
	q.fresh = false
	return was
}

// Step takes in what stores have called back with. Then Input may take more, and Fill
// give more.
func (q *QueuePair) Step() {
	q.drain()
	q.rest()
}

// Input takes bytes that have arrived, from where the last call stopped, and returns how
// many it has done with. What is left is to be given again, unchanged, with more behind it
// (Need says how much) or, if Stalled, after Step. It writes into b.
func (q *QueuePair) Input(b []byte) int {
	q.drain()
	done := 0
	for {
		n := q.input(b[done:])
		if n == 0 {
			break
		}
		done += n
	}
	q.rest()
	return done
}

// input takes one startup frame or FPDU, and returns its length, or 0.
func (q *QueuePair) input(b []byte) int {
	switch {
	case q.state >= Ending:
		return len(b)
	case q.state == Starting:
		return q.startup(b)
	case q.state == Asked:
		return 0
	}
	var s wire.Segment
	n := q.headTotal
	if n == 0 {
		var err error
		s, n, err = q.deframer.Next(b)
		if err != nil {
			fault, _ := err.(wire.Fault)
			q.fail(fault, nil)
			return len(b)
		}
		q.need = n
		if s == nil {
			return 0
		}
		q.heard, q.tail = true, n == len(b)
		q.counters.SegmentsIn++
	} else {
		s = wire.Segment(b[2 : 2+q.head])
	}
	if !q.segment(s) {
		if q.headTotal == 0 {
			q.counters.Stalls++
		}
		q.head, q.headTotal = len(s), n
		return 0
	}
	q.head, q.headTotal = 0, 0
	return n
}

// Fill appends what is to be sent to b, within its capacity: whole frames. A capacity of
// wire.MaxFPDU beyond b's length always has room for one. Sent is to be called when the
// connection has taken it.
func (q *QueuePair) Fill(b []byte) []byte {
	q.drain()
	if len(q.frame) > 0 && cap(b)-len(b) >= len(q.frame) {
		b = append(b, q.frame...)
		q.frame = nil
	}
	if len(q.frame) == 0 {
		b = q.fill(b)
	}
	q.rest()
	return b
}

// Sent confirms that all that Fill has given was handed to the connection below. Only
// then do sends and writes complete.
func (q *QueuePair) Sent() {
	q.sqSent = q.sqNext
	if q.state == Ending && q.termLen == 0 {
		q.state = Closed
	}
	q.retire()
}

// Lost says that the connection below has ended, with io.EOF if the peer has closed it.
func (q *QueuePair) Lost(err error) {
	q.drain()
	q.end(Lost{err})
	q.rest()
}

// Close ends the connection from here. What is outstanding completes with ErrClosed.
func (q *QueuePair) Close() {
	q.drain()
	q.end(ErrClosed)
	q.rest()
}
