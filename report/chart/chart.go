// Package chart draws the charts of reports as SVG text, from plain slices: [Lines], [Dots], [CDF], [Columns], [Areas],
// [Bars], [Groups], [Ladder], [HeatMap], [Forest], [Strips] and [Network].
//
// A chart is one <svg> element for an HTML page that also contains [CSS] (colours for light, dark and print) and, once,
// [Patterns] (the hatchings). It needs no script: every mark has a <title> for the pointer. Elements of class "hit" are
// those on which a script may show that title without delay.
//
// The colours are those of Okabe and Ito ("Color Universal Design", 2008), which remain distinguishable with colour
// blindness; dashes, markers and hatchings repeat the same information. Heat maps use stops of cividis (Nuñez,
// Anderton and Renslow, PLoS ONE 13(7), 2018) and print the number in each cell that is large enough; networks use
// the same stops on a dark background, where low values recede, and draw higher ones thicker. Axes have ticks at 1, 2
// and 5 times powers of ten (powers of two for binary sizes), at decades on logarithmic axes, and at 50, 90, 99, 99.9
// ... per cent on an axis of nines.
//
// It leaves out interaction and animation (a network's picture carries the numbers that a script needs for both), and
// text layout by true font metrics (widths are estimated).
package chart

import (
	"html"
	"math"
	"strconv"
	"strings"
)

// Frame holds the properties common to all charts.
type Frame struct {
	Title         string  // accessible description; not drawn
	Width, Height float64 // in CSS pixels; 0 is the default, 640 x 300
}

func (f Frame) size() (w, h float64) {
	w, h = f.Width, f.Height
	if w <= 0 {
		w = 640
	}
	if h <= 0 {
		h = 300
	}
	return w, h
}

// Styles is the number of colours. A chart with more series or parts reuses them; parts of the same colour then
// differ in their hatching.
const Styles = 8

// CSS styles the charts. The page's own style may set --ink, --paper, --grid and --quiet.
const CSS = `
svg.chart{--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#cc79a7;--c4:#e69f00;--c5:#56b4e9;--c6:#8a7a00;--c7:#555;display:block;width:100%;height:auto;font:12px system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;overflow:visible}
@media (prefers-color-scheme:dark){svg.chart{--c0:#56b4e9;--c1:#f0883e;--c2:#2fc59a;--c3:#dd94bd;--c4:#e6b422;--c5:#3d8fc4;--c6:#f0e442;--c7:#aaa}}
@media print{svg.chart{--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#cc79a7;--c4:#e69f00;--c5:#56b4e9;--c6:#8a7a00;--c7:#555}}
svg.chart text{fill:var(--ink,#222)}
svg.chart .over{paint-order:stroke;stroke:var(--paper,#fff);stroke-width:3px;stroke-linejoin:round}
svg.chart .tick,svg.chart .lab{fill:var(--quiet,#666)}
svg.chart .num{font-variant-numeric:tabular-nums}
svg.chart .grid{stroke:var(--grid,#ddd);stroke-width:1;fill:none;shape-rendering:crispEdges}
svg.chart .minor{stroke-opacity:.45}
svg.chart .axis{stroke:var(--quiet,#666);stroke-width:1;fill:none;shape-rendering:crispEdges}
svg.chart .shade{fill:var(--quiet,#666);fill-opacity:.13}
svg.chart .wanted{fill:var(--quiet,#666);fill-opacity:.22}
svg.chart .shade-edge{stroke:var(--quiet,#666);stroke-width:1;stroke-dasharray:3 3}
svg.chart .line{fill:none;stroke-width:1.8;stroke-linejoin:round;stroke-linecap:butt}
svg.chart .dots{fill:none;stroke-width:2;stroke-linecap:round;stroke-opacity:.5;stroke-dasharray:none!important}
svg.chart .arrow{fill:none;stroke-width:1.2}
svg.chart .whisker{fill:none;stroke-width:1.4;stroke-dasharray:none!important}
svg.chart .zero{stroke:var(--quiet,#666);stroke-width:1.5;fill:none}
svg.chart .faint{opacity:.45}
svg.chart .mark{stroke:var(--paper,#fff);stroke-width:1}
svg.chart .fill{fill-opacity:.28;stroke:none}
svg.chart .part{stroke:var(--paper,#fff);stroke-width:.6}
svg.chart .hit{fill:transparent;stroke:none}
svg.chart .hit:hover{fill:var(--quiet,#666);fill-opacity:.12}
svg.chart .cell{stroke:var(--paper,#fff);stroke-width:1}
svg.chart .off{display:none}
svg.chart .panel{fill:#0f151c}
svg.chart .link{stroke-linecap:round}
svg.chart .link.on,svg.chart .link:focus-visible{stroke:#fff;stroke-width:4;outline:none}
svg.chart .node{fill:#aab6c2;stroke:#0f151c;stroke-width:1}
svg.chart .node-name{fill:#c8d1da;font-size:11px;paint-order:stroke;stroke:#0f151c;stroke-width:3px;stroke-linejoin:round}
` + styleCSS

