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
	marked  bool     // it found a long queue
	sure    bool     // it is not lost on its way
	fell    int32    // how often the target had failed that holds it back
	sender  int32    // for who watches
	sent    sim.Time // likewise
	arg     uint32   // of a frame, for the protocol
	size    units.Bytes
	message message
	to      [maxGroup]int32 // nodes
	n       int8
	left    int8
	picked  int8
	picks   [maxReplicas]reserve.Pick // of an acceptance
}

// maxGroup is how many targets hear one multicast at most.
const maxGroup = 64

// port is one end of a link in one direction.
type port struct {
	busy    bool
	control ring
	data    ring
	used    sim.Time // time that it was busy
}

// ring is a queue of parcels.
type ring struct {
	items []int32
	head  int
}

func (r *ring) empty() bool  { return r.head == len(r.items) }
func (r *ring) len() int     { return len(r.items) - r.head }
func (r *ring) push(i int32) { r.items = append(r.items, i) }

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

// toTarget sends a control message from a gateway to a target, which takes a time on a link; after is how long the sender holds it
// back.
func (c *Cluster) toTarget(m message, takes sim.Time) {
	i := c.parcelOf()
	p := &c.parcels[i]
	*p = parcel{takes: takes, size: c.control, message: m, n: 1}
	p.to[0] = c.nodeOfTarget(m.to)
	c.dispatch(m.from, i)
}

// toTargets sends a control message from a gateway to several targets at once.
func (c *Cluster) toTargets(m message, takes sim.Time, targets []int32) {
	i := c.parcelOf()
	p := &c.parcels[i]
	*p = parcel{takes: takes, size: c.control, message: m, n: int8(len(targets))}
	for k, t := range targets {
		p.to[k] = c.nodeOfTarget(t)
	}
	c.dispatch(m.from, i)
}

// toGateway sends a control message from a target to a gateway; after is how long the target holds it back.
func (c *Cluster) toGateway(m message, takes, after sim.Time) {
	i := c.parcelOf()
	p := &c.parcels[i]
	*p = parcel{takes: takes, size: c.control, message: m, n: 1}
	p.to[0] = m.to
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
	*p = parcel{takes: takes, data: true, arg: arg, size: size, message: message{chunk: chunk, id: c.chunks[chunk].id}, n: int8(len(targets))}
	for k, t := range targets {
		p.to[k] = c.nodeOfTarget(t)
	}
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
	*p = parcel{takes: c.onLink(c.d), size: c.control, message: m, sure: sure, n: int8(len(nodes))}
	copy(p.to[:], nodes)
	c.dispatch(from, i)
}

// send sends a frame of a chunk's data from a node to nodes.
func (c *Cluster) send(from, chunk int32, id uint64, arg uint32, size units.Bytes, nodes []int32) {
	i := c.parcelOf()
	p := &c.parcels[i]
	*p = parcel{takes: c.d.Send(size, c.d.Effective), data: true, arg: arg, size: size, message: message{chunk: chunk, id: id}, n: int8(len(nodes))}
	copy(p.to[:], nodes)
	c.dispatch(from, i)
}

// held: a target no longer holds a message back.
func (c *Cluster) held(i int32) {
	t := c.parcels[i].message.from
	if c.targets[t].fell != c.parcels[i].fell {
		c.spare = append(c.spare, i)
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
		for _, to := range p.to[:p.n] {
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
	o := &c.out[node]
	if p.data {
		o.data.push(i)
	} else {
		o.control.push(i)
	}
	if !o.busy {
		c.transmit(node)
	}
}

// transmit has a node send what is next. The far ends begin to receive a trip later.
func (c *Cluster) transmit(node int32) {
	o := &c.out[node]
	var i int32
	switch {
	case !o.control.empty():
		i = o.control.pop()
	case !o.data.empty():
		i = o.data.pop()
	default:
		o.busy = false
		if c.books.links != nil {
			c.turnsLink(node)
		}
		return
	}
	o.busy = true
	p := &c.parcels[i]
	now := c.eng.Now()
	o.used += p.takes
	c.giving[node] = i
	if c.books.links != nil {
		c.turnsLink(node)
	}
	c.eng.Schedule(c.self, c.here, now+p.takes, evSent, uint32(node))
	c.eng.Schedule(c.self, c.here, now+c.cfg.Link.Trip, evHead, uint32(i))
}

// heads: a parcel comes to its receivers' ports.
func (c *Cluster) heads(i int32) {
	p := &c.parcels[i]
	for _, node := range p.to[:p.n] {
		in := &c.in[node]
		if p.data {
			p.marked = p.marked || c.cfg.Protocol == DCTCP && in.data.len()*int(c.cfg.Link.Frame) > int(c.cfg.Link.Mark)
			in.data.push(i)
		} else {
			in.control.push(i)
		}
		if !in.busy {
			c.receive(node)
			c.looks(node)
		}
	}
}

// receive has a node's port take what is next.
func (c *Cluster) receive(node int32) {
	in := &c.in[node]
	switch {
	case !in.control.empty():
		c.taking[node] = in.control.pop()
	case !in.data.empty():
		c.taking[node] = in.data.pop()
	default:
		in.busy = false
		return
	}
	in.busy = true
	p := &c.parcels[c.taking[node]]
	in.used += p.takes
	c.eng.Schedule(c.self, c.here, c.eng.Now()+p.takes, evReceived, uint32(node))
}

// received: a parcel is at its receiver as a whole.
func (c *Cluster) received(node int32) {
	i := c.taking[node]
	c.receive(node)
	c.deliver(i, node)
	c.looks(node)
	if p := &c.parcels[i]; p.left == 0 {
		c.spare = append(c.spare, i)
	}
}

// arrive: a parcel is at all its receivers.
func (c *Cluster) arrive(i int32) {
	for k := range c.parcels[i].n {
		node := c.parcels[i].to[k]
		c.deliver(i, node)
		c.looks(node)
	}
	c.spare = append(c.spare, i)
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
		for _, x := range p.picks[:p.picked] {
			if x.Server == t {
				m.n, m.a, m.b = t, x.Window.Left, x.Window.Right
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
	*p = parcel{takes: takes, size: c.control, message: m, n: int8(len(targets)), picked: int8(len(picks))}
	for k, t := range targets {
		p.to[k] = c.nodeOfTarget(t)
	}
	copy(p.picks[:], picks)
	c.dispatch(m.from, i)
}
