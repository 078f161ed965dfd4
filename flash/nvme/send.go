package nvme

import (
	"farflash/flash/nbd"
	"farflash/flash/nvme/wire"
)

// maxHead is the length of the longest headers of a task: of C2HData with padding, its digest and a CapsuleResp.
const maxHead = 4*(wire.MaxAlign+1) + 2*wire.DigestSize + wire.DataSize

// completion is the completion queue entry of a command.
func (q *Queue) completion(c *command) wire.CQE {
	head := uint16(q.head)
	if q.unbounded {
		head = 0xffff
	}
	return wire.CQE{Result: c.result, Head: head, Queue: q.id, CID: c.sqe.CID(), Status: c.status}
}

// respond answers a command without data.
func (q *Queue) respond(c *command) {
	t := q.take(c)
	c.answered = true
	a := &t.answer
	a.Head = wire.AppendResponse(a.Head, q.digests, q.completion(c))
	a.Vec = append(a.Vec, a.Head)
	a.Last = true
	q.push(t)
}

// push queues the output of a task of a command.
func (q *Queue) push(t *Task) {
	if t.answer.Last {
		q.account(t.command)
	}
	q.out.Push(&t.answer)
}

// account counts a command that is answered.
func (q *Queue) account(c *command) {
	x := q.controller
	if x == nil {
		return
	}
	k := &q.counters
	if c.status != 0 {
		k.failed.Add(1)
		e := wire.ErrorEntry{Queue: q.id, CID: c.sqe.CID(), Status: c.status, NSID: c.sqe.NSID()}
		if q.id != 0 {
			e.SLBA = c.sqe.SLBA()
		}
		q.target.log(x, e)
		return
	}
	if q.id == 0 {
		return
	}
	switch c.sqe.Opcode() {
	case wire.Read, wire.Compare:
		k.reads.Add(1)
		k.read.Add(uint64(c.length))
	case wire.Write:
		k.writes.Add(1)
		k.written.Add(uint64(c.length))
	}
}

// send sends the data of a read. Its last part also answers the command, with the flag Success if the host does not
// need the head of the queue (TCP 3.3.2.2).
func (q *Queue) send(t *Task) {
	c, a := t.command, &t.answer
	last := c.next == c.length
	flags := uint8(0)
	if last {
		flags = wire.FlagLast
		if q.unbounded {
			flags |= wire.FlagSuccess
		}
	}
	a.Lent = true
	at := uint32(t.Offset - c.offset)
	a.Head = wire.AppendData(a.Head[:0], wire.C2HData, q.digests, flags, q.align,
		wire.Transfer{Command: c.sqe.CID(), Offset: at, Length: t.Length})
	q.fill(t, t.Pieces, last && !q.unbounded)
	a.Last = last
	q.push(t)
	if !last {
		q.proceed(c)
	}
}

// fill completes an output: after the header in head come the pieces, then their digest and a response if asked.
func (q *Queue) fill(t *Task, pieces []nbd.Piece, respond bool) {
	a := &t.answer
	n, sum := len(a.Head), uint32(0)
	a.Vec = append(a.Vec[:0], a.Head)
	for _, p := range pieces {
		if p.Data != nil {
			if q.digests.Data {
				sum = wire.Digest(sum, p.Data)
			}
			a.Vec = append(a.Vec, p.Data)
			continue
		}
		for k := p.Zeros; k > 0; k -= len(zeros) {
			z := zeros[:min(k, len(zeros))]
			if q.digests.Data {
				sum = wire.Digest(sum, z)
			}
			a.Vec = append(a.Vec, z)
		}
	}
	if q.digests.Data {
		a.Head = append(a.Head, byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24))
	}
	if respond {
		a.Head = wire.AppendResponse(a.Head, q.digests, q.completion(t.command))
	}
	if len(a.Head) > n {
		a.Vec = append(a.Vec, a.Head[n:])
	}
	a.Vec[0] = a.Head[:n] // it is the same array, unless it has grown
}

// give sends the answer to an admin command: the data from b, padded with zeros, as long as the host asks for.
func (q *Queue) give(c *command, b []byte, n int) {
	t := q.take(c)
	a := &t.answer
	k := min(n, len(b))
	data := a.Memory(k)
	copy(data, b)
	a.Head = wire.AppendData(a.Head, wire.C2HData, q.digests, wire.FlagLast, q.align,
		wire.Transfer{Command: c.sqe.CID(), Length: uint32(n)})
	pieces := append(t.Pieces[:0], nbd.Piece{Data: data})
	if n > k {
		pieces = append(pieces, nbd.Piece{Zeros: n - k})
	}
	q.fill(t, pieces, true)
	clear(pieces)
	t.Pieces = pieces[:0]
	a.Last = true
	q.push(t)
}

// Vectors appends the output, at most `most` slices.
func (q *Queue) Vectors(into [][]byte, most int) [][]byte { return q.out.Vectors(into, most) }

// Sent reports that n bytes of Vectors have been sent.
func (q *Queue) Sent(n int) {
	q.out.Sent(n, q.sent)
	q.resume()
}

// sent finishes a task whose output has been sent completely.
func (q *Queue) sent(t *Task) {
	c, last := t.command, t.answer.Last
	q.release(t)
	q.refund(t)
	q.recycle(t)
	if last {
		q.drop(c)
	}
}

// drop forgets a command that is answered.
func (q *Queue) drop(c *command) {
	if c.space != nil {
		c.space.release()
	}
	if c.data != nil {
		c.data.Put()
	}
	q.reported(c)
	id := c.sqe.CID()
	q.idents[id/64] &^= 1 << (id % 64)
	*c = command{slot: c.slot}
	q.active--
	q.free = append(q.free, c.slot)
}

// reported calls the Sent of the task on which the answer to a command rests.
func (q *Queue) reported(c *command) {
	if c.sent != nil {
		c.sent(q.err == nil)
		c.sent = nil
	}
}

// release returns the volume's memory.
func (q *Queue) release(t *Task) {
	if t.space != nil && t.Kind == nbd.Read && t.Err == 0 && len(t.Pieces) > 0 {
		t.space.export.Volume.Release(&t.Task)
		clear(t.Pieces)
		t.Pieces = t.Pieces[:0]
	}
	t.answer.Lent = false
}

// recycle keeps a task for reuse.
func (q *Queue) recycle(t *Task) {
	t.Recycle(q.err == nil)
	t.answer.Clear()
	t.Payload, t.command, t.space, t.charge, t.compute, t.said = nil, nil, nil, 0, nil, nil
	clear(t.Pieces)
	t.Pieces = t.Pieces[:0]
	q.tasks = append(q.tasks, t)
}

// Detach copies pending output out of the volumes' memory and releases that memory, so that a host that does not read
// cannot hold up others.
func (q *Queue) Detach() { q.out.Detach(q.release) }
