package nvmf

import (
	"fmt"

	"farflash/block"
	"farflash/numeric/units"
)

// memory is a target's memory for the data of writes that it fetches.
type memory struct {
	used    units.Bytes
	alone   units.Bytes // size of a write larger than the whole memory, while it occupies it alone
	waiting list        // writes that wait for memory or are held by their pace
}

// fetched reports whether the target fetches a command's data, which is then not in its capsule.
func (s *System) fetched(x *command) bool {
	return s.protocol.Capsules() && x.req.Op == block.Write && x.req.Length > int64(s.cfg.InCapsule)
}

// holds reports whether a command that a drive has completed, or that was refused, has memory for data that was
// fetched.
func (s *System) holds(x *command) bool { return s.fetched(x) && !x.refused }

// fetch obtains a write's data: it allocates memory first, then one of the queue pair's RDMA Reads. On TCP a single R2T
// requests all data, as Linux' and SPDK's targets do, so that a command has the one R2T that both their initiators
// allow (MAXR2T 0).
func (s *System) fetch(c int32) {
	x := s.commands.At(c)
	t := &s.targets[x.target]
	m := &t.memory
	switch fits := s.fits(m, units.Bytes(x.req.Length)); {
	case m.waiting.n > 0 || !fits:
		x.at = needsMemory
		s.push(&m.waiting, c)
		if !fits {
			s.Counters.HeldForBuffers++
		}
	case !s.holdsWrites(t):
		s.hold(t, c)
	default:
		x.at = needsMemory
		s.push(&m.waiting, c)
	}
}

// fits reports whether size more bytes fit.
func (s *System) fits(m *memory, size units.Bytes) bool {
	return m.used == 0 || m.used+size <= s.cfg.WriteBuffers
}

// holdsWrites reports whether the pace set by the target's controller forbids requesting more write data now. If so, it
// sets a timer that resumes the writes.
func (s *System) holdsWrites(t *transmitter) bool {
	if t.steered == nil || t.steered.writes.Open(s.eng.Now()) {
		return false
	}
	s.eng.Arm(t.steered.writesDue, t.steered.writes.Due(s.eng.Now()))
	return true
}

// hold allocates a write's memory, and requests its data or queues it for one of the queue pair's RDMA Reads.
func (s *System) hold(t *transmitter, c int32) {
	x := s.commands.At(c)
	if x.ghost > 0 {
		s.fetchFromNobody(c, t)
		return
	}
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
		x.at = needsRead
		s.push(&q.unread, c)
		s.Counters.HeldForReads++
		return
	}
	s.pull(q, c)
}

// pull requests a write's data.
func (s *System) pull(q *connection, c int32) {
	q.reading++
	s.Counters.Pulls++
	s.Counters.MostReads = max(s.Counters.MostReads, q.reading)
	x := s.commands.At(c)
	s.spent(x, AtTarget)
	x.at = pulling
	s.post(c, Pull, s.pullBytes(), -1)
}

// fetchNext ends an RDMA Read of a connection and starts the next one waiting.
func (s *System) fetchNext(conn int32) {
	q := &s.conns[conn]
	q.reading--
	if q.unread.n > 0 {
		s.pull(q, s.pop(&q.unread))
	}
}

// giveBack frees the memory of a write whose response is acknowledged.
func (s *System) giveBack(target int32, size units.Bytes) {
	t := &s.targets[target]
	m := &t.memory
	m.used -= size
	if m.used <= s.cfg.WriteBuffers {
		m.alone = 0
	}
	s.fetchAll(t)
}

// fetchAll resumes the writes that were waiting for memory or held by their pace.
func (s *System) fetchAll(t *transmitter) {
	m := &t.memory
	for m.waiting.n > 0 && s.fits(m, units.Bytes(s.commands.At(m.waiting.head).req.Length)) && !s.holdsWrites(t) {
		s.hold(t, s.pop(&m.waiting))
	}
}

// checkMemory reports an overcommitted memory, or writes that wait although they could proceed.
func (s *System) checkMemory(t *transmitter) error {
	m := &t.memory
	if m.used < 0 || m.used > max(s.cfg.WriteBuffers, m.alone) ||
		m.waiting.n > 0 && m.used == 0 && (t.steered == nil || t.steered.writes.Open(s.eng.Now())) {
		return fmt.Errorf("%v of %v for writes are held, and %d wait", m.used, s.cfg.WriteBuffers, m.waiting.n)
	}
	return nil
}
