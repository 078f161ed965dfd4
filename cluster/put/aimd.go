package cluster

import (
	"farflash/cluster/reserve"
	"farflash/sim"
	"farflash/units"
)

// aimd is UCH-AIMD, unicast with consistent hashing and additive increase, multiplicative decrease (SURGE's model 6). A gateway puts
// the replicas of a chunk one after the other, as uch does, but a target does not say at which rate. Each replica begins at a tenth of
// its link and goes up by as much after every frame and control message sent; a target that sees frames come too close to each other, or whose
// disk's queue is full, dings senders, and each ding halves a rate.
//
// What a target sees is what waits at its port (control.queued). In SURGE, and without control.queued, it sees the frames that have been sent
// and are on their way.
type aimd struct {
	*uch
	rate   []reserve.AIMD    // of flows
	dinger []*reserve.Dinger // of targets
	look   []sim.Timer       // of targets
	coming [][]reserve.Arrival
	seen   []reserve.Arrival
	ding   []uint64
}

// dinged is the message of a target to a sender that is too fast. Its other messages are those of uch; a rateInit without a rate is the answer to
// a request.
const dinged uint8 = putCancel + 1

// lookKind is the flag of a timer's argument that is a target's.
const lookKind = 1 << 31

func newAIMD(c *Cluster, d *reserve.Durations) *aimd {
	p := &aimd{uch: newUCH(c, d)}
	p.pick.chosen = func(i int32) { p.ask(i, 0) }
	p.pick.coming = func(t int32) int { return p.dinger[t].Len() }
	p.coming = make([][]reserve.Arrival, len(c.targets))
	for t := range c.targets {
		p.dinger = append(p.dinger, reserve.NewDinger(d))
		p.look = append(p.look, c.eng.NewTimer(c.self, c.here, evTimer, lookKind|uint32(t)))
	}
	return p
}

// ask begins a replica: the target is asked whether it may be sent.
func (p *aimd) ask(i int32, replica int8) {
	n := p.uch.ask(i, replica)
	for int(n) >= len(p.rate) {
		p.rate = append(p.rate, reserve.AIMD{})
	}
	p.rate[n] = reserve.NewAIMD(p.d)
	p.rate[n].Use(p.c.eng.Now(), 8*int64(p.d.ControlSize))
}

// message implements protocol.
func (p *aimd) message(m *message) {
	c := p.c
	if p.pick.message(m) {
		return
	}
	now := c.eng.Now()
	f := &p.flows[m.n]
	switch m.kind {
	case putRequest:
		if f.id != m.id {
			return // given up before it came
		}
		p.dinger[m.to].Admit(p.key(m.n), c.piece)
		c.toGateway(message{kind: rateInit, from: m.to, to: f.gateway, n: m.n, id: m.id}, p.d.Control, p.d.UnicastDelay(c.targets[m.to].disk.backlog(now)))
		p.watch(m.to)
	case rateInit:
		if f.id != m.id {
			return
		}
		f.started = true
		p.try(m.n)
	case dinged:
		if f.id != m.id || f.target != m.from || f.sent >= c.piece {
			return // the replica is on its way as a whole
		}
		c.Counters.Dings++
		p.rate[m.n].Ding(now)
	case putCancel:
		p.dinger[m.to].Remove(uint64(m.a))
	case replicaAck:
		p.uch.message(m)
	}
}

// timer implements protocol: a flow may have become able to send, or it is time for a target to look at what comes.
func (p *aimd) timer(arg uint32) {
	if arg&lookKind == 0 {
		p.try(int32(arg))
		return
	}
	p.inspect(int32(arg &^ lookKind))
}

// watch has a target look at what comes when it is due, as long as it has flows.
func (p *aimd) watch(target int32) {
	at := max(p.dinger[target].Due()+units.Nanosecond, p.c.eng.Now())
	p.c.eng.Arm(p.look[target], at)
}

// inspect has a target look at what comes, and ding.
func (p *aimd) inspect(target int32) {
	c := p.c
	p.ding = p.dinger[target].Look(c.eng.Now(), p.arrivals(target), c.targets[target].disk.backlog(c.eng.Now()), p.ding[:0])
	for _, k := range p.ding {
		n := int32(uint32(k))
		f := &p.flows[n]
		if p.key(n) != k {
			continue // its gateway has given it up, which the target has not heard yet
		}
		c.toGateway(message{kind: dinged, from: target, to: f.gateway, n: n, id: f.id}, p.d.Control, 0)
	}
	if p.dinger[target].Len() > 0 {
		p.watch(target)
	}
}

