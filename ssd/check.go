package ssd

import (
	"fmt"

	"farflash/block"
	"farflash/ftl"
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
	held := uint64(d.requests.Len())
	add("requests conserved", issued == finished+held, "issued %d = completed %d + in flight %d", issued, finished, held)

	placed := d.programsUnderWay()
	inMap, err := d.walkMap()
	onFlash := d.ftl.ValidPages()
	if err != nil {
		add("valid pages are mapped pages", false, "%v", err)
	} else {
		add("valid pages are mapped pages", inMap == d.mapped && onFlash == d.mapped,
			"%d pages with a place = %d in the map, each valid on flash and owned by its page = %d valid on flash", d.mapped, inMap, onFlash)
	}

	done := d.flashed[opProgram] + d.flashed[opCopyback]
	add("programs add up", done+placed == d.hostPrograms+d.movePrograms+d.mappingPrograms,
		"%d programmed + %d under way = host %d + moved %d + mapping %d", done, placed, d.hostPrograms, d.movePrograms, d.mappingPrograms)
	err = d.ftl.CheckBlocks()
	detail := "every block in one state, valid counts equal bitmaps"
	if err != nil {
		detail = err.Error()
	}
	add("translation layer consistent", err == nil, "%s", detail)
	return out
}

// walkMap counts the pages that the map has a place for, and checks that each place is
// valid and was written with that page. With the count of valid pages that makes map
// and flash inverses of each other. It goes plane by plane: the places of a plane's
// pages lie together.
func (d *Drive) walkMap() (mapped int64, err error) {
	check := func(l, page uint32) {
		if page >= trimmed {
			return
		}
		mapped++
		plane, blk, inBlock := d.split(page)
		if err == nil && (!d.ftl.IsValid(ftl.PPA(page)) || d.owners.get(plane, blk, inBlock) != l) {
			err = fmt.Errorf("page %d is mapped to physical page %d, which does not hold it", l, page)
		}
	}
	if d.l2p.chunks == nil {
		for _, c := range d.l2p.sparse.cells {
			if c.key != 0 {
				check(c.key-1, c.val)
			}
		}
		return mapped, err
	}
	for i := range d.ns {
		n := &d.ns[i]
		turn := uint32(len(n.planeOf))
		for k := range turn {
			for l := k; l < n.pages; l += turn {
				check(n.base+l, d.l2p.get(n.base+l))
			}
		}
		for l := range n.mapPages {
			check(n.mapBase+l, d.l2p.get(n.mapBase+l))
		}
	}
	return mapped, err
}

// programsUnderWay counts the programs that have a page and have not ended.
func (d *Drive) programsUnderWay() (all uint64) {
	for i := range d.lanes {
		l := &d.lanes[i]
		for q := range queues {
			if operationOf(q) == opProgram {
				all += uint64(l.queues[q].n)
			}
		}
		if l.op == opProgram || l.op == opCopyback && l.phase == transfer {
			all += uint64(l.n)
		}
		if l.paused.op == opProgram {
			all += uint64(l.paused.n)
		}
	}
	return all
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
		for t := d.mapPages[i].waitHead; t != 0; t = d.txns.At(t).next {
			mapping++
		}
	}
	for i := range d.caches {
		for r := d.caches[i].waiting.head; r != 0; r = d.requests.At(r).next {
			waiting++
		}
		for r := d.caches[i].flushes.head; r != 0; r = d.requests.At(r).next {
			flushing++
		}
	}
	for i := range d.queues {
		unfetched += int(d.queues[i].tail - d.queues[i].head)
	}
	return fmt.Sprintf("%d transactions wait for a free page, %d for the flash scheduler, %d for mapping pages; %d dies are at work; %d writes wait for the cache, %d flushes; %d commands are not fetched",
		d.parked, queued, mapping, working, waiting, flushing, unfetched)
}
