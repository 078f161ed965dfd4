package cluster

import (
	"farflash/model/cluster/put"
	"farflash/numeric/units"
	"farflash/sim"
)

// task is the cluster's state of a chunk that a gateway puts or gets, apart from the part that protocols see
// (put.Chunk).
type task struct {
	object  int32 // the object that is read or updated
	size    units.Bytes
	live    bool
	read    bool
	update  bool     // a part of a stored chunk is overwritten
	place   int64    // index of the overwritten part
	attempt int8     // from 0
	mends   int32    // number of the repair that reads the chunk, from 1; 0: none
	told    bool     // completion has been reported to OnDone
	pieces  int8     // pieces of this attempt that targets have begun to write
	started sim.Time // when the gateway started this attempt
	resumes sim.Time // when the gateway retries, if the attempt is waiting to be retried; 0: it is not
	// when its targets predict that it is stored, for a chunk that waited for them and is being sent; 0: it is not
	due sim.Time
}

// take starts a chunk at its gateway; the chunk may have queued before.
func (c *Cluster) take(a *Arrival) {
	i := c.slot()
	c.attempts++
	c.books.under[a.Gateway]++
	c.bus.Chunks[i] = put.Chunk{ID: c.attempts, Gateway: a.Gateway, Begun: a.At, Piece: c.piece}
	c.tasks.Items[i] = task{live: true, read: a.Read, started: c.eng.Now(), size: c.cfg.Chunk}
	if a.Read {
		c.Counters.Gets.Begun++
		if c.tasks.Items[i].object = int32(a.Object); a.Object < 0 {
			c.tasks.Items[i].object = int32(c.kept.rand.IntN(int64(c.cfg.Objects)))
		}
		c.sized(i, c.kept.sizeOf(c.tasks.Items[i].object, c.cfg.Chunk))
		c.watch(i)
		c.get.begin(i)
		return
	}
	if c.cfg.Update.Share > 0 && c.updates.Float64() < float64(c.cfg.Update.Share) {
		c.Counters.Updates.Begun++
		t := &c.tasks.Items[i]
		t.update, t.size = true, c.cfg.Update.Size
		t.object, t.place = int32(c.updates.IntN(int64(c.cfg.Objects))), c.updates.IntN(c.cfg.parts().places())
		c.watch(i)
		c.renew.begin(i)
		return
	}
	c.Counters.Begun++
	c.sized(i, c.drawn())
	c.watch(i)
	c.proto.Begin(i)
}

// sized sets the size of a chunk.
func (c *Cluster) sized(i int32, size units.Bytes) {
	if size == c.cfg.Chunk {
		return // the slot has this size already
	}
	c.tasks.Items[i].size, c.bus.Chunks[i].Piece = size, c.cfg.pieceOf(size)
}

// slot returns a free chunk slot.
func (c *Cluster) slot() int32 {
	i := c.tasks.Take()
	if int(i) == len(c.bus.Chunks) {
		c.bus.Chunks = append(c.bus.Chunks, put.Chunk{})
	}
	return i
}

// acknowledged counts a stored replica. The last one completes the chunk and frees its slot.
func (c *Cluster) acknowledged(i int32) {
	x := &c.bus.Chunks[i]
	c.Counters.Replicas++
	if x.Acked++; int(x.Acked) < c.copies {
		if int(x.Acked) == c.cfg.Quorum && !c.tasks.Items[i].told {
			c.reportDone(i)
		}
		return
	}
	c.store(i)
	c.done(i)
}

// stamp identifies the incarnation of a target in which a piece was written: fell is the number of failures until then.
type stamp struct{ target, fell int32 }

// stamps records that a target has received a piece of a chunk, for its disk.
func (c *Cluster) stamps(target int32, m *put.Message, piece units.Bytes) {
	x := &c.bus.Chunks[m.Chunk]
	// Acknowledgements of protocols that never retry carry no ID.
	if m.ID != 0 && x.ID != m.ID || !c.tasks.Items[m.Chunk].live {
		c.Counters.Wasted += piece
		return
	}
	t := &c.tasks.Items[m.Chunk]
	if len(c.cfg.Failures) > 0 {
		for int(m.Chunk) >= len(c.wrote) {
			c.wrote = append(c.wrote, [maxReplicas]stamp{})
		}
		c.wrote[m.Chunk][t.pieces] = stamp{target, c.targets[target].fell}
	}
	t.pieces++
}

// stamped returns the incarnation of a target in which it received its piece of a chunk.
func (c *Cluster) stamped(i, target int32) int32 {
	for _, s := range c.wrote[i][:c.tasks.Items[i].pieces] {
		if s.target == target {
			return s.fell
		}
	}
	return 0
}

