package cluster

import (
	"farflash/numeric/units"
)

// Memory of targets. An incoming piece is held in its target's memory until it is on the disk. Space for the whole
// piece is allocated with its first frame. A frame of a piece without space waits in the network, and frames of pieces
// with space pass it; therefore every piece that has begun to arrive can complete, and no two pieces deadlock. Pieces
// of abandoned attempts lose their space when it is needed. Without a limit none of this is simulated.

func (c *Config) checkMemory(f *units.Faults) {
	if c.Memory == 0 {
		return
	}
	f.Hold(c.Memory >= c.piece(), "memory",
		"%v is not possible; use at least a piece of a chunk, %v, or 0 for no limit", c.Memory, c.piece())
	f.Hold(c.Control.Queued, "memory",
		"a limit needs links that carry one frame at a time; use control.queued: true, or leave it out")
	f.Hold(c.Core == CoreIdeal, "memory", "the ports of a packet network have no such limit; leave it out")
}

// admits reports whether a target can accept a frame, and allocates space for its piece if it is the first one.
func (c *Cluster) admits(node, i int32) bool {
	t := node - int32(len(c.gateways))
	if c.rooms == nil || t < 0 {
		return true
	}
	p := &c.parcels.Items[i]
	m := &p.message
	if !p.data || p.arg&readFrame != 0 || c.tasks.Items[m.Chunk].update || c.bus.Chunks[m.Chunk].ID != m.ID {
		// Data of repairs and parts of pieces stream to the disk; stale data is dropped.
		return true
	}
	return c.rooms[t].takes(m.ID, m.Chunk, c.pieceAt(m.Chunk), c.cfg.Memory,
		func(chunk int32, id uint64) bool { return c.bus.Chunks[chunk].ID == id })
}

// fills records that a piece has arrived in full, and returns its ID.
func (c *Cluster) fills(target, chunk int32) uint64 {
	if c.rooms == nil {
		return 0
	}
	id := c.bus.Chunks[chunk].ID
	c.rooms[target].complete(id)
	return id
}

// leavesMemory frees the space of a piece that is written.
func (c *Cluster) leavesMemory(target int32, id uint64) {
	if c.rooms == nil {
		return
	}
	c.rooms[target].leaves(id)
	c.hasRoom(target)
}

// hasRoom re-examines the frames waiting at a target's port after space may have become free.
func (c *Cluster) hasRoom(target int32) {
	node := c.nodeOfTarget(target)
	if in := &c.in[node]; !in.busy && !in.data.Empty() {
		c.receive(node)
		c.looks(node)
	}
}

// emptied frees all memory of a failed target.
func (c *Cluster) emptied(target int32) {
	if c.rooms != nil {
		c.rooms[target].clear()
		c.hasRoom(target)
	}
}

// nextData removes the first frame at a port that can be admitted; -1 if there is none.
func (c *Cluster) nextData(node int32) int32 {
	q := &c.in[node].data
	if c.rooms == nil {
		return q.Pop()
	}
	for k, i := range q.All() {
		if c.admits(node, i) {
			q.Remove(k)
			return i
		}
	}
	return -1
}

// looksAgain schedules hasRoom at the targets of an abandoned attempt, whose space is now reclaimable, a trip later.
func (c *Cluster) looksAgain(i int32) {
	if c.rooms == nil {
		return
	}
	x := &c.bus.Chunks[i]
	for _, t := range x.Targets[:x.N] {
		c.eng.Schedule(c.self, c.here, c.eng.Now()+c.cfg.Link.Trip, evRoom, uint32(t))
	}
}
