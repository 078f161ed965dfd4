package chart

import (
	"html"
	"math"
	"slices"
	"strconv"
	"strings"
)

// NetworkNode is a node of a network's picture; X and Y are from 0 (left, top) to 1.
type NetworkNode struct {
	Name string
	X, Y float64
	End  bool // an end station: drawn small, with thin links
}

// NetworkLink is a line between two nodes with its one or two directions.
type NetworkLink struct {
	A, B int // indexes of nodes
	Ways []NetworkDirection
}

// NetworkDirection is one direction of a link. Whole and Over have an entry per measure. Over, or an entry of it, may
// be nil.
type NetworkDirection struct {
	Name  string
	Whole []float64   // over the whole run; NaN if unknown
	Over  [][]float64 // per measure, a value per time slice
}

// NetworkMeasure is a measure that colours links. A link has the colour of the larger of its directions.
type NetworkMeasure struct {
	Name     string // such as "utilisation"
	Whole    string // name of the whole run's figure, such as "largest queue"
	Unit     Unit
	Max      float64 // end of the colour scale over time; 0: the largest value
	WholeMax float64 // end of the colour scale of the whole run; 0: the largest value
}

// NetworkChart is the input of Network. Times are the ends of the time slices, in seconds; without any, the picture is
// static.
type NetworkChart struct {
	Frame
	Nodes    []NetworkNode
	Links    []NetworkLink
	Measures []NetworkMeasure
	Times    []float64
}

const (
	panelTop = 34.0      // below the colour scale
	idle     = "#5b6773" // visible on the dark background; the middle of the colour map is grey as well, but brighter
	darkest  = 0.22      // position on the colour map; anything darker is invisible on the background
	shades   = 48        // number of colours that a script can use
	// levels is the number of levels of a value over time, each written as two digits; the level after the last
	// stands for an unknown value. The digits need no escaping, and they cannot spell NaN, Inf or an exponent, which
	// tests search for.
	levels = 64*64 - 1
	digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHJKLMOPQRSTUVWXYZ_*.~"
)

// networkHeight returns a suitable height for the nodes, the default of Network.
func networkHeight(nodes []NetworkNode) float64 {
	seen := map[float64]bool{}
	for _, n := range nodes {
		seen[n.Y] = true
	}
	return math.Min(panelTop+130*float64(max(len(seen), 2)), panelTop+640)
}

// Network draws the nodes at their positions and a line per link, coloured by the first measure over the whole run:
// idle links are dark grey, busier ones brighter and thicker, the busiest on top. All data that a script needs to
// show other measures and times is in attributes of the svg and of its lines:
//
//	svg:  data-times   ends of the time slices in seconds, separated by spaces; absent if there are none
//	      data-shades  colours from low to high, separated by spaces; data-idle is the colour of 0
//	      data-digits  digits of the values over time, see data-over
//	      data-measures  per measure "name|name over the whole run|unit|maximum|maximum over the whole run",
//	                   separated by ";"
//	line: data-thick   its smallest width
//	      data-names   of its directions, separated by "|"
//	      data-whole   per direction, separated by "|", a number per measure, separated by spaces; - is unknown
//	      data-over    per direction, separated by "|", and per measure, separated by ";", two digits per slice: the
//	                   share of the maximum, in 4094 steps; 4095 is unknown; trailing zeros are omitted
//
// The colour scales are groups of class "scale", those of the whole run first.
func Network(c NetworkChart) string {
	if len(c.Nodes) == 0 || len(c.Links) == 0 || len(c.Measures) == 0 {
		return emptyChart(c.Frame)
	}
	if c.Height <= 0 {
		c.Height = networkHeight(c.Nodes)
	}
	c.Measures = slices.Clone(c.Measures)
	for i := range c.Measures {
		c.limits(i)
	}
	d := &drawing{}
	d.w, d.h = c.size()
	d.open("svg", "chart network", c.attributes(d.w, d.h)...)
	d.b.WriteString(">\n")
	for kind := range 2 {
		for i, m := range c.Measures {
			class := "scale"
			if kind > 0 || i > 0 {
				class = "scale off"
			}
			d.b.WriteString(`<g class="` + class + `">` + "\n")
			h := HeatMapChart{Unit: m.Unit, Legend: m.Whole + ", whole run", darkest: darkest}
			high := m.WholeMax
			if kind > 0 {
				h.Legend, high = m.Name, m.Max
			}
			d.scale(h, 8, d.w-70, 0, high)
			d.tag("rect", "", "x", px(d.w-58), "y", "9", "width", "22", "height", "4", "fill", idle)
			d.text(d.w-30, 15, "tick num", "start", "0")
			d.b.WriteString("</g>\n")
		}
	}
	d.tag("rect", "panel", "x", "0", "y", px(panelTop-8), "width", px(d.w), "height", px(d.h-panelTop+8), "rx", "8")
	// The outermost rows of nodes leave space for their names.
	left, right, top, bottom := 26.0, d.w-26, panelTop+26, d.h-30
	lowY, highY := math.Inf(1), math.Inf(-1)
	for _, n := range c.Nodes {
		lowY, highY = math.Min(lowY, n.Y), math.Max(highY, n.Y)
	}
	if highY <= lowY {
		highY = lowY + 1
	}
	at := func(i int) (x, y float64) {
		n := c.Nodes[i]
		return left + n.X*(right-left), top + (n.Y-lowY)/(highY-lowY)*(bottom-top)
	}
	c.wires(d, at)
	c.nodes(d, at)
	return d.end()
}

