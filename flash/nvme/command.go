package nvme

import (
	"bytes"

	"farflash/flash/nbd"
	"farflash/flash/nvme/wire"
)

// longest is the maximum length of a task without data, in bytes.
const longest = 1 << 30

// admit validates a command with n bytes of data, before any of them move.
func (q *Queue) admit(c *command, n uint32) wire.Status {
	s := c.sqe
	if s.Opcode() == wire.Fabrics {
		return q.admitFabrics(c, n)
	}
	switch {
	case q.state == proving:
		return wire.AuthRequired | wire.NoRetry
	case q.state != serving:
		return wire.SequenceError
	case q.id != 0:
		return q.admitIO(c, n)
	case !q.controller.enabled.Load():
		return wire.SequenceError
	}
	if s.Direction() == wire.ToController && n > 0 {
		c.gather, c.length = true, n
		if n > wire.AdminCapsule {
			return wire.WrongSGLLength | wire.NoRetry
		}
	}
	return 0
}

// admitIO validates a command of an I/O queue.
func (q *Queue) admitIO(c *command, n uint32) wire.Status {
	s, x := c.sqe, q.controller
	if !x.enabled.Load() {
		return wire.SequenceError
	}
	switch wire.State(x.state.Load()) {
	case wire.Inaccessible:
		return wire.PathInaccessible
	case wire.Lost:
		return wire.PathLost
	case wire.Changing:
		return wire.PathTransition
	}
	op := s.Opcode()
	if op == wire.Flush && s.NSID() == 0xffffffff {
		return 0
	}
	v, refused := x.use(s.NSID())
	if refused != 0 {
		return refused
	}
	c.space = v
	block := uint64(q.target.cfg.Block)
	bytes := s.Blocks() * block // at most 256 MiB
	switch op {
	case wire.Flush:
		return 0
	case wire.Dataset:
		c.gather, c.length = true, n
		switch {
		case v.ReadOnly:
			return wire.WriteProtected | wire.NoRetry
		case n < wire.RangeSize*(s.Word(10)&0xff+1) || n > wire.AdminCapsule:
			return wire.WrongSGLLength | wire.NoRetry
		}
		return 0
	case wire.Read, wire.Verify:
		c.kind = nbd.Read
	case wire.Compare:
		c.kind = nbd.Read
	case wire.Write:
		c.kind = nbd.Write
	case wire.WriteZeroes:
		c.kind = nbd.Zero
	default:
		return wire.InvalidOpcode | wire.NoRetry
	}
	if c.kind != nbd.Read && v.ReadOnly {
		return wire.WriteProtected | wire.NoRetry
	}
	if s.SLBA() > v.blocks || s.Blocks() > v.blocks-s.SLBA() {
		return wire.OutOfRange | wire.NoRetry
	}
	if s.Direction() != wire.NoData {
		if bytes > maxTransfer {
			return wire.InvalidField | wire.NoRetry
		}
		if uint64(n) != bytes {
			return wire.WrongSGLLength | wire.NoRetry
		}
	}
	c.offset, c.length = s.SLBA()*block, uint32(bytes)
	return 0
}

// proceed does the next part of a command.
func (q *Queue) proceed(c *command) {
	s := c.sqe
	switch {
	case c.queued:
	case c.status != 0:
		q.memory -= c.granted
		c.granted = 0
		q.ended(c)
	case c.gather && c.data == nil:
		q.request(c, c.length)
	case s.Opcode() == wire.Fabrics:
		q.fabrics(c)
	case q.id == 0:
		q.admin(c)
	default:
		q.io(c)
	}
}

// io does the next part of a command of an I/O queue.
func (q *Queue) io(c *command) {
	s := c.sqe
	op := s.Opcode()
	rest := c.length - c.next
	switch op {
	case wire.Read, wire.Verify, wire.Write, wire.Compare:
		n := min(rest, Window)
		free := q.target.cfg.Limits.Queued && (op == wire.Read || op == wire.Verify)
		if !free && !q.charge(c, int(n)) {
			return
		}
		if op == wire.Write || op == wire.Compare {
			q.request(c, n)
			c.filling.charge = int(n)
			return
		}
		t := q.task(c, nbd.Read, n)
		if !free {
			t.charge = int(n)
		}
		c.next += n
		q.starts = append(q.starts, t)
	case wire.WriteZeroes:
		n := min(rest, longest)
		keep := s.Word(12)&wire.Deallocate == 0
		if keep {
			n = min(n, Window) // its pages are all in memory at the same time
		}
		t := q.task(c, nbd.Zero, n)
		t.NoHole, t.Durable = keep, s.Word(12)&wire.FUA != 0
		c.next += n
		q.starts = append(q.starts, t)
	case wire.Flush:
		q.flush(c)
	default:
		q.deallocate(c)
	}
}

