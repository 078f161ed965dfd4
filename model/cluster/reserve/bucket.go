package reserve

import (
	"farflash/numeric/units"
	"farflash/sim"
)

// Leaky is a bucket of bits that fills at a rate and that senders draw from. As a receiver's bucket it is debited by
// remote senders at the moment they send: an oracle, which makes UCH-CCP better than any real protocol.
type Leaky struct {
	compat      Compat
	room, value int64 // in bits
	rest        int64 // fraction of a bit, in units of 1e-12
	rate        units.BitRate
	seen        sim.Time
}

// NewLeaky returns a full bucket with capacity for a frame and a control message.
func NewLeaky(d *Durations, rate units.BitRate) Leaky {
	room := d.bucketRoom()
	return Leaky{compat: d.Compat, room: room, value: room, rate: rate}
}

// bucketRoom returns the size of a frame and a control message in bits. SURGE computes it before its unicast protocols
// reduce the size of their control messages.
func (d *Durations) bucketRoom() int64 {
	if d.Compat.ignoresOptions() {
		return 8 * int64(d.FrameSize+surgeControl)
	}
	return 8 * int64(d.FrameSize+d.ControlSize)
}

// fill adds the bits accumulated since the last update.
func (l *Leaky) fill(now sim.Time) {
	if now <= l.seen {
		return
	}
	if l.value < l.room {
		bits, rest := muldivrem(int64(now-l.seen), int64(l.rate), l.rest, int64(units.Second))
		if l.compat.losesFractions() {
			rest = 0
		}
		l.rest = rest
		if l.value += min(bits, l.room); l.value >= l.room {
			l.value, l.rest = l.room, 0
		}
	}
	l.seen = now
}

// holds reports whether the bucket holds at least the given number of bits.
func (l *Leaky) holds(now sim.Time, bits int64) bool {
	l.fill(now)
	return bits <= l.value
}

// Use removes bits from the bucket, if it holds that many.
func (l *Leaky) Use(now sim.Time, bits int64) bool {
	if !l.holds(now, bits) {
		return false
	}
	l.value -= bits
	return true
}

// When returns the earliest time from now on at which the bucket will hold the given number of bits if none are removed
// before, or sim.Forever. It does not update the bucket, which matters under Compat (losesFractions).
func (l *Leaky) When(now sim.Time, bits int64) sim.Time {
	missing := bits - l.value
	switch {
	case missing <= 0:
		return now
	case bits > l.room || l.rate <= 0:
		return sim.Forever
	}
	// The least t for which t times the rate, plus rest, makes up the missing bits, all in units of 1e-12 bits. One of
	// the bits is accounted separately so that no term is negative.
	t, _ := muldivrem(missing-1, int64(units.Second), int64(units.Second)-l.rest+int64(l.rate)-1, int64(l.rate))
	at := l.seen + sim.Time(t)
	if l.compat.wholeNanoseconds() {
		at += (units.Nanosecond - at%units.Nanosecond) % units.Nanosecond
	}
	return max(now, at)
}

// SetRate changes the rate from now on.
func (l *Leaky) SetRate(now sim.Time, rate units.BitRate) {
	l.fill(now)
	l.rate = rate
}

// Rate returns the rate at which the bucket fills.
func (l *Leaky) Rate() units.BitRate { return l.rate }

// AIMD is a Leaky bucket whose rate rises by a step after each frame and control message sent, and halves at each ding.
type AIMD struct {
	Leaky
	step, top units.BitRate
	every     int64 // bits to send until the next step
	left      int64
}

// dingDivisor is the factor by which a ding reduces the rate.
const dingDivisor = 2

// NewAIMD returns a full bucket at the minimum rate, a tenth of the link's.
func NewAIMD(d *Durations) AIMD {
	step, every := d.LinkRate/10, 8*int64(d.FrameSize+d.ControlSize)
	if d.Compat.ignoresOptions() {
		step, every = surgeLink/10, 8*int64(surgeFrame+surgeControl)
	}
	return AIMD{Leaky: NewLeaky(d, step), step: step, top: d.Effective, every: every, left: every}
}

// Use removes bits from the bucket, if it holds that many, and raises the rate after every frame and control message's
// worth.
func (a *AIMD) Use(now sim.Time, bits int64) bool {
	if !a.Leaky.Use(now, bits) {
		return false
	}
	if a.left -= bits; a.left <= 0 {
		a.rate = min(a.rate+a.step, a.top)
		a.left = a.every
	}
	return true
}

// Ding halves the rate, but not below the minimum.
func (a *AIMD) Ding(now sim.Time) {
	if !a.compat.dingsThePast() {
		a.fill(now)
	}
	a.rate = max(a.rate/dingDivisor, a.step)
	a.left = a.every
}

// Pacer admits one message at a time, at a rate. It limits the proxy's control messages to their share of the link.
type Pacer struct {
	d    *Durations
	rate units.BitRate
	next sim.Time
}

// NewPacer returns a Pacer that is ready.
func NewPacer(d *Durations, rate units.BitRate) Pacer { return Pacer{d: d, rate: rate} }

// ready reports whether the previous message has been sent.
func (p *Pacer) ready(now sim.Time) bool { return now >= p.next }

// Next returns the time at which the previous message will have been sent.
func (p *Pacer) Next() sim.Time { return p.next }

// Use sends a message of the given size, if the previous one has been sent.
func (p *Pacer) Use(now sim.Time, size units.Bytes) bool {
	if !p.ready(now) {
		return false
	}
	p.next = now + p.d.Send(size, p.rate)
	return true
}

// SetRate changes the rate for later messages.
func (p *Pacer) SetRate(rate units.BitRate) { p.rate = rate }
