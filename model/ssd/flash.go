package ssd

import (
	"farflash/numeric/units"
	"farflash/sim"
)

// channel is the bus between the controller and a channel's chips. While it has no waiters, freeAt alone marks the end
// of its use, without an event.
type channel struct {
	freeAt    sim.Time // when the command on it has been sent
	order     uint64   // place of that end among simultaneous events (Quirks.EndsAreEvents)
	until     sim.Time // when the command or data on it have been sent
	wake      bool     // an event at freeAt will release it
	sending   bool     // read data are on it
	wrote     bool     // the last data on it were a program's
	turn      int32    // lane to serve next, counted within the channel
	lane      int32    // whose data are on the bus
	txn       int32    // the read whose data are on the bus
	waits     [waits]list
	copybacks []int32  // lanes that wait for it to send a copyback's program
	time      sim.Time // total busy time, scheduled time included
	lanes     []lane
	ready     []uint64 // those that have work and may be able to start it, a bit each
}

// anyReady reports whether a lane has work and may be able to start it.
func (c *channel) anyReady() bool {
	for _, w := range c.ready {
		if w != 0 {
			return true
		}
	}
	return false
}

// Kinds of read data that wait for a channel, most urgent first.
const (
	waitMapping = iota
	waitHost
	waitMove
	waits
)

// dataWait reports whether read data wait in chips.
func (c *channel) dataWait() bool {
	return c.waits[waitMapping].head|c.waits[waitHost].head|c.waits[waitMove].head != 0
}

// begin starts the command in a lane's txns. The channel carries the command, preceded by a suspend command if needed,
// and then the array works. The time that the array takes to suspend is added to the array's start and does not hold
// the channel.
//
//go:noinline
func (d *Drive) begin(l *lane, op operation, suspends bool) {
	k := int(l.n)
	var bus, took sim.Time
	switch page := d.txns.At(l.txns[0]).pageIndex; op {
	case opRead, opCopyback:
		bus, took = d.readCommand[k], d.readArray[page]
	case opProgram:
		d.channels[l.channel].wrote = true
		bus, took = d.programCommand[k], d.programArray[page]
		for _, i := range l.txns[:k] {
			bus += d.dataTime(d.bytesOf(i))
		}
	case opErase:
		bus, took = d.eraseCommand[k], d.cfg.Timing.Erase
	}
	if d.errs != nil && op == opRead {
		took += d.retryTime(l.txns[:k])
	}
	for i := range k {
		x := d.txns.At(l.txns[i])
		if x.tries > 0 { // a retried read: add to the times of earlier tries
			x.transfer += bus
			x.array += took
			continue
		}
		x.transfer = bus
		// In a multi-plane program each page is charged the whole command, but only its own data.
		if op == opProgram && k > 1 {
			x.transfer = d.programCommand[k] + d.dataTime(x.load())
		}
		x.array = took
	}
	d.commands[op][k-1]++
	l.op, l.left = op, l.n
	if suspends {
		d.occupy(l, d.suspendCommand+bus)
		l.starts += d.suspendTime[l.paused.op]
	} else {
		d.occupy(l, bus)
	}
	d.work(l, took, false)
}

// occupy claims the idle channel for a lane's command.
func (d *Drive) occupy(l *lane, took sim.Time) {
	c := &d.channels[l.channel]
	c.freeAt = d.eng.Now() + took
	if d.cfg.Quirks.EndsAreEvents {
		// claim its end's place among simultaneous events, whether or not an event will be scheduled
		c.order = d.eng.Claim(d.self)
	}
	c.until = c.freeAt
	c.time += took
	l.starts = c.freeAt
	if d.OnWork != nil {
		d.reportBus(l, took)
	}
	l.unready()
	if d.turns != nil {
		c.lane = l.number
		d.wake(l.channel, c)
	} else if c.dataWait() || len(c.copybacks) > 0 || c.anyReady() {
		d.wake(l.channel, c)
	}
}

// work starts the array once the command has been sent, or resumes a suspended operation.
func (d *Drive) work(l *lane, took sim.Time, resumed bool) {
	l.phase = working
	if d.governor.on && !resumed {
		d.govern(l, l.op, l.txns[:l.n])
	}
	l.finish = l.starts + took
	d.arrayBusy[l.op] += took
	d.laneBusy[l.number] += took
	if d.OnWork != nil {
		d.reportArray(l, took, resumed)
	}
	if d.turns == nil { // else when the command has been sent
		d.schedule(l.finish, evArrayDone, uint32(l.number))
	}
	if d.canInterrupt && l.mask != 0 {
		d.setReady(l)
	}
}

