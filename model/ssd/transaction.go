package ssd

import (
	"farflash/block"
	"farflash/policy/ftl"
	"farflash/sim"
)

// transaction is the read or program of one grain, or the erase of one block. The transactions of grains that share a
// page of flash, read or programmed by one command, form a chain, whose first element represents all of them in the
// scheduler. All transactions are in one slice, each in two cache lines, and are named by index; 0 is none.
type transaction struct {
	sectors   uint64 // sectors of the page to transfer
	created   sim.Time
	queued    sim.Time // when it entered the scheduler
	array     sim.Time // spent in the array
	transfer  sim.Time // spent on the channel
	source    ftl.PPA  // collection: the page being moved
	page      uint32   // numbered as in the translation layer; of an erase, the first page of the block
	pool, blk int32    // of page; unset for erases and for reads of pages unknown to the translation layer
	logical   uint32
	request   int32 // the host request that it belongs to, 0: none
	pair      int32 // of a read: the write that waits for it; in a chain: the next
	prev      int32 // in a chain: the first
	next      int32
	bytes     int32 // to move over the channel
	others    int32 // bytes of the others in the chain; of the first only
	version   uint32
	plane     int32
	pageIndex uint16 // within the block
	queue     uint8  // the scheduler queue it belongs to
	waitsFor  uint8  // transactions that must complete first
	ns        uint8
	stream    uint8
	group     uint8 // of a write: the target reclaim group
	origin    origin
	pinned    bool  // the read pins its block
	failed    bool  // its program failed
	shared    bool  // first of a chain
	joined    bool  // in a chain, but not its first
	levels    bool  // a move for wear levelling
	renews    bool  // a move of aging data
	folds     bool  // a move out of the SLC cache
	spoilt    bool  // a read that could not be corrected
	blank     bool  // a read of a page never programmed (Quirks.FillsNeedProgram)
	resets    bool  // an erase of a zone that the host resets
	tries     uint8 // of a read: retries so far
	needs     uint8 // of a read: retries needed
	_         [5]byte
}

// origin is the reason for a transaction.
type origin uint8

const (
	fromHost    origin = iota // a host request's own page
	fromCache                 // data leaving the cache
	fromUpdate                // the read half of a partial page write
	fromMapping               // a mapping page
	fromMove                  // collection or wear levelling
	fromHeld                  // the same, but the data are safe in memory and the victim does not wait for them
)

// The scheduler's queues, per die.
const classes = 4

var _ [classes]struct{} = [block.Classes]struct{}{}

const (
	queueMappingRead  = 0
	queueHostRead     = queueMappingRead + 1 // and the three after it, by class
	queueMoveRead     = queueHostRead + classes
	queueMappingWrite = queueMoveRead + 1
	queueHostWrite    = queueMappingWrite + 1 // and the three after it, by class
	queueMoveWrite    = queueHostWrite + classes
	queueErase        = queueMoveWrite + 1
	queueCopyback     = queueErase + 1 // a move inside a plane; scheduled as a write
	queues            = queueCopyback + 1
)

const (
	hostReads  = uint16(1<<classes-1) << queueHostRead
	hostWrites = uint16(1<<classes-1) << queueHostWrite
)

// queueNames are the names of the queues in statistics.
var queueNames = [queues]string{
	queueMappingRead: "mapping-read",
	queueHostRead:    "read-urgent", queueHostRead + 1: "read-high", queueHostRead + 2: "read-medium",
	queueHostRead + 3: "read-low",
	queueMoveRead:     "move-read",
	queueMappingWrite: "mapping-write",
	queueHostWrite:    "write-urgent", queueHostWrite + 1: "write-high", queueHostWrite + 2: "write-medium",
	queueHostWrite + 3: "write-low",
	queueMoveWrite:     "move-write", queueErase: "erase", queueCopyback: "copyback",
}

// newTransaction returns a transaction with only its creation time set, and its index. The pointer, like all pointers
// to transactions, is valid until the next one is made.
func (d *Drive) newTransaction() (int32, *transaction) {
	t := d.txns.Take()
	x := d.txns.At(t)
	*x = transaction{created: d.eng.Now()}
	return t, x
}

func (d *Drive) freeTransaction(t int32) { d.txns.Give(t) }

// list is a doubly linked list of transactions.
type list struct{ head, tail int32 }

func (d *Drive) pushBack(l *list, t int32) {
	x := d.txns.At(t)
	x.prev, x.next = l.tail, 0
	if l.tail != 0 {
		d.txns.At(l.tail).next = t
	} else {
		l.head = t
	}
	l.tail = t
}

func (d *Drive) remove(l *list, t int32) {
	x := d.txns.At(t)
	if x.prev != 0 {
		d.txns.At(x.prev).next = x.next
	} else {
		l.head = x.next
	}
	if x.next != 0 {
		d.txns.At(x.next).prev = x.prev
	} else {
		l.tail = x.prev
	}
}

// at places a transaction on a page, numbered as in the translation layer, and returns the index of the page in its
// block.
func (d *Drive) at(x *transaction, page uint32) (inBlock int) {
	pool, blk, inBlock := d.split(page)
	x.page, x.pool, x.blk = page, int32(pool), int32(blk)
	x.plane, x.pageIndex = d.pools.at(pool, inBlock)
	if d.slc.on && d.ftl.IsFast(ftl.PPA(page)) {
		x.pageIndex += uint16(d.pagesPerBlock)
	}
	return inBlock
}

// pin keeps the block of a read's page from being erased until the read completes.
func (d *Drive) pin(x *transaction) {
	x.pinned = true
	d.ftl.ReadStartedIn(int(x.pool), int(x.blk))
}

// atFlash directs a read to a page unknown to the translation layer, the i-th of a plane; indices beyond the last wrap.
func (d *Drive) atFlash(x *transaction, plane int32, i uint32) {
	_, page := d.byFlashBlock.Split(uint64(i)) // a plane has whole blocks, so this also holds after a wrap
	x.plane, x.pageIndex = plane, uint16(page)
}
