package nvmf

import (
	"farflash/block"
	"farflash/model/fabric"
	"farflash/numeric/units"
	"farflash/sim"
)

// The keep-alive timer of a target, which finds that an initiator is gone. Without it a target learns of the end of a
// connection at once. With it, what a lost connection held at the target stays held until the target finds out: by the
// initiator's closing message, if that arrives, or by the timer. Commands of the connection that have arrived go on,
// their answers take space, and writes take memory for data that never comes, as far as there is any.
//
// If the timer expires first, the target ends the controller: it drops the commands that wait in it, and sends a
// closing message. The initiator goes on until that arrives, or until its own timers expire; its messages are lost.
//
// Left out are packets that a target sends again to an initiator that is gone, and initiators that vanish while they
// connect, of which a target learns at once.

// KeepAliveTimer is how a target finds that an initiator is gone.
type KeepAliveTimer uint8

const (
	NoTimer    KeepAliveTimer = iota // at once
	LinuxTimer                       // a period without a command, of host.keep_alive in whole seconds
	// SPDKTimer: a period without a keep-alive, of whole 10 s; initiators send them under load too
	SPDKTimer
)

var keepAliveTimers = units.Names[KeepAliveTimer]{"none", "linux", "spdk"}

func (k KeepAliveTimer) String() string { return keepAliveTimers.Name(k) }

func (k KeepAliveTimer) MarshalText() ([]byte, error) { return keepAliveTimers.Marshal(k) }

func (k *KeepAliveTimer) UnmarshalText(text []byte) error { return keepAliveTimers.Unmarshal(text, k) }

// Period returns the target's period: the initiator's time, rounded up; 0 without a timer.
func (c *Config) Period() sim.Time {
	if c.KeepAliveTimer == NoTimer {
		return 0
	}
	unit := units.Second
	if c.KeepAliveTimer == SPDKTimer {
		unit *= 10
	}
	return (c.Host.KeepAlive + unit - 1) / unit * unit
}

// vigil is a target's watch over a controller.
type vigil struct {
	timer   sim.Timer
	timed   bool
	on      bool
	traffic bool     // a command arrived in this period
	last    sim.Time // when the last keep-alive arrived
	due     sim.Time // when the timer expires
	deaf    bool     // the target has ended the controller, and its initiator does not know
	closing closing
}

// closing is a message about the end of a connection, on a queue pair of its own.
type closing struct {
	q       fabric.QP
	open    bool // the queue pair is
	arrived bool
}

// remains are what a lost connection holds at its target until that finds out.
type remains struct {
	freed
	ctrl, target int32
	active       bool
	timed        bool
	timer        sim.Timer
	traffic      bool
	last, due    sim.Time
	closing      closing
}

// watches reports whether targets have timers.
func (s *System) watches() bool { return s.vigils != nil }

// startVigil starts a target's timer with a connection.
func (s *System) startVigil(n int32) {
	if !s.watches() {
		return
	}
	v := &s.vigils[n]
	if !v.timed {
		v.timer, v.timed = s.eng.NewTimer(s.self, s.target, evExpired, uint32(n)), true
	}
	v.on, v.deaf, v.traffic, v.last = true, false, true, s.eng.Now()
	v.due = v.last + s.cfg.Period()
	s.eng.Arm(v.timer, v.due)
}

// hearThere notes a controller's command at its target.
func (s *System) hearThere(n int32, keepAlive bool) {
	if !s.watches() || !s.vigils[n].on {
		return
	}
	v := &s.vigils[n]
	v.traffic = true
	if !keepAlive {
		return
	}
	v.last = s.eng.Now()
	if s.cfg.KeepAliveTimer == LinuxTimer {
		v.due = v.last + s.cfg.Period()
		s.eng.Arm(v.timer, v.due)
	}
}

// silent reports whether a timer that expires ends its controller.
func (s *System) silent(traffic bool, last sim.Time) bool {
	if s.cfg.KeepAliveTimer == LinuxTimer {
		return !traffic
	}
	return s.eng.Now() > last+s.cfg.Period()
}

