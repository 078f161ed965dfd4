package chart

import (
	"math"
	"strconv"
)

// ForestChart is the input of Forest: one effect with its interval per row, against a line of no effect.
type ForestChart struct {
	Frame
	X     Axis
	Zero  float64 // value of no effect: 0 for differences, 1 for ratios
	Rows  []ForestRow
	Below bool // names and texts are above their effects, which then have the full width
}

// ForestRow is an effect. An end of the interval that is cut off, or that the axis cannot show, is an arrow.
type ForestRow struct {
	Name            string
	Mean, Low, High float64
	Text            string // printed behind the interval
	Style           int
	Faint           bool   // de-emphasised: not distinguishable from chance
	Title           string // tooltip
	CutLow, CutHigh bool   // the interval extends beyond Low or High
}

// forestRow is the height of a row, forestBelow that of a row whose effect is below its name, both in pixels.
const (
	forestRow   = 25.0
	forestBelow = 44.0
)

// ForestHeight returns a suitable height for a number of rows, the default of Forest.
func ForestHeight(rows int) float64 { return 64 + forestRow*float64(rows) }

// Forest draws effects one below the other.
func Forest(c ForestChart) string {
	lists := [][]float64{{c.Zero}}
	for _, r := range c.Rows {
		lists = append(lists, []float64{r.Mean, r.Low, r.High})
	}
	lo, hi, ok := spanOf(c.X.Scale, lists...)
	if len(c.Rows) == 0 || !ok {
		return emptyChart(c.Frame)
	}
	if c.Height <= 0 {
		c.Height = ForestHeight(len(c.Rows))
		if c.Below {
			c.Height += (forestBelow - forestRow) * float64(len(c.Rows))
		}
	}
	p := &plot{drawing: newDrawing(c.Frame)}
	p.top, p.bottom = 8, p.h-40
	after := 0.0
	for _, r := range c.Rows {
		p.left, after = math.Max(p.left, textWidth(r.Name)), math.Max(after, textWidth(r.Text))
	}
	p.left += 16
	p.right = math.Max(p.w-1.04*after-28, p.left+60)
	if c.Below {
		p.left, p.right = 26, p.w-26
	}
	p.x = newAxis(c.X, lo, hi, p.right-p.left)
	p.x.place(p.left, p.right)
	p.axes()
	zero := p.x.at(c.Zero)
	p.lineTo("zero", zero, p.top, zero, p.bottom)
	each := (p.bottom - p.top) / float64(len(c.Rows))
	for i, r := range c.Rows {
		p.effect(r, p.top+each*(float64(i)+0.5), each, c.Below)
	}
	return p.end()
}

func (p *plot) effect(r ForestRow, y, each float64, below bool) {
	class := ""
	if r.Faint {
		class = " faint"
	}
	if below {
		p.text(8, y-6, "over", "start", r.Name)
		p.text(p.w-8, y-6, "num over", "end", r.Text)
		y += each / 4
	} else {
		p.text(p.left-8, y+4, "", "end", r.Name)
		p.text(p.right+14, y+4, "num", "start", r.Text)
	}
	low, high := p.x.at(r.Low), p.x.at(r.High)
	if math.IsNaN(low) || math.IsNaN(high) || math.IsNaN(r.Mean) {
		return
	}
	const cap = 4.0
	d := "M" + px(low) + " " + px(y) + "H" + px(high)
	if r.CutLow || p.x.Scale == Log && r.Low < p.x.lo {
		d += "M" + px(low+cap) + " " + px(y-cap) + "L" + px(low) + " " + px(y) + "L" + px(low+cap) + " " + px(y+cap)
	} else {
		d += "M" + px(low) + " " + px(y-cap) + "V" + px(y+cap)
	}
	if r.CutHigh {
		d += "M" + px(high-cap) + " " + px(y-cap) + "L" + px(high) + " " + px(y) + "L" + px(high-cap) + " " + px(y+cap)
	} else {
		d += "M" + px(high) + " " + px(y-cap) + "V" + px(y+cap)
	}
	style := strconv.Itoa(r.Style % Styles)
	p.tag("path", "whisker s"+style+class, "d", d)
	if p.x.Scale != Log || r.Mean > 0 {
		if r.Faint {
			p.tag("circle", "whisker s"+style, "cx", px(p.x.at(r.Mean)), "cy", px(y), "r", "4")
		} else {
			p.marker(r.Style, p.x.at(r.Mean), y, 4.6, "")
		}
	}
	p.hit(0, y-each/2, p.w, each, r.Title)
}
