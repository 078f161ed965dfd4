package chart

import (
	"math"
	"strconv"
	"strings"
)

// Dots draws points without lines, up to thousands of them: at most one point of a series per pixel is drawn. The last
// series is on top.
func Dots(c LineChart) string {
	var xs, ys [][]float64
	var keys []key
	for _, s := range c.Series {
		xs, ys = append(xs, s.X), append(ys, s.Y)
		if s.Name != "" {
			keys = append(keys, key{name: s.Name, style: s.Style, area: true})
		}
	}
	xlo, xhi, okX := spanOf(c.X.Scale, xs...)
	ylo, yhi, okY := spanOf(c.Y.Scale, ys...)
	if !okX || !okY {
		return emptyChart(c.Frame)
	}
	p := newPlot(c.Frame, c.X, c.Y, xlo, xhi, ylo, yhi, keys)
	p.shade(c.Shade)
	wide := int(p.w) + 1
	for _, s := range c.Series {
		taken := make([]bool, wide*(int(p.h)+1))
		var b strings.Builder
		for i := range s.X {
			x, y := math.Round(p.x.at(s.X[i])), math.Round(p.yAt(s.Y[i]))
			if math.IsNaN(x) || math.IsNaN(y) || x < 0 || y < 0 || x > p.w || y > p.h {
				continue
			}
			if at := int(y)*wide + int(x); !taken[at] {
				taken[at] = true
				b.WriteString("M" + px(x) + " " + px(y) + "h0")
			}
		}
		p.tag("path", "dots s"+strconv.Itoa(s.Style%Styles), "d", b.String())
	}
	return p.end()
}
