package ssd

import (
	"farflash/block"
	"farflash/numeric/units"
)

// MQSim's rotation among priority classes (Quirks.RotatesClasses). MQSim polls every chip of an idle channel whenever a
// transaction is queued or a channel or chip becomes idle, and every poll advances the rotation, whether or not the
// chip can start a command.

// touchAll polls all channels if a transaction was queued since the last call.
func (d *Drive) touchAll() {
	if !d.entered {
		return
	}
	d.entered = false
	for ch := range d.channels {
		d.touch(int32(ch))
	}
}

// pollLanes is serveLanes with a poll of every lane, idle or not.
func (d *Drive) pollLanes(c *channel) bool {
	for range c.lanes {
		l := &c.lanes[c.turn]
		if c.turn++; int(c.turn) == len(c.lanes) {
			c.turn = 0
		}
		if l.phase != idle || l.mask == 0 {
			d.nextReads(l)
			d.nextWrites(l)
		} else if d.start(l) {
			return true
		}
	}
	return false
}

// readsAsPeer is MQSim's nextReads: it polls the host's queues exactly as often.
func (d *Drive) readsAsPeer(l *lane) (q1, q2 int) {
	m := l.mask
	moving := m&(1<<queueMoveRead) != 0
	switch {
	case m&(1<<queueMappingRead) != 0:
		if moving && d.urgentAsPeer(l) {
			return queueMappingRead, queueMoveRead
		}
		return queueMappingRead, d.nextHost(l, queueHostRead)
	case d.urgentAsPeer(l):
		if moving {
			return queueMoveRead, d.nextHost(l, queueHostRead)
		}
		if m&moves != 0 && !d.eraseStandsBack(l) {
			return -1, -1
		}
		return d.nextHost(l, queueHostRead), -1
	}
	if q := d.nextHost(l, queueHostRead); q >= 0 {
		if moving {
			return q, queueMoveRead
		}
		return q, -1
	}
	if d.nextHost(l, queueHostWrite) < 0 && moving {
		return queueMoveRead, -1
	}
	return -1, -1
}

// writesAsPeer is MQSim's nextWrites.
func (d *Drive) writesAsPeer(l *lane) (q1, q2 int) {
	move := -1
	if l.mask&(1<<queueMoveWrite) != 0 {
		move = queueMoveWrite
	}
	if d.urgentAsPeer(l) {
		if move >= 0 {
			return move, d.nextHost(l, queueHostWrite)
		}
		if l.mask&(1<<queueErase) != 0 && !d.eraseStandsBack(l) {
			return -1, -1
		}
		return d.nextHost(l, queueHostWrite), -1
	}
	if q := d.nextHost(l, queueHostWrite); q >= 0 {
		return q, move
	}
	return move, -1
}

// eraseStandsBack reports whether collection's only transaction on an idle lane is an erase that waits for host reads
// of its block. MQSim never reaches this state: it does not resume reads of a block under collection, and loses them.
func (d *Drive) eraseStandsBack(l *lane) bool {
	return l.phase == idle && l.mask&moves == 1<<queueErase && d.txns.At(l.queues[queueErase].at(0).txn).waitsFor != 0
}

// urgentAsPeer reports whether collection precedes the host on a lane.
func (d *Drive) urgentAsPeer(l *lane) bool {
	if !d.cfg.Collection.Preemptible {
		return true
	}
	for p := l.firstPlane; p < l.firstPlane+d.planesPerLane; p++ {
		if d.ftl.Urgent(int(d.pools.of[p])) {
			return true
		}
	}
	return false
}

// rotate selects one of the host's queues of a kind. first is the queue of class urgent; have has a bit set for each
// non-empty one. -1 is none.
func (d *Drive) rotate(l *lane, first int, have uint16) int {
	if have&1 != 0 { // urgent
		return first
	}
	way := 0
	if first == queueHostWrite {
		way = 1
	}
	weights := &d.cfg.Host.Weights // of high, medium and low
	class, weight := int(l.last[way]), int(l.weight[way])
	if weight == 0 { // first poll
		class, weight = int(block.Urgent), weights[0]
	}
	found := -1
	// Each lap over the classes lowers the weight that a class needs by one, down to 1, then back to that of high.
	for tries := 0; tries < weights[0]; {
		if class++; class >= int(block.Classes) {
			class = int(block.High)
		}
		if class == int(block.High) {
			tries++
			if weight--; weight <= 0 {
				weight = weights[0]
			}
		}
		if weights[class-1] >= weight && have>>class&1 != 0 {
			found = first + class
			break
		}
	}
	l.last[way], l.weight[way] = int8(class), int8(weight)
	if found < 0 && have != 0 {
		d.lookLater()
	}
	return found
}

// lookout recovers requests that MQSim would leave waiting forever.
type lookout struct {
	due      bool     // evLookAgain is scheduled
	begun    uint64   // flash commands begun when it was scheduled
	forsaken []uint32 // mapping pages with transactions that wait for evicted entries
}

// patience is the time without a flash command after which waiting transactions are served regardless. MQSim never
// serves them: it loses the request.
const patience = units.Second

// lookAgain serves all channels once without rotation if no command has started since lookLater.
//
//go:noinline
func (d *Drive) lookAgain() {
	d.lookout.due = false
	if d.commandsBegun() == d.lookout.begun {
		rotates := d.rotates
		d.rotates = false // the rotation can starve a class
		for ch := range d.channels {
			d.serve(int32(ch), &d.channels[ch])
		}
		d.rotates = rotates
		d.askAgain()
	}
	if len(d.lookout.forsaken) > 0 {
		d.lookLater()
		return
	}
	for i := range d.lanes {
		if l := &d.lanes[i]; l.phase == idle && l.mask&(hostReads|hostWrites) != 0 {
			d.lookLater()
			return
		}
	}
}

// askAgain repeats the map look-ups of transactions whose entries were evicted while they waited
// (Quirks.WaitersEvicted).
func (d *Drive) askAgain() {
	pages := d.lookout.forsaken
	d.lookout.forsaken = nil
	d.gather()
	for _, m := range pages {
		p := d.pageState(m)
		waiting := p.waitHead
		if p.reading {
			continue // looked up again when the read completes
		}
		p.waitHead, p.waitTail = 0, 0
		for waiting != 0 {
			t := waiting
			waiting = d.txns.At(t).next
			d.locate(t, d.txns.At(t))
		}
	}
	d.dispatch()
}

// lookLater schedules lookAgain.
func (d *Drive) lookLater() {
	if !d.lookout.due {
		d.lookout.due, d.lookout.begun = true, d.commandsBegun()
		d.schedule(d.eng.Now()+patience, evLookAgain, 0)
	}
}

// commandsBegun counts the flash commands started so far.
func (d *Drive) commandsBegun() (n uint64) {
	for _, of := range d.commands {
		for _, k := range of {
			n += k
		}
	}
	return n
}
