package chart

import (
	"math"
)

// BarChart is the input of Bars: one bar per row, made of parts; Parts[k].V[i] is part k of row i.
type BarChart struct {
	Frame
	X     Axis // axis of the values
	Rows  []string
	Parts []Part
	Total bool      // print each bar's sum behind it
	From  []float64 // start of each row's bar, as in a waterfall; nil: 0
}

// barHeight is the height of a bar with the space around it, in pixels.
const barHeight = 38.0

// BarsHeight returns a suitable height for a number of rows, the default of Bars.
func BarsHeight(rows int) float64 { return 100 + barHeight*float64(rows) }

// Bars draws horizontal bars of stacked parts. Parts that are wide enough show their number.
func Bars(c BarChart) string {
	if len(c.Rows) == 0 || len(c.Parts) == 0 {
		return emptyChart(c.Frame)
	}
	if c.Height <= 0 {
		c.Height = BarsHeight(len(c.Rows))
	}
	totals := make([]float64, len(c.Rows))
	ends := make([]float64, len(c.Rows))
	for i := range c.Rows {
		for _, s := range c.Parts {
			if v := s.V[i]; !math.IsNaN(v) {
				totals[i] += v
			}
		}
		ends[i] = c.begin(i) + totals[i]
	}
	_, hi, _ := span(ends)
	p := &plot{drawing: newDrawing(c.Frame)}
	p.top = p.legend(keysOf(c.Parts)) + 6
	p.bottom = p.h - 40
	for _, r := range c.Rows {
		p.left = math.Max(p.left, textWidth(r))
	}
	p.left = 1.04*p.left + 16 // textWidth underestimates long names of words with signs
	p.right = p.w - 14
	if c.Total {
		p.right -= 62
	}
	xc := c.X
	xc.FromZero = true
	p.x = newAxis(xc, 0, hi, p.right-p.left)
	p.x.place(p.left, p.right)
	p.axes()
	each := (p.bottom - p.top) / float64(len(c.Rows))
	thick := math.Min(each*0.68, 30)
	for i, row := range c.Rows {
		y := p.top + each*(float64(i)+0.5) - thick/2
		p.text(p.left-8, y+thick/2+4, "", "end", row)
		sum := c.begin(i)
		for _, s := range c.Parts {
			v := s.V[i]
			if !(v > 0) {
				continue
			}
			p.barPart(c, s, row, sum, v, totals[i], y, thick)
			sum += v
		}
		if c.Total {
			p.text(p.x.at(sum)+7, y+thick/2+4, "num", "start", c.X.Unit.Format(totals[i]))
		}
	}
	return p.end()
}

// begin returns the start of a row's bar.
func (c *BarChart) begin(i int) float64 {
	if c.From == nil {
		return 0
	}
	return c.From[i]
}

func (p *plot) barPart(c BarChart, s Part, row string, from, v, total, y, thick float64) {
	x, w := p.x.at(from), p.x.at(from+v)-p.x.at(from)
	p.part(s.Style, func(class, fill string) {
		a := []string{"x", px(x), "y", px(y), "width", px(w), "height", px(thick)}
		p.tag("rect", class, append(a, fillOf(fill)...)...)
	})
	label := c.X.Unit.Format(v)
	if tw := textWidth(label); tw+10 < w && len(c.Parts) > 1 && thick >= 17 {
		// A background keeps the number readable on colour and hatching.
		p.tag("rect", "", "x", px(x+w/2-tw/2-3), "y", px(y+thick/2-8), "width", px(tw+6), "height", "16", "rx", "3",
			"fill", "var(--paper,#fff)", "fill-opacity", ".85")
		p.text(x+w/2, y+thick/2+4, "num", "middle", label)
	}
	title := row
	if s.Name != "" {
		title += ", " + s.Name
	}
	title += ": " + label
	if len(c.Parts) > 1 && total > 0 {
		title += " (" + Fractions.Format(v/total) + ")"
	}
	p.hit(x, y, w, thick, title)
}