// styleCSS gives each style its stroke, fill and dashes.
const styleCSS = `
svg.chart .s0{stroke:var(--c0)}svg.chart .f0{fill:var(--c0)}
svg.chart .s1{stroke:var(--c1);stroke-dasharray:7 3}svg.chart .f1{fill:var(--c1)}
svg.chart .s2{stroke:var(--c2);stroke-dasharray:2 3}svg.chart .f2{fill:var(--c2)}
svg.chart .s3{stroke:var(--c3);stroke-dasharray:9 3 2 3}svg.chart .f3{fill:var(--c3)}
svg.chart .s4{stroke:var(--c4);stroke-dasharray:12 4}svg.chart .f4{fill:var(--c4)}
svg.chart .s5{stroke:var(--c5);stroke-dasharray:4 2}svg.chart .f5{fill:var(--c5)}
svg.chart .s6{stroke:var(--c6);stroke-dasharray:1 2}svg.chart .f6{fill:var(--c6)}
svg.chart .s7{stroke:var(--c7);stroke-dasharray:6 2 1 2 1 2}svg.chart .f7{fill:var(--c7)}
`

// Patterns is an empty drawing that defines the hatchings. A page needs it once.
const Patterns = `<svg width="0" height="0" style="position:absolute" aria-hidden="true"><defs>` +
	`<pattern id="hatch1" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M0 0V6" stroke="var(--paper,#fff)" stroke-width="2.4" stroke-opacity=".6"/></pattern>` +
	`<pattern id="hatch2" width="6" height="6" patternUnits="userSpaceOnUse"><circle cx="2" cy="2" r="1.3" fill="var(--paper,#fff)" fill-opacity=".7"/></pattern>` +
	`<pattern id="hatch3" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)"><path d="M0 0V6" stroke="var(--paper,#fff)" stroke-width="1.6" stroke-opacity=".7"/></pattern>` +
	`<pattern id="hatch4" width="5" height="5" patternUnits="userSpaceOnUse"><path d="M0 0H5" stroke="var(--paper,#fff)" stroke-width="1.6" stroke-opacity=".7"/></pattern>` +
	`<pattern id="hatch5" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M0 0V6M0 0H6" stroke="var(--paper,#fff)" stroke-width="1.2" stroke-opacity=".7"/></pattern>` +
	`</defs></svg>`

// hatchings is the number of patterns; style 0 has none.
const hatchings = 5

// drawing builds an SVG.
type drawing struct {
	b    strings.Builder
	w, h float64
}

func newDrawing(f Frame) *drawing {
	d := &drawing{}
	d.w, d.h = f.size()
	d.b.WriteString(`<svg class="chart" viewBox="0 0 ` + px(d.w) + " " + px(d.h) + `" width="` + px(d.w) +
		`" height="` + px(d.h) + `" role="img"`)
	if f.Title != "" {
		d.b.WriteString(` aria-label="` + html.EscapeString(f.Title) + `"`)
	}
	d.b.WriteString(">\n")
	return d
}

func (d *drawing) end() string {
	d.b.WriteString("</svg>\n")
	return d.b.String()
}

