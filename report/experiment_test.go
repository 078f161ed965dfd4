package report

import (
	"bytes"
	"strings"
	"testing"

	"farflash/reproduce"
)

// TestExperiment: a page has a chart for each panel, says what the paper prints, and names what is off.
func TestExperiment(t *testing.T) {
	paper := 2.0
	r := &reproduce.Report{ID: "a-fig1", Title: "What & why", Paper: "Somebody, 2016, figure 1",
		Rows: []reproduce.Row{{Label: "x", Metric: "rate", Paper: &paper, Ours: 2.04, Unit: "1/s", Expect: "within 3 %", OK: true}, {Label: "y", Metric: "rate", Ours: 7, Expect: "below 6"}},
		Curves: []reproduce.Curve{
			{Panel: "bars", Name: "a", XLabel: "disks", YLabel: "rate", Names: []string{"400", "1000"}, X: []float64{0, 1}, Y: []float64{1, 2}},
			{Panel: "bars", Name: "b", XLabel: "disks", YLabel: "rate", Names: []string{"400", "1000"}, X: []float64{0, 1}, Y: []float64{2, 3}},
			{Panel: "dots", Name: "a", XLabel: "chunk", YLabel: "latency", YUnit: "us", X: []float64{1, 2, 3}, Y: []float64{5, 6, 5}, Dots: true},
			{Panel: "lines", Name: "a", XLabel: "share", YLabel: "latency", YUnit: "us", X: []float64{0.1, 0.9}, Y: []float64{-5, 6}, Shares: true},
		}}
	var b bytes.Buffer
	if err := WriteExperiment(&b, r, "test", "farflash reproduce a-fig1"); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	if n := strings.Count(page, `<svg class="chart"`); n != 3 {
		t.Errorf("%d charts, not 3", n)
	}
	for _, want := range []string{"What &amp; why", "1 row is not as expected", "below 6", "2.040", "within 3 %", "1 of 2", "farflash reproduce a-fig1"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}
