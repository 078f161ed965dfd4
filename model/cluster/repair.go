package cluster

import (
	"slices"

	"farflash/model/cluster/internal/learn"
	"farflash/model/cluster/internal/queue"
	"farflash/model/cluster/internal/slab"
	"farflash/model/cluster/put"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// Pieces that a failure has cost are made again: a target that takes the place of the one that is gone reads what it
// takes from those that are left, as a gateway would, and writes the piece. Every lost piece is made again, is none
// any more because its chunk was replaced, is lost for good with its chunk, or is counted as missing; Check holds
// that to the piece.
//
// So that none is forgotten, each repair under way has one end: it is written, its reads have failed too often, its
// target's failure has become known (which puts the piece back into the queue), or its chunk is another one
// meanwhile. Reads are watched over as those of gateways are (retry.go), by how long repairs have taken.

// Repair is what happens after a failure.
type Repair struct {
	// Detect is how long it takes until gateways and targets know.
	Detect units.Duration
	// Streams is how many chunks are made again at a time for each target that is left; 0 makes none again.
	Streams units.Fraction
	// Disk is the share of each disk's time that may go to making pieces again.
	Disk units.Fraction
	// Link is the share of each target's link, in each direction, that the data of making pieces again may take.
	Link units.Fraction
}

// Where a piece is that is with no target.
const (
	pieceMissing int32 = -1 // it is to be made again, or nobody can
	pieceGone    int32 = -2 // too few of its chunk are left
	pieceMade    int32 = -3 // less the number of the target that is making it again
)

// lost is a piece of a chunk that is to be made again.
type lost struct {
	object int32
	piece  int8
}

// mending is a repair under way.
type mending struct {
	lost
	version uint32 // of the chunk
	target  int32  // that makes it
	chunk   int32  // by which it reads, -1 when it does not
	fell    int32  // how often the target had failed
	live    bool
	writes  bool
	from    sim.Time // when its link has room for what it reads
}

// repairer makes pieces again.
type repairer struct {
	c      *Cluster
	queue  queue.Queue[lost]
	aside  []lost // that no target may take as things are
	active slab.Slab[mending]
	under  int
	rand   rng.Stream
	places []int32
	clock  learn.Clock // how long reads take
	links  []sim.Time  // of targets: from when the link may take data of the next repair
	paces  []sim.Time  // of targets: from when it may send more of it
}

func newRepairer(c *Cluster) repairer {
	r := repairer{c: c, rand: rng.NewStream(c.seed, "cluster/rebuild"),
		clock: learn.Clock{Mean: 4 * c.Floor(), Spread: 2 * c.Floor()}}
	r.links, r.paces = make([]sim.Time, len(c.targets)), make([]sim.Time, len(c.targets))
	return r
}

// gone: it is known that a target has failed. What it kept, and what it was making, is to be made again.
func (r *repairer) gone(target int32) {
	p := &r.c.kept
	for i, t := range p.targets {
		if t == target {
			r.loses(i)
		}
	}
	for i := range r.active.Items {
		if m := &r.active.Items[i]; m.live && m.target == target {
			r.end(int32(i), false)
		}
	}
	r.pump()
}

// loses notes that a piece is lost.
func (r *repairer) loses(at int) {
	c, p := r.c, &r.c.kept
	x := lost{int32(at / p.copies), int8(at % p.copies)}
	p.targets[at] = pieceMissing
	c.Counters.PiecesLost++
	switch left, made := p.left(c, x.object); {
	case left < c.cfg.pieces() && !made:
		r.lose(x.object)
	case c.cfg.Repair.Streams > 0:
		r.queue.Push(x)
	}
}

// joined: a target is back, and may take what nobody could.
func (r *repairer) joined() {
	for _, x := range r.aside {
		r.queue.Push(x)
	}
	r.aside = r.aside[:0]
	r.pump()
}

// crashed: a target has failed, which only itself would know: what it was making stands still.
func (r *repairer) crashed(target int32) {
	for i := range r.active.Items {
		if m := &r.active.Items[i]; m.live && m.target == target {
			r.stop(m)
			m.writes = false
		}
	}
}

// stop has a repair read no more.
func (r *repairer) stop(m *mending) {
	if m.chunk >= 0 {
		r.c.release(m.chunk)
		m.chunk = -1
	}
}

// pump begins repairs while there are streams for them.
func (r *repairer) pump() {
	c := r.c
	live := 0
	for _, away := range c.bus.Away {
		if !away {
			live++
		}
	}
	for most := max(int(float64(c.cfg.Repair.Streams)*float64(live)), 1); r.under < most && !r.queue.Empty(); {
		r.begin(r.queue.Pop())
	}
}

// begin begins to make a piece again, if that can be.
func (r *repairer) begin(x lost) {
	c, p := r.c, &r.c.kept
	at := p.at(x)
	if p.targets[at] != pieceMissing {
		return // put again meanwhile, or gone
	}
	if left, made := p.left(c, x.object); left < c.cfg.pieces() {
		if made {
			r.aside = append(r.aside, x) // until it is known what becomes of the others
			return
		}
		r.lose(x.object)
		return
	}
	t := r.substitute(x.object)
	if t < 0 {
		r.aside = append(r.aside, x)
		return
	}
	i := r.active.Take()
	p.targets[at] = pieceMade - t
	r.active.Items[i] = mending{lost: x, version: p.version[x.object], target: t, chunk: -1, fell: c.targets[t].fell,
		live: true}
	r.under++
	if c.targets[t].down {
		return // nobody knows yet, and it answers nobody
	}
	from := r.admit(t, x.object)
	if r.active.Items[i].from = from; from > c.eng.Now() {
		c.eng.Schedule(c.self, c.here, from, evRepair, uint32(i))
		return
	}
	r.read(i)
}

// admit says from when a target's link may take what a repair reads.
func (r *repairer) admit(t, object int32) sim.Time {
	c := r.c
	if c.cfg.Repair.Link >= 1 {
		return c.eng.Now()
	}
	from := max(r.links[t], c.eng.Now())
	r.links[t] = from + share(sim.Time(c.cfg.pieces())*
		c.d.Send(c.cfg.pieceOf(c.kept.sizeOf(object, c.cfg.Chunk)), c.d.Effective), c.cfg.Repair.Link)
	return from
}

// share is a time over a share.
func share(t sim.Time, of units.Fraction) sim.Time { return sim.Time(float64(t) / float64(of)) }

// read has a repair's target read the chunk. A time may have gone by since it was chosen.
func (r *repairer) read(i int32) {
	c, m := r.c, &r.active.Items[i]
	if !m.live || m.chunk >= 0 || m.writes || m.fell != c.targets[m.target].fell || m.from != c.eng.Now() {
		return
	}
	k := c.slot()
	c.attempts++
	m.chunk = k
	c.bus.Chunks[k] = put.Chunk{ID: c.attempts, Gateway: c.nodeOfTarget(m.target), Begun: c.eng.Now(), Piece: c.piece}
	c.tasks.Items[k] = task{live: true, read: true, mends: i + 1, object: m.object, started: c.eng.Now(),
		size: c.cfg.Chunk}
	c.sized(k, c.kept.sizeOf(m.object, c.cfg.Chunk))
	c.watch(k)
	c.get.begin(k)
}

// paced has a target send a frame to one that makes a piece again, when its link's share for that allows it.
func (r *repairer) paced(target int32, m *put.Message, size units.Bytes) {
	c := r.c
	takes := c.bus.FrameTime(size)
	at := max(r.paces[target], c.eng.Now())
	r.paces[target] = at + share(takes, c.cfg.Repair.Link)
	i := c.parcels.Take()
	p := &c.parcels.Items[i]
	*p = parcel{takes: takes, data: true, arg: readFrame | uint32(m.N), size: size,
		message: put.Message{Chunk: m.Chunk, ID: m.ID, From: target}, n: 1, cast: -1, fell: c.targets[target].fell}
	p.one[0] = m.From
	c.eng.Schedule(c.self, c.here, at, evHeld, uint32(i))
}

// fetched: a target has read what it needs to make a piece again. It writes it.
func (r *repairer) fetched(k int32) {
	c := r.c
	t := c.tasks.Items[k]
	i := t.mends - 1
	m := &r.active.Items[i]
	r.clock.Learn(c.eng.Now() - t.started)
	m.chunk, m.writes = -1, true
	piece := c.pieceAt(k)
	c.release(k)
	c.work(job{disk: c.idlest(m.target), size: piece, repairs: true, message: put.Message{Chunk: i, N: m.fell}})
}

// written: a target has made a piece again.
func (r *repairer) written(i int32) {
	r.end(i, true)
	r.pump()
}

// failed: a repair could not read what it needs, too often or because too little is left.
func (r *repairer) failed(k int32) {
	c := r.c
	i := c.tasks.Items[k].mends - 1
	m := &r.active.Items[i]
	r.stop(m)
	if left, _ := c.kept.left(c, m.object); left >= c.cfg.pieces() {
		c.Counters.Unrepaired++
		r.finish(i, pieceMissing)
	} else {
		r.end(i, false)
	}
	c.eng.Schedule(c.self, c.here, c.eng.Now(), evPump, 0) // not within what has failed
}

// end ends a repair that is written, or that another one has to do.
func (r *repairer) end(i int32, done bool) {
	c, p, m := r.c, &r.c.kept, &r.active.Items[i]
	r.stop(m)
	x, same := m.lost, p.version[m.object] == m.version
	if !done {
		r.finish(i, pieceMissing)
		if same {
			r.queue.Push(x)
		}
		return
	}
	if same {
		p.fell[p.at(x)] = m.fell
		c.Counters.Repaired++
		c.RepairedAt = c.eng.Now()
	}
	r.finish(i, m.target)
}

// finish gives a repair's stream back and says where its piece is, unless the chunk is another one meanwhile.
func (r *repairer) finish(i, where int32) {
	p, m := &r.c.kept, &r.active.Items[i]
	if p.version[m.object] == m.version {
		p.targets[p.at(m.lost)] = where
	}
	m.live = false
	r.active.Give(i)
	r.under--
	// Whoever waits for what becomes of this one looks again.
	n := 0
	for _, x := range r.aside {
		if x.object == m.object {
			r.queue.Push(x)
			continue
		}
		r.aside[n] = x
		n++
	}
	r.aside = r.aside[:n]
}

// lose notes that too little is left of a chunk.
func (r *repairer) lose(object int32) {
	c := r.c
	list := c.kept.find(object)
	if !slices.Contains(list, pieceGone) {
		c.Counters.LostChunks++
	}
	for k, t := range list {
		if t == pieceMissing {
			list[k] = pieceGone
			c.Counters.PiecesGone++
		}
	}
}

// substitute chooses who takes the place of a target that is gone: one that may keep the chunk and does not, in a
// rack where no other piece is.
func (r *repairer) substitute(object int32) int32 {
	c, p := r.c, &r.c.kept
	r.places = r.places[:0]
	if p.each > 0 {
		for _, g := range p.groupsOf(object) {
			r.places = c.bus.GroupOf(g, r.places)
		}
	} else {
		for t := range c.targets {
			if !c.bus.Away[t] {
				r.places = append(r.places, int32(t))
			}
		}
	}
	n := 0
	for _, t := range r.places {
		has := false
		for _, k := range p.find(object) {
			if k <= pieceMade {
				k = pieceMade - k
			}
			has = has || k >= 0 && (k == t || c.bus.SameRack(k, t))
		}
		if !has {
			r.places[n] = t
			n++
		}
	}
	if n == 0 {
		return -1
	}
	return r.places[r.rand.IntN(int64(n))]
}

// Rebuilding reports whether pieces are being made again.
func (c *Cluster) Rebuilding() bool { return c.fix.under > 0 }

// Missing is how many pieces of chunks that are kept are with no target that is known to be there, beside those of
// chunks of which too little is left.
func (c *Cluster) Missing() int {
	n := 0
	for _, t := range c.kept.targets {
		if t == pieceMissing || t <= pieceMade {
			n++
		}
	}
	return n
}
