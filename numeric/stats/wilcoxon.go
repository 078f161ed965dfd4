package stats

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// SignedRank is the result of Wilcoxon's signed-rank test.
type SignedRank struct {
	Positive float64 // sum of the ranks of positive differences; tied ones share the mean of their ranks
	N        int     // nonzero differences
	P        float64 // two-sided p value; 1 if all differences are 0
	Exact    bool    // from the exact distribution, not the normal approximation
}

// mostExact is the largest number of differences for which the exact distribution is used. Its counts then fit into 64
// bits, and beyond it the normal approximation is accurate to any digits of practical interest.
const mostExact = 50

// Wilcoxon tests whether differences are symmetric about 0 (Biometrics Bulletin 1(6), 1945), without zeros. Up to 50
// differences the distribution is exact, including ties; beyond, normal with corrections for ties and continuity. Fewer
// than 6 differences never fall below 0.05.
func Wilcoxon(differences []float64) (SignedRank, error) {
	var d []float64
	for i, x := range differences {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return SignedRank{}, fmt.Errorf("difference %d is %v; it must be finite", i+1, x)
		}
		if x != 0 {
			d = append(d, x)
		}
	}
	r := SignedRank{N: len(d), P: 1, Exact: true}
	if len(d) == 0 {
		return r, nil
	}
	ranks, ties := doubledRanks(d)
	positive, all := 0, 0
	for i, x := range d {
		all += ranks[i]
		if x > 0 {
			positive += ranks[i]
		}
	}
	r.Positive = float64(positive) / 2
	if len(d) <= mostExact {
		r.P = exactSignedRank(ranks, min(positive, all-positive))
		return r, nil
	}
	r.Exact = false
	n := float64(len(d))
	variance := float64(float64(n*(n+1))*(2*n+1))/24 - float64(ties/48)
	distance := math.Max(float64(math.Abs(float64(2*positive-all))/4)-0.5, 0)
	r.P = rounded(math.Min(1, math.Erfc(distance/math.Sqrt(variance)/math.Sqrt2)), 6)
	return r, nil
}

// doubledRanks returns twice the rank of each number's magnitude, which is an integer for tied numbers as well, and the
// sum of t^3-t over groups of t tied numbers.
func doubledRanks(d []float64) (ranks []int, ties float64) {
	order := make([]int, len(d))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(math.Abs(d[a]), math.Abs(d[b])) })
	ranks = make([]int, len(d))
	for from := 0; from < len(order); {
		to := from
		for to < len(order) && math.Abs(d[order[to]]) == math.Abs(d[order[from]]) {
			to++
		}
		for _, i := range order[from:to] {
			ranks[i] = from + 1 + to // twice the mean of from+1 ... to
		}
		t := float64(to - from)
		ties += float64(float64(t*t)*t) - t
		from = to
	}
	return ranks, ties
}

// exactSignedRank returns the two-sided p value of the smaller of the two rank sums: twice the share of all assignments
// of signs whose sum does not exceed it.
func exactSignedRank(ranks []int, smaller int) float64 {
	// ways[s] counts the subsets of the ranks so far with sum s.
	ways := make([]uint64, smaller+1)
	ways[0] = 1
	for _, r := range ranks {
		for s := smaller; s >= r; s-- {
			ways[s] += ways[s-r]
		}
	}
	count := uint64(0)
	for _, w := range ways {
		count += w
	}
	return math.Min(1, math.Ldexp(float64(count), 1-len(ranks)))
}
