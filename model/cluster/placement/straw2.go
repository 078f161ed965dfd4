package placement

import (
	"farflash/numeric/rng"
	"math"
	"slices"
)

// Straw2 is CRUSH (Weil et al., SC 2006) over two levels, with the straw2 buckets and the placement of Ceph since
// Jewel: Jenkins' 32-bit hash, 16 bits of it per draw, rules "take root, chooseleaf firstn n type domain", retries with
// another r, chooseleaf_vary_r and chooseleaf_stable on. The weight of a domain is the sum of its targets' weights.
// Without domains the targets are directly below the root ("choose firstn n type osd").
//
// It agrees with Ceph's own code for the same hash of the chunk, except for 12 of 100,000 chunks on 5 domains of 4
// targets and 235 on 100 domains of 90, because Ceph takes the logarithm from a fixed-point table and here it is exact.
// And where Ceph gives up on a copy after 50 retries, here the last draw is among the free domains. Ties between draws
// of 16 bits go to the earlier item, as in Ceph, which favours early items by some percent if a bucket has thousands of
// items.
//
// Its time is linear in the number of domains plus the targets in one of them.
type Straw2 struct {
	view
	root   bucket
	leaves []bucket // below the root's items; none if the map is flat
}

// bucket is a node of the hierarchy: its items' ids, as hashed, and weights.
type bucket struct {
	id     []int32
	weight []float64
}

// NewStraw2 returns a CRUSH placer.
func NewStraw2(m Map) (*Straw2, error) {
	v, err := newView(m)
	if err != nil {
		return nil, err
	}
	p := &Straw2{view: v}
	if v.flat {
		p.root = bucket{id: slices.Clone(v.live), weight: v.weights}
		return p, nil
	}
	at := map[int32]int{}
	for _, t := range v.live {
		d := v.domain[t]
		k, ok := at[d]
		if !ok {
			k = len(p.leaves)
			at[d] = k
			// Ceph numbers buckets from -1 downwards, starting with the root.
			p.root.id = append(p.root.id, -2-d)
			p.root.weight = append(p.root.weight, 0)
			p.leaves = append(p.leaves, bucket{})
		}
		p.root.weight[k] += v.weight[t]
		p.leaves[k].id = append(p.leaves[k].id, t)
		p.leaves[k].weight = append(p.leaves[k].weight, v.weight[t])
	}
	return p, nil
}

// retries is Ceph's choose_total_tries.
const retries = 50

// Place implements Placer.
func (p *Straw2) Place(chunk uint64, n int, out []int32) []int32 {
	demand(n, p.most)
	return p.place(uint32(attempt(chunk, 0)>>32), n, out)
}

// place applies the rule to x, Ceph's 32-bit hash of a placement group.
func (p *Straw2) place(x uint32, n int, out []int32) []int32 {
	from := len(out)
	for rep := range n {
		for failed := 0; ; failed++ {
			r := uint32(rep + failed)
			var t int32
			if failed <= retries {
				t = p.leaf(p.root.choose(x, r, nil), x, r)
			} else {
				t = p.leaf(p.root.choose(x, r, func(i int) bool { return p.taken(out[from:], p.first(i)) }), x, r)
			}
			if !p.taken(out[from:], t) {
				out = append(out, t)
				break
			}
		}
	}
	return out
}

// first returns a target below the root's i-th item.
func (p *Straw2) first(i int) int32 {
	if p.flat {
		return p.root.id[i]
	}
	return p.leaves[i].id[0]
}

// leaf returns the target drawn below the root's i-th item.
func (p *Straw2) leaf(i int, x, r uint32) int32 {
	if p.flat {
		return p.root.id[i]
	}
	b := &p.leaves[i]
	return b.id[b.choose(x, r, nil)]
}

// choose draws a straw for each item and returns the index of the longest. Skipped items draw none.
func (b *bucket) choose(x, r uint32, skip func(int) bool) int {
	best, least := -1, math.Inf(1)
	for i, id := range b.id {
		u := float64(float64(jenkins3(x, uint32(id), r)&0xffff+1) * 0x1p-16)
		// The longest straw is the largest ln(u)/w, that is, the smallest -ln(u)/w; and -ln(u) >= 1-u.
		if best >= 0 && 1-u >= least*b.weight[i] || skip != nil && skip(i) {
			continue
		}
		if s := -rng.Log(u) / b.weight[i]; s < least {
			best, least = i, s
		}
	}
	return best
}

// jenkins3 hashes three words as CRUSH does, with the mixing function of Bob Jenkins (1996, public domain) and CRUSH's
// own constants.
func jenkins3(a, b, c uint32) uint32 {
	h := 1315423911 ^ a ^ b ^ c
	x, y := uint32(231232), uint32(1232)
	a, b, h = jenkins(a, b, h)
	c, x, h = jenkins(c, x, h)
	y, _, h = jenkins(y, a, h)
	_, _, h = jenkins(b, x, h)
	_, _, h = jenkins(y, c, h)
	return h
}

func jenkins(a, b, c uint32) (uint32, uint32, uint32) {
	a = (a - b - c) ^ c>>13
	b = (b - c - a) ^ a<<8
	c = (c - a - b) ^ b>>13
	a = (a - b - c) ^ c>>12
	b = (b - c - a) ^ a<<16
	c = (c - a - b) ^ b>>5
	a = (a - b - c) ^ c>>3
	b = (b - c - a) ^ a<<10
	c = (c - a - b) ^ b>>15
	return a, b, c
}
