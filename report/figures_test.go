package report

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"farflash/numeric/stats"
	"farflash/numeric/units"
	"farflash/report/chart"
	"farflash/result"
)

// TestNothingToShow verifies that a drive that was only read has no empty charts of programs, wear or free blocks,
// and no bar for writes.
func TestNothingToShow(t *testing.T) {
	r := toyA.run(1)
	whole := page1(t, r)
	pictures := []string{">Pages programmed<", ">Wear<", ">Free blocks<"}
	bars := func(page string) string {
		_, rest, _ := strings.Cut(page, `aria-label="parts of the mean latency"`)
		svg, _, _ := strings.Cut(rest, "</svg>")
		return svg
	}
	for _, p := range pictures {
		if !strings.Contains(whole, p) || !strings.Contains(bars(whole), ">write</text>") {
			t.Fatalf("a drive that is written has no %s", p)
		}
	}
	for i := range r.Result.Series {
		s := &r.Result.Series[i]
		if strings.HasPrefix(s.Name, "ssd.writes.") {
			clear(s.V)
		}
		if s.Name == "ssd.free_blocks" {
			for k := range s.V {
				s.V[k] = 2048
			}
		}
	}
	for i := range r.Result.Matrices {
		switch m := &r.Result.Matrices[i]; m.Name {
		case "ssd.wear":
			m.Cols, m.V = []string{"0"}, [][]float64{{2048}}
		case "ssd.latency.breakdown":
			clear(m.V[slices.Index(m.Rows, "write")])
		}
	}
	only := page1(t, r)
	for _, p := range pictures {
		if strings.Contains(only, p) {
			t.Errorf("a drive that was only read has %s", p)
		}
	}
	if b := bars(only); !strings.Contains(b, ">read</text>") || strings.Contains(b, ">write</text>") {
		t.Error("where the time of writes goes is shown where nothing was written")
	}
}

// TestLastBin verifies that the rate of the last bin, which covers only the simulated part of it, is drawn unscaled
// in the middle of that part, and that a short part has no point.
func TestLastBin(t *testing.T) {
	for _, c := range []struct {
		part   float64 // of the last bin
		points int     // fewer than bins
	}{{1, 0}, {0.75, 0}, {0.5, 0}, {0.25, 1}} {
		r := toyA.run(1)
		s, ok := r.Result.SeriesOf("read.iops")
		if !ok || len(s.T) < 3 {
			t.Fatal("no read.iops")
		}
		n := len(s.T)
		r.Result.SimulatedS = s.T[n-1] + c.part*s.Width
		got := middles(curve{&r, "", 0, "read.iops"})
		if len(got.X) != n-c.points || len(got.Y) != len(got.X) {
			t.Errorf("%v of the last bin: %d points of %d", c.part, len(got.X), n)
			continue
		}
		want := s.V[len(got.Y)-1]
		if math.Abs(got.Y[len(got.Y)-1]-want) > 1e-9*math.Abs(want) {
			t.Errorf("%v of the last bin: %v, want %v", c.part, got.Y[len(got.Y)-1], want)
		}
		if got.X[len(got.X)-1] > r.Result.SimulatedS {
			t.Errorf("%v of the last bin: a point after the end", c.part)
		}
	}
}

// TestWarmUpLabel verifies that the label of a shaded span is drawn after the lines that may cross it.
func TestWarmUpLabel(t *testing.T) {
	r := toyA.run(1)
	r.Result.WarmUp.UntilS = r.Result.SimulatedS / 2
	page := []byte(page1(t, r))
	at := bytes.Index(page, []byte(">warm-up</text>"))
	if at < 0 {
		t.Fatal("no warm-up is shaded")
	}
	end := bytes.Index(page[at:], []byte("</svg>"))
	if rest := page[at : at+end]; bytes.Contains(rest, []byte("<path")) || bytes.Contains(rest, []byte("<polyline")) {
		t.Error("lines are drawn over the label of the warm-up")
	}
}

// TestMiddles verifies where the points of a short series are: in the middle of their bins, the last in the middle of
// what was simulated of it, and values of points and of no rate where they are.
func TestMiddles(t *testing.T) {
	for _, x := range []struct {
		bins     int
		width    float64
		unit     string
		timeUnit string
		end      float64
		want     []float64
	}{
		{1, 2, "B/s", "s", 1.5, []float64{1}},
		{2, 2, "B/s", "s", 3.5, []float64{1, 2.75}},
		{2, 2, "B/s", "s", 3, []float64{1, 2.5}}, // half a bin is drawn
		{2, 2, "B/s", "s", 2.9, []float64{1}},
		{2, 2, "B/s", "s", 4, []float64{1, 3}},
		{2, 2, "B/s", "s", 2, []float64{1, 3}}, // nothing is known of the last
		{3, 2, "B/s", "s", 5.5, []float64{1, 3, 4.75}},
		{2, 2, "us", "s", 2.5, []float64{1, 3}},
		{2, 2, "B/s", "turn", 2.5, []float64{1, 3}},
		{2, 0, "B/s", "s", 2.5, []float64{0, 2}},
	} {
		s := result.Series{Name: "x", Unit: x.unit, TimeUnit: x.timeUnit, Width: x.width}
		for i := range x.bins {
			s.T, s.V = append(s.T, 2*float64(i)), append(s.V, float64(i+1))
		}
		r := Run{Result: &result.Result{SimulatedS: x.end, Series: []result.Series{s}}}
		got := middles(curve{&r, "", 0, "x"})
		if !slices.Equal(got.X, x.want) || !slices.Equal(got.Y, s.V[:len(x.want)]) {
			t.Errorf("%+v: %v, %v", x, got.X, got.Y)
		}
	}
}

// TestScales verifies for which ranges an axis is logarithmic: latencies of an octave or more, and values that span
// more than a factor of 20.
func TestScales(t *testing.T) {
	for _, x := range []struct {
		lo, hi units.Duration
		want   chart.Scale
	}{
		{100 * units.Nanosecond, 180 * units.Nanosecond, chart.Linear},
		{100 * units.Nanosecond, 200 * units.Nanosecond, chart.Log},
		{10 * units.Microsecond, 15 * units.Microsecond, chart.Linear},
		{units.Nanosecond, units.Second, chart.Log}, {0, 0, chart.Log},
	} {
		h := &stats.Histogram{}
		h.Record(x.lo)
		h.Record(x.hi)
		r := &Run{Result: &result.Result{Histograms: []result.Histogram{{Name: "x", H: h}}}}
		g := group{curves: []curve{{run: r, what: "x"}}}
		if got := g.scale(); got != x.want {
			t.Errorf("%v to %v: %v", x.lo, x.hi, got)
		}
	}
	for _, x := range []struct {
		v    []float64
		want chart.Scale
	}{
		{[]float64{0.5, 9}, chart.Linear}, {[]float64{0.5, 10}, chart.Linear}, {[]float64{0.5, 11}, chart.Log},
		{[]float64{0, 5, 90}, chart.Linear}, {[]float64{-1, 5, math.NaN(), 101}, chart.Log},
	} {
		if got := logIfWide([]chart.Series{{Y: x.v[:1]}, {Y: x.v[1:]}}); got != x.want {
			t.Errorf("%v: %v", x.v, got)
		}
	}
	if lo, hi := span([]chart.Series{{Y: []float64{3, math.NaN()}}, {Y: []float64{5, -2}}}); lo != -2 || hi != 5 {
		t.Errorf("from %v to %v", lo, hi)
	}
}
