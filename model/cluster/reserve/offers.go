package reserve

import "farflash/numeric/rng"

// Offer is a bid as its gateway sees it.
type Offer struct {
	Server   int32 // whoever gave it, by any numbering of the caller's
	Window   Window
	Rejected bool // taken back by its server
	taken    bool // by the choice that is being made
}

// Offers are the bids that a gateway has received for one chunk, in the order of their left edges.
type Offers struct {
	d    *Durations
	list []Offer
}

// NewOffers returns an empty set with room for a group's bids.
func NewOffers(d *Durations) *Offers { return &Offers{d: d, list: make([]Offer, 0, d.Group)} }

// Reset empties the set, for the next negotiation.
func (o *Offers) Reset() { o.list = o.list[:0] }

// Len is how many bids have come in.
func (o *Offers) Len() int { return len(o.list) }

// At is bid i in the order of left edges.
func (o *Offers) At(i int) Offer { return o.list[i] }

// Add takes a bid in. Bids that begin at the same moment are in a random order if there is a stream, so that no
// server of an idle group is preferred; otherwise in the order they came.
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

// Reject marks a server's bid as taken back. It reports whether there was one.
func (o *Offers) Reject(server int32) bool {
	for i := range o.list {
		if o.list[i].Server == server {
			o.list[i].Rejected = true
			return true
		}
	}
	return false
}

// Pick is a server that a gateway has chosen and the window it takes there.
type Pick struct {
	Server int32
	Window Window
}
