package nvmf

import (
	"farflash/model/fabric"
	"farflash/numeric/units"
)

// Connecting to a controller again, as Linux' nvme-tcp and nvme-rdma do (drivers/nvme/host): the admin queue first,
// then each I/O queue, one message and its answer after the other. With TCP a queue takes a handshake, ICReq and
// ICResp, and the Connect command; with RDMA the connection manager's request and reply, and Connect. After its own
// Connect the admin queue carries Property Get of CAP, Property Set of CC, Property Get of CSTS and of VS, Identify
// Controller, and Set Features for the number of queues. Each takes the software of both ends the time of a command.
//
// Left out are commands that only the first connecting needs, the wait for CSTS.RDY, and Connect's data by RDMA Read.

// Sizes of the messages that only connecting uses, in bytes.
const (
	initialize   units.Bytes = 128  // ICReq and ICResp (NVMe TCP Transport 1.0, 3.6.2.2)
	managed      units.Bytes = 256  // a management datagram (InfiniBand specification, volume 1, 13.4.2)
	connectData  units.Bytes = 1024 // Connect's (NVMe over Fabrics 1.1, figure 19)
	identifyData units.Bytes = 4096
)

// Limits of an attempt's steps. A SYN is repeated once after a second and given up two later (tcp_sock_set_syncnt); an
// address is resolved within NVME_RDMA_CM_TIMEOUT_MS; nvme-tcp sets the time for ICResp, and NVME_ADMIN_TIMEOUT is that
// of commands.
const (
	handshakeLimit  = 3 * units.Second
	initializeLimit = 10 * units.Second
	adminLimit      = 60 * units.Second
)

// exchange is a message to a controller and its answer.
type exchange struct {
	ask, reply units.Bytes
	limit      units.Duration
}

// queueSteps is how many exchanges connect a queue.
func (s *System) queueSteps() int32 {
	if s.protocol == NVMeTCP {
		return 3
	}
	return 2
}

// adminSteps is how many commands the admin queue has after Connect. Where paths have states, the log of these follows
// Identify.
func (s *System) adminSteps() int32 {
	if s.heads != nil {
		return 7
	}
	return 6
}

// logStep is the step that reads the log.
func (s *System) logStep() int32 {
	if s.heads != nil {
		return s.queueSteps() + 5
	}
	return -1
}

// exchange returns a step of connecting and its queue, -1 for the admin queue; ok is false after the last one.
func (s *System) exchange(step int32) (x exchange, queue int32, ok bool) {
	per, before := s.queueSteps(), s.queueSteps()+s.adminSteps()
	log := step == s.logStep()
	queue = -1
	if step >= before {
		step -= before
		queue, step = step/per, step%per
		if int(queue) == s.cfg.QueuePairs {
			return x, 0, false
		}
	}
	command, answer := capsuleSize, responseSize
	if s.protocol == NVMeTCP {
		command, answer = s.cfg.TCP.unit(commandPDU, 0), s.cfg.TCP.unit(responsePDU, 0)
	}
	x = exchange{command, answer, adminLimit}
	switch {
	case log:
		x.reply = s.logReply()
	case step == 0 && s.protocol == NVMeTCP: // a segment without data
		x = exchange{1, 1, handshakeLimit}
	case step == 0:
		x = exchange{managed, managed, handshakeLimit}
	case step == 1 && s.protocol == NVMeTCP:
		x = exchange{initialize, initialize, initializeLimit}
	case step == per-1:
		x.ask = command + connectData
		if s.protocol == NVMeTCP {
			x.ask = s.cfg.TCP.unit(commandPDU, connectData)
		}
	case step == per+4 && s.protocol == NVMeTCP:
		x.reply = s.cfg.TCP.answer(identifyData)
	case step == per+4:
		x.reply = identifyData + answer
	}
	return x, queue, true
}

// owns records a queue pair's controller.
func (s *System) owns(q fabric.QP, n int32) {
	for int(q) >= len(s.owners) {
		s.owners = append(s.owners, 0)
	}
	s.owners[q] = n + 1
}

// openAdmin opens a controller's admin queue, unless it is open. It reports false if there is no path.
func (s *System) openAdmin(n int32) bool {
	k := &s.ctrls[n]
	if !k.adminOpen {
		var err error
		k.out, k.back, err = s.openPair(n)
		k.adminOpen = err == nil
	}
	return k.adminOpen
}

