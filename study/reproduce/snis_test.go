package reproduce

import (
	"math"
	"testing"
)

// TestTable2Loads verifies that the loads in table II are its sizes over its times, with KB of 1000 B, within its
// digits.
func TestTable2Loads(t *testing.T) {
	for _, r := range snisRows {
		for _, x := range []struct{ size, gap, load float64 }{{r.readSize, r.readGap, r.readLoad},
			{r.writeSize, r.wGap, r.writeLoad}} {
			low, high := (x.size-0.5)*8/(x.gap+0.5), (x.size+0.5)*8/(x.gap-0.5)
			if x.load < low || x.load > high {
				t.Errorf("%s: %g KB every %g us are %.3g to %.3g Gbit/s, not %g", r.tag, x.size, x.gap, low, high,
					x.load)
			}
		}
	}
}

// TestApart uses distributions whose quantiles differ by a factor along a line of 1 % per share.
func TestApart(t *testing.T) {
	shares := []float64{1, 50, 99}
	line := func(k float64) []float64 {
		var out []float64
		for _, s := range shares {
			out = append(out, k*math.Exp(s/10)) // linear in the logarithm
		}
		return out
	}
	a := line(1)
	if d := apart(a, a, shares); d != 0 {
		t.Errorf("a distribution is %g from itself", d)
	}
	// A factor of e is 10 points.
	if d := apart(a, line(math.E), shares); math.Abs(d-0.1) > 1e-12 {
		t.Errorf("%g apart, not 0.1", d)
	}
	// Beyond the other's last quantile the known share below is that of its last quantile.
	if d := apart(a, []float64{1e6, 2e6, 3e6}, shares); math.Abs(d-0.98) > 1e-12 {
		t.Errorf("%g apart, not 0.98", d)
	}
}

func TestSteps(t *testing.T) {
	d := distances{{9, 4, 5, 4.5, 4.5}}
	for _, x := range []struct {
		from    int
		largest float64
	}{{1, 5}, {2, 1}, {3, 0.5}, {5, 0}} {
		if largest := d.steps(x.from); largest != x.largest {
			t.Errorf("from %d: largest %g", x.from, largest)
		}
	}
	if d.at(2) != 4 || d.most(2) != 5 {
		t.Errorf("%g, %g", d.at(2), d.most(2))
	}
}

func TestPearson(t *testing.T) {
	if r := pearson([]float64{1, 2, 3}, []float64{2, 4, 6}); math.Abs(r-1) > 1e-12 {
		t.Error(r)
	}
	if r := pearson([]float64{1, 2, 3}, []float64{0, 0, 0}); !math.IsNaN(r) {
		t.Errorf("what does not vary correlates by %g", r)
	}
}