// arrivals are the frames that a target sees come, in order. Those that wait at its port come one after the other.
func (p *aimd) arrivals(target int32) []reserve.Arrival {
	c := p.c
	if !c.cfg.Control.Queued {
		return p.coming[target]
	}
	p.seen = p.seen[:0]
	at := c.eng.Now()
	in := &c.in[c.nodeOfTarget(target)].data
	for _, i := range in.items[in.head:] {
		x := &c.parcels[i]
		at += x.takes
		if x.arg&readFrame == 0 && c.chunks[x.message.chunk].id == x.message.id { // not of what is read, nor given up
			p.seen = append(p.seen, reserve.Arrival{Flow: p.key(int32(x.arg)), At: at})
		}
	}
	return p.seen
}

// try sends a flow's next frame if everything allows it, or else looks again when it may.
func (p *aimd) try(n int32) {
	c := p.c
	f, rate := &p.flows[n], &p.rate[n]
	if !f.started || f.sent >= c.piece {
		return
	}
	now := c.eng.Now()
	size := min(c.cfg.Link.Frame, c.piece-f.sent)
	need := int64(8 * size)
	at := max(f.free, rate.When(now, need), p.link[f.gateway].When(now, need))
	if oracle := c.cfg.Compat != CompatNone; oracle && at <= now {
		at = p.port[f.target].When(now, need)
	}
	if at > now {
		c.eng.Arm(p.clock[n], at)
		return
	}
	if c.cfg.Compat != CompatNone {
		p.port[f.target].Use(now, need)
	}
	f.sent += size
	takes := p.d.Send(size, rate.Rate())
	f.free = now + takes
	to := [1]int32{f.target}
	c.sendFrame(f.gateway, f.chunk, uint32(n), size, takes, to[:])
	if !c.cfg.Control.Queued {
		p.expect(f.target, reserve.Arrival{Flow: p.key(n), At: now + takes + c.cfg.Link.Trip})
	}
	if f.sent < c.piece {
		rate.Use(now, need)
		p.link[f.gateway].Use(now, need)
		p.try(n)
		return
	}
	if c.cfg.Compat == CompatNone {
		p.link[f.gateway].Use(now, need)
	}
	// The last frame is on its way: the next replica's turn.
	if next := f.replica + 1; int(next) < c.copies {
		p.ask(f.chunk, next)
	}
}

// expect enters a frame among those that come to a target.
func (p *aimd) expect(target int32, a reserve.Arrival) {
	list := append(p.coming[target], a)
	for k := len(list) - 1; k > 0 && list[k-1].At > a.At; k-- {
		list[k], list[k-1] = list[k-1], list[k]
	}
	p.coming[target] = list
}

// frame implements protocol: a frame has reached its target.
func (p *aimd) frame(arg uint32, target int32, size units.Bytes) {
	c := p.c
	f, id := &p.flows[arg], p.key(int32(arg))
	coming := p.coming[target]
	for k := range coming {
		if coming[k].Flow == id {
			p.coming[target] = append(coming[:k], coming[k+1:]...)
			break
		}
	}
	f.received += size
	if f.received < c.piece {
		p.dinger[target].Received(id, f.received)
		return
	}
	c.keep(target, message{kind: replicaAck, from: target, to: f.gateway, chunk: f.chunk, n: int32(arg), id: f.id})
	p.dinger[target].Remove(id)
}

// restart implements recovery.
func (p *aimd) restart(target int32) { p.dinger[target] = reserve.NewDinger(p.d) }

// floor implements protocol: for each replica a request, an answer and its frames, each at the rate that the flow has come to without a ding;
// the next replica is asked for as in uch.
func (p *aimd) floor() sim.Time {
	c, d := p.c, p.d
	b := reserve.NewAIMD(d)
	b.Use(0, 8*int64(d.ControlSize))
	frames, sent := sim.Time(0), units.Bytes(0)
	for ; c.piece-sent > c.cfg.Link.Frame; sent += c.cfg.Link.Frame {
		// The bucket never holds a flow back that waits for its own frames.
		frames += d.Send(c.cfg.Link.Frame, b.Rate())
		b.Use(frames, 8*int64(c.cfg.Link.Frame))
	}
	last := d.Send(c.piece-sent, b.Rate())
	k := sim.Time(c.copies)
	if c.cfg.Control.Queued {
		last = d.Send(c.piece-sent, d.Effective)
	}
	t := k*(2*(d.Control+d.Trip)+frames) + last + d.Trip + c.keepTime(d.DiskChunk) + d.Control + d.Trip
	if c.cfg.Control.Queued {
		t += (k - 1) * last
	}
	return t + c.probing()
}
