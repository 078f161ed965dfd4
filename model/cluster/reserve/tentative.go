package reserve

import "farflash/sim"

// Tentative reports whether a bid waits for its gateway's answer.
func (q *queue) Tentative() bool {
	for k := range q.bids {
		if q.bids[k].State == Tentative {
			return true
		}
	}
	return false
}

// Undecided returns how long a chunk's bid has waited for its gateway's answer, and whether it still does.
func (q *queue) Undecided(now sim.Time, chunk uint64) (sim.Time, bool) {
	k := q.find(chunk)
	if k < 0 || q.bids[k].State != Tentative {
		return 0, false
	}
	return now - q.bids[k].Created, true
}

// Expects reports whether an accepted bid waits for its data, and whether a bid waits for its gateway's answer.
func (q *queue) Expects() (accepted, tentative bool) {
	for k := range q.bids {
		accepted = accepted || q.bids[k].State == Accepted
		tentative = tentative || q.bids[k].State == Tentative
	}
	return accepted, tentative
}

// Expects reports whether announced data has not arrived, and whether an offer is open.
func (p *Puller) Expects() (taken, open bool) { return len(p.coming) > 0, p.open > 0 }
