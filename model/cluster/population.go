package cluster

import (
	"farflash/model/cluster/put"
	"farflash/numeric/rng"
	"farflash/numeric/units"
)

// population is the chunks that are kept and can be read: as many as the configuration says. A chunk that is put
// takes the place of one of them, drawn at random, as if that had been deleted.
type population struct {
	copies  int
	targets []int32 // of all chunks, so many each; below 0 with whom it is not (repair.go)
	fell    []int32 // where targets fail: how often each of these had failed when it got its piece
	version []uint32
	groups  []int32 // the candidate groups of each, where the protocol has any
	each    int     // groups of a chunk
	rand    rng.Stream
	sizes   []units.Bytes // of each, if they are not all the same
}

// fill makes a population, each chunk where the protocol would have put it on an idle cluster.
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

// store remembers where a chunk is that has been put. A target that has failed since it got its piece has it no more.
func (c *Cluster) store(i int32) {
	p, x := &c.kept, &c.bus.Chunks[i]
	if p.targets == nil {
		return
	}
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

// at is the number of a piece.
func (p *population) at(x lost) int { return int(x.object)*p.copies + int(x.piece) }

// left is how many pieces of a chunk are with targets that are not known to have failed, and whether others are being
// written.
func (p *population) left(c *Cluster, object int32) (n int, made bool) {
	for _, t := range p.find(object) {
		if t >= 0 && !c.bus.Away[t] {
			n++
		}
		made = made || t <= pieceMade
	}
	return n, made
}

// find says where a chunk is.
func (p *population) find(object int32) []int32 {
	return p.targets[int(object)*p.copies : (int(object)+1)*p.copies]
}

// groupsOf are the candidate groups of a chunk.
func (p *population) groupsOf(object int32) []int32 {
	return p.groups[int(object)*p.each : (int(object)+1)*p.each]
}
