package repair

import "farflash/sim"

// Trip is the round trip of a queue pair, its mean and its deviation, measured on one packet at a time that was sent
// once (RFC 6298, sections 2 and 3).
type Trip struct {
	mean, spread sim.Time
	Since        sim.Time // Since is when the packet was sent on which it is being measured.
}

// Measured takes into account that the packet was acknowledged, and returns how long one may take.
func (x *Trip) Measured(now sim.Time) sim.Time {
	if t := now - x.Since; x.mean == 0 {
		x.mean, x.spread = t, t/2
	} else {
		x.spread += (max(x.mean-t, t-x.mean) - x.spread) / 4
		x.mean += (t - x.mean) / 8
	}
	return x.mean + 4*x.spread
}
