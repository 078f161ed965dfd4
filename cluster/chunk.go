package cluster

import (
	"farflash/cluster/put"
	"farflash/sim"
)

// task is what the cluster knows of a chunk that a gateway puts or gets, beside what protocols see of it.
type task struct {
	object  int32 // that is read
	live    bool
	read    bool
	attempt int8     // from 0
	repairs int8     // the piece that a target makes again of it, from 1; 0: none
	started sim.Time // when its gateway began the present attempt
}

// take has a gateway begin with a chunk that may have waited.
func (c *Cluster) take(a *Arrival) {
	i := c.slot()
	c.attempts++
	c.books.under[a.Gateway]++
	c.bus.Chunks[i] = put.Chunk{ID: c.attempts, Gateway: a.Gateway, Begun: a.At}
	c.tasks.Items[i] = task{live: true, read: a.Read, started: c.eng.Now()}
	if a.Read {
		c.Counters.Gets.Begun++
		if c.tasks.Items[i].object = int32(a.Object); a.Object < 0 {
			c.tasks.Items[i].object = int32(c.kept.rand.IntN(int64(c.cfg.Objects)))
		}
		c.watch(i)
		c.get.begin(i)
		return
	}
	c.Counters.Begun++
	c.watch(i)
	c.proto.Begin(i)
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
		return
	}
	c.store(x)
	c.done(i)
}

// done: a chunk has been put or got.
func (c *Cluster) done(i int32) {
	x, t := &c.bus.Chunks[i], &c.tasks.Items[i]
	if t.repairs > 0 {
		c.fetched(i)
		return
	}
	if c.lossy {
		c.gateways[x.Gateway].clock.learn(c.eng.Now() - t.started)
	}
	if t.read {
		c.Counters.Gets.Done++
	} else {
		c.Counters.Done++
	}
	if c.OnDone != nil {
		c.OnDone(&Done{Chunk: x.ID, Gateway: x.Gateway, Begun: x.Begun, Done: c.eng.Now(), Size: c.cfg.Chunk, Read: t.read})
	}
	c.forget(i)
}

// abort gives a chunk up.
func (c *Cluster) abort(i int32) {
	c.Counters.Aborted++
	c.forget(i)
}

// forget frees a chunk's place; its gateway takes the next one.
func (c *Cluster) forget(i int32) {
	g := c.bus.Chunks[i].Gateway
	c.books.under[g]--
	c.turnsLink(g)
	c.release(i)
	c.freed(g)
}

// release frees a chunk's place. What still comes for it is stale.
func (c *Cluster) release(i int32) {
	c.unwatch(i)
	c.tasks.Items[i].live, c.bus.Chunks[i].ID = false, 0
	c.tasks.Give(i)
}
