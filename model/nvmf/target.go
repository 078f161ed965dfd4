package nvmf

import (
	"errors"
	"fmt"

	"farflash/block"
	"farflash/numeric/units"
)

// queueSet are the queues that a target opens on a drive, and the queue that the commands of each operation use.
// Config.DriveDepth bounds each separately, and commands that find one full do not wait for another.
type queueSet struct {
	open []block.QueueConfig
	use  [block.Ops]uint8
}

// oneQueue puts all commands into one queue.
func (c *Config) oneQueue() queueSet {
	return queueSet{open: []block.QueueConfig{{Depth: min(c.DriveDepth+1, 65536), Class: block.Medium, Weight: 1}}}
}

// drive is a drive of a target.
type drive struct {
	dev    block.Device
	queues []driveQueue
	of     [block.Ops]uint8
	target int32
	number int32 // its number at the target, if that has a controller
	inside int32 // commands in all its queues

	visited [2]units.Total // see Visited
}

// driveQueue is one of a drive's queues.
type driveQueue struct {
	id      block.QueueID
	inside  int32 // commands in the drive, or completed and not yet in the transmit queue
	waiting list
}

// AddDrive adds a drive with one queue to a target and returns its number over all targets. The drive completes to the
// system.
func (s *System) AddDrive(target int32, dev block.Device) (int32, error) {
	return s.addDriveQueues(target, dev, s.cfg.oneQueue())
}

// addDriveQueues is AddDrive with the given queues.
func (s *System) addDriveQueues(target int32, dev block.Device, queues queueSet) (int32, error) {
	switch {
	case target < 0 || int(target) >= len(s.targets):
		return 0, fmt.Errorf("nvmf: there is no target %d; there are %d", target, len(s.targets))
	case dev == nil:
		return 0, errors.New("nvmf: the drive is nil")
	case s.targets[target].steered != nil:
		return 0, fmt.Errorf("nvmf: target %d has a controller of its drives; add them before Steer", target)
	}
	d := drive{dev: dev, of: queues.use, target: target}
	for _, c := range queues.open {
		q, err := dev.Open(c)
		if err != nil {
			return 0, err
		}
		d.queues = append(d.queues, driveQueue{id: q})
	}
	for op, q := range queues.use {
		if int(q) >= len(d.queues) {
			return 0, fmt.Errorf("%ss go to queue %d of a drive, which has %d", block.Op(op), q, len(d.queues))
		}
	}
	s.drives = append(s.drives, d)
	n := int32(len(s.drives) - 1)
	s.targets[target].drives = append(s.targets[target].drives, n)
	return n, nil
}

// capsuleArrived starts the target's software on a command.
func (s *System) capsuleArrived(c int32) {
	x := s.commands.At(c)
	s.spent(x, NetworkOut)
	x.arrived = s.eng.Now()
	s.took(x)
	if x.req.Op == block.Write && x.req.Length <= int64(s.cfg.InCapsule) {
		x.netOut = s.eng.Now()
	}
	side := &s.cfg.Target
	x.at = arriving
	cost := side.before()
	if x.req.Op == block.Write && !s.fetched(x) {
		cost += s.moved(side, side.Receive, units.Bytes(x.req.Length))
	}
	s.toTarget(x, cost, s.delay(&s.serving), evReceived, c)
}

// received passes a command to its drive, or allocates its memory first.
func (s *System) received(c int32) {
	if x := s.commands.At(c); !x.orphan {
		s.hearThere(x.conn/int32(s.cfg.QueuePairs), false)
	}
	if s.refused(c) {
		return
	}
	x := s.commands.At(c)
	if s.needs(x) > 0 {
		if x.ghost > 0 || !s.orphaned(c) {
			s.fetch(c)
		}
		return
	}
	s.drive(c)
}

