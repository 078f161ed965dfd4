package cluster

import (
	"farflash/cluster/reserve"
	"farflash/sim"
	"farflash/units"
)

// Links. A node sends and receives at its link's rate; the core between never blocks and takes the same time, the trip, for
// everything. With control.queued each end of a link carries one frame at a time, control messages before data, and a frame
// that finds the far end busy waits there, as at a switch's port. What is sent to several targets takes the sender's
// link once. Without control.queued only data takes turns, by its protocol's own rates, and control messages pass at any time, which is
// what SURGE does.

// parcel is something on its way: a control message, or a frame of data.
type parcel struct {
	takes   sim.Time // on a link
	data    bool
	marked  bool // it found a long queue
	sure    bool // it is not lost on its way
	n       int8 // nodes that it goes to
	left    int8
	one     [1]int32 // which, if it is one
	cast    int32    // number of the cast that says it otherwise, or -1
	fell    int32    // how often the target had failed that holds it back
	sender  int32    // for who watches
	sent    sim.Time // likewise
	arg     uint32   // of a frame, for the protocol
	size    units.Bytes
	message message
}

// cast is what few parcels have: several receivers, and what each of them is told. It is kept apart so that frames, which are most of all parcels,
// stay in two lines of the processor's cache.
type cast struct {
	to     [maxGroup]int32 // nodes
	picked int8
	picks  [maxReplicas]reserve.Pick // of an acceptance
}

// maxGroup is how many targets hear one multicast at most.
const maxGroup = 64

// port is one end of a link in one direction.
type port struct {
	busy    bool
	parcel  int32 // that it is receiving or sending, while it is busy
	control ring
	data    ring
	used    sim.Time // time that it was busy
}

// ring is a queue of parcels.
type ring struct {
	items []int32
	head  int
}

func (r *ring) empty() bool { return r.head == len(r.items) }
func (r *ring) len() int    { return len(r.items) - r.head }

// push adds a parcel. Where half of a full list has gone, the rest moves down: one that is never empty does not grow for ever.
func (r *ring) push(i int32) {
	if len(r.items) == cap(r.items) && r.head > len(r.items)/2 {
		r.items, r.head = r.items[:copy(r.items, r.items[r.head:])], 0
	}
	r.items = append(r.items, i)
}

func (r *ring) pop() int32 {
	i := r.items[r.head]
	if r.head++; r.head == len(r.items) {
		r.items, r.head = r.items[:0], 0
	}
	return i
}

// Nodes are gateways, then targets.
func (c *Cluster) nodeOfTarget(t int32) int32 { return int32(len(c.gateways)) + t }

// parcelOf returns an unused parcel.
func (c *Cluster) parcelOf() int32 {
	if k := len(c.spare) - 1; k >= 0 {
		i := c.spare[k]
		c.spare = c.spare[:k]
		return i
	}
	c.parcels = append(c.parcels, parcel{})
	return int32(len(c.parcels) - 1)
}

// castOf returns an unused cast.
func (c *Cluster) castOf() int32 {
	if k := len(c.spareCasts) - 1; k >= 0 {
		i := c.spareCasts[k]
		c.spareCasts = c.spareCasts[:k]
		c.casts[i].picked = 0
		return i
	}
	c.casts = append(c.casts, cast{})
	return int32(len(c.casts) - 1)
}

// over gives a parcel back.
func (c *Cluster) over(i int32) {
	if k := c.parcels[i].cast; k >= 0 {
		c.spareCasts = append(c.spareCasts, k)
	}
	c.spare = append(c.spare, i)
}

// to is the nodes that a parcel goes to.
func (c *Cluster) to(p *parcel) []int32 {
	if p.cast < 0 {
		return p.one[:p.n]
	}
	return c.casts[p.cast].to[:p.n]
}

// receivers makes room in a parcel for so many nodes that it goes to.
func (c *Cluster) receivers(p *parcel, n int) []int32 {
	p.n, p.cast = int8(n), -1
	if n > 1 {
		p.cast = c.castOf()
	}
	return c.to(p)
}

// toNodesOf has a parcel go to targets.
func (c *Cluster) toNodesOf(p *parcel, targets []int32) {
	to := c.receivers(p, len(targets))
	for k, t := range targets {
		to[k] = c.nodeOfTarget(t)
	}
}

// toTarget sends a control message from a gateway to a target, which takes a time on a link; after is how long the sender holds it
// back.
func (c *Cluster) toTarget(m message, takes sim.Time) {
	i := c.parcelOf()
	p := &c.parcels[i]
	*p = parcel{takes: takes, size: c.control, message: m, n: 1, cast: -1}
	p.one[0] = c.nodeOfTarget(m.to)
	c.dispatch(m.from, i)
}

