package ssd

import (
	"slices"

	"farflash/block"
	"farflash/model/ssd/nand"
	"farflash/numeric/units"
	"farflash/policy/ftl"
	"farflash/sim"
)

// counters are the counters of a running drive.
type counters struct {
	submitted [block.Ops]uint64
	finished  [block.Ops]uint64
	failed    uint64
	bytes     [block.Ops]int64

	hostPrograms, movePrograms, mappingPrograms uint64
	wearPrograms, renewPrograms                 uint64 // of movePrograms
	mappingReads, mappingMerged, vanished       uint64
	laidOut                                     uint64 // pages allocated by reads
	erases                                      uint64
	mapHits, mapMisses                          uint64
	cacheHits, cacheMisses                      uint64
	zeroReads                                   uint64
	parkings                                    uint64
	trimmedPages                                int64
	mapped                                      int64 // logical and mapping pages, of a grain each, that have a place

	commands    [operations][nand.MaxPlanesPerDie]uint64 // by number of planes
	suspensions [operations]uint64
	arrayBusy   [operations]sim.Time
	laneBusy    []sim.Time
	fewestFree  int // least free blocks of a plane, sampled while collecting
	queueStats  [queues]queueStats

	// For the host's own transactions, by direction: 0 reads, 1 programs.
	hostTxns                          [2]uint64
	hostArray, hostTransfer, hostWait [2]units.Total

	byNamespace []NamespaceStats // nil if there is only one

	breakdown [2]Breakdown
	flashed   [operations]uint64 // pages read and programmed, blocks erased
	moved     int64              // bytes over the flash channels
}

// Breakdown is the total time of requests by component; a request's last transaction counts.
type Breakdown struct {
	Requests uint64
	// Queue is the wait behind other commands until the drive fetches this one. Cache is the wait of a write for cache
	// space, behind data leaving the cache for flash.
	Queue, Link, DRAM, Cache, Mapping, Backlog, Wait, Array, Transfer, Controller, All units.Total
}

// Account is one request's Breakdown. Wait is the time in the lane without Array and Transfer. Lane is -1 without
// flash.
type Account struct {
	Tag                                                                                  uint64
	Op                                                                                   block.Op
	Queue, Link, DRAM, Cache, Mapping, Backlog, Wait, Array, Transfer, Controller, Whole sim.Time

	Lane          int32
	Queued, Ended sim.Time
}

// ended is the last transaction of a request to complete: the lane it waited in, since when, and its completion time.
type ended struct {
	lane       int32
	queued, at sim.Time
}

// endedLast records the last transaction of a request to complete, for OnAccount.
//
//go:noinline
func (d *Drive) endedLast(i int32, x *transaction) {
	for int(i) >= len(d.last) {
		d.last = append(d.last, ended{})
	}
	d.last[i] = ended{d.planes[x.plane].lane, x.queued, d.eng.Now()}
}

// lastOf returns the record of endedLast for a request.
func (d *Drive) lastOf(i int32) (e ended) {
	if int(i) < len(d.last) {
		e = d.last[i]
	}
	return e
}

// account updates the counters for a finished request.
func (d *Drive) account(i int32, r *request) {
	op := r.done.Op
	d.finished[op]++
	if r.done.Status != block.OK {
		d.failed++
		return
	}
	d.bytes[op] += r.done.Length
	if d.governor.on {
		d.drawLink(r.done.Length)
	}
	if op > block.Write {
		return
	}
	b := &d.breakdown[op]
	b.Requests++
	all := r.done.Finished - r.done.Submitted
	inside := r.served - r.accepted
	b.All.Add(all)
	// A command alone in its queue is fetched in the sum of the times subtracted here.
	queued := r.done.Fetched - r.done.Submitted - d.bellTime - d.readRequestTime - d.submissionTime
	r.done.Waited = queued
	link := all - inside - queued - r.processed
	b.Queue.Add(queued)
	b.Link.Add(link)
	b.Controller.Add(r.processed)
	if r.array == 0 && r.transfer == 0 {
		b.Cache.Add(r.roomless)
		b.DRAM.Add(inside - r.roomless)
		r.done.Waited += max(inside-r.dram, 0)
		if d.OnAccount != nil {
			d.reportAccount(Account{Tag: r.done.Tag, Op: op, Queue: queued, Link: link, Cache: r.roomless,
				DRAM: inside - r.roomless, Controller: r.processed, Whole: all, Lane: -1})
		}
		return
	}
	b.Mapping.Add(r.mapping)
	b.Wait.Add(r.wait)
	b.Array.Add(r.array)
	b.Transfer.Add(r.transfer)
	backlog := inside - r.mapping - r.wait - r.array - r.transfer
	b.Backlog.Add(backlog)
	r.done.Waited += r.wait + backlog
	if d.OnAccount != nil {
		d.reportFlashAccount(i, r, queued, link, backlog, all)
	}
}

