package put

import (
	"farflash/cluster/reserve"
	"farflash/sim"
	"farflash/units"
)

// UCHAIMD is SURGE's UCH-AIMD (model 6): as UCH, but senders go faster until a target dings them.
const UCHAIMD Scheme = 8

var uchAIMD = Traits{Name: "uch-aimd", Number: "6", Build: CompatSURGE, Finds: FindsPlaced, SeesPorts: true, Times: reserve.UnicastConfig, Messages: unicastMessages,
	New: func(b *Bus) Protocol { return newAIMD(b) }}

// aimd is UCH-AIMD, unicast with consistent hashing and additive increase, multiplicative decrease (SURGE's model 6). A gateway puts
// replicas as unicast does, but a target does not say at which rate. Each replica begins at a tenth of
// its link and goes up by as much after every frame and control message sent; a target that sees frames come too close to each other, or whose
// disk's queue is full, dings senders, and each ding halves a rate.
//
// What a target sees is what waits at its port (control.queued). In SURGE, and without control.queued, it sees the frames that have been sent
// and are on their way.
type aimd struct {
	unicast
	rate   []reserve.AIMD    // of flows
	dinger []*reserve.Dinger // of targets
	look   []sim.Timer       // of targets
	coming [][]reserve.Arrival
	seen   []reserve.Arrival
	queue  []WaitingFrame
	ding   []uint64
}

// lookKind is the flag of a timer's argument that is a target's.
const lookKind = 1 << 31

func newAIMD(b *Bus) *aimd {
	p := &aimd{unicast: newUnicast(b), coming: make([][]reserve.Arrival, b.Targets)}
	p.pick = chooser{b: b, chosen: func(i int32) { p.ask(i, 0) }, coming: func(t int32) int { return p.dinger[t].Len() }}
	for t := range b.Targets {
		p.dinger = append(p.dinger, reserve.NewDinger(b.Times))
		p.look = append(p.look, b.NewTimer(lookKind|uint32(t)))
	}
	return p
}

// ask begins a replica.
func (p *aimd) ask(i int32, replica int8) {
	n := p.unicast.ask(i, replica)
	for int(n) >= len(p.rate) {
		p.rate = append(p.rate, reserve.AIMD{})
	}
	p.rate[n] = reserve.NewAIMD(p.b.Times)
	p.rate[n].Use(p.b.Now(), 8*int64(p.b.Times.ControlSize))
}

// Message implements Protocol.
func (p *aimd) Message(m *Message) {
	b := p.b
	if p.pick.message(m) {
		return
	}
	f := &p.flows.Items[m.N]
	switch m.Kind {
	case putRequest:
		if f.id != m.ID {
			return // given up before it came
		}
		p.dinger[m.To].Admit(p.key(m.N), b.Piece)
		b.toGateway(Message{Kind: rateInit, From: m.To, To: f.gateway, N: m.N, ID: m.ID}, b.Times.UnicastDelay(b.Disks.Backlog(m.To)))
		p.watch(m.To)
	case rateInit:
		if f.id != m.ID {
			return
		}
		f.started = true
		p.try(m.N)
	case dinged:
		if f.id != m.ID || f.target != m.From || f.sent >= b.Piece {
			return // the replica is on its way as a whole
		}
		b.Tally.Dings++
		p.rate[m.N].Ding(b.Now())
	case putCancel:
		p.dinger[m.To].Remove(uint64(m.A))
	case replicaAck:
		p.kept(m)
	}
}

// Timer implements Protocol: a flow may have become able to send, or it is time for a target to look at what comes.
func (p *aimd) Timer(arg uint32) {
	if arg&lookKind == 0 {
		p.try(int32(arg))
		return
	}
	p.inspect(int32(arg &^ lookKind))
}

// watch has a target look at what comes when it is due, as long as it has flows.
func (p *aimd) watch(target int32) {
	p.b.Arm(p.look[target], max(p.dinger[target].Due()+units.Nanosecond, p.b.Now()))
}

// inspect has a target look at what comes, and ding.
func (p *aimd) inspect(target int32) {
	b := p.b
	p.ding = p.dinger[target].Look(b.Now(), p.arrivals(target), b.Disks.Backlog(target), p.ding[:0])
	for _, k := range p.ding {
		if n, f := p.flowOf(k); f != nil {
			b.toGateway(Message{Kind: dinged, From: target, To: f.gateway, N: n, ID: f.id}, 0)
		}
	}
	if p.dinger[target].Len() > 0 {
		p.watch(target)
	}
}

// arrivals are the frames that a target sees come, in order. Those that wait at its port come one after the other.
func (p *aimd) arrivals(target int32) []reserve.Arrival {
	if !p.b.Queued {
		return p.coming[target]
	}
	p.seen = p.seen[:0]
	at := p.b.Now()
	p.queue = p.b.Frames.Waiting(target, p.queue[:0])
	for _, x := range p.queue {
		at += x.Takes
		p.seen = append(p.seen, reserve.Arrival{Flow: p.key(int32(x.Arg)), At: at})
	}
	return p.seen
}

// try sends a flow's frames as far as everything allows it.
func (p *aimd) try(n int32) {
	b := p.b
	for {
		f, rate := &p.flows.Items[n], &p.rate[n]
		if !f.started || f.sent >= b.Piece {
			return
		}
		now, need := b.Now(), 8*int64(p.next(f))
		if !p.may(n, rate.When(now, need)) {
			return
		}
		more := p.send(n, rate.Rate())
		if !b.Queued {
			p.expect(f.target, reserve.Arrival{Flow: p.key(n), At: f.free + b.Trip})
		}
		if !more {
			if next := f.replica + 1; int(next) < b.Copies {
				p.ask(f.chunk, next)
			}
			return
		}
		rate.Use(now, need)
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

// Frame implements Protocol.
func (p *aimd) Frame(x Frame) {
	key := p.key(int32(x.Arg))
	coming := p.coming[x.Target]
	for k := range coming {
		if coming[k].Flow == key {
			p.coming[x.Target] = append(coming[:k], coming[k+1:]...)
			break
		}
	}
	f, whole := p.arrives(x)
	if !whole {
		p.dinger[x.Target].Received(key, f.received)
		return
	}
	p.dinger[x.Target].Remove(key)
}

// Restart implements Recovery.
func (p *aimd) Restart(target int32) { p.dinger[target] = reserve.NewDinger(p.b.Times) }

// Floor implements Forecast: frames at the rate that the flow has come to without a ding.
func (p *aimd) Floor() sim.Time {
	b, d := p.b, p.b.Times
	r := reserve.NewAIMD(d)
	r.Use(0, 8*int64(d.ControlSize))
	frames, sent := sim.Time(0), units.Bytes(0)
	for ; b.Piece-sent > b.Frame; sent += b.Frame {
		// The bucket never holds a flow back that waits for its own frames.
		frames += d.Send(b.Frame, r.Rate())
		r.Use(frames, 8*int64(b.Frame))
	}
	last := d.Send(b.Piece-sent, r.Rate())
	if b.Queued {
		last = d.Send(b.Piece-sent, d.Effective)
	}
	return p.floor(frames, last)
}

// Expects implements Forecast: replicas that the target has been asked for.
func (p *aimd) Expects(target int32) (promised, open bool) { return p.dinger[target].Len() > 0, false }
