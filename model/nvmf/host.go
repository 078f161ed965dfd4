package nvmf

import (
	"farflash/model/fabric"
	"farflash/numeric/units"
	"farflash/sim"
)

// Host is what an initiator does about a target that does not answer, with the words of nvme-cli and Linux. All queue
// pairs between an initiator and a target belong to one controller.
type Host struct {
	// IOTimeout is the longest time that a command is outstanding (Linux' nvme_core.io_timeout), after which the host
	// ends all connections to the target. 0s is no limit.
	IOTimeout units.Duration
	// KeepAlive is how long a keep-alive may be unanswered (nvme connect -k; 5s there). One is sent after half of it
	// without a completion. 0s: none.
	KeepAlive units.Duration
	// ReconnectDelay precedes each attempt to connect (nvme connect -c).
	ReconnectDelay units.Duration
	// CtrlLoss over reconnect_delay is the number of attempts after which commands fail for good (nvme connect -l).
	CtrlLoss units.Duration
	// FastIOFail is when commands that wait for a target fail (nvme connect -f). 0s: they wait.
	FastIOFail units.Duration
	// MaxRetries is how often a command is repeated (Linux' nvme_core.max_retries). With several
	// paths there is no limit.
	MaxRetries int
	// Rediscovery is the period in which a discovery client connects to a controller that was given up (nvme-stas:
	// 60s). The first two attempts each follow after 3s, if that is less. 0s: none does.
	Rediscovery units.Duration
}

// defaultHost returns the defaults of Linux 6 (drivers/nvme/host/core.c, fabrics.h) and of nvme-cli, without its
// keep-alive.
func defaultHost() Host {
	return Host{IOTimeout: 30 * units.Second, ReconnectDelay: 10 * units.Second, CtrlLoss: 600 * units.Second,
		MaxRetries: 5}
}

func (h *Host) validate() error {
	const most = 24 * 3600 * units.Second
	var bad units.Faults
	for _, x := range []struct {
		key string
		t   units.Duration
	}{{"io_timeout", h.IOTimeout}, {"keep_alive", h.KeepAlive}, {"ctrl_loss", h.CtrlLoss},
		{"fast_io_fail", h.FastIOFail}, {"rediscovery", h.Rediscovery}} {
		bad.Hold(x.t >= 0 && x.t <= most, x.key, "%v is not possible; use 0s to 24h", x.t)
	}
	bad.Hold(h.KeepAlive <= 0 || h.KeepAlive >= units.Millisecond, "keep_alive",
		"%v is not possible, since NVMe counts milliseconds; use 0s for none, or 1ms and more", h.KeepAlive)
	bad.Hold(h.Rediscovery <= 0 || h.Rediscovery >= units.Microsecond, "rediscovery",
		"%v is not possible; use 0s for none, or 1us to 24h", h.Rediscovery)
	bad.Hold(h.ReconnectDelay >= units.Microsecond && h.ReconnectDelay <= most, "reconnect_delay",
		"%v is not possible; use 1us to 24h", h.ReconnectDelay)
	bad.Hold(h.MaxRetries >= 0 && h.MaxRetries <= 255, "max_retries", "%d is not possible; use 0 to 255", h.MaxRetries)
	bad.Hold(h.FastIOFail == 0 || h.FastIOFail <= h.CtrlLoss, "fast_io_fail",
		"%v is later than ctrl_loss, %v, when commands fail in any case; use less, or 0s", h.FastIOFail, h.CtrlLoss)
	return bad.Err()
}

// attempts returns how often a host tries to connect to a lost controller.
func (h *Host) attempts() int { return int((h.CtrlLoss + h.ReconnectDelay - 1) / h.ReconnectDelay) }

// quickly is nvme-stas' time before the first two attempts (staslib/ctrl.py).
const quickly = 3 * units.Second

// untilFound returns when to try a controller that was given up and has been tried n times since; 0 is never.
func (h *Host) untilFound(n int32) units.Duration {
	if n < 2 {
		return min(quickly, h.Rediscovery)
	}
	return h.Rediscovery
}

// Failures are totals over all initiators and targets that lost each other.
type Failures struct {
	Timeouts  uint64   // Timeouts counts commands that were outstanding too long.
	Unalive   uint64   // Unalive counts keep-alives without an answer.
	Losses    uint64   // Losses counts controllers whose connections were ended.
	Attempts  uint64   // Attempts counts those to connect again.
	Connected uint64   // Connected counts the successful ones.
	Removed   uint64   // Removed counts controllers given up.
	Retries   uint64   // Retries counts commands repeated.
	Expired   uint64   // Expired counts controllers that targets ended because they heard nothing.
	Pathless  uint64   // Pathless counts commands that failed because of a lost controller.
	Without   sim.Time // Without is the total time that initiators were without a target; see Unreachable.
}

