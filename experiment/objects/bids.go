package objects

import (
	"farflash/model/cluster"
	"farflash/result"
	"farflash/sim"
)

// fillBids fills in how often targets received a request for a bid while another was tentative, in the measured time.
func fillBids(r *result.Result, last, from *cluster.Overlap, targets int, span sim.Time) {
	asked := float64(last.Asked - from.Asked)
	if asked == 0 {
		return // the protocol has no bids
	}
	r.Set("cluster.bid.requests", asked)
	r.Set("cluster.bid.interval", span.Microseconds()*float64(targets)/asked)
	r.Set("cluster.bid.overlap", float64(last.Behind-from.Behind)/asked)
	if n := last.Decided - from.Decided; n > 0 {
		r.Set("cluster.bid.tentative", (last.Deciding-from.Deciding).Microseconds()/float64(n))
	}
}
