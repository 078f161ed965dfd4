package cluster

import (
	"farflash/model/cluster/put"
	"farflash/numeric/rng"
	"farflash/numeric/units"
)

// population is the set of stored chunks, Config.Objects of them. A chunk that is put replaces one of them, drawn at
// random, as if that one had been deleted.
type population struct {
	copies  int
	targets []int32 // of all chunks, copies each; a negative value: the piece is at no target (repair.go)
	fell    []int32 // number of failures of each of these targets when it received the piece; only where targets fail
	version []uint32
	groups  []int32 // candidate groups of each chunk, if the protocol has any
	each    int     // number of groups per chunk
	rand    rng.Stream
	sizes   []units.Bytes // of each chunk, if they differ
}

// fill creates the population, each chunk where the protocol would have put it on an idle cluster.
func (c *Cluster) fill() {
	p := &c.kept
	*p = population{copies: c.copies, rand: rng.NewStream(c.seed, "cluster/population")}
	if c.cfg.Reads == 0 && len(c.cfg.Failures) == 0 && c.cfg.Update.Share == 0 {
		return
	}
	p.each = c.cfg.candidates()
	p.targets = make([]int32, 0, c.cfg.Objects*c.copies)
	var among []int32
	for n := range c.cfg.Objects {
		among = among[:0]
		if p.each == 0 {
			p.targets = c.bus.Places.Place(uint64(n), c.copies, p.targets)
			continue
		}
		from := len(p.groups)
		for range p.each {
			p.groups = append(p.groups, 0)
		}
		put.DrawGroups(&p.rand, c.bus.GroupCount(), p.groups[from:])
		for _, g := range p.groups[from:] {
			among = c.bus.GroupOf(g, among)
		}
		c.bus.Pick(&p.rand, c.copies, among)
		p.targets = append(p.targets, among[:c.copies]...)
	}
	if len(c.cfg.Sizes) > 0 {
		p.sizes = make([]units.Bytes, c.cfg.Objects)
		for n := range p.sizes {
			p.sizes[n] = c.drawn()
		}
	}
	if len(c.cfg.Failures) > 0 {
		p.fell, p.version = make([]int32, len(p.targets)), make([]uint32, c.cfg.Objects)
	}
}

// store records the location of a chunk that has been put. Pieces at targets that have failed since are lost already.
func (c *Cluster) store(i int32) {
	p, x := &c.kept, &c.bus.Chunks[i]
	if p.targets == nil {
		return
	}
	// The object that this chunk replaces.
	n := int(p.rand.IntN(int64(c.cfg.Objects)))
	at := n * p.copies
	if p.version != nil {
		p.version[n]++
		for _, t := range p.find(int32(n)) {
			if t == pieceMissing || t <= pieceMade {
				c.Counters.Replaced++
			}
		}
	}
	copy(p.targets[at:at+p.copies], x.Targets[:x.N])
	if p.sizes != nil {
		p.sizes[n] = c.tasks.Items[i].size
	}
	if p.each > 0 {
		copy(p.groups[n*p.each:(n+1)*p.each], x.Groups[:p.each])
	}
	if p.version == nil {
		return
	}
	for k, t := range x.Targets[:x.N] {
		p.fell[at+k] = c.stamped(i, t)
		if p.fell[at+k] < c.targets[t].known {
			c.fix.loses(at + k)
		}
	}
	c.fix.pump()
}

// at returns the index of a piece in targets.
func (p *population) at(x lost) int { return int(x.object)*p.copies + int(x.piece) }

// left returns the number of an object's pieces at targets that are not known to have failed, and whether any other
// piece is being rebuilt.
func (p *population) left(c *Cluster, object int32) (n int, made bool) {
	for _, t := range p.find(object) {
		if t >= 0 && !c.bus.Away[t] {
			n++
		}
		made = made || t <= pieceMade
	}
	return n, made
}

// find returns the locations of an object's pieces.
func (p *population) find(object int32) []int32 {
	return p.targets[int(object)*p.copies : (int(object)+1)*p.copies]
}

// groupsOf returns the candidate groups of an object.
func (p *population) groupsOf(object int32) []int32 {
	return p.groups[int(object)*p.each : (int(object)+1)*p.each]
}
