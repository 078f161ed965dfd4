package cluster

import (
	"farflash/cluster/reserve"
	"farflash/sim"
	"farflash/units"
)

// proxied is Replicast with a proxy for each group (SURGE's model a): a gateway asks the group's first target, which knows what all
// members have promised, takes those whose disks can begin to write first, tells them, and answers with one window for all. The gateway multicasts
// the data in it. A member tells the proxy when it has the chunk and when its disk will have written all that it has.
type proxied struct {
	c       *Cluster
	d       *reserve.Durations
	proxies []*reserve.Proxy  // of groups
	pacer   []reserve.Pacer   // of groups: what a proxy may send, where messages do not take turns on the link
	waiting []requests        // of groups: for their pacer
	wake    []sim.Timer       // of groups
	bids    []*reserve.Sparse // of targets
	puts    []promised        // by chunk
	picks   []reserve.Pick
	node    [1]int32
}

// promised is what a gateway knows of a chunk that it puts.
type promised struct {
	group int32
	sent  units.Bytes
	got   [maxReplicas]units.Bytes // at each target
}

// requests are those that wait for a proxy, in the order they came.
type requests struct {
	list []message
	head int
}

// pop takes the first request out. The list is moved down when half of it has been answered, so it does not grow while requests wait.
func (w *requests) pop() message {
	m := w.list[w.head]
	if w.head++; 2*w.head >= len(w.list) {
		w.list, w.head = w.list[:copy(w.list, w.list[w.head:])], 0
	}
	return m
}

// Kinds of control messages.
const (
	askProxy uint8 = iota
	proxyAnswer
	proxyTakes // for a member: a window has been promised for it
	proxyKept
	memberDone // for the proxy
)

func newProxied(c *Cluster, d *reserve.Durations) *proxied {
	p := &proxied{c: c, d: d}
	groups := c.cfg.Targets / c.cfg.Group
	p.waiting = make([]requests, groups)
	for g := range groups {
		p.proxies = append(p.proxies, reserve.NewProxy(d))
		p.pacer = append(p.pacer, reserve.NewPacer(d, d.ControlRate))
		p.wake = append(p.wake, c.eng.NewTimer(c.self, c.here, evTimer, wakeKind|uint32(g)))
	}
	for range c.targets {
		p.bids = append(p.bids, reserve.NewSparse(d))
	}
	return p
}

// wakeKind is the flag of a timer's argument that is a proxy's.
const wakeKind = 1 << 31

// leader is the proxy of a group.
func (p *proxied) leader(group int32) int32 { return group * int32(p.c.cfg.Group) }

// begin implements protocol.
func (p *proxied) begin(i int32) {
	c := p.c
	for int(i) >= len(p.puts) {
		p.puts = append(p.puts, promised{})
	}
	x := &c.chunks[i]
	p.puts[i] = promised{group: c.chooseGroup(x)}
	x.groups[0] = p.puts[i].group
	c.toTarget(message{kind: askProxy, from: x.gateway, to: p.leader(p.puts[i].group), chunk: i, id: x.id}, c.onLink(p.d))
}

// message implements protocol.
func (p *proxied) message(m *message) {
	c := p.c
	switch m.kind {
	case askProxy:
		group := m.to / int32(c.cfg.Group)
		w := &p.waiting[group]
		if w.head == len(w.list) && p.mayAnswer(group) {
			p.answer(m)
			return
		}
		w.list = append(w.list, *m)
		c.eng.Arm(p.wake[group], max(p.pacer[group].Next(), c.eng.Now()))
	case proxyAnswer:
		c.after(m.a, uint32(m.chunk))
	case proxyTakes:
		p.bids[m.to].Reserve(c.eng.Now(), m.id, m.n, reserve.Window{Left: m.a, Right: m.b})
	case proxyKept:
		c.acknowledged(m.chunk)
	case memberDone:
		p.proxies[m.to/int32(c.cfg.Group)].Done(m.n, m.id, m.a)
	}
}

