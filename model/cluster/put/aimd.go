package put

import (
	"farflash/model/cluster/reserve"
	"farflash/numeric/units"
	"farflash/sim"
)

// UCHAIMD is SURGE's UCH-AIMD (model 6): as UCH, but senders speed up until a target dings them.
const UCHAIMD Scheme = 8

var uchAIMD = Traits{Name: "uch-aimd", Number: "6", Build: CompatSURGE, Finds: FindsPlaced, SeesPorts: true,
	Times: reserve.UnicastConfig, Messages: unicastMessages,
	New: func(b *Bus) Protocol { return newAIMD(b) }}

// aimd is UCH-AIMD, unicast with consistent hashing and additive increase, multiplicative decrease (SURGE's model 6). A
// gateway puts replicas as unicast does, but targets do not assign rates. Each replica starts at a tenth of its link
// and gains that much after every frame and control message sent. A target dings senders when frames arrive too closely
// spaced or its disk queue is full, and each ding halves a rate.
//
// A target observes the frames that wait at its port (control.queued). In SURGE, and without control.queued, it
// observes the frames in flight to it.
type aimd struct {
	unicast
	rate   []reserve.AIMD    // by flow
	dinger []*reserve.Dinger // by target
	look   []sim.Timer       // by target
	coming [][]reserve.Arrival
	seen   []reserve.Arrival
	queue  []WaitingFrame
	ding   []uint64
}

// lookKind flags a timer's argument as a target's.
const lookKind = 1 << 31

func newAIMD(b *Bus) *aimd {
	a := &aimd{unicast: newUnicast(b), coming: make([][]reserve.Arrival, b.Targets)}
	a.pick = chooser{b: b, chosen: func(i int32) { a.ask(i, 0) },
		coming: func(t int32) int { return a.dinger[t].Len() }}
	for t := range b.Targets {
		a.dinger = append(a.dinger, reserve.NewDinger(b.Times))
		a.look = append(a.look, b.NewTimer(lookKind|uint32(t)))
	}
	return a
}

// ask starts a replica.
func (a *aimd) ask(i int32, replica int8) {
	n := a.unicast.ask(i, replica)
	for int(n) >= len(a.rate) {
		a.rate = append(a.rate, reserve.AIMD{})
	}
	a.rate[n] = reserve.NewAIMD(a.b.Times)
	// The request counts against the flow's rate.
	a.rate[n].Use(a.b.Now(), 8*int64(a.b.Times.ControlSize))
}

// Message implements Protocol.
func (a *aimd) Message(m *Message) {
	b := a.b
	if a.pick.message(m) {
		return
	}
	f := &a.flows.Items[m.N]
	switch m.Kind {
	case putRequest:
		if f.id != m.ID {
			return // abandoned before the request arrived
		}
		a.dinger[m.To].Admit(a.key(m.N), f.piece)
		b.toGateway(Message{Kind: rateInit, From: m.To, To: f.gateway, N: m.N, ID: m.ID},
			b.Times.UnicastDelay(b.Disks.Backlog(m.To)))
		a.watch(m.To)
	case rateInit:
		if f.id != m.ID {
			return
		}
		f.started = true
		a.try(m.N)
	case dinged:
		if f.id != m.ID || f.target != m.From || f.sent >= f.piece {
			return // the replica has been sent in full
		}
		b.Tally.Dings++
		a.rate[m.N].Ding(b.Now())
	case putCancel:
		a.dinger[m.To].Remove(uint64(m.A))
	case replicaAck:
		a.kept(m)
	}
}

// Timer implements Protocol: a flow may be able to send, or a target's inspection is due.
func (a *aimd) Timer(arg uint32) {
	if arg&lookKind == 0 {
		a.try(int32(arg))
		return
	}
	a.inspect(int32(arg &^ lookKind))
}

