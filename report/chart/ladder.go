package chart

import (
	"math"
	"strconv"
)

// LadderChart is the input of Ladder: the messages between nodes and the activities of each, against time. Anything
// outside From to To is omitted.
type LadderChart struct {
	Frame
	X        Axis // time axis
	From, To float64
	Lanes    []LadderTrack // from top to bottom
	Kinds    []LadderKind  // in the order of the legend
	Arrows   []LadderArrow
	Boxes    []LadderBox // in drawing order
}

// LadderTrack is the track of one node, with rows for boxes below its line.
type LadderTrack struct {
	Name string
	Rows int
}

// LadderKind is the appearance of a kind of arrows or boxes.
type LadderKind struct {
	Name    string
	Style   int
	Arrow   bool
	Outline bool // box that is not filled
	Faint   bool
}

// LadderArrow is a message between lanes.
type LadderArrow struct {
	Kind, From, To int
	Sent, Received float64
	Title          string
}

// LadderBox is a time interval in a row of a lane.
type LadderBox struct {
	Kind, Lane, Row int
	From, To        float64
	Label           string // printed inside if it fits
	Title           string
}

const (
	ladderLine = 20.0 // height of a lane's own line
	ladderRow  = 14.0 // height of a row below it
)

// ladderHeight returns a suitable height for lanes, the default of Ladder.
func ladderHeight(lanes []LadderTrack) float64 {
	h := 100.0
	for _, l := range lanes {
		h += ladderLine + ladderRow*float64(l.Rows)
	}
	return h
}

// Ladder draws lanes against time, one below the other: messages are slanted lines, and boxes are in the rows below
// each lane's line.
func Ladder(c LadderChart) string {
	if len(c.Lanes) == 0 || !(c.To > c.From) {
		return emptyChart(c.Frame)
	}
	if c.Height <= 0 {
		c.Height = ladderHeight(c.Lanes)
	}
	p := &ladder{plot: &plot{drawing: newDrawing(c.Frame)}, c: &c}
	p.legend()
	p.bottom = p.h - 40
	for _, l := range c.Lanes {
		p.left = math.Max(p.left, textWidth(l.Name))
	}
	p.left += 16
	p.right = p.w - 14
	xc := c.X
	xc.Tight = true
	p.x = newAxis(xc, c.From, c.To, p.right-p.left)
	p.x.lo, p.x.hi = c.From, c.To
	kept := p.x.ticks[:0]
	for _, t := range p.x.ticks {
		if t.at >= c.From && t.at <= c.To {
			kept = append(kept, t)
		}
	}
	p.x.ticks = kept
	p.x.place(p.left, p.right)
	p.axes()
	p.lanes()
	for _, b := range c.Boxes {
		p.box(b)
	}
	for _, a := range c.Arrows {
		p.arrow(a)
	}
	return p.end()
}

type ladder struct {
	*plot
	c    *LadderChart
	line []float64 // y of each lane's line
}

// legend draws a line for each kind of arrow and a box for each kind of box.
func (p *ladder) legend() {
	x, y := 8.0, 12.0
	for _, k := range p.c.Kinds {
		w := swatch + 6 + textWidth(k.Name) + 16
		if x > 8 && x+w > p.w-8 {
			x, y = 8, y+legendLine
		}
		if k.Arrow {
			p.lineTo("line s"+strconv.Itoa(k.Style%Styles), x, y-4, x+swatch, y-4)
			p.marker(k.Style, x+swatch-2, y-4, 3, "")
		} else {
			p.fill(k, x+6, y-9, 16, 11)
		}
		p.text(x+swatch+5, y, "", "start", k.Name)
		x += w
	}
	p.top = y + 14
}

// fill draws a box in the style of a kind.
func (p *ladder) fill(k LadderKind, x, y, w, h float64) {
	a := []string{"x", px(x), "y", px(y), "width", px(w), "height", px(h)}
	if k.Outline {
		p.tag("rect", "line s"+strconv.Itoa(k.Style%Styles), a...)
		return
	}
	p.part(k.Style, func(class, fill string) {
		if k.Faint {
			class += " faint"
		}
		p.tag("rect", class, append(append([]string(nil), a...), fillOf(fill)...)...)
	})
}

func (p *ladder) lanes() {
	all := 0.0
	for _, l := range p.c.Lanes {
		all += ladderLine + ladderRow*float64(l.Rows)
	}
	stretch := (p.bottom - p.top) / all
	y := p.top
	for i, l := range p.c.Lanes {
		h := (ladderLine + ladderRow*float64(l.Rows)) * stretch
		if i%2 == 1 {
			p.rect("shade", p.left, y, p.right-p.left, h)
		}
		line := y + ladderLine*stretch/2
		p.line = append(p.line, line)
		p.lineTo("axis", p.left, math.Round(line)+0.5, p.right, math.Round(line)+0.5)
		p.text(p.left-8, line+4, "", "end", l.Name)
		y += h
	}
}

// rowOf returns the top and the height of a lane's row.
func (p *ladder) rowOf(lane, row int) (y, h float64) {
	all := 0.0
	for _, l := range p.c.Lanes {
		all += ladderLine + ladderRow*float64(l.Rows)
	}
	stretch := (p.bottom - p.top) / all
	return p.line[lane] + (ladderLine/2-2+ladderRow*float64(row))*stretch, (ladderRow - 1.5) * stretch
}

func (p *ladder) box(b LadderBox) {
	from, to := math.Max(b.From, p.c.From), math.Min(b.To, p.c.To)
	if !(to > from) {
		return
	}
	x, w := p.x.at(from), math.Max(p.x.at(to)-p.x.at(from), 0.8)
	y, h := p.rowOf(b.Lane, b.Row)
	p.fill(p.c.Kinds[b.Kind], x, y, w, h)
	if tw := textWidth(b.Label); b.Label != "" && tw+8 < w && h >= 8 {
		letter := math.Min(10, h/1.25) // a line of text is a quarter higher than its letters
		// A background keeps the letter readable on colour and hatching.
		p.tag("rect", "", "x", px(x+w/2-tw/2-2), "y", px(y+0.5), "width", px(tw+4), "height", px(h-1), "rx", "2",
			"fill", "var(--paper,#fff)", "fill-opacity", ".85")
		p.text(x+w/2, y+h/2+letter*0.36, "", "middle", b.Label, "style", "font-size:"+px(letter)+"px")
	}
	p.hit(x, y, w, h, b.Title)
}

// arrow draws a message, clipped to the chart.
func (p *ladder) arrow(a LadderArrow) {
	if a.Received < p.c.From || a.Sent > p.c.To {
		return
	}
	k := p.c.Kinds[a.Kind]
	x1, x2, y1, y2 := p.x.at(a.Sent), p.x.at(a.Received), p.line[a.From], p.line[a.To]
	cut := func(x float64) float64 { // y of the line at x
		if x2 == x1 {
			return y2
		}
		return y1 + float64((x-x1)/(x2-x1)*(y2-y1))
	}
	fromX, fromY, toX, toY := x1, y1, x2, y2
	if fromX < p.left {
		fromX, fromY = p.left, cut(p.left)
	}
	if toX > p.right {
		toX, toY = p.right, cut(p.right)
	}
	p.titled("path", "arrow s"+strconv.Itoa(k.Style%Styles), a.Title, "d",
		"M"+px(fromX)+" "+px(fromY)+"L"+px(toX)+" "+px(toY))
	if x2 <= p.right {
		p.marker(k.Style, x2, y2, 2.6, a.Title)
	}
}
