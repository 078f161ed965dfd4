// Package waf predicts and measures write amplification: the pages a drive programs for each page the host writes.
//
// It has closed forms for a page-mapped drive under uniform random writes without trim (FIFO, random, greedy,
// d-choices, windowed greedy, cost-benefit), for several classes of data mixed in one FIFO or kept apart, and for
// sequential overwrites mixed with random ones ([SequentialMix]). [SteadyState] is the underlying distribution of valid
// pages, with which a simulated drive can be preconditioned at once. [Simulate] drives package ftl without timing, with
// an array as the map, so that each can be checked against the other.
//
// Throughout, alpha is physical over logical space, where physical space means blocks that hold data and wait for
// collection; frontiers and reserve blocks are excluded. A drive of B blocks of which R are open or kept free, with U
// blocks' worth of logical pages, has alpha = (B-R)/U.
//
// The forms are limits for many blocks. The package leaves out workloads with skew inside a class (simulate those),
// trim, and block or hybrid mapping.
//
// Sources: Desnoyers, Analytic modeling of SSD write performance (SYSTOR 2012), for FIFO, greedy and classes; Bux and
// Iliadis (2010) for greedy's limit; Van Houdt, A mean field model for a class of garbage collection algorithms
// (SIGMETRICS 2013), for d choices. Windowed greedy and cost-benefit are derived here, see [Policy.WAF].
package waf

import (
	"farflash/numeric/rng"
	"fmt"
	"math"
)

// OverProvision is spare space over logical space: 7 % means alpha 1.07.
type OverProvision float64

// Alpha returns physical over logical space.
func (p OverProvision) Alpha() float64 { return 1 + float64(p) }

// SpareFactor is spare space over physical space, Desnoyers' S_f and MQSim's
// Overprovisioning_Ratio: 7 % means alpha 1.0753.
type SpareFactor float64

// Alpha returns physical over logical space.
func (s SpareFactor) Alpha() float64 { return 1 / (1 - float64(s)) }

// BinarySlack is the flash that a drive has beyond one GiB for each GB it offers, as a share of that GiB: 0 is the
// plain difference between GiB and GB that is sold as 7 %, alpha 1.0737.
type BinarySlack float64

// Alpha returns physical over logical space.
func (s BinarySlack) Alpha() float64 { return (1 + float64(s)) * (1 << 30) / 1e9 }

// FIFO returns the write amplification of collecting blocks in the order in which they were filled: A = alpha/(alpha +
// W0(-alpha e^-alpha)). alpha must exceed 1.
func FIFO(alpha float64) float64 { return 1 / (1 - fifoValid(alpha)) }

// fifoValid returns u = e^(-alpha(1-u)) < 1, the valid share of FIFO's victims.
func fifoValid(alpha float64) float64 {
	return -lambertW(-alpha*rng.Exp(-alpha)) / alpha
}

// Random returns the write amplification of collecting a random block: alpha/(alpha-1).
func Random(alpha float64) float64 { return alpha / (alpha - 1) }

// Greedy returns the write amplification of collecting the block with the fewest valid pages, by Desnoyers's closed
// form for blocks of the given number of pages. For short blocks it is a few tenths of a percent below [GreedyExact].
func Greedy(alpha float64, pages int) float64 {
	n := float64(pages)
	b := alpha * (1 + 1/(2*n))
	x0 := 0.5 - float64(n/alpha*lambertW(-b*rng.Exp(-b)))
	return n / (n - (x0 - 1))
}

// GreedyExact returns the write amplification of greedy collection for infinitely many blocks of the given number of
// pages. Victims hold j or j+1 valid pages; a closed block passes each level k above in time proportional to 1/k.
func GreedyExact(alpha float64, pages int) float64 {
	return Policy{Window: 1}.greedyLike(alpha, pages).waf()
}

// lambertW returns W0(x), the solution w >= -1 of w e^w = x, for -1/e <= x <= 0.
func lambertW(x float64) float64 {
	p := 2 * (float64(math.E*x) + 1)
	if p <= 0 {
		return -1
	}
	p = math.Sqrt(p)
	w := -1 + p - float64(p*p)/3 + float64(11*float64(p*p)*p)/72
	for range 60 {
		e := rng.Exp(w)
		miss := float64(w*e) - x
		slope := float64(e*(w+1)) - float64((w+2)*miss)/(2*w+2)
		if slope == 0 {
			break
		}
		next := w - miss/slope
		if math.Abs(next-w) <= 1e-15 {
			return next
		}
		w = next
	}
	return w
}

func checkAlpha(alpha float64, pages int) error {
	if !(alpha > 1) || math.IsInf(alpha, 1) {
		return fmt.Errorf("waf: alpha %v; physical space must exceed logical space", alpha)
	}
	if pages < 2 {
		return fmt.Errorf("waf: %d pages per block; use at least 2", pages)
	}
	return nil
}

// bisect returns where f, which is positive below and negative above, changes sign between low and high, to the last
// bit.
func bisect(low, high float64, f func(float64) float64) float64 {
	for range 200 {
		mid := low + float64((high-low)/2)
		if mid <= low || mid >= high {
			break
		}
		if f(mid) > 0 {
			low = mid
		} else {
			high = mid
		}
	}
	return low + float64((high-low)/2)
}
