package nvmf

import (
	"fmt"

	"farflash/block"
	"farflash/numeric/units"
)

// Submit gives an initiator a command for a drive. The sink is notified of its completion, never from inside Submit. An
// invalid command, one before Connect, or one above 1 GiB stops the system, and Err reports it.
func (s *System) Submit(initiator, drive int32, r block.Request) {
	if uint(initiator) >= uint(len(s.initiators)) || uint(drive) >= uint(len(s.drives)) || r.Op >= block.Ops ||
		uint64(r.Length) > uint64(maxLength) || s.sink == nil {
		s.refuse(initiator, drive, &r)
		return
	}
	c := s.commands.Take()
	x := s.commands.At(c)
	now := s.eng.Now()
	*x = command{req: r, tag: r.Tag, submitted: now, mark: now, initiator: initiator, drive: drive,
		target: s.drives[drive].target, first: -1}
	x.req.Tag = uint64(c)
	s.Counters.Submitted++
	n, err := s.connect(initiator, x.target)
	if err != nil {
		s.fail(fmt.Errorf("initiator %d to target %d: %w", initiator, x.target, err))
		return
	}
	x.conn = n
	if s.protocol == Flows {
		s.submitFlow(c)
		return
	}
	if q := &s.conns[n]; q.outstanding < int32(s.cfg.QueueDepth) {
		q.outstanding++
		s.begin(c)
	} else {
		s.push(&q.waiting, c)
		s.Counters.HeldAtInitiator++
		s.Counters.MostAtInitiator = max(s.Counters.MostAtInitiator, q.waiting.n)
	}
}

// submitFlow sends a write's data, or passes a read to its drive.
func (s *System) submitFlow(c int32) {
	x := s.commands.At(c)
	if x.req.Op == block.Write {
		x.netIn = s.eng.Now()
		s.post(c, Pulled, units.Bytes(x.req.Length), -1)
		return
	}
	x.arrived = x.mark
	s.drive(c)
}

// connect returns the next connection in turn from an initiator to a target, opening it on first use.
func (s *System) connect(initiator, target int32) (int32, error) {
	if s.conns == nil {
		pairs := len(s.initiators) * len(s.targets)
		s.conns = make([]connection, pairs*s.cfg.QueuePairs)
		s.turns = make([]uint16, pairs)
		for i := range s.initiators {
			s.makeCores(&s.initiators[i], int32(i), false, s.cfg.Initiator.Cores, len(s.targets)*s.cfg.QueuePairs)
		}
		for i := range s.targets {
			s.makeCores(&s.targets[i].machine, int32(i), true, s.cfg.Target.Cores, len(s.initiators)*s.cfg.QueuePairs)
		}
		s.initiating = makeSide(&s.cfg.Initiator, s.initiators[0].many)
		s.serving = makeSide(&s.cfg.Target, s.targets[0].many)
	}
	pair := int(initiator)*len(s.targets) + int(target)
	k := int(s.turns[pair])
	if s.turns[pair]++; int(s.turns[pair]) == s.cfg.QueuePairs {
		s.turns[pair] = 0
	}
	n := int32(pair*s.cfg.QueuePairs + k)
	q := &s.conns[n]
	if q.open {
		return n, nil
	}
	q.open = true
	q.core = target*int32(s.cfg.QueuePairs) + int32(k)
	q.targetCore = initiator*int32(s.cfg.QueuePairs) + int32(k)
	if !s.own {
		return n, nil
	}
	var err error
	if q.out, err = s.net.Open(s.initiators[initiator].node, s.targets[target].node, s.cfg.Class); err != nil {
		return n, err
	}
	if q.back, err = s.net.Open(s.targets[target].node, s.initiators[initiator].node, s.cfg.Class); err != nil {
		return n, err
	}
	if s.steers {
		s.follow(q.back, target)
	}
	if s.reader == nil {
		return n, nil
	}
	q.answers, err = s.reader.Respond(q.out, q.back)
	return n, err
}

// begin starts the initiator's software on a command.
func (s *System) begin(c int32) {
	x := s.commands.At(c)
	cost := s.cfg.Initiator.before()
	if x.req.Op == block.Write && !s.fetched(x) {
		cost += s.moved(&s.cfg.Initiator, s.cfg.Initiator.Send, units.Bytes(x.req.Length))
	}
	s.byInitiator(x, cost, evSent, c)
}

// sendCapsule sends a command.
func (s *System) sendCapsule(c int32) {
	x := s.commands.At(c)
	s.spent(x, AtInitiator)
	if x.req.Op == block.Write {
		x.netIn = s.eng.Now()
	}
	s.post(c, Capsule, s.capsuleBytes(x), -1)
}

// pullArrived answers the target's request for a write's data. On RDMA the initiator's NIC does so, without its
// software and its send queue. On TCP its software does, and the data follows all data sent before.
func (s *System) pullArrived(c, request int32) {
	x := s.commands.At(c)
	s.spent(x, NetworkOut)
	x.asked, x.supplied = s.eng.Now(), s.eng.Now()
	if s.protocol == NVMeTCP {
		side := &s.cfg.Initiator
		s.toInitiator(x, side.before()+s.moved(side, side.Send, units.Bytes(x.req.Length)), evAsked, c)
		return
	}
	s.post(c, Pulled, s.fetchedBytes(x), request)
}

// supply sends a write's data that was requested by TCP.
func (s *System) supply(c int32) {
	x := s.commands.At(c)
	s.spent(x, AtInitiator)
	x.supplied = s.eng.Now()
	s.post(c, Pulled, s.fetchedBytes(x), -1)
}

// answerArrived handles the arrival of a read's data or of the response at the initiator.
func (s *System) answerArrived(c int32, k Kind) {
	x := s.commands.At(c)
	now := s.eng.Now()
	if k == Data {
		x.netOut = now
	}
	if !x.onItsWay {
		// NetworkBack starts when the answer's first packet leaves; until then it was in the transmit queue.
		begun := x.begun
		if x.first >= 0 {
			begun = s.net.Begun(x.first)
		}
		if begun > now { // the response has overtaken data whose first packet is still queued
			x.left--
			return
		}
		x.onItsWay = true
		x.stage[TXQ] += begun - x.mark
		x.mark = begun
	}
	s.spent(x, NetworkBack)
	if x.left--; x.left > 0 {
		return
	}
	if s.protocol == Flows {
		s.end(c)
		return
	}
	side := &s.cfg.Initiator
	cost := side.after()
	if x.reads() {
		cost += s.moved(side, side.Receive, units.Bytes(x.req.Length))
	}
	s.toInitiator(x, cost, evEnded, c)
}

// leave frees a place in a connection's queue pair and gives it to the first waiting command.
func (s *System) leave(conn int32) {
	q := &s.conns[conn]
	q.outstanding--
	if q.waiting.n > 0 {
		q.outstanding++
		s.begin(s.pop(&q.waiting))
	}
}
