package verbs

import (
	"fmt"

	"farflash/flash/wire"
)

// Config configures one end of a connection. Start from DefaultConfig: a zero field is not its default.
type Config struct {
	// Initiator sends the MPA Request; the responder waits for it.
	Initiator bool
	// Revision is the MPA revision an initiator sends: 1, or 2 with the negotiation of RFC 6581. A responder accepts
	// both.
	Revision uint8
	// CRC asks for CRC32C in FPDUs. CRCs are off only if neither end asks for them.
	CRC bool
	// Markers asks for markers in the incoming stream.
	Markers bool
	// PeerToPeer, for an initiator with revision 2, sends the connection's first message automatically, one of the
	// kinds in RTR, so that the responder can start sending.
	PeerToPeer bool
	RTR        wire.RTR
	// IRD and ORD bound the outstanding reads and atomics: IRD those of the peer, ORD those sent to the peer.
	IRD, ORD int
	// Sends and Receives are the queue lengths.
	Sends, Receives int
	// MaxSegment bounds outgoing DDP segments, in bytes including the header.
	MaxSegment int
	// Window is the largest part of a read that is requested from a Store at a time, in bytes.
	Window int
	// Private is the private data of the initiator's request.
	Private []byte
	// Wake, if set, is called on any goroutine when a Store has called back while the queue pair was idle; the driver
	// must then call Step. Wake must not call the queue pair.
	Wake func()
	// Loop identifies the driving thread to stores whose devices have threads of their own, possibly the same ones; 0
	// is none of them.
	Loop uint8
	// Notice, if set, receives Store errors, which the peer sees only as a lost connection.
	Notice func(error)
}

// DefaultConfig returns the configuration of a responder: CRCs, no markers, revision 2, sixteen outstanding reads in
// each direction, FPDUs of up to 64 KiB.
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
		return bad("IRD %d and ORD %d must be between 0 and %d", c.IRD, c.ORD, wire.Unnegotiated-1)
	case c.Sends < 1 || c.Receives < 0 || c.Sends > 1<<20 || c.Receives > 1<<20:
		return bad("invalid queue sizes: %d sends and %d receives", c.Sends, c.Receives)
	case c.MaxSegment < 128 || c.MaxSegment > wire.MaxULPDU:
		return bad("segment size %d must be between 128 and %d bytes", c.MaxSegment, wire.MaxULPDU)
	case c.Window < 4096 || c.Window > 1<<30:
		return bad("window %d must be between 4096 and %d bytes", c.Window, 1<<30)
	case len(c.Private) > wire.MaxPrivate-wire.EnhancedLength:
		return bad("%d bytes of private data exceed the maximum of %d", len(c.Private),
			wire.MaxPrivate-wire.EnhancedLength)
	case c.PeerToPeer && (c.Revision < 2 || !c.Initiator):
		return bad("peer-to-peer mode needs an initiator and MPA revision 2")
	case c.RTR == 0 || c.RTR > wire.RTRSend|wire.RTRWrite|wire.RTRRead:
		return bad("at least one known RTR message must be enabled")
	}
	return nil
}

// State is the state of a connection.
type State uint8

// The states. Starting: startup frames are being exchanged. Asked: the responder has the request and must Accept or
// Reject it. Running: messages flow. Ending: a Terminate is queued and is the only thing still to be sent. Closed:
// there is no more to send.
const (
	Starting State = iota
	Asked
	Running
	Terminating
	Closed
)

var stateNames = [...]string{"starting", "asked", "running", "ending", "closed"}

// String is the state's name.
func (s State) String() string { return stateNames[s] }

// QueuePair is one end of a connection. Calls must be serialized.
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
	frame    []byte // startup frame to send
	asked    []byte // the responder's copy of the request
	reply    []byte // the initiator's copy of the reply
	heard    bool   // a valid FPDU has arrived; a responder sends none before
	tail     bool   // the current FPDU is the last one received so far
	ird, ord int
	undone   bool // the last message could not be made durable
	rtr      bool // the first work is the RTR message
	need     int

	// Receiving. head is the length of the segment that is stalled at the front of the input, headTotal that of its
	// FPDU; both are 0 if no segment is stalled.
	head      int // bytes of the stalled segment
	headTotal int // bytes of its FPDU
	sequence  [wire.Queues]uint32
	last      *Region // most recently used
	rq        []Receive
	rqHead    uint64
	rqTail    uint64
	placed    uint32 // bytes placed so far in the receive at rqHead
	filling   bool   // a message of opcode fillingOp is partially received
	fillingOp wire.Op
	writing   *Access
	writingTo *Region
	syncs     int // puts and atomics that block later work
	putting   int // puts of changes that are not done
	barrier   bool

	// irq holds the peer's reads and atomics, which are answered in order.
	irq     []response
	irqHead uint64
	irqTail uint64

	// Send queue: a ring whose four positions only grow.
	sq        []work
	sqHead    uint64 // oldest work not yet completed
	sqSent    uint64 // first work that the driver has not confirmed as sent
	sqNext    uint64 // work being sent
	sqTail    uint64
	sqAwait   uint64 // where the search for the oldest unanswered read or atomic starts
	sqOffset  uint32 // bytes of the work at sqNext already sent
	waiting   int    // unanswered reads and atomics
	numbers   [wire.Queues]uint32
	sink      uint32 // the sink STag of this end's reads; it names no region, so the peer cannot write to it
	sinkNext  uint64
	answering bool // a response is partially sent
	turn      bool // the send queue goes next

	term    [wire.MaxTerminate]byte
	termLen int

	inbox    inbox
	draining bool
	fresh    bool
	free     []*Access
	orphans  []orphan
	accesses int
	counters Counters

	// reports are the subscriptions to stores that were written asynchronously; a loss in one ends the connection.
	reports []report
	watched *Region // the most recent region among them
}