// drawLink charges the link's energy for a request's bytes to the power limit.
//
//go:noinline
func (d *Drive) drawLink(bytes int64) {
	d.governor.draw(d.eng.Now(), float64(float64(bytes)*float64(d.cfg.Energy.LinkPerByte)))
}

// reportAccount passes an account to OnAccount.
//
//go:noinline
func (d *Drive) reportAccount(a Account) { d.OnAccount(&a) }

// reportFlashAccount is reportAccount for a request that used flash.
//
//go:noinline
func (d *Drive) reportFlashAccount(i int32, r *request, queued, link, backlog, all sim.Time) {
	last := d.lastOf(i)
	d.reportAccount(Account{Tag: r.done.Tag, Op: r.done.Op, Queue: queued, Link: link, Controller: r.processed,
		Mapping: r.mapping, Wait: r.wait, Array: r.array, Transfer: r.transfer, Backlog: backlog, Whole: all,
		Lane: last.lane, Queued: last.queued, Ended: last.at})
}

// accountTransaction updates the counters for a completed transaction.
func (d *Drive) accountTransaction(x *transaction) {
	op := operationOf(int(x.queue))
	d.flashed[op]++
	if op == opRead || op == opProgram {
		d.moved += int64(x.load())
	}
	dir := 0
	switch {
	case x.origin == fromHost && op == opProgram, x.origin == fromCache:
		dir = 1
	case x.origin != fromHost:
		return
	}
	d.hostTxns[dir]++
	d.hostArray[dir].Add(x.array)
	d.hostTransfer[dir].Add(x.transfer)
	d.hostWait[dir].Add(d.eng.Now() - x.created - x.array - x.transfer)
}

// Stats are a drive's statistics since it was made. Times are totals.
type Stats struct {
	Submitted, Finished [block.Ops]uint64
	Failed              uint64
	Bytes               [block.Ops]int64

	// Pages programmed for the host, by collection and for the map.
	HostPrograms, MovePrograms, MappingPrograms uint64
	WearPrograms                                uint64 // of MovePrograms, those of wear levelling
	RenewPrograms                               uint64 // of MovePrograms, those of refresh
	SLCPrograms                                 uint64 // of HostPrograms, those to the SLC cache
	FoldPrograms                                uint64 // of MovePrograms, those that fold the SLC cache
	// operations that a power limit examined, and those that it delayed
	PowerAsked, PowerHeld              uint64
	Errors                             ErrorCounts
	Zones                              ZoneStats
	ZoneLevels                         ZoneLevels // at the end
	Reads, Programs, Erases            uint64     // all flash operations, in pages and blocks
	MappingReads                       uint64
	Commands                           map[string][nand.MaxPlanesPerDie]uint64
	ProgramsSuspended, ErasesSuspended uint64

	MapHits, MapMisses     uint64
	CacheHits, CacheMisses uint64
	ZeroReads              uint64
	WritesHeld             uint64 // writes that had to wait for a free page

	Transactions          [2]uint64 // For the host's transactions: 0 reads, 1 programs.
	Array, Transfer, Wait [2]units.Total
	Breakdown             [2]Breakdown

	Namespaces            []NamespaceStats // of a drive with several
	Groups                []GroupStats     // reclaim groups, likewise
	Queues                []QueueStats
	LaneBusy, ChannelBusy []sim.Time
	LinkBusy              [2]sim.Time // to the host, to the drive
	DRAMBusy              sim.Time
	ControllerBusy        sim.Time   // sum over its processors
	Rested                []sim.Time // in each power state
	Wakes                 uint64     // from a power state
	FTL                   ftl.Stats  // pages are grains of the map
	// in joules, without the idle power, and less the savings of power states; 0 if not modelled
	Energy            float64
	Span              sim.Time
	FreeBlocks        int   // sum over all planes
	FewestFree        int   // least in any plane so far
	Programmed        int64 // bytes of pages programmed for the host, by collection and for the map
	ValidPages        int64 // grains that hold data
	Cached, CacheRoom int64 // grains in the data caches, and their capacity
}

// NamespaceStats counts a namespace's grains programmed for the host, and moved.
type NamespaceStats struct{ Written, Moved uint64 }

// QueueStats are the statistics of one kind of scheduler queue over all lanes.
type QueueStats struct {
	Name          string
	Entered, Left uint64
	Wait          units.Total
	MaxWait       sim.Time
	MaxLength     int64
}

// Lanes returns the number of dies, or of chips under a quirk, that work independently.
func (d *Drive) Lanes() int { return len(d.laneBusy) }

// Stats returns the statistics up to the present.
func (d *Drive) Stats() Stats { return d.StatsAt(d.eng.Now()) }

