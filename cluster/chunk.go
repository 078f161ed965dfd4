package cluster

import "farflash/sim"

// chunk is one that a gateway puts or gets.
type chunk struct {
	id      uint64 // counted from 1
	gateway int32
	object  int32 // that is read
	live    bool
	read    bool
	acked   int8
	attempt int8     // from 0
	repairs int8     // the piece that a target makes again of it, from 1; 0: none
	begun   sim.Time // since when it waits
	started sim.Time // when its gateway began the present attempt
	targets [maxReplicas]int32
	n       int8             // targets that are chosen
	groups  [maxGroups]int32 // that may keep it, of protocols that have groups
}

// take has a gateway begin with a chunk that may have waited.
func (c *Cluster) take(a *Arrival) {
	i := c.slot()
	c.attempts++
	c.books.under[a.Gateway]++
	c.chunks[i] = chunk{id: c.attempts, gateway: a.Gateway, live: true, read: a.Read, begun: a.At, started: c.eng.Now()}
	if a.Read {
		c.Counters.Gets.Begun++
		if c.chunks[i].object = int32(a.Object); a.Object < 0 {
			c.chunks[i].object = int32(c.kept.rand.IntN(int64(c.cfg.Objects)))
		}
		c.watch(i)
		c.get.begin(i)
		return
	}
	c.Counters.Begun++
	c.watch(i)
	c.proto.begin(i)
}

// slot is an unused place for a chunk.
func (c *Cluster) slot() int32 {
	if k := len(c.free) - 1; k >= 0 {
		i := c.free[k]
		c.free = c.free[:k]
		return i
	}
	c.chunks = append(c.chunks, chunk{})
	return int32(len(c.chunks) - 1)
}

// acknowledged: a replica is kept. After the last one the chunk is done and gone.
func (c *Cluster) acknowledged(i int32) {
	x := &c.chunks[i]
	c.Counters.Replicas++
	if x.acked++; int(x.acked) < c.copies {
		return
	}
	c.store(x)
	c.done(i)
}

// done: a chunk has been put or got.
func (c *Cluster) done(i int32) {
	x := &c.chunks[i]
	if x.repairs > 0 {
		c.fetched(i)
		return
	}
	if c.lossy {
		c.gateways[x.gateway].clock.learn(c.eng.Now() - x.started)
	}
	if x.read {
		c.Counters.Gets.Done++
	} else {
		c.Counters.Done++
	}
	if c.OnDone != nil {
		c.OnDone(&Done{Chunk: x.id, Gateway: x.gateway, Begun: x.begun, Done: c.eng.Now(), Size: c.cfg.Chunk, Read: x.read})
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
	g := c.chunks[i].gateway
	c.books.under[g]--
	c.turnsLink(g)
	c.release(i)
	c.freed(g)
}

// release frees a chunk's place. What still comes for it is stale.
func (c *Cluster) release(i int32) {
	c.unwatch(i)
	c.chunks[i].live, c.chunks[i].id = false, 0
	c.free = append(c.free, i)
}

// keeps reports whether a target has been chosen for the chunk.
func (x *chunk) keeps(target int32) bool { return x.place(target) >= 0 }

// place is a target's number among those of the chunk, -1 if it is none.
func (x *chunk) place(target int32) int {
	for k, t := range x.targets[:x.n] {
		if t == target {
			return k
		}
	}
	return -1
}
