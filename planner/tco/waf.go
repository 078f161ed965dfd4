package tco

import (
	"fmt"
	"math"
	"slices"

	"farflash/policy/ftl/waf"
)

// WAF is a drive's write amplification as a function of the mix of writes. At is called for every candidate drive of
// every arrival: it must be fast, must not allocate, and must return at least 1 for any sequential share of the written
// bytes from 0 to 1.
//
// waf.SequentialMix implements it (equation 7), as do Constant and Table. A table can come from any measurement: the
// FTL simulator (waf.Simulate), closed forms, a drive's own counters.
type WAF interface {
	At(sequential float64) float64
}

// Constant is a write amplification independent of the mix, such as a closed form for random writes.
type Constant float64

// At implements WAF.
func (c Constant) At(float64) float64 { return max(1, float64(c)) }

// Table is a measured write amplification: linear between points, and constant beyond the first and the last.
type Table struct {
	points []waf.MixPoint
	slopes []float64 // from each point to the next
}

// NewTable returns a table of points with increasing shares.
func NewTable(points []waf.MixPoint) (*Table, error) {
	if len(points) < 2 {
		return nil, fmt.Errorf("%d points of write amplification; a table needs at least 2", len(points))
	}
	t := &Table{points: slices.Clone(points)}
	for i, p := range t.points {
		switch {
		case !(p.S >= 0 && p.S <= 1):
			return nil, fmt.Errorf("write amplification at a sequential share of %v; it must be 0 to 1", p.S)
		case !(p.WAF >= 1) || math.IsInf(p.WAF, 1):
			return nil, fmt.Errorf("a write amplification of %v at a sequential share of %v; it must be at least 1",
				p.WAF, p.S)
		case i > 0 && p.S <= t.points[i-1].S:
			return nil, fmt.Errorf("sequential share %v follows %v; the shares of a table must rise", p.S,
				t.points[i-1].S)
		}
	}
	for i := 1; i < len(t.points); i++ {
		t.slopes = append(t.slopes, (t.points[i].WAF-t.points[i-1].WAF)/(t.points[i].S-t.points[i-1].S))
	}
	return t, nil
}

// Points returns a copy of the table's points.
func (t *Table) Points() []waf.MixPoint { return slices.Clone(t.points) }

// At implements WAF.
func (t *Table) At(s float64) float64 {
	last := len(t.points) - 1
	if s <= t.points[0].S {
		return t.points[0].WAF
	}
	if s >= t.points[last].S {
		return t.points[last].WAF
	}
	lo, hi := 0, last
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; t.points[mid].S <= s {
			lo = mid
		} else {
			hi = mid
		}
	}
	return t.points[lo].WAF + float64(t.slopes[lo]*(s-t.points[lo].S))
}
