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
	begun   sim.Time
	targets [maxReplicas]int32
	n       int8             // targets that are chosen
	groups  [maxGroups]int32 // that may keep it, of protocols that have groups
}

// take has a gateway begin with a chunk that has waited since a time.
func (c *Cluster) take(gateway int32, since sim.Time, read bool) {
	var i int32
	if k := len(c.free) - 1; k >= 0 {
		i, c.free = c.free[k], c.free[:k]
	} else {
		c.chunks = append(c.chunks, chunk{})
		i = int32(len(c.chunks) - 1)
	}
	c.attempts++
	c.chunks[i] = chunk{id: c.attempts, gateway: gateway, live: true, read: read, begun: since}
	if read {
		c.Counters.Gets.Begun++
		c.get.begin(i)
		return
	}
	c.Counters.Begun++
	c.proto.begin(i)
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
	if x.read {
		c.Counters.Gets.Done++
	} else {
		c.Counters.Done++
	}
	if c.OnDone != nil {
		c.OnDone(&Done{Gateway: x.gateway, Begun: x.begun, Done: c.eng.Now(), Size: c.cfg.Chunk, Read: x.read})
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
	c.chunks[i].live, c.chunks[i].id = false, 0 // what still comes for it is stale
	c.free = append(c.free, i)
	c.freed(g)
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
