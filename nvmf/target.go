package nvmf

import (
	"farflash/block"
	"farflash/sim"
	"farflash/units"
)

// drive is a drive of a target.
type drive struct {
	dev     block.Device
	queue   block.QueueID
	target  int32
	inside  int32 // commands in the drive, or ended and not yet in the transmit queue
	waiting list
}

// capsuleArrived: the target's software looks at a command.
func (s *System) capsuleArrived(c int32) {
	x := &s.commands[c]
	s.move(x, NetworkOut, inTarget)
	x.arrived = s.eng.Now()
	if x.req.Op == block.Write && x.req.Length <= int64(s.cfg.InCapsule) {
		x.netOut = s.eng.Now()
	}
	s.work(s.core(&s.targets[x.target].machine, s.conns[x.conn].targetCore), s.cfg.Target.Command/2, evReceived, c)
}

// received: a command is given to its drive, or its data is fetched first.
func (s *System) received(c int32) {
	x := &s.commands[c]
	if x.req.Op == block.Write && x.req.Length > int64(s.cfg.InCapsule) {
		s.Counters.Pulls++
		s.move(x, AtTarget, inNetworkOut)
		s.post(c, Pull, false, pullSize)
		return
	}
	s.drive(c)
}

// dataArrived: all data of a write is at the target.
func (s *System) dataArrived(c int32) {
	x := &s.commands[c]
	x.netOut = s.eng.Now()
	if s.protocol == Flows {
		x.arrived = x.netOut
	}
	s.move(x, NetworkOut, inTarget)
	s.drive(c)
}

// drive gives a command to its drive, or has it wait behind others.
func (s *System) drive(c int32) {
	d := &s.drives[s.commands[c].drive]
	if d.waiting.n == 0 && s.enter(d, c) {
		return
	}
	s.push(&d.waiting, c)
	s.Counters.HeldAtTarget++
	s.Counters.MostAtTarget = max(s.Counters.MostAtTarget, d.waiting.n)
}

// enter puts a command into its drive's queue, if there is a place.
func (s *System) enter(d *drive, c int32) bool {
	x := &s.commands[c]
	if d.inside >= int32(s.cfg.DriveDepth) || !d.dev.Submit(d.queue, x.req) {
		return false
	}
	d.inside++
	x.driveIn = s.eng.Now()
	s.move(x, AtTarget, inDrive)
	s.tellQueue(x.drive)
	return true
}

// Complete implements the drives' sink: a drive has ended a command.
func (s *System) Complete(done block.Completion) {
	c := int32(done.Tag)
	x := &s.commands[c]
	now := s.eng.Now()
	x.driveOut, x.status = now, done.Status
	waited := min(sim.Time(done.Waited), now-x.mark)
	x.stage[DriveWait] += waited
	x.mark += waited
	// What is counted for the place includes the wait, which the mark has just left out.
	s.Counters.presence[inDrive] += uint64(now)
	s.Counters.presence[inTXQ] -= uint64(now)
	x.stage[Flash] += now - x.mark
	x.at, x.mark = inTXQ, now
	if s.OnVisit != nil {
		s.OnVisit(Visit{In: x.driveIn, Out: now, Waited: waited, Size: units.Bytes(x.req.Length), Tag: x.tag, Target: x.target, Drive: x.drive, Initiator: x.initiator, Op: x.req.Op})
	}
	if s.protocol == Flows {
		s.finished(c)
		return
	}
	s.work(s.core(&s.targets[x.target].machine, s.conns[x.conn].targetCore), s.cfg.Target.Command-s.cfg.Target.Command/2, evFinished, c)
}

// refill gives a drive what waits for a place in its queue.
func (s *System) refill(d *drive) {
	for d.waiting.n > 0 && s.enter(d, d.waiting.head) {
		s.pop(&d.waiting)
	}
}
