package cluster

import (
	"farflash/model/cluster/internal/queue"
	"farflash/model/cluster/put"
	"farflash/model/cluster/reserve"
	"farflash/numeric/units"
	"farflash/sim"
)

// Links. A node sends and receives at its link's rate; the core never blocks, and every parcel crosses it in the same
// time, the trip. With control.queued, each end of a link carries one frame at a time, control messages before data,
// and a frame that finds the far end busy queues there, as at a switch port. A multicast occupies the sender's link
// once. Without control.queued, only data takes turns, at its protocol's own rates, and control messages pass at any
// time; this is SURGE's model.

// parcel is a control message or a frame of data in flight. It occupies two cache lines; the first one has everything
// that a frame needs and ends in the first words of the message.
type parcel struct {
	takes   sim.Time // transmission time on a link
	size    units.Bytes
	one     [1]int32 // the destination node, if there is one only
	cast    int32    // index of the cast with the destinations, or -1
	fell    int32    // failures of the sending target when it was held back
	sender  int32    // for probes
	arg     uint32   // the protocol's argument of a frame
	data    bool
	marked  bool // ECN-marked: it found a long queue
	n       int8 // number of destinations
	left    int8
	sure    bool  // exempt from loss on its path
	more    int32 // identical frames that its sender sends after it
	message put.Message
	sent    sim.Time // for probes
	_       [24]byte
}

// cast has the part of a parcel that few need: several destinations, and the pick for each of them.
type cast struct {
	to     [put.MaxHeard]int32 // nodes
	picked int8
	picks  [maxReplicas]reserve.Pick // windows of an acceptance
}

// port is one end of a link in one direction. It occupies two cache lines; a port without frames waiting needs only the
// first one.
type port struct {
	busy    bool
	parcel  int32    // the parcel being received or sent, while busy
	used    sim.Time // busy time through ends
	ends    sim.Time // when the current or the last transfer ends
	control queue.Queue[int32]
	data    queue.Queue[int32]
	_       [40]byte
}

// use makes the port busy for a duration from now. Without queues transfers may overlap; overlapping time counts once.
func (p *port) use(now, takes sim.Time) {
	p.used += takes - min(takes, max(0, p.ends-now))
	p.ends = max(p.ends, now+takes)
}

// until returns the port's busy time up to at.
func (p *port) until(at sim.Time) sim.Time { return max(0, p.used-max(0, p.ends-at)) }

// nodeOfTarget returns the node of a target. Nodes are numbered gateways first, then targets.
func (c *Cluster) nodeOfTarget(t int32) int32 { return int32(len(c.gateways)) + t }

// castOf returns an unused cast.
func (c *Cluster) castOf() int32 {
	i := c.casts.Take()
	c.casts.Items[i].picked = 0
	return i
}

// over frees a parcel.
func (c *Cluster) over(i int32) {
	if k := c.parcels.Items[i].cast; k >= 0 {
		c.casts.Give(k)
	}
	c.parcels.Give(i)
}

// to returns the destination nodes of a parcel.
func (c *Cluster) to(p *parcel) []int32 {
	if p.cast < 0 {
		return p.one[:p.n]
	}
	return c.casts.Items[p.cast].to[:p.n]
}

// receivers sizes a parcel for n destinations and returns them, to be filled in.
func (c *Cluster) receivers(p *parcel, n int) []int32 {
	p.n, p.cast = int8(n), -1
	if n > 1 {
		p.cast = c.castOf()
	}
	return c.to(p)
}

// dispatch sends a parcel from a node, through the node's processor if it has one.
func (c *Cluster) dispatch(node, i int32) {
	if !c.worksFor(node, i, true) {
		c.leaves(node, i)
	}
}

