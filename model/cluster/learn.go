package cluster

import "farflash/sim"

// Durations that nodes learn online: a clock, after which a reply is late, and patience, a high quantile.

// clock is a smoothed mean of durations and of their deviation, as TCP's round-trip estimator (RFC 6298).
type clock struct{ Mean, Spread sim.Time }

// Learn adds a duration.
func (c *clock) Learn(took sim.Time) {
	c.Spread += (max(took-c.Mean, c.Mean-took) - c.Spread) / 4
	c.Mean += (took - c.Mean) / 8
}

// Late returns the duration after which a reply is late, at least the given minimum.
func (c *clock) Late(least sim.Time) sim.Time { return max(c.Mean+8*c.Spread, least) }

// patience estimates the 95th percentile by stochastic approximation (Robbins and Monro 1951), in steps of a
// sixty-fourth of its value.
type patience sim.Time

// Learn adds a duration.
func (p *patience) Learn(took sim.Time) {
	step := max(*p/64, 20)
	if took > sim.Time(*p) {
		*p += step - step/20
	} else {
		*p -= step / 20
	}
}