// expired handles a target's timer.
func (s *System) expired(n int32) {
	v := &s.vigils[n]
	if !v.on {
		return
	}
	if !s.silent(v.traffic, v.last) {
		v.traffic = false
		v.due += s.cfg.Period()
		s.eng.Arm(v.timer, v.due)
		return
	}
	s.Counters.Expired++
	v.on, v.deaf = false, true
	s.endAtTarget(n)
	if v.deaf { // and the initiator has not lost it at the same time
		from, to := s.nodes(n)
		v.closing = s.sayClosing(to, from, n, Closed)
	}
}

// endAtTarget ends a controller at its target alone. Each command there becomes two: one that the initiator waits for,
// and one that is left behind.
func (s *System) endAtTarget(n int32) {
	_, target := s.ends(n)
	gone := s.commandsOf(n, func(x *command) bool { return x.at > outward && x.at != returning })
	for _, c := range gone {
		x := *s.commands.At(c)
		twin := s.commands.Take()
		y := s.commands.At(twin)
		*y = command{req: x.req, tag: x.tag, submitted: x.submitted, mark: x.submitted, initiator: x.initiator,
			drive: x.drive, target: x.target, conn: x.conn, first: -1, retries: x.retries, since: x.since, at: outward,
			placing: true, routed: x.routed, parked: x.parked}
		y.req.Tag = uint64(twin)
		s.commands.At(c).orphan, s.commands.At(c).routed = true, false
	}
	s.stripAll(target)
	s.freed = freed{}
	s.closeAll(n)
	for _, c := range gone {
		s.leaveBehind(c)
	}
	s.letGo(target)
	first := n * int32(s.cfg.QueuePairs)
	for i := first; i < first+int32(s.cfg.QueuePairs); i++ {
		if s.conns[i].outstanding > 0 && s.cfg.Host.IOTimeout > 0 {
			s.overdue(i) // its timer goes on
		}
	}
}

// deaf reports whether what a controller's initiator sends is lost, because its target has ended it.
func (s *System) deaf(n int32) bool { return s.watches() && s.vigils[n].deaf }

// sayClosing sends a closing message with the number of its subject.
func (s *System) sayClosing(from, to, about int32, kind Kind) (x closing) {
	var err error
	if x.q, err = s.net.Open(from, to, s.cfg.Class); err != nil {
		return x
	}
	size := managed
	if s.protocol == NVMeTCP {
		size = 1
	}
	m, err := s.net.Post(x.q, size)
	if err != nil {
		s.fail(err)
		return x
	}
	for int(m) >= len(s.posted) {
		s.posted = append(s.posted, posted{})
	}
	s.posted[m] = posted{command: -about - 1, kind: kind}
	x.open = true
	return x
}

// endClosing ends the queue pair of a closing message.
func (s *System) endClosing(x *closing) {
	if x.open {
		if err := s.abandoner.Abandon(x.q, s.dropped); err != nil {
			s.fail(err)
		}
	}
	*x = closing{}
}

// leaveRemains keeps what a controller's connection holds at its target, after the initiator has ended it.
func (s *System) leaveRemains(n int32) int32 {
	_, target := s.ends(n)
	v := &s.vigils[n]
	g := int32(len(s.ghosts))
	for i := range s.ghosts {
		if !s.ghosts[i].active {
			g = int32(i)
			break
		}
	}
	if int(g) == len(s.ghosts) {
		s.ghosts = append(s.ghosts, remains{})
	}
	x := &s.ghosts[g]
	*x = remains{ctrl: n, target: target, active: true, timed: x.timed, timer: x.timer, traffic: v.traffic,
		last: v.last, due: v.due}
	if !x.timed {
		x.timer, x.timed = s.eng.NewTimer(s.self, s.target, evRemainsExpired, uint32(g)), true
	}
	s.eng.Arm(x.timer, x.due)
	v.on = false
	s.eng.Disarm(v.timer)
	from, to := s.nodes(n)
	x.closing = s.sayClosing(from, to, g, Closing)
	return g
}

