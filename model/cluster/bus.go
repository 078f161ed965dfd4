package cluster

import (
	"farflash/model/cluster/put"
	"farflash/model/cluster/reserve"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// newBus builds the protocol's view of the cluster.
func (c *Cluster) newBus(p put.Plan) (*put.Bus, error) {
	b, err := put.NewBus(p)
	if err != nil {
		return nil, err
	}
	b.Clock = put.Clock{Engine: c.eng, Self: c.self, Handler: c.here, Kind: evTimer}
	b.Messages, b.Frames, b.Disks, b.Outcomes = messages{c}, frames{c}, disks{c}, outcomes{c}
	b.Rand = rng.NewStream(p.Seed, "cluster")
	b.Tally, b.OnBid = &c.Counters.Tally, &c.OnBid
	return b, nil
}

// messages implements put.Messages.
type messages struct{ c *Cluster }

func (m messages) Send(from int32, x put.Message, to []int32)   { m.c.post(from, x, to, false) }
func (m messages) Cancel(from int32, x put.Message, to []int32) { m.c.post(from, x, to, true) }
func (m messages) Hold(x put.Message, after sim.Time)           { m.c.hold(x, after) }
func (m messages) Accept(x put.Message, targets []int32, picks []reserve.Pick) {
	m.c.accept(x, targets, picks)
}

// frames implements put.Frames.
type frames struct{ c *Cluster }

func (f frames) Send(from, chunk int32, x put.Frame, takes sim.Time, to []int32) {
	c := f.c
	if c.cfg.Control.Queued {
		// The protocol paces by its own time, but the frame occupies the link at the link's rate.
		takes = c.bus.FrameTime(x.Size)
	}
	c.send(from, chunk, c.bus.Chunks[chunk].ID, x.Arg, x.Size, takes, to)
}

func (f frames) Waiting(target int32, seen []put.WaitingFrame) []put.WaitingFrame {
	c := f.c
	takes := sim.Time(0)
	for _, i := range c.in[c.nodeOfTarget(target)].data.All() {
		p := &c.parcels.Items[i]
		takes += p.takes
		if p.arg&readFrame == 0 && c.bus.Chunks[p.message.Chunk].ID == p.message.ID {
			// Frames of reads and of abandoned attempts are skipped; their time counts toward the next frame.
			seen = append(seen, put.WaitingFrame{Arg: p.arg, Takes: takes})
			takes = 0
		}
	}
	return seen
}

// disks implements put.Disks.
type disks struct{ c *Cluster }

func (d disks) Backlog(target int32) sim.Time     { return d.c.backlogOf(target) }
func (d disks) WriteTime(target int32) sim.Time   { return d.c.writeTime(target) }
func (d disks) Write(target int32, x put.Message) { d.c.keep(target, x) }

// outcomes implements put.Outcomes.
type outcomes struct{ c *Cluster }

func (o outcomes) Acknowledged(chunk int32)          { o.c.acknowledged(chunk) }
func (o outcomes) Abort(chunk int32, wait sim.Time)  { o.c.abort(chunk, wait) }
func (o outcomes) Bound(chunk int32, takes sim.Time) { o.c.bound(chunk, takes) }

// hold sends a control message from a target to a gateway after a delay.
func (c *Cluster) hold(m put.Message, after sim.Time) {
	i := c.parcels.Take()
	p := &c.parcels.Items[i]
	*p = parcel{takes: c.bus.OnLink(), size: c.control, message: m, n: 1, cast: -1, fell: c.targets[m.From].fell}
	p.one[0] = m.To
	c.eng.Schedule(c.self, c.here, c.eng.Now()+after, evHeld, uint32(i))
}

// held sends a message whose delay at its target is over. The message is lost if the target has failed since.
func (c *Cluster) held(i int32) {
	p := &c.parcels.Items[i]
	t := p.message.From
	// The target has failed in between.
	if c.targets[t].fell != p.fell {
		c.over(i)
		return
	}
	c.dispatch(c.nodeOfTarget(t), i)
}

// toGateway sends a control message from target m.From to gateway m.To after a delay.
func (c *Cluster) toGateway(m put.Message, after sim.Time) {
	if after > 0 {
		c.hold(m, after)
		return
	}
	to := [1]int32{m.To}
	c.post(c.nodeOfTarget(m.From), m, to[:], false)
}

// tell sends a control message from a node to zero or more nodes.
func (c *Cluster) tell(from int32, m put.Message, nodes []int32) {
	if len(nodes) > 0 {
		c.post(from, m, nodes, false)
	}
}

// post sends a control message from a node to nodes. A sure message is never lost on its path.
func (c *Cluster) post(from int32, m put.Message, nodes []int32, sure bool) {
	i := c.parcels.Take()
	p := &c.parcels.Items[i]
	*p = parcel{takes: c.bus.OnLink(), size: c.control, message: m, sure: sure}
	copy(c.receivers(p, len(nodes)), nodes)
	c.dispatch(from, i)
}

// accept sends an acceptance from a gateway to targets, each with the window that is reserved there, if any.
func (c *Cluster) accept(m put.Message, targets []int32, picks []reserve.Pick) {
	i := c.parcels.Take()
	p := &c.parcels.Items[i]
	*p = parcel{takes: c.bus.OnLink(), size: c.control, message: m, n: int8(len(targets)), cast: c.castOf()}
	x := &c.casts.Items[p.cast]
	for k, t := range targets {
		x.to[k] = c.nodeOfTarget(t)
	}
	x.picked = int8(copy(x.picks[:], picks))
	c.dispatch(m.From, i)
}

// send sends a frame of a chunk's data from a node to nodes.
func (c *Cluster) send(from, chunk int32, id uint64, arg uint32, size units.Bytes, takes sim.Time, nodes []int32) {
	i := c.parcels.Take()
	p := &c.parcels.Items[i]
	*p = parcel{takes: takes, data: true, arg: arg, size: size, message: put.Message{Chunk: chunk, ID: id}}
	copy(c.receivers(p, len(nodes)), nodes)
	c.dispatch(from, i)
}