// channelFree handles the end of a command on a channel that something waits for.
func (d *Drive) channelFree(ch int32) {
	c := &d.channels[ch]
	c.wake, c.freeAt = false, -1
	if d.turns != nil {
		d.schedule(d.lanes[c.lane].finish, evArrayDone, uint32(c.lane))
	}
	d.release(ch, c)
}

// arrayDone handles the end of an array operation: read data are ready, or a program or erase has completed. A
// suspended operation leaves its event behind, which is recognised by its time and ignored.
func (d *Drive) arrayDone(n int32) {
	l := &d.lanes[n]
	if l.phase != working || l.finish != d.eng.Now() {
		return
	}
	switch l.op {
	case opRead:
		l.phase = transfer
		if d.programs != nil {
			d.lookForPrograms(l.txns[:l.n])
		}
		for k := range l.n {
			d.dataReady(l, l.txns[k])
		}
		return
	case opCopyback:
		d.copybackRead(l)
		return
	}
	txns := l.txns
	k := l.n
	if d.programs != nil {
		d.notePrograms(l.op, txns[:k])
	}
	d.openBatch()
	for _, t := range txns[:k] {
		d.completed(t)
	}
	d.free(l)
	d.touch(l.channel)
	d.closeBatch()
}

// dataReady sends a read's data, or queues them for the channel.
func (d *Drive) dataReady(l *lane, t int32) {
	c := &d.channels[l.channel]
	if !d.busy(c) {
		d.dataOut(l, c, t)
		return
	}
	w := waitHost
	switch d.txns.At(l.leader(t)).origin {
	case fromMapping:
		w = waitMapping
	case fromMove:
		w = waitMove
	}
	d.pushBack(&c.waits[w], t)
	d.wake(l.channel, c)
}

// leader returns the transaction that determines the kind of a multi-plane command.
func (l *lane) leader(t int32) int32 {
	if l.phase == transfer {
		return l.txns[0]
	}
	return t
}

// free completes a lane's command.
func (d *Drive) free(l *lane) {
	l.n, l.phase = 0, idle
	if l.mask != 0 {
		d.setReady(l)
	}
	// A suspended operation resumes when no reads are left or it has let its quota pass.
	if l.paused.n > 0 {
		if q, _ := d.nextReads(l); q < 0 || l.paused.reads >= readsPerPause {
			d.resume(l)
		}
	}
}

// dataOut sends a read's data over the idle channel.
func (d *Drive) dataOut(l *lane, c *channel, t int32) {
	x := d.txns.At(t)
	bytes := d.bytesOf(t)
	took := d.cfg.Timing.DataOutSetup + d.dataTime(bytes)
	x.transfer += took
	c.sending, c.wrote, c.lane, c.txn = true, false, l.number, t
	c.until = d.eng.Now() + took
	c.time += took
	if d.OnWork != nil {
		d.reportData(l.channel, c.until, bytes, t)
	}
	d.schedule(c.until, evDataOut, uint32(l.channel))
}

// dataSent handles the end of a read's data transfer.
//
//go:noinline
func (d *Drive) dataSent(ch int32) {
	c := &d.channels[ch]
	l, t, plane := &d.lanes[c.lane], c.txn, int32(0)
	// Note the plane now, because completed frees the transaction.
	if l.phase == reading {
		plane = d.txns.At(t).plane
	}
	d.openBatch()
	if d.errs != nil && d.reread(t) {
		d.sendAgain(t)
	} else {
		d.completed(t)
	}
	if l.phase == reading {
		d.planeSent(l, plane)
	} else if l.left--; l.left == 0 {
		d.free(l)
	}
	c.sending = false
	d.release(ch, c)
	d.closeBatch()
}

// release passes a free channel on. Programs of copybacks go first, because they send only a command; then serve
// chooses.
func (d *Drive) release(ch int32, c *channel) {
	if len(c.copybacks) > 0 {
		d.nextCopyback(c)
		return
	}
	if d.cfg.Quirks.DataFirst && c.dataWait() {
		d.sendWaiting(c)
		return
	}
	// In a batch, service waits for the end, so that all of its transactions compete.
	if d.batch > 0 {
		d.touch(ch)
		return
	}
	d.serve(ch, c)
}

// nextCopyback sends the program of the copyback that has waited longest for the channel.
//
//go:noinline
func (d *Drive) nextCopyback(c *channel) {
	n := c.copybacks[0]
	c.copybacks = c.copybacks[:copy(c.copybacks, c.copybacks[1:])]
	d.copybackProgram(&d.lanes[n])
}

// sendWaiting sends the most urgent of the waiting read data over the idle channel.
func (d *Drive) sendWaiting(c *channel) {
	for w := range c.waits {
		if t := c.waits[w].head; t != 0 {
			d.remove(&c.waits[w], t)
			d.dataOut(&d.lanes[d.planes[d.txns.At(t).plane].lane], c, t)
			return
		}
	}
}

