package placement

import (
	"farflash/numeric/rng"
	"fmt"
	"slices"
)

// Maglev is the hash of Google's load balancer (Eisenbud et al., NSDI 2016, 3.4): a table of prime size that targets
// fill in turn, each along its own permutation. A lookup takes one step, and the balance is better than a ring's; when
// a target is removed, some entries besides its own move (5.3 there), fewer the larger the table.
//
// The table size must stay the same as targets are added and removed: with another size nearly everything moves.
// Weights scale the number of turns. Copies after the first rehash the chunk and skip domains that are taken.
type Maglev struct {
	view
	table []int32
}

// MaglevTable returns the default table size: the smallest prime that is at least a hundred times the number of
// targets, which keeps shares within 1% (3.4).
func MaglevTable(targets int) int {
	n := max(100*targets, 2)
	for !prime(n) {
		n++
	}
	return n
}

func prime(n int) bool {
	for d := 2; d*d <= n; d++ {
		if n%d == 0 {
			return false
		}
	}
	return n > 1
}

// NewMaglev fills the table. Its size must be a prime, and no less than the number of targets.
func NewMaglev(m Map, table int) (*Maglev, error) {
	v, err := newView(m)
	if err != nil {
		return nil, err
	}
	switch {
	case table < len(v.live):
		return nil, fmt.Errorf("a Maglev table of %d entries is too small for %d targets; use %d", table,
			len(v.live), MaglevTable(len(v.live)))
	case table > 1<<30:
		return nil, fmt.Errorf("a Maglev table of %d entries is too large; use %d", table, MaglevTable(len(v.live)))
	case !prime(table):
		return nil, fmt.Errorf(
			"a Maglev table of %d entries; the size must be prime, so that every step reaches every entry", table)
	}
	offset, skip := make([]int, len(v.live)), make([]int, len(v.live))
	for i, s := range v.seed {
		offset[i] = below(rng.Mix(s+rng.Golden), table)
		skip[i] = 1 + below(rng.Mix(s^rng.Golden), max(table-1, 1))
	}
	p := &Maglev{view: v, table: populate(offset, skip, v.weights, table)}
	for i, at := range p.table {
		p.table[i] = v.live[at]
	}
	return p, nil
}

// populate lets the owners take turns at the next free entry of their permutations, offset, offset+skip, ... modulo the
// size. The heaviest owner has a turn in each round; the others whenever their accumulated weight allows it.
func populate(offset, skip []int, weights []float64, size int) []int32 {
	table := make([]int32, size)
	for i := range table {
		table[i] = -1
	}
	heaviest := slices.Max(weights)
	next, credit := slices.Clone(offset), make([]float64, len(offset))
	for filled := 0; ; {
		for i := range next {
			credit[i] += weights[i] / heaviest
			if credit[i] < 1 {
				continue
			}
			credit[i]--
			for table[next[i]] >= 0 {
				next[i] = (next[i] + skip[i]) % size
			}
			table[next[i]] = int32(i)
			if filled++; filled == size {
				return table
			}
		}
	}
}

func (p *Maglev) pick(hash uint64) int32 { return p.table[below(hash, len(p.table))] }

// Place implements Placer.
func (p *Maglev) Place(chunk uint64, n int, out []int32) []int32 {
	return p.rehash(p, chunk, n, out)
}
