// Package learn has what nodes learn of how long things take: a Clock, after what time something is late, and a
// Patience, what few take longer than. It leaves out what is done about that.
package learn

import "farflash/sim"

// Clock is a smoothed mean of times, and their deviation from it, as TCP has them of round trips (RFC 6298).
type Clock struct{ Mean, Spread sim.Time }

// Learn takes a time in.
func (c *Clock) Learn(took sim.Time) {
	c.Spread += (max(took-c.Mean, c.Mean-took) - c.Spread) / 4
	c.Mean += (took - c.Mean) / 8
}

// Late is after what time something is late, which is not less than a least.
func (c *Clock) Late(least sim.Time) sim.Time { return max(c.Mean+8*c.Spread, least) }

// Patience is what 19 of 20 take no longer than, by stochastic approximation (Robbins and Monro 1951), a sixty-fourth
// of itself at a time.
type Patience sim.Time

// Learn takes a time in.
func (p *Patience) Learn(took sim.Time) {
	step := max(*p/64, 20)
	if took > sim.Time(*p) {
		*p += step - step/20
	} else {
		*p -= step / 20
	}
}