// toTargets sends a control message from a gateway to several targets at once.
func (c *Cluster) toTargets(m message, takes sim.Time, targets []int32) {
	i := c.parcelOf()
	p := &c.parcels[i]
	*p = parcel{takes: takes, size: c.control, message: m}
	c.toNodesOf(p, targets)
	c.dispatch(m.from, i)
}

// toGateway sends a control message from a target to a gateway; after is how long the target holds it back.
func (c *Cluster) toGateway(m message, takes, after sim.Time) {
	i := c.parcelOf()
	p := &c.parcels[i]
	*p = parcel{takes: takes, size: c.control, message: m, n: 1, cast: -1}
	p.one[0] = m.to
	if after > 0 {
		p.fell = c.targets[m.from].fell
		c.eng.Schedule(c.self, c.here, c.eng.Now()+after, evHeld, uint32(i))
		return
	}
	c.dispatch(c.nodeOfTarget(m.from), i)
}

// sendFrame sends a frame of data from a gateway to targets, which takes a time on a link.
func (c *Cluster) sendFrame(gateway, chunk int32, arg uint32, size units.Bytes, takes sim.Time, targets []int32) {
	if c.cfg.Control.Queued {
		takes = c.d.Send(size, c.d.Effective) // its protocol paces it, but a frame is on the link at the link's rate
	}
	i := c.parcelOf()
	p := &c.parcels[i]
	*p = parcel{takes: takes, data: true, arg: arg, size: size, message: message{chunk: chunk, id: c.chunks[chunk].id}}
	c.toNodesOf(p, targets)
	c.dispatch(gateway, i)
}

// tell sends a control message from a node to nodes.
func (c *Cluster) tell(from int32, m message, nodes []int32) { c.post(from, m, nodes, false) }

// cancel is as tell, but the message is not lost on its way: the sender of one that takes back a promise repeats it until it is acknowledged, which
// is not simulated.
func (c *Cluster) cancel(from int32, m message, nodes []int32) { c.post(from, m, nodes, true) }

// cancelAll tells a chunk's targets, each with a message of its own, that its gateway has given up this attempt.
func (c *Cluster) cancelAll(i int32, kind uint8) {
	x := &c.chunks[i]
	for _, t := range x.targets[:x.n] {
		node := [1]int32{c.nodeOfTarget(t)}
		c.cancel(x.gateway, message{kind: kind, from: x.gateway, chunk: i, id: x.id}, node[:])
	}
}

func (c *Cluster) post(from int32, m message, nodes []int32, sure bool) {
	if len(nodes) == 0 {
		return
	}
	i := c.parcelOf()
	p := &c.parcels[i]
	*p = parcel{takes: c.onLink(c.d), size: c.control, message: m, sure: sure}
	copy(c.receivers(p, len(nodes)), nodes)
	c.dispatch(from, i)
}

// send sends a frame of a chunk's data from a node to nodes.
func (c *Cluster) send(from, chunk int32, id uint64, arg uint32, size units.Bytes, nodes []int32) {
	i := c.parcelOf()
	p := &c.parcels[i]
	*p = parcel{takes: c.d.Send(size, c.d.Effective), data: true, arg: arg, size: size, message: message{chunk: chunk, id: id}}
	copy(c.receivers(p, len(nodes)), nodes)
	c.dispatch(from, i)
}

// held: a target no longer holds a message back.
func (c *Cluster) held(i int32) {
	t := c.parcels[i].message.from
	if c.targets[t].fell != c.parcels[i].fell {
		c.over(i)
		return
	}
	c.dispatch(c.nodeOfTarget(t), i)
}

// dispatch puts a parcel on its sender's link.
func (c *Cluster) dispatch(node, i int32) {
	p := &c.parcels[i]
	p.left = p.n
	c.sends(node, p)
	c.sees(node, i)
	if !c.cfg.Control.Queued {
		used := c.d.Send(p.size, c.d.Effective)
		c.out[node].used += used
		for _, to := range c.to(p) {
			c.in[to].used += used
			if p.data {
				c.comes(to, c.eng.Now()+c.cfg.Link.Trip, c.eng.Now()+p.takes+c.cfg.Link.Trip)
			}
		}
		c.eng.Schedule(c.self, c.here, c.eng.Now()+p.takes+c.cfg.Link.Trip, evArrive, uint32(i))
		return
	}
	if c.net != nil {
		c.ship(node, i)
		return
	}
	switch o := &c.out[node]; {
	case !o.busy:
		c.puts(node, i) // an end that is not busy has nothing waiting
	case p.data:
		o.data.push(i)
	default:
		o.control.push(i)
	}
}

