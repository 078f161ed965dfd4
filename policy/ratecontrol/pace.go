package ratecontrol

import "farflash/numeric/units"

// Pace lets bytes go at a rate: the next may go when those before it have had their time (the generic cell rate
// algorithm; ITU-T I.371, annex A). What goes is whole commands, so one may begin as soon as any credit is left, and
// the next waits for all of it. What was not used within a slack is lost.
//
// It is a plain state machine that is told the time, which never falls from one call to the next.
type Pace struct {
	slack units.Duration
	rate  float64        // bytes a second; 0 is no limit
	due   units.Duration // when the next may go
}

// NewPace makes one without a limit; slack is for how long it may catch up on what it has not used.
func NewPace(slack units.Duration) Pace { return Pace{slack: slack} }

// SetRate gives it another rate, in bytes a second; 0 or less is no limit. What has gone already has its time at the
// new one.
func (p *Pace) SetRate(now units.Duration, rate float64) {
	rate = max(rate, 0)
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

// Due is when something may go: now, or later.
func (p *Pace) Due(now units.Duration) units.Duration {
	if p.rate == 0 {
		return now
	}
	return max(p.due, now)
}

// Open reports whether something may go now.
func (p *Pace) Open(now units.Duration) bool { return p.rate == 0 || now >= p.due }

// Take notes that so many bytes go.
func (p *Pace) Take(now units.Duration, bytes int64) {
	if p.rate > 0 {
		from := max(p.due, now-p.slack)
		p.due = from + min(units.Seconds(float64(bytes)/p.rate), units.Forever-max(from, 0))
	}
}
