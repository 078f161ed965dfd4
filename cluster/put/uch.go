package cluster

import (
	"farflash/cluster/reserve"
	"farflash/sim"
	"farflash/units"
)

// uch is UCH-CCP, unicast with consistent hashing and captive congestion points (the Replicast paper, section IV-B; SURGE's
// model 5). A gateway puts the replicas of a chunk one after the other: it asks a target, which answers with a rate, its link divided by
// the flows that it has; it sends at that rate, and asks the next target when it has begun to send the last frame. Whenever a target
// has more flows or fewer, it tells those that go on for a while the new rate.
type uch struct {
	c     *Cluster
	d     *reserve.Durations
	link  []reserve.Leaky // of gateways: what they may send
	port  []reserve.Leaky // of targets: what may be sent to them, which senders take from at once; SURGE's oracle
	flows []flow          // by number
	spare []int32
	share []*reserve.Share // of targets: how each divides its link
	tell  []reserve.Rate
	last  [][maxReplicas]int32
	clock []sim.Timer          // by flow
	of    [][maxReplicas]int32 // by chunk: its flows
	node  [1]int32
	pick  chooser
}

// flow is a replica on its way.
type flow struct {
	chunk          int32
	epoch          uint32 // tells it from others that had its number
	gateway        int32
	target         int32
	id             uint64 // the chunk's
	replica        int8
	started        bool          // the first rate has come
	waiting        units.BitRate // a rate that came before the first
	rate           units.BitRate // at which it sends; 0: not yet
	sent, received units.Bytes
	free           sim.Time // until when its last frame, or its request, is on the link
	own            reserve.Leaky
}

// Kinds of control messages of unicast protocols.
const (
	putRequest uint8 = iota
	rateInit
	rateSet
	replicaAck
	putCancel
)

func newUCH(c *Cluster, d *reserve.Durations) *uch {
	u := &uch{c: c, d: d}
	u.pick = chooser{c: c, chosen: func(i int32) { u.ask(i, 0) }, coming: func(t int32) int { return u.share[t].Len() }}
	for range c.gateways {
		u.link = append(u.link, reserve.NewLeaky(d, d.Effective))
	}
	for range c.targets {
		u.port = append(u.port, reserve.NewLeaky(d, d.Effective))
	}
	for range c.targets {
		u.share = append(u.share, reserve.NewShare(d, c.cfg.Protocol.division()))
	}
	u.last = make([][maxReplicas]int32, len(c.gateways))
	for g := range u.last {
		for k := range u.last[g] {
			u.last[g][k] = -1
		}
	}
	return u
}

// begin implements protocol.
func (u *uch) begin(i int32) {
	c := u.c
	for int(i) >= len(u.of) {
		u.of = append(u.of, [maxReplicas]int32{})
	}
	for k := range u.of[i] {
		u.of[i][k] = -1
	}
	if c.cfg.Placement != PlaceRandom || c.cfg.Choices > 1 {
		u.pick.choose(i)
		return
	}
	u.choose(&c.chunks[i])
	u.pick.chosen(i)
}

// choose draws the chunk's targets: any but those of the gateway's last chunk.
func (u *uch) choose(x *chunk) {
	c := u.c
	last := &u.last[x.gateway]
	for int(x.n) < c.copies {
		t := int32(c.rand.IntN(int64(len(c.targets))))
		taken := false
		for k := range c.copies {
			taken = taken || last[k] == t || k < int(x.n) && x.targets[k] == t
		}
		if !taken {
			x.targets[x.n] = t
			x.n++
		}
	}
	*last = x.targets
}

// ask begins a replica: the target is asked for a rate. It returns the flow's number.
func (u *uch) ask(i int32, replica int8) int32 {
	c := u.c
	x := &c.chunks[i]
	var n int32
	if k := len(u.spare) - 1; k >= 0 {
		n, u.spare = u.spare[k], u.spare[:k]
	} else {
		u.flows = append(u.flows, flow{})
		n = int32(len(u.flows) - 1)
		u.clock = append(u.clock, c.eng.NewTimer(c.self, c.here, evTimer, uint32(n)))
	}
	now := c.eng.Now()
	u.of[i][replica] = n
	u.flows[n] = flow{chunk: i, epoch: u.flows[n].epoch + 1, gateway: x.gateway, target: x.targets[replica], id: x.id, replica: replica, own: reserve.NewLeaky(u.d, 0), free: now + u.d.Control}
	u.link[x.gateway].Use(now, 8*int64(u.d.ControlSize))
	u.flows[n].own.Use(now, 8*int64(u.d.ControlSize))
	c.toTarget(message{kind: putRequest, from: x.gateway, to: x.targets[replica], chunk: i, id: x.id, n: n}, u.d.Control)
	return n
}

