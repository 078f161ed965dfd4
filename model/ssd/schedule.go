package ssd

import (
	"math/bits"

	"farflash/block"
	"farflash/model/ssd/nand"
	"farflash/numeric/units"
	"farflash/sim"
)

// lane executes one flash command at a time: it is a die, or a whole chip under Quirks.WholeChip. It holds the queues
// of transactions waiting for it. The fields read for each command share its first cache line.
type lane struct {
	// The command in progress.
	txns   [nand.MaxPlanesPerDie]int32
	n      int8
	left   int8 // transactions not yet completed
	op     operation
	phase  phase
	reads  int8     // while reading: planes that are reading
	closed bool     // while reading: no more reads may join
	mask   uint16   // queues that are not empty
	starts sim.Time // start of the array operation, after command, address and data in
	finish sim.Time // end of the array operation

	// Its bit among those of its channel's lanes that have work and may be able to start it.
	ready    *uint64
	readyBit uint8

	hostNext   bool  // the last command was collection's: if collection is urgent, it is the host's turn
	collecting int16 // its planes with victims in progress

	channel int32

	queues [queues]fifo

	number int32
	wanted int32 // index in Drive.wanted of its first die

	paused pausedOp
	busyTo sim.Time // while reading: when the last working plane will be done

	// Weighted round robin among the classes high, medium and low, for reads and for writes: the turns that each has
	// left.
	credit [2][3]int16
	// Under RotatesClasses: the class polled last, and the weight that a class currently needs.
	last, weight [2]int8

	firstPlane int32
	_          [52]byte
}

// planeAt is the location of a plane and the number of transactions waiting for it.
type planeAt struct {
	lane    int32
	spot    spot           // page 0 of the plane
	waiting [queues]uint32 // transactions in the scheduler, by queue
}

// operation is the kind of an array operation.
type operation uint8

const (
	opRead operation = iota
	opProgram
	opErase
	opCopyback
	operations
)

// phase is the progress of a lane's command.
type phase uint8

const (
	idle     phase = iota
	working        // the channel carries the command, then the array works
	transfer       // read data wait for the channel or are on it
	reading        // planes read independently; see planes.go
)

// pausedOp is a program or erase that was suspended for reads.
type pausedOp struct {
	txns  [nand.MaxPlanesPerDie]int32
	n     int8
	reads int8 // reads served since the suspension
	op    operation
	rest  sim.Time
}

// readsPerPause bounds the reads that a suspended operation lets pass, so that reads cannot starve it.
const readsPerPause = 16

// queueStats are the statistics of one kind of queue over all lanes.
type queueStats struct {
	Entered, Left uint64
	Wait          units.Total
	MaxWait       sim.Time
	length        int64
	MaxLength     int64
}

// enqueue hands a transaction to the scheduler. The affected channel is served when the batch is closed.
func (d *Drive) enqueue(t int32, x *transaction) { d.lineUp(t, x, false) }

// sendAgain puts a read whose data could not be corrected at the front of its queue.
func (d *Drive) sendAgain(t int32) { d.lineUp(t, d.txns.At(t), true) }

// lineUp puts a transaction at the back of its queue, or at the front if it has been in it before.
func (d *Drive) lineUp(t int32, x *transaction, before bool) {
	at := &d.planes[x.plane]
	l := &d.lanes[at.lane]
	w := waiter{t, at.spot | spot(x.pageIndex)}
	q := x.queue
	s := &d.queueStats[q]
	if f := &l.queues[q]; before {
		f.pushFront(w)
	} else {
		f.push(w)
		x.queued = d.eng.Now()
		s.Entered++
	}
	at.waiting[q]++
	d.wanted[l.wantedOf(w.spot)+int32(q)] |= w.planeBit()
	l.mask |= queueBit(q)
	d.setReady(l)
	s.length++
	s.MaxLength = max(s.MaxLength, s.length)
	d.entered = true
	d.touch(l.channel)
}

