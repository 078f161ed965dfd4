package chart

import (
	"math"
	"strconv"
)

// GroupChart is the input of Groups: a group of bars for each label, with Parts[k].V[i] as bar k of group i, and lines
// through the middles of the groups. NaN omits a bar and breaks a line.
type GroupChart struct {
	Frame
	XLabel string
	Y      Axis
	Labels []string
	Parts  []Part
	Lines  []Part
}

// Groups draws bars side by side, with lines over them.
func Groups(c GroupChart) string {
	var lists [][]float64
	keys := keysOf(c.Parts)
	for _, s := range c.Parts {
		lists = append(lists, s.V)
	}
	for _, s := range c.Lines {
		lists = append(lists, s.V)
		keys = append(keys, key{name: s.Name, style: s.Style})
	}
	lo, hi, ok := spanOf(c.Y.Scale, lists...)
	n := len(c.Labels)
	if !ok || n == 0 {
		return emptyChart(c.Frame)
	}
	if c.Y.Scale != Log {
		lo, c.Y.FromZero = 0, true
	}
	p := newPlot(c.Frame, Axis{Label: c.XLabel, Min: -0.5, Max: float64(n) - 0.5, bare: true}, c.Y, 0, 0, lo, hi, keys)
	each := (p.right - p.left) / float64(n)
	last := math.Inf(-1)
	for i, label := range c.Labels {
		x, half := p.x.at(float64(i)), textWidth(label)/2
		if x-half > last+4 {
			p.text(x, p.bottom+16, "tick num", "middle", label)
			last = x + half
		}
		thick := math.Min(0.76*each/float64(max(len(c.Parts), 1)), 34)
		from := x - thick*float64(len(c.Parts))/2
		for k, s := range c.Parts {
			if v := s.V[i]; v > 0 && !math.IsInf(v, 0) {
				y := p.y.at(v)
				p.part(s.Style, func(class, fill string) {
					a := []string{"x", px(from + thick*float64(k)), "y", px(y), "width", px(thick), "height",
						px(p.bottom - y)}
					p.tag("rect", class, append(a, fillOf(fill)...)...)
				})
			}
		}
	}
	for _, s := range c.Lines {
		var line path
		for i := range n {
			line.to(p.x.at(float64(i)), p.yAt(s.V[i]))
		}
		p.tag("path", "line s"+strconv.Itoa(s.Style%Styles), "d", line.b.String())
		for i, v := range s.V {
			if !math.IsNaN(v) {
				p.marker(s.Style, p.x.at(float64(i)), p.yAt(v), 4, "")
			}
		}
	}
	for i, label := range c.Labels {
		title := c.XLabel + " " + label
		for _, list := range [][]Part{c.Lines, c.Parts} {
			for _, s := range list {
				title += "\n" + s.Name + ": " + c.Y.Unit.Format(s.V[i])
			}
		}
		p.hit(p.x.at(float64(i))-each/2, p.top, each, p.bottom-p.top, title)
	}
	return p.end()
}
