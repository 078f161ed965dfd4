package cluster

import "farflash/sim"

// Durations that nodes learn online: a clock, after which a reply is late, and patience, a high quantile.

// clock is a smoothed mean of durations and of their deviation, as TCP's round-trip estimator (RFC 6298).
type clock struct{ mean, spread sim.Time }

// learn adds a duration.
func (c *clock) learn(took sim.Time) {
	c.spread += (max(took-c.mean, c.mean-took) - c.spread) / 4
	c.mean += (took - c.mean) / 8
}

// late returns the duration after which a reply is late, at least the given minimum.
func (c *clock) late(least sim.Time) sim.Time { return max(c.mean+8*c.spread, least) }

// patience estimates the 95th percentile by stochastic approximation (Robbins and Monro 1951), in steps of a
// sixty-fourth of its value.
type patience sim.Time

// learn adds a duration.
func (p *patience) learn(took sim.Time) {
	step := max(*p/64, 20)
	if took > sim.Time(*p) {
		*p += step - step/20
	} else {
		*p -= step / 20
	}
}
