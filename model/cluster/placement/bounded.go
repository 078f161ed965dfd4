package placement

import (
	"fmt"
	"math"

	"farflash/numeric/units"
)

// BoundedLoad is consistent hashing with bounded loads (Mirrokni, Thorup and Zadimoghaddam, SODA 2018): a ring on which
// a copy goes to the next target clockwise that has capacity. With slack e and m copies in all, including those about
// to be placed, a target of weight w has capacity for ceil((1+e) m w / W), where W is the sum of the weights.
//
// The caller reports copies that are added or removed (Add), so Place depends only on a hash of the chunk and on the
// loads: copies are where they were put, not where Place would put them now. Removing copies lowers every bound; the
// paper then moves others, which is left to the caller.
type BoundedLoad struct {
	ring  *Ring
	slack float64
	load  []int64
	total int64
	over  int64
}

// NewBoundedLoad returns an empty one over a ring with the given number of virtual nodes per target. slack is the e
// above; it must be positive.
func NewBoundedLoad(m Map, virtualNodes int, slack units.Fraction) (*BoundedLoad, error) {
	if !(slack > 0) || math.IsInf(float64(slack), 1) {
		return nil, fmt.Errorf("invalid slack, %v; it must be positive", slack)
	}
	r, err := NewRing(m, virtualNodes)
	if err != nil {
		return nil, err
	}
	return &BoundedLoad{ring: r, slack: float64(slack), load: make([]int64, len(m.Weights))}, nil
}

// Add counts copies that a target has gained, or lost if negative.
func (p *BoundedLoad) Add(target int32, copies int64) {
	p.load[target] += copies
	p.total += copies
}

// Load returns the number of copies that a target has.
func (p *BoundedLoad) Load(target int32) int64 { return p.load[target] }

// bound returns the number of copies that a target may have when there are total in all.
func (p *BoundedLoad) bound(target int32, total int64) int64 {
	share := p.ring.weight[target] / p.ring.total
	return int64(math.Ceil((1 + p.slack) * float64(total) * share))
}

// Overfull returns the number of copies placed beyond the bound because too few failure domains had capacity. This
// happens when chunks have nearly as many copies as there are domains, or domains have unequal weights.
func (p *BoundedLoad) Overfull() int64 { return p.over }

// Most implements Placer.
func (p *BoundedLoad) Most() int { return p.ring.most }

// Place implements Placer. The caller counts the copies with Add.
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
			if r.taken(out[from:], t) || bounded && p.load[t] >= p.bound(t, p.total+int64(n)) {
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
