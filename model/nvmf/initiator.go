package nvmf

import (
	"fmt"

	"farflash/block"
	"farflash/model/fabric"
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
	if s.settle(); s.heads != nil {
		s.route(c)
		return
	}
	n, err := s.nextConn(s.pair(initiator, x.target))
	if err != nil {
		s.fail(fmt.Errorf("initiator %d to target %d: %w", initiator, x.target, err))
		return
	}
	x.conn = n
	if s.protocol == Flows {
		s.submitFlow(c)
		return
	}
	if k := &s.ctrls[s.pair(initiator, x.target)]; k.gone || k.failing && k.state != live {
		s.failSoon(c)
		return
	}
	s.place(c)
}

// place gives a command a place in its queue pair, or has it wait for one.
func (s *System) place(c int32) {
	n := s.commands.At(c).conn
	if q := &s.conns[n]; s.ctrls[n/int32(s.cfg.QueuePairs)].state == live && q.outstanding < int32(s.cfg.QueueDepth) {
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

// nextConn returns the next connection in turn of a controller, opening it on first use.
func (s *System) nextConn(k int32) (int32, error) {
	n := k*int32(s.cfg.QueuePairs) + int32(s.turns[k])
	if s.turns[k]++; int(s.turns[k]) == s.cfg.QueuePairs {
		s.turns[k] = 0
	}
	if s.conns[n].open || s.ctrls[k].state != live || s.deaf(k) {
		return n, nil
	}
	s.begins(k)
	return n, s.open(n, k)
}

// pair returns the number of an initiator and a target together.
func (s *System) pair(initiator, target int32) int32 { return initiator*int32(len(s.targets)) + target }

// open opens a connection of a controller.
func (s *System) open(n, ctrl int32) (err error) {
	q := &s.conns[n]
	initiator, target := s.ends(ctrl)
	k := n % (s.paths * int32(s.cfg.QueuePairs)) // among those of both ends
	q.core = target*s.paths*int32(s.cfg.QueuePairs) + k
	q.targetCore = initiator*s.paths*int32(s.cfg.QueuePairs) + k
	q.open = true
	if !s.own {
		return nil
	}
	if q.out, q.back, err = s.openPair(ctrl); err != nil {
		q.open = false
		return err
	}
	if s.steers {
		s.follow(q.back, target)
	}
	if s.reader != nil {
		q.answers, err = s.reader.Respond(q.out, q.back)
	}
	if s.ctrls[ctrl].state == live {
		s.share(n)
	}
	return err
}

// openPair opens queue pairs in both directions for a controller.
func (s *System) openPair(n int32) (out, back fabric.QP, err error) {
	from, to := s.nodes(n)
	if out, err = s.net.Open(from, to, s.cfg.Class); err != nil {
		return out, back, err
	}
	s.owns(out, n)
	if back, err = s.net.Open(to, from, s.cfg.Class); err != nil {
		if s.abandoner != nil {
			s.abandon(out)
		}
		return out, back, err
	}
	s.owns(back, n)
	return out, back, nil
}

// begin starts the initiator's software on a command.
func (s *System) begin(c int32) {
	x := s.commands.At(c)
	x.at, x.placing, x.since = preparing, true, s.eng.Now()
	s.watch(x.conn)
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
	x.at = outward
	if x.req.Op == block.Write {
		x.netIn = s.eng.Now()
	}
	if !s.deaf(x.conn / int32(s.cfg.QueuePairs)) {
		s.post(c, Capsule, s.capsuleBytes(x), -1)
	}
}

// pullArrived answers the target's request for a write's data. On RDMA the initiator's NIC does so, without its
// software and its send queue. On TCP its software does, and the data follows all data sent before.
func (s *System) pullArrived(c, request int32) {
	x := s.commands.At(c)
	s.spent(x, NetworkOut)
	x.asked, x.supplied = s.eng.Now(), s.eng.Now()
	if s.protocol == NVMeTCP {
		side := &s.cfg.Initiator
		x.at = supplying
		s.toInitiator(x, side.before()+s.moved(side, side.Send, units.Bytes(x.req.Length)), evAsked, c)
		return
	}
	s.post(c, Pulled, s.fetchedBytes(x), request)
}

// supply sends a write's data that was requested by TCP.
func (s *System) supply(c int32) {
	x := s.commands.At(c)
	s.spent(x, AtInitiator)
	x.supplied, x.at = s.eng.Now(), pulling
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
	x.at = returning
	s.ctrls[x.conn/int32(s.cfg.QueuePairs)].heard = true
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
	if q.waiting.n > 0 && s.ctrls[conn/int32(s.cfg.QueuePairs)].state == live {
		q.outstanding++
		s.begin(s.pop(&q.waiting))
	} else if q.outstanding == 0 && q.watching {
		q.watching = false
		s.eng.Disarm(q.watch)
	}
}