// connectAgain begins an attempt to connect.
func (s *System) connectAgain(n int32) {
	k := &s.ctrls[n]
	s.Counters.Attempts++
	k.state, k.step = connecting, 0
	k.tried++
	if !s.openAdmin(n) {
		s.notConnected(n)
		return
	}
	s.nextStep(n)
}

// nextStep sends the next message of an attempt, or ends it.
func (s *System) nextStep(n int32) {
	k := &s.ctrls[n]
	x, queue, ok := s.exchange(k.step)
	if !ok {
		s.eng.Disarm(k.late)
		s.connected(n)
		return
	}
	if queue >= 0 {
		if i := n*int32(s.cfg.QueuePairs) + queue; !s.conns[i].open {
			if s.open(i, n) != nil {
				s.notConnected(n)
				return
			}
		}
	}
	s.eng.Arm(k.late, s.eng.Now()+x.limit)
	s.prepareAsk(n)
}

// notConnected ends an attempt to connect.
func (s *System) notConnected(n int32) {
	s.freed = freed{}
	s.closeAll(n)
	s.retryLater(n)
}

// tooLate handles an answer that did not come in time.
func (s *System) tooLate(n int32) {
	if s.ctrls[n].state == connecting {
		s.notConnected(n)
		return
	}
	s.Counters.Unalive++
	s.lose(n)
}

// mark is the argument of a controller's events that no timer can cancel: its number, and its era above that.
func (k *controller) mark(n int32) uint32 { return uint32(n) | uint32(k.era)<<24 }

// prepareAsk starts the initiator's software on a controller's message: the present step's, or a keep-alive.
func (s *System) prepareAsk(n int32) {
	initiator, _ := s.ends(n)
	m := &s.initiators[initiator]
	s.run(m, &s.initiating, s.coreOf(m, 0), 0,
		task{s.cfg.Initiator.before(), 0, int32(s.ctrls[n].mark(n)), evAskSent})
}

// goOn handles the end of software's work on a controller's message, unless the connection has ended since.
func (s *System) goOn(kind uint16, mark uint32) {
	n := int32(mark & (1<<24 - 1))
	k := &s.ctrls[n]
	if k.mark(n) != mark {
		return
	}
	x, queue := s.keepAliveSizes(), int32(-1)
	if k.state == connecting {
		x, queue, _ = s.exchange(k.step)
	}
	out, back := k.out, k.back
	if queue >= 0 {
		q := &s.conns[n*int32(s.cfg.QueuePairs)+queue]
		out, back = q.out, q.back
	}
	switch kind {
	case evAskSent:
		s.postAdmin(n, out, Admin, x.ask)
	case evAskTaken:
		if k.state == connecting && k.step == s.logStep() {
			s.routes[n].seen = s.stateOf(n)
		}
		if k.state == live {
			s.hearThere(n, true)
		}
		s.postAdmin(n, back, AdminReply, x.reply)
	case evReplyTaken:
		if k.state == live {
			k.asking = false
			s.eng.Disarm(k.late)
			return
		}
		k.step++
		s.nextStep(n)
	}
}

// keepAliveSizes returns the sizes of a Keep Alive command and its answer.
func (s *System) keepAliveSizes() exchange {
	x, _, _ := s.exchange(s.queueSteps())
	return x
}

// postAdmin sends a controller's message.
func (s *System) postAdmin(n int32, q fabric.QP, kind Kind, size units.Bytes) {
	m, err := s.net.Post(q, size)
	if err != nil {
		s.fail(err)
		return
	}
	for int(m) >= len(s.posted) {
		s.posted = append(s.posted, posted{})
	}
	_, target := s.ends(n)
	s.posted[m] = posted{command: -n - 1, kind: kind, target: target}
}

// askArrived starts the target's software on a controller's message.
func (s *System) askArrived(n int32) {
	_, target := s.ends(n)
	m := &s.targets[target].machine
	side := &s.cfg.Target
	s.notice(m, &s.serving, s.coreOf(m, 0),
		task{side.before() + side.after(), s.delay(&s.serving), int32(s.ctrls[n].mark(n)), evAskTaken})
}

// replyArrived starts the initiator's software on a controller's answer.
func (s *System) replyArrived(n int32) {
	initiator, _ := s.ends(n)
	m := &s.initiators[initiator]
	s.notice(m, &s.initiating, s.coreOf(m, 0),
		task{s.cfg.Initiator.after(), s.delay(&s.initiating), int32(s.ctrls[n].mark(n)), evReplyTaken})
}
