package ssd

import "farflash/policy/ftl"

// A superblock holds a page in thousands of the drive. If the host were stopped while one is collected, whenever
// blocks are short, it would wait for as long as that takes; so it is slowed down instead: while collection is
// urgent, dies serve host and collection by turns, and the host writes as many pages as collection gains. Drives do
// so (write throttling; the gains of a victim with v of b pages valid are b-v for v moves).

// pace is how a pool's host is slowed down.
type pace struct {
	block  ftl.Block // the victim that moves come from
	credit int64     // pages that the host may write, in units of paceUnit
	each   int64     // what a move out of block gains, in the same
}

const paceUnit = 1 << 16

// paced reports whether a pool's host is slowed down now.
func (d *Drive) paced(pool int) bool {
	return d.mostMoving > 0 && d.cfg.Collection.Preemptible && d.ftl.Urgent(pool) && d.ftl.Collecting(pool)
}

// mayWrite reports whether the host may have a page of a pool, as far as its pace says.
func (d *Drive) mayWrite(pool int) bool { return d.mostMoving == 0 || d.spend(pool) }

// spend takes the credit for a page from a pool that is slowed down, and reports false if it has not enough.
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

// movesFrom notes which victim a move comes from.
func (d *Drive) movesFrom(pool int, b ftl.Block) {
	p := &d.paces[pool]
	if p.block == b && p.each > 0 {
		return
	}
	gain := int64(d.ftl.Yield(b))
	p.block, p.each = b, max(1, gain*paceUnit/max(1, int64(d.pools.flash.PagesPerBlock)-gain))
}

// moveEnded notes that a move has ended, and lets the host have what that gained.
func (d *Drive) moveEnded(pool int) {
	d.moving[pool]--
	if d.mostMoving > 0 {
		d.gained(pool)
	}
}

// gained adds what the end of a move gains to a pool's credit.
//
//go:noinline
func (d *Drive) gained(pool int) {
	p := &d.paces[pool]
	p.credit = min(p.credit+p.each, int64(d.mostMoving)*paceUnit)
	if d.parked > 0 && p.credit >= paceUnit && d.parkedIn(int32(pool)).head != 0 {
		d.unpark(pool)
	}
}
