package waf

import (
	"fmt"
	"math"

	"farflash/numeric/rng"
	"farflash/policy/ftl"
)

// Policy is a victim policy with its parameters, as in ftl.Config.
type Policy struct {
	Victim  ftl.Victim
	Choices int     // DChoices
	Window  float64 // share of the closed blocks
}

// String returns the policy's name with its parameter, such as "d-choices 10".
func (p Policy) String() string {
	switch p.Victim {
	case ftl.DChoices:
		return fmt.Sprintf("%v %d", p.Victim, p.Choices)
	case ftl.WindowedGreedy:
		return fmt.Sprintf("%v %g%%", p.Victim, 100*p.Window)
	}
	return p.Victim.String()
}

// steady is the mean-field steady state under uniform random writes. Time is measured in collected blocks over closed
// blocks, so each valid page is invalidated at rate kappa, and each block stays closed for 1 unit on average.
type steady struct {
	x     []float64 // share of the closed blocks that hold i valid pages
	kappa float64
	alpha float64
}

// waf returns pages programmed over pages written by the host. The number of valid pages is constant, so kappa times
// the mean valid pages of a block, pages/alpha, is what the host invalidates while one block's worth is programmed.
func (s steady) waf() float64 { return s.alpha / s.kappa }

// SteadyState returns, for i from 0 to pages, the share of closed blocks that hold i valid pages once a drive of many
// blocks has been overwritten at random for long. alpha is closed physical over logical space.
func SteadyState(p Policy, alpha float64, pages int) ([]float64, error) {
	s, err := p.solve(alpha, pages)
	return s.x, err
}

// WAF returns the policy's write amplification under uniform random writes for infinitely many blocks of the given
// number of pages.
//
// Windowed greedy: while a block is younger than the window its pages are invalidated as under FIFO. It enters the
// window with a binomial number of valid pages, and there greedy takes all that fall to a level j (j+1 for some), so
// blocks pass the levels above j as under greedy. The window's occupancy determines j.
//
// Cost-benefit: a block at level v waits an exponential time of rate kappa v for its next invalidation, and is
// collected if (1-u)*age/(2u) reaches a threshold before that; the available space determines the threshold.
func (p Policy) WAF(alpha float64, pages int) (float64, error) {
	s, err := p.solve(alpha, pages)
	if err != nil {
		return 0, err
	}
	return s.waf(), nil
}

func (p Policy) solve(alpha float64, pages int) (steady, error) {
	if err := checkAlpha(alpha, pages); err != nil {
		return steady{}, err
	}
	switch p.Victim {
	case ftl.Greedy:
		return Policy{Window: 1}.greedyLike(alpha, pages), nil
	case ftl.FIFO:
		return Policy{Window: 0}.greedyLike(alpha, pages), nil
	case ftl.WindowedGreedy:
		if !(p.Window >= 0 && p.Window <= 1) {
			return steady{}, fmt.Errorf("waf: window %v; use 0 to 1", p.Window)
		}
		return p.greedyLike(alpha, pages), nil
	case ftl.Random, ftl.RandomFull:
		return drawn(alpha, pages, 1), nil
	case ftl.DChoices:
		if p.Choices < 1 {
			return steady{}, fmt.Errorf("waf: %d choices; use at least 1", p.Choices)
		}
		return drawn(alpha, pages, p.Choices), nil
	case ftl.CostBenefit:
		return beneficial(alpha, pages), nil
	}
	return steady{}, fmt.Errorf("waf: no steady state is known for %v", p.Victim)
}

// drawn is the steady state of the best of d blocks drawn. With S_k the share of blocks with k valid pages or more, the
// mean-field equations sum to
//
//	kappa k (S_k - S_k+1) = 1 - S_k^d,
//
// which is solved downwards from S_pages+1 = 0; kappa follows from the sum of the S_k.
func drawn(alpha float64, pages, d int) steady {
	s := make([]float64, pages+2)
	mean := func(kappa float64) float64 {
		sum := 0.0
		for k := pages; k >= 1; k-- {
			s[k] = levelDrawn(float64(kappa*float64(k)), s[k+1], d)
			sum += s[k]
		}
		return sum
	}
	target := float64(pages) / alpha
	// More invalidation means fewer valid pages.
	kappa := bisect(0, alpha+1, func(kappa float64) float64 { return mean(kappa) - target })
	mean(kappa)
	s[0] = 1
	x := make([]float64, pages+1)
	for k := range x {
		x[k] = s[k] - s[k+1]
	}
	return steady{x, kappa, alpha}
}

