package cluster

import (
	"farflash/model/cluster/put"
	"farflash/numeric/units"
	"farflash/sim"
)

// getter implements reads, which are the same for every put protocol. A chunk under an erasure code is read from as
// many of its targets as it has pieces of data.
type getter struct {
	c     *Cluster
	gets  []get // by chunk
	nodes []int32
}

// get is a gateway's state of one read.
type get struct {
	bids    [maxReplicas]sim.Time // bids, ascending: the backlogs that the holders report
	bidders [maxReplicas]int32
	n       int8 // number of bids
	asked   int8 // number of targets asked for the data: the first of the chunk's
	pieces  int8 // pieces received in full
	got     [maxReplicas]units.Bytes
	hedge   sim.Time // when another target is asked; 0: never
}

// Kinds of control messages of reading.
const (
	readAsk   = put.FirstRead + iota // when could you begin? (gateway to holders)
	readBid                          // the backlog, or N = -1 from a target without the chunk
	readNow                          // deliver the piece
	readLeave                        // cancel: the piece is no longer needed
	readBegun                        // another target of a tied read has begun to read
)

// readFrame marks data frames of reads.
const readFrame = put.MaxArg

// begin starts a read at its gateway.
func (g *getter) begin(i int32) {
	c := g.c
	for int(i) >= len(g.gets) {
		g.gets = append(g.gets, get{})
	}
	s := &g.gets[i]
	*s = get{}
	x := &c.bus.Chunks[i]
	for _, t := range c.kept.find(c.tasks.Items[i].object) {
		if t >= 0 && !c.bus.Away[t] {
			x.Targets[x.N] = t
			x.N++
		}
	}
	// Reads by repairs are not counted as degraded or unavailable.
	if int(x.N) < c.copies {
		gateways := c.tasks.Items[i].mends == 0
		if int(x.N) < c.cfg.pieces() {
			if gateways {
				c.Counters.Unavailable++
			}
			c.fail(i)
			return
		}
		if gateways {
			c.Counters.Degraded++
		}
	}
	ask := put.Message{Kind: readAsk, From: x.Gateway, Chunk: i, ID: x.ID}
	switch {
	case c.cfg.Read == ReadBids && c.kept.each > 0:
		for _, group := range c.kept.groupsOf(c.tasks.Items[i].object) { // one multicast per group
			g.nodes = g.nodes[:0]
			for k := range int32(c.cfg.Group) {
				g.nodes = append(g.nodes, c.nodeOfTarget(group*int32(c.cfg.Group)+k))
			}
			c.tell(x.Gateway, ask, g.nodes)
		}
	case c.cfg.Read == ReadBids || c.cfg.Read == ReadLeastLoaded:
		for _, t := range x.Targets[:x.N] {
			c.tell(x.Gateway, ask, g.node(c.nodeOfTarget(t)))
		}
	default:
		// The other policies ask the holders in random order.
		for k := int(x.N) - 1; k > 0; k-- {
			j := int(c.bus.Rand.IntN(int64(k + 1)))
			x.Targets[k], x.Targets[j] = x.Targets[j], x.Targets[k]
		}
		n := c.cfg.pieces()
		if c.cfg.Read == ReadTied {
			n = min(n+1, int(x.N))
		}
		g.request(i, n)
		if c.cfg.Read == ReadHedged && n < int(x.N) {
			s.hedge = c.eng.Now() + sim.Time(c.gateways[min(int(x.Gateway), len(c.gateways)-1)].patience)
			c.eng.Schedule(c.self, c.here, s.hedge, evHedge, uint32(i))
		}
	}
}

func (g *getter) node(n int32) []int32 {
	g.nodes = append(g.nodes[:0], n)
	return g.nodes
}

// request asks the next n of a chunk's targets to deliver.
func (g *getter) request(i int32, n int) {
	c := g.c
	x, s := &c.bus.Chunks[i], &g.gets[i]
	for ; n > 0; n-- {
		t := x.Targets[s.asked]
		s.asked++
		// A is the size of the piece.
		c.tell(x.Gateway, put.Message{Kind: readNow, From: x.Gateway, Chunk: i, ID: x.ID, A: sim.Time(x.Piece)},
			g.node(c.nodeOfTarget(t)))
	}
}

// abandon cancels an attempt at a read.
func (g *getter) abandon(i int32) {
	c := g.c
	x, s := &c.bus.Chunks[i], &g.gets[i]
	for k, t := range x.Targets[:s.asked] {
		if s.got[k] < x.Piece {
			c.tell(x.Gateway, put.Message{Kind: readLeave, From: x.Gateway, Chunk: i, ID: x.ID},
				g.node(c.nodeOfTarget(t)))
		}
	}
}

