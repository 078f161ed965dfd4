package verbs

import "farflash/flash/wire"

// fail ends the connection with a Terminate for a fault of the peer, found in segment s, or in no segment if s is
// empty. Outstanding requests complete with it.
func (q *QueuePair) fail(f wire.Fault, s wire.Segment) {
	t := wire.TerminateFields{Fault: f}
	if s.Whole() && f.Layer != wire.LayerMPA {
		t.Header, t.Length = s.Header(), uint16(len(s))
		// A refused Read Request is returned in the Terminate (RFC 5040, figure 10).
		if f.Layer == wire.LayerRDMAP && f.Type == 1 && s.Op() == wire.ReadReq &&
			len(s.Payload()) >= wire.ReadRequestLength {
			t.Request = s.Payload()[:wire.ReadRequestLength]
		}
	}
	q.terminate(t)
}

// terminate ends the connection and queues a Terminate for the peer. Only the first fault counts.
func (q *QueuePair) terminate(t wire.TerminateFields) {
	if q.state >= Terminating {
		return
	}
	n := t.Put(q.term[:])
	q.end(Terminated{Fault: t.Fault})
	q.termLen = n
	q.state = Terminating
}

// end ends the connection without notifying the peer: everything outstanding completes with err, and all accesses are
// returned to their stores. An access that is still getting stays with the queue pair as an orphan until the store has
// answered.
func (q *QueuePair) end(err error) {
	if q.state >= Terminating {
		q.state, q.termLen = Closed, 0
		return
	}
	q.state, q.err = Closed, err
	q.head, q.headTotal = 0, 0
	if q.writing != nil {
		a := q.writing
		q.writing = nil
		q.put(q.writingTo, a)
	}
	for ; q.irqHead < q.irqTail; q.irqHead++ {
		q.irq[q.irqHead%uint64(len(q.irq))].drop(q)
	}
	for ; q.sqHead < q.sqTail; q.sqHead++ {
		w := &q.sq[q.sqHead%uint64(len(q.sq))]
		if !w.internal {
			q.complete(w, err)
		}
		*w = work{}
	}
	for ; q.rqHead < q.rqTail; q.rqHead++ {
		r := &q.rq[q.rqHead%uint64(len(q.rq))]
		q.recvCQ.add(Completion{ID: r.ID, QP: q, Op: wire.Send, Receive: true, Err: err})
		*r = Receive{}
	}
	// The send queue is empty now: Sent and late responses find no work.
	q.sqSent, q.sqNext, q.waiting = q.sqTail, q.sqTail, 0
	q.last = nil
	q.unwatch()
	q.sendCQ.leave(&q.send)
	q.recvCQ.leave(&q.receive)
}

// localError reports a store error and ends the connection, because data that the peer has received or believes written
// may be wrong.
func (q *QueuePair) localError(err error, t wire.TerminateFields) {
	if q.cfg.Notice != nil {
		q.cfg.Notice(err)
	}
	t.Fault, t.Request = wire.FaultStream, nil
	q.terminate(t)
}
