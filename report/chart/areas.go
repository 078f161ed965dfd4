package chart

import (
	"math"
)

// Part is a layer of stacked areas or bars, or a set of columns.
type Part struct {
	Name  string
	Style int
	V     []float64
}

// ColumnChart is the input of Columns and Areas: V[i] of each part is drawn from Edges[i] to Edges[i+1].
type ColumnChart struct {
	Frame
	X, Y  Axis
	Edges []float64
	Parts []Part
	Shade []Span
}

func keysOf(parts []Part) []key {
	if len(parts) == 1 && parts[0].Name == "" {
		return nil
	}
	keys := make([]key, len(parts))
	for i, s := range parts {
		keys[i] = key{name: s.Name, style: s.Style, area: true}
	}
	return keys
}

// Columns draws overlaid histograms as translucent filled outlines.
func Columns(c ColumnChart) string {
	lists := make([][]float64, len(c.Parts))
	for i, s := range c.Parts {
		lists[i] = s.V
	}
	lo, hi, ok := spanOf(c.Y.Scale, lists...)
	if !ok || len(c.Edges) < 2 {
		return emptyChart(c.Frame)
	}
	keys := keysOf(c.Parts)
	for i := range keys {
		keys[i].area = false
	}
	p := newPlot(c.Frame, c.X, c.Y, c.Edges[0], c.Edges[len(c.Edges)-1], lo, hi, keys)
	p.shade(c.Shade)
	base := p.bottom
	for _, s := range c.Parts {
		var outline, fill path
		fill.to(p.x.at(c.Edges[0]), base)
		outline.to(p.x.at(c.Edges[0]), base)
		for i, v := range s.V {
			y := base
			if v > 0 {
				y = p.yAt(v)
			}
			for _, line := range []*path{&fill, &outline} {
				line.to(p.x.at(c.Edges[i]), y)
				line.to(p.x.at(c.Edges[i+1]), y)
			}
		}
		for _, line := range []*path{&fill, &outline} {
			line.to(p.x.at(c.Edges[len(c.Edges)-1]), base)
		}
		fill.close()
		style := string(rune('0' + s.Style%Styles))
		p.tag("path", "fill f"+style, "d", fill.b.String())
		p.tag("path", "line s"+style, "d", outline.b.String())
		// One marker, at the top of the highest column.
		if k := highest(s.V); k >= 0 && len(keys) > 0 {
			p.marker(s.Style, (p.x.at(c.Edges[k])+p.x.at(c.Edges[k+1]))/2, p.yAt(s.V[k]), 3.4, "")
		}
	}
	p.columnTitles(c.Edges, c.Parts, c.X.Unit, c.Y.Unit, false)
	return p.end()
}

func highest(v []float64) int {
	best := -1
	for i, x := range v {
		if x > 0 && (best < 0 || x > v[best]) {
			best = i
		}
	}
	return best
}

// columnTitles adds a band with a title over each column, or over several if they are narrow.
func (p *plot) columnTitles(edges []float64, parts []Part, x, y Unit, total bool) {
	n := len(edges) - 1
	every := (n + most - 1) / most
	for i := 0; i < n; i += every {
		end := min(i+every, n)
		from, to := p.x.at(edges[i]), p.x.at(edges[end])
		title := x.Format(edges[i]) + " to " + x.Format(edges[end])
		all := 0.0
		for _, s := range parts {
			sum := 0.0
			for _, v := range s.V[i:end] {
				if !math.IsNaN(v) {
					sum += v
				}
			}
			all += sum
			name := s.Name
			if name != "" {
				name += ": "
			}
			title += "\n" + name + y.Format(sum)
		}
		if total && len(parts) > 1 {
			title += "\nall: " + y.Format(all)
		}
		p.hit(from, p.top, to-from, p.bottom-p.top, title)
	}
}

// Areas draws parts stacked on each other, in steps from edge to edge. NaN counts as 0.
func Areas(c ColumnChart) string {
	n := len(c.Edges) - 1
	if n < 1 || len(c.Parts) == 0 {
		return emptyChart(c.Frame)
	}
	sums := make([][]float64, len(c.Parts)+1)
	sums[0] = make([]float64, n)
	for k, s := range c.Parts {
		sums[k+1] = make([]float64, n)
		for i := range n {
			v := s.V[i]
			if math.IsNaN(v) {
				v = 0
			}
			sums[k+1][i] = sums[k][i] + v
		}
	}
	_, hi, _ := span(sums[len(sums)-1])
	yc := c.Y
	yc.FromZero = true
	p := newPlot(c.Frame, c.X, yc, c.Edges[0], c.Edges[n], 0, hi, keysOf(c.Parts))
	for k, s := range c.Parts {
		var area path
		for i := range n {
			area.to(p.x.at(c.Edges[i]), p.y.at(sums[k+1][i]))
			area.to(p.x.at(c.Edges[i+1]), p.y.at(sums[k+1][i]))
		}
		for i := n - 1; i >= 0; i-- {
			area.to(p.x.at(c.Edges[i+1]), p.y.at(sums[k][i]))
			area.to(p.x.at(c.Edges[i]), p.y.at(sums[k][i]))
		}
		area.close()
		p.part(s.Style, func(class, fill string) {
			p.tag("path", class, append([]string{"d", area.b.String()}, fillOf(fill)...)...)
		})
	}
	p.shade(c.Shade)
	p.columnTitles(c.Edges, c.Parts, c.X.Unit, c.Y.Unit, true)
	return p.end()
}
