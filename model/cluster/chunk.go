package cluster

import (
	"farflash/model/cluster/put"
	"farflash/numeric/units"
	"farflash/sim"
)

// task is what the cluster knows of a chunk that a gateway puts or gets, beside what protocols see of it.
type task struct {
	object  int32 // that is read
	size    units.Bytes
	live    bool
	read    bool
	update  bool     // a part of it is written over
	place   int64    // which
	attempt int8     // from 0
	mends   int32    // the repair that reads it, from 1; 0: none
	told    bool     // its gateway has said that it is put
	pieces  int8     // of the present attempt that targets have begun to write
	started sim.Time // when its gateway began the present attempt
	resumes sim.Time // when its gateway begins the next attempt, where it waits with that; 0: it does not
	// when targets have said that it will be kept, where it has waited for them and is sent; 0: it has not
	due sim.Time
}

// take has a gateway begin with a chunk that may have waited.
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
		t.object, t.place = int32(c.updates.IntN(int64(c.cfg.Objects))), c.updates.IntN(c.cfg.parts().Places())
		c.watch(i)
		c.renew.begin(i)
		return
	}
	c.Counters.Begun++
	c.sized(i, c.drawn())
	c.watch(i)
	c.proto.Begin(i)
}

// sized says how large a chunk is.
func (c *Cluster) sized(i int32, size units.Bytes) {
	if size == c.cfg.Chunk {
		return // it is so already
	}
	c.tasks.Items[i].size, c.bus.Chunks[i].Piece = size, c.cfg.pieceOf(size)
}

// slot is an unused place for a chunk.
func (c *Cluster) slot() int32 {
	i := c.tasks.Take()
	if int(i) == len(c.bus.Chunks) {
		c.bus.Chunks = append(c.bus.Chunks, put.Chunk{})
	}
	return i
}

// acknowledged: a replica is kept. After the last one the chunk is done and gone.
func (c *Cluster) acknowledged(i int32) {
	x := &c.bus.Chunks[i]
	c.Counters.Replicas++
	if x.Acked++; int(x.Acked) < c.copies {
		if int(x.Acked) == c.cfg.Quorum && !c.tasks.Items[i].told {
			c.tells(i)
		}
		return
	}
	c.store(i)
	c.done(i)
}

// stamp is which of a target's lives a piece was written in: how often the target had failed.
type stamp struct{ target, fell int32 }

// stamps notes that a target has a piece of a chunk, for its disk.
func (c *Cluster) stamps(target int32, m *put.Message, piece units.Bytes) {
	x := &c.bus.Chunks[m.Chunk]
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

// stamped is in which of a target's lives it got its piece of a chunk.
func (c *Cluster) stamped(i, target int32) int32 {
	for _, s := range c.wrote[i][:c.tasks.Items[i].pieces] {
		if s.target == target {
			return s.fell
		}
	}
	return 0
}

// wastes notes that what has been written of an attempt at a chunk is for nothing.
func (c *Cluster) wastes(i int32) {
	t := &c.tasks.Items[i]
	c.Counters.Wasted += units.Bytes(t.pieces) * c.pieceAt(i)
	t.pieces = 0
}

// done: a chunk has been put or got.
func (c *Cluster) done(i int32) {
	x, t := &c.bus.Chunks[i], &c.tasks.Items[i]
	if t.mends > 0 {
		c.fix.fetched(i)
		return
	}
	if c.lossy {
		if g := &c.gateways[x.Gateway]; t.due > 0 {
			g.late.Learn(c.eng.Now() - t.due)
		} else {
			g.clock.Learn(c.eng.Now() - t.started)
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
		c.tells(i)
	}
	c.forget(i)
}

// tells who wanted it that a chunk is put or got. With a quorum that may be before all its pieces are kept.
func (c *Cluster) tells(i int32) {
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

// abort ends an attempt at a chunk for which its gateway has found no room. After a time it begins again with the
// same chunk; a gateway of SURGE forgets it and takes another one.
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

// resumed: it is time for the next attempt at a chunk for which there was no room.
func (c *Cluster) resumed(i int32) {
	if t := &c.tasks.Items[i]; t.live && t.resumes == c.eng.Now() {
		c.tries(i)
	}
}

// renumber ends an attempt at a chunk: what still comes of it is stale. What is put or got, its size and since when
// it waits stay.
func (c *Cluster) renumber(i int32) {
	c.wastes(i)
	x := &c.bus.Chunks[i]
	c.attempts++
	x.ID, x.Acked, x.N = c.attempts, 0, 0
}

// tries begins an attempt at a chunk that is not the first.
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
	if c.bus.Chunks[i].ID == id { // a read of which too little is left has failed by now
		c.watch(i)
	}
}

// endsShort ends a chunk of which not all pieces are kept. One that was said to be put is counted as that, any other
// as the caller says.
func (c *Cluster) endsShort(i int32, as *uint64) {
	if c.tasks.Items[i].told {
		as = &c.Counters.Short
	}
	*as++
	c.wastes(i)
	c.forget(i)
}

// forget frees a chunk's slot; its gateway takes the next chunk. A chunk that could not even be tried costs its
// gateway the shortest time of a chunk.
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

// release frees a chunk's place. What still comes for it is stale.
func (c *Cluster) release(i int32) {
	c.unwatch(i)
	c.tasks.Items[i].live, c.bus.Chunks[i].ID = false, 0
	c.tasks.Give(i)
}