// flush flushes the command's namespace, or the next of all.
func (q *Queue) flush(c *command) {
	if c.sqe.NSID() == 0xffffffff {
		v := q.controller.view.Load()
		for {
			if c.ranges >= len(v.spaces) {
				q.respond(c)
				return
			}
			x := v.spaces[c.ranges]
			c.ranges++
			if x != nil && x.Inaccessible {
				q.refuse(c, wire.PathInaccessible)
				return
			}
			if x != nil && x.hold() {
				c.space = x
				break
			}
		}
	} else {
		c.ranges++
	}
	q.starts = append(q.starts, q.task(c, nbd.Flush, 0))
}

// deallocate trims the next part of the ranges of a Dataset Management. All ranges are checked before the first.
func (q *Queue) deallocate(c *command) {
	s, block := c.sqe, uint64(q.target.cfg.Block)
	all := int(s.Word(10)&0xff) + 1
	if s.Word(11)&wire.DatasetDiscard == 0 {
		c.ranges = all // only hints about future use
	}
	if c.ranges == 0 && c.within == 0 {
		for i := range all {
			r := wire.DecodeRange(c.data.B[wire.RangeSize*i:])
			if r.Start > c.space.blocks || uint64(r.Blocks) > c.space.blocks-r.Start {
				c.status = wire.OutOfRange | wire.NoRetry
				q.ended(c)
				return
			}
		}
	}
	for ; c.ranges < all; c.ranges, c.within = c.ranges+1, 0 {
		r := wire.DecodeRange(c.data.B[wire.RangeSize*c.ranges:])
		rest := uint64(r.Blocks)*block - c.within
		if rest == 0 {
			continue
		}
		t := q.task(c, nbd.Trim, 0)
		t.Offset, t.Length = r.Start*block+c.within, uint32(min(rest, longest))
		c.within += uint64(t.Length)
		q.starts = append(q.starts, t)
		return
	}
	q.respond(c)
}

// step continues a command, one of whose tasks is done.
func (q *Queue) step(c *command) {
	switch c.sqe.Opcode() {
	case wire.Write, wire.Compare:
		// The next part begins when the data of the previous one have arrived.
	case wire.Verify, wire.WriteZeroes:
		if c.status == 0 && c.next < c.length {
			q.proceed(c)
			return
		}
	case wire.Flush:
		if c.sqe.NSID() == 0xffffffff {
			c.space.release()
			c.space = nil
			if c.status == 0 {
				q.proceed(c)
				return
			}
		}
	case wire.Dataset:
		if c.status == 0 {
			q.proceed(c)
			return
		}
	}
	q.ended(c)
}

// ended answers a command if none of its parts is outstanding.
func (q *Queue) ended(c *command) {
	if c.tasks == 0 && !c.asked && !c.queued && (c.status != 0 || c.next == c.length) {
		q.respond(c)
	}
}

// Finish takes back a task that its volume has completed.
func (q *Queue) Finish(t *Task) {
	c := t.command
	if st := status(t); st != 0 && c.status == 0 {
		c.status = st
	}
	if q.err != nil { // no more answers are sent
		c.tasks--
		q.release(t)
		q.refund(t)
		q.recycle(t)
		return
	}
	q.finish(t)
	q.resume()
}

// finish ends a task, whose data may not have reached its volume.
func (q *Queue) finish(t *Task) {
	c := t.command
	c.tasks--
	if c.status == 0 {
		switch c.sqe.Opcode() {
		case wire.Fabrics:
			q.said(t)
			return
		case wire.Read:
			q.send(t)
			return
		case wire.Compare:
			if !equal(t) {
				c.status = wire.CompareFailure | wire.NoRetry
			}
		}
	}
	if t.Sent != nil {
		q.reported(c) // of the command's task before
		c.sent, t.Sent = t.Sent, nil
	}
	q.release(t)
	q.refund(t)
	q.recycle(t)
	q.step(c)
	if !c.answered {
		q.reported(c)
	}
}

// equal reports whether the bytes read are those that the host sent.
func equal(t *Task) bool {
	want := t.Payload
	for _, p := range t.Pieces {
		if p.Data != nil {
			if !bytes.Equal(p.Data, want[:len(p.Data)]) {
				return false
			}
			want = want[len(p.Data):]
			continue
		}
		for n := p.Zeros; n > 0; {
			k := min(n, len(zeros))
			if !bytes.Equal(zeros[:k], want[:k]) {
				return false
			}
			want, n = want[k:], n-k
		}
	}
	return true
}
