package nvmf

import (
	"fmt"

	"farflash/block"
	"farflash/numeric/units"
)

// memory is a target's for the data of writes that it fetches.
type memory struct {
	used    units.Bytes
	alone   units.Bytes // a write that is larger than all of it, which has it to itself
	waiting list        // writes that find no room, or whose pace holds them
}

// fetched reports whether the target fetches a command's data, rather than that its capsule brings them.
func (s *System) fetched(x *command) bool {
	return s.protocol.Capsules() && x.req.Op == block.Write && x.req.Length > int64(s.cfg.InCapsule)
}

// fetch gets a write's data: memory first, then one of the queue pair's RDMA Reads. On TCP an R2T asks for all of
// them at once, as Linux' and SPDK's targets do, so that a command has the one R2T that both their initiators allow
// (MAXR2T 0).
func (s *System) fetch(c int32) {
	x := s.commands.At(c)
	t := &s.targets[x.target]
	m := &t.memory
	switch fits := s.fits(m, units.Bytes(x.req.Length)); {
	case m.waiting.n > 0 || !fits:
		s.push(&m.waiting, c)
		if !fits {
			s.Counters.HeldForBuffers++
		}
	case !s.holdsWrites(t):
		s.hold(t, c)
	default:
		s.push(&m.waiting, c)
	}
}

// fits reports whether so much more fits.
func (s *System) fits(m *memory, size units.Bytes) bool {
	return m.used == 0 || m.used+size <= s.cfg.WriteBuffers
}

// holdsWrites reports whether the target's controller has no more data of writes be asked for now. When their pace is
// due, they go on.
func (s *System) holdsWrites(t *transmitter) bool {
	if t.steered == nil || t.steered.writes.Open(s.eng.Now()) {
		return false
	}
	s.eng.Arm(t.steered.writesDue, t.steered.writes.Due(s.eng.Now()))
	return true
}

// hold gives a write its memory, and asks for its data or has it wait for the queue pair's other RDMA Reads.
func (s *System) hold(t *transmitter, c int32) {
	x := s.commands.At(c)
	m := &t.memory
	size := units.Bytes(x.req.Length)
	if t.steered != nil {
		t.steered.writes.Take(s.eng.Now(), x.req.Length)
	}
	m.used += size
	if size > s.cfg.WriteBuffers {
		m.alone = size
	}
	s.Counters.MostBuffers = max(s.Counters.MostBuffers, m.used)
	q := &s.conns[x.conn]
	if s.protocol == NVMeoF && q.reading >= s.cfg.Reads.limit() {
		s.push(&q.unread, c)
		s.Counters.HeldForReads++
		return
	}
	s.pull(q, c)
}

// pull asks for a write's data.
func (s *System) pull(q *connection, c int32) {
	q.reading++
	s.Counters.Pulls++
	s.Counters.MostReads = max(s.Counters.MostReads, q.reading)
	s.spent(s.commands.At(c), AtTarget)
	s.post(c, Pull, s.pullBytes(), -1)
}

// fetchNext: an RDMA Read of a connection has ended, so that another may begin.
func (s *System) fetchNext(conn int32) {
	q := &s.conns[conn]
	q.reading--
	if q.unread.n > 0 {
		s.pull(q, s.pop(&q.unread))
	}
}

// giveBack: a write's response is acknowledged, and its memory free for others.
func (s *System) giveBack(target int32, size units.Bytes) {
	t := &s.targets[target]
	m := &t.memory
	m.used -= size
	if m.used <= s.cfg.WriteBuffers {
		m.alone = 0
	}
	s.fetchAll(t)
}

// fetchAll goes on with the writes that wait for memory, or because their pace holds them.
func (s *System) fetchAll(t *transmitter) {
	m := &t.memory
	for m.waiting.n > 0 && s.fits(m, units.Bytes(s.commands.At(m.waiting.head).req.Length)) && !s.holdsWrites(t) {
		s.hold(t, s.pop(&m.waiting))
	}
}

// checkMemory reports whether more is held than there is, or something waits for nothing.
func (s *System) checkMemory(t *transmitter) error {
	m := &t.memory
	if m.used < 0 || m.used > max(s.cfg.WriteBuffers, m.alone) ||
		m.waiting.n > 0 && m.used == 0 && (t.steered == nil || t.steered.writes.Open(s.eng.Now())) {
		return fmt.Errorf("%v of %v for writes are held, and %d wait", m.used, s.cfg.WriteBuffers, m.waiting.n)
	}
	return nil
}
