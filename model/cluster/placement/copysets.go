package placement

import (
	"cmp"
	"farflash/numeric/rng"
	"fmt"
	"slices"
)

// Copysets is copyset replication (Cidon et al., USENIX ATC 2013, section 4): the targets are permuted at random
// several times, each permutation is cut into sets of the number of copies, and a chunk goes to one set of its primary.
// With few sets, few combinations of failures lose data; package durability computes the cost and the gain.
//
// The primary is found by jump hash. There are no weights, and a target that is removed or added changes the sets
// everywhere: it suits clusters whose targets are replaced one for one.
type Copysets struct {
	view
	copies int
	sets   [][]int32 // the targets of each set
	of     [][]int32 // the sets of each target, one per permutation unless it was left over
}

// NewCopysets creates the sets for the given number of copies of a chunk and scatter width, the number of other targets
// that share chunks with a target, at least copies-1. If the copies do not divide the number of targets, each
// permutation leaves some targets out; a target that is left out of all of them is an error.
func NewCopysets(m Map, copies, scatter int) (*Copysets, error) {
	v, err := newView(m)
	switch {
	case err != nil:
		return nil, err
	case !v.equal:
		return nil, fmt.Errorf("copysets support no weights, and the targets' differ")
	case copies < 2 || copies > v.most:
		return nil, fmt.Errorf(
			"copysets of %d targets in %d failure domains; use at least 2 targets and as many domains", copies,
			v.most)
	case scatter < copies-1 || scatter >= len(v.live):
		return nil, fmt.Errorf("invalid scatter width, %d; with %d copies on %d targets it must be %d to %d", scatter, copies,
			len(v.live), copies-1, len(v.live)-1)
	}
	p := &Copysets{view: v, copies: copies, of: make([][]int32, len(v.weight))}
	for order := range (scatter + copies - 2) / (copies - 1) {
		p.cut(attempt(uint64(order), 0))
	}
	for _, t := range v.live {
		if len(p.of[t]) == 0 {
			return nil, fmt.Errorf(
				"target %d is in no copyset: %d targets do not divide into sets of %d; use more permutations, that is, a "+
					"larger scatter width", t, len(v.live), copies)
		}
	}
	return p, nil
}

// cut sorts the targets by a hash with the key and forms sets: each takes one target from each of the domains with the
// most targets left, which leaves out as few as possible; ties go to the domain whose next target comes first in the
// order.
func (p *Copysets) cut(key uint64) {
	type place struct {
		at     uint64
		target int32
	}
	first := func(a, b place) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.target, b.target)) }
	var rest [][]place // of each domain, in order
	at := map[int32]int{}
	for i, t := range p.live {
		d := p.domain[t]
		k, ok := at[d]
		if !ok {
			k = len(rest)
			at[d] = k
			rest = append(rest, nil)
		}
		rest[k] = append(rest[k], place{rng.Mix(key ^ p.seed[i]), t})
	}
	for _, r := range rest {
		slices.SortFunc(r, first)
	}
	for {
		slices.SortFunc(rest, func(a, b []place) int { return cmp.Or(cmp.Compare(len(b), len(a)), first(a[0], b[0])) })
		if len(rest) < p.copies {
			return // the remaining targets are in too few domains
		}
		sets := 1
		if len(rest[0]) == 1 {
			sets = len(rest) / p.copies // the order of the remaining domains is final
		}
		for domains := range slices.Chunk(rest[:sets*p.copies], p.copies) {
			var set []int32
			for i, r := range domains {
				t := r[0].target
				set = append(set, t)
				p.of[t] = append(p.of[t], int32(len(p.sets)))
				domains[i] = r[1:]
			}
			p.sets = append(p.sets, set)
		}
		rest = slices.DeleteFunc(rest, func(r []place) bool { return len(r) == 0 })
	}
}

// Sets returns the copysets, which durability.Simulation takes as its groups. The caller must not modify them.
func (p *Copysets) Sets() [][]int32 { return p.sets }

// Most implements Placer: the number of copies that the sets are made for.
func (p *Copysets) Most() int { return p.copies }

// Place implements Placer. With fewer copies than the sets are made for, the last ones are left out.
func (p *Copysets) Place(chunk uint64, n int, out []int32) []int32 {
	demand(n, p.copies)
	if n == 0 {
		return out
	}
	primary := p.live[jumpHash(attempt(chunk, 0), int32(len(p.live)))]
	of := p.of[primary]
	from := len(out)
	out = append(out, primary)
	for _, t := range p.sets[of[below(attempt(chunk, 1), len(of))]] {
		if t != primary && len(out)-from < n {
			out = append(out, t)
		}
	}
	return out
}
