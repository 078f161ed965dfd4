package reserve

import "farflash/numeric/rng"

// Offer is a bid as its gateway sees it.
type Offer struct {
	Server   int32 // the bidder, in the caller's numbering
	Window   Window
	Rejected bool // revoked by its server
	taken    bool // by the choice in progress
}

// Offers has the bids that a gateway has received for one chunk, in the order of their left edges.
type Offers struct {
	d    *Durations
	list []Offer
}

// NewOffers returns an empty set with capacity for a group's bids.
func NewOffers(d *Durations) *Offers { return &Offers{d: d, list: make([]Offer, 0, d.Group)} }

// Reset empties the set for the next negotiation.
func (o *Offers) Reset() { o.list = o.list[:0] }

// Len returns the number of bids received.
func (o *Offers) Len() int { return len(o.list) }

// At returns bid i in the order of left edges.
func (o *Offers) At(i int) Offer { return o.list[i] }

// Add inserts a bid. With a stream, bids that begin at the same time are in random order, so that no server of an idle
// group is preferred; otherwise they are in order of arrival.
func (o *Offers) Add(server int32, w Window, rnd *rng.Stream) {
	k := len(o.list)
	for k > 0 && o.list[k-1].Window.Left > w.Left {
		k--
	}
	first := k
	for first > 0 && o.list[first-1].Window.Left == w.Left {
		first--
	}
	switch {
	case rnd != nil && first < k:
		k = first + int(rnd.IntN(int64(k-first+1)))
	case o.d.Compat.newestFirst() && o.d.Rules == RulesPaper:
		k = first
	}
	o.list = append(o.list, Offer{})
	copy(o.list[k+1:], o.list[k:])
	o.list[k] = Offer{Server: server, Window: w}
}

// Reject marks a server's bid as revoked. It reports whether there was one.
func (o *Offers) Reject(server int32) bool {
	for i := range o.list {
		if o.list[i].Server == server {
			o.list[i].Rejected = true
			return true
		}
	}
	return false
}

// Pick is a server that a gateway has chosen, with the window reserved there.
type Pick struct {
	Server int32
	Window Window
}