// StatsAt returns the statistics up to at, before which no event is pending, with work in progress so far.
func (d *Drive) StatsAt(at sim.Time) Stats {
	s := Stats{
		Submitted: d.submitted, Finished: d.finished, Failed: d.failed, Bytes: d.bytes,
		HostPrograms: d.hostPrograms, MovePrograms: d.movePrograms, MappingPrograms: d.mappingPrograms,
		WearPrograms: d.wearPrograms, RenewPrograms: d.renewPrograms,
		PowerAsked: d.governor.asked, PowerHeld: d.governor.held,
		SLCPrograms: d.slc.programs, FoldPrograms: d.slc.folds,
		Reads: d.flashed[opRead] + d.flashed[opCopyback], Programs: d.flashed[opProgram] + d.flashed[opCopyback],
		Erases:       d.flashed[opErase],
		MappingReads: d.mappingReads,
		Commands: map[string][nand.MaxPlanesPerDie]uint64{
			"read": d.commands[opRead], "program": d.commands[opProgram], "erase": d.commands[opErase],
			"copyback": d.commands[opCopyback],
		},
		ProgramsSuspended: d.suspensions[opProgram], ErasesSuspended: d.suspensions[opErase],
		MapHits: d.mapHits, MapMisses: d.mapMisses, CacheHits: d.cacheHits, CacheMisses: d.cacheMisses,
		ZeroReads: d.zeroReads, WritesHeld: d.parkings,
		Transactions: d.hostTxns, Array: d.hostArray, Transfer: d.hostTransfer, Wait: d.hostWait,
		Breakdown: d.breakdown,
		LaneBusy:  append([]sim.Time(nil), d.laneBusy...),
		LinkBusy:  [2]sim.Time{d.up.busyUntil(at), d.down.busyUntil(at)}, DRAMBusy: d.memory.busyUntil(at),
		FTL: d.ftl.Stats().Sub(d.before), Span: at, ValidPages: d.mapped,
		Programmed: int64(d.hostPrograms+d.movePrograms+d.mappingPrograms) * int64(d.cfg.Geometry.PageSize),
	}
	for _, n := range []*int64{&s.FTL.Erases, &s.FTL.Failures, &s.FTL.Retired, &s.FTL.Collections, &s.FTL.Relocations,
		&s.FTL.Renewals, &s.FTL.Folds} {
		*n *= int64(d.pools.size) // counted in superblocks, each of this many blocks
	}
	if d.cfg.Controller != nil {
		s.ControllerBusy = d.processors.busyUntil(at)
	}
	s.Rested, s.Wakes = d.rested(at), d.rest.wakes
	if d.errs != nil {
		s.Errors = d.errs.ErrorCounts
	}
	for i := range d.lanes {
		if l := &d.lanes[i]; l.phase == working {
			s.LaneBusy[i] -= max(0, l.finish-max(l.starts, at))
		}
	}
	for q, x := range d.queueStats {
		if x.Entered > 0 {
			s.Queues = append(s.Queues,
				QueueStats{Name: queueNames[q], Entered: x.Entered, Left: x.Left, Wait: x.Wait, MaxWait: x.MaxWait,
					MaxLength: x.MaxLength})
		}
	}
	for plane := range d.planeReads {
		if p := &d.planeReads[plane]; p.txn != 0 {
			s.LaneBusy[d.planes[plane].lane] -= max(0, p.end-max(p.begin, at))
		}
	}
	s.Namespaces = slices.Clone(d.byNamespace)
	if d.groups != nil {
		s.Groups = slices.Clone(d.groups.stats)
	}
	s.Zones, s.ZoneLevels = d.zoneStats, d.zonesNow()
	for i := range d.channels {
		c := &d.channels[i]
		s.ChannelBusy = append(s.ChannelBusy, c.time-max(0, c.until-at))
	}
	for i := range d.caches {
		s.Cached += int64(d.caches[i].n)
		s.CacheRoom += int64(d.caches[i].most)
	}
	for p := range d.pools.count() {
		s.FreeBlocks += d.ftl.Free(p) * d.pools.size
		d.fewestFree = min(d.fewestFree, d.ftl.Free(p))
	}
	s.FewestFree = d.fewestFree
	if e := d.cfg.Energy; e != nil {
		s.Energy = float64(float64(e.Read)*float64(s.Reads)) + float64(float64(e.Program)*float64(s.Programs)) +
			float64(float64(e.Erase)*float64(s.Erases)) + float64(float64(e.TransferPerByte)*float64(d.moved)) +
			float64(float64(e.LinkPerByte)*float64(d.bytes[block.Read]+d.bytes[block.Write]))
		for i, t := range s.Rested {
			s.Energy -= float64((e.Idle - d.cfg.PowerStates[i].Watts) * t.Seconds())
		}
	}
	return s
}

// Collected returns the pages that garbage collection programmed.
func (s *Stats) Collected() uint64 {
	return s.MovePrograms - s.WearPrograms - s.RenewPrograms - s.FoldPrograms
}
