package verbs

import "farflash/flash/wire"

// work is an entry of the send queue.
type work struct {
	Work
	internal bool   // the RTR message: no completion, not counted against Sends
	done     bool   // answered, or completely sent
	placed   uint32 // bytes of a read's response received
	sink     uint64 // sink offset of the Read Request
	original uint64
}

// reads reports whether the work is completed by a response.
func (w *work) reads() bool { return w.Op == wire.ReadReq || w.Op == wire.AtomicReq }

// pageRun is the granularity to which payloads of long segments are rounded down, so that they carry whole pages.
const pageRun = 4096

// payload is the maximum payload of a segment with a header of this length.
func (q *QueuePair) payload(header int) int {
	n := min(q.cfg.MaxSegment, wire.Limit(q.framer.Markers)) - header
	if n >= 2*pageRun {
		n &^= pageRun - 1
	}
	return n
}

// fill writes frames until b is full or there is no more to send. It never interleaves messages, because the receiver
// separates tagged messages by order alone.
func (q *QueuePair) fill(b []byte) []byte {
	for {
		// A Terminate is the last message, and the messages still queued have completed with its fault.
		if q.termLen > 0 {
			if !q.heard && !q.cfg.Initiator {
				// A responder must not send an FPDU before it has received one.
				q.termLen, q.state = 0, Closed
				return b
			}
			n := wire.UntaggedLength + q.termLen
			if !q.fits(b, n) {
				return b
			}
			s := q.begin(&b, n)
			q.untagged(s, wire.Term, true, 0, 0)
			copy(s[wire.UntaggedLength:], q.term[:q.termLen])
			b = q.framer.End(b)
			q.termLen = 0
			return b
		}
		if q.state != Running || !q.heard {
			return b
		}
		before := len(b)
		// Responses and work requests alternate; a partially sent message continues first.
		switch {
		case q.answering:
			b = q.answer(b)
		case q.sqOffset > 0:
			b = q.transmit(b)
		case q.turn:
			if b = q.transmit(b); len(b) == before {
				b = q.answer(b)
			}
		default:
			if b = q.answer(b); len(b) == before {
				b = q.transmit(b)
			}
		}
		if len(b) == before && q.termLen == 0 {
			return b
		}
	}
}

// fits reports whether an FPDU with a segment of n bytes fits in b.
func (q *QueuePair) fits(b []byte, n int) bool { return cap(b)-len(b) >= n+q.framer.Overhead(n) }

// begin starts the FPDU of an n-byte segment and returns the segment's bytes.
func (q *QueuePair) begin(b *[]byte, n int) []byte {
	*b = q.framer.Begin(*b, n)
	q.counters.SegmentsOut++
	return (*b)[len(*b)-n:]
}

// untagged writes an untagged header with the queue's current sequence number, and advances the number after the last
// segment.
func (q *QueuePair) untagged(s []byte, op wire.Op, last bool, offset, invalidate uint32) {
	n := op.Queue()
	wire.UntaggedFields{Op: op, Last: last, Invalidate: invalidate, Queue: n, Sequence: q.numbers[n],
		Offset: offset}.Put(s)
	if last {
		q.numbers[n]++
	}
}

