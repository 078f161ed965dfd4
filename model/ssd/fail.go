package ssd

import "farflash/policy/ftl"

// Programs that do not take: the data are still in the controller, which writes them elsewhere, and the translation
// layer gives the block up.

// wrote reports whether a transaction of a queue programs a page.
func wrote(queue uint8) bool { return operationOf(int(queue)) == opProgram || queue == queueCopyback }

// failedNow reports whether the program that a transaction was did not take.
//
//go:noinline
func (d *Drive) failedNow(x *transaction) bool { return wrote(x.queue) && d.programFails(x.page) }

// again has a program that did not take done once more elsewhere.
func (d *Drive) again(t int32) {
	x := d.txns.At(t)
	pool := d.poolOf(x.page)
	if x.origin == fromMove {
		d.ftl.MoveFailed(x.source, ftl.PPA(x.page), d.tick())
		d.queueBlock(d.ftl.BlockOf(ftl.PPA(x.page)))
		// What a copyback held in the chip has been read again, as for any move.
		x.queue = queueMoveWrite
		if d.relocate(t, x) {
			d.program(t)
		}
		d.collect(pool)
		d.noteCollecting(pool)
		return
	}
	x.failed = true
	d.placeAgain(t)
}

// placeAgain gives a program that did not take another page. Until there is one it counts as under way, and nothing
// changes. If the page was written or trimmed meanwhile there is nothing to do but to end.
func (d *Drive) placeAgain(t int32) {
	x := d.txns.At(t)
	pool := d.poolOf(x.page)
	if d.l2p.get(x.logical) != x.page {
		d.finish(t, x)
		return
	}
	stream := int(x.stream)
	if x.origin == fromMapping {
		stream = d.ns[x.ns].mapping
	} else if x.origin == fromHeld {
		stream = d.streamOf(x.logical)
	}
	ppa, ok := d.ftl.Allocate(pool, stream, d.tick())
	if !ok {
		d.park(int32(pool), t)
		return
	}
	x.failed = false
	d.ftl.ProgramFailed(ftl.PPA(x.page), d.tick())
	d.queueBlock(d.ftl.BlockOf(ftl.PPA(x.page)))
	d.reinstall(x, ppa)
	if !d.cfg.Mapping.Ideal && x.logical < d.ns[0].mapBase {
		d.dirtyEntry(x.logical, d.namespaceOf(x.logical))
	}
	d.unpack(t)
	d.program(t)
	d.collect(pool)
}
