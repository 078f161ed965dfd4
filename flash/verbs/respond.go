package verbs

import (
	"encoding/binary"

	"farflash/flash/wire"
)

// response is a read or atomic of the peer that must be answered. It stays at its position in the queue until then,
// because accesses point to it.
type response struct {
	read      wire.ReadRequestFields
	atomic    wire.AtomicRequestFields
	isAtomic  bool
	sequence  uint32
	region    *Region // nil for an empty read
	at        uint64  // offset in the region
	semantics Semantics

	sent uint32 // response bytes sent so far
	// For a store: access is the window being sent, which starts at byte start of the message; next is the window after
	// it.
	access *Access
	start  uint32
	next   *Access

	applied  bool // the atomic was performed and found original
	original uint64
	durable  bool // its result is on flash, or need not be
}

// window requests the part of a read's range that starts at byte from of the message. As get, it returns nil if the
// connection has ended.
func (e *response) window(q *QueuePair, from uint32) *Access {
	n := min(e.read.Size-from, uint32(q.cfg.Window))
	return q.get(e.region, e.at+uint64(from), int(n), false, e.semantics)
}

// drop returns the accesses of e to their store.
func (e *response) drop(q *QueuePair) {
	for _, a := range [...]*Access{e.access, e.next} {
		if a != nil {
			a.response = nil
			q.put(e.region, a)
		}
	}
	*e = response{}
}

// answer writes the next segment of the oldest response, if it is ready and fits.
func (q *QueuePair) answer(b []byte) []byte {
	if q.irqHead == q.irqTail {
		return b
	}
	e := &q.irq[q.irqHead%uint64(len(q.irq))]
	if e.isAtomic {
		return q.answerAtomic(b, e)
	}
	if q.ahead(e); q.state >= Terminating {
		return b // and e has been dropped
	}
	left := e.read.Size - e.sent
	k := int(min(left, uint32(q.payload(wire.TaggedLength))))
	if a := e.access; a != nil {
		if a.state == accessFailed {
			q.localError(a.err, e.progress())
			return b
		}
		if k = min(k, a.available()-int(e.sent-e.start)); k == 0 {
			return b
		}
	}
	if !q.fits(b, wire.TaggedLength+k) {
		return b
	}
	// An empty read is answered by one empty segment.
	if k == 0 {
		s := q.begin(&b, wire.TaggedLength)
		wire.TaggedFields{Op: wire.ReadResp, Last: true, STag: e.read.SinkSTag, Offset: e.read.SinkOffset}.Put(s)
		b = q.framer.End(b)
		q.pop()
		return b
	}
	// The region may have been deregistered since the request was checked.
	r := e.region
	r.mu.RLock()
	if r.dead {
		r.mu.RUnlock()
		t := e.progress()
		t.Fault = wire.FaultReadSTag
		q.terminate(t)
		return b
	}
	s := q.begin(&b, wire.TaggedLength+k)
	last := uint32(k) == left
	wire.TaggedFields{Op: wire.ReadResp, Last: last, STag: e.read.SinkSTag,
		Offset: e.read.SinkOffset + uint64(e.sent)}.Put(s)
	p := s[wire.TaggedLength:]
	if e.access != nil {
		e.access.copyOut(p, int(e.sent-e.start))
	} else {
		copy(p, r.cfg.Memory[e.at+uint64(e.sent):])
	}
	r.mu.RUnlock()
	b = q.framer.End(b)
	q.counters.ReadBytes += uint64(k)
	e.sent += uint32(k)
	q.answering = !last
	if e.access != nil {
		q.slide(e)
	}
	if last && q.state < Terminating { // otherwise end has emptied the queue
		q.pop()
	}
	return b
}

