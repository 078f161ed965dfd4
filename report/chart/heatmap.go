package chart

import (
	"math"
	"strconv"
)

// HeatMapChart is the input of HeatMap. V[i][k] belongs to Rows[i] and Cols[k]; NaN leaves a cell empty.
type HeatMapChart struct {
	Frame
	RowLabel, ColLabel string
	Rows, Cols         []string
	V                  [][]float64
	Unit               Unit
	Legend             string     // meaning of the numbers
	Min, Max           float64    // range of the colours; both 0: from 0 to the largest value
	darkest            float64    // position of the smallest value on the colour map, 0 to 1
	Cells              [][]string // names of the cells in their titles; nil: by row and column
}

// cividis holds stops of the colour map, dark to light.
var cividis = [][3]float64{
	{0, 34, 78}, {18, 53, 112}, {59, 73, 108}, {87, 93, 109}, {112, 113, 115}, {138, 134, 120}, {165, 156, 116},
	{195, 179, 105}, {225, 204, 85}, {254, 232, 56},
}

// colourAt returns the colour of a share from 0 to 1, and whether the colour is light, so that text on it must be dark.
func colourAt(share float64) (colour string, light bool) {
	at := math.Min(math.Max(share, 0), 1) * float64(len(cividis)-1)
	i := min(int(at), len(cividis)-2)
	t := at - float64(i)
	text := "#"
	luminance := 0.0
	for k, weight := range []float64{0.2126, 0.7152, 0.0722} {
		v := math.Round(cividis[i][k] + t*(cividis[i+1][k]-cividis[i][k]))
		luminance += weight * v
		hex := strconv.FormatInt(int64(v), 16)
		if len(hex) == 1 {
			hex = "0" + hex
		}
		text += hex
	}
	return text, luminance > 125
}

// HeatMapHeight returns a suitable height for a number of rows, the default of HeatMap.
func HeatMapHeight(rows int) float64 {
	return 92 + math.Max(10, math.Min(30, 640/float64(max(rows, 1))))*float64(rows)
}

// HeatMap draws a table of numbers as coloured cells, with a scale above.
func HeatMap(c HeatMapChart) string {
	_, hi, ok := span(c.V...)
	if !ok || len(c.Rows) == 0 || len(c.Cols) == 0 {
		return emptyChart(c.Frame)
	}
	if c.Height <= 0 {
		c.Height = HeatMapHeight(len(c.Rows))
	}
	lo := c.Min
	if c.Min != 0 || c.Max != 0 {
		hi = c.Max
	}
	if hi <= lo {
		hi = lo + 1
	}
	d := newDrawing(c.Frame)
	left := 0.0
	for _, r := range c.Rows {
		left = math.Max(left, textWidth(r))
	}
	left += 34
	right, top, bottom := d.w-8, 38.0, d.h-42
	d.scale(c, left, right, lo, hi)
	cw, ch := (right-left)/float64(len(c.Cols)), (bottom-top)/float64(len(c.Rows))
	for i, row := range c.Rows {
		y := top + ch*float64(i)
		if ch >= 11 || i%int(math.Ceil(11/ch)) == 0 {
			d.text(left-6, y+ch/2+4, "tick num", "end", row)
		}
		for k, col := range c.Cols {
			v := c.V[i][k]
			if math.IsNaN(v) {
				continue
			}
			x := left + cw*float64(k)
			colour, light := colourAt(above((v-lo)/(hi-lo), c.darkest))
			title := c.RowLabel + " " + row + ", " + c.ColLabel + " " + col
			if c.Cells != nil {
				title = c.Cells[i][k]
			}
			title += ": " + c.Unit.Format(v)
			d.titled("rect", "cell", title, "x", px(x), "y", px(y), "width", px(cw), "height", px(ch), "fill", colour)
			if label := cellText(c.Unit, v); textWidth(label)+4 < cw && ch >= 13 {
				ink := "#fff"
				if light {
					ink = "#111"
				}
				d.text(x+cw/2, y+ch/2+4, "num", "middle", label, "style", "fill:"+ink, "pointer-events", "none")
			}
		}
	}
	last := math.Inf(-1)
	for k, col := range c.Cols {
		x, half := left+cw*(float64(k)+0.5), textWidth(col)/2
		if x-half > last+4 {
			d.text(x, bottom+15, "tick num", "middle", col)
			last = x + half
		}
	}
	d.text((left+right)/2, d.h-6, "lab", "middle", c.ColLabel)
	middle := (top + bottom) / 2
	d.text(12, middle, "lab", "middle", c.RowLabel, "transform", "rotate(-90 12 "+px(middle)+")")
	return d.end()
}

// cellText formats the number in a cell; percentages lack their sign, because the scale has it.
func cellText(u Unit, v float64) string {
	if u == Fractions && v > 0 && v < 0.005 {
		return "<1"
	}
	if u == Fractions {
		return strconv.FormatFloat(100*v, 'f', 0, 64)
	}
	return u.Format(v)
}

// scale draws the legend of the colours.
func (d *drawing) scale(c HeatMapChart, left, right, lo, hi float64) {
	const steps = 40
	x := left + textWidth(c.Legend) + 22
	low, high := c.Unit.Format(lo), c.Unit.Format(hi)
	x += textWidth(low)
	w := math.Min(200, right-x-textWidth(high)-12)
	if w < 40 {
		return
	}
	d.text(left, 15, "", "start", c.Legend)
	d.text(x-6, 15, "tick num", "end", low)
	for i := range steps {
		colour, _ := colourAt(above(float64(i)/(steps-1), c.darkest))
		d.tag("rect", "", "x", px(x+float64(i)*w/steps), "y", "5", "width", px(w/steps+0.4), "height", "12", "fill",
			colour)
	}
	d.text(x+w+6, 15, "tick num", "start", high)
}
