package cluster

import "farflash/numeric/rng"

// pareto is a bounded distribution of the number of chunks that arrive at a gateway at once, from 1 to most (heavy
// tails of data that is written together: Crovella and Bestavros, Self-Similarity in World Wide Web Traffic,
// SIGMETRICS 1996). The probability that a burst has k or more chunks falls as k to the power -shape.
type pareto struct {
	most  int
	shape float64
}

// end returns the probability that an unbounded burst has more than most chunks.
func (p pareto) end() float64 { return rng.Pow(float64(p.most)+1, -p.shape) }

// size maps a uniform number in [0, 1) to a burst size: the distribution's inverse.
func (p pareto) size(u float64) int {
	return max(1, min(int(rng.Pow(1-float64(u*(1-p.end())), -1/p.shape)), p.most))
}

// mean returns the mean size: the sum over k of the probabilities that a burst has at least k chunks.
func (p pareto) mean() float64 {
	sum := 0.0
	for k := 1; k <= p.most; k++ {
		sum += (rng.Pow(float64(k), -p.shape) - p.end()) / (1 - p.end())
	}
	return sum
}
