// Package placement decides where the replicas or shards of a chunk go: the hash functions that storage clusters use
// instead of a directory.
//
// Its main types are Map (targets with weights and failure domains), Placer (the interface that all of them share) and
// the placers: Random, Ring, HRW, Jump, Maglev, Straw2, BoundedLoad, Group, Copysets, and LeastLoaded, which chooses
// among another placer's candidates by load. RulesPerSwitch and BIERHeader are the cost of multicast to the chosen
// targets.
//
// Each file names the paper it follows. All placers put at most one copy of a chunk into a failure domain, give the
// same result for the same chunk, map and loads (except Random, which draws from a stream), and do not allocate once
// they have been called with the number of copies.
//
// It leaves out more than one copy of a chunk in a failure domain, hierarchies deeper than domain and target, placement
// groups between chunk and target (hash the chunk to its group and place that), directories, and moving the data.
package placement

import (
	"farflash/numeric/rng"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// Placer names the targets of a chunk. A gateway calls it when it stores or looks up a chunk. The gateways of one
// simulation may share a placer; it is not safe for concurrent use.
type Placer interface {
	// Place appends n distinct targets for the chunk to out and returns it. The first is the primary. No two are in the
	// same failure domain. It panics if n is negative or more than Most; use Check when building a cluster.
	Place(chunk uint64, n int, out []int32) []int32
	// Most returns the largest n that Place can serve.
	Most() int
}

// Check returns an error if a placer cannot serve n copies of a chunk.
func Check(p Placer, n int) error {
	switch most := p.Most(); {
	case n < 1:
		return fmt.Errorf("%d copies of a chunk are not possible; use at least 1", n)
	case n > most:
		return fmt.Errorf("%d copies of a chunk do not fit: different failure domains hold %d; ask "+
			"for fewer or add targets or domains", n, most)
	}
	return nil
}

// Map is the cluster as placement sees it. The index of a target is its permanent id: a removed target has weight 0,
// and a new one is appended at the end.
type Map struct {
	// Weights are the targets' shares of the chunks before normalisation, usually their capacities. 0 is a target that
	// is not in use.
	Weights []float64
	// Domains are the targets' failure domains, such as racks, numbered from 0. If nil, each target is a domain of its
	// own.
	Domains []int32
}

// Uniform returns a map of n targets of weight 1, without failure domains.
func Uniform(n int) Map {
	m := Map{Weights: make([]float64, n)}
	for i := range m.Weights {
		m.Weights[i] = 1
	}
	return m
}

// Racks returns the map with failure domains of size consecutive targets each.
func (m Map) Racks(size int) Map {
	m = m.clone()
	m.Domains = make([]int32, len(m.Weights))
	for i := range m.Domains {
		m.Domains[i] = int32(i / size)
	}
	return m
}

// Without returns the map with the given targets out of use.
func (m Map) Without(targets ...int32) Map {
	m = m.clone()
	for _, t := range targets {
		m.Weights[t] = 0
	}
	return m
}

// With returns the map with one more target at the end. The domain is ignored if the map has none.
func (m Map) With(weight float64, domain int32) Map {
	m = m.clone()
	m.Weights = append(m.Weights, weight)
	if m.Domains != nil {
		m.Domains = append(m.Domains, domain)
	}
	return m
}

func (m Map) clone() Map {
	return Map{Weights: slices.Clone(m.Weights), Domains: slices.Clone(m.Domains)}
}

// view is a checked Map with the derived values that placers need.
type view struct {
	weight  []float64
	domain  []int32   // of each target; its own number if the map has no domains
	live    []int32   // targets in use, ascending
	seed    []uint64  // of live[i]: a hash of the target's id, not of its position
	flat    bool      // the map has no domains
	equal   bool      // all weights in use are equal
	total   float64   // sum of all weights
	most    int       // number of domains in use
	weights []float64 // parallel to live
}

func newView(m Map) (view, error) {
	m = m.clone()
	v := view{weight: m.Weights, domain: m.Domains, flat: m.Domains == nil, equal: true}
	if len(m.Weights) > math.MaxInt32 {
		return v, fmt.Errorf("%d targets exceed the numbers of placement", len(m.Weights))
	}
	if v.flat {
		v.domain = make([]int32, len(m.Weights))
		for i := range v.domain {
			v.domain[i] = int32(i)
		}
	} else if len(m.Domains) != len(m.Weights) {
		return v, fmt.Errorf("%d targets have %d failure domains; give one for each target or none",
			len(m.Weights), len(m.Domains))
	}
	used := map[int32]bool{}
	for i, w := range m.Weights {
		switch {
		case math.IsNaN(w) || math.IsInf(w, 0) || w < 0:
			return v, fmt.Errorf("target %d has weight %v; a weight is a number that is not negative", i, w)
		case v.domain[i] < 0:
			return v, fmt.Errorf("target %d has failure domain %d; domains are numbered from 0", i, v.domain[i])
		case w == 0:
			continue
		}
		v.live = append(v.live, int32(i))
		v.seed = append(v.seed, rng.Mix(uint64(i)+1))
		v.weights = append(v.weights, w)
		v.total += w
		v.equal = v.equal && w == v.weights[0]
		used[v.domain[i]] = true
	}
	if len(v.live) == 0 {
		return v, fmt.Errorf("no target is in use; at least one needs a weight above 0")
	}
	v.most = len(used)
	return v, nil
}

// Most returns the number of failure domains in use.
func (v *view) Most() int { return v.most }

// taken reports whether one of the chosen targets is t or in its failure domain.
func (v *view) taken(chosen []int32, t int32) bool {
	d := v.domain[t]
	for _, c := range chosen {
		if v.domain[c] == d {
			return true
		}
	}
	return false
}

func demand(n, most int) {
	if n < 0 || n > most {
		panic(fmt.Sprintf("placement: %d copies of a chunk requested, but only %d fit", n, most))
	}
}

// attempt returns the i-th hash of a chunk.
func attempt(chunk uint64, i int) uint64 { return rng.Mix(chunk + uint64(i+1)*rng.Golden) }

// below reduces a hash to [0, n) by multiplication. The bias is below n/2^64.
func below(h uint64, n int) int {
	hi, _ := bits.Mul64(h, uint64(n))
	return int(hi)
}

// open maps a hash to a number in (0, 1), excluding both ends.
func open(h uint64) float64 { return float64(float64(h>>12)*0x1p-52) + 0x1p-53 }

// picker maps one hash to one target.
type picker interface{ pick(hash uint64) int32 }

// rehash places copies for functions that map a hash to one target: it rehashes the chunk repeatedly and skips domains
// that are taken. After many collisions, which occur only with nearly as many copies as domains, it continues through
// the targets in order.
func (v *view) rehash(p picker, chunk uint64, n int, out []int32) []int32 {
	demand(n, v.most)
	from := len(out)
	for i := 0; len(out)-from < n; i++ {
		t := p.pick(attempt(chunk, i))
		if i >= 64*n {
			at, _ := slices.BinarySearch(v.live, t)
			for v.taken(out[from:], t) {
				at = (at + 1) % len(v.live)
				t = v.live[at]
			}
		}
		if !v.taken(out[from:], t) {
			out = append(out, t)
		}
	}
	return out
}
