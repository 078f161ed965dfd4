package chart

import (
	"math"
	"sort"
	"strconv"
)

// Series is a curve of a chart. Y[i] belongs to X[i]; X increases. NaN in Y breaks the curve.
type Series struct {
	Name  string
	Style int // colour, dashes and marker; see Styles
	X, Y  []float64
	Half  []float64 // half width of each value's interval, drawn as a whisker; nil: none
}

// LineChart is the input of Lines and Dots.
type LineChart struct {
	Frame
	X, Y   Axis
	Series []Series
	Shade  []Span
	Apart  bool // do not connect the points: the x axis has no order
}

// most limits the positions along the x axis that have a title.
const most = 120

// Lines draws curves against two axes.
func Lines(c LineChart) string {
	var xs, ys [][]float64
	var keys []key
	for _, s := range c.Series {
		xs, ys = append(xs, s.X), append(ys, s.Y, s.end(-1), s.end(1))
		if s.Name != "" {
			keys = append(keys, key{name: s.Name, style: s.Style})
		}
	}
	xlo, xhi, okX := spanOf(c.X.Scale, xs...)
	ylo, yhi, okY := spanOf(c.Y.Scale, ys...)
	if !okX || !okY {
		return emptyChart(c.Frame)
	}
	for _, s := range c.Shade {
		xlo = math.Min(xlo, s.From)
	}
	p := newPlot(c.Frame, c.X, c.Y, xlo, xhi, ylo, yhi, keys)
	p.shade(c.Shade)
	for i, s := range c.Series {
		p.curve(s, i, len(c.Series), c.Apart)
	}
	p.titles(c.Series, c.X, c.Y)
	return p.end()
}

// end returns the lower (sign -1) or upper (sign 1) ends of the whiskers.
func (s *Series) end(sign float64) []float64 {
	out := make([]float64, len(s.Half))
	for i, h := range s.Half {
		out[i] = s.Y[i] + sign*h
	}
	return out
}

// whiskers draws the intervals of a series. An end that a logarithmic axis cannot show is drawn at the axis' end.
func (p *plot) whiskers(s Series) {
	const cap = 4.0
	for i, h := range s.Half {
		if !(h > 0) || math.IsNaN(p.yAt(s.Y[i])) {
			continue
		}
		x, high, low := p.x.at(s.X[i]), p.y.at(s.Y[i]+h), p.y.at(s.Y[i]-h)
		p.tag("path", "whisker s"+strconv.Itoa(s.Style%Styles), "d",
			"M"+px(x)+" "+px(low)+"V"+px(high)+"M"+px(x-cap)+" "+px(low)+"H"+px(x+cap)+"M"+px(x-cap)+" "+px(high)+"H"+
				px(x+cap))
	}
}

// curve draws one series with about eight markers, offset from those of the other series.
func (p *plot) curve(s Series, index, of int, apart bool) {
	if !apart {
		var line path
		for i := range s.X {
			line.to(p.x.at(s.X[i]), p.yAt(s.Y[i]))
		}
		p.tag("path", "line s"+strconv.Itoa(s.Style%Styles), "d", line.b.String())
	}
	p.whiskers(s)
	every := max(1, len(s.X)/8)
	if s.Half != nil {
		every = 1 // each point is a measurement of its own
	}
	for i := (every/2 + index*every/of) % every; i < len(s.X); i += every {
		if y := p.yAt(s.Y[i]); !math.IsNaN(y) {
			p.marker(s.Style, p.x.at(s.X[i]), y, 3.2, "")
		}
	}
}

// yAt returns the pixel of v, NaN if the axis cannot show it.
func (p *plot) yAt(v float64) float64 {
	if p.y.Scale == Log && v <= 0 {
		return math.NaN()
	}
	return p.y.at(v)
}

// titles adds bands over the plot whose titles give the values at each x.
func (p *plot) titles(series []Series, xc, yc Axis) {
	var xs []float64
	for _, s := range series {
		xs = append(xs, s.X...)
	}
	sort.Float64s(xs)
	xs = distinct(xs)
	every := (len(xs) + most - 1) / most
	for i := 0; i < len(xs); i += every {
		x := xs[i]
		from, to := p.left, p.right
		if i > 0 {
			from = (p.x.at(xs[max(i-every, 0)]) + p.x.at(x)) / 2
		}
		if i+every < len(xs) {
			to = (p.x.at(xs[i+every]) + p.x.at(x)) / 2
		}
		title := xc.Label + " " + xc.name(x)
		for _, s := range series {
			k := sort.SearchFloat64s(s.X, x)
			if k < len(s.X) && s.X[k] == x {
				name := s.Name
				if name == "" {
					name = yc.Label
				}
				title += "\n" + name + ": " + yc.Unit.Format(s.Y[k])
				if s.Half != nil && s.Half[k] > 0 {
					title += " ± " + yc.Unit.Format(s.Half[k])
				}
			}
		}
		p.hit(from, p.top, to-from, p.bottom-p.top, title)
	}
}

func distinct(sorted []float64) []float64 {
	out := sorted[:0]
	for i, v := range sorted {
		if i == 0 || v != out[len(out)-1] {
			out = append(out, v)
		}
	}
	return out
}
