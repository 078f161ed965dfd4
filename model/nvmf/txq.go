package nvmf

import (
	"farflash/block"
	"farflash/numeric/units"
)

// transmitter is a target and its transmit queue.
type transmitter struct {
	machine
	drives  []int32
	used    units.Bytes
	alone   units.Bytes // size of an answer larger than the queue, while it occupies the queue alone
	waiting list        // completed commands that find no space
	replies list        // those without data that a controller lets overtake the others
	memory  memory
	pools   []int32  // by core and network card: the pool of shared receives, plus 1
	steered *steered // nil without a controller
}

// finished moves a completed command's answer to the transmit queue, or has it wait for space.
func (s *System) finished(c int32) {
	x := s.commands.At(c)
	if x.orphan && x.ghost == 0 {
		s.unanswered(c)
		return
	}
	if s.protocol == Flows && !x.reads() {
		// No answer is sent, so the request completes with the drive.
		q := s.quit(x)
		s.spent(x, TXQ)
		s.refill(&s.drives[x.drive], q)
		s.end(c)
		return
	}
	t := &s.targets[x.target]
	wait := &t.waiting
	if !x.reads() && t.overtakes() {
		wait = &t.replies
	}
	if wait.n > 0 || !s.room(t, x) {
		x.at = heldBack
		s.push(wait, c)
		s.Counters.HeldAtTXQ++
		s.Counters.MostAtTXQ = max(s.Counters.MostAtTXQ, t.waiting.n+t.replies.n)
		return
	}
	s.answer(c, t)
}

// answerSize returns the size of a command's answer in the transmit queue.
func (s *System) answerSize(x *command) units.Bytes {
	data := units.Bytes(0)
	if x.reads() {
		data = units.Bytes(x.req.Length)
	}
	switch s.protocol {
	case NVMeTCP:
		return s.cfg.TCP.answer(data)
	case NVMeoF:
		return data + responseSize
	}
	return data
}

// overtakes reports whether answers without data precede those with data.
func (t *transmitter) overtakes() bool { return t.steered != nil && t.steered.steering.Overtake }

// room reports whether a command's answer may enter the transmit queue now: there is space and its pace allows it. An
// answer larger than the queue needs it empty. Flows have only the NIC's transmit queue.
func (s *System) room(t *transmitter, x *command) bool {
	if t.steered != nil && x.reads() && !t.steered.sends.Open(s.eng.Now()) {
		s.eng.Arm(t.steered.sendsDue, t.steered.sends.Due(s.eng.Now()))
		return false
	}
	if s.protocol == Flows || t.used == 0 {
		return true
	}
	if t.used+s.answerSize(x) > s.cfg.TXQ {
		return false
	}
	if t.steered == nil || !x.reads() && t.overtakes() {
		return true
	}
	limit := units.Bytes(t.steered.steering.SendLimit)
	return limit <= 0 || t.used < limit
}

// answer sends a command's data and response.
func (s *System) answer(c int32, t *transmitter) {
	x := s.commands.At(c)
	if x.ghost > 0 {
		s.answerNobody(c, t)
		return
	}
	d := &s.drives[x.drive]
	q := s.quit(x)
	x.at = answering
	s.repost(x)
	if size := s.answerSize(x); size > s.cfg.TXQ {
		t.alone = size
	}
	if x.reads() {
		x.netIn = s.eng.Now()
		if t.steered != nil {
			t.steered.sends.Take(x.netIn, x.req.Length)
		}
	}
	last := int32(-1)
	if s.protocol == NVMeTCP {
		// Data written to a connection at once shares segments.
		k := Response
		if x.reads() {
			k = Data
		}
		last = s.send(c, k, s.answerSize(x), t)
		x.left, x.first = 1, last
	} else if x.reads() {
		x.left++
		x.first = s.send(c, Data, units.Bytes(x.req.Length), t)
	}
	if s.protocol == NVMeoF {
		last = s.send(c, Response, responseSize, t)
		x.left++
		if x.first < 0 {
			x.first = last
		}
	}
	if last >= 0 {
		s.posted[last].held = int32(s.holds(x))
	}
	s.refill(d, q)
}

// send posts a message that occupies the transmit queue until it is acknowledged.
func (s *System) send(c int32, k Kind, size units.Bytes, t *transmitter) int32 {
	m := s.post(c, k, size, -1)
	if m >= 0 && s.protocol.Capsules() {
		s.posted[m].bytes = int32(size)
		if x := s.commands.At(c); t.steered != nil && x.req.Op == block.Read && !x.refused {
			s.posted[m].read, s.posted[m].ended = true, x.driveOut
		}
		t.used += size
		s.Counters.MostTXQ = max(s.Counters.MostTXQ, t.used)
		s.reportTXQ(s.posted[m].target)
	}
	return m
}

// release frees the transmit queue space of an acknowledged message, and admits waiting commands.
func (s *System) release(target int32, size units.Bytes) {
	t := &s.targets[target]
	t.used -= size
	if t.used <= s.cfg.TXQ {
		t.alone = 0
	}
	s.reportTXQ(target)
	s.answerAll(t)
}

// answerAll sends the answers of waiting commands for which there is space and that their pace allows.
func (s *System) answerAll(t *transmitter) {
	for _, wait := range []*list{&t.replies, &t.waiting} {
		for wait.n > 0 && s.room(t, s.commands.At(wait.head)) {
			s.answer(s.pop(wait), t)
		}
	}
}
