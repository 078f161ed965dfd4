package nvmf

import (
	"farflash/block"
	"farflash/units"
)

// transmitter is a target and its transmit queue.
type transmitter struct {
	machine
	drives  []int32
	used    units.Bytes
	alone   units.Bytes // an answer that is larger than the queue, which has it to itself
	waiting list        // ended commands that find no room
	memory  memory
}

// finished: a drive's completion is in the target's hands; what it answers goes to the transmit queue.
func (s *System) finished(c int32) {
	x := s.commands.At(c)
	if s.protocol == Flows && (x.req.Op != block.Read || x.status != block.OK) {
		// Nothing goes back: the request ends with the drive.
		q := s.quit(x)
		s.move(x, TXQ, inInitiator)
		s.refill(&s.drives[x.drive], q)
		s.end(c)
		return
	}
	t := &s.targets[x.target]
	if t.waiting.n > 0 || !s.room(t, s.answerSize(x)) {
		s.push(&t.waiting, c)
		s.Counters.HeldAtTXQ++
		s.Counters.MostAtTXQ = max(s.Counters.MostAtTXQ, t.waiting.n)
		return
	}
	s.answer(c, t)
}

// answerSize is what a command's answer takes of the transmit queue.
func (s *System) answerSize(x *command) units.Bytes {
	size := units.Bytes(0)
	if s.protocol == NVMeoF {
		size = responseSize
	}
	if x.req.Op == block.Read && x.status == block.OK {
		size += units.Bytes(x.req.Length)
	}
	return size
}

// room reports whether so much more fits. Something larger than the queue has it to itself. Flows
// have no transmit queue but the NIC's.
func (s *System) room(t *transmitter, size units.Bytes) bool {
	return s.protocol == Flows || t.used == 0 || t.used+size <= s.cfg.TXQ
}

// answer sends a command's data and response.
func (s *System) answer(c int32, t *transmitter) {
	x := s.commands.At(c)
	d := &s.drives[x.drive]
	q := s.quit(x)
	if size := s.answerSize(x); size > s.cfg.TXQ {
		t.alone = size
	}
	if x.req.Op == block.Read && x.status == block.OK {
		x.netIn = s.eng.Now()
		x.left++
		x.first = s.send(c, Data, units.Bytes(x.req.Length), t)
	}
	if s.protocol == NVMeoF {
		x := s.commands.At(c)
		x.left++
		m := s.send(c, Response, responseSize, t)
		if x.first < 0 {
			x.first = m
		}
		if m >= 0 && s.fetched(x) {
			s.posted[m].held = int32(x.req.Length)
		}
	}
	s.refill(d, q)
}

// send posts a message that takes room in a transmit queue until it is acknowledged.
func (s *System) send(c int32, k Kind, size units.Bytes, t *transmitter) int32 {
	m := s.post(c, k, size, -1)
	if m >= 0 && s.protocol == NVMeoF {
		s.posted[m].bytes = int32(size)
		t.used += size
		s.Counters.MostTXQ = max(s.Counters.MostTXQ, t.used)
		s.reportTXQ(s.posted[m].target)
	}
	return m
}

// release takes something that was acknowledged out of a transmit queue, and lets in what waits.
func (s *System) release(target int32, size units.Bytes) {
	t := &s.targets[target]
	t.used -= size
	if t.used <= s.cfg.TXQ {
		t.alone = 0
	}
	s.reportTXQ(target)
	for t.waiting.n > 0 && s.room(t, s.answerSize(s.commands.At(t.waiting.head))) {
		s.answer(s.pop(&t.waiting), t)
	}
}