// remainsExpired handles the timer of a connection's remains.
func (s *System) remainsExpired(g int32) {
	x := &s.ghosts[g]
	if !s.silent(x.traffic, x.last) {
		x.traffic = false
		x.due += s.cfg.Period()
		s.eng.Arm(x.timer, x.due)
		return
	}
	s.Counters.Expired++
	s.endRemains(g)
}

// endRemains frees a connection's remains.
func (s *System) endRemains(g int32) {
	x := &s.ghosts[g]
	x.active = false
	s.eng.Disarm(x.timer)
	s.endClosing(&x.closing)
	t := &s.targets[x.target]
	for _, c := range s.takeGhosts(&t.memory.waiting, g) {
		s.forget(c)
	}
	answers := append(s.takeGhosts(&t.replies, g), s.takeGhosts(&t.waiting, g)...)
	s.commands.Each(func(_ int32, y *command) {
		if y.ghost == g+1 {
			y.ghost = 0
		}
	})
	s.freed = x.freed
	x.freed = freed{}
	s.letGo(x.target)
	for _, c := range answers {
		s.commands.At(c).ghost = 0
		s.unanswered(c)
	}
}

// takeGhosts removes a connection's remains from a list, and returns it.
func (s *System) takeGhosts(l *list, g int32) (out []int32) {
	old := *l
	*l = list{}
	for old.n > 0 {
		if c := s.pop(&old); s.commands.At(c).ghost == g+1 {
			out = append(out, c)
		} else {
			s.push(l, c)
		}
	}
	return out
}

// haunt leaves a command of an ended connection to its target, which does not know, if it is there. It reports false if
// the command ends elsewhere.
func (s *System) haunt(c, g int32) bool {
	x := s.commands.At(c)
	switch x.at {
	case arriving, needsMemory, filling, inDrive, finishing, heldBack:
		x.placing, x.ghost = false, g+1
		return true
	}
	return false
}

// answerNobody takes an answer's space for an initiator that is gone.
func (s *System) answerNobody(c int32, t *transmitter) {
	x := s.commands.At(c)
	r := &s.ghosts[x.ghost-1]
	d, q, size := &s.drives[x.drive], s.quit(x), s.answerSize(x)
	if size > s.cfg.TXQ {
		t.alone = size
	}
	t.used += size
	s.Counters.MostTXQ = max(s.Counters.MostTXQ, t.used)
	s.reportTXQ(x.target)
	r.queued += size
	r.memory += s.holds(x)
	if x.req.Op == block.Read && !x.refused && t.steered != nil {
		r.reading += int64(size)
	}
	s.forget(c)
	s.refill(d, q)
}

// fetchFromNobody keeps the memory for a write's data that never comes.
func (s *System) fetchFromNobody(c int32, size units.Bytes) {
	x := s.commands.At(c)
	s.ghosts[x.ghost-1].memory += size
	s.keepReceive(x, &s.ghosts[x.ghost-1].freed)
	s.forget(c)
}

// closingArrived notes a closing message, which takes effect outside of the network's call.
func (s *System) closingArrived(about int32, kind Kind) {
	ev := evClosed
	if kind == Closing {
		ev = evClosing
		s.ghosts[about].closing.arrived = true
	} else {
		s.vigils[about].closing.arrived = true
	}
	s.eng.Schedule(s.self, s.target, s.eng.Now(), ev, uint32(about))
}

// closes handles a closing message that has arrived, unless its subject has ended since.
func (s *System) closes(kind uint16, about int32) {
	if kind == evClosing {
		if x := &s.ghosts[about]; x.active && x.closing.arrived {
			s.endRemains(about)
		}
	} else if v := &s.vigils[about]; v.deaf && v.closing.arrived {
		s.lose(about)
	}
}