// copybackRead handles a page that has arrived in the chip's register, and allocates its destination.
func (d *Drive) copybackRead(l *lane) {
	kept := int8(0)
	d.openBatch()
	for _, t := range l.txns[:l.n] {
		if d.relocate(t, d.txns.At(t)) {
			l.txns[kept] = t
			kept++
		}
	}
	// If all moves were superseded, the command has no program half.
	if l.n = kept; kept == 0 {
		d.free(l)
		d.touch(l.channel)
		d.closeBatch()
		return
	}
	l.phase = transfer
	if c := &d.channels[l.channel]; d.busy(c) {
		c.copybacks = append(c.copybacks, l.number)
		d.wake(l.channel, c)
	} else {
		d.copybackProgram(l)
	}
	d.closeBatch()
}

// copybackProgram sends the program half of a copyback. The destinations of one command can differ in page, which ONFI
// allows only in separate commands, so each costs a separate command.
func (d *Drive) copybackProgram(l *lane) {
	bus := sim.Time(l.n) * d.programCommand[1]
	for _, t := range l.txns[:l.n] {
		x := d.txns.At(t)
		x.transfer += d.programCommand[1]
		x.array += d.programArray[x.pageIndex]
	}
	d.commands[opProgram][0] += uint64(l.n)
	l.op, l.left = opProgram, l.n
	d.occupy(l, bus)
	d.work(l, d.programArray[d.txns.At(l.txns[0]).pageIndex], false)
}

// interrupt suspends a lane's running program or erase for a read, or an erase for a program, if the drive supports it
// and enough time is left. It reports whether the channel was taken.
func (d *Drive) interrupt(l *lane) bool {
	s := &d.cfg.Scheduling
	// Only a program or erase whose array has started can be suspended, and only one a lane.
	if l.paused.n > 0 || l.op == opRead || l.op == opCopyback || d.eng.Now() < l.starts {
		return false
	}
	left := l.finish - d.eng.Now()
	for dir := range 2 {
		able := l.op == opProgram && dir == 0 && s.SuspendProgram && left >= s.ProgramLeftForRead ||
			l.op == opErase && (dir == 0 && s.SuspendErase && left >= s.EraseLeftForRead ||
				dir == 1 && s.SuspendEraseForWrite && left >= s.EraseLeftForWrite)
		if !able {
			continue
		}
		if dir == 1 && d.noData && l.mask&writes != 0 {
			d.heldBack = true
			continue
		}
		q1, q2 := d.nextReads(l)
		if dir == 1 {
			q1, q2 = d.nextWrites(l)
		}
		if q1 < 0 || !d.issuable(l, q1) {
			continue
		}
		l.paused = pausedOp{txns: l.txns, n: l.n, op: l.op, rest: left}
		// The remaining time is uncounted here, and counted again by work on resumption.
		d.arrayBusy[l.op] -= left
		d.laneBusy[l.number] -= left
		d.suspensions[l.op]++
		d.OnSuspend.Fire(Suspension{d.eng.Now(), l.number})
		l.n, l.phase = 0, idle
		return d.issue(l, q1, q2, true)
	}
	return false
}

// issuable reports whether any transaction in a lane's queue can be issued.
//
//go:noinline
func (d *Drive) issuable(l *lane, q int) bool {
	f := &l.queues[q]
	for i := range f.n {
		if d.txns.At(f.at(i).txn).waitsFor == 0 {
			return true
		}
		if d.cfg.Quirks.HeadBlocks {
			return false
		}
	}
	return false
}

// resume continues a suspended operation.
func (d *Drive) resume(l *lane) {
	p := &l.paused
	l.txns, l.n, l.op, l.left = p.txns, p.n, p.op, p.n
	rest := p.rest
	p.n, p.reads = 0, 0
	l.starts = d.eng.Now()
	d.work(l, rest, true)
}

// dataTime returns how long b bytes occupy a channel.
func (d *Drive) dataTime(b int32) sim.Time {
	if b != d.lastBytes {
		d.computeData(b)
	}
	return d.lastData
}

// computeData is dataTime for another size than the last.
//
//go:noinline
func (d *Drive) computeData(b int32) {
	t := d.cfg.Timing.Data(units.Bytes(b))
	if d.cfg.Quirks.BusCyclesTruncated {
		// Two transfers a cycle, whose length is twice a whole number of nanoseconds.
		ns := units.Duration(1_000_000_000/int64(d.cfg.Timing.TransferRate)) * units.Nanosecond
		t = units.Duration(b/int32(d.cfg.Timing.Width)/2) * 2 * ns
	}
	d.lastBytes, d.lastData = b, t
}