// message implements protocol.
func (u *uch) message(m *message) {
	c := u.c
	if u.pick.message(m) {
		return
	}
	now := c.eng.Now()
	f := &u.flows[m.n]
	switch m.kind {
	case putRequest:
		t := &c.targets[m.to]
		if f.id != m.id {
			return // given up before it came
		}
		rate := u.share[m.to].Admit(u.key(m.n), c.piece)
		c.toGateway(message{kind: rateInit, from: m.to, to: f.gateway, n: m.n, id: m.id, a: sim.Time(rate)}, u.d.Control, u.d.UnicastDelay(t.disk.backlog(now)))
		u.divide(m.to)
	case rateInit:
		if f.id != m.id {
			return
		}
		f.started, f.rate = true, units.BitRate(m.a)
		if f.waiting > 0 {
			f.rate = f.waiting
		}
		f.own.SetRate(now, f.rate)
		u.try(m.n)
	case rateSet:
		switch {
		case f.id != m.id || f.sent >= c.piece:
		case !f.started:
			f.waiting = units.BitRate(m.a)
		default:
			f.rate = units.BitRate(m.a)
			f.own.SetRate(now, f.rate)
			u.try(m.n)
		}
	case putCancel:
		if u.share[m.to].Remove(uint64(m.a)) {
			u.divide(m.to)
		}
	case replicaAck:
		if f.id != m.id || c.chunks[f.chunk].id != m.id {
			return
		}
		i := f.chunk
		u.of[i][f.replica] = -1
		f.id = 0
		u.spare = append(u.spare, m.n)
		c.acknowledged(i)
	}
}

// divide has a target tell its flows their new rates, if they are more or fewer than before.
func (u *uch) divide(target int32) {
	u.tell = u.share[target].Divide(u.tell[:0])
	for _, r := range u.tell {
		n := int32(uint32(r.Flow))
		f := &u.flows[n]
		if u.key(n) != r.Flow {
			continue // its gateway has given it up, which the target has not heard yet
		}
		u.c.toGateway(message{kind: rateSet, from: target, to: f.gateway, n: n, id: f.id, a: sim.Time(r.Rate)}, u.d.Control, 0)
	}
}

// timer implements protocol: a flow may have become able to send.
func (u *uch) timer(n uint32) { u.try(int32(n)) }

// try sends a flow's next frame if everything allows it, or else looks again when it may.
func (u *uch) try(n int32) {
	c := u.c
	f := &u.flows[n]
	if f.rate == 0 || f.sent >= c.piece {
		return
	}
	now := c.eng.Now()
	size := min(c.cfg.Link.Frame, c.piece-f.sent)
	need := int64(8 * size)
	at := max(f.free, f.own.When(now, need), u.link[f.gateway].When(now, need))
	if oracle := c.cfg.Compat != CompatNone; oracle && at <= now {
		at = u.port[f.target].When(now, need)
	}
	if at > now {
		c.eng.Arm(u.clock[n], at)
		return
	}
	if c.cfg.Compat != CompatNone {
		u.port[f.target].Use(now, need)
	}
	f.sent += size
	takes := u.d.Send(size, f.rate)
	f.free = now + takes
	to := [1]int32{f.target}
	c.sendFrame(f.gateway, f.chunk, uint32(n), size, takes, to[:])
	if f.sent < c.piece {
		f.own.Use(now, need)
		u.link[f.gateway].Use(now, need)
		u.try(n)
		return
	}
	if c.cfg.Compat == CompatNone {
		u.link[f.gateway].Use(now, need)
	}
	// The last frame is on its way: the next replica's turn.
	f.rate = 0
	if next := f.replica + 1; int(next) < c.copies {
		u.ask(f.chunk, next)
	}
}

// frame implements protocol: a frame has reached its target.
func (u *uch) frame(arg uint32, _ int32, size units.Bytes) {
	n := int32(arg)
	c := u.c
	f := &u.flows[n]
	f.received += size
	share := u.share[f.target]
	if f.received < c.piece {
		share.Received(u.key(n), f.received)
		return
	}
	c.keep(f.target, message{kind: replicaAck, from: f.target, to: f.gateway, chunk: f.chunk, n: n, id: f.id})
	share.Remove(u.key(n))
	u.divide(f.target)
}

// key is what a target knows a flow by.
func (u *uch) key(n int32) uint64 { return uint64(uint32(n)) | uint64(u.flows[n].epoch)<<32 }

// abandon implements recovery.
func (u *uch) abandon(i int32) {
	c := u.c
	for _, n := range u.of[i] {
		if n < 0 {
			continue
		}
		f := &u.flows[n]
		c.eng.Disarm(u.clock[n])
		u.node[0] = c.nodeOfTarget(f.target)
		c.cancel(f.gateway, message{kind: putCancel, from: f.gateway, chunk: i, id: f.id, n: n, a: sim.Time(u.key(n))}, u.node[:])
		f.id, f.rate = 0, 0
		u.spare = append(u.spare, n)
	}
}

// restart implements recovery.
func (u *uch) restart(target int32) {
	u.share[target] = reserve.NewShare(u.d, u.c.cfg.Protocol.division())
}

// floor implements protocol: for each replica a request, an answer and its frames; the next is asked when the last frame is begun, or, if
// messages take turns on the link, when it is sent; then the last frame's way, the disk and the acknowledgement.
func (u *uch) floor() sim.Time {
	c, d := u.c, u.d
	full := (c.piece - 1) / c.cfg.Link.Frame
	last := d.Send(c.piece-full*c.cfg.Link.Frame, d.Effective)
	one := 2*(d.Control+d.Trip) + sim.Time(full)*d.Frame
	k := sim.Time(c.copies)
	t := k*one + last + d.Trip + c.keepTime(d.DiskChunk) + d.Control + d.Trip
	if c.cfg.Control.Queued {
		t += (k - 1) * last
	}
	return t + c.probing()
}
