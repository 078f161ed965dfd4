package ssd

import "farflash/policy/ftl"

// A superblock holds one page in thousands of the drive's. Stopping the host for the collection of one whenever blocks
// are short would stall it for that long, so it is throttled instead: while collection is urgent, dies alternate
// between host and collection, and the host writes as many pages as collection gains. Real drives do the same (write
// throttling). A victim with v of b pages valid gains b-v pages for v moves.

// pace is the throttling state of a pool's host writes.
type pace struct {
	block  ftl.Block // the victim being moved
	credit int64     // pages that the host may write, in units of paceUnit
	each   int64     // gain of a move out of block, in the same units
}

const paceUnit = 1 << 16

// paced reports whether a pool's host writes are throttled now.
func (d *Drive) paced(pool int) bool {
	return d.mostMoving > 0 && d.cfg.Collection.Preemptible && d.ftl.Urgent(pool) && d.ftl.Collecting(pool)
}

// mayWrite reports whether the throttle lets the host have a page of a pool, and charges it.
func (d *Drive) mayWrite(pool int) bool { return d.mostMoving == 0 || d.spend(pool) }

// spend charges a page to the credit of a throttled pool, and reports false if the credit is too low.
//
//go:noinline
func (d *Drive) spend(pool int) bool {
	if !d.paced(pool) {
		return true
	}
	p := &d.paces[pool]
	if p.credit < paceUnit {
		return false
	}
	p.credit -= paceUnit
	return true
}

// movesFrom records which victim a move comes from.
func (d *Drive) movesFrom(pool int, b ftl.Block) {
	p := &d.paces[pool]
	if p.block == b && p.each > 0 {
		return
	}
	gain := int64(d.ftl.Yield(b))
	p.block, p.each = b, max(1, gain*paceUnit/max(1, int64(d.pools.flash.PagesPerBlock)-gain))
}

// moveEnded records the end of a move and credits the host with its gain.
func (d *Drive) moveEnded(pool int) {
	d.moving[pool]--
	if d.mostMoving > 0 {
		d.gained(pool)
	}
}

// gained adds the gain of a completed move to a pool's credit.
//
//go:noinline
func (d *Drive) gained(pool int) {
	p := &d.paces[pool]
	p.credit = min(p.credit+p.each, int64(d.mostMoving)*paceUnit)
	if d.parked > 0 && p.credit >= paceUnit && d.parkedIn(int32(pool)).head != 0 {
		d.unpark(pool)
	}
}