// Counters count the operations of a connection.
type Counters struct {
	SegmentsIn, SegmentsOut uint64
	// Reads, Writes (in segments) and Atomics are the peer's operations, ReadBytes and WriteBytes their bytes.
	Reads, Writes, Atomics uint64
	ReadBytes, WriteBytes  uint64
	// Stalls counts how often input had to wait for a store.
	Stalls uint64
	// Messages counts the peer's requests of all kinds, in the order in which it posted them: writes that are in place,
	// sends that were delivered, and reads and atomics that were accepted, which is after all writes before them are in
	// place. A write that had to be durable and could not counts no longer. Posted counts this side's requests. So when
	// a connection has ended and all accesses have been returned, the first Messages of what the peer has Posted were
	// executed, and no others.
	Messages, Posted uint64
}

// NewQueuePair returns one end of a connection in domain d. The two completion queues may be the same; they must have
// space for everything that can be posted.
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
	// one extra entry for the RTR message
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

// State returns the state of the connection.
func (q *QueuePair) State() State { return q.state }

// Err returns the reason why the connection ended: Terminated, Lost, ErrClosed or ErrRejected; nil if it has not.
func (q *QueuePair) Err() error { return q.err }

// Counters returns the counters so far.
func (q *QueuePair) Counters() Counters {
	c := q.counters
	c.Posted = q.sqTail
	return c
}

// Limits returns the negotiated limits on outstanding reads and atomics: from the peer and to the peer.
func (q *QueuePair) Limits() (ird, ord int) { return q.ird, q.ord }

// Settled reports whether all accesses to stores have been returned. After the connection has ended, the driver keeps
// calling Step until this is so.
func (q *QueuePair) Settled() bool { return q.accesses == 0 }

// Quiet reports whether the connection is idle: all input has been executed, answered and put, and everything posted
// has been sent.
func (q *QueuePair) Quiet() bool {
	return q.accesses == 0 && q.irqHead == q.irqTail && q.headTotal == 0 && q.sqNext == q.sqTail &&
		len(q.frame) == 0 && q.termLen == 0
}

// Stalled reports whether input is waiting for a store; the driver must not read more until it is not.
func (q *QueuePair) Stalled() bool { return q.headTotal > 0 }

// Need is the number of contiguous input bytes required before Input can make progress.
func (q *QueuePair) Need() int { return q.need }

// Post adds a request to the send queue. It returns ErrFull while Config.Sends requests are outstanding or completed
// but not polled.
func (q *QueuePair) Post(w Work) error {
	if q.state >= Terminating {
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
			bad = "the atomic operation is unknown"
		case w.Op == wire.AtomicReq && w.Offset%8 != 0:
			bad = "the offset of an atomic must be a multiple of 8"
		}
	case wire.Imm, wire.ImmSE:
		if len(w.Local) > 0 {
			bad = "a message of immediate data has no other data"
		}
	default:
		bad = "the opcode is not a request"
	}
	if uint64(len(w.Local)) > 1<<32-1 {
		bad = "a message must be shorter than 4 GiB"
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

// PostReceive adds a buffer to the receive queue.
func (q *QueuePair) PostReceive(r Receive) error {
	if q.state >= Terminating {
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

// Fresh reports whether a store callback was processed since the last call of Fresh; every method processes callbacks.
// If so, Input may accept more of the waiting input and Fill may have more to send.
func (q *QueuePair) Fresh() bool {
	was := q.fresh
	q.fresh = false
	return was
}

// Step processes store callbacks. Afterwards Input may accept more and Fill may have more to send.
func (q *QueuePair) Step() {
	q.drain()
	q.rest()
}

// Input consumes received bytes, starting where the previous call stopped, and returns the number consumed. The caller
// passes the remainder again, unchanged, followed by more bytes (Need returns how many) or, if Stalled, after Step.
// Input may write to b.
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

// input consumes one startup frame or FPDU and returns its length, or 0.
func (q *QueuePair) input(b []byte) int {
	switch {
	case q.state >= Terminating:
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

// Fill appends whole outgoing frames to b, within its capacity. A capacity of wire.MaxFPDU beyond len(b) always
// suffices for one. The driver calls Sent once the underlying connection has accepted the bytes.
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

// Sent confirms that everything Fill returned was handed to the underlying connection. Sends and writes complete only
// then.
func (q *QueuePair) Sent() {
	q.sqSent = q.sqNext
	if q.state == Terminating && q.termLen == 0 {
		q.state = Closed
	}
	q.retire()
}

// Lost reports that the underlying connection has ended, with io.EOF if the peer closed it.
func (q *QueuePair) Lost(err error) {
	q.drain()
	q.end(Lost{err})
	q.rest()
}

// Close ends the connection locally. Outstanding requests complete with ErrClosed.
func (q *QueuePair) Close() {
	q.drain()
	q.end(ErrClosed)
	q.rest()
}
