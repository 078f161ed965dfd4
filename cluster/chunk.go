package cluster

import "farflash/sim"

// chunk is one that a gateway puts.
type chunk struct {
	id      uint64 // counted from 1
	gateway int32
	live    bool
	acked   int8
	begun   sim.Time
	targets [maxReplicas]int32
	n       int8 // targets that are chosen
}

// begin has a gateway take a chunk.
func (c *Cluster) begin(gateway int32) {
	var i int32
	if k := len(c.free) - 1; k >= 0 {
		i, c.free = c.free[k], c.free[:k]
	} else {
		c.chunks = append(c.chunks, chunk{})
		i = int32(len(c.chunks) - 1)
	}
	c.Counters.Begun++
	c.chunks[i] = chunk{id: c.Counters.Begun, gateway: gateway, live: true, begun: c.eng.Now()}
	c.proto.begin(i)
}

// acknowledged: a replica is kept. After the last one the chunk is done and gone.
func (c *Cluster) acknowledged(i int32) {
	x := &c.chunks[i]
	c.Counters.Replicas++
	if x.acked++; int(x.acked) < c.cfg.Replicas {
		return
	}
	c.Counters.Done++
	if c.OnDone != nil {
		c.OnDone(&Done{Chunk: x.id, Gateway: x.gateway, Begun: x.begun, Done: c.eng.Now(), Size: c.cfg.Chunk})
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
	c.chunks[i].live = false
	c.free = append(c.free, i)
	c.eng.Schedule(c.self, c.here, c.eng.Now(), evBegin, uint32(g))
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

// keep has a target write a chunk that has arrived and tell its gateway when it is on the disk.
func (c *Cluster) keep(target int32, m message, takes sim.Time) {
	now := c.eng.Now()
	c.changes(target)
	done := c.targets[target].disk.write(now, c.d.DiskChunk)
	c.showWrite(target, &m, done)
	c.toGateway(m, takes, done-now)
}
