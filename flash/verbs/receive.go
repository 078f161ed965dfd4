package verbs

import "farflash/flash/wire"

// Faults by flaw: for a Write (RFC 5041, 7.2, which has no code for a missing right) and for a Read or Atomic Request
// (RFC 5040, figure 9).
var (
	taggedFaults = [...]wire.Fault{flawSTag: wire.FaultTaggedSTag, flawDomain: wire.FaultTaggedDomain,
		flawRights: wire.FaultTaggedSTag, flawBounds: wire.FaultTaggedBounds, flawWrap: wire.FaultTaggedWrap}
	readFaults = [...]wire.Fault{flawSTag: wire.FaultReadSTag, flawDomain: wire.FaultReadDomain,
		flawRights: wire.FaultReadRights, flawBounds: wire.FaultReadBounds, flawWrap: wire.FaultReadWrap}
)

// segment handles one segment and reports whether it is finished. It is not finished while it waits for a store; the
// caller then passes it again. On return, a fault has ended the connection.
func (q *QueuePair) segment(s wire.Segment) bool {
	op := wire.Op(0xFF)
	if len(s) >= wire.SegmentControl {
		op = s.Op()
	}
	switch {
	case !s.Whole():
		q.fail(wire.FaultUnspecified, nil)
		return true
	case s.DDPVersion() != wire.Version && s.IsTagged():
		q.fail(wire.FaultTaggedVersion, s)
		return true
	case s.DDPVersion() != wire.Version:
		q.fail(wire.FaultVersion, s)
		return true
	case s.RDMAPVersion() != wire.Version:
		q.fail(wire.FaultRDMAPVersion, s)
		return true
	case !op.Valid() || op.Tagged() != s.IsTagged():
		q.fail(wire.FaultOpcode, s)
		return true
	case q.syncs > 0 && (q.barrier || op != wire.Write):
		// FlashNet, 4.4: no later operation starts until the data are on flash. Only further segments of the same
		// message proceed.
		return false
	case q.putting > 0 && op.Queue() == wire.QueueSend && !s.IsTagged():
		// The receiver of a message may ask the store to make the writes before it durable, so the store must have
		// them.
		return false
	}
	q.barrier = false
	done, request := true, s.Last()
	switch op {
	case wire.Write:
		done = q.write(s)
	case wire.ReadResp:
		request = false
		q.readResponse(s)
	default:
		request = request && op != wire.AtomicResp
		q.untaggedSegment(s, op)
	}
	if done && request && q.state < Terminating {
		q.counters.Messages++
	}
	// Only the first message can be the RTR message (RFC 6581, 9.2).
	if done {
		q.rtr = false
	}
	return done
}

// untaggedSegment checks a segment's DDP queue and sequence number, and passes it on by opcode. The messages of a queue
// are numbered from 1 without gaps, and all segments of a message have its number (RFC 5041, 4.3).
func (q *QueuePair) untaggedSegment(s wire.Segment, op wire.Op) {
	h := wire.Untagged(s)
	n := h.Queue()
	switch {
	case n >= wire.Queues:
		q.fail(wire.FaultQueue, s)
		return
	case n != op.Queue():
		q.fail(wire.FaultOpcode, s)
		return
	case h.Sequence() != q.sequence[n]:
		q.fail(wire.FaultSequence, s)
		return
	}
	switch op {
	case wire.ReadReq:
		q.readRequest(s)
	case wire.AtomicReq:
		q.atomicRequest(s)
	case wire.AtomicResp:
		q.atomicResponse(s)
	case wire.Term:
		// The peer is gone after its Terminate, so no Terminate answers it.
		f := wire.FaultUnspecified
		if len(s.Payload()) >= wire.TerminateControl {
			f = wire.Terminate(s.Payload()).Fault()
		}
		q.end(Terminated{Fault: f, Remote: true})
	default:
		q.message(s, op)
	}
	if s.Last() {
		q.sequence[n]++
	}
}