// leaves puts a parcel on its sender's link.
func (c *Cluster) leaves(node, i int32) {
	p := &c.parcels.Items[i]
	p.left = p.n
	c.sends(node, p)
	c.sees(node, i)
	if !c.cfg.Control.Queued {
		used := c.d.Send(p.size, c.d.Effective)
		now := c.eng.Now()
		if c.cfg.Compat != CompatNone {
			now = max(now, c.out[node].ends) // SURGE counts each transmission in full
		}
		c.out[node].use(now, used)
		for _, to := range c.to(p) {
			now := c.eng.Now()
			if c.cfg.Compat != CompatNone {
				now = max(now, c.in[to].ends)
			}
			c.in[to].use(now, used)
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
		c.puts(node, i) // an idle port has an empty queue
	case p.data:
		if !c.joins(o, p) {
			o.data.Push(i)
			return
		}
		c.over(i)
	default:
		o.control.Push(i)
	}
}

// joins merges a frame into the last waiting one if they are identical, so that the frames of a piece are one parcel
// until they are sent.
func (c *Cluster) joins(o *port, p *parcel) bool {
	list := o.data.All()
	if len(list) == 0 {
		return false
	}
	x := &c.parcels.Items[list[len(list)-1]]
	if x.message != p.message || x.arg != p.arg || x.size != p.size || x.n != 1 || p.n != 1 || x.one != p.one ||
		x.sent != p.sent || x.takes != p.takes {
		return false
	}
	x.more++
	return true
}

// frame removes the next frame of a node's transmit queue, splitting it off merged frames.
func (c *Cluster) frame(o *port) int32 {
	i := o.data.All()[0]
	if c.parcels.Items[i].more == 0 {
		return o.data.Pop()
	}
	k := c.parcels.Take()
	x := &c.parcels.Items[i]
	x.more--
	c.parcels.Items[k] = *x
	c.parcels.Items[k].more = 0
	return k
}

// transmit sends the next parcel of a node. The far ends begin to receive it a trip later.
func (c *Cluster) transmit(node int32) {
	switch o := &c.out[node]; {
	case !o.control.Empty():
		c.puts(node, o.control.Pop())
	case !o.data.Empty():
		c.puts(node, c.frame(o))
	default:
		o.busy = false
		if c.books.links != nil {
			c.turnsLink(node)
		}
	}
}

// puts starts the transmission of a parcel.
func (c *Cluster) puts(node, i int32) {
	o := &c.out[node]
	p := &c.parcels.Items[i]
	now := c.eng.Now()
	o.busy, o.parcel = true, i
	o.use(now, p.takes)
	if c.books.links != nil {
		c.turnsLink(node)
	}
	// The core is cut-through: the first bit arrives a trip later, while the parcel is still being sent.
	c.eng.Schedule(c.self, c.here, now+p.takes, evSent, uint32(node))
	c.eng.Schedule(c.self, c.here, now+c.cfg.Link.Trip, evHead, uint32(i))
}

// heads handles the arrival of a parcel's first bit at the ports of its receivers.
func (c *Cluster) heads(i int32) {
	p := &c.parcels.Items[i]
	if p.n == 0 {
		c.over(i) // it has no receivers
		return
	}
	for _, node := range c.to(p) {
		switch in := &c.in[node]; {
		case !in.busy && c.admits(node, i):
			c.takesIn(node, i)
			c.looks(node)
		case p.data:
			// The queue length counts every waiting frame as a full one.
			p.marked = p.marked || c.bus.Traits.Marks && in.data.Len()*int(c.cfg.Link.Frame) > int(c.cfg.Link.Mark)
			in.data.Push(i)
		default:
			in.control.Push(i)
		}
	}
}

// receive starts the reception of the next parcel at a node's port.
func (c *Cluster) receive(node int32) {
	switch in := &c.in[node]; {
	case !in.control.Empty():
		c.takesIn(node, in.control.Pop())
	case !in.data.Empty():
		if i := c.nextData(node); i >= 0 {
			c.takesIn(node, i)
			return
		}
		in.busy = false // memory has no space for any waiting frame
	default:
		in.busy = false
	}
}

// takesIn starts the reception of a parcel at a node's port.
func (c *Cluster) takesIn(node, i int32) {
	in := &c.in[node]
	takes := c.parcels.Items[i].takes
	in.busy, in.parcel = true, i
	in.use(c.eng.Now(), takes)
	c.eng.Schedule(c.self, c.here, c.eng.Now()+takes, evReceived, uint32(node))
}

// received handles the end of a reception.
func (c *Cluster) received(node int32) {
	i := c.in[node].parcel
	c.receive(node)
	c.comesIn(i, node)
}

// arrive delivers a parcel to all its receivers, where links do not queue.
func (c *Cluster) arrive(i int32) {
	for k := range c.parcels.Items[i].n {
		node := c.to(&c.parcels.Items[i])[k]
		c.deliver(i, node)
		c.looks(node)
	}
	c.over(i)
}

// deliver hands a parcel to its protocol, or loses it.
func (c *Cluster) deliver(i, node int32) {
	p := &c.parcels.Items[i]
	p.left--
	// A target that is down loses even sure messages.
	if c.lossy && (!p.sure && (c.loses() || faults && c.faulted(node, p)) ||
		node >= int32(len(c.gateways)) && c.targets[node-int32(len(c.gateways))].down) {
		c.Counters.Lost++
		return
	}
	c.gets(node, p)
	c.shows(p, node)
	if p.data {
		c.Counters.Frames++
		c.Counters.DataBytes += uint64(p.size)
		switch i := p.message.Chunk; {
		case c.bus.Chunks[i].ID != p.message.ID:
			c.Counters.Stale++ // of an attempt that its gateway has abandoned or completed
		case c.cfg.Update.Share > 0 && c.tasks.Items[i].update:
			c.renew.frame(i, int32(p.arg&^readFrame), p.size)
		case p.arg&readFrame != 0:
			c.get.frame(i, int32(p.arg&^readFrame), p.size)
		default:
			c.proto.Frame(put.Frame{Arg: p.arg, Target: node - int32(len(c.gateways)), Size: p.size, Marked: p.marked})
		}
		return
	}
	c.Counters.Messages++
	c.Counters.ControlBytes += uint64(p.size)
	c.heard = p.message
	m := &c.heard // a single copy suffices because handlers never deliver
	if t := node - int32(len(c.gateways)); t >= 0 {
		m.To = t
		if p.cast >= 0 {
			for _, x := range c.casts.Items[p.cast].picks[:c.casts.Items[p.cast].picked] {
				if x.Server == t {
					m.N, m.A, m.B = t, x.Window.Left, x.Window.Right
				}
			}
		}
	}
	if m.Kind >= put.FirstRead {
		c.get.message(m)
		return
	}
	c.proto.Message(m)
}
