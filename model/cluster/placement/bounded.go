package placement

import (
	"fmt"
	"math"

	"farflash/numeric/units"
)

// BoundedLoad is consistent hashing with bounded loads (Mirrokni, Thorup and
// Zadimoghaddam, SODA 2018): a ring on which a copy goes to the next target clockwise
// that has room. With slack e and m copies in all, those about to be placed included, a
// target of weight w has room for ceil((1+e) m w / W), W being the sum of the weights.
//
// Whoever places tells it what came and went (Add), so it is only a hash of the chunk
// together with the loads: the copies of a chunk are where they were put, not where
// Place would put them now. Removing copies lowers the bound of all; the paper then
// moves others, which this leaves to the caller.
type BoundedLoad struct {
	ring  *Ring
	slack float64
	load  []int64
	total int64
	over  int64
}

// NewBoundedLoad makes an empty one over a ring with so many virtual nodes a target.
// slack is the e above; it must be more than 0.
func NewBoundedLoad(m Map, virtualNodes int, slack units.Fraction) (*BoundedLoad, error) {
	if !(slack > 0) || math.IsInf(float64(slack), 1) {
		return nil, fmt.Errorf("a slack of %v leaves no target to go to; it must be more than 0", slack)
	}
	r, err := NewRing(m, virtualNodes)
	if err != nil {
		return nil, err
	}
	return &BoundedLoad{ring: r, slack: float64(slack), load: make([]int64, len(m.Weights))}, nil
}

// Add counts copies that a target got, or lost if negative.
func (p *BoundedLoad) Add(target int32, copies int64) {
	p.load[target] += copies
	p.total += copies
}

// Load is how many copies a target has.
func (p *BoundedLoad) Load(target int32) int64 { return p.load[target] }

// Bound is how many copies a target may have when there are total in all.
func (p *BoundedLoad) Bound(target int32, total int64) int64 {
	share := p.ring.weight[target] / p.ring.total
	return int64(math.Ceil((1 + p.slack) * float64(total) * share))
}

// Overfull is how many copies were placed beyond the bound because too few failure
// domains had room: it happens when chunks have nearly as many copies as there are domains,
// or domains are of unequal weight.
func (p *BoundedLoad) Overfull() int64 { return p.over }

// Most implements Placer.
func (p *BoundedLoad) Most() int { return p.ring.most }

// Place implements Placer. It does not count the copies: Add does.
func (p *BoundedLoad) Place(chunk uint64, n int, out []int32) []int32 {
	r := p.ring
	demand(n, r.most)
	from, first := len(out), r.find(attempt(chunk, 0))
	for _, bounded := range [2]bool{true, false} {
		for i := 0; i < len(r.point) && len(out)-from < n; i++ {
			at := first + i
			if at >= len(r.point) {
				at -= len(r.point)
			}
			t := r.point[at].target
			if r.taken(out[from:], t) || bounded && p.load[t] >= p.Bound(t, p.total+int64(n)) {
				continue
			}
			out = append(out, t)
			if !bounded {
				p.over++
			}
		}
	}
	return out
}
