package stats

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"farflash/internal/golden"
	"farflash/internal/patience"
)

var update = flag.Bool("update", false, "write tables of docs/validation/stats.md, with FARFLASH_LONG")

// queue is a single server with Poisson arrivals at the given load. It generates sojourn times in units of the mean
// service time.
type queue struct {
	r       *rand.Rand
	load    float64
	regular bool // constant service times
	last    float64
}

func (q *queue) next() float64 {
	service := 1.0
	if !q.regular {
		service = q.r.ExpFloat64()
	}
	q.last = math.Max(0, q.last-q.r.ExpFloat64()/q.load) + service
	return q.last
}

// stay returns the steady-state mean (Pollaczek and Khinchine).
func (q *queue) stay() float64 {
	moment := 2.0
	if q.regular {
		moment = 1
	}
	return 1 + q.load*moment/(2*(1-q.load))
}

// autoregressive generates normal deviates about 10, each of which keeps a share of the previous one.
type autoregressive struct {
	r    *rand.Rand
	keep float64
	x    float64
}

func (a *autoregressive) next() float64 {
	a.x = a.keep*a.x + 3*a.r.NormFloat64()
	return 10 + a.x
}

// TestSettlingPromise verifies that at least the promised share of self-terminating runs is within the precision: for
// queues from light to heavy load, which are skewed and the more correlated the heavier the load, and for
// autoregressions. 93 % of few runs stands for 95 % of many.
func TestSettlingPromise(t *testing.T) {
	loads, runs := []float64{0.2, 0.5, 0.7}, 150
	if patience.Long(t) {
		loads, runs = []float64{0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95}, 400
	}
	if testing.Short() {
		runs = 40
	}
	// cells are those of a row of docs/validation/stats.md.
	hold := func(name string, truth float64, source func(r *rand.Rand) func() float64) (cells []string) {
		t.Helper()
		inside, bias, length := 0, 0.0, 0
		for run := range runs {
			next := source(rand.New(rand.NewPCG(uint64(run), 21)))
			s := NewSettling(DefaultSettlingConfig())
			for {
				s.Add(next())
				if s.Due() && s.Look().Reached {
					break
				}
			}
			off := s.total/float64(s.n)/truth - 1
			bias += off / float64(runs)
			length += s.n / runs
			if math.Abs(off) <= DefaultSettlingConfig().precision {
				inside++
			}
		}
		share := float64(inside) / float64(runs)
		t.Logf("%s: %5.1f %% of the runs are within 5 %%, bias %+.2f %%, %d observations", name, 100*share, 100*bias,
			length)
		if share < 0.93 || math.Abs(bias) > 0.015 {
			t.Errorf("%s: %.1f %% of the runs are within 5 %%, and all are off by %+.2f %% on average", name,
				100*share, 100*bias)
		}
		return []string{fmt.Sprintf("%.1f %%", 100*share), fmt.Sprintf("%+.2f %%", 100*bias), fmt.Sprint(length)}
	}
	queues := make([][]string, len(loads))
	for _, regular := range []bool{false, true} {
		for i, load := range loads {
			q := queue{load: load, regular: regular}
			name := "M/M/1"
			if regular {
				name = "M/D/1"
			}
			cells := hold(name+" at "+percent(load), q.stay(), func(r *rand.Rand) func() float64 {
				q := queue{r: r, load: load, regular: regular}
				return q.next
			})
			queues[i] = append(queues[i], cells...)
		}
	}
	held := golden.Head("an autoregression of mean 10 that keeps", ">within 5 %", ">bias", ">observations on average")
	for _, keep := range []float64{0, 0.9} {
		cells := hold("an autoregression that keeps "+percent(keep), 10, func(r *rand.Rand) func() float64 {
			a := autoregressive{r: r, keep: keep}
			return a.next
		})
		held = append(held, golden.Row(append([]string{fmt.Sprintf("%.0f %%", 100*keep)}, cells...)...))
	}
	if !patience.Long(t) || testing.Short() {
		return
	}
	lines := golden.Head("load", ">M/M/1 within 5 %", ">bias", ">requests on average", ">M/D/1 within 5 %", ">bias",
		">requests on average")
	for i, load := range loads {
		lines = append(lines, golden.Row(append([]string{fmt.Sprintf("%.0f %%", 100*load)}, queues[i]...)...))
	}
	const page = "../../docs/validation/stats.md"
	golden.Table(t, page, "settling-queues", "seeds 0 to 399", lines, *update)
	golden.Table(t, page, "settling-autoregressions", "seeds 0 to 399", held, *update)
}

