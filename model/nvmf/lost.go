package nvmf

import (
	"cmp"
	"slices"

	"farflash/block"
	"farflash/model/fabric"
	"farflash/numeric/units"
	"farflash/sim"
)

// The end of a connection with commands on it. Each of them becomes two: one that the initiator repeats or fails, with
// all of its time so far, and one that is left behind. Its messages in the network are dropped. A command that has
// reached the target with its data goes on there, to the drive as well, and its answer finds no connection; one that
// waits there for data, memory or space is dropped. The target learns at once that the connection has ended, unless
// it has a timer of its own (expiry.go).

// freed is what messages held that ended with their connection.
type freed struct {
	queued, memory units.Bytes
	receives       []int32 // their pools, plus 1
	reading        int64
}

// disconnect ends a controller's connections and cancels its commands. Those whose answers have arrived end as usual.
func (s *System) disconnect(n int32) {
	_, target := s.ends(n)
	gone := s.commandsOf(n, func(x *command) bool { return x.at != returning })
	for _, c := range gone {
		s.commands.At(c).orphan = true
	}
	ghost := int32(-1)
	switch {
	case s.deaf(n): // the target's part has ended
		s.vigils[n].deaf = false
		s.endClosing(&s.vigils[n].closing)
	case s.watches():
		ghost = s.leaveRemains(n)
		s.stripGates()
	default:
		s.stripAll(target)
	}
	s.freed = freed{}
	s.closeAll(n)
	for _, c := range gone {
		s.repeat(n, c)
	}
	if s.heads != nil {
		s.abandonPath(n)
	}
	for _, c := range gone {
		if ghost < 0 || !s.haunt(c, ghost) {
			s.leaveBehind(c)
		}
	}
	if ghost >= 0 {
		s.ghosts[ghost].freed, s.freed = s.freed, freed{}
		return
	}
	s.letGo(target)
}

// commandsOf returns a controller's commands that have places and that which allows, in the order of these.
func (s *System) commandsOf(n int32, which func(x *command) bool) (list []int32) {
	s.commands.Each(func(c int32, x *command) {
		if x.conn/int32(s.cfg.QueuePairs) == n && x.placing && !x.orphan && which(x) {
			list = append(list, c)
		}
	})
	slices.SortFunc(list, func(a, b int32) int {
		return cmp.Or(cmp.Compare(s.commands.At(a).since, s.commands.At(b).since), cmp.Compare(a, b))
	})
	return list
}

// stripAll removes from a target's lists, and from those of limits, the commands whose connection has ended.
func (s *System) stripAll(target int32) {
	t := &s.targets[target]
	for _, l := range []*list{&t.memory.waiting, &t.waiting, &t.replies} {
		s.strip(l)
	}
	s.stripGates()
}

func (s *System) stripGates() {
	for i := range s.gates {
		s.strip(&s.gates[i].waiting)
	}
}

// strip removes from a list the commands whose connection has ended.
func (s *System) strip(l *list) {
	old := *l
	*l = list{}
	for old.n > 0 {
		if c := s.pop(&old); !s.commands.At(c).orphan || s.commands.At(c).ghost > 0 {
			s.push(l, c)
		}
	}
}

// closeAll ends a controller's queue pairs.
func (s *System) closeAll(n int32) {
	k := &s.ctrls[n]
	k.era++
	if k.adminOpen {
		k.adminOpen = false
		s.abandon(k.out)
		s.abandon(k.back)
	}
	first := n * int32(s.cfg.QueuePairs)
	for i := first; i < first+int32(s.cfg.QueuePairs); i++ {
		q := &s.conns[i]
		if q.watching {
			q.watching = false
			s.eng.Disarm(q.watch)
		}
		if !q.open {
			continue
		}
		q.open = false
		s.unfollow(q.back)
		s.abandon(q.out)
		s.abandon(q.back)
		q.reading, q.unread, q.batch, q.pool = 0, list{}, list{}, 0
		if q.timed {
			s.eng.Disarm(q.timer)
		}
	}
}

// abandon ends a queue pair.
func (s *System) abandon(q fabric.QP) {
	s.owners[q] = 0
	if err := s.abandoner.Abandon(q, s.dropped); err != nil {
		s.fail(err)
	}
}

// dropped takes a message back that ended with its connection.
func (s *System) dropped(m int32) {
	if !s.Carries(m) {
		return
	}
	s.OnDropped.Fire(m)
	p := s.posted[m]
	s.posted[m] = posted{}
	s.freed.queued += units.Bytes(p.bytes)
	s.freed.memory += units.Bytes(p.held)
	if p.read {
		s.freed.reading += int64(p.bytes)
	}
}

