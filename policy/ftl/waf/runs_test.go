package waf

import (
	"strings"
	"testing"

	"farflash/numeric/rng"
	"farflash/policy/ftl"
)

// TestRunsAgainstForms verifies that runs drawn from loads with known amplification (uniform pages, pages of two
// classes, the whole space in order) amplify the same.
func TestRunsAgainstForms(t *testing.T) {
	e := quick(Policy{Victim: ftl.FIFO})
	pages := int32(e.Blocks * e.Pages)
	random := rng.NewStream(1, "runs")
	hot := func(writes, space float64) (list [][2]int32) {
		edge := int32(space * float64(pages))
		for range 40 * pages {
			if random.Float64() < writes {
				list = append(list, [2]int32{int32(random.IntN(int64(edge))), 1})
			} else {
				list = append(list, [2]int32{edge + int32(random.IntN(int64(pages-edge))), 1})
			}
		}
		return list
	}
	skewed, err := MixedFIFO(e.Alpha, HotCold(.8, .2))
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		runs [][2]int32
		want float64
	}{
		"uniform": {hot(.5, .5), FIFO(e.Alpha)},
		"80/20":   {hot(.8, .2), skewed},
		"order":   {[][2]int32{{0, pages}}, 1},
	} {
		e.Runs = x.runs
		if r := simulate(t, e); r.WAF < x.want*.97 || r.WAF > x.want*1.03 {
			t.Errorf("%s: %v, %v is right", name, r.WAF, x.want)
		}
	}
	for _, bad := range [][2]int32{{-1, 1}, {0, 0}, {pages, 1}, {pages - 1, 2}, {1 << 30, 1 << 30}} {
		e.Runs = [][2]int32{{0, 1}, bad}
		if _, err := Simulate(e); err == nil || !strings.Contains(err.Error(), "a run lies outside") {
			t.Errorf("%v: %v", bad, err)
		}
	}
	e.Runs, e.Sequential = [][2]int32{{0, 1}}, .5
	if _, err := Simulate(e); err == nil || !strings.Contains(err.Error(), "runs replace classes") {
		t.Error(err)
	}
}
