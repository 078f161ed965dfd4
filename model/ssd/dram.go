package ssd

import (
	rings "farflash/internal/fifo"
	"farflash/sim"
)

// memoryTurns is the DRAM channel of a drive with a separate cache for each namespace. Each has its own queue of
// transfers, and the queues take turns, so that none gets more than its share while others wait. A single cache has a
// single queue, which is the line d.memory.
type memoryTurns struct {
	queues  []rings.Ring[memoryTransfer] // by namespace; nil if there is one cache
	turn    int                          // the queue served last
	current memoryTransfer
	busy    bool
}

// memoryTransfer is a transfer on the DRAM channel, and the event at its end: evNone if it has no waiter.
type memoryTransfer struct {
	took sim.Time
	arg  uint32
	kind uint16
}

// dram schedules a transfer of a namespace's bytes to or from DRAM, with an event at its end.
func (d *Drive) dram(ns uint8, bytes int64, kind uint16, arg uint32) {
	if d.memoryTurns.queues != nil {
		d.lineUpTransfer(ns, bytes, kind, arg)
		return
	}
	at := d.send(&d.memory, d.dramTime(bytes))
	if kind != evNone {
		d.schedule(at, kind, arg)
	}
}

// lineUpTransfer starts a transfer if the DRAM channel is idle, and queues it otherwise.
//
//go:noinline
func (d *Drive) lineUpTransfer(ns uint8, bytes int64, kind uint16, arg uint32) {
	m, x := &d.memoryTurns, memoryTransfer{d.dramTime(bytes), arg, kind}
	of := min(int(ns), len(m.queues)-1) // a single queue under MessagesInTurn with one cache
	if m.busy {
		m.queues[of].Push(x)
		return
	}
	m.turn = of
	d.beginTransfer(x)
}

func (d *Drive) beginTransfer(x memoryTransfer) {
	d.memoryTurns.current, d.memoryTurns.busy = x, true
	d.schedule(d.send(&d.memory, x.took), evTransferred, 0)
}

// transferred completes a transfer and starts that of the next namespace with one queued.
func (d *Drive) transferred() {
	m := &d.memoryTurns
	d.fromDRAM(m.current.kind, int32(m.current.arg))
	m.busy = false
	for range m.queues {
		if m.turn++; m.turn == len(m.queues) {
			m.turn = 0
		}
		if q := &m.queues[m.turn]; q.N > 0 {
			d.beginTransfer(q.Pop())
			return
		}
	}
}

// fromDRAM resumes the work that waited for a transfer.
func (d *Drive) fromDRAM(kind uint16, of int32) {
	switch kind {
	case evMemoryDone:
		r := d.requests.At(of)
		r.dram = d.eng.Now() - r.accepted
		d.partDone(of, r)
	case evEvicted:
		d.gather()
		for t := of; t != 0; {
			x := d.txns.At(t)
			next := x.next
			d.locate(t, x)
			t = next
		}
		d.dispatch()
	case evFromMemory:
		d.openBatch()
		d.finish(of, d.txns.At(of))
		d.closeBatch()
	}
}

// dramTime returns the duration of a transfer: a row is opened (tRCD + tCL) and read or written in bursts; each further
// row needs a precharge and an activation. The data bus moves BurstSize bytes a transfer, so a row of R bytes takes
// R/BurstSize/DataRate.
func (d *Drive) dramTime(bytes int64) sim.Time {
	if bytes != d.lastDRAM {
		d.computeDRAM(bytes)
	}
	return d.lastDRAMTime
}

// computeDRAM is dramTime for another size than the last.
//
//go:noinline
func (d *Drive) computeDRAM(bytes int64) {
	m := &d.cfg.DRAM
	burst := int64(m.BurstSize)
	row := int64(m.RowSize)
	open := m.TRCD + m.TCL
	var t sim.Time
	switch {
	case d.cfg.Quirks.RowsHalved:
		t = d.rowsHalved(bytes)
	case bytes <= row:
		t = open + m.DataRate.TimeFor((bytes+burst-1)/burst)
	default:
		rows := (bytes + row - 1) / row
		t = sim.Time(rows)*open + sim.Time(rows-1)*m.TRP + m.DataRate.TimeFor((bytes+burst-1)/burst)
	}
	d.lastDRAM, d.lastDRAMTime = bytes, t
}
