package placement

import (
	"farflash/numeric/rng"
	"slices"
)

// Random draws targets from a stream, with probabilities proportional to their weights among those in failure domains
// that are still free. It is SURGE's "consistent hash": its targets of a chunk are drawn, not hashed, and those of the
// gateway's previous chunk are excluded. It cannot look up a chunk again.
//
// Each gateway has a Random of its own, because of its stream and its previous chunk.
type Random struct {
	view
	stream   rng.Stream
	excluded bool
	previous []int32
	split    []float64 // alias table (Walker 1977): below the split the entry itself, above it the alias
	alias    []int32
}

// NewRandom returns a placer that draws. If excludePrevious is set, the targets of the previous chunk are not drawn
// again, and Most is half the number of failure domains: with fewer, SURGE spins forever.
func NewRandom(m Map, stream rng.Stream, excludePrevious bool) (*Random, error) {
	v, err := newView(m)
	if err != nil {
		return nil, err
	}
	p := &Random{view: v, stream: stream, excluded: excludePrevious}
	if !v.equal {
		p.tabulate()
	}
	return p, nil
}

// Most implements Placer.
func (p *Random) Most() int {
	if p.excluded {
		return p.most / 2
	}
	return p.most
}

// tabulate builds the alias table: each entry holds an equal share of the probability, split between itself and another
// one.
func (p *Random) tabulate() {
	n := len(p.live)
	p.split, p.alias = make([]float64, n), make([]int32, n)
	var small, large []int32
	for i, w := range p.weights {
		p.split[i], p.alias[i] = float64(w/p.total*float64(n)), int32(i)
		if p.split[i] < 1 {
			small = append(small, int32(i))
		} else {
			large = append(large, int32(i))
		}
	}
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		p.alias[s] = l
		p.split[l] -= 1 - p.split[s]
		if p.split[l] < 1 {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	// The rest are 1, apart from rounding.
	for _, i := range append(small, large...) {
		p.split[i] = 1
	}
}

func (p *Random) draw() int32 {
	i := p.stream.IntN(int64(len(p.live)))
	if p.split != nil && p.stream.Float64() >= p.split[i] {
		i = int64(p.alias[i])
	}
	return p.live[i]
}

func (p *Random) refused(chosen []int32, t int32) bool {
	return p.taken(chosen, t) || slices.Contains(p.previous, t)
}

// Place implements Placer. It ignores the chunk's id.
func (p *Random) Place(_ uint64, n int, out []int32) []int32 {
	demand(n, p.Most())
	from := len(out)
	for tries := 0; len(out)-from < n; tries++ {
		t := p.draw()
		if tries >= 64*n {
			t = p.drawFree(out[from:])
		}
		if !p.refused(out[from:], t) {
			out = append(out, t)
		}
	}
	if p.excluded {
		p.previous = append(p.previous[:0], out[from:]...)
	}
	return out
}

// drawFree draws among the free targets only, at the cost of a walk through all targets. The distribution is that of
// drawing repeatedly until a target is free.
func (p *Random) drawFree(chosen []int32) int32 {
	sum, last := 0.0, int32(-1)
	for i, t := range p.live {
		if !p.refused(chosen, t) {
			sum += p.weights[i]
			last = t
		}
	}
	at := float64(p.stream.Float64() * sum)
	for i, t := range p.live {
		if !p.refused(chosen, t) {
			if at -= p.weights[i]; at < 0 {
				return t
			}
		}
	}
	return last
}
