package cc

import (
	"math"

	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// dcqcn is DCQCN's reaction point. It has no periodic timer: alpha is brought up to date when a CNP or a cut needs it,
// a check for CNPs is scheduled only while one is pending, and increases are scheduled only while they would change the
// rate.
type dcqcn struct {
	limits
	c    DCQCN
	gain float64
	keep float64 // 1 - gain
	lnK  float64 // ln keep
	// timerFirst: if an increase and a check for CNPs are due at the same instant, the increase comes first. Simulators
	// run the event first that was scheduled earlier, which is the one with the longer period, or the check if the
	// periods are equal.
	timerFirst bool
	qps        []dcqcnState
}

// dcqcnState is the state of a queue pair; its current rate is Sender.Rate.
type dcqcnState struct {
	target   units.BitRate
	alpha    float64
	alphaAt  sim.Time // alpha is up to date as of this end of an interval
	grid     sim.Time // an end of a decrease interval that is not after the next one
	look     sim.Time // when a pending CNP is to be noticed; Forever if none is pending
	increase sim.Time // the timer's next increase; Forever if it would have no effect
	left     int64    // bytes left of the byte counter
	byTimer  uint16   // T; saturates
	byBytes  uint16   // B; saturates
	begun    bool     // the first CNP has arrived
	seen     bool     // a CNP arrived in the current alpha epoch
	hyper    bool     // the last increase was a hyper increase
}

// newDCQCN returns DCQCN. Rates stay at or above minRate.
func newDCQCN(c DCQCN, minRate units.BitRate) (Algorithm, error) {
	if err := possible("dcqcn", minRate, c); err != nil {
		return nil, err
	}
	keep := 1 - float64(c.Gain)
	return &dcqcn{
		limits: limits{minRate, c.Window}, c: c, gain: float64(c.Gain), keep: keep, lnK: rng.Log(keep),
		timerFirst: c.RateIncreaseTimer > c.RateDecreaseInterval,
	}, nil
}

// Wants asks for CNPs, and for sent packets if there is a byte counter.
func (d *dcqcn) Wants() Wants { return Wants{CNPs: true, Sent: d.c.ByteCounter > 0} }

// Start sets line rate.
func (d *dcqcn) Start(q int32, s *Sender) {
	d.qps = grow(d.qps, q)
	d.qps[q] = dcqcnState{
		target: s.Line, alpha: float64(d.c.AlphaInitial),
		look: sim.Forever, increase: sim.Forever, left: int64(d.c.ByteCounter),
	}
	d.start(s)
}

// React first catches up with the actions that are due, so that the order in which the network reports simultaneous
// events does not matter.
func (d *dcqcn) React(q int32, s *Sender, x *Signal) {
	st := &d.qps[q]
	if st.look <= x.Now || st.increase <= x.Now {
		d.catchUp(st, s, x.Now)
	}
	switch x.Kind {
	case CNP:
		d.congested(st, s, x.Now)
	case Sent:
		if !st.begun {
			return
		}
		if st.left -= int64(x.Payload); st.left < 0 && d.c.ByteCounter > 0 {
			d.bytesIncrease(st, s)
		}
	}
	s.Wake = min(st.look, st.increase)
}

// catchUp performs the checks and timer increases that are due, in order.
func (d *dcqcn) catchUp(st *dcqcnState, s *Sender, now sim.Time) {
	for {
		increases := st.increase < st.look || st.increase == st.look && d.timerFirst
		switch {
		case increases && st.increase <= now:
			d.timerIncrease(st, s)
		case !increases && st.look <= now:
			at := st.look
			st.grid, st.look = at, sim.Forever
			d.fold(st, at)
			d.cut(st, s, at)
		default:
			return
		}
	}
}

// congested handles a CNP.
func (d *dcqcn) congested(st *dcqcnState, s *Sender, now sim.Time) {
	if !st.begun {
		st.begun = true
		st.alphaAt = now
		st.grid = now + units.Nanosecond // so that a check comes after alpha's update
		if d.c.RateOnFirstCNP < 1 {
			r := d.bound(times(s.Rate, float64(d.c.RateOnFirstCNP)), s)
			st.target = r
			d.set(s, r)
		}
	} else {
		if now-st.alphaAt >= d.c.AlphaInterval {
			d.fold(st, now)
		}
		st.seen = d.c.AlphaPerEpoch
	}
	raise := !d.c.AlphaPerEpoch
	if raise && (d.c.RaiseFirst || !d.c.CutAtOnce) {
		d.raiseAlpha(st, now)
		raise = false
	}
	if d.c.CutAtOnce {
		d.cut(st, s, now)
	} else if st.look == sim.Forever {
		if behind := now - st.grid; behind >= d.c.RateDecreaseInterval {
			st.grid += behind / d.c.RateDecreaseInterval * d.c.RateDecreaseInterval
		}
		st.look = st.grid + d.c.RateDecreaseInterval
	}
	if raise {
		d.raiseAlpha(st, now)
	}
}

// raiseAlpha updates alpha for a CNP, (1-g) alpha + g, and restarts the interval.
func (d *dcqcn) raiseAlpha(st *dcqcnState, now sim.Time) {
	st.alpha = float64(d.keep*st.alpha) + d.gain
	st.alphaAt = now
}

// steps is the number of intervals up to which alpha's decay is multiplied out, which matches an update per interval
// bit for bit.
const steps = 32

// fold brings alpha up to date by the intervals that have passed.
func (d *dcqcn) fold(st *dcqcnState, now sim.Time) {
	behind := now - st.alphaAt
	if behind < d.c.AlphaInterval {
		return
	}
	n := int64(behind / d.c.AlphaInterval)
	st.alphaAt += sim.Time(n) * d.c.AlphaInterval
	if st.seen {
		st.alpha = float64(d.keep*st.alpha) + d.gain
		st.seen = false
		n--
	}
	if n > steps {
		st.alpha *= decay(d.lnK, n)
		return
	}
	for ; n > 0; n-- {
		st.alpha *= d.keep
	}
}

// decay returns e^(n*ln).
func decay(ln float64, n int64) float64 {
	if math.IsInf(ln, -1) {
		return 0
	}
	return rng.Exp(float64(n) * ln)
}

// cut lowers the rate by alpha/2 and starts recovery. The caller has brought alpha up to date.
func (d *dcqcn) cut(st *dcqcnState, s *Sender, now sim.Time) {
	clamp := true
	switch d.c.ClampTarget {
	case ClampAfterIncrease:
		clamp = st.byTimer|st.byBytes != 0
	case ClampAfterBytes:
		clamp = st.byBytes != 0
	}
	if clamp {
		st.target = s.Rate
	}
	if clamp || !d.c.KeepByteCount {
		st.left = int64(d.c.ByteCounter)
	}
	d.set(s, d.bound(times(s.Rate, 1-float64(st.alpha/2)), s))
	st.byTimer, st.byBytes, st.hyper = 0, 0, false
	st.increase = now + d.c.RateIncreaseTimer
}

// timerIncrease performs the increase that was due at st.increase.
func (d *dcqcn) timerIncrease(st *dcqcnState, s *Sender) {
	period := d.c.RateIncreaseTimer
	if d.c.HyperHalves && st.hyper {
		period /= 2
	}
	before := s.Rate
	was := st.byTimer
	if st.byTimer < math.MaxUint16 {
		st.byTimer++
	}
	if d.c.StageFromZero {
		d.raise(st, s, was, st.byBytes, true)
	} else {
		d.raise(st, s, st.byTimer, st.byBytes, true)
	}
	st.increase += period
	// Once at rest, further increases have no effect until a cut: the target is at its maximum, and the rate, which
	// integer division may keep slightly below, stays. T need not count either, because a cut only tests whether it is
	// 0.
	if s.Rate == before && st.target == s.Line && !d.c.TargetUnbounded {
		st.increase = sim.Forever
	}
}

// bytesIncrease performs an increase by the byte counter.
func (d *dcqcn) bytesIncrease(st *dcqcnState, s *Sender) {
	st.left = int64(d.c.ByteCounter)
	if d.c.HyperHalves && st.hyper {
		st.left /= 2
	}
	was := st.byBytes
	if st.byBytes < math.MaxUint16 {
		st.byBytes++
	}
	if d.c.StageFromZero {
		d.raise(st, s, st.byTimer, was, false)
	} else {
		d.raise(st, s, st.byTimer, st.byBytes, false)
	}
}

// raise increases target and rate at the stages t and b.
func (d *dcqcn) raise(st *dcqcnState, s *Sender, t, b uint16, timer bool) {
	if d.c.ByteCounter == 0 {
		b = t
	}
	f := d.c.FastRecovery
	past := int(min(t, b)) - f
	if d.c.HyperAtF {
		past++
	}
	var more units.BitRate
	st.hyper = past >= 1 && (timer || st.hyper || !d.c.HyperByTimer)
	switch {
	case int(max(t, b)) < f: // fast recovery
	case st.hyper && d.c.HyperFlat:
		more = d.c.RateHAI
	case st.hyper:
		more = times(d.c.RateHAI, float64(past))
	default:
		more = d.c.RateAI
	}
	if d.c.TargetCut && (t == 1 || b == 1) && st.target > 10*s.Rate {
		st.target /= 8
	} else {
		st.target = min(st.target+more, top)
	}
	if !d.c.TargetUnbounded {
		st.target = min(st.target, s.Line)
	}
	d.set(s, d.bound(s.Rate/2+st.target/2, s))
}
