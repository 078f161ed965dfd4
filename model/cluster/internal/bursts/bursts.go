// Package bursts has how many chunks come to a gateway at once: whole numbers of a bounded Pareto distribution (heavy
// tails of what is written together: Crovella and Bestavros, Self-Similarity in World Wide Web Traffic, SIGMETRICS
// 1996).
//
// Its main type is Pareto; it leaves out when they come.
package bursts

import "farflash/numeric/rng"

// Pareto is a distribution from 1 to Most, bounded; the probability that a burst is of k or more falls as the power
// Shape of k.
type Pareto struct {
	Most  int
	Shape float64
}

// end is the power at which the distribution ends, of which a whole number is left.
func (p Pareto) end() float64 { return rng.Pow(float64(p.Most)+1, -p.Shape) }

// Size is that of a burst, from a number from 0 to 1: the distribution's inverse.
func (p Pareto) Size(u float64) int {
	return max(1, min(int(rng.Pow(1-float64(u*(1-p.end())), -1/p.Shape)), p.Most))
}

// Mean is the mean size: the sum of the probabilities that a burst is as large as that.
func (p Pareto) Mean() float64 {
	sum := 0.0
	for k := 1; k <= p.Most; k++ {
		sum += (rng.Pow(float64(k), -p.Shape) - p.end()) / (1 - p.end())
	}
	return sum
}
