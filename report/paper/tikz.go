package paper

import (
	"fmt"
	"math"
	"strings"

	"farflash/report/chart"
)

// styles are those of the chart package: Okabe and Ito's colours, with dashes and marks that repeat the distinction.
var styles = [chart.Styles]struct{ colour, dash, mark string }{
	{"0072B2", "solid", "*"}, {"D55E00", "dashed", "square*"}, {"009E73", "dotted", "triangle*"},
	{"CC79A7", "dashdotted", "diamond*"},
	{"E69F00", "loosely dashed", "pentagon*"}, {"56B4E9", "densely dashed", "oplus*"},
	{"8A7A00", "densely dotted", "star"}, {"555555", "dashdotdotted", "x"},
}

// mostPoints bounds the points of a curve: TeX has little memory.
const mostPoints = 400

// tikz returns a plot as a document that compiles unchanged.
func tikz(p Plot) string {
	var b strings.Builder
	b.WriteString("% compiles as it stands: pdflatex " + PGF.File(p) +
		"; in a paper: \\usepackage{standalone,pgfplots} and \\input{" + PGF.File(p) + "}\n" +
		"\\documentclass[tikz]{standalone}\n\\usepackage{pgfplots}\n\\pgfplotsset{compat=1.16}\n")
	for i, s := range styles {
		fmt.Fprintf(&b, "\\definecolor{farflash%d}{HTML}{%s}\n", i, s.colour)
	}
	b.WriteString("\\begin{document}\n\\begin{tikzpicture}\n")
	x, y := labels(p)
	options := []string{"width=12cm", "height=7cm", "xlabel={" + escaped(x) + "}", "grid=major",
		"unbounded coords=jump", "legend cell align=left"}
	switch c := p.Chart.(type) {
	case chart.LineChart:
		options = append(options, "ylabel={"+escaped(y)+"}", "legend pos=outer north east")
		options = append(options, axisOptions("x", c.X)...)
		options = append(options, axisOptions("y", c.Y)...)
		begin(&b, options)
		for _, s := range c.Series {
			line(&b, s, c.Apart || len(s.X) == 1)
		}
	case chart.CDFChart:
		options = append(options, "ylabel={"+escaped(y)+"}", "legend pos=south east")
		options = append(options, axisOptions("x", c.X)...)
		most := 1.0
		for _, d := range c.Distributions {
			most = math.Max(most, chart.Nine(d.End()))
		}
		var at, names []string
		for _, share := range []float64{0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999, 0.9999999} {
			if chart.Nine(share) <= most+1e-9 {
				at, names = append(at, number(chart.Nine(share))), append(names, escaped(chart.FormatShare(share)))
			}
		}
		options = append(options, "ymin=0", "ytick={"+strings.Join(at, ",")+"}",
			"yticklabels={{"+strings.Join(names, "},{")+"}}")
		begin(&b, options)
		for _, d := range c.Distributions {
			distribution(&b, d)
		}
	case chart.ForestChart:
		var at, names []string
		for i, r := range c.Rows {
			at, names = append(at, fmt.Sprint(i)), append(names, escaped(r.Name))
		}
		options = append(options, "y dir=reverse", fmt.Sprintf("ymin=-0.5, ymax=%g", float64(len(c.Rows))-0.5),
			"ytick={"+strings.Join(at, ",")+"}",
			"yticklabels={{"+strings.Join(names, "},{")+"}}",
			fmt.Sprintf("height=%.1fcm", 2.5+0.55*float64(len(c.Rows))))
		options = append(options, axisOptions("x", c.X)...)
		begin(&b, options)
		fmt.Fprintf(&b, "\\addplot[gray, thick, forget plot] coordinates {(%s,-0.5) (%s,%g)};\n", number(c.Zero),
			number(c.Zero), float64(len(c.Rows))-0.5)
		for i, r := range c.Rows {
			s := styles[r.Style%chart.Styles]
			mark := s.mark
			if r.Faint {
				mark = "o"
			}
			if c.X.Scale == chart.Log && !(r.Mean > 0) {
				continue
			}
			fmt.Fprintf(&b, "\\addplot[only marks, mark=%s, color=farflash%d, error bars/.cd, x dir=both, x "+
				"explicit] coordinates {(%s,%d) += (%s,0) -= (%s,0)};%s\n",
				mark, r.Style%chart.Styles, number(r.Mean), i, number(r.High-r.Mean), number(r.Mean-r.Low),
				remark(r.Text))
		}
	}
	b.WriteString("\\end{axis}\n\\end{tikzpicture}\n\\end{document}\n")
	return b.String()
}

// remark returns text as a comment at the end of a line.
func remark(text string) string {
	if text = strings.Join(strings.Fields(text), " "); text != "" {
		return " % " + text
	}
	return ""
}

func begin(b *strings.Builder, options []string) {
	b.WriteString("\\begin{axis}[\n  " + strings.Join(options, ",\n  ") + "\n]\n")
}

// axisOptions returns the options of one axis.
func axisOptions(letter string, a chart.Axis) []string {
	var out []string
	if a.Scale == chart.Log {
		out = append(out, letter+"mode=log")
	} else if a.FromZero {
		out = append(out, letter+"min=0")
	}
	if len(a.Marks) > 0 {
		var at, names []string
		for _, m := range a.Marks {
			at, names = append(at, number(m.At)), append(names, escaped(m.Label))
		}
		out = append(out, letter+"tick={"+strings.Join(at, ",")+"}",
			letter+"ticklabels={{"+strings.Join(names, "},{")+"}}", letter+"ticklabel style={rotate=45, anchor=east}")
	}
	return out
}

// line writes a series with its intervals.
func line(b *strings.Builder, s chart.Series, apart bool) {
	i := s.Style % chart.Styles
	look := fmt.Sprintf("color=farflash%d, %s, mark=%s, mark options={solid}", i, styles[i].dash, styles[i].mark)
	if apart {
		look += ", only marks"
	}
	whiskers := false
	for _, h := range s.Half {
		whiskers = whiskers || h > 0
	}
	if whiskers {
		look += ", error bars/.cd, y dir=both, y explicit"
	}
	fmt.Fprintf(b, "\\addplot[%s] coordinates {", look)
	for k := range s.X {
		fmt.Fprintf(b, " (%s,%s)", number(s.X[k]), number(s.Y[k]))
		if whiskers && !math.IsNaN(s.Y[k]) {
			fmt.Fprintf(b, " +- (0,%s)", number(s.Half[k]))
		}
	}
	b.WriteString(" };\n")
	legend(b, s.Name)
}

// distribution writes a cumulative distribution on an axis of nines.
func distribution(b *strings.Builder, d chart.Distribution) {
	i := d.Style % chart.Styles
	fmt.Fprintf(b, "\\addplot[color=farflash%d, %s, no marks, thick] coordinates {", i, styles[i].dash)
	every := (len(d.Value) + mostPoints - 1) / mostPoints
	for k := range d.Value {
		// The tail has few values, all of which matter.
		if k%max(every, 1) == 0 || d.Share[k] > 0.99 {
			fmt.Fprintf(b, " (%s,%s)", number(d.Value[k]), number(chart.Nine(math.Min(d.Share[k], d.End()))))
		}
	}
	b.WriteString(" };\n")
	legend(b, d.Name)
}

func legend(b *strings.Builder, name string) {
	if name != "" {
		b.WriteString("\\addlegendentry{" + escaped(name) + "}\n")
	}
}