// SharedScales sets the maxima of charts with the same measures so that the same number has the same colour in all.
func SharedScales(charts []NetworkChart) {
	for i := range charts {
		charts[i].Measures = slices.Clone(charts[i].Measures)
		for k := range charts[i].Measures {
			charts[i].limits(k)
		}
	}
	for i := range charts {
		for k := range charts[i].Measures {
			m, first := &charts[i].Measures[k], &charts[0].Measures[k]
			first.Max, first.WholeMax = math.Max(first.Max, m.Max), math.Max(first.WholeMax, m.WholeMax)
		}
	}
	for i := range charts {
		for k := range charts[i].Measures {
			charts[i].Measures[k].Max, charts[i].Measures[k].WholeMax = charts[0].Measures[k].Max,
				charts[0].Measures[k].WholeMax
		}
	}
}

// limits sets the unset maxima of a measure's scales.
func (c *NetworkChart) limits(i int) {
	var whole, over float64
	for _, l := range c.Links {
		for _, w := range l.Ways {
			whole = greater(whole, w.Whole[i])
			if i < len(w.Over) {
				for _, v := range w.Over[i] {
					over = greater(over, v)
				}
			}
		}
	}
	m := &c.Measures[i]
	if !(m.Max > 0) {
		m.Max = over
	}
	if !(m.WholeMax > 0) {
		m.WholeMax = whole
	}
	if !(m.WholeMax > 0) {
		m.WholeMax = 1
	}
	if !(m.Max > 0) {
		m.Max = m.WholeMax
	}
}

// greater returns the larger of two numbers, ignoring a b that is NaN or infinite.
func greater(a, b float64) float64 {
	if b > a && !math.IsInf(b, 0) {
		return b
	}
	return a
}

func (c *NetworkChart) attributes(w, h float64) []string {
	a := []string{"viewBox", "0 0 " + px(w) + " " + px(h), "width", px(w), "height", px(h), "role", "group"}
	if c.Title != "" {
		a = append(a, "aria-label", html.EscapeString(c.Title))
	}
	var colours, measures, times []string
	for i := range shades {
		colour, _ := colourAt(above(float64(i)/(shades-1), darkest))
		colours = append(colours, colour)
	}
	for _, m := range c.Measures {
		measures = append(measures,
			strings.Join([]string{m.Name, m.Whole, m.Unit.name(), plainNumber(m.Max), plainNumber(m.WholeMax)}, "|"))
	}
	a = append(a, "data-shades", strings.Join(colours, " "), "data-idle", idle, "data-digits", digits,
		"data-measures", html.EscapeString(strings.Join(measures, ";")))
	for _, t := range c.Times {
		times = append(times, plainNumber(t))
	}
	if times != nil {
		a = append(a, "data-times", strings.Join(times, " "))
	}
	return a
}

// plainNumber formats a number for a script, "-" if it is not finite.
func plainNumber(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "-"
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// wires draws the links, the busiest last.
func (c *NetworkChart) wires(d *drawing, at func(int) (x, y float64)) {
	share := make([]float64, len(c.Links))
	order := make([]int, len(c.Links))
	ends := 0
	for _, n := range c.Nodes {
		if n.End {
			ends++
		}
	}
	thin := math.Min(1.6, math.Max(0.5, 0.35*d.w/float64(max(ends, 1))))
	beside := map[[2]int]int{} // number of links between the same two nodes
	for i, l := range c.Links {
		order[i] = i
		for _, w := range l.Ways {
			share[i] = greater(share[i], w.Whole[0]/c.Measures[0].WholeMax)
		}
		beside[pair(l)]++
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case share[a] < share[b]:
			return -1
		case share[a] > share[b]:
			return 1
		}
		return 0
	})
	drawn := map[[2]int]int{}
	for _, i := range order {
		l := c.Links[i]
		x1, y1 := at(l.A)
		x2, y2 := at(l.B)
		if n := beside[pair(l)]; n > 1 {
			// Parallel links are 4 pixels apart, with offsets as seen from the lower node, whichever end the link
			// starts at.
			off := 4 * (float64(drawn[pair(l)]) - float64(n-1)/2)
			drawn[pair(l)]++
			if l.A > l.B {
				off = -off
			}
			if length := math.Hypot(x2-x1, y2-y1); length > 0 {
				dx, dy := -(y2-y1)/length*off, (x2-x1)/length*off
				x1, x2, y1, y2 = x1+dx, x2+dx, y1+dy, y2+dy
			}
		}
		thick := 1.5
		if c.Nodes[l.A].End || c.Nodes[l.B].End {
			thick = thin
		}
		colour := idle
		if share[i] > 0 {
			colour, _ = colourAt(above(share[i], darkest))
		}
		width := math.Round(100*thick*(1+1.6*math.Min(share[i], 1))) / 100
		a := []string{"x1", px(x1), "y1", px(y1), "x2", px(x2), "y2", px(y2), "stroke", colour, "stroke-width",
			plainNumber(width),
			"data-thick", plainNumber(math.Round(100*thick) / 100)}
		d.titled("line", "link", c.title(l), append(a, c.values(l)...)...)
	}
}