// controller is what an initiator knows of a target.
type controller struct {
	state      condition
	begun      bool // some command was submitted
	heard      bool // a command completed since the last look
	asking     bool // a keep-alive is outstanding
	failing    bool // commands wait no longer
	gone       bool // it was given up
	timed      bool // the timers exist
	adminOpen  bool
	era        uint8 // how often its connections were ended or begun
	step       int32 // of connecting
	tried      int32 // attempts to connect since it was lost, or given up
	since      sim.Time
	requeued   list // commands to be repeated
	out, back  fabric.QP
	timer      sim.Timer // the next attempt
	late       sim.Timer // the limit of an outstanding exchange
	look, fast sim.Timer
}

// condition is the state of a controller.
type condition uint8

const (
	live       condition = iota
	waiting              // for the next attempt
	connecting           // which is in progress
	removed
)

// phase is where a command is, as far as its connection's end matters.
type phase uint8

const (
	preparing   phase = iota // evSent is due
	batched                  // in its queue pair's batch
	outward                  // its capsule is in flight
	arriving                 // evReceived is due
	needsMemory              // in the target's list for memory
	needsRead                // in its queue pair's list for an RDMA Read
	pulling                  // its data is requested, or in flight
	supplying                // evAsked is due
	filling                  // evFilled is due
	limited                  // in its tenant's list for the limits
	inDrive                  // in a queue of the target, or in the drive
	finishing                // evFinished is due
	heldBack                 // in the target's list for space in the transmit queue
	answering                // its answer is in flight
	returning                // evEnded is due
)

// begins starts the keep-alives of a controller with its first command.
func (s *System) begins(n int32) {
	k := &s.ctrls[n]
	if k.begun {
		return
	}
	k.begun = true
	s.startVigil(n)
	s.startLooking(n)
}

// startLooking starts the keep-alives of a connected controller.
func (s *System) startLooking(n int32) {
	if s.cfg.Host.KeepAlive > 0 && s.abandoner != nil {
		k := s.timers(n)
		k.heard = false
		s.eng.Arm(k.look, s.eng.Now()+s.cfg.Host.KeepAlive/2)
	}
}

// timers returns a controller whose timers exist.
func (s *System) timers(n int32) *controller {
	k := &s.ctrls[n]
	if !k.timed {
		k.timed = true
		for _, x := range []struct {
			t    *sim.Timer
			kind uint16
		}{{&k.timer, evReconnect}, {&k.late, evLate}, {&k.look, evKeepAlive}, {&k.fast, evFailFast}} {
			*x.t = s.eng.NewTimer(s.self, s.target, x.kind, uint32(n))
		}
	}
	return k
}

// watch limits the time of a connection's commands. The timer is that of the oldest one when it was set, and is set
// again when it expires, so that a command seldom touches it.
func (s *System) watch(conn int32) {
	q := &s.conns[conn]
	if q.watching || s.cfg.Host.IOTimeout == 0 || s.abandoner == nil {
		return
	}
	if !q.watched {
		q.watch, q.watched = s.eng.NewTimer(s.self, s.target, evOverdue, uint32(conn)), true
	}
	q.watching = true
	s.eng.Arm(q.watch, s.eng.Now()+s.cfg.Host.IOTimeout)
}

// overdue looks for commands of a connection that have taken too long.
func (s *System) overdue(conn int32) {
	q := &s.conns[conn]
	q.watching = false
	now, oldest, late := s.eng.Now(), sim.Forever, uint64(0)
	s.commands.Each(func(_ int32, x *command) {
		if x.conn == conn && x.placing && x.at != returning {
			oldest = min(oldest, x.since)
			if x.since+s.cfg.Host.IOTimeout <= now {
				late++
			}
		}
	})
	switch {
	case late > 0:
		s.Counters.Timeouts += late
		s.lose(conn / int32(s.cfg.QueuePairs))
	case oldest < sim.Forever:
		q.watching = true
		s.eng.Arm(q.watch, oldest+s.cfg.Host.IOTimeout)
	}
}

// keepAlive asks a controller that completed nothing since the last look whether it is there. Its target is one whose
// traffic counts (NVMe 2.0, 3.9: TBKAS), as Linux' is.
func (s *System) keepAlive(n int32) {
	k := &s.ctrls[n]
	if k.state != live {
		return
	}
	h := &s.cfg.Host
	s.eng.Arm(k.look, s.eng.Now()+h.KeepAlive/2)
	if k.heard && s.cfg.KeepAliveTimer != SPDKTimer || k.asking {
		k.heard = false
		return
	}
	deaf := s.deaf(n)
	if !deaf && !s.openAdmin(n) {
		s.lose(n)
		return
	}
	k.asking = true
	s.eng.Arm(k.late, s.eng.Now()+h.KeepAlive)
	if !deaf {
		s.prepareAsk(n)
	}
}