// transmit writes the next segment of the send queue, if it is allowed to go and fits.
func (q *QueuePair) transmit(b []byte) []byte {
	if q.sqNext == q.sqTail {
		return b
	}
	w := &q.sq[q.sqNext%uint64(len(q.sq))]
	if w.reads() && q.ord == 0 { // the peer accepts none
		q.fail(wire.FaultIRD, nil)
		return b
	}
	// The ORD or a fence holds this request back, and all requests behind it, because they are sent in posting order.
	if w.reads() && q.waiting >= q.ord || w.Fence && q.waiting > 0 {
		return b
	}
	total := uint32(len(w.Local))
	switch w.Op {
	case wire.ReadReq:
		const n = wire.UntaggedLength + wire.ReadRequestLength
		if !q.fits(b, n) {
			return b
		}
		s := q.begin(&b, n)
		q.untagged(s, wire.ReadReq, true, 0, 0)
		// Each read has a range of sink offsets of its own, so no response fits another read.
		w.sink = q.sinkNext
		q.sinkNext += uint64(total)
		wire.ReadRequestFields{SinkSTag: q.sink, SinkOffset: w.sink, Size: total, SourceSTag: w.STag,
			SourceOffset: w.Offset}.Put(s[wire.UntaggedLength:])
		q.waiting++
	case wire.AtomicReq:
		const n = wire.UntaggedLength + wire.AtomicRequestLength
		if !q.fits(b, n) {
			return b
		}
		s := q.begin(&b, n)
		q.untagged(s, wire.AtomicReq, true, 0, 0)
		o := w.Operand
		if w.Atomic == wire.FetchAdd {
			o.Compare, o.CompareMask = 0, ^uint64(0)
		}
		wire.AtomicRequestFields{Op: w.Atomic, ID: uint32(q.sqNext), STag: w.STag, Offset: w.Offset,
			Operand: o}.Put(s[wire.UntaggedLength:])
		q.waiting++
	case wire.Imm, wire.ImmSE:
		const n = wire.UntaggedLength + wire.ImmediateLength
		if !q.fits(b, n) {
			return b
		}
		s := q.begin(&b, n)
		q.untagged(s, w.Op, true, 0, 0)
		putImmediate(s[wire.UntaggedLength:], w.Immediate)
		w.done = true
	default:
		header := wire.UntaggedLength
		if w.Op == wire.Write {
			header = wire.TaggedLength
		}
		k := min(total-q.sqOffset, uint32(q.payload(header)))
		if !q.fits(b, header+int(k)) {
			return b
		}
		s := q.begin(&b, header+int(k))
		last := q.sqOffset+k == total
		if w.Op == wire.Write {
			wire.TaggedFields{Op: wire.Write, Last: last, STag: w.STag, Offset: w.Offset + uint64(q.sqOffset)}.Put(s)
		} else {
			q.untagged(s, w.Op, last, q.sqOffset, w.Invalidate)
		}
		copy(s[header:], w.Local[q.sqOffset:q.sqOffset+k])
		b = q.framer.End(b)
		q.sqOffset += k
		if last {
			w.done = true
			q.sqOffset = 0
			q.sqNext++
			q.turn = false
		}
		return b
	}
	b = q.framer.End(b)
	q.sqNext++
	q.turn = false
	return b
}

// retire completes work in posting order. Below sqSent the connection has accepted all bytes, so Local is no longer
// needed. A read or atomic also waits for its response.
func (q *QueuePair) retire() {
	for q.sqHead < q.sqSent {
		w := &q.sq[q.sqHead%uint64(len(q.sq))]
		if !w.done {
			return
		}
		q.sqHead++
		if !w.internal {
			q.complete(w, nil)
		}
		*w = work{}
	}
}

// complete reports the end of a request. A quiet success returns its completion queue entry at once.
func (q *QueuePair) complete(w *work, err error) {
	if w.Quiet && err == nil {
		q.send.held.Add(-1)
		return
	}
	c := Completion{ID: w.ID, QP: q, Op: w.Op, Err: err, Original: w.original}
	if err == nil {
		c.Length = uint32(len(w.Local))
	}
	q.sendCQ.add(c)
}

// oldest returns the read or atomic that is answered next, or nil if there is none. Responses arrive in the order of
// the requests.
func (q *QueuePair) oldest() *work {
	q.sqAwait = max(q.sqAwait, q.sqHead)
	for ; q.sqAwait < q.sqNext; q.sqAwait++ {
		if w := &q.sq[q.sqAwait%uint64(len(q.sq))]; w.reads() && !w.done {
			return w
		}
	}
	return nil
}

// answered finishes w, the oldest unanswered read or atomic.
func (q *QueuePair) answered(w *work) {
	w.done = true
	q.waiting--
	// A response implies that the peer received the request and everything before it.
	q.sqSent = max(q.sqSent, q.sqAwait+1)
	q.retire()
}

// putImmediate and getImmediate convert immediate data, eight bytes in network order.
func putImmediate(b []byte, v uint64) {
	for i := range 8 {
		b[i] = byte(v >> (56 - 8*i))
	}
}

func getImmediate(b []byte) (v uint64) {
	for _, x := range b[:8] {
		v = v<<8 | uint64(x)
	}
	return v
}