// message handles the control messages of reads.
func (g *getter) message(m *put.Message) {
	c := g.c
	now := c.eng.Now()
	x := &c.bus.Chunks[m.Chunk]
	switch m.Kind {
	case partWanted, partKept:
		c.renew.message(m)
	case readAsk:
		// A real target knows which chunks it stores; the simulation looks that up in the chunk.
		answer := put.Message{Kind: readBid, From: m.To, Chunk: m.Chunk, ID: m.ID, N: -1}
		if x.ID == m.ID && x.Keeps(m.To) {
			answer.N, answer.A = 1, c.disks[c.lies(c.tasks.Items[m.Chunk].object, m.To)].backlog(now)
		}
		c.tell(c.nodeOfTarget(m.To), answer, g.node(m.From))
	case readBid:
		g.bid(m)
	case readNow:
		if x.ID == m.ID {
			m.N = int32(max(x.Place(m.To), 0)) // its index among the chunk's targets, which the request carries
		}
		at := c.lies(c.tasks.Items[m.Chunk].object, m.To)
		job := c.work(job{disk: at, size: units.Bytes(m.A), read: true, repairs: m.From >= int32(len(c.gateways)),
			message: *m})
		if !c.jobs.Items[job].begun {
			c.targets[m.To].reads = append(c.targets[m.To].reads, pending{id: m.ID, job: job})
		}
	case readBegun, readLeave:
		reads := c.targets[m.To].reads
		for k := range reads {
			if reads[k].id != m.ID {
				continue
			}
			if m.Kind == readBegun {
				if reads[k].begun++; int(reads[k].begun) < c.cfg.pieces() {
					return // too few of the other targets have begun
				}
			}
			c.takeBack(reads[k].job)
			c.targets[m.To].reads = append(reads[:k], reads[k+1:]...)
			return
		}
	}
}

// pending is a read in a target's queue.
type pending struct {
	id    uint64 // of the attempt
	job   int32
	begun int8 // number of other targets that have reported that their disks have begun the read
}

// bid handles a target's bid. When the bids of all holders have arrived, the gateway chooses the earliest.
func (g *getter) bid(m *put.Message) {
	c := g.c
	x, s := &c.bus.Chunks[m.Chunk], &g.gets[m.Chunk]
	if m.N < 0 || x.ID != m.ID || s.asked > 0 {
		return
	}
	k := int(s.n)
	for k > 0 && m.A < s.bids[k-1] {
		s.bids[k], s.bidders[k] = s.bids[k-1], s.bidders[k-1]
		k--
	}
	s.bids[k], s.bidders[k] = m.A, m.From
	if s.n++; s.n < x.N {
		return
	}
	copy(x.Targets[:], s.bidders[:s.n])
	if c.cfg.Read == ReadBids && c.kept.each > 0 {
		// The acceptance is multicast to each group; the targets that it names begin.
		s.asked = int8(c.cfg.pieces())
		for _, group := range c.kept.groupsOf(c.tasks.Items[m.Chunk].object) {
			g.nodes = g.nodes[:0]
			for _, t := range x.Targets[:s.asked] {
				if t/int32(c.cfg.Group) == group {
					g.nodes = append(g.nodes, c.nodeOfTarget(t))
				}
			}
			c.tell(x.Gateway, put.Message{Kind: readNow, From: x.Gateway, Chunk: m.Chunk, ID: x.ID,
				A: sim.Time(x.Piece)}, g.nodes)
		}
		return
	}
	g.request(m.Chunk, c.cfg.pieces())
}

// hedged asks another target when the hedging delay of a read has passed.
func (g *getter) hedged(i int32) {
	s := &g.gets[i]
	if t := &g.c.tasks.Items[i]; t.live && t.read && s.hedge == g.c.eng.Now() {
		s.hedge = 0
		g.request(i, 1)
		g.c.Counters.Hedged++
	}
}

// starts handles the start of a read at a target's disk.
func (g *getter) starts(target, job int32) {
	c := g.c
	m := &c.jobs.Items[job].message
	if c.jobs.Items[job].updates {
		return
	}
	reads := c.targets[target].reads
	for k := range reads {
		if reads[k].id == m.ID {
			c.targets[target].reads = append(reads[:k], reads[k+1:]...)
			break
		}
	}
	x, s := &c.bus.Chunks[m.Chunk], &g.gets[m.Chunk]
	if c.cfg.Read != ReadTied || x.ID != m.ID || int(s.asked) <= c.cfg.pieces() {
		return
	}
	// The request named the other holders, so the notification goes directly from target to target.
	for _, t := range x.Targets[:s.asked] {
		if t != target {
			c.tell(c.nodeOfTarget(target), put.Message{Kind: readBegun, From: target, Chunk: m.Chunk, ID: m.ID},
				g.node(c.nodeOfTarget(t)))
		}
	}
}

// read sends a piece that a target's disk has read to its gateway, in frames.
func (g *getter) read(target int32, m *put.Message) {
	c := g.c
	for piece, sent := units.Bytes(m.A), units.Bytes(0); sent < piece; {
		size := min(c.cfg.Link.Frame, piece-sent)
		sent += size
		if m.From >= int32(len(c.gateways)) && c.cfg.Repair.Link < 1 {
			c.fix.paced(target, m, size)
			continue
		}
		c.send(c.nodeOfTarget(target), m.Chunk, m.ID, readFrame|uint32(m.N), size, c.bus.FrameTime(size),
			g.node(m.From))
	}
}

// frame handles data of a read that has arrived at its gateway.
func (g *getter) frame(i int32, place int32, size units.Bytes) {
	c := g.c
	x, s := &c.bus.Chunks[i], &g.gets[i]
	if s.got[place] += size; s.got[place] < x.Piece {
		return
	}
	if s.pieces++; int(s.pieces) < c.cfg.pieces() {
		return
	}
	if int(x.Gateway) < len(c.gateways) && c.cfg.HedgeAfter == 0 {
		c.gateways[x.Gateway].patience.learn(c.eng.Now() - x.Begun)
	}
	// Cancel the requests that have not delivered anything yet.
	for k, t := range x.Targets[:s.asked] {
		if s.got[k] == 0 {
			c.tell(x.Gateway, put.Message{Kind: readLeave, From: x.Gateway, Chunk: i, ID: x.ID},
				g.node(c.nodeOfTarget(t)))
		}
	}
	c.done(i)
}