// levelDrawn solves rate*(s-above) = 1 - s^d for s in [above, 1] by Newton's method, which descends monotonically from
// s = 1 to the root because the function is convex.
func levelDrawn(rate, above float64, d int) float64 {
	s := 1.0
	for range 100 {
		pow := 1.0
		for range d - 1 {
			pow *= s
		}
		miss := float64(rate*(s-above)) + float64(pow*s) - 1
		next := s - miss/(rate+float64(float64(d)*pow))
		if !(next < s) {
			break
		}
		s = next
	}
	return max(s, above)
}

// greedyLike is the steady state of windowed greedy, whose extremes are greedy (window 1) and FIFO (0).
//
// With q the probability that a page is still valid when its block enters the window and F(k) = P(Binomial(pages, q) <
// k), a block spends F(k)/(kappa k) at level k while young on average, and (1-F(k))/(kappa k) in the window if k
// exceeds j.
func (p Policy) greedyLike(alpha float64, pages int) steady {
	x := make([]float64, pages+1)
	below := make([]float64, pages+2)
	mean := func(kappa float64) float64 {
		binomialBelow(below, pages, rng.Exp(-kappa*(1-p.Window)))
		room := p.Window
		sum, all := 0.0, 0.0
		for k := pages; k >= 1; k-- {
			pass := 1 / (kappa * float64(k))
			young := float64(below[k] * pass)
			inWindow := min(room, (1-below[k])*pass)
			room -= inWindow
			x[k] = young + inWindow
			all += x[k]
			sum += float64(float64(k) * x[k])
		}
		x[0] = max(0, 1-all)
		return sum
	}
	target := float64(pages) / alpha
	kappa := bisect(0, alpha+1, func(kappa float64) float64 { return mean(kappa) - target })
	mean(kappa)
	return steady{x, kappa, alpha}
}

// binomialBelow sets below[k] to P(Binomial(n, q) < k) for k from 0 to n+1.
func binomialBelow(below []float64, n int, q float64) {
	below[0] = 0
	if q >= 1 || q <= 0 {
		for k := 1; k <= n; k++ {
			below[k] = 1 - q
		}
		below[n+1] = 1
		return
	}
	lp, lq := rng.Log(q), rng.Log(1-q)
	choose := 0.0 // log of n over k
	sum := 0.0
	for k := 0; k <= n; k++ {
		sum += rng.Exp(choose + float64(float64(k)*lp) + float64(float64(n-k)*lq))
		below[k+1] = min(1, sum)
		choose += rng.Log(float64(n-k) / float64(k+1))
	}
	below[n+1] = 1
}

// beneficial is the steady state of cost-benefit. A block that reaches level v moves on to v-1 with probability s_v = 1
// - exp(-theta v^2/(pages-v)), else it is collected; it stays at v for s_v/(kappa v) on average. The available space
// determines theta. If there is so much space that every block empties before it is needed, empty blocks wait.
func beneficial(alpha float64, pages int) steady {
	x := make([]float64, pages+1)
	kappa := 0.0
	mean := func(theta float64) float64 {
		flow, all, sum := 1.0, 0.0, 0.0
		for v := pages; v >= 1; v-- {
			s := 1.0
			if v < pages {
				s = 1 - rng.Exp(-theta*float64(v)*float64(v)/float64(pages-v))
			}
			flow = float64(flow * s) // share of blocks that moves on to v-1
			x[v] = flow / float64(v)
			all += x[v]
			sum += flow
		}
		kappa = all
		for v := range x {
			x[v] /= all
		}
		return sum / all
	}
	target := float64(pages) / alpha
	if mean(math.Inf(1)) >= target {
		for v := 1; v <= pages; v++ {
			x[v] = 1 / (alpha * float64(v))
		}
		x[0] = max(0, 1-kappa/alpha)
		return steady{x, alpha, alpha}
	}
	// A higher threshold lets blocks wait longer and fall further.
	high := 1.0
	for mean(high) > target {
		high *= 2
	}
	mean(bisect(0, high, func(theta float64) float64 { return mean(theta) - target }))
	return steady{x, kappa, alpha}
}