// wantedOf returns the index in Drive.wanted of the queues of a die.
func (l *lane) wantedOf(s spot) int32 { return l.wanted + int32(s.die())*queues }

// queueBit is a queue's bit in a lane's mask.
func queueBit(q uint8) uint16 { return 1 << (q & 15) }

// touch marks a channel for service at the end of the batch.
func (d *Drive) touch(channel int32) { d.dirty[channel>>6] |= 1 << (channel & 63) }

// openBatch starts to collect transactions; closeBatch lets idle channels act on all that were collected since the
// outermost openBatch.
func (d *Drive) openBatch() { d.batch++ }

// closeBatch ends a batch and, if it was the outermost, serves the channels marked by touch.
func (d *Drive) closeBatch() {
	d.batch--
	if d.batch > 0 {
		return
	}
	d.reading.last = 0
	if d.rotates {
		d.touchAll()
	}
	for w := range d.dirty {
		for dirty := &d.dirty[w]; *dirty != 0; {
			ch := w<<6 + bits.TrailingZeros64(*dirty)
			*dirty &= *dirty - 1
			d.serve(int32(ch), &d.channels[ch])
		}
	}
}

// setReady marks a lane as having work that it may be able to start.
func (d *Drive) setReady(l *lane) {
	if l.phase == idle || l.phase == reading || d.canInterrupt {
		*l.ready |= 1 << (l.readyBit & 63)
	}
}

// unready clears the mark.
func (l *lane) unready() { *l.ready &^= 1 << (l.readyBit & 63) }

// busy reports whether a channel is in use, or is about to be passed on.
func (d *Drive) busy(c *channel) bool {
	now := d.eng.Now()
	return c.wake || c.sending || now < c.freeAt || now == c.freeAt && d.cfg.Quirks.EndsAreEvents
}

// wake makes sure that a busy channel is passed on when it becomes free. If it carries data, the end of the transfer
// does so.
func (d *Drive) wake(ch int32, c *channel) {
	if !c.wake && !c.sending {
		c.wake = true
		if d.cfg.Quirks.EndsAreEvents {
			d.eng.ScheduleAs(c.order, d.target, c.freeAt, evChannelFree, uint32(ch))
			return
		}
		d.schedule(c.freeAt, evChannelFree, uint32(ch))
	}
}

// serve gives an idle channel to the work that keeps most of the drive busy. Commands without data, those of reads and
// erases, go first, from lanes in turn: because less than a microsecond on the channel puts an array to work. Data come
// next, a program's and read data waiting in chips, alternating when both wait, so that neither starves the other. The
// firmware of the Cosmos+ OpenSSD (GreedyFTL, its low-level request scheduler) visits a channel's ways in this order:
// reads to be triggered, erases, programs, read data. It needs no alternation because it gives each waiting way one
// command a round. Under Quirks.DataFirst, waiting read data have been sent before serve is called.
func (d *Drive) serve(ch int32, c *channel) {
	if d.busy(c) {
		if c.anyReady() {
			d.wake(ch, c)
		}
		return
	}
	if d.cfg.Quirks.DataFirst {
		d.serveLanes(c)
		return
	}
	d.noData, d.heldBack = true, false
	taken := d.serveLanes(c)
	d.noData = false
	switch {
	case taken:
	case c.dataWait() && (c.wrote || !d.heldBack):
		d.sendWaiting(c)
	case d.heldBack && d.serveLanes(c):
	case c.dataWait():
		d.sendWaiting(c)
	}
}

// serveLanes lets a channel's lanes start commands, in turn, until the channel is taken, and reports whether it was.
func (d *Drive) serveLanes(c *channel) bool {
	if d.rotates {
		return d.pollLanes(c)
	}
	// Scan from the lane whose turn it is to the last, then from the first. The first word is visited again at the end,
	// whole: if classes take turns by weight, a lane whose class of the turn could not start a command may start one of
	// the next class.
	i := uint(c.turn) >> 6
	w := c.ready[i] >> (c.turn & 63) << (c.turn & 63)
	for left := len(c.ready); ; left-- {
		for ; w != 0; w &= w - 1 {
			k := int32(i)<<6 + int32(bits.TrailingZeros64(w))
			if d.start(&c.lanes[k]) {
				if c.turn = k + 1; int(c.turn) == len(c.lanes) {
					c.turn = 0
				}
				return true
			}
		}
		if left == 0 {
			return false
		}
		if i++; i >= uint(len(c.ready)) {
			i = 0
		}
		w = c.ready[i]
	}
}

