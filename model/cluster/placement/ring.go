package placement

import (
	"cmp"
	"farflash/numeric/rng"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// Ring is consistent hashing (Karger et al., STOC 1997) with virtual nodes, as in Dynamo (DeCandia et al., SOSP 2007,
// 4.2 and 6.2): every target has many points on a circle, and a chunk's copies go to the next targets clockwise in
// different failure domains. The relative deviation of a target's share is about 1/sqrt(virtual nodes).
type Ring struct {
	view
	point []point
	start []int32 // index of the first point at or after the start of each of equal parts of the circle
	shift uint    // 64 minus the logarithm of the number of parts
}

type point struct {
	at     uint64
	target int32
}

// DefaultVirtualNodes is the default number of points of a target of weight 1.
const DefaultVirtualNodes = 128

// NewRing returns a ring. A target of weight 1 has virtualNodes points, others in proportion, at least one. The number
// depends only on the target's own weight, because otherwise a change of one target would move the points of others; so
// weights are best scaled to be about 1.
func NewRing(m Map, virtualNodes int) (*Ring, error) {
	v, err := newView(m)
	if err != nil {
		return nil, err
	}
	if virtualNodes < 1 {
		return nil, fmt.Errorf("%d virtual nodes per target; a ring needs at least 1", virtualNodes)
	}
	r := &Ring{view: v}
	for i, t := range v.live {
		points := math.Round(float64(virtualNodes) * v.weights[i])
		if points > 1<<24 {
			return nil, fmt.Errorf("target %d would have %.0f virtual nodes; scale the weights to be about 1", t,
				points)
		}
		for k := range max(1, int(points)) {
			// The points of a target depend on its id alone, so those of others stay in place.
			r.point = append(r.point, point{rng.Mix(v.seed[i] + uint64(k+1)*rng.Golden), t})
		}
		if len(r.point) > 1<<28 {
			return nil, fmt.Errorf("the ring would have more than %d points; use fewer virtual nodes", 1<<28)
		}
	}
	slices.SortFunc(r.point, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.target, b.target))
	})
	// About as many parts as points: a lookup starts a step or two before its point.
	parts := bits.Len(uint(len(r.point)))
	r.shift = uint(64 - parts)
	r.start = make([]int32, 1<<parts)
	at := 0
	for i := range r.start {
		for at < len(r.point) && r.point[at].at>>r.shift < uint64(i) {
			at++
		}
		r.start[i] = int32(at)
	}
	return r, nil
}

// find returns the index of the first point at or clockwise of a hash.
func (r *Ring) find(h uint64) int {
	at := int(r.start[h>>r.shift])
	for at < len(r.point) && r.point[at].at < h {
		at++
	}
	if at == len(r.point) {
		return 0
	}
	return at
}

// Place implements Placer.
func (r *Ring) Place(chunk uint64, n int, out []int32) []int32 {
	demand(n, r.most)
	from := len(out)
	for at := r.find(attempt(chunk, 0)); len(out)-from < n; at++ {
		if at == len(r.point) {
			at = 0
		}
		if t := r.point[at].target; !r.taken(out[from:], t) {
			out = append(out, t)
		}
	}
	return out
}
