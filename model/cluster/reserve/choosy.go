package reserve

import "farflash/sim"

// Choosy is a Sequence that declines offers that are too far away: it cancels all bids and asks again soon, with twice
// the patience each time. It is the gateway of SURGE's last build, models 8 and 9.
type Choosy struct {
	Sequence
	wait, before sim.Time // patience now, and just before the last Start
}

// NewChoosy returns a Choosy for one gateway.
func NewChoosy(d *Durations) *Choosy {
	return &Choosy{Sequence: Sequence{d: d, previous: never}, wait: d.MaxBidWait, before: d.MaxBidWait}
}

// Start begins a chunk. The patience becomes the mean of its present value and the value before the last Start.
func (c *Choosy) Start() {
	c.Sequence.Start()
	c.wait, c.before = c.d.Compat.cut((c.wait+c.before)/2), c.wait
}

// Patience returns half the distance from which the best offer makes the gateway ask again.
func (c *Choosy) Patience() sim.Time { return c.wait }

// Choose is Sequence.Choose, except that it makes no choice and doubles the patience if the best offer is too far away.
func (c *Choosy) Choose(now sim.Time, o *Offers, missing int, dst []Pick) []Pick {
	from := len(dst)
	dst = c.Sequence.Choose(now, o, missing, dst)
	if len(dst) > from && dst[from].Window.Left-now >= 2*c.wait {
		c.wait *= 2
		dst = dst[:from]
	}
	return dst
}

// More is Sequence.More; after no choice, the next request is due after a quarter of the patience.
func (c *Choosy) More(now sim.Time, picks []Pick) (at, notBefore sim.Time) {
	if len(picks) > 0 {
		return c.Sequence.More(now, picks)
	}
	soon := c.d.Compat.cut(now + c.wait/4)
	return max(soon, c.settled(now)), soon
}

// Rejected returns when to ask for the replica lost to a late rejection. planned is when the next request is due, or
// sim.Forever, and planNotBefore is its notBefore; sent is when the last control message left; lastRight is the end of
// the last window that the gateway still has in this negotiation, or 0.
func (c *Choosy) Rejected(now, planned, planNotBefore, sent, lastRight sim.Time) (at, notBefore sim.Time) {
	if planned < now+c.d.Control {
		return planned, planNotBefore // soon enough
	}
	at = max(now, c.d.Compat.cut(sent+c.d.Trip+c.d.Control/2))
	return at, max(now, lastRight)
}
