package report

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
)

// TestNothingToShow verifies that a drive with reads only has no empty chart: none of programs, wear and free blocks,
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

// TestLastBin verifies that the rate of the last bin, which covers its simulated part, is drawn unchanged, in the
// middle of that part; a short part has no point.
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

// TestWarmUpLabel verifies that the label of a shaded interval is drawn over the lines that may cross it.
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
