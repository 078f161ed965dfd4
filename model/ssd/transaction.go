package ssd

import (
	"farflash/block"
	"farflash/policy/ftl"
	"farflash/sim"
)

// A transaction is one grain's read or program, or one block's erase. Those of grains that share a page of flash,
// read or programmed by one command, are a chain of which the first stands for all in the scheduler. All live in one
// slice, each in two cache lines, and are named by index; 0 is no transaction.
type transaction struct {
	sectors   uint64 // which sectors of the page are moved
	created   sim.Time
	queued    sim.Time // when it entered the scheduler
	array     sim.Time // spent in the array
	transfer  sim.Time // spent on the channel
	source    ftl.PPA  // collection: the page that is moved
	page      uint32   // as the translation layer numbers them; of an erase, the first of the block
	pool, blk int32    // that it lies in; not of an erase, nor of a read of what the translation layer does not know
	logical   uint32
	request   int32 // the host request it is part of, 0: none
	pair      int32 // a read's: the write that waits for it; of those that share a page: the next
	prev      int32 // of one that shares another's page: the first of them
	next      int32
	bytes     int32 // moved over the channel
	others    int32 // those of the ones that share its page
	version   uint32
	plane     int32
	pageIndex uint16 // within the block
	queue     uint8  // which of the scheduler's queues it belongs to
	waitsFor  uint8  // transactions that must be done first
	ns        uint8
	stream    uint8
	group     uint8 // a write's: the reclaim group that it is for
	origin    origin
	pinned    bool  // the read pins its block
	failed    bool  // its program did not take
	shared    bool  // others share its page
	joined    bool  // it shares another's page
	levels    bool  // a move: of wear levelling
	renews    bool  // a move: of data that get old
	folds     bool  // a move: out of the SLC cache
	spoilt    bool  // a read: nothing corrected it
	blank     bool  // a read of a page never programmed (Quirks.FillsNeedProgram)
	resets    bool  // an erase: of a zone that the host resets
	tries     uint8 // a read: how often it was sent again so far
	needs     uint8 // and how often it has to be
	_         [5]byte
}

// origin is who wants a transaction.
type origin uint8

const (
	fromHost    origin = iota // a host request's own page
	fromCache                 // data leaving the cache
	fromUpdate                // the read half of a partial page write
	fromMapping               // a mapping page
	fromMove                  // collection or wear levelling
	fromHeld                  // the same, but what was moved is safe in memory and the victim does not wait for it
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

// queueNames are the words that statistics use.
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

// newTransaction returns a transaction with only its time set, and its index. The pointer, as all to transactions,
// holds until the next one is made.
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

// at puts a transaction on a page, numbered as the translation layer does, and says which page of its block that is.
func (d *Drive) at(x *transaction, page uint32) (inBlock int) {
	pool, blk, inBlock := d.split(page)
	x.page, x.pool, x.blk = page, int32(pool), int32(blk)
	x.plane, x.pageIndex = d.pools.at(pool, inBlock)
	if d.slc.on && d.ftl.IsFast(ftl.PPA(page)) {
		x.pageIndex += uint16(d.pagesPerBlock)
	}
	return inBlock
}

// pin keeps the block of a read's page from being erased until the read has ended.
func (d *Drive) pin(x *transaction) {
	x.pinned = true
	d.ftl.ReadStartedIn(int(x.pool), int(x.blk))
}

// atFlash puts a read on a page that the translation layer does not know, the i-th of a plane; beyond its last they
// begin anew.
func (d *Drive) atFlash(x *transaction, plane int32, i uint32) {
	_, page := d.byFlashBlock.Split(uint64(i)) // a plane has whole blocks
	x.plane, x.pageIndex = plane, uint16(page)
}
