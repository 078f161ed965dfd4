package chart

import (
	"math"
	"sort"
	"strconv"
)

// Distribution is one curve of a CDF: a share of Share[i] of all values is at most Value[i]. Both increase; the last
// share is 1.
type Distribution struct {
	Name  string
	Style int
	Value []float64
	Share []float64
	Count int64 // number of values; the curve ends where less than one of them remains
}

// CDFChart is the input of CDF. X should be logarithmic for latencies.
type CDFChart struct {
	Frame
	X             Axis
	YLabel        string
	Distributions []Distribution
}

// marked lists the shares that get a marker with a title.
var marked = []float64{0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999}

// CDF draws cumulative distributions on an axis of nines, which gives the tail as much space as the body: each step
// up is ten times rarer. It is the complementary distribution function 1-F on a logarithmic axis, flipped so that
// slower and rarer is up and to the right.
func CDF(c CDFChart) string {
	var xs [][]float64
	var keys []key
	most := 0.9
	for _, s := range c.Distributions {
		if len(s.Value) == 0 {
			continue
		}
		xs = append(xs, s.Value)
		keys = append(keys, key{name: s.Name, style: s.Style})
		most = math.Max(most, 1-1/float64(max(s.Count, 2)))
	}
	lo, hi, ok := spanOf(c.X.Scale, xs...)
	if !ok {
		return emptyChart(c.Frame)
	}
	most = math.Min(most, 1-1e-7)
	p := newPlot(c.Frame, c.X, Axis{Label: c.YLabel, Scale: Nines}, lo, hi, 0, most, keys)
	for _, s := range c.Distributions {
		p.steps(s)
	}
	p.cdfTitles(c)
	for _, s := range c.Distributions {
		p.marks(s, c.X)
	}
	return p.end()
}

// steps draws one distribution. It ends at the largest value, at the height where one value remains.
func (p *plot) steps(s Distribution) {
	if len(s.Value) == 0 {
		return
	}
	var line path
	end := s.End()
	y := p.y.at(0)
	line.to(p.x.at(s.Value[0]), y)
	lastV, lastShare := s.Value[0], 0.0
	for i, v := range s.Value {
		// A bucket is a range whose values are assumed to be spread evenly, so the curve slopes rather than steps.
		// Where a few buckets make long slopes, the slopes are bent by the axis of nines.
		const bends = 16
		to := p.y.at(math.Min(s.Share[i], end))
		if math.Abs(to-y) > 12 {
			for k := 1.0; k < bends; k++ {
				line.to(p.x.at(lastV+(v-lastV)*k/bends),
					p.y.at(math.Min(lastShare+(s.Share[i]-lastShare)*k/bends, end)))
			}
		}
		line.to(p.x.at(v), to)
		y, lastV, lastShare = to, v, s.Share[i]
	}
	p.tag("path", "line s"+strconv.Itoa(s.Style%Styles), "d", line.b.String())
}

// marks draws a marker with a title at each of the usual percentiles.
func (p *plot) marks(s Distribution, x Axis) {
	for _, q := range marked {
		if s.Count > 0 && 1/float64(s.Count) > 1-q+1e-12 || len(s.Value) == 0 {
			break
		}
		v := s.quantile(q)
		p.marker(s.Style, p.x.at(v), p.y.at(q), 4, s.Name+": "+FormatShare(q)+" within "+x.Unit.Format(v))
	}
}

// Nine returns the number of nines of a share, its position on an axis of nines: 0.9 has one, 0.99 two.
func Nine(share float64) float64 { return nine(share) }

// End returns the share at which a curve ends: less than one value lies beyond it.
func (s Distribution) End() float64 { return 1 - 1/float64(max(s.Count, 2)) }

// quantile interpolates the value at a share.
func (s Distribution) quantile(q float64) float64 {
	i := sort.SearchFloat64s(s.Share, q)
	if i >= len(s.Value) {
		return s.Value[len(s.Value)-1]
	}
	if i == 0 || s.Share[i] == s.Share[i-1] {
		return s.Value[i]
	}
	t := (q - s.Share[i-1]) / (s.Share[i] - s.Share[i-1])
	return s.Value[i-1] + t*(s.Value[i]-s.Value[i-1])
}

// share interpolates the share at a value.
func (s Distribution) share(v float64) float64 {
	i := sort.SearchFloat64s(s.Value, v)
	switch {
	case i >= len(s.Value):
		return 1
	case s.Value[i] == v:
		return s.Share[i]
	case i == 0:
		return 0
	}
	t := (v - s.Value[i-1]) / (s.Value[i] - s.Value[i-1])
	return s.Share[i-1] + t*(s.Share[i]-s.Share[i-1])
}

// cdfTitles adds bands over the plot whose titles give the share at each value.
func (p *plot) cdfTitles(c CDFChart) {
	const bands = 80
	w := (p.right - p.left) / bands
	for i := range bands {
		t := (float64(i) + 0.5) / bands
		v := p.x.lo + t*(p.x.hi-p.x.lo)
		if c.X.Scale == Log {
			v = p.x.lo * math.Pow(p.x.hi/p.x.lo, t)
		}
		title := c.X.Unit.Format(v)
		for _, s := range c.Distributions {
			if len(s.Value) > 0 {
				title += "\n" + s.Name + ": " + FormatShare(s.share(v)) + " are within"
			}
		}
		p.hit(p.left+float64(i)*w, p.top, w, p.bottom-p.top, title)
	}
}
