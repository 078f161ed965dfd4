package placement

import (
	"cmp"
	"fmt"
	"slices"

	"farflash/numeric/units"
)

// movement is the effect of a map change on the copies of some chunks.
type movement struct {
	Copies int // number of chunks times copies of each
	Moved  int // copies on targets that did not have the chunk before
	// Shifted counts the copies whose index in the list has another target: they must move if the index matters, as
	// with the shards of an erasure code. It is no less than Moved.
	Shifted int
}

// share returns the fraction of the copies that moved.
func (m movement) share() units.Fraction { return units.Fraction(float64(m.Moved) / float64(m.Copies)) }

// countMoved places n copies of each of the chunks 0 to chunks-1 before and after a change of the map and counts the
// copies that moved. Compare its share with leastMoved.
func countMoved(before, after Placer, chunks uint64, n int) movement {
	var m movement
	var was, is []int32
	for c := range chunks {
		was, is = before.Place(c, n, was[:0]), after.Place(c, n, is[:0])
		for i, t := range is {
			if !slices.Contains(was, t) {
				m.Moved++
			}
			if was[i] != t {
				m.Shifted++
			}
		}
		m.Copies += n
	}
	return m
}

// bestShares returns, for each target, the share of all chunks of which it stores one of n copies, if the weights are
// met as far as one copy per domain allows: proportional to the weight, except that no domain has more than one copy
// of every chunk. The shares add up to n.
func bestShares(m Map, n int) ([]float64, error) {
	v, err := newView(m)
	if err != nil {
		return nil, err
	}
	if n < 1 || n > v.most {
		return nil, fmt.Errorf("%d copies of a chunk, with %d failure domains in use", n, v.most)
	}
	type domain struct {
		weight float64
		number int32
	}
	var domains []domain
	at := map[int32]int{}
	for _, t := range v.live {
		d := v.domain[t]
		k, ok := at[d]
		if !ok {
			k = len(domains)
			at[d] = k
			domains = append(domains, domain{number: d})
		}
		domains[k].weight += v.weight[t]
	}
	// The heaviest domains reach one copy of every chunk first; the others share the rest.
	slices.SortFunc(domains, func(a, b domain) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.number, b.number))
	})
	rest, full := v.total, 0
	for full < n && float64(n-full)*domains[full].weight >= rest {
		rest -= domains[full].weight
		full++
	}
	scale := map[int32]float64{}
	for i, d := range domains {
		if i < full {
			scale[d.number] = 1 / d.weight
		} else {
			scale[d.number] = float64(n-full) / rest
		}
	}
	out := make([]float64, len(v.weight))
	for _, t := range v.live {
		out[t] = v.weight[t] * scale[v.domain[t]]
	}
	return out, nil
}

// leastMoved returns the smallest share of the copies that any placement must move between the shares of two maps: the
// sum of the targets' gains. The maps must number the targets alike.
func leastMoved(before, after Map, n int) (units.Fraction, error) {
	was, err := bestShares(before, n)
	if err != nil {
		return 0, fmt.Errorf("before: %w", err)
	}
	is, err := bestShares(after, n)
	if err != nil {
		return 0, fmt.Errorf("after: %w", err)
	}
	gained := 0.0
	for t, s := range is {
		if t < len(was) {
			s -= was[t]
		}
		gained += max(0, s)
	}
	return units.Fraction(gained / float64(n)), nil
}