// dataArrived handles a write whose data has fully arrived at the target.
func (s *System) dataArrived(c int32) {
	x := s.commands.At(c)
	x.netOut = s.eng.Now()
	if s.protocol == Flows {
		x.arrived = x.netOut
	}
	s.spent(x, NetworkOut)
	if s.protocol.Capsules() {
		s.fetchNext(x.conn)
	}
	if s.protocol == NVMeTCP {
		side := &s.cfg.Target
		x.at = filling
		s.toTarget(x, side.before()+s.moved(side, side.Receive, units.Bytes(x.req.Length)), s.delay(&s.serving),
			evFilled, c)
		return
	}
	s.drive(c)
}

// drive passes a command to its drive, or queues it behind others or for its tenant's limits.
func (s *System) drive(c int32) {
	x := s.commands.At(c)
	x.at = inDrive
	if !s.limitable(x) || s.passes(c) {
		s.toDrive(c)
	}
}

// toDrive is drive for a command that its tenant's limits let pass.
func (s *System) toDrive(c int32) {
	x := s.commands.At(c)
	if s.targets[x.target].steered != nil {
		s.queue(c)
		return
	}
	d := &s.drives[x.drive]
	q := &d.queues[d.of[x.req.Op]]
	if q.waiting.n == 0 && s.enter(d, q, c) {
		return
	}
	s.push(&q.waiting, c)
	s.Counters.HeldAtTarget++
	s.Counters.MostAtTarget = max(s.Counters.MostAtTarget, q.waiting.n)
}

// enter puts a command into a drive's queue, if there is a place.
func (s *System) enter(d *drive, q *driveQueue, c int32) bool {
	x := s.commands.At(c)
	if q.inside >= int32(s.cfg.DriveDepth) || !d.dev.Submit(q.id, x.req) {
		return false
	}
	q.inside++
	d.inside++
	x.driveIn = s.eng.Now()
	s.spent(x, AtTarget)
	s.reportQueue(x.drive)
	return true
}

// quit removes a command, whose answer is about to be sent, from its drive's queue, and returns the queue; nil if it
// was never in it.
func (s *System) quit(x *command) *driveQueue {
	if x.refused {
		return nil
	}
	d := &s.drives[x.drive]
	q := &d.queues[d.of[x.req.Op]]
	q.inside--
	d.inside--
	if t := s.targets[x.target].steered; t != nil {
		t.queues[d.number].Done(x.ticket)
	}
	s.reportQueue(x.drive)
	return q
}

// Complete implements the drives' sink: a drive has completed a command.
func (s *System) Complete(done block.Completion) {
	c := int32(done.Tag)
	if done.Tag == 0 || done.Tag >= uint64(s.commands.Bound()) {
		panic(fmt.Sprintf("nvmf: Complete of the command with tag %d, which the system did not submit", done.Tag))
	}
	x := s.commands.At(c)
	now := s.eng.Now()
	x.driveOut, x.status, x.placed = now, done.Status, done.Offset
	waited := min(done.Waited, now-x.mark)
	x.stage[DriveWait] += waited
	x.mark += waited
	s.spent(x, Flash)
	if done.Op <= block.Write && done.Status == block.OK {
		s.drives[x.drive].visited[done.Op].Add(now - x.driveIn)
	}
	if s.OnVisit != nil {
		s.OnVisit(Visit{In: x.driveIn, Out: now, Waited: waited, Size: units.Bytes(x.req.Length), Tag: x.tag,
			Target: x.target, Drive: x.drive, Initiator: x.initiator, Op: x.req.Op})
	}
	if s.steers && s.targets[x.target].steered != nil {
		s.noteEnded(x)
	}
	if s.protocol == Flows {
		s.finished(c)
		return
	}
	side := &s.cfg.Target
	x.at = finishing
	cost := side.after()
	if x.reads() {
		cost += s.moved(side, side.Send, units.Bytes(x.req.Length))
	}
	s.toTarget(x, cost, 0, evFinished, c)
}

// refill gives a drive's queue the commands that wait for a place in it.
func (s *System) refill(d *drive, q *driveQueue) {
	if q == nil {
		return
	}
	if t := &s.targets[d.target]; t.steered != nil {
		s.admit(t.drives[d.number])
		return
	}
	for q.waiting.n > 0 && s.enter(d, q, q.waiting.head) {
		s.pop(&q.waiting)
	}
}