// repeat makes a new command of one whose connection has ended, unless that was repeated often enough.
func (s *System) repeat(n, c int32) {
	x := s.commands.At(c)
	s.conns[x.conn].outstanding--
	s.unroute(x)
	often := int(x.retries) >= s.cfg.Host.MaxRetries
	again := s.again(c)
	switch {
	case s.heads != nil: // a failover is none of the retries that max_retries bounds (nvme_failover_req)
		s.Counters.Retries++
		s.routes[n].totals.Failovers++
		s.push(&s.heads[n/s.paths].waiting, again)
	case often:
		s.failSoon(again)
	default:
		s.Counters.Retries++
		s.push(&s.ctrls[n].requeued, again)
	}
}

// again returns a new command for another attempt at one.
func (s *System) again(c int32) int32 {
	x := *s.commands.At(c)
	again := s.commands.Take()
	y := s.commands.At(again)
	*y = command{req: x.req, tag: x.tag, submitted: x.submitted, mark: x.submitted, initiator: x.initiator,
		drive: x.drive, target: x.target, conn: x.conn, first: -1, retries: x.retries + 1}
	y.req.Tag = uint64(again)
	return again
}

// leaveBehind ends what can end at once of a command whose connection has ended. Events that are due for it, or its
// drive, end the rest.
func (s *System) leaveBehind(c int32) {
	x := s.commands.At(c)
	x.placing = false
	switch x.at {
	case preparing, arriving, filling, inDrive, finishing, heldBack:
	default:
		s.keepReceive(x, &s.freed)
	}
	switch x.at {
	case preparing, arriving, filling, inDrive, finishing:
	case supplying:
		s.freed.memory += s.needs(x)
	case needsRead, pulling, limited:
		s.freed.memory += s.needs(x)
		s.forget(c)
	case heldBack:
		s.unanswered(c)
	default:
		s.forget(c)
	}
}

// orphaned reports whether a command's connection has ended, and then forgets the command.
func (s *System) orphaned(c int32) bool {
	if !s.commands.At(c).orphan {
		return false
	}
	s.forget(c)
	return true
}

// forget frees a command that was left behind.
func (s *System) forget(c int32) {
	x := s.commands.At(c)
	for k, t := range x.stage {
		s.lost[k] += t
	}
	s.repost(x)
	s.commands.Give(c)
}

// unanswered ends a command that a drive has completed and whose connection has ended.
func (s *System) unanswered(c int32) {
	x := s.commands.At(c)
	target := x.target
	d := &s.drives[x.drive]
	q := s.quit(x)
	own := freed{memory: s.holds(x)}
	if x.req.Op == block.Read && !x.refused {
		own.reading = int64(s.answerSize(x))
	}
	s.forget(c)
	s.freed.memory += own.memory
	s.freed.reading += own.reading
	s.refill(d, q)
	s.letGo(target)
}

// letGo returns to a target what ended connections held.
func (s *System) letGo(target int32) {
	x := s.freed
	s.freed = freed{}
	t := &s.targets[target]
	if t.steered != nil && x.reading > 0 {
		limit, held := t.steered.steering.ReadLimit, t.steered.holdsReads()
		t.steered.steering.Reading -= x.reading
		s.resumeReads(t, held, limit)
	}
	for _, pool := range x.receives {
		s.pooler.Repost(pool - 1)
	}
	if x.queued > 0 {
		s.release(target, x.queued)
	}
	if x.memory > 0 {
		s.giveBack(target, x.memory)
	}
}

// handleLoss handles the events of hosts that lose targets.
func (s *System) handleLoss(e sim.Event) {
	c := int32(e.Arg)
	switch e.Kind {
	case evOverdue:
		s.overdue(c)
	case evReconnect:
		s.connectAgain(c)
	case evLate:
		s.tooLate(c)
	case evKeepAlive:
		s.keepAlive(c)
	case evFailFast:
		s.ctrls[c].failing = true
		s.failAll(c)
	case evAskSent, evAskTaken, evReplyTaken:
		s.goOn(e.Kind, e.Arg)
	case evSlice:
		s.nextSlice(c)
	case evExpired:
		s.expired(c)
	case evRemainsExpired:
		s.remainsExpired(c)
	case evClosing, evClosed:
		s.closes(e.Kind, c)
	case evANA:
		s.change(c)
	case evKick:
		s.kickNow(c)
	case evLogLate:
		s.lose(c)
	case evEventSent, evEventTaken, evLogAsked, evLogRead, evLogTaken:
		s.handleLog(e.Kind, e.Arg)
	case evFailed:
		s.commands.At(c).status = block.PathError
		s.end(c)
	}
}
