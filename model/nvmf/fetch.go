package nvmf

import (
	"fmt"

	"farflash/block"
	"farflash/numeric/units"
)

// Buffers is a target's memory for data in SPDK's words: equal buffers that a command takes before anything is done for
// it, and holds until its response is acknowledged. Reads wait for buffers before the drive, and writes that the target
// fetches before it does, in one order (SPDK's queue of pending buffers).
type Buffers struct {
	// Count is how many a target has (num_shared_buffers; 4095 with RDMA, 511 with TCP). 0: reads need memory in the
	// transmit queue only, and writes have write_buffers.
	Count int
	Size  units.Bytes // Size is that of each (io_unit_size; 8KiB with RDMA, 128KiB with TCP); data takes whole ones.
}

func (b *Buffers) validate() error {
	var bad units.Faults
	bad.Hold(b.Count >= 0 && b.Count <= 1<<24, "count", "%d is not possible; use 1 to %d, or 0 for write_buffers alone",
		b.Count, 1<<24)
	bad.Hold(b.Size >= units.Sector && b.Size <= units.GiB, "size", "%v is not possible; use 512B to 1GiB", b.Size)
	return bad.Err()
}

// memory is a target's memory for the data of writes that it fetches and, with Config.Buffers, of reads.
type memory struct {
	used    units.Bytes
	alone   units.Bytes // size of data larger than the whole memory, while they occupy it alone
	waiting list        // commands that wait for memory or are held by their pace
}

// capacity returns the size of a target's memory.
func (c *Config) capacity() units.Bytes {
	if c.Buffers.Count > 0 {
		return units.Bytes(c.Buffers.Count) * c.Buffers.Size
	}
	return c.WriteBuffers
}

// fetched reports whether the target fetches a command's data, which is then not in its capsule.
func (s *System) fetched(x *command) bool {
	return s.protocol.Capsules() && x.req.Op == block.Write && x.req.Length > int64(s.cfg.InCapsule)
}

// needs returns how much of its target's memory a command needs, 0 if none.
func (s *System) needs(x *command) units.Bytes {
	if b := &s.cfg.Buffers; b.Count > 0 && (x.req.Op == block.Read && s.protocol.Capsules() || s.fetched(x)) {
		return (units.Bytes(x.req.Length) + b.Size - 1) / b.Size * b.Size
	}
	if s.fetched(x) {
		return units.Bytes(x.req.Length)
	}
	return 0
}

// holds returns how much memory a command has that a drive has completed, or that was refused.
func (s *System) holds(x *command) units.Bytes {
	if x.refused {
		return 0
	}
	return s.needs(x)
}

// fetch allocates a command's memory, and then passes a read to its drive, or obtains a write's data with one of the
// queue pair's RDMA Reads. On TCP a single R2T requests all data, as Linux' and SPDK's targets do, so that a command
// has the one R2T that both their initiators allow (MAXR2T 0).
func (s *System) fetch(c int32) {
	x := s.commands.At(c)
	t := &s.targets[x.target]
	m := &t.memory
	switch fits := s.fits(m, s.needs(x)); {
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
	return m.used == 0 || m.used+size <= s.cfg.capacity()
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

// hold allocates a command's memory, and passes a read to its drive. It requests a write's data, or queues it for one
// of the queue pair's RDMA Reads.
func (s *System) hold(t *transmitter, c int32) {
	x := s.commands.At(c)
	size := s.needs(x)
	m := &t.memory
	if t.steered != nil && x.ghost == 0 {
		t.steered.writes.Take(s.eng.Now(), x.req.Length)
	}
	m.used += size
	if size > s.cfg.capacity() {
		m.alone = size
	}
	s.Counters.MostBuffers = max(s.Counters.MostBuffers, m.used)
	if x.req.Op == block.Read {
		s.drive(c)
		return
	}
	if x.ghost > 0 {
		s.fetchFromNobody(c, size)
		return
	}
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

// giveBack frees the memory of a command whose response is acknowledged.
func (s *System) giveBack(target int32, size units.Bytes) {
	t := &s.targets[target]
	m := &t.memory
	m.used -= size
	if m.used <= s.cfg.capacity() {
		m.alone = 0
	}
	s.fetchAll(t)
}

// fetchAll resumes the commands that were waiting for memory or held by their pace.
func (s *System) fetchAll(t *transmitter) {
	m := &t.memory
	for m.waiting.n > 0 && s.fits(m, s.needs(s.commands.At(m.waiting.head))) && !s.holdsWrites(t) {
		s.hold(t, s.pop(&m.waiting))
	}
}

// checkMemory reports an overcommitted memory, or commands that wait although they could proceed.
func (s *System) checkMemory(t *transmitter) error {
	m := &t.memory
	if m.used < 0 || m.used > max(s.cfg.capacity(), m.alone) ||
		m.waiting.n > 0 && m.used == 0 && (t.steered == nil || t.steered.writes.Open(s.eng.Now())) {
		return fmt.Errorf("%v of %v of memory are held, and %d wait", m.used, s.cfg.capacity(), m.waiting.n)
	}
	return nil
}
