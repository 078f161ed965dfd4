package chart

import "math"

// StripChart is the input of Strips: many figures in groups, each against the interval that it must be in.
type StripChart struct {
	Frame
	X       Axis    // with Min and Max: figures beyond them are arrows at its ends
	Zero    float64 // value of full agreement
	Strips  []Strip
	Keys    []string // names of the styles, for the legend
	Wanted  string   // name of the intervals, for the legend
	TextFor string   // heads the texts of the strips
}

// Strip is a group of figures, one below the other.
type Strip struct {
	Name, Text string // to the left and to the right of the figures
	Points     []StripPoint
}

// StripPoint is a figure. An interval without a bound on one side has an infinite end there.
type StripPoint struct {
	V, Low, High float64
	Style        int
	Title        string
}

// Heights of a figure, and of the space between strips and the least of a strip, in pixels.
const (
	stripPoint = 7.0
	stripLeast = 20.0
	stripGap   = 8.0
)

func (s *Strip) height() float64 {
	return stripGap + max(stripLeast, stripPoint*float64(len(s.Points)))
}

// Strips draws figures below each other, with the intervals that they must be in as bands behind them.
func Strips(c StripChart) string {
	if len(c.Strips) == 0 {
		return emptyChart(c.Frame)
	}
	keys := []key{{name: c.Wanted, band: true}}
	for k, name := range c.Keys {
		keys = append(keys, key{name: name, style: k, dot: true})
	}
	const below = 46.0
	p := &plot{}
	rows, texts := 0.0, textWidth(c.TextFor)
	for i := range c.Strips {
		s := &c.Strips[i]
		rows += s.height()
		p.left, texts = math.Max(p.left, textWidth(s.Name)), math.Max(texts, textWidth(s.Text))
	}
	if c.Height <= 0 {
		p.drawing = newDrawing(c.Frame)
		c.Height = p.legend(keys) + 20 + rows + below
	}
	p.drawing = newDrawing(c.Frame)
	p.top = p.legend(keys) + 20
	p.bottom = p.h - below
	p.left = 1.04*p.left + 16
	p.right = p.w - 1.04*texts - 20
	p.x = newAxis(c.X, c.Zero, c.Zero, p.right-p.left)
	p.x.place(p.left, p.right)
	p.axes()
	p.text(p.right+12, p.top-7, "lab", "start", c.TextFor)
	zero := p.x.at(c.Zero)
	p.lineTo("zero", zero, p.top, zero, p.bottom)
	y := p.top
	for i := range c.Strips {
		s := &c.Strips[i]
		h := s.height()
		p.text(p.left-8, y+h/2+4, "", "end", s.Name)
		p.text(p.right+12, y+h/2+4, "num", "start", s.Text)
		if i > 0 {
			p.lineTo("grid", p.left, y, p.right, y)
		}
		at := y + h/2 - stripPoint*float64(len(s.Points)-1)/2
		for _, x := range s.Points {
			p.strip(x, at)
			at += stripPoint
		}
		y += h
	}
	return p.end()
}

func (p *plot) strip(x StripPoint, y float64) {
	// A count that must be met has a band of no width, which would not be seen.
	low, high := math.Max(p.x.at(x.Low), p.left), math.Min(p.x.at(x.High), p.right)
	if high < low+2 {
		low, high = (low+high)/2-1, (low+high)/2+1
	}
	p.rect("wanted", low, y-stripPoint/2, high-low, stripPoint)
	v, r := p.x.at(x.V), 3.4
	switch {
	case math.IsNaN(x.V):
		return
	case x.V < p.x.lo:
		p.edge(p.left, y, 1)
		v = p.left + 9
	case x.V > p.x.hi:
		p.edge(p.right, y, -1)
		v = p.right - 9
	}
	p.marker(x.Style, v, y, r, x.Title)
}

// edge draws an arrowhead at an end of the axis, for a figure beyond it.
func (p *plot) edge(x, y, sign float64) {
	p.tag("path", "axis", "d", "M"+px(x+5*sign)+" "+px(y-3)+"L"+px(x)+" "+px(y)+"L"+px(x+5*sign)+" "+px(y+3))
}