// start issues the next command of a lane, if the lane can accept one. It reports whether the channel was taken.
func (d *Drive) start(l *lane) bool {
	if l.phase != idle || l.paused.n > 0 || l.mask == 0 {
		if l.phase == reading && l.mask != 0 {
			return d.join(l)
		}
		return d.startBusy(l)
	}
	if q1, q2 := d.nextReads(l); q1 >= 0 {
		if issued, held := d.issueOrHold(l, q1, q2); issued || held {
			return issued
		}
	}
	if d.zones != nil && d.resetIsDue(l) {
		return d.issue(l, queueErase, -1, false)
	}
	if d.noData && l.mask&writes != 0 {
		d.heldBack = true
		return false
	}
	if q1, q2 := d.nextWrites(l); q1 >= 0 {
		if issued, held := d.issueOrHold(l, q1, q2); issued || held {
			return issued
		}
	}
	if l.mask&(1<<queueErase) != 0 {
		return d.issue(l, queueErase, -1, false)
	}
	return false
}

// startBusy is start for a lane that has no work, is not idle, or has a suspended operation.
//
//go:noinline
func (d *Drive) startBusy(l *lane) bool {
	switch {
	case l.mask == 0 && l.paused.n == 0:
		l.unready()
		return false
	case l.phase == reading:
		return d.join(l)
	case l.phase != idle:
		return l.phase == working && d.interrupt(l)
	}
	// Serve further reads while the operation is suspended.
	if q1, q2 := d.nextReads(l); q1 >= 0 && l.paused.reads < readsPerPause {
		l.paused.reads++
		return d.issue(l, q1, q2, false)
	}
	d.resume(l)
	return false
}

// issueOrHold issues from a queue. held reports that the queue blocks the lane although no command could be issued.
func (d *Drive) issueOrHold(l *lane, q1, q2 int) (issued, held bool) {
	if d.issue(l, q1, q2, false) {
		return true, true
	}
	return false, d.cfg.Quirks.HeadBlocks
}

// urgent reports whether collection precedes the host on a lane.
func (d *Drive) urgent(l *lane) bool { return !d.cfg.Collection.Preemptible || d.urgentNow(l) }

// urgentNow is urgent for collection that is preemptible.
//
//go:noinline
func (d *Drive) urgentNow(l *lane) bool {
	if l.collecting == 0 {
		return false
	}
	if d.mostMoving > 0 && l.hostNext {
		return false
	}
	for p := l.firstPlane; p < l.firstPlane+d.planesPerLane; p++ {
		if d.ftl.Urgent(int(d.pools.of[p])) {
			return true
		}
	}
	return false
}

// moves are the queues of collection. They are empty while a victim waits only for the host's reads of it to complete,
// and the host must not be held up then.
const moves = 1<<queueMoveRead | 1<<queueMoveWrite | 1<<queueCopyback | 1<<queueErase

// canMove reports whether any of a lane's collection programs and erases can be issued. If a page holds several grains,
// a move can share its page with a partial write of a grain by the host. It then waits, as the write does, for a host
// read of the sectors that the write leaves valid.
func (d *Drive) canMove(l *lane) bool {
	return d.grains == 1 || l.mask&(1<<queueCopyback|1<<queueErase) != 0 || d.issuable(l, queueMoveWrite)
}

// writes are the queues that programs are taken from.
const writes = 1<<queueMappingWrite | 1<<queueMoveWrite | 1<<queueCopyback | hostWrites

