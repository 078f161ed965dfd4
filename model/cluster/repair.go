package cluster

import (
	"slices"

	"farflash/model/cluster/internal/queue"
	"farflash/model/cluster/internal/slab"
	"farflash/model/cluster/put"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// Pieces lost to a failure are rebuilt. A substitute target reads the chunk from the surviving targets, as a gateway
// would, and writes the piece. Every lost piece ends in one of four states: rebuilt, obsolete because its chunk was
// replaced, gone because too little of its chunk survives, or missing. Check verifies the balance to the piece.
//
// To keep that balance, each repair in flight has exactly one end: its piece is written, its reads have failed too
// often, the failure of its target becomes known (the piece goes back to the queue), or its chunk has been replaced.
// Reads time out as gateways' do (retry.go), based on how long earlier repairs took.

// Repair is how the cluster reacts to failures.
type Repair struct {
	// Detect is the time until gateways and targets learn of a failure.
	Detect units.Duration
	// Streams is the number of chunks rebuilt concurrently for each remaining target; 0 rebuilds none.
	Streams units.Fraction
	// Disk is the share of each disk's time that rebuilding may use.
	Disk units.Fraction
	// Link is the share of each target's link, in each direction, that rebuilding may use.
	Link units.Fraction
}

// Locations of pieces that are at no target.
const (
	pieceMissing int32 = -1 // to be rebuilt, or cannot be
	pieceGone    int32 = -2 // too few pieces of the chunk are left
	pieceMade    int32 = -3 // minus the number of the target that is rebuilding it
)

// lost is a piece to be rebuilt.
type lost struct {
	object int32
	piece  int8
}

// mending is a repair in flight.
type mending struct {
	lost
	version uint32 // of the chunk, to detect that it was replaced
	target  int32  // the substitute that rebuilds it
	chunk   int32  // chunk slot of its read, -1 if it is not reading
	fell    int32  // the substitute's number of failures at the start
	live    bool
	writes  bool
	from    sim.Time // when the substitute's link has capacity for the read
}

// repairer rebuilds pieces.
type repairer struct {
	c      *Cluster
	queue  queue.Queue[lost]
	aside  []lost // pieces that no target can take at present
	active slab.Slab[mending]
	under  int
	rand   rng.Stream
	places []int32
	clock  clock      // read times of repairs
	links  []sim.Time // by target: when its link may receive data of the next repair
	paces  []sim.Time // by target: when its link may send the next frame for repairs
}

func newRepairer(c *Cluster) repairer {
	r := repairer{c: c, rand: rng.NewStream(c.seed, "cluster/rebuild"),
		clock: clock{mean: 4 * c.Floor(), spread: 2 * c.Floor()}}
	r.links, r.paces = make([]sim.Time, len(c.targets)), make([]sim.Time, len(c.targets))
	return r
}

// gone handles a target's failure becoming known: the pieces that it stored or was rebuilding must be rebuilt.
func (r *repairer) gone(target int32) {
	p := &r.c.kept
	for i, t := range p.targets {
		if t == target {
			r.loses(i)
		}
	}
	for i := range r.active.Items {
		// The piece goes back to the queue, for another substitute.
		if m := &r.active.Items[i]; m.live && m.target == target {
			r.end(int32(i), false)
		}
	}
	r.pump()
}

// loses records the loss of a piece and queues its repair.
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

// joined handles a target's return: it may take pieces that no other target could.
func (r *repairer) joined() {
	for _, x := range r.aside {
		r.queue.Push(x)
	}
	r.aside = r.aside[:0]
	r.pump()
}

// crashed handles a target's failure before others know of it: the repairs at that target stop.
func (r *repairer) crashed(target int32) {
	for i := range r.active.Items {
		if m := &r.active.Items[i]; m.live && m.target == target {
			r.stop(m)
			m.writes = false
		}
	}
}

// stop cancels the read of a repair.
func (r *repairer) stop(m *mending) {
	if m.chunk >= 0 {
		r.c.release(m.chunk)
		m.chunk = -1
	}
}

// pump starts repairs while streams are free.
func (r *repairer) pump() {
	c := r.c
	live := 0
	for _, away := range c.bus.Away {
		if !away {
			live++
		}
	}
	// Streams for each live target, and at least one.
	for most := max(int(float64(c.cfg.Repair.Streams)*float64(live)), 1); r.under < most && !r.queue.Empty(); {
		r.begin(r.queue.Pop())
	}
}

// begin starts the repair of a piece, if one is possible.
func (r *repairer) begin(x lost) {
	c, p := r.c, &r.c.kept
	at := p.at(x)
	if p.targets[at] != pieceMissing {
		return // replaced in between, or gone
	}
	if left, made := p.left(c, x.object); left < c.cfg.pieces() {
		if made {
			r.aside = append(r.aside, x) // until the outcome of the other repairs is known
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
		return // not known yet; the target does not answer
	}
	from := r.admit(t, x.object)
	if r.active.Items[i].from = from; from > c.eng.Now() {
		c.eng.Schedule(c.self, c.here, from, evRepair, uint32(i))
		return
	}
	r.read(i)
}

// admit returns when the target's link may receive the data of a repair, and reserves that capacity.
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

// share returns t scaled up so that it makes up the given share of the time.
func share(t sim.Time, of units.Fraction) sim.Time { return sim.Time(float64(t) / float64(of)) }

// read starts the read of a repair. The target or the repair may have failed since it was scheduled.
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

// paced sends a frame of a repair when the share of the sender's link for repairs allows it.
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

// fetched handles the completion of a repair's read: the target writes the piece.
func (r *repairer) fetched(k int32) {
	c := r.c
	t := c.tasks.Items[k]
	i := t.mends - 1
	m := &r.active.Items[i]
	r.clock.learn(c.eng.Now() - t.started)
	m.chunk, m.writes = -1, true
	piece := c.pieceAt(k)
	c.release(k)
	// The job names its repair, because the chunk slot of the read is free already.
	c.work(job{disk: c.idlest(m.target), size: piece, repairs: true, message: put.Message{Chunk: i, N: m.fell}})
}

// written completes a repair.
func (r *repairer) written(i int32) {
	r.end(i, true)
	r.pump()
}

// failed handles a read that failed: it timed out too often, or too few pieces are left.
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
	// Deferred to an event, because a read that fails inside begin calls failed.
	c.eng.Schedule(c.self, c.here, c.eng.Now(), evPump, 0)
}

// end ends a repair that is complete, or whose piece another repair must rebuild.
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

// finish frees a repair's stream and records where its piece is, unless the chunk has been replaced.
func (r *repairer) finish(i, where int32) {
	p, m := &r.c.kept, &r.active.Items[i]
	if p.version[m.object] == m.version {
		p.targets[p.at(m.lost)] = where
	}
	m.live = false
	r.active.Give(i)
	r.under--
	// Pieces set aside for the outcome of this repair are queued again.
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

// lose records that too few pieces of a chunk are left.
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

// substitute chooses the target that replaces a failed one: it may store the chunk, has no piece of it, and shares no
// rack with another piece. It returns -1 if there is none.
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

// Rebuilding reports whether any piece is being rebuilt.
func (c *Cluster) Rebuilding() bool { return c.fix.under > 0 }

// Missing returns the number of stored chunks' pieces that are at no target known to be present, excluding those of
// lost chunks.
func (c *Cluster) Missing() int {
	n := 0
	for _, t := range c.kept.targets {
		if t == pieceMissing || t <= pieceMade {
			n++
		}
	}
	return n
}
