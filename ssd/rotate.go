package ssd

import (
	"farflash/block"
	"farflash/units"
)

// How a peer takes turns among classes (Quirks.RotatesClasses). It looks at every chip of an idle channel whenever anything is scheduled or a channel or a chip becomes idle,
// and at each look the turn moves on, whether or not the chip can begin a command.

// touchAll has all channels looked at if anything has entered the scheduler.
func (d *Drive) touchAll() {
	if !d.entered {
		return
	}
	d.entered = false
	for ch := range d.channels {
		d.touch(int32(ch))
	}
}

// pollLanes is serveLanes that looks at every lane, idle or not.
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

// readsAsPeer is nextReads of a peer, which looks at the host's queues no more and no less often.
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
		if m&moves != 0 {
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

// writesAsPeer is nextWrites of a peer.
func (d *Drive) writesAsPeer(l *lane) (q1, q2 int) {
	move := -1
	if l.mask&(1<<queueMoveWrite) != 0 {
		move = queueMoveWrite
	}
	if d.urgentAsPeer(l) {
		if move >= 0 {
			return move, d.nextHost(l, queueHostWrite)
		}
		if l.mask&(1<<queueErase) != 0 {
			return -1, -1
		}
		return d.nextHost(l, queueHostWrite), -1
	}
	if q := d.nextHost(l, queueHostWrite); q >= 0 {
		return q, move
	}
	return move, -1
}

// urgentAsPeer reports whether collection goes before the host in a lane.
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

// rotate chooses among the host's queues of one kind, of which first is the first and have says which hold something; -1 is none.
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
	if weight == 0 { // nobody has looked yet
		class, weight = int(block.Urgent), weights[0]
	}
	found := -1
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

// lookout wakes a drive whose peer would wait for ever.
type lookout struct {
	due      bool     // evLookAgain is scheduled
	begun    uint64   // flash commands begun when it was scheduled
	forsaken []uint32 // mapping pages with transactions that wait for evicted entries
}

// patience is how long a drive waits for something that has it look at a lane again in which a look found nothing although something waits. A peer waits for ever: it loses the request.
const patience = units.Second

// lookAgain has classes take turns in another way, once, if no command has begun for so long.
//
//go:noinline
func (d *Drive) lookAgain() {
	d.lookout.due = false
	if d.commandsBegun() == d.lookout.begun {
		rotates := d.rotates
		d.rotates = false // by which some looks never find anything
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

// askAgain looks again for the map's entries of transactions that wait for ones which were given up (Quirks.WaitersEvicted), and that nobody has asked for since.
func (d *Drive) askAgain() {
	pages := d.lookout.forsaken
	d.lookout.forsaken = nil
	d.gather()
	for _, m := range pages {
		p := d.pageState(m)
		waiting := p.waitHead
		if p.reading {
			continue // then they are looked at when that ends
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

// lookLater has lanes looked at again, some time.
func (d *Drive) lookLater() {
	if !d.lookout.due {
		d.lookout.due, d.lookout.begun = true, d.commandsBegun()
		d.schedule(d.eng.Now()+patience, evLookAgain, 0)
	}
}

// commandsBegun is how many commands of flash have begun.
func (d *Drive) commandsBegun() (n uint64) {
	for _, of := range d.commands {
		for _, k := range of {
			n += k
		}
	}
	return n
}
