package placement

import (
	"farflash/numeric/rng"
	"math"
)

// HRW is highest random weight, or rendezvous hashing (Thaler and Ravishankar, IEEE/ACM ToN 6(1), 1998): each target's
// score is a hash of the target and the chunk, and the targets with the highest scores store the chunk. With weights
// the score is -w / ln(u) (Schindelhauer and Schomaker, SPAA 2005; Resch's talk at SDC 2015), so that a target is the
// primary of a share of the chunks proportional to its weight.
//
// A target that is removed or added moves only the chunks that it had or receives. Place examines every target: its
// time is linear in their number.
type HRW struct {
	view
	score []float64
}

// NewHRW returns a placer by rendezvous hashing.
func NewHRW(m Map) (*HRW, error) {
	v, err := newView(m)
	if err != nil {
		return nil, err
	}
	return &HRW{view: v}, nil
}

// Place implements Placer.
func (p *HRW) Place(chunk uint64, n int, out []int32) []int32 {
	demand(n, p.most)
	out, p.score = p.rendezvous(attempt(chunk, 0), p.live, p.seed, p.weights, n, out, p.score[:0])
	return out
}

// rendezvous appends the n best targets for a key: the best target of each domain is a candidate, and the n best of
// these are chosen. There must be at least n domains. seeds and weights belong to targets; score is scratch.
func (v *view) rendezvous(key uint64, targets []int32, seeds []uint64, weights []float64, n int, out []int32,
	score []float64) ([]int32, []float64) {
	if n == 0 {
		return out, score
	}
	from := len(out)
	// Scores here are -ln(u)/w: the smallest wins, which orders as the largest -w/ln(u).
	worst := math.Inf(1)
	for i, t := range targets {
		u := open(rng.Mix(key ^ seeds[i]))
		// -ln(u) >= 1-u, so most targets are rejected without a logarithm.
		if 1-u >= worst*weights[i] {
			continue
		}
		s := -rng.Log(u) / weights[i]
		if s >= worst {
			continue
		}
		k := 0
		for k < len(score) && v.domain[out[from+k]] != v.domain[t] {
			k++
		}
		switch {
		case k < len(score):
			if s >= score[k] {
				continue
			}
		case k < n:
			score, out = append(score, s), append(out, t)
		default:
			k = n - 1
		}
		for ; k > 0 && score[k-1] > s; k-- {
			score[k], out[from+k] = score[k-1], out[from+k-1]
		}
		score[k], out[from+k] = s, t
		if len(score) == n {
			worst = score[n-1]
		}
	}
	return out, score
}
