package ratecontrol

import (
	"math"

	"farflash/numeric/units"
)

// Pace limits a flow to a rate by the generic cell rate algorithm (ITU-T I.371, annex A): a whole command starts as
// soon as any credit is left, and the next waits until all of it is paid. Unused time beyond the slack is lost. Its
// caller supplies the time, which must not decrease.
type Pace struct {
	slack units.Duration
	rate  float64        // bytes per second; 0: no limit
	due   units.Duration // when the next may go
}

// NewPace returns a Pace without a limit, which may catch up on slack.
func NewPace(slack units.Duration) Pace {
	if slack < 0 {
		panic("ratecontrol: NewPace with a negative slack")
	}
	return Pace{slack: slack}
}

// SetRate sets bytes per second; 0 or less, infinity and NaN mean no limit. It rescales bytes not yet paid for.
func (p *Pace) SetRate(now units.Duration, rate float64) {
	if !(rate > 0 && rate <= math.MaxFloat64) {
		rate = 0
	}
	switch {
	case rate == p.rate:
		return
	case p.rate == 0 || rate == 0:
		p.due = now
	case p.due > now:
		p.due = now + min(units.Seconds(float64((p.due-now).Seconds()*p.rate)/rate), units.Forever-now)
	}
	p.rate = rate
}

// Due returns the earliest time at which the next bytes may go, at least now.
func (p *Pace) Due(now units.Duration) units.Duration {
	if p.rate == 0 {
		return now
	}
	return max(p.due, now)
}

// Open reports whether bytes may go now.
func (p *Pace) Open(now units.Duration) bool { return p.rate == 0 || now >= p.due }

// Take records that bytes, not fewer than 0, go now.
func (p *Pace) Take(now units.Duration, bytes int64) {
	if bytes < 0 {
		panic("ratecontrol: Pace.Take of fewer than 0 bytes")
	}
	if p.rate > 0 {
		from := max(p.due, now-p.slack)
		p.due = from + min(units.Seconds(float64(bytes)/p.rate), units.Forever-max(from, 0))
	}
}
