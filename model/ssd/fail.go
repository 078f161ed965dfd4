package ssd

import "farflash/policy/ftl"

// Failed programs. The controller still has the data and writes them elsewhere; the translation layer retires the
// block.

// wrote reports whether transactions of a queue program pages.
func wrote(queue uint8) bool { return operationOf(int(queue)) == opProgram || queue == queueCopyback }

// failedNow reports whether a transaction is a program that failed.
//
//go:noinline
func (d *Drive) failedNow(x *transaction) bool { return wrote(x.queue) && d.programFails(x.page) }

// again repeats a failed program elsewhere.
func (d *Drive) again(t int32) {
	x := d.txns.At(t)
	pool := d.poolOf(x.page)
	if x.origin == fromMove {
		d.ftl.MoveFailed(x.source, ftl.PPA(x.page), d.tick())
		d.queueBlock(d.ftl.BlockOf(ftl.PPA(x.page)))
		// A copyback's data were in the chip's register and are read out, as for any move.
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

// placeAgain allocates another page for a failed program. Until there is one, the program counts as in flight and its
// state does not change. If the page has been rewritten or trimmed since, the program just completes.
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
