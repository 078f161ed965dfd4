package put

import "farflash/sim"

// Overlap counts how often a target is asked for a bid while another of its bids is still tentative, so that the new
// bid goes behind a window that may never be used (the Replicast paper, section IV-H and table 5).
type Overlap struct {
	Asked    uint64   // requests at targets
	Behind   uint64   // those that found another bid tentative
	Decided  uint64   // bids accepted or canceled
	Deciding sim.Time // total time for which they were tentative
}

// asked counts a request. It is called before the target answers.
func (o *Overlap) asked(q asked) {
	o.Asked++
	if q.Tentative() {
		o.Behind++
	}
}

// decided counts a gateway's answer. It is called before the target acts on it.
func (o *Overlap) decided(q answered, now sim.Time, chunk uint64) {
	if t, ok := q.Undecided(now, chunk); ok {
		o.Decided++
		o.Deciding += t
	}
}