// mayAnswer reports whether a proxy's share of the link for control messages is free for an answer, and takes it.
func (p *proxied) mayAnswer(group int32) bool {
	c := p.c
	if c.cfg.Control.Queued {
		return true // they take turns on its link
	}
	size := units.Bytes(c.copies+1) * c.cfg.Control.Replicast
	if c.cfg.Compat != CompatNone {
		size /= 8 // SURGE takes its bytes for bits
	}
	return p.pacer[group].Use(c.eng.Now(), size)
}

// answer has a proxy choose for a gateway and tell all whom it concerns.
func (p *proxied) answer(m *message) {
	c := p.c
	now, group := c.eng.Now(), m.to/int32(c.cfg.Group)
	p.picks = p.proxies[group].Assign(now, m.id, &c.rand, p.picks[:0])
	x := &c.chunks[m.chunk]
	x.n = int8(len(p.picks))
	w := p.picks[0].Window
	// The gateway looks at its targets when the answer comes; the answer goes first, because it has the longer way to go.
	c.toGateway(message{kind: proxyAnswer, from: m.to, to: m.from, chunk: m.chunk, id: m.id, a: w.Left, b: w.Right}, c.onLink(p.d), 0)
	for k, pick := range p.picks {
		t := p.leader(group) + pick.Server
		x.targets[k] = t
		p.between(message{kind: proxyTakes, from: m.to, to: t, chunk: m.chunk, id: m.id, n: m.from, a: w.Left, b: w.Right})
	}
}

// between sends a control message from a target to another, or to itself, which takes no time.
func (p *proxied) between(m message) {
	if m.from == m.to {
		p.message(&m)
		return
	}
	p.node[0] = p.c.nodeOfTarget(m.to)
	p.c.tell(p.c.nodeOfTarget(m.from), m, p.node[:])
}

// timer implements protocol: the next frame of a chunk may be sent, or a proxy may answer the next request.
func (p *proxied) timer(arg uint32) {
	c := p.c
	if arg&wakeKind != 0 {
		p.next(int32(arg &^ wakeKind))
		return
	}
	x, f := &c.chunks[arg], &p.puts[arg]
	size := min(c.cfg.Link.Frame, c.piece-f.sent)
	takes := p.d.Send(size, p.d.DataRate)
	c.sendFrame(x.gateway, int32(arg), arg, size, takes, x.targets[:x.n])
	if f.sent += size; f.sent < c.piece {
		c.after(c.eng.Now()+takes, arg)
	}
}

// next has a proxy answer the request that has waited longest.
func (p *proxied) next(group int32) {
	w := &p.waiting[group]
	for w.head < len(w.list) && p.mayAnswer(group) {
		m := w.pop()
		p.answer(&m)
	}
	if w.head < len(w.list) {
		p.c.eng.Arm(p.wake[group], p.pacer[group].Next())
	}
}

// frame implements protocol.
func (p *proxied) frame(arg uint32, target int32, size units.Bytes) {
	c := p.c
	x, f := &c.chunks[arg], &p.puts[arg]
	k := x.place(target)
	if f.got[k] += size; f.got[k] < c.piece {
		return
	}
	p.bids[target].Done(x.id)
	leader := p.leader(f.group)
	c.keep(target, message{kind: proxyKept, from: target, to: x.gateway, chunk: int32(arg)})
	now := c.eng.Now()
	p.between(message{kind: memberDone, from: target, to: leader, chunk: int32(arg), id: x.id, n: target - leader, a: now + c.targets[target].disk.backlog(now)})
}

// floor implements protocol: request and answer, the window, which begins when the members can know of it, the data, the disk and the
// acknowledgement.
func (p *proxied) floor() sim.Time {
	c, d := p.c, p.d
	ctl := c.onLink(d)
	return ctl + d.Trip + max(ctl, d.Control) + d.Trip + d.Lead + c.dataTime(d) + d.Trip + c.keepTime(d.DiskChunk) + ctl + d.Trip
}