// above maps a share in [0, 1] to the range from from to 1.
func above(share, from float64) float64 { return from + float64((1-from)*share) }

func pair(l NetworkLink) [2]int { return [2]int{min(l.A, l.B), max(l.A, l.B)} }

// title lists a link's figures over the whole run.
func (c *NetworkChart) title(l NetworkLink) string {
	var lines []string
	for _, w := range l.Ways {
		var parts []string
		for i, m := range c.Measures {
			if !math.IsNaN(w.Whole[i]) {
				parts = append(parts, m.Whole+" "+m.Unit.Format(w.Whole[i]))
			}
		}
		lines = append(lines, w.Name+": "+strings.Join(parts, ", "))
	}
	return strings.Join(lines, "\n")
}

// values encodes a link's figures as attributes for a script.
func (c *NetworkChart) values(l NetworkLink) []string {
	var names, whole, over []string
	some := false
	for _, w := range l.Ways {
		names = append(names, strings.ReplaceAll(w.Name, "|", " "))
		var numbers, bits []string
		for i, m := range c.Measures {
			v := w.Whole[i]
			if scale := math.Pow(10, 6-math.Ceil(math.Log10(math.Max(math.Abs(v), 1e-9)))); v != 0 &&
				!math.IsInf(scale, 0) {
				v = math.Round(v*scale) / scale // six digits
			}
			numbers = append(numbers, plainNumber(v))
			var text string
			if i < len(w.Over) {
				text = encode(w.Over[i], m.Max)
			}
			some = some || text != ""
			bits = append(bits, text)
		}
		whole, over = append(whole, strings.Join(numbers, " ")), append(over, strings.Join(bits, ";"))
	}
	a := []string{"data-names", html.EscapeString(strings.Join(names, "|")), "data-whole", strings.Join(whole, "|")}
	if some {
		a = append(a, "data-over", strings.Join(over, "|"))
	}
	return a
}

// encode writes values as two digits each.
func encode(v []float64, most float64) string {
	var b strings.Builder
	end := 0
	for _, x := range v {
		n := levels
		if !math.IsNaN(x) {
			n = int(math.Round(math.Min(math.Max(x/most, 0), 1) * (levels - 1)))
			if n == 0 && x > 0 {
				n = 1 // keep it distinct from idle
			}
		}
		b.WriteByte(digits[n/64])
		b.WriteByte(digits[n%64])
		if n > 0 {
			end = b.Len()
		}
	}
	return b.String()[:end]
}

// nodes draws the nodes over the links, with names where they fit.
func (c *NetworkChart) nodes(d *drawing, at func(int) (x, y float64)) {
	type row struct{ n, width float64 }
	rows := map[float64]*row{}
	for _, n := range c.Nodes {
		r := rows[n.Y]
		if r == nil {
			r = &row{}
			rows[n.Y] = r
		}
		r.n++
		r.width = math.Max(r.width, textWidth(n.Name))
	}
	// Nodes in a few rows are tiers; otherwise they form a circle, and have names only if there are few.
	tiers := len(rows) <= 8
	ends := 0.0
	for i, n := range c.Nodes {
		x, y := at(i)
		if n.End {
			ends++
			if r := rows[n.Y]; r.n > 400 {
				continue
			}
			d.titled("circle", "node", n.Name, "cx", px(x), "cy", px(y), "r",
				px(math.Max(1, math.Min(3.6, 0.3*d.w/rows[n.Y].n))))
		} else {
			d.titled("rect", "node", n.Name, "x", px(x-5), "y", px(y-5), "width", "10", "height", "10", "rx", "2.5")
		}
		r := rows[n.Y]
		if tiers && r.n*(r.width+10) < d.w || !tiers && len(c.Nodes) <= 60 {
			below := y - 11
			if n.End {
				below = y + 17
			}
			d.text(x, below, "node-name", "middle", n.Name)
		}
	}
}
