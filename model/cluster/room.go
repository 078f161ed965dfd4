package cluster

import (
	"farflash/numeric/units"
)

// Memory of targets. A piece that comes in is kept in its target's memory until it is on the disk. Room for all of it
// is taken with its first frame; a frame of a piece for which there is none waits in the network, where what has room
// passes it, so that every piece that has begun to come comes as a whole and no two wait for each other. Pieces of
// attempts that are given up give their room back when it is wanted. Without a limit nothing of this is done.

func (c *Config) checkMemory(f *units.Faults) {
	if c.Memory == 0 {
		return
	}
	f.Hold(c.Memory >= c.piece(), "memory",
		"%v is not possible; use at least a piece of a chunk, %v, or 0 for no limit", c.Memory, c.piece())
	f.Hold(c.Control.Queued, "memory",
		"what waits for room waits on links that carry one frame at a time; use control.queued: true, or leave it out")
	f.Hold(c.Core == CoreIdeal, "memory", "a packet network has its own ports, in which nothing passes; leave it out")
}

// admits reports whether a target may take a frame in, and takes room for its piece if it is the first.
func (c *Cluster) admits(node, i int32) bool {
	t := node - int32(len(c.gateways))
	if c.rooms == nil || t < 0 {
		return true
	}
	p := &c.parcels.Items[i]
	m := &p.message
	if !p.data || p.arg&readFrame != 0 || c.tasks.Items[m.Chunk].update || c.bus.Chunks[m.Chunk].ID != m.ID {
		// what makes a piece again and parts of pieces go on to the disk as they come, and what nobody waits for goes
		return true
	}
	return c.rooms[t].Takes(m.ID, m.Chunk, c.pieceAt(m.Chunk), c.cfg.Memory,
		func(chunk int32, id uint64) bool { return c.bus.Chunks[chunk].ID == id })
}

// fills notes that a piece has come as a whole, and returns what it is known by.
func (c *Cluster) fills(target, chunk int32) uint64 {
	if c.rooms == nil {
		return 0
	}
	id := c.bus.Chunks[chunk].ID
	c.rooms[target].Whole(id)
	return id
}

// leavesMemory gives back the room of a piece that is written.
func (c *Cluster) leavesMemory(target int32, id uint64) {
	if c.rooms == nil {
		return
	}
	c.rooms[target].Leaves(id)
	c.hasRoom(target)
}

// hasRoom has a target's port look again at what waits, for there may be room.
func (c *Cluster) hasRoom(target int32) {
	node := c.nodeOfTarget(target)
	if in := &c.in[node]; !in.busy && !in.data.Empty() {
		c.receive(node)
		c.looks(node)
	}
}

// emptied: a target has failed, and its memory with it.
func (c *Cluster) emptied(target int32) {
	if c.rooms != nil {
		c.rooms[target].Clear()
		c.hasRoom(target)
	}
}

// nextData takes the first frame at a port for which there is room; -1 if there is none.
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

// looksAgain has targets look at what waits for room of an attempt at a chunk that is given up, a moment later.
func (c *Cluster) looksAgain(i int32) {
	if c.rooms == nil {
		return
	}
	x := &c.bus.Chunks[i]
	for _, t := range x.Targets[:x.N] {
		c.eng.Schedule(c.self, c.here, c.eng.Now()+c.cfg.Link.Trip, evRoom, uint32(t))
	}
}
