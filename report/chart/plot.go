package chart

import (
	"math"
	"strconv"
)

// key is an entry of a legend.
type key struct {
	name  string
	style int
	area  bool // a filled box rather than a line with a marker
	dot   bool // a marker without a line
	band  bool // a grey band, as behind figures that must be in it
}

const (
	legendLine = 18.0 // height of a line of the legend
	swatch     = 26.0
)

// legend draws the keys from the left, in as many lines as they need, and returns its height.
func (d *drawing) legend(keys []key) float64 {
	left, right := 8.0, d.w-8
	if len(keys) == 0 {
		return 0
	}
	x, y := left, 12.0
	for _, k := range keys {
		w := swatch + 6 + textWidth(k.name) + 16
		if x > left && x+w > right {
			x = left
			y += legendLine
		}
		switch {
		case k.area:
			d.part(k.style, func(class, fill string) {
				a := []string{"x", px(x + 6), "y", px(y - 9), "width", "16", "height", "11"}
				d.tag("rect", class, append(a, fillOf(fill)...)...)
			})
		case k.dot:
			d.marker(k.style, x+swatch/2, y-4, 4.2, "")
		case k.band:
			d.rect("wanted", x+6, y-9, 16, 11)
		default:
			d.lineTo("line s"+strconv.Itoa(k.style%Styles), x, y-4, x+swatch, y-4)
			d.marker(k.style, x+swatch/2, y-4, 3.4, "")
		}
		d.text(x+swatch+5, y, "", "start", k.name)
		x += w
	}
	return y + 8
}

func fillOf(fill string) []string {
	if fill == "" {
		return nil
	}
	return []string{"fill", fill}
}

// part calls draw once with the class that fills an area with its style's colour, and a second time with its hatching
// if it has one: styles of the same colour have different hatchings.
func (d *drawing) part(style int, draw func(class, fill string)) {
	draw("part f"+strconv.Itoa(style%Styles), "")
	if style > 0 {
		draw("", "url(#hatch"+strconv.Itoa((style-1)%hatchings+1)+")")
	}
}

// plot is the area between two axes.
type plot struct {
	*drawing
	x, y                     axis
	left, right, top, bottom float64
	labels                   []label // of shaded spans
}

// label is a text that is drawn on top of everything else.
type label struct {
	x    float64
	text string
}

// end draws the labels on top and returns the picture.
func (p *plot) end() string {
	for _, l := range p.labels {
		p.text(l.x, p.top+14, "lab over", "start", l.text)
	}
	return p.drawing.end()
}

// newPlot draws the legend, the grid and both axes for values in the given ranges.
func newPlot(f Frame, xc, yc Axis, xlo, xhi, ylo, yhi float64, keys []key) *plot {
	p := &plot{drawing: newDrawing(f)}
	p.top = p.legend(keys) + 8
	p.bottom = p.h - 40
	p.y = newAxis(yc, ylo, yhi, p.bottom-p.top)
	widest := 0.0
	for _, t := range p.y.ticks {
		widest = math.Max(widest, textWidth(t.label))
	}
	p.left = widest + 30
	p.right = p.w - 14
	p.x = newAxis(xc, xlo, xhi, p.right-p.left)
	p.x.place(p.left, p.right)
	p.y.place(p.bottom, p.top)
	p.axes()
	return p
}

func (p *plot) axes() {
	var minor, major path
	for _, t := range p.y.ticks {
		y := math.Round(p.y.at(t.at)) + 0.5
		g := &major
		if t.label == "" {
			g = &minor
		}
		g.pen = false
		g.to(p.left, y)
		g.to(p.right, y)
		if t.label != "" {
			p.text(p.left-6, y+4, "tick num", "end", t.label)
		}
	}
	lastLabel := math.Inf(-1)
	for _, t := range p.x.ticks {
		x := math.Round(p.x.at(t.at)) + 0.5
		g := &major
		if t.label == "" {
			g = &minor
		}
		g.pen = false
		g.to(x, p.bottom)
		g.to(x, p.top)
		half := textWidth(t.label) / 2
		if t.label != "" && x-half > lastLabel+4 {
			p.text(math.Min(x, p.w-half-1), p.bottom+16, "tick num", "middle", t.label)
			lastLabel = x + half
		}
	}
	if s := minor.b.String(); s != "" {
		p.tag("path", "grid minor", "d", s)
	}
	if s := major.b.String(); s != "" {
		p.tag("path", "grid", "d", s)
	}
	p.tag("path", "axis", "d", "M"+px(p.left+0.5)+" "+px(p.top)+"V"+px(p.bottom+0.5)+"H"+px(p.right))
	if p.x.label != "" {
		p.text((p.left+p.right)/2, p.h-6, "lab", "middle", p.x.label)
	}
	if p.y.label != "" {
		middle := (p.top + p.bottom) / 2
		p.text(12, middle, "lab", "middle", p.y.label, "transform", "rotate(-90 12 "+px(middle)+")")
	}
}

// Span is a shaded interval of the x axis.
type Span struct {
	From, To float64
	Label    string
}

func (p *plot) shade(spans []Span) {
	for _, s := range spans {
		from, to := math.Max(p.x.at(s.From), p.left), math.Min(p.x.at(s.To), p.right)
		if !(to > from) {
			continue
		}
		p.rect("shade", from, p.top, to-from, p.bottom-p.top)
		p.lineTo("shade-edge", to, p.top, to, p.bottom)
		// The label is drawn last, on top of the curves in the span.
		if w := textWidth(s.Label); w+8 < to-from {
			p.labels = append(p.labels, label{x: from + 5, text: s.Label})
		} else if s.Label != "" {
			p.labels = append(p.labels, label{x: to + 5, text: "◂ " + s.Label})
		}
	}
}

// span returns the smallest and the largest finite number of the lists, and false if there is none.
func span(lists ...[]float64) (lo, hi float64, ok bool) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, l := range lists {
		for _, v := range l {
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				lo, hi = math.Min(lo, v), math.Max(hi, v)
			}
		}
	}
	return lo, hi, hi >= lo
}

// spanOf is span without the values that a logarithmic axis cannot show.
func spanOf(scale Scale, lists ...[]float64) (lo, hi float64, ok bool) {
	if scale != Log {
		return span(lists...)
	}
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, l := range lists {
		for _, v := range l {
			if v > 0 && !math.IsInf(v, 0) {
				lo, hi = math.Min(lo, v), math.Max(hi, v)
			}
		}
	}
	return lo, hi, hi >= lo
}

// emptyChart draws a chart without values.
func emptyChart(f Frame) string { // see Empty
	d := newDrawing(f)
	d.text(d.w/2, d.h/2, Empty, "middle", "no values")
	return d.end()
}

// Empty is the class of the text in a chart without values, by which a page recognises and omits such a chart.
const Empty = "lab no-values"