// write places a segment of an RDMA Write. Each segment is checked on its own, before any of its bytes moves (RFC 5042,
// 6.2.1).
func (q *QueuePair) write(s wire.Segment) bool {
	p := s.Payload()
	if len(p) == 0 { // the STag and offset of an empty segment are not checked
		q.barrier = s.Last() && q.syncs > 0
		return true
	}
	// A segment that was stalled has been checked, and its pages requested.
	if q.writing == nil {
		h := wire.Tagged(s)
		r, f := q.check(h.STag(), h.Offset(), uint32(len(p)), RemoteWrite)
		if f != noFault {
			q.fail(taggedFaults[f], s)
			return true
		}
		at := h.Offset() - r.cfg.Base
		if r.cfg.Store == nil {
			// Deregister takes the write lock, so no byte moves after it. The region can have died since check.
			r.mu.RLock()
			dead := r.dead
			if !dead {
				copy(r.cfg.Memory[at:], p)
			}
			r.mu.RUnlock()
			if dead {
				q.fail(wire.FaultTaggedSTag, s)
				return true
			}
			q.wrote(s, len(p))
			return true
		}
		if q.writing, q.writingTo = q.get(r, at, len(p), true, r.semantics(h.STag())), r; q.writing == nil {
			return true // the connection has ended
		}
	}
	a, r := q.writing, q.writingTo
	if a.state == accessGetting {
		return false
	}
	q.writing = nil
	if a.state == accessFailed {
		err := a.err
		q.put(r, a)
		q.localError(err, wire.TerminateFields{Header: s.Header(), Length: uint16(len(s))})
		return true
	}
	r.mu.RLock()
	dead := r.dead
	if !dead {
		a.copyIn(p)
	}
	r.mu.RUnlock()
	// Counted before put, because the store can call Done inside it.
	if !dead && a.Sync {
		a.barrier = true
		q.syncs++
	}
	q.put(r, a)
	if dead {
		q.fail(wire.FaultTaggedSTag, s)
		return true
	}
	q.wrote(s, len(p))
	return true
}

// wrote counts a placed segment. After the last one of a message, later writes wait for outstanding syncs as well;
// until then its own segments proceed.
func (q *QueuePair) wrote(s wire.Segment, n int) {
	q.barrier = s.Last() && q.syncs > 0
	q.counters.Writes++
	q.counters.WriteBytes += uint64(n)
}

// finished handles the completion of a Put. The error of an access that changed no byte is ignored, because no data are
// lost.
func (q *QueuePair) finished(a *Access, err error) {
	if a.barrier {
		q.syncs--
	}
	if a.response != nil {
		a.response.durable, a.response.access = true, nil
	}
	if err != nil && a.Changed {
		// Nothing was accepted after it.
		if a.barrier && q.barrier && !q.undone {
			q.undone = true
			q.counters.Messages--
		}
		q.localError(err, wire.TerminateFields{})
	}
}

// single checks that a message consists of one segment of exactly n bytes.
func (q *QueuePair) single(s wire.Segment, n int) bool {
	p := s.Payload()
	switch {
	case wire.Untagged(s).Offset() != 0:
		q.fail(wire.FaultOffset, s)
	case len(p) > n:
		q.fail(wire.FaultTooLong, s)
	case len(p) < n || !s.Last():
		q.fail(wire.FaultUnspecified, s)
	default:
		return true
	}
	return false
}

// place returns the next free entry of the queue of the peer's reads and atomics. The queue has IRD entries. A peer
// that exceeds them loses its connection (RFC 5042, 6.4.3.3).
func (q *QueuePair) place(s wire.Segment) *response {
	if q.irqTail-q.irqHead >= uint64(len(q.irq)) {
		q.fail(wire.FaultNoBuffer, s)
		return nil
	}
	return &q.irq[q.irqTail%uint64(len(q.irq))]
}

// readRequest queues a Read Request of the peer and asks the store for its first window. The STag and offset of an
// empty read are not checked (RFC 5040, 5.2.1).
func (q *QueuePair) readRequest(s wire.Segment) {
	if !q.single(s, wire.ReadRequestLength) {
		return
	}
	e := q.place(s)
	if e == nil {
		return
	}
	f := wire.ReadRequest(s.Payload()).Fields()
	*e = response{read: f, sequence: wire.Untagged(s).Sequence()}
	if f.Size > 0 { // the source of an empty read is not checked
		r, flaw := q.check(f.SourceSTag, f.SourceOffset, f.Size, RemoteRead)
		if flaw != noFault {
			q.fail(readFaults[flaw], s)
			return
		}
		e.region, e.at, e.semantics = r, f.SourceOffset-r.cfg.Base, r.semantics(f.SourceSTag)
	}
	q.irqTail++
	q.counters.Reads++
	if e.region != nil && e.region.cfg.Store != nil {
		e.access = e.window(q, 0)
	}
}