// px formats a coordinate to a tenth of a pixel.
func px(v float64) string {
	v = math.Round(v*10) / 10
	if v == 0 {
		v = 0 // never "-0"
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// tag writes an empty element: its name and class, then pairs of attribute and value.
func (d *drawing) tag(name, class string, attributes ...string) {
	d.open(name, class, attributes...)
	d.b.WriteString("/>\n")
}

func (d *drawing) open(name, class string, attributes ...string) {
	d.b.WriteString("<" + name)
	if class != "" {
		d.b.WriteString(` class="` + class + `"`)
	}
	for i := 0; i < len(attributes); i += 2 {
		d.b.WriteString(" " + attributes[i] + `="` + attributes[i+1] + `"`)
	}
}

// titled writes an element that contains a <title>.
func (d *drawing) titled(name, class, title string, attributes ...string) {
	d.open(name, class, attributes...)
	d.b.WriteString("><title>" + html.EscapeString(title) + "</title></" + name + ">\n")
}

// text writes a line of text; anchor is start, middle or end.
func (d *drawing) text(x, y float64, class, anchor, s string, attributes ...string) {
	a := []string{"x", px(x), "y", px(y)}
	if anchor != "start" {
		a = append(a, "text-anchor", anchor)
	}
	d.open("text", class, append(a, attributes...)...)
	d.b.WriteString(">" + html.EscapeString(s) + "</text>\n")
}

func (d *drawing) rect(class string, x, y, w, h float64) {
	d.tag("rect", class, "x", px(x), "y", px(y), "width", px(w), "height", px(h))
}

func (d *drawing) lineTo(class string, x1, y1, x2, y2 float64) {
	d.tag("path", class, "d", "M"+px(x1)+" "+px(y1)+"L"+px(x2)+" "+px(y2))
}

// hit writes an invisible area with a title.
func (d *drawing) hit(x, y, w, h float64, title string) {
	d.titled("rect", "hit", title, "x", px(x), "y", px(y), "width", px(w), "height", px(h))
}

// marker writes the marker of a style, centred at (x, y). The title may be empty.
func (d *drawing) marker(style int, x, y, r float64, title string) {
	style %= Styles
	class := "mark f" + strconv.Itoa(style)
	name, a := "path", []string(nil)
	at := func(points ...float64) string {
		s := "M"
		for i := 0; i < len(points); i += 2 {
			if i > 0 {
				s += "L"
			}
			s += px(x+points[i]*r) + " " + px(y+points[i+1]*r)
		}
		return s + "Z"
	}
	switch style {
	case 0:
		name, a = "circle", []string{"cx", px(x), "cy", px(y), "r", px(r)}
	case 1:
		a = []string{"d", at(-.9, -.9, .9, -.9, .9, .9, -.9, .9)}
	case 2:
		a = []string{"d", at(0, -1.15, 1.1, .85, -1.1, .85)}
	case 3:
		a = []string{"d", at(0, -1.3, 1.3, 0, 0, 1.3, -1.3, 0)}
	case 4:
		a = []string{"d", at(0, 1.15, 1.1, -.85, -1.1, -.85)}
	case 5:
		a = []string{"d", at(-1.1, -.5, -.5, -1.1, .5, -1.1, 1.1, -.5, 1.1, .5, .5, 1.1, -.5, 1.1, -1.1, .5)}
	case 6:
		a = []string{"d", at(-1.2, -.4, -.4, -.4, -.4, -1.2, .4, -1.2, .4, -.4, 1.2, -.4, 1.2, .4, .4, .4, .4, 1.2,
			-.4, 1.2, -.4, .4, -1.2, .4)}
	default:
		a = []string{"d", at(-1.2, 0, 0, -.7, 1.2, 0, 0, .7)}
	}
	if title == "" {
		d.tag(name, class, a...)
		return
	}
	d.titled(name, class, title, a...)
}

// textWidth estimates the width of s in pixels at the charts' font size.
func textWidth(s string) float64 {
	w := 0.0
	for _, r := range s {
		switch {
		case strings.ContainsRune("ijl.,:;|!'()[] ", r):
			w += 3.6
		case strings.ContainsRune("mwMW%@", r):
			w += 10
		case r >= 'A' && r <= 'Z':
			w += 8
		case r > 0x2e80:
			w += 12.5
		default:
			w += 6.8
		}
	}
	return w
}

// path collects points and writes them as lines, skipping points too close to the last one to be distinguished.
type path struct {
	b            strings.Builder
	pen          bool
	lastX, lastY float64
}

func (p *path) to(x, y float64) {
	if math.IsNaN(x) || math.IsNaN(y) {
		p.pen = false
		return
	}
	if !p.pen {
		p.b.WriteString("M" + px(x) + " " + px(y))
		p.pen, p.lastX, p.lastY = true, x, y
		return
	}
	if math.Abs(x-p.lastX) < 0.25 && math.Abs(y-p.lastY) < 0.25 {
		return
	}
	switch {
	case px(x) == px(p.lastX):
		p.b.WriteString("V" + px(y))
	case px(y) == px(p.lastY):
		p.b.WriteString("H" + px(x))
	default:
		p.b.WriteString("L" + px(x) + " " + px(y))
	}
	p.lastX, p.lastY = x, y
}

func (p *path) close() { p.b.WriteString("Z"); p.pen = false }