func percent(x float64) string {
	return string(rune('0'+int(x*10)%10)) + string(rune('0'+int(math.Round(x*100))%10)) + " %"
}

// TestSettlingSays verifies the explanations of looks that do not end the run, and the case of constant observations.
func TestSettlingSays(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	look := func(n int, next func(i int) float64) Verdict {
		s := NewSettling(DefaultSettlingConfig())
		for i := range n {
			s.Add(next(i))
		}
		return s.Judge()
	}
	decay := func(i int) float64 { return 100 + 20*r.NormFloat64() + 3000*math.Exp(-float64(i)/200) }
	for _, c := range []struct {
		name string
		v    Verdict
		want string
	}{
		{"too few", look(4095, decay), "4095 observations are too few; at least 4096 are needed"},
		{"it rises", look(8000, func(i int) float64 { return float64(i) }),
			"no steady state within the run: the mean still changes in its second half"},
		{"its beginning weighs", look(8000, decay), "the mean is known to 75 %; 5 % is required"},
		{"it waves", look(30000, func(i int) float64 { return 10 + 9*math.Sin(float64(i)/1000) }),
			"the observations are still correlated over the longest batches that fit"},
	} {
		if c.v.Reached || c.v.Explain != c.want {
			t.Errorf("%s: %+v, want %q", c.name, c.v, c.want)
		}
	}
	if v := look(200_000, decay); !v.Reached || math.Abs(v.Interval.Mean-100) > 1 || v.Cut.Index == 0 {
		t.Errorf("a decay that is over: %+v", v)
	}
	if v := look(5000, func(int) float64 { return 7 }); !v.Reached || v.Explain != "nothing varies" {
		t.Errorf("what does not vary: %+v", v)
	}
}

// TestSettlingLooks verifies that looks are spaced as configured, and that they do not allocate.
func TestSettlingLooks(t *testing.T) {
	s := NewSettling(SettlingConfig{precision: 1e-9, level: 0.95, least: 64, growth: 2})
	r := rand.New(rand.NewPCG(1, 2))
	var at []int
	for n := 1; n <= 1100; n++ {
		s.Add(r.ExpFloat64())
		if s.Due() {
			at = append(at, n)
			s.Look()
		}
	}
	if len(at) != 5 || at[0] != 64 || at[1] != 128 || at[4] != 1024 {
		t.Errorf("looks after %v observations", at)
	}
	if n := testing.AllocsPerRun(1000, func() { s.Add(1) }); n != 0 {
		t.Errorf("an observation allocates %v times", n)
	}
}

// TestSkewed compares the correction with Willink's equation solved by hand: without skewness it is t, and of the two
// ends that of the longer tail is farther.
func TestSkewed(t *testing.T) {
	near(t, "without skewness", skewed(2, 0, 32), 2, 1e-15)
	// b = 1.2/(6*4) = 0.05: the ends are (cbrt(1+0.3(2-0.05))-1)/0.1 = 1.6597 and (cbrt(1+0.3(-2-0.05))-1)/0.1 =
	// -2.7253.
	near(t, "with a skewness of 1.2", skewed(2, 1.2, 16), 2.7253, 1e-3)
	near(t, "with one of -1.2", skewed(2, -1.2, 16), 2.7253, 1e-3)
}