// atomicRequest queues an Atomic Request of the peer (RFC 7306, 5.2.1), which apply performs once all earlier responses
// are sent. A synchronous one holds up all later input until its result is durable, Writes included.
func (q *QueuePair) atomicRequest(s wire.Segment) {
	if !q.single(s, wire.AtomicRequestLength) {
		return
	}
	e := q.place(s)
	if e == nil {
		return
	}
	f := wire.AtomicRequest(s.Payload()).Fields()
	if !f.Op.Valid() {
		q.fail(wire.FaultOpcode, s)
		return
	}
	r, flaw := q.check(f.STag, f.Offset, 8, RemoteAtomic)
	switch {
	case flaw != noFault:
		q.fail(readFaults[flaw], s)
		return
	case f.Offset%8 != 0:
		q.fail(wire.FaultStream, s)
		return
	}
	*e = response{isAtomic: true, atomic: f, sequence: wire.Untagged(s).Sequence(), region: r,
		at: f.Offset - r.cfg.Base}
	q.irqTail++
	q.counters.Atomics++
	if r.cfg.Store != nil {
		if e.access = q.get(r, e.at, 8, true, r.semantics(f.STag)); e.access == nil {
			return // the connection has ended
		}
		if e.access.Sync {
			e.access.barrier, e.access.response = true, e
			q.syncs++
			q.barrier = true
		}
	}
}

// readResponse places a segment of the response to the oldest read. It accepts only the exact continuation of that
// response, so a read never opens local memory to the peer. The sink STag names no region (RFC 5040, 5.2.2; RFC 5042,
// 6.2.1).
func (q *QueuePair) readResponse(s wire.Segment) {
	w := q.oldest()
	if w == nil || w.Op != wire.ReadReq {
		q.fail(wire.FaultOpcode, s)
		return
	}
	p, h := s.Payload(), wire.Tagged(s)
	left := uint32(len(w.Local)) - w.placed
	switch {
	case len(p) == 0 && (left > 0 || !s.Last()):
		q.fail(wire.FaultTaggedBounds, s)
	case len(p) == 0:
		q.answered(w)
	case h.STag() != q.sink:
		q.fail(wire.FaultTaggedSTag, s)
	case h.Offset() != w.sink+uint64(w.placed) || uint64(len(p)) > uint64(left) || s.Last() != (uint32(len(p)) == left):
		q.fail(wire.FaultTaggedBounds, s)
	default:
		w.placed += uint32(copy(w.Local[w.placed:], p))
		if s.Last() {
			q.answered(w)
		}
	}
}

// atomicResponse completes the oldest atomic. Its ID is the low half of the request's position in the send queue.
func (q *QueuePair) atomicResponse(s wire.Segment) {
	if !q.single(s, wire.AtomicResponseLength) {
		return
	}
	w, h := q.oldest(), wire.AtomicResponse(s.Payload())
	if w == nil || w.Op != wire.AtomicReq {
		q.fail(wire.FaultOpcode, s)
		return
	}
	if h.ID() != uint32(q.sqAwait) {
		q.fail(wire.FaultUnspecified, s)
		return
	}
	w.original = h.Original()
	if len(w.Local) >= 8 {
		putImmediate(w.Local, w.original)
	}
	q.answered(w)
}

// message places a segment of a Send, or handles an Immediate. A receive is consumed by the last segment of a message;
// placed counts the bytes of those before.
func (q *QueuePair) message(s wire.Segment, op wire.Op) {
	p, h := s.Payload(), wire.Untagged(s)
	if q.rtr && op == wire.Send && len(p) == 0 && s.Last() && h.Offset() == 0 {
		return // RFC 6581, 9.2: it only signals that the initiator is ready
	}
	immediate := op == wire.Imm || op == wire.ImmSE
	switch {
	case q.filling && op != q.fillingOp:
		q.fail(wire.FaultOpcode, s)
		return
	case immediate && !q.single(s, wire.ImmediateLength):
		return
	case q.rqHead == q.rqTail:
		q.fail(wire.FaultNoBuffer, s)
		return
	case h.Offset() != q.placed:
		q.fail(wire.FaultOffset, s)
		return
	}
	r := &q.rq[q.rqHead%uint64(len(q.rq))]
	c := Completion{ID: r.ID, QP: q, Op: op, Receive: true}
	if immediate {
		c.Immediate, c.Length = getImmediate(p), wire.ImmediateLength
	} else {
		if len(p) > len(r.Local)-int(q.placed) {
			q.fail(wire.FaultTooLong, s)
			return
		}
		q.placed += uint32(copy(r.Local[q.placed:], p))
		c.Length = q.placed
	}
	if q.filling, q.fillingOp = !s.Last(), op; q.filling {
		return
	}
	if op.Invalidates() {
		// The region must grant the right, and belong to the connection's domain and scope (RFC 5042, 6.4.5).
		v := q.adapter.lookup(h.Invalidate() >> 8)
		if v == nil || v.domain != q.domain || v.cfg.Scope != nil && v.cfg.Scope != q ||
			v.cfg.Rights&RemoteInvalidate == 0 {
			q.fail(wire.FaultInvalidate, s)
			return
		}
		v.Deregister()
		c.Invalidated = h.Invalidate()
	}
	q.placed = 0
	*r = Receive{}
	q.rqHead++
	q.recvCQ.add(c)
}
