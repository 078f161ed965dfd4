package ssd

import "farflash/sim"

// Independent plane reads: each plane of a die senses a page of any number, starting and finishing independently, over
// one set of pins. Parts since about 2019 support this (asynchronous independent plane read; US 2023/0317144 describes
// it: commands are queued by plane and go to it whatever the others do). Programs and erases still occupy the whole
// die.

// planeRead is a plane's read in progress.
type planeRead struct {
	begin, end sim.Time // the busy time that it adds to its die's
	txn        int32    // 0: none
}

// issueRead starts the first read of two queues whose plane is idle, and reports whether there was one.
func (d *Drive) issueRead(l *lane, q1, q2 int, suspends bool) bool {
	idle := d.idlePlanes(l)
	for _, q := range [2]int{q1, q2} {
		if q < 0 {
			break
		}
		if d.wanted[l.wanted+int32(q)]&idle == 0 { // skip scanning a queue without a read for an idle plane
			continue
		}
		f := &l.queues[q]
		for i := range f.n {
			w := *f.at(i)
			if w.planeBit()&idle != 0 {
				d.dequeue(l, f, w, uint8(q), i)
				l.hostNext = moves>>q&1 != 0
				d.beginRead(l, l.firstPlane+int32(w.plane()), w.txn, suspends)
				return true
			}
		}
	}
	return false
}

// idlePlanes returns the set of planes of a lane, which is one die, that are not sensing.
func (d *Drive) idlePlanes(l *lane) (idle uint8) {
	for k := range d.planesPerLane {
		if d.planeReads[l.firstPlane+k].txn == 0 {
			idle |= 1 << (k & 7)
		}
	}
	return idle
}

// beginRead sends a plane's read command over the channel and starts the plane.
func (d *Drive) beginRead(l *lane, plane, t int32, suspends bool) {
	x, p := d.txns.At(t), &d.planeReads[plane]
	took := d.readArray[x.pageIndex]
	bus := d.readCommand[1]
	if x.tries > 0 {
		took += d.errs.cfg.RetryLatency
		x.transfer += bus
		x.array += took
	} else {
		x.transfer, x.array = bus, took
	}
	d.commands[opRead][0]++
	l.op, l.phase, l.n, l.txns[0] = opRead, reading, 1, t // the last started, for probes
	l.reads++
	if suspends {
		d.occupy(l, d.suspendCommand+bus)
		l.starts += d.suspendTime[l.paused.op]
	} else {
		d.occupy(l, bus)
	}
	if d.governor.on {
		d.govern(l, opRead, l.txns[:1])
	}
	*p = planeRead{max(l.starts, l.busyTo), l.starts + took, t}
	if p.begin < p.end {
		d.laneBusy[l.number] += p.end - p.begin
		l.busyTo = p.end
		if d.OnWork != nil {
			d.report(Work{Activity: Read, Number: l.number, Begin: p.begin, End: p.end}, l.txns[:1])
		}
	}
	d.schedule(l.starts+took, evPlaneRead, uint32(plane))
	if l.mask&(hostReads|1<<queueMappingRead|1<<queueMoveRead) != 0 {
		d.setReady(l)
		d.wake(l.channel, &d.channels[l.channel])
	}
}

// join starts a read alongside others on its die. While a program or an erase waits, reads join only until the first of
// those in progress completes, so that they cannot keep the die forever; with ReadsInTurn none joins.
func (d *Drive) join(l *lane) bool {
	alone := d.cfg.Scheduling.ReadsInTurn && (l.paused.n > 0 || l.mask&(writes|1<<queueErase) != 0)
	if !l.closed && !alone && (l.paused.n == 0 || l.paused.reads < readsPerPause) {
		if q1, q2 := d.nextReads(l); q1 >= 0 && d.issueRead(l, q1, q2, false) {
			if l.paused.n > 0 {
				l.paused.reads++
			}
			return true
		}
	}
	l.unready() // until a plane is free or another read arrives
	return false
}

// planeDone handles the end of a plane's sensing: its data are ready.
func (d *Drive) planeDone(plane int32) {
	l := &d.lanes[d.planes[plane].lane]
	if l.paused.n == 0 && l.mask&(writes|1<<queueErase) != 0 {
		l.closed = true
	}
	d.dataReady(l, d.planeReads[plane].txn)
}

// planeSent handles the end of a plane's data transfer.
func (d *Drive) planeSent(l *lane, plane int32) {
	d.planeReads[plane].txn = 0
	if l.reads--; l.reads == 0 {
		l.closed = false
		d.free(l)
	} else if l.mask != 0 {
		d.setReady(l)
	}
}