// nextReads chooses the queues for a read command, or -1. Mapping reads go first; collection precedes the host only
// when it is urgent.
func (d *Drive) nextReads(l *lane) (q1, q2 int) {
	const reads = 1<<queueMappingRead | 1<<queueMoveRead | hostReads
	m := l.mask
	if d.cfg.Quirks.RotatesClasses {
		return d.readsAsPeer(l)
	}
	if m&reads == 0 {
		return -1, -1
	}
	moving := m&(1<<queueMoveRead) != 0
	if m&(1<<queueMappingRead) != 0 {
		if moving && d.urgent(l) {
			return queueMappingRead, queueMoveRead
		}
		return queueMappingRead, d.nextHost(l, queueHostRead)
	}
	if l.collecting > 0 && m&moves != 0 && d.urgent(l) {
		if moving {
			return queueMoveRead, d.nextHost(l, queueHostRead)
		}
		if d.canMove(l) {
			return -1, -1 // the victim's programs and erase go first
		}
	}
	if m&hostReads != 0 {
		if moving {
			return d.nextHost(l, queueHostRead), queueMoveRead
		}
		return d.nextHost(l, queueHostRead), -1
	}
	if m&hostWrites != 0 {
		return -1, -1 // the host's writes precede collection's reads
	}
	return queueMoveRead, -1
}

// nextWrites chooses the queues for a program command, or -1.
func (d *Drive) nextWrites(l *lane) (q1, q2 int) {
	m := l.mask
	if d.cfg.Quirks.RotatesClasses {
		return d.writesAsPeer(l)
	}
	if m&writes == 0 {
		return -1, -1
	}
	if m&(1<<queueMappingWrite) != 0 {
		return queueMappingWrite, d.nextHost(l, queueHostWrite)
	}
	move := -1
	if m&(1<<queueCopyback) != 0 {
		move = queueCopyback
	} else if m&(1<<queueMoveWrite) != 0 {
		move = queueMoveWrite
	}
	if l.collecting > 0 && m&moves != 0 && d.urgent(l) {
		if move >= 0 {
			return move, second(move, d.nextHost(l, queueHostWrite))
		}
		return -1, -1
	}
	if m&hostWrites != 0 {
		return d.nextHost(l, queueHostWrite), second(move, move)
	}
	return move, -1
}

// second returns the queue that fills up a multi-plane command. A copyback cannot share its command.
func second(move, other int) int {
	if move == queueCopyback {
		return -1
	}
	return other
}

// nextHost chooses among the host's queues, of which first is queueHostRead or queueHostWrite: urgent first, the others
// by weight. -1 is none.
func (d *Drive) nextHost(l *lane, first int) int {
	have := l.mask >> (first & 15) & (1<<block.Classes - 1)
	if d.rotates {
		return d.rotate(l, first, have)
	}
	if have == 0 {
		return -1
	}
	if have&(have-1) != 0 {
		return d.nextByWeight(l, first, have)
	}
	return first + bits.TrailingZeros16(have)
}

// nextByWeight chooses among several classes.
//
//go:noinline
func (d *Drive) nextByWeight(l *lane, first int, have uint16) int {
	if have&1 != 0 { // urgent
		return first
	}
	credit := &l.credit[0]
	if first == queueHostWrite {
		credit = &l.credit[1]
	}
	for {
		for k := range credit {
			if have&(2<<k) != 0 && credit[k] > 0 {
				credit[k]--
				return first + 1 + k
			}
		}
		for k := range credit {
			credit[k] = int16(d.cfg.Host.Weights[k])
		}
	}
}