// lose ends a controller's connections and cancels its commands. The first attempt to connect again begins after
// ReconnectDelay (nvme_tcp_reconnect_or_remove).
func (s *System) lose(n int32) {
	k := s.timers(n)
	if k.state != live {
		return
	}
	s.Counters.Losses++
	k.state, k.since, k.tried, k.asking = waiting, s.eng.Now(), 0, false
	s.eng.Disarm(k.look)
	s.disconnect(n)
	if s.retryLater(n); k.state != removed && s.cfg.Host.FastIOFail > 0 {
		s.eng.Arm(k.fast, s.eng.Now()+s.cfg.Host.FastIOFail)
	}
}

// retryLater plans the next attempt to connect, or gives the controller up, which then only rediscovery connects to.
func (s *System) retryLater(n int32) {
	k := &s.ctrls[n]
	s.eng.Disarm(k.late)
	if !k.gone && int(k.tried) < s.cfg.Host.attempts() {
		k.state = waiting
		s.eng.Arm(k.timer, s.eng.Now()+s.cfg.Host.ReconnectDelay)
		return
	}
	k.state = removed
	if !k.gone {
		k.gone, k.tried = true, 0
		s.Counters.Removed++
		s.eng.Disarm(k.fast)
		s.failAll(n)
	}
	if t := s.cfg.Host.untilFound(k.tried); t > 0 {
		s.eng.Arm(k.timer, s.eng.Now()+t)
	}
}

// failAll fails the commands that wait for a controller.
func (s *System) failAll(n int32) {
	if s.heads != nil {
		s.kick(n)
		return
	}
	k := &s.ctrls[n]
	for k.requeued.n > 0 {
		s.failSoon(s.pop(&k.requeued))
	}
	first := n * int32(s.cfg.QueuePairs)
	for i := first; i < first+int32(s.cfg.QueuePairs); i++ {
		for q := &s.conns[i]; q.waiting.n > 0; {
			s.failSoon(s.pop(&q.waiting))
		}
	}
}

// leastFailure is the core time of a command that fails, if the stack's is less: a closed loop would otherwise submit
// and fail for ever without the clock moving.
const leastFailure = units.Microsecond

// failSoon fails a command once the initiator's software has looked at it.
func (s *System) failSoon(c int32) {
	x := s.commands.At(c)
	s.Counters.Pathless++
	s.byInitiator(x, max(s.cfg.Initiator.Command, leastFailure), evFailed, c)
}

// connected makes a controller usable again and submits the commands that waited for it, those to be repeated first.
func (s *System) connected(n int32) {
	k := &s.ctrls[n]
	s.Counters.Connected++
	s.Counters.Without += s.eng.Now() - k.since
	k.state, k.failing, k.gone = live, false, false
	s.eng.Disarm(k.fast)
	s.startVigil(n)
	s.startLooking(n)
	first := n * int32(s.cfg.QueuePairs)
	for i := first; i < first+int32(s.cfg.QueuePairs); i++ {
		s.share(i)
	}
	if s.heads != nil {
		s.pathConnected(n)
		return
	}
	for k.requeued.n > 0 {
		c := s.pop(&k.requeued)
		s.conns[s.commands.At(c).conn].outstanding++
		s.begin(c)
	}
	for i := first; i < first+int32(s.cfg.QueuePairs); i++ {
		for q := &s.conns[i]; q.waiting.n > 0 && q.outstanding < int32(s.cfg.QueueDepth); {
			q.outstanding++
			s.begin(s.pop(&q.waiting))
		}
	}
}

// Broken implements fabric.Breaker: one of a controller's connections has given up.
func (s *System) Broken(q fabric.QP) {
	if int(q) >= len(s.owners) || s.owners[q] == 0 || s.abandoner == nil {
		return
	}
	n := s.owners[q] - 1
	switch s.ctrls[n].state {
	case live:
		s.lose(n)
	case connecting:
		s.notConnected(n)
	}
}

// Reconnects reports whether some initiator has lost a target and may connect to it again, or a path's state is to
// change. Controllers that were given up do not count.
func (s *System) Reconnects() bool {
	if s.changes > 0 {
		return true
	}
	for i := range s.ctrls {
		if k := &s.ctrls[i]; !k.gone && (k.state == waiting || k.state == connecting) {
			return true
		}
	}
	return false
}

// Unreachable returns the total time that initiators were without a target, until now.
func (s *System) Unreachable() sim.Time {
	sum := s.Counters.Without
	for i := range s.ctrls {
		if k := &s.ctrls[i]; k.state != live {
			sum += s.eng.Now() - k.since
		}
	}
	return sum
}

// Removed calls f for each initiator and target of a controller that was given up and not found again, and when that
// was lost.
func (s *System) Removed(f func(initiator, target int32, lost sim.Time)) {
	for i := range s.ctrls {
		if k := &s.ctrls[i]; k.gone {
			initiator, target := s.ends(int32(i))
			f(initiator, target, k.since)
		}
	}
}
