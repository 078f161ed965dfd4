package reproduce

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"farflash/internal/golden"
	"farflash/report/chart"
)

// pictured are the papers with a picture, and the ends of its axis.
var pictured = []struct {
	paper, title string
	low, high    float64
	ticks        []float64
}{
	{"snis", "SNIS", 0.05, 20, []float64{0.1, 0.2, 0.5, 1, 2, 5, 10}},
	{"replicast", "Replicast", 0.4, 2.5, []float64{0.5, 0.7, 1, 1.4, 2}},
	{"src", "SRC", 0.05, 20, []float64{0.1, 0.2, 0.5, 1, 2, 5, 10}},
	{"mintco", "minTCO", 0.05, 20, []float64{0.1, 0.2, 0.5, 1, 2, 5, 10}},
}

// TestDocumentedPictures draws the rows of each paper from its data: a strip for each experiment, and in it each figure
// as a multiple of the printed number or, where none is printed, of the bound that the paper's sentence sets.
func TestDocumentedPictures(t *testing.T) {
	for _, p := range pictured {
		c := chart.StripChart{Zero: 1, Wanted: "wanted", TextFor: "ok, not, not stated",
			Frame: chart.Frame{Title: p.title + ": our figures over those of the paper", Width: 700},
			Keys:  []string{"ok: agrees with a printed number", "not reproduced", "not stated: agrees with a sentence"},
			X: chart.Axis{Label: "ours over the printed number, or over the bound that a sentence sets",
				Scale: chart.Log, Min: p.low, Max: p.high}}
		for _, v := range p.ticks {
			c.X.Marks = append(c.X.Marks, chart.Mark{At: v, Label: strconv.FormatFloat(v, 'g', -1, 64)})
		}
		for _, x := range golden.Records(t, rowData+p.paper+".csv")[1:] {
			if x[atVerdict] == "" {
				continue
			}
			k := len(c.Strips) - 1
			if name := strings.TrimPrefix(x[atExperiment], p.paper+"-"); k < 0 || c.Strips[k].Name != name {
				held, _ := Held(x[atExperiment])
				c.Strips = append(c.Strips, chart.Strip{Name: name,
					Text: fmt.Sprintf("%d, %d, %d", held.OK, held.NotReproduced, held.NotStated)})
				k++
			}
			if at, ok := pointOf(t, x); ok {
				c.Strips[k].Points = append(c.Strips[k].Points, at)
			}
		}
		golden.File(t, validation+p.paper+".svg", []byte(chart.Standalone(chart.Strips(c))), *update,
			"go test ./study/reproduce -run TestDocumentedPictures -update")
	}
}

// pointOf returns a row of a file as a point of the picture, and false if neither a number nor a bound scales it.
func pointOf(t *testing.T, x []string) (chart.StripPoint, bool) {
	t.Helper()
	style := map[string]int{OK.String(): 0, NotReproduced.String(): 1, NotStated.String(): 2}[x[atVerdict]]
	c, err := criterionOf(x[atWanted])
	if err != nil {
		t.Errorf("%s, %s, %s: %v", x[atExperiment], x[atRow], x[atFigure], err)
		return chart.StripPoint{}, false
	}
	ours, err := strconv.ParseFloat(x[atOurs], 64)
	if err != nil {
		ours = math.NaN() // missing
	}
	over, err := strconv.ParseFloat(x[atPaper], 64)
	switch {
	case err == nil:
	case math.IsInf(c.high, 1):
		over = c.low
	case math.IsInf(c.low, -1):
		over = c.high
	default:
		over = (c.low + c.high) / 2
	}
	if math.Abs(over) < 1e-9 {
		return chart.StripPoint{}, false
	}
	low, high := c.low/over, c.high/over
	return chart.StripPoint{V: ours / over, Low: min(low, high), High: max(low, high), Style: style}, true
}

// criterionOf returns the criterion with these words, to their four digits.
func criterionOf(words string) (Criterion, error) {
	var a, b float64
	for _, x := range []struct {
		format string
		args   []any
		make   func() Criterion
	}{
		{"within %g %% of %g", []any{&a, &b}, func() Criterion { return near(b, a/100) }},
		{"%g to %g", []any{&a, &b}, func() Criterion { return between(a, b) }},
		{"above %g", []any{&a}, func() Criterion { return above(a) }},
		{"below %g", []any{&a}, func() Criterion { return below(a) }},
		{"at least %g", []any{&a}, func() Criterion { return atLeast(a) }},
		{"at most %g", []any{&a}, func() Criterion { return atMost(a) }},
		{"%g", []any{&a}, func() Criterion { return exactly(a) }},
	} {
		if n, err := fmt.Sscanf(words, x.format, x.args...); n == len(x.args) && err == nil {
			if c := x.make(); c.words == words {
				return c, nil
			}
		}
	}
	return Criterion{}, fmt.Errorf("no criterion is called %q", words)
}

// TestCriterionOf verifies that the words of criteria can be read back.
func TestCriterionOf(t *testing.T) {
	for _, c := range []Criterion{near(536950, 0.03), near(-0.25, 0.1), near(2.18, 0.05), exactly(7), between(0.9, 1.1),
		between(-2, 8), above(0), below(1), atLeast(95), atMost(0.5)} {
		got, err := criterionOf(c.words)
		if err != nil || got.words != c.words || math.Abs(got.low-c.low) > 1e-3*math.Abs(c.low) {
			t.Errorf("%v: %v, %v", c, got, err)
		}
	}
	if c, err := criterionOf("about 7"); err == nil {
		t.Error(c)
	}
}
