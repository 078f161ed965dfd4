package report

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"farflash/study/reproduce"
)

// TestExperiment verifies that a page has a chart for each panel, quotes the paper's figures, and names the rows that
// are off.
func TestExperiment(t *testing.T) {
	paper := 2.0
	r := &reproduce.Report{ID: "a-fig1", Title: "What & why", Paper: "Somebody, 2016, figure 1",
		Rows: []reproduce.Row{{Label: "x", Metric: "rate", Paper: &paper, Ours: 2.04, Unit: "1/s",
			Expect: "within 3 %"},
			{Label: "y", Metric: "rate", Ours: math.NaN(), Expect: "below 6", Because: "it is missing"},
			{Label: "z", Metric: "rate", Ours: 7, Quote: "it is as it is"}},
		Count: reproduce.Count{OK: 1, NotReproduced: 1, NotStated: 1},
		Curves: []reproduce.Curve{
			{Panel: "bars", Name: "a", XLabel: "disks", YLabel: "rate", Names: []string{"400", "1000"},
				X: []float64{0, 1}, Y: []float64{1, 2}},
			{Panel: "bars", Name: "b", XLabel: "disks", YLabel: "rate", Names: []string{"400", "1000"},
				X: []float64{0, 1}, Y: []float64{2, 3}},
			{Panel: "dots", Name: "a", XLabel: "chunk", YLabel: "latency", YUnit: "us", X: []float64{1, 2, 3},
				Y: []float64{5, 6, 5}, Dots: true},
			{Panel: "lines", Name: "a", XLabel: "share", YLabel: "latency", YUnit: "us", X: []float64{0.1, 0.9},
				Y: []float64{-5, 6}, Shares: true},
		}}
	var b bytes.Buffer
	if err := WriteExperiment(&b, r, "test", "farflash reproduce a-fig1"); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	if n := strings.Count(page, `<svg class="chart"`); n != 2*3 { // each in two widths
		t.Errorf("%d charts, not 6", n)
	}
	for _, want := range []string{"What &amp; why", "1 row is worse than recorded",
		"below 6. Not reproduced: it is missing", "2.040", "within 3 %", "1 ok, 1 not reproduced, 1 not stated",
		"not stated", "&#34;it is as it is&#34;", "farflash reproduce a-fig1"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}