// transmit has a node send what is next. The far ends begin to receive a trip later.
func (c *Cluster) transmit(node int32) {
	switch o := &c.out[node]; {
	case !o.control.empty():
		c.puts(node, o.control.pop())
	case !o.data.empty():
		c.puts(node, o.data.pop())
	default:
		o.busy = false
		if c.books.links != nil {
			c.turnsLink(node)
		}
	}
}

// puts has a node's end put a parcel on the link.
func (c *Cluster) puts(node, i int32) {
	o := &c.out[node]
	p := &c.parcels[i]
	now := c.eng.Now()
	o.busy, o.parcel = true, i
	o.used += p.takes
	if c.books.links != nil {
		c.turnsLink(node)
	}
	c.eng.Schedule(c.self, c.here, now+p.takes, evSent, uint32(node))
	c.eng.Schedule(c.self, c.here, now+c.cfg.Link.Trip, evHead, uint32(i))
}

// heads: a parcel comes to its receivers' ports.
func (c *Cluster) heads(i int32) {
	p := &c.parcels[i]
	for _, node := range c.to(p) {
		switch in := &c.in[node]; {
		case !in.busy:
			c.takesIn(node, i)
			c.looks(node)
		case p.data:
			p.marked = p.marked || c.cfg.Protocol == DCTCP && in.data.len()*int(c.cfg.Link.Frame) > int(c.cfg.Link.Mark)
			in.data.push(i)
		default:
			in.control.push(i)
		}
	}
}

// receive has a node's port take what is next.
func (c *Cluster) receive(node int32) {
	switch in := &c.in[node]; {
	case !in.control.empty():
		c.takesIn(node, in.control.pop())
	case !in.data.empty():
		c.takesIn(node, in.data.pop())
	default:
		in.busy = false
	}
}

// takesIn has a node's port receive a parcel.
func (c *Cluster) takesIn(node, i int32) {
	in := &c.in[node]
	takes := c.parcels[i].takes
	in.busy, in.parcel = true, i
	in.used += takes
	c.eng.Schedule(c.self, c.here, c.eng.Now()+takes, evReceived, uint32(node))
}

// received: a parcel is at its receiver as a whole.
func (c *Cluster) received(node int32) {
	i := c.in[node].parcel
	c.receive(node)
	c.deliver(i, node)
	c.looks(node)
	if p := &c.parcels[i]; p.left == 0 {
		c.over(i)
	}
}

// arrive: a parcel is at all its receivers.
func (c *Cluster) arrive(i int32) {
	for k := range c.parcels[i].n {
		node := c.to(&c.parcels[i])[k]
		c.deliver(i, node)
		c.looks(node)
	}
	c.over(i)
}

// deliver tells the protocol of a parcel.
func (c *Cluster) deliver(i, node int32) {
	p := &c.parcels[i]
	p.left--
	if c.lossy && (!p.sure && c.loses() || node >= int32(len(c.gateways)) && c.targets[node-int32(len(c.gateways))].down) {
		c.Counters.Lost++
		return
	}
	c.gets(node, p)
	c.shows(p, node)
	if p.data {
		c.Counters.Frames++
		c.Counters.DataBytes += uint64(p.size)
		switch i := p.message.chunk; {
		case c.chunks[i].id != p.message.id:
			c.Counters.Stale++ // of a chunk that its gateway has given up or has from elsewhere
		case p.arg&readFrame != 0:
			c.get.frame(i, int32(p.arg&^readFrame), p.size)
		default:
			c.marked = p.marked
			c.proto.frame(p.arg, node-int32(len(c.gateways)), p.size)
		}
		return
	}
	c.Counters.Messages++
	c.Counters.ControlBytes += uint64(p.size)
	c.heard = p.message
	m := &c.heard // handlers do not deliver, so nothing else is heard meanwhile
	if t := node - int32(len(c.gateways)); t >= 0 {
		m.to = t
		if p.cast >= 0 {
			for _, x := range c.casts[p.cast].picks[:c.casts[p.cast].picked] {
				if x.Server == t {
					m.n, m.a, m.b = t, x.Window.Left, x.Window.Right
				}
			}
		}
	}
	if m.kind >= firstRead {
		c.get.message(m)
		return
	}
	c.proto.message(m)
}

// accept sends an acceptance from a gateway to targets, each with the window that is taken there, if one is.
func (c *Cluster) accept(m message, takes sim.Time, targets []int32, picks []reserve.Pick) {
	i := c.parcelOf()
	p := &c.parcels[i]
	*p = parcel{takes: takes, size: c.control, message: m, n: int8(len(targets)), cast: c.castOf()}
	x := &c.casts[p.cast]
	for k, t := range targets {
		x.to[k] = c.nodeOfTarget(t)
	}
	x.picked = int8(copy(x.picks[:], picks))
	c.dispatch(m.from, i)
}
