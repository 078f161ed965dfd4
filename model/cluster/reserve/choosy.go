package reserve

import "farflash/sim"

// Choosy is a Sequence that does not take what is too far away: it cancels all and asks again soon, twice as patient
// each time. It is the gateway of SURGE's last build, models 8 and 9.
type Choosy struct {
	Sequence
	wait, before sim.Time // its patience now, and when the chunk before began
}

// NewChoosy returns a Choosy for one gateway.
func NewChoosy(d *Durations) *Choosy {
	return &Choosy{Sequence: Sequence{d: d, previous: never}, wait: d.MaxBidWait, before: d.MaxBidWait}
}

// Start begins a chunk; patience goes half way back to what it was.
func (c *Choosy) Start() {
	c.Sequence.Start()
	c.wait, c.before = c.d.Compat.cut((c.wait+c.before)/2), c.wait
}

// Patience is how far away the best offer may be before half of what makes the gateway ask again.
func (c *Choosy) Patience() sim.Time { return c.wait }

// Choose is Sequence.Choose, or takes nothing and is twice as patient from then on, if the best offer is too far
// away.
func (c *Choosy) Choose(now sim.Time, o *Offers, missing int, dst []Pick) []Pick {
	from := len(dst)
	dst = c.Sequence.Choose(now, o, missing, dst)
	if len(dst) > from && dst[from].Window.Left-now >= 2*c.wait {
		c.wait *= 2
		dst = dst[:from]
	}
	return dst
}

// More is Sequence.More, and after nothing was taken a quarter of the patience from now.
func (c *Choosy) More(now sim.Time, picks []Pick) (at, notBefore sim.Time) {
	if len(picks) > 0 {
		return c.Sequence.More(now, picks)
	}
	soon := c.d.Compat.cut(now + c.wait/4)
	return max(soon, c.settled(now)), soon
}

// Rejected says when to ask for the replica that a late rejection has taken away. planned is when the next request
// was to be sent, or sim.Forever, and planNotBefore what it was to ask for; sent is when the last control message
// left; lastRight is the end of the last window that the gateway still has of this negotiation, or 0.
func (c *Choosy) Rejected(now, planned, planNotBefore, sent, lastRight sim.Time) (at, notBefore sim.Time) {
	if planned < now+c.d.Control {
		return planned, planNotBefore // soon enough
	}
	at = max(now, c.d.Compat.cut(sent+c.d.Trip+c.d.Control/2))
	return at, max(now, lastRight)
}