// issue assembles a command from queue q1 of a lane, filled up from q2, and starts it. If suspends is set, the running
// operation is suspended for it first. It reports false if no transaction in q1 is ready.
func (d *Drive) issue(l *lane, q1, q2 int, suspends bool) bool {
	op := operationOf(q1)
	if op == opRead && d.planeReads != nil {
		return d.issueRead(l, q1, q2, suspends)
	}
	first := &l.queues[q1]
	lead := uint32(0)
	waits := false
	if op != opRead && d.txns.At(first.at(0).txn).waitsFor != 0 {
		if lead, waits = d.firstReady(first); lead == first.n {
			return false
		}
	}
	head := *first.at(lead)
	c := command{op: op, head: head.spot, wanted: l.wantedOf(head.spot)}
	l.n = 0
	if !waits {
		d.dequeue(l, first, head, uint8(q1), lead)
		l.txns[0], l.n = head.txn, 1
		c.planes = head.planeBit()
	}
	if d.wanted[c.wanted+int32(q1)]&^c.planes != 0 {
		d.fillUp(l, &c, uint8(q1), lead)
	}
	if q2 >= 0 && d.wanted[c.wanted+int32(q2)]&^c.planes != 0 {
		d.fillUp(l, &c, uint8(q2), 0)
	}
	if l.n == 0 {
		return false
	}
	l.hostNext = moves>>q1&1 != 0
	d.begin(l, op, suspends)
	return true
}

// firstReady returns the index of the first ready program or erase of a queue, given that the one at the front is not
// ready; the length of the queue means none. Where the front blocks the others it returns the front, and waits is true.
//
//go:noinline
func (d *Drive) firstReady(f *fifo) (lead uint32, waits bool) {
	if d.cfg.Quirks.HeadBlocks {
		return 0, true
	}
	for lead = 1; lead < f.n && d.txns.At(f.at(lead).txn).waitsFor != 0; {
		lead++
	}
	return lead, false
}

// command is a command being assembled. It addresses one die and distinct planes and, unless it is an erase, the same
// page in each block.
type command struct {
	head   spot
	wanted int32 // index in Drive.wanted of its die
	op     operation
	planes uint8 // the planes it already uses
}

// fillUp adds to a command what fits from a queue of its lane, from the i-th entry on.
func (d *Drive) fillUp(l *lane, c *command, q uint8, i uint32) {
	f := &l.queues[q]
	left := d.wanted[c.wanted+int32(q)] &^ c.planes
	for left != 0 && i < f.n {
		w := *f.at(i)
		same := spotDie
		if l.n > 0 && c.op != opErase {
			same |= spotPage
		}
		bit := w.planeBit()
		if (w.spot^c.head)&same != 0 || left&bit == 0 || c.op != opRead && d.txns.At(w.txn).waitsFor != 0 {
			i++
			continue
		}
		c.planes |= bit
		left &^= bit
		d.dequeue(l, f, w, q, i)
		l.txns[l.n] = w.txn
		l.n++
	}
}

// operationOf returns the array operation of a queue's transactions.
func operationOf(queue int) operation {
	return operationsOf[queue&(len(operationsOf)-1)]
}

// operationsOf is the array operation of each queue's transactions. Its length is a power of two, so that masking the
// index removes the bounds check.
var operationsOf = func() (op [16]operation) {
	for q := queueMappingWrite; q < queueErase; q++ {
		op[q] = opProgram
	}
	op[queueErase], op[queueCopyback] = opErase, opCopyback
	return op // the rest are reads
}()

// dequeue removes the i-th transaction, w, from a lane's queue q, which is f.
func (d *Drive) dequeue(l *lane, f *fifo, w waiter, q uint8, i uint32) {
	x := d.txns.At(w.txn)
	if d.grains > 1 && operationOf(int(q)) == opProgram {
		d.begun(x.page)
	}
	at := &d.planes[x.plane]
	if at.waiting[q]--; at.waiting[q] == 0 {
		d.wanted[l.wantedOf(w.spot)+int32(q)] &^= w.planeBit()
	}
	f.remove(i)
	if f.n == 0 {
		l.mask &^= queueBit(q)
	}
	s := &d.queueStats[q]
	s.length--
	if x.tries > 0 {
		return // a retry, counted before
	}
	wait := d.eng.Now() - x.queued
	s.Left++
	s.Wait.Add(wait)
	s.MaxWait = max(s.MaxWait, wait)
}