// ahead requests the window after the current one, so that the store works on one while the other is being sent. Stores
// provide pages in request order, so the current window is not delayed by this request.
func (q *QueuePair) ahead(e *response) {
	if a := e.access; a != nil && e.next == nil && a.state != accessFailed {
		if end := e.start + uint32(a.Length); end < e.read.Size {
			e.next = e.window(q, end)
		}
	}
}

// slide returns a window that has been sent and advances to the next.
func (q *QueuePair) slide(e *response) {
	a := e.access
	if end := e.start + uint32(a.Length); e.sent == end {
		e.access, e.next, e.start = e.next, nil, end
		q.put(e.region, a)
		q.ahead(e)
	}
}

// pop removes the answered request. The send queue goes next, so that responses do not starve it.
func (q *QueuePair) pop() {
	q.irq[q.irqHead%uint64(len(q.irq))] = response{}
	q.irqHead++
	q.answering, q.turn = false, true
}

// progress describes, for a Terminate, a Read Request that failed midway: its headers, advanced to the failing position
// (RFC 5040, 4.8).
func (e *response) progress() wire.TerminateFields {
	h, r := make([]byte, wire.UntaggedLength), make([]byte, wire.ReadRequestLength)
	op := wire.ReadReq
	if e.isAtomic {
		op, r = wire.AtomicReq, nil
	} else {
		f := e.read
		f.SinkOffset += uint64(e.sent)
		f.SourceOffset += uint64(e.sent)
		f.Size -= e.sent
		f.Put(r)
	}
	wire.UntaggedFields{Op: op, Last: true, Queue: wire.QueueRead, Sequence: e.sequence}.Put(h)
	n := wire.UntaggedLength + wire.ReadRequestLength
	if e.isAtomic {
		n = wire.UntaggedLength + wire.AtomicRequestLength
	}
	return wire.TerminateFields{Header: h, Length: uint16(n), Request: r}
}

// answerAtomic performs the atomic, once, and answers it when its result is durable and b has space; an earlier answer
// would report a result that a crash can undo.
func (q *QueuePair) answerAtomic(b []byte, e *response) []byte {
	const n = wire.UntaggedLength + wire.AtomicResponseLength
	if !e.applied && !q.apply(e) {
		return b
	}
	if !e.durable || !q.fits(b, n) {
		return b
	}
	s := q.begin(&b, n)
	q.untagged(s, wire.AtomicResp, true, 0, 0)
	wire.AtomicResponseFields{ID: e.atomic.ID, Original: e.original}.Put(s[wire.UntaggedLength:])
	b = q.framer.End(b)
	q.pop()
	return b
}

// apply performs the atomic at the head of the queue, if its page is ready. Memory is little-endian. The adapter's lock
// is held around the region's: the first excludes other atomics (RFC 7306, 5.3), the second Deregister.
func (q *QueuePair) apply(e *response) bool {
	a, r := e.access, e.region
	var p []byte
	switch {
	case a == nil:
		p = r.cfg.Memory[e.at:]
	case a.state == accessGetting:
		return false
	case a.state == accessFailed:
		q.localError(a.err, e.progress())
		return false
	default:
		// Eight aligned bytes lie in one page.
		p = a.pages[0]
	}
	q.adapter.atomics.Lock()
	r.mu.RLock()
	dead := r.dead
	var changed uint64
	if !dead {
		e.original = binary.LittleEndian.Uint64(p)
		changed = e.atomic.Apply(e.atomic.Op, e.original)
		if changed != e.original {
			binary.LittleEndian.PutUint64(p, changed)
		}
	}
	r.mu.RUnlock()
	q.adapter.atomics.Unlock()
	if dead {
		t := e.progress()
		t.Fault = wire.FaultReadSTag
		q.terminate(t)
		return false
	}
	e.applied, e.durable = true, a == nil || !a.barrier
	if a != nil {
		// An atomic that stores the value it found leaves the page clean.
		a.Changed = changed != e.original
		if e.durable { // the response need not wait for the flash
			e.access = nil
		}
		q.put(r, a)
	}
	return true
}
