package put

import "farflash/sim"

// Overlap counts how often a target is asked for a bid while another of its bids is still tentative, so that the new
// one has to go behind a window which may never be used (the Replicast paper, section IV-H and table 5).
type Overlap struct {
	Asked    uint64   // requests that came to targets
	Behind   uint64   // of those, while another bid was tentative
	Decided  uint64   // bids that were accepted or canceled
	Deciding sim.Time // the sum of the times for which those were tentative
}

// asked counts a request before its target answers it.
func (o *Overlap) asked(q asked) {
	o.Asked++
	if q.Tentative() {
		o.Behind++
	}
}

// decided counts a gateway's answer before its target does what it says.
func (o *Overlap) decided(q answered, now sim.Time, chunk uint64) {
	if t, ok := q.Undecided(now, chunk); ok {
		o.Decided++
		o.Deciding += t
	}
}
