package calendar

import (
	"math"
	"slices"

	"farflash/planner/tco"
	"farflash/policy/ftl/waf"
)

// A drive's write amplification depends on the mix of all writes to it, which no sum over workloads expresses. But if
// the mix of a drive is constant, it lies in some interval of sequential shares, and any line nowhere above the
// amplification in that interval is a lower bound on wear: a steeply falling line charges more for workloads that are
// less sequential than the interval, because others must compensate for them. So each class is split into one class per
// interval.

// mostMixes is the largest number of intervals per class, and mostDivided the limit on workloads times classes up to
// which classes are split.
const (
	mostMixes   = 6
	mostDivided = 4000
)

// mix is an interval of the sequential share of the writes to a drive, with lines nowhere above the write amplification
// in it: value at 0, and slope.
type mix struct {
	from, to float64
	lines    [][2]float64
}

// divided splits the classes by intervals of the sequential share, and returns the class of each part; nil if a drive's
// mix may change, or if the work is too much.
func (c *Calendar) divided(p *tco.Problem, classes []floored) (out []floored, of []int) {
	if len(p.Jobs)*len(classes) > mostDivided {
		return nil, nil
	}
	for j := range p.Jobs {
		if a, b := &p.Jobs[0], &p.Jobs[j]; a.Arrival != b.Arrival || a.Growth != b.Growth || c.end(a) != c.end(b) {
			return nil, nil
		}
	}
	for i := range classes {
		x := &classes[i]
		parts := mixes(x.c.Drive.WAF)
		if parts == nil { // no intervals to distinguish
			out, of = append(out, *x), append(of, i)
		}
		for _, part := range parts {
			y := *x
			y.wears = nil
			for _, line := range part.lines {
				list := make([]float64, len(p.Jobs))
				for j := range list {
					list[j] = c.wear(&x.c.Drive, &p.Jobs[j]) * (line[0] + float64(line[1]*p.Jobs[j].Sequential))
				}
				y.wears = append(y.wears, list)
			}
			out, of = append(out, y), append(of, i)
		}
	}
	return out, of
}

// mixes divides the sequential shares of a write amplification that is linear between its points, or concave, as
// equation 7 is if random writes wear more. It returns nil for all others, and for a constant.
func mixes(w tco.WAF) (parts []mix) {
	var at []float64 // between two of them, a line below both ends is below the curve
	switch w := w.(type) {
	case waf.SequentialMix:
		if eta, _, _ := w.Parabola(); eta > 0 || w.Random < 1 || w.Sequential < 1 {
			return nil
		}
		at = append(at, 0, 1)
		for i := range mostMixes - 1 {
			at = append(at, w.Turn+float64((1-w.Turn)*float64(i)/(mostMixes-1)))
		}
	case *tco.Table:
		at = append(at, 0, 1)
		for _, x := range w.Points() {
			at = append(at, x.S)
		}
	}
	slices.Sort(at)
	at = slices.Compact(at)
	height := 0.0 // height of the whole curve
	for _, s := range at {
		height = max(height, math.Abs(w.At(s)-w.At(0)))
	}
	if height == 0 {
		return nil
	}
	ends := slices.Clone(at)
	for len(ends) > mostMixes+1 { // merge the two adjacent intervals that are shortest together
		k := 1
		for i := 2; i < len(ends)-1; i++ {
			if ends[i+1]-ends[i-1] < ends[k+1]-ends[k-1] {
				k = i
			}
		}
		ends = slices.Delete(ends, k, k+1)
	}
	for i := 1; i < len(ends); i++ {
		a, b := ends[i-1], ends[i]
		chord := (w.At(b) - w.At(a)) / (b - a)
		part := mix{from: a, to: b}
		for _, away := range []float64{0, -1, -4, 1, 4} {
			slope := chord + float64(away*height)
			low := math.Inf(1)
			for _, s := range at {
				if s >= a && s <= b {
					low = min(low, w.At(s)-float64(slope*s))
				}
			}
			part.lines = append(part.lines, [2]float64{low - 1e-9, slope})
		}
		parts = append(parts, part)
	}
	return parts
}
