package nvmf

import (
	"farflash/block"
	"farflash/numeric/units"
)

// States of paths at targets, and how initiators learn of them: a target sends an event to the initiators whose path
// changes, which read the log and then know the state that it had when the target read the command for it. A command
// that reaches a target on an inaccessible path is answered with an error, before its data is fetched. Its initiator
// then uses the path again once it has read the log, as Linux does.

// logSize is the length of the log with as many groups and namespaces as Linux' target has (NVMET_MAX_ANAGRPS,
// NVMET_MAX_NAMESPACES), which Linux' host reads as a whole.
const logSize units.Bytes = 16 + 128*32 + 1024*4

// stateOf returns the state of a controller's path at its target.
func (s *System) stateOf(n int32) PathState {
	_, target := s.ends(n)
	return s.access[target*s.paths+n%s.paths]
}

// planChanges schedules the changes of paths' states.
func (s *System) planChanges() {
	for i, c := range s.cfg.Multipath.ANA {
		s.eng.Schedule(s.self, s.target, max(c.At, s.eng.Now()), evANA, uint32(i))
	}
	s.changes = len(s.cfg.Multipath.ANA)
}

// change gives paths a new state.
func (s *System) change(i int32) {
	s.changes--
	if len(s.initiators) == 0 || len(s.targets) == 0 {
		return
	}
	if s.settle(); s.err != nil {
		return
	}
	c := &s.cfg.Multipath.ANA[i]
	if len(c.Targets) == 0 {
		for t := range s.targets {
			s.changeAt(int32(t), c)
		}
	}
	for _, t := range c.Targets {
		s.changeAt(int32(t), c)
	}
}

// changeAt gives a target's path a new state, and informs the initiators.
func (s *System) changeAt(target int32, c *PathChange) {
	if now := &s.access[target*s.paths+int32(c.Path)]; *now != c.State {
		*now = c.State
		for i := range s.initiators {
			s.announce(s.pair(int32(i), target)*s.paths + int32(c.Path))
		}
	}
}

// announce sends a controller's event to its initiator. One that is connecting reads the log anyway.
func (s *System) announce(n int32) {
	k := &s.ctrls[n]
	if !k.begun || k.state != live || s.deaf(n) {
		return
	}
	if !s.openAdmin(n) {
		s.lose(n)
		return
	}
	_, target := s.ends(n)
	m := &s.targets[target].machine
	s.run(m, &s.serving, s.coreOf(m, 0), 0, task{s.cfg.Target.after(), 0, int32(k.mark(n)), evEventSent})
}

// readLog has an initiator read a controller's log, again if it is reading it.
func (s *System) readLog(n int32) {
	r := &s.routes[n]
	if r.reading {
		r.again = true
		return
	}
	deaf := s.deaf(n)
	if !deaf && !s.openAdmin(n) {
		s.lose(n)
		return
	}
	if !r.timed {
		r.late, r.timed = s.eng.NewTimer(s.self, s.target, evLogLate, uint32(n)), true
	}
	r.reading, r.again = true, false
	s.eng.Arm(r.late, s.eng.Now()+adminLimit)
	if deaf {
		return
	}
	initiator, _ := s.ends(n)
	m := &s.initiators[initiator]
	s.run(m, &s.initiating, s.coreOf(m, 0), 0,
		task{s.cfg.Initiator.before(), 0, int32(s.ctrls[n].mark(n)), evLogAsked})
}

// logArrived starts software on a message of a controller's event or log.
func (s *System) logArrived(n int32, kind Kind) {
	mark := int32(s.ctrls[n].mark(n))
	initiator, target := s.ends(n)
	if kind == LogRequest {
		m, side := &s.targets[target].machine, &s.cfg.Target
		s.notice(m, &s.serving, s.coreOf(m, 0),
			task{side.before() + side.after(), s.delay(&s.serving), mark, evLogRead})
		return
	}
	ev := evEventTaken
	if kind == LogReply {
		ev = evLogTaken
	}
	m := &s.initiators[initiator]
	s.notice(m, &s.initiating, s.coreOf(m, 0), task{s.cfg.Initiator.after(), s.delay(&s.initiating), mark, ev})
}

// handleLog handles the end of software's work on such a message, unless the connection has ended since.
func (s *System) handleLog(kind uint16, mark uint32) {
	n := int32(mark & (1<<24 - 1))
	k, r := &s.ctrls[n], &s.routes[n]
	if k.mark(n) != mark {
		return
	}
	x := s.keepAliveSizes()
	switch kind {
	case evEventSent:
		s.postAdmin(n, k.back, Event, x.reply)
	case evEventTaken:
		s.readLog(n)
	case evLogAsked:
		s.postAdmin(n, k.out, LogRequest, x.ask)
	case evLogRead:
		r.seen = s.stateOf(n)
		s.hearThere(n, false)
		s.postAdmin(n, k.back, LogReply, s.logReply())
	case evLogTaken:
		r.reading = false
		s.eng.Disarm(r.late)
		if r.again {
			s.readLog(n)
			return
		}
		r.state, r.doubted = r.seen, false
		s.kick(n)
	}
}

// logReply returns the size of the answer that carries the log.
func (s *System) logReply() units.Bytes {
	if s.protocol == NVMeTCP {
		return s.cfg.TCP.answer(logSize)
	}
	return logSize + responseSize
}

// pathConnected takes over what connecting has shown of a path's state.
func (s *System) pathConnected(n int32) {
	r := &s.routes[n]
	r.state, r.doubted, r.reading, r.again = r.seen, false, false, false
	if r.state != s.stateOf(n) { // it has changed since; the event waited for the connection
		s.announce(n)
	}
	s.kick(n)
}

// refused reports whether a target refuses a command because of its path, and answers it then.
func (s *System) refused(c int32) bool {
	x := s.commands.At(c)
	if s.heads == nil || s.stateOf(x.conn/int32(s.cfg.QueuePairs)) != Inaccessible {
		return false
	}
	if s.orphaned(c) {
		return true
	}
	s.OnRefused.Fire(c)
	s.spent(x, AtTarget)
	x.driveIn, x.driveOut = s.eng.Now(), s.eng.Now()
	x.refused, x.status, x.at = true, block.PathError, finishing
	s.toTarget(x, s.cfg.Target.after(), 0, evFinished, c)
	return true
}

// elsewhere sends a command that was refused along another path, which its own is not until its log was read.
func (s *System) elsewhere(c int32) {
	x := s.commands.At(c)
	n := x.conn / int32(s.cfg.QueuePairs)
	conn := x.conn
	s.routes[n].totals.Refused++
	s.notCurrent(x.initiator, x.drive, n%s.paths)
	s.Counters.Retries++
	again := s.again(c)
	s.unroute(s.commands.At(c))
	s.forget(c)
	s.push(&s.heads[n/s.paths].waiting, again)
	s.kick(n)
	s.leave(conn)
	if s.ctrls[n].state == live {
		s.routes[n].doubted = true
		s.readLog(n)
	}
}
