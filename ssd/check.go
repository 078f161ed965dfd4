package ssd

import (
	"fmt"

	"farflash/block"
)

// Check is one conservation law and whether it holds.
type Check struct {
	Name   string
	OK     bool
	Detail string
}

// InFlight is how many requests were submitted and have not completed.
func (d *Drive) InFlight() uint64 {
	n := uint64(0)
	for op := range d.submitted {
		n += d.submitted[op] - d.finished[op]
	}
	return n
}

// Checks tests the laws that hold whenever the engine is between two events. It
// walks the whole drive and is meant for the end of a run.
func (d *Drive) Checks() []Check {
	var out []Check
	add := func(name string, ok bool, format string, args ...any) {
		out = append(out, Check{name, ok, fmt.Sprintf(format, args...)})
	}
	var issued, finished uint64
	for op := range block.Ops {
		issued += d.submitted[op]
		finished += d.finished[op]
	}
	held := uint64(len(d.requests) - 1)
	for i := d.freeReq; i != 0; i = d.requests[i].next {
		held--
	}
	add("requests conserved", issued == finished+held, "issued %d = completed %d + in flight %d", issued, finished, held)

	placed, moving := d.programsUnderWay()
	inMap, onFlash := d.l2p.mapped(), d.ftl.ValidPages()
	add("valid pages are mapped pages", inMap == d.mapped && onFlash == d.mapped+moving,
		"%d pages with a place = %d in the map = %d valid on flash - %d being moved", d.mapped, inMap, onFlash, moving)

	done := d.flashed[opProgram] + d.flashed[opCopyback]
	add("programs add up", done+placed == d.hostPrograms+d.movePrograms+d.mappingPrograms,
		"%d programmed + %d under way = host %d + moved %d + mapping %d", done, placed, d.hostPrograms, d.movePrograms, d.mappingPrograms)
	err := d.ftl.Check()
	detail := "every block in one state, valid counts equal bitmaps"
	if err != nil {
		detail = err.Error()
	}
	add("translation layer consistent", err == nil, "%s", detail)
	return out
}

// programsUnderWay counts the programs that have a page and have not ended, and
// how many of them move data that lie elsewhere too.
func (d *Drive) programsUnderWay() (all uint64, moving int64) {
	count := func(t int32) {
		all++
		if d.txns[t].origin == fromMove {
			moving++
		}
	}
	for i := range d.lanes {
		l := &d.lanes[i]
		for q := range queues {
			if operationOf(q) == opProgram {
				for k := range l.queues[q].n {
					count(l.queues[q].at(k).txn)
				}
			}
		}
		if l.op == opProgram || l.op == opCopyback && l.phase == transfer {
			for _, t := range l.txns[:l.n] {
				count(t)
			}
		}
		if l.paused.op == opProgram {
			for _, t := range l.paused.txns[:l.paused.n] {
				count(t)
			}
		}
	}
	return all, moving
}

// Held says what the requests in flight wait for, for when a drive has come to a
// stop with nothing left to happen.
func (d *Drive) Held() string {
	queued, working, mapping, waiting, flushing, unfetched := 0, 0, 0, 0, 0, 0
	for i := range d.lanes {
		l := &d.lanes[i]
		for q := range queues {
			queued += int(l.queues[q].n)
		}
		if l.phase != idle || l.paused.n > 0 {
			working++
		}
	}
	for i := range d.mapPages {
		for t := d.mapPages[i].waitHead; t != 0; t = d.txns[t].next {
			mapping++
		}
	}
	for i := range d.caches {
		for r := d.caches[i].waiting.head; r != 0; r = d.requests[r].next {
			waiting++
		}
		for r := d.caches[i].flushes.head; r != 0; r = d.requests[r].next {
			flushing++
		}
	}
	for i := range d.queues {
		unfetched += int(d.queues[i].tail - d.queues[i].head)
	}
	return fmt.Sprintf("%d transactions wait for a free page, %d for the flash scheduler, %d for mapping pages; %d dies are at work; %d writes wait for the cache, %d flushes; %d commands are not fetched",
		d.parked, queued, mapping, working, waiting, flushing, unfetched)
}