// wastes counts the pieces written by the present attempt as wasted.
func (c *Cluster) wastes(i int32) {
	t := &c.tasks.Items[i]
	c.Counters.Wasted += units.Bytes(t.pieces) * c.pieceAt(i)
	t.pieces = 0
}

// done completes a put or a get.
func (c *Cluster) done(i int32) {
	x, t := &c.bus.Chunks[i], &c.tasks.Items[i]
	if t.mends > 0 {
		c.fix.fetched(i)
		return
	}
	// A chunk that has waited for capacity teaches its lateness, any other one its whole time (retry.go).
	if c.lossy {
		if g := &c.gateways[x.Gateway]; t.due > 0 {
			g.late.learn(c.eng.Now() - t.due)
		} else {
			g.clock.learn(c.eng.Now() - t.started)
		}
	}
	switch {
	case t.read:
		c.Counters.Gets.Done++
	case t.update:
		c.Counters.Updates.Done++
	default:
		c.Counters.wholes += units.Bytes(c.copies) * x.Piece
		c.Counters.Kept += units.Bytes(t.pieces) * x.Piece
		t.pieces = 0
	}
	if !t.told {
		c.reportDone(i)
	}
	c.forget(i)
}

// reportDone reports completion of a put or a get to OnDone. With a quorum, pieces may still be outstanding.
func (c *Cluster) reportDone(i int32) {
	x, t := &c.bus.Chunks[i], &c.tasks.Items[i]
	t.told = true
	if !t.read && !t.update {
		c.Counters.Done++
	}
	if c.OnDone != nil {
		c.OnDone(&Done{Chunk: x.ID, Gateway: x.Gateway, Begun: x.Begun, Done: c.eng.Now(), Size: t.size, Read: t.read,
			Update: t.update})
	}
}

// abort ends an attempt at a chunk for which the targets have no capacity. The gateway retries the same chunk after
// wait; a gateway of SURGE drops it and takes another one.
func (c *Cluster) abort(i int32, wait sim.Time) {
	c.Counters.Aborted++
	if c.cfg.Compat != CompatNone {
		c.endsShort(i, &c.Counters.Dropped)
		return
	}
	c.renumber(i)
	t := &c.tasks.Items[i]
	if c.hopeless(t) {
		c.fail(i)
		return
	}
	t.resumes = c.eng.Now() + wait
	c.eng.Schedule(c.self, c.here, t.resumes, evResume, uint32(i))
}

// resumed starts the next attempt at a chunk whose previous one was aborted.
func (c *Cluster) resumed(i int32) {
	if t := &c.tasks.Items[i]; t.live && t.resumes == c.eng.Now() {
		c.tries(i)
	}
}

// renumber ends an attempt at a chunk by giving it a new ID, so that everything in flight for the old one is stale. The
// operation, its size and its start time stay.
func (c *Cluster) renumber(i int32) {
	c.wastes(i)
	x := &c.bus.Chunks[i]
	c.attempts++
	x.ID, x.Acked, x.N = c.attempts, 0, 0
}

// tries starts an attempt at a chunk that is not the first one.
func (c *Cluster) tries(i int32) {
	t := &c.tasks.Items[i]
	t.started, t.due, t.resumes = c.eng.Now(), 0, 0
	id := c.bus.Chunks[i].ID
	switch {
	case t.read:
		c.get.begin(i)
	case t.update:
		c.renew.begin(i)
	default:
		c.proto.Begin(i)
	}
	if c.bus.Chunks[i].ID == id { // unless a read with too few pieces left has already failed
		c.watch(i)
	}
}

// endsShort ends a chunk of which some pieces are not stored. A chunk already reported as put counts as Short; any
// other one counts as the caller says.
func (c *Cluster) endsShort(i int32, as *uint64) {
	if c.tasks.Items[i].told {
		as = &c.Counters.Short
	}
	*as++
	c.wastes(i)
	c.forget(i)
}

// forget frees a chunk's slot, and its gateway takes the next chunk. If the attempt took no time, the gateway waits for
// Floor first, so that a closed loop cannot spin at one instant.
func (c *Cluster) forget(i int32) {
	g, tried := c.bus.Chunks[i].Gateway, c.eng.Now() > c.tasks.Items[i].started
	c.books.under[g]--
	c.turnsLink(g)
	c.release(i)
	if !tried {
		c.eng.Schedule(c.self, c.here, c.eng.Now()+c.Floor(), evFreed, uint32(g))
		return
	}
	c.freed(g)
}

// release frees a chunk's slot. Messages and frames still in flight for it become stale.
func (c *Cluster) release(i int32) {
	c.unwatch(i)
	c.tasks.Items[i].live, c.bus.Chunks[i].ID = false, 0
	c.tasks.Give(i)
}