// watch arms a target's next inspection, as long as it has flows.
func (a *aimd) watch(target int32) {
	a.b.Arm(a.look[target], max(a.dinger[target].Due()+units.Nanosecond, a.b.Now()))
}

// inspect has a target examine the incoming frames and ding senders.
func (a *aimd) inspect(target int32) {
	b := a.b
	a.ding = a.dinger[target].Look(b.Now(), a.arrivals(target), b.Disks.Backlog(target), a.ding[:0])
	for _, k := range a.ding {
		if n, f := a.flowOf(k); f != nil {
			b.toGateway(Message{Kind: dinged, From: target, To: f.gateway, N: n, ID: f.id}, 0)
		}
	}
	if a.dinger[target].Len() > 0 {
		a.watch(target)
	}
}

// arrivals returns the incoming frames that a target observes, in order. Those at its port arrive back to back.
func (a *aimd) arrivals(target int32) []reserve.Arrival {
	if !a.b.Queued {
		return a.coming[target]
	}
	a.seen = a.seen[:0]
	at := a.b.Now()
	a.queue = a.b.Frames.Waiting(target, a.queue[:0])
	for _, x := range a.queue {
		at += x.Takes
		a.seen = append(a.seen, reserve.Arrival{Flow: a.key(int32(x.Arg)), At: at})
	}
	return a.seen
}

// try sends frames of a flow until a rate, the link or the port holds it back.
func (a *aimd) try(n int32) {
	b := a.b
	for {
		f, rate := &a.flows.Items[n], &a.rate[n]
		if !f.started || f.sent >= f.piece {
			return
		}
		now, need := b.Now(), 8*int64(a.next(f))
		if !a.may(n, rate.When(now, need)) {
			return
		}
		more := a.send(n, rate.Rate())
		if !b.Queued {
			a.expect(f.target, reserve.Arrival{Flow: a.key(n), At: f.free + b.Trip})
		}
		if !more {
			if next := f.replica + 1; int(next) < b.Copies {
				a.ask(f.chunk, next)
			}
			return
		}
		rate.Use(now, need)
	}
}

// expect inserts a frame into the list of those in flight to a target.
func (a *aimd) expect(target int32, next reserve.Arrival) {
	list := append(a.coming[target], next)
	for k := len(list) - 1; k > 0 && list[k-1].At > next.At; k-- {
		list[k], list[k-1] = list[k-1], list[k]
	}
	a.coming[target] = list
}

// Frame implements Protocol.
func (a *aimd) Frame(x Frame) {
	key := a.key(int32(x.Arg))
	coming := a.coming[x.Target]
	for k := range coming {
		if coming[k].Flow == key {
			a.coming[x.Target] = append(coming[:k], coming[k+1:]...)
			break
		}
	}
	f, whole := a.arrives(x)
	if !whole {
		a.dinger[x.Target].Received(key, f.received)
		return
	}
	a.dinger[x.Target].Remove(key)
}

// Restart implements Recovery.
func (a *aimd) Restart(target int32) { a.dinger[target] = reserve.NewDinger(a.b.Times) }

// Floor implements Forecast: frames at the rate that the flow reaches without a ding.
func (a *aimd) Floor(p *Plan) sim.Time {
	d := p.Times
	r := reserve.NewAIMD(d)
	r.Use(0, 8*int64(d.ControlSize))
	frames, sent := sim.Time(0), units.Bytes(0)
	for ; p.Piece-sent > p.Frame; sent += p.Frame {
		// The bucket never holds a flow back while it waits for its own frames.
		frames += d.Send(p.Frame, r.Rate())
		r.Use(frames, 8*int64(p.Frame))
	}
	last := d.Send(p.Piece-sent, r.Rate())
	if p.Queued {
		last = d.Send(p.Piece-sent, d.Effective)
	}
	return p.oneByOne(frames, last)
}

// Expects implements Forecast: replicas that the target has been asked to accept.
func (a *aimd) Expects(target int32) (promised, open bool) { return a.dinger[target].Len() > 0, false }
