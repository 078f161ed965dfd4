package reserve

import (
	"farflash/numeric/units"
	"farflash/sim"
)

// Leaky is a bucket of bits that fills at a rate. Who sends takes from it. As a receiver's it is taken from by remote
// senders at the moment they send: an oracle, which makes UCH-CCP better than any real protocol.
type Leaky struct {
	compat      Compat
	room, value int64 // bits
	rest        int64 // of a bit, in trillionths
	rate        units.BitRate
	seen        sim.Time
}

// NewLeaky returns a full bucket with room for a frame and a control message.
func NewLeaky(d *Durations, rate units.BitRate) Leaky {
	room := d.bucketRoom()
	return Leaky{compat: d.Compat, room: room, value: room, rate: rate}
}

// bucketRoom is a frame and a control message in bits. The unicast protocols of SURGE make their control messages
// smaller after that is computed.
func (d *Durations) bucketRoom() int64 {
	if d.Compat.ignoresOptions() {
		return 8 * int64(d.FrameSize+surgeControl)
	}
	return 8 * int64(d.FrameSize+d.ControlSize)
}

// fill adds what has come since the bucket was last looked at.
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

// Holds reports whether so many bits are in the bucket.
func (l *Leaky) Holds(now sim.Time, bits int64) bool {
	l.fill(now)
	return bits <= l.value
}

// Use takes so many bits out, if they are there.
func (l *Leaky) Use(now sim.Time, bits int64) bool {
	if !l.Holds(now, bits) {
		return false
	}
	l.value -= bits
	return true
}

// When is the earliest time from now on at which so many bits will be there if nobody takes any, or sim.Forever. It
// does not look at the bucket in the sense of Compat.
func (l *Leaky) When(now sim.Time, bits int64) sim.Time {
	missing := bits - l.value
	switch {
	case missing <= 0:
		return now
	case bits > l.room || l.rate <= 0:
		return sim.Forever
	}
	// The least t for which t times the rate, and the rest, make up the missing bits, all in trillionths; one of the
	// bits is counted apart so that nothing is negative.
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

// Rate is the rate at which the bucket fills.
func (l *Leaky) Rate() units.BitRate { return l.rate }

// AIMD is a Leaky bucket that fills faster after each frame and a control message sent, and at half the rate after
// each ding.
type AIMD struct {
	Leaky
	step, top units.BitRate
	every     int64 // bits to send until the next step
	left      int64
}

// dingDivisor is what a ding divides the rate by.
const dingDivisor = 2

// NewAIMD returns a full bucket at the least rate, a tenth of the link's.
func NewAIMD(d *Durations) AIMD {
	step, every := d.LinkRate/10, 8*int64(d.FrameSize+d.ControlSize)
	if d.Compat.ignoresOptions() {
		step, every = surgeLink/10, 8*int64(surgeFrame+surgeControl)
	}
	return AIMD{Leaky: NewLeaky(d, step), step: step, top: d.Effective, every: every, left: every}
}

// Use takes so many bits out, if they are there, and raises the rate when enough have been.
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

// Ding halves the rate, but not below the least.
func (a *AIMD) Ding(now sim.Time) {
	if !a.compat.dingsThePast() {
		a.fill(now)
	}
	a.rate = max(a.rate/dingDivisor, a.step)
	a.left = a.every
}

// Pacer lets one message at a time through, at a rate. It is how the proxy's control messages are kept to their
// share.
type Pacer struct {
	d    *Durations
	rate units.BitRate
	next sim.Time
}

// NewPacer returns a Pacer that is ready.
func NewPacer(d *Durations, rate units.BitRate) Pacer { return Pacer{d: d, rate: rate} }

// Ready reports whether the message before has been sent.
func (p *Pacer) Ready(now sim.Time) bool { return now >= p.next }

// Next is when it will have been.
func (p *Pacer) Next() sim.Time { return p.next }

// Use sends a message of so many bytes, if the one before has been sent.
func (p *Pacer) Use(now sim.Time, size units.Bytes) bool {
	if !p.Ready(now) {
		return false
	}
	p.next = now + p.d.Send(size, p.rate)
	return true
}

// SetRate changes the rate of the messages that follow.
func (p *Pacer) SetRate(rate units.BitRate) { p.rate = rate }
