package chart

import (
	"math"
	"sort"
	"strconv"
)

// Series is a curve of a chart. Y[i] belongs to X[i]; X rises. NaN in Y breaks the curve.
type Series struct {
	Name  string
	Style int // colour, dashes and marker; see Styles
	X, Y  []float64
}

// LineChart is input to Lines.
type LineChart struct {
	Frame
	X, Y   Axis
	Series []Series
	Shade  []Span
}

// most is how many places along the x axis carry a title.
const most = 120

// Lines draws curves against two axes.
func Lines(c LineChart) string {
	var xs, ys [][]float64
	var keys []key
	for _, s := range c.Series {
		xs, ys = append(xs, s.X), append(ys, s.Y)
		if s.Name != "" {
			keys = append(keys, key{name: s.Name, style: s.Style})
		}
	}
	xlo, xhi, okX := spanOf(c.X.Scale, xs...)
	ylo, yhi, okY := spanOf(c.Y.Scale, ys...)
	if !okX || !okY {
		return nothing(c.Frame)
	}
	for _, s := range c.Shade {
		xlo = math.Min(xlo, s.From)
	}
	p := newPlot(c.Frame, c.X, c.Y, xlo, xhi, ylo, yhi, keys)
	p.shade(c.Shade)
	for i, s := range c.Series {
		p.curve(s, i, len(c.Series))
	}
	p.titles(c.Series, c.X, c.Y)
	return p.end()
}

// curve draws one series with about eight markers, set off from those of the other series.
func (p *plot) curve(s Series, index, of int) {
	var line path
	for i := range s.X {
		line.to(p.x.at(s.X[i]), p.yAt(s.Y[i]))
	}
	p.tag("path", "line s"+strconv.Itoa(s.Style%Styles), "d", line.b.String())
	every := max(1, len(s.X)/8)
	for i := (every/2 + index*every/of) % every; i < len(s.X); i += every {
		if y := p.yAt(s.Y[i]); !math.IsNaN(y) {
			p.marker(s.Style, p.x.at(s.X[i]), y, 3.2, "")
		}
	}
}

// yAt is the pixel of v, NaN if the axis cannot show it.
func (p *plot) yAt(v float64) float64 {
	if p.y.Scale == Log && v <= 0 {
		return math.NaN()
	}
	return p.y.at(v)
}

// titles lays bands over the plot that say the values under them.
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
		title := xc.Label + " " + xc.Unit.Format(x)
		for _, s := range series {
			k := sort.SearchFloat64s(s.X, x)
			if k < len(s.X) && s.X[k] == x {
				name := s.Name
				if name == "" {
					name = yc.Label
				}
				title += "\n" + name + ": " + yc.Unit.Format(s.Y[k])
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
