package put

import (
	"farflash/model/cluster/reserve"
	"farflash/numeric/units"
	"farflash/sim"
)

// Numbers of UCH-CCP's variants.
const (
	// UCH is SURGE's UCH-CCP (model 5): random targets, unicast, and each receiver divides its link among its flows.
	UCH Scheme = 0
	// UCHInverse is the same, but a flow's share of the link is larger the less it has left to send.
	UCHInverse Scheme = 1
)

var (
	uchEqual = Traits{Name: "uch-ccp", Number: "5", Build: CompatSURGE, Finds: FindsPlaced,
		Times: reserve.UnicastConfig, Messages: unicastMessages,
		New: func(b *Bus) Protocol { return newUCH(b, reserve.DivideEqually) }}
	uchInverse = Traits{Name: "uch-ccp-inverse", Build: CompatSURGE, Finds: FindsPlaced, Times: reserve.UnicastConfig,
		Messages: unicastMessages,
		New:      func(b *Bus) Protocol { return newUCH(b, reserve.DivideByRemaining) }}
)

// uch is UCH-CCP, unicast with consistent hashing and captive congestion points (the Replicast paper, section IV-B;
// SURGE's model 5). A gateway puts replicas as unicast does. A target answers with a rate: its link divided by its
// number of flows. When that number changes, it sends the new rate to the flows that continue for a while.
type uch struct {
	unicast
	division reserve.Division
	share    []*reserve.Share // by target: the division of its link
	changed  []reserve.Rate
}

func newUCH(b *Bus, division reserve.Division) *uch {
	u := &uch{unicast: newUnicast(b), division: division}
	u.pick = chooser{b: b, chosen: func(i int32) { u.ask(i, 0) }, coming: func(t int32) int { return u.share[t].Len() }}
	for range b.Targets {
		u.share = append(u.share, reserve.NewShare(b.Times, division))
	}
	return u
}

// ask starts a replica.
func (u *uch) ask(i int32, replica int8) {
	n := u.unicast.ask(i, replica)
	f := &u.flows.Items[n]
	f.own = reserve.NewLeaky(u.b.Times, 0)
	f.own.Use(u.b.Now(), 8*int64(u.b.Times.ControlSize))
}

// Message implements Protocol.
func (u *uch) Message(m *Message) {
	b := u.b
	if u.pick.message(m) {
		return
	}
	f := &u.flows.Items[m.N]
	switch m.Kind {
	case putRequest:
		if f.id != m.ID {
			return // abandoned before the request arrived
		}
		rate := u.share[m.To].Admit(u.key(m.N), f.piece)
		b.toGateway(Message{Kind: rateInit, From: m.To, To: f.gateway, N: m.N, ID: m.ID, A: sim.Time(rate)},
			b.Times.UnicastDelay(b.Disks.Backlog(m.To)))
		u.divide(m.To)
	case rateInit:
		if f.id != m.ID {
			return
		}
		f.started = true
		u.setRate(m.N, f.waiting, units.BitRate(m.A))
	case rateSet:
		switch {
		case f.id != m.ID || f.sent >= f.piece:
		// The new rate has overtaken the answer to the request, which may be delayed at the target.
		case !f.started:
			f.waiting = units.BitRate(m.A)
		default:
			u.setRate(m.N, units.BitRate(m.A), 0)
		}
	case putCancel:
		if u.share[m.To].Remove(uint64(m.A)) {
			u.divide(m.To)
		}
	case replicaAck:
		u.kept(m)
	}
}

// setRate continues a flow at a rate, or if that is 0, at the other one.
func (u *uch) setRate(n int32, rate, otherwise units.BitRate) {
	f := &u.flows.Items[n]
	if f.rate = rate; rate == 0 {
		f.rate = otherwise
	}
	f.own.SetRate(u.b.Now(), f.rate)
	u.try(n)
}

// divide has a target send its flows their new rates after their number has changed.
func (u *uch) divide(target int32) {
	u.changed = u.share[target].Divide(u.changed[:0])
	for _, r := range u.changed {
		if n, f := u.flowOf(r.Flow); f != nil {
			u.b.toGateway(Message{Kind: rateSet, From: target, To: f.gateway, N: n, ID: f.id, A: sim.Time(r.Rate)}, 0)
		}
	}
}

// Timer implements Protocol: a flow may be able to send.
func (u *uch) Timer(n uint32) { u.try(int32(n)) }

// try sends frames of a flow until a rate, the link or the port holds it back.
func (u *uch) try(n int32) {
	b := u.b
	for {
		f := &u.flows.Items[n]
		if f.rate == 0 || f.sent >= f.piece {
			return
		}
		now, need := b.Now(), 8*int64(u.next(f))
		if !u.may(n, f.own.When(now, need)) {
			return
		}
		if !u.send(n, f.rate) {
			if next := f.replica + 1; int(next) < b.Copies {
				u.ask(f.chunk, next)
			}
			return
		}
		f.own.Use(now, need)
	}
}

// Frame implements Protocol.
func (u *uch) Frame(x Frame) {
	f, whole := u.arrives(x)
	share, key := u.share[f.target], u.key(int32(x.Arg))
	if !whole {
		share.Received(key, f.received)
		return
	}
	share.Remove(key)
	u.divide(f.target)
}

// Abandon implements Recovery.
func (u *uch) Abandon(i int32) {
	for _, n := range u.of[i] {
		if n >= 0 {
			u.flows.Items[n].rate = 0
		}
	}
	u.unicast.Abandon(i)
}

// Restart implements Recovery.
func (u *uch) Restart(target int32) { u.share[target] = reserve.NewShare(u.b.Times, u.division) }

// Floor implements Forecast: frames at the link's rate.
func (u *uch) Floor(p *Plan) sim.Time {
	d := p.Times
	full := (p.Piece - 1) / p.Frame
	return p.oneByOne(sim.Time(full)*d.Frame, d.Send(p.Piece-full*p.Frame, d.Effective))
}

// Expects implements Forecast: flows to which the target has assigned a rate.
func (u *uch) Expects(target int32) (promised, open bool) { return u.share[target].Len() > 0, false }
