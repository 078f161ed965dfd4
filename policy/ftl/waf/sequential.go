package waf

import (
	"fmt"
	"math"
)

// SequentialMix is write amplification as a function of S, the share of a drive's writes (in bytes) that are
// sequential: a straight line up to a turning point and a parabola after it, equation 7 of minTCO (arXiv 1809.05928).
// There
//
//	A(S) = Slope S + Random                        S <= Turn
//	A(S) = eta S^2 + mu S + gamma                  S >  Turn
//
// Value and slope are continuous at the turning point, which leaves four parameters with a meaning. The shape belongs
// to long sequential loops over the whole drive among random writes. Short runs at random places behave differently:
// simulate those.
type SequentialMix struct {
	Random     float64 // A(0): all writes random; at least 1
	Sequential float64 // A(1): all writes sequential; at least 1
	Turn       float64 // in [0, 1)
	Slope      float64 // of the line; about 0
}

// DefaultSequentialMix is flat at the write amplification of random writes up to 0.45 and then falls to 1. It is within
// 0.3 of a simulated drive at 7 %.
func DefaultSequentialMix(random float64) SequentialMix {
	return SequentialMix{Random: random, Sequential: 1, Turn: 0.45}
}

// Parabola returns eta, mu and gamma.
func (m SequentialMix) Parabola() (eta, mu, gamma float64) {
	atTurn := float64(m.Slope*m.Turn) + m.Random
	rest := 1 - m.Turn
	eta = (m.Sequential - atTurn - float64(m.Slope*rest)) / float64(rest*rest)
	mu = m.Slope - float64(2*eta*m.Turn)
	gamma = atTurn - float64(eta*m.Turn*m.Turn) - float64(mu*m.Turn)
	return eta, mu, gamma
}

// At returns A(S), never less than 1. S is clamped to [0, 1].
func (m SequentialMix) At(s float64) float64 {
	s = min(max(s, 0), 1)
	t := m.beyond(s)
	a := float64(m.Random*(1-t)) + float64(m.Slope*(s-t)) + float64(m.Sequential*t)
	return max(1, a)
}

// beyond returns t, the square of the fraction of the distance from the turning point to 1. The mix is linear in its
// other parameters: Random(1-t) + Slope(S-t) + Sequential t.
func (m SequentialMix) beyond(s float64) float64 {
	if s <= m.Turn {
		return 0
	}
	t := (s - m.Turn) / (1 - m.Turn)
	return t * t
}

// MixPoint is a measured write amplification at a sequential share.
type MixPoint struct{ S, WAF float64 }

// FitSequentialMix returns the mix with the least sum of squared errors to the points, and the root mean square error.
// It needs at least four different shares. The turning point is searched in steps of 0.001 up to 0.95.
func FitSequentialMix(points []MixPoint) (SequentialMix, float64, error) {
	different := map[float64]bool{}
	for _, p := range points {
		if !(p.S >= 0 && p.S <= 1) || !(p.WAF >= 0) || math.IsInf(p.WAF, 1) {
			return SequentialMix{}, 0,
				fmt.Errorf("waf: point (%v, %v): the share must be 0 to 1, and the write amplification finite and not negative", p.S,
					p.WAF)
		}
		different[p.S] = true
	}
	if len(different) < 4 {
		return SequentialMix{}, 0,
			fmt.Errorf("waf: %d distinct sequential shares; four parameters need at least 4", len(different))
	}
	var best SequentialMix
	least := math.Inf(1)
	for step := range 951 {
		m := SequentialMix{Turn: float64(step) / 1000}
		if !m.fit(points) {
			continue
		}
		sum := 0.0
		for _, p := range points {
			t := m.beyond(p.S)
			e := float64(m.Random*(1-t)) + float64(m.Slope*(p.S-t)) + float64(m.Sequential*t) - p.WAF
			sum += float64(e * e)
		}
		if sum < least {
			best, least = m, sum
		}
	}
	if math.IsInf(least, 1) {
		return SequentialMix{}, 0,
			fmt.Errorf("waf: the points do not determine a turning point; add shares below and above it")
	}
	return best, math.Sqrt(least / float64(len(points))), nil
}

// fit solves the normal equations for the turning point m.Turn. It reports false if the points do not determine the
// parameters.
func (m *SequentialMix) fit(points []MixPoint) bool {
	var n [3][4]float64
	for _, p := range points {
		t := m.beyond(p.S)
		row := [4]float64{1 - t, p.S - t, t, p.WAF}
		for i := range 3 {
			for j := range 4 {
				n[i][j] += float64(row[i] * row[j])
			}
		}
	}
	for i := range 3 {
		pivot := i
		for r := i + 1; r < 3; r++ {
			if math.Abs(n[r][i]) > math.Abs(n[pivot][i]) {
				pivot = r
			}
		}
		if math.Abs(n[pivot][i]) < 1e-9 {
			return false
		}
		n[i], n[pivot] = n[pivot], n[i]
		for r := range 3 {
			if r == i {
				continue
			}
			by := n[r][i] / n[i][i]
			for c := i; c < 4; c++ {
				n[r][c] -= float64(by * n[i][c])
			}
		}
	}
	m.Random, m.Slope, m.Sequential = n[0][3]/n[0][0], n[1][3]/n[1][1], n[2][3]/n[2][2]
	return true
}
