package study

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"farflash/experiment"
	"farflash/experiment/trial"
	"farflash/internal/golden"
	"farflash/internal/patience"
	"farflash/numeric/stats"
	"farflash/result"
	"farflash/scenario/shape"
)

// madeUp simulates a drive's statistics: metrics vary by factors, more between seeds than between designs on one seed;
// percentiles have the steps of a histogram; some metrics are aliases, some are constant, some are small counts. In the
// second arm one metric differs by a factor.
type madeUp struct {
	study  uint64
	metric string
	factor float64
}

// spread is the deviation of a metric's logarithm: by seed, common to all arms, and by run.
var spread = map[string][2]float64{
	"ssd.waf": {0.05, 0.02}, "read.latency.mean": {0.1, 0.02}, "write.latency.mean": {0.2, 0.03},
	"read.latency.p99": {0.2, 0.03}, "write.latency.p99": {0.3, 0.03}, "all.bandwidth": {0.03, 0.01},
}

func (m *madeUp) execute(_ context.Context, t trial.Trial, version string,
	_ func(experiment.Progress)) (*result.Result, error) {
	r := result.New(trial.Vocabulary(), t.Digest, t.Seed, version)
	arm := uint64(t.Digest[1] - '0')
	seed, own := rand.New(rand.NewPCG(m.study, t.Seed)), rand.New(rand.NewPCG(m.study+arm<<32+1<<62, t.Seed))
	load, wild := seed.NormFloat64(), own.NormFloat64() // common component of all metrics
	for _, name := range families[len(families)-1].metrics[:6] {
		s := spread[name]
		v := 100 * math.Exp(s[0]*(load+seed.NormFloat64())/math.Sqrt2+s[1]*(wild+own.NormFloat64())/math.Sqrt2)
		if arm == 1 && name == m.metric {
			v *= m.factor
		}
		if strings.Contains(name, ".p99") {
			step := math.Exp2(math.Floor(math.Log2(v)) - 6)
			v = math.Floor(v/step) * step
		}
		r.Set(name, v)
		if other, ok := strings.CutPrefix(name, "read."); ok {
			r.Set("workload[0].read."+other, v)
		}
	}
	r.Set("read.latency.p50", 80)
	r.Set("read.latency.min", 12.5)
	r.Set("ssd.gc.count", float64(20+own.IntN(3)))
	r.Set("ssd.wear.max", float64(1+own.IntN(2)))
	return r, nil
}

// madeUpPlan returns a plan with two arms.
func madeUpPlan(reps int, apart bool) *Plan {
	return &Plan{Kind: Comparison, Name: "made up", Seed: 1, Reps: reps, Apart: apart,
		Points: []Point{{Label: "a", Digest: "d0"}, {Label: "b", Digest: "d1"}}}
}

// tally counts calls of metrics with known effects.
type tally struct {
	calls, wrongSign int
	agreed, against  int // with benchstat, where it also finds a difference
}

// add scores the verdict on a metric with a known log effect.
func (c *tally) add(e *Effect, truth float64, x, y []float64) {
	if !e.Differs() {
		return
	}
	c.calls++
	if truth != 0 && math.Signbit(truth) != math.Signbit(e.Effect.Mean) {
		c.wrongSign++
	}
	if sign := benchstat(x, y); sign != 0 {
		if (sign > 0) == (e.Effect.Mean > 0) {
			c.agreed++
		} else {
			c.against++
		}
	}
}

// metricOf returns a metric of each of two arms.
func metricOf(p *Plan, outcomes []Outcome, name string) (x, y []float64) {
	for k, s := range p.slots() {
		if outcomes[k].Result == nil {
			continue
		}
		m, _ := outcomes[k].Result.Metric(name)
		if s.point == 0 {
			x = append(x, m.Value)
		} else {
			y = append(y, m.Value)
		}
	}
	return x, y
}

// benchstat is the sign of the difference of medians if the Mann-Whitney test finds one at 5 %, as in
// golang.org/x/perf's benchstat; the distribution is computed exactly, ties included.
func benchstat(x, y []float64) int {
	all := slices.Concat(x, y)
	ranks := make([]int, len(all)) // doubled
	total := 0
	for i, v := range all {
		for _, w := range all {
			switch {
			case w < v:
				ranks[i] += 2
			case w == v:
				ranks[i]++
			}
		}
		ranks[i]++
		total += ranks[i]
	}
	sum := 0
	for i := range x {
		sum += ranks[i]
	}
	ways := make([][]float64, len(x)+1) // by the number of x's ranks, and their sum
	for k := range ways {
		ways[k] = make([]float64, total+1)
	}
	ways[0][0] = 1
	for _, r := range ranks {
		for k := len(x); k >= 1; k-- {
			for s := total; s >= r; s-- {
				ways[k][s] += ways[k-1][s-r]
			}
		}
	}
	low, high, of := 0.0, 0.0, 0.0
	for s, w := range ways[len(x)] {
		of += w
		if s <= sum {
			low += w
		}
		if s >= sum {
			high += w
		}
	}
	if 2*min(low, high)/of >= 0.05 {
		return 0
	}
	switch d := median(y) - median(x); {
	case d > 0:
		return 1
	case d < 0:
		return -1
	}
	return 0
}

func median(xs []float64) float64 {
	s := slices.Sorted(slices.Values(xs))
	return (s[len(s)/2] + s[(len(s)-1)/2]) / 2
}

// TestBenchstat compares with published p values: five against five separate values have 0.008, three against three
// 0.1.
func TestBenchstat(t *testing.T) {
	for _, c := range []struct {
		x, y []float64
		want int
	}{
		{[]float64{1, 2, 3, 4, 5}, []float64{6, 7, 8, 9, 10}, 1},
		{[]float64{6, 7, 8, 9, 10}, []float64{1, 2, 3, 4, 5}, -1},
		{[]float64{1, 2, 3}, []float64{6, 7, 8}, 0}, {[]float64{1, 1, 1, 1}, []float64{2, 2, 2, 2}, 1},
		{[]float64{1, 3, 5, 7, 9}, []float64{2, 4, 6, 8, 10}, 0},
	} {
		if got := benchstat(c.x, c.y); got != c.want {
			t.Errorf("%v, %v: %d", c.x, c.y, got)
		}
	}
}

// TestPlanted uses fifty effects of 10 % to 200 %, up and down, on the metrics of drives, and verifies that at least 95
// % are called within ten replicates, with and without looks, with the right sign and with that of benchstat.
func TestPlanted(t *testing.T) {
	const effects = 50
	for _, looks := range [][]int{{10}, stats.Looks(10)} {
		var c tally
		runs, others := 0, 0
		for i := range effects {
			m := madeUp{study: uint64(i), metric: families[len(families)-1].metrics[i%6],
				factor: 1.1 * math.Pow(3/1.1, float64(i)/(effects-1))}
			if i%2 == 1 {
				m.factor = 1 / m.factor
			}
			test := DefaultTest()
			test.Looks = looks
			r := Runner{Execute: m.execute}
			p, out, x, err := r.UntilDecided(t.Context(), madeUpPlan(10, false), test)
			if err != nil {
				t.Fatal(err)
			}
			runs += p.Reps
			for k := range x.Pairs[0].Primary() {
				e := &x.Pairs[0].Effects[k]
				if e.Name == m.metric {
					a, b := metricOf(p, out, e.Name)
					c.add(e, math.Log(m.factor), a, b)
					if !e.Differs() {
						t.Logf("%s x%.3f: %+v", m.metric, m.factor, e)
					}
				} else if e.Differs() {
					others++
				}
			}
		}
		t.Logf("looks after %v: %d of %d called, %.1f replicates on average, benchstat agrees with %d; %d calls of "+
			"metrics that do not differ", looks, c.calls, effects, float64(runs)/effects, c.agreed, others)
		if c.calls < 48 || c.wrongSign > 0 || c.against > 0 || others > 3 {
			t.Errorf("looks after %v: %+v, and %d calls of metrics that do not differ", looks, c, others)
		}
	}
}

// TestSeedsApart compares a design with itself on separate seeds 200 times, by number of replicates and with looks, and
// verifies that a difference is found in fewer than 5 %.
func TestSeedsApart(t *testing.T) {
	const pairs = 200
	for _, looks := range [][]int{{2}, {3}, {5}, {10}, stats.Looks(20)} {
		found := 0
		var c tally
		for i := range pairs {
			m := madeUp{study: uint64(1000 + i)}
			test := DefaultTest()
			test.Looks = looks
			r := Runner{Execute: m.execute}
			p, out, x, err := r.UntilDecided(t.Context(), madeUpPlan(looks[len(looks)-1], true), test)
			if err != nil {
				t.Fatal(err)
			}
			primary := x.Pairs[0].Primary()
			if Differing(primary) > 0 {
				found++
			}
			for k := range primary {
				a, b := metricOf(p, out, primary[k].Name)
				c.add(&primary[k], 0, a, b)
			}
		}
		t.Logf("looks after %v: a difference in %d of %d", looks, found, pairs)
		if found >= pairs*5/100 || c.against > 0 {
			t.Errorf("looks after %v: a difference in %d of %d, %+v", looks, found, pairs, c)
		}
	}
}

// simulated are designs that differ, for real simulations of a drive and of a network.
var simulated = []struct {
	name, text string
	changes    []string // each yields one design of the text
}{
	{"drive", `
workload:
  - synthetic: {reads: {size: 4KiB, interarrival: {mean: 60us, kind: exponential}}, writes: {size: 4KiB, interarrival: {mean: 120us, kind: exponential}}, requests: 1500}
ssd: mqsim-default
`, []string{
		"ssd.timing.read_latency=40us", "ssd.timing.read_latency=55us", "ssd.timing.read_latency=62us",
		"ssd.timing.read_latency=90us", "ssd.timing.read_latency=110us", "ssd.timing.read_latency=150us",
		"workload[0].synthetic.reads.size=32KiB", "workload[0].synthetic.reads.size=64KiB",
		"workload[0].synthetic.writes.size=32KiB", "workload[0].synthetic.writes.size=16KiB",
		"workload[0].synthetic.reads.interarrival.mean=20us", "workload[0].synthetic.reads.interarrival.mean=40us",
		"workload[0].synthetic.reads.interarrival.mean=100us",
	}},
	{"network", `
fabric: {topology: {star: {hosts: 9}}, host_link: 100Gbps, delay: 1us}
flows:
  - poisson: {load: 30%, sizes: {points: [{size: 1KB, share: 0}, {size: 20KB, share: 50%}, {size: 60KB, share: 100%}]}, duration: 1ms}
`, []string{
		"fabric.delay=2us", "fabric.delay=3us", "fabric.delay=4us", "fabric.host_link=80Gbps",
		"fabric.host_link=60Gbps", "fabric.host_link=50Gbps", "fabric.host_link=130Gbps", "fabric.host_link=200Gbps",
		"flows[0].poisson.load=45%", "flows[0].poisson.load=60%", "flows[0].poisson.load=20%",
	}},
}

// TestPlantedSimulated uses real simulations: it verifies for each effect of 10 % or more in a primary metric, measured
// with forty other replicates of both designs, whether it is called with the right sign after at most ten; it also
// compares designs with themselves on other seeds. Without FARFLASH_LONG there are few.
func TestPlantedSimulated(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of runs")
	}
	long := patience.Long(t)
	truthReps, pairs, least := 12, 10, 4
	if long {
		truthReps, pairs, least = 40, 100, 25
	}
	lines := golden.Head("model", ">effects of 10 % or more", ">called within 10 replicates", ">with the wrong sign",
		">in which benchstat finds the same sign", ">the other", ">comparisons with itself",
		">in which a difference was found, of 5", ">of at most 20")
	effectsOfAll, callsOfAll := 0, 0
	var foundOfAll [2]int
	for _, model := range simulated {
		if !long {
			model.changes = model.changes[:3]
		}
		source := shape.Source{File: model.name + ".yaml", Text: []byte(model.text)}
		plan := func(change string, seed uint64, reps int) *Plan {
			arms := []Arm{{Label: "a", Source: source}, {Label: "b", Source: source}}
			if change != "" {
				path, value, _ := strings.Cut(change, "=")
				arms[1].Changes = []shape.Change{{Path: path, Value: value}}
			}
			p, err := NewComparison(arms, seed, reps)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		r := Runner{Version: "v"}
		run := func(p *Plan, looks []int) (*Plan, []Outcome, *Pair) {
			test := DefaultTest()
			test.Looks = looks
			first, out, x, err := r.UntilDecided(t.Context(), p, test)
			if err != nil {
				t.Fatal(err)
			}
			return first, out, &x.Pairs[0]
		}
		var c tally
		effects := 0
		for _, change := range model.changes {
			_, _, truth := run(plan(change, 10001, truthReps), []int{truthReps})
			p, out, pair := run(plan(change, 1, 10), stats.Looks(10))
			for _, known := range truth.Primary() {
				if known.Ratio && math.Abs(known.Effect.Mean) >= math.Log(1.1) {
					if i := slices.IndexFunc(pair.Effects, func(e Effect) bool { return e.Name == known.Name }); i >=
						0 {
						effects++
						x, y := metricOf(p, out, known.Name)
						c.add(&pair.Effects[i], known.Effect.Mean, x, y)
						if e := &pair.Effects[i]; !e.Differs() {
							t.Logf("%s: %s is %+.3f, and after %d replicates %+.3f +- %.3f: %s, %d more", change,
								e.Name, known.Effect.Mean, p.Reps, e.Effect.Mean, e.Effect.Half, e.Verdict, e.More)
						}
					}
				}
			}
		}
		found := [2]int{}
		for i := range pairs {
			for k, looks := range [][]int{{5}, stats.Looks(20)} {
				if !long && k == 1 {
					continue
				}
				p := plan("", 100000+uint64(i)*1000, looks[len(looks)-1])
				p.Apart = true
				if _, _, pair := run(p, looks); Differing(pair.Primary()) > 0 {
					found[k]++
				}
			}
		}
		t.Logf("%s: %d effects, %+v; a difference in %v of %d comparisons with itself", model.name, effects, c, found,
			pairs)
		effectsOfAll, callsOfAll = effectsOfAll+effects, callsOfAll+c.calls
		foundOfAll[0], foundOfAll[1] = foundOfAll[0]+found[0], foundOfAll[1]+found[1]
		if effects < least || c.wrongSign > 0 || c.against > 0 || found[0]*100 >= pairs*5+100 ||
			found[1]*100 >= pairs*5+100 {
			t.Errorf("%s: %d effects, %+v; a difference in %v of %d comparisons with itself", model.name, effects, c,
				found, pairs)
		}
		lines = append(lines,
			golden.Row(model.name, fmt.Sprint(effects), fmt.Sprint(c.calls), fmt.Sprint(c.wrongSign),
				fmt.Sprint(c.agreed), fmt.Sprint(c.against), fmt.Sprint(pairs), fmt.Sprint(found[0]),
				fmt.Sprint(found[1])))
	}
	if callsOfAll*100 < effectsOfAll*95 {
		t.Errorf("%d of %d effects are called", callsOfAll, effectsOfAll)
	}
	if of := pairs * len(simulated); long && (foundOfAll[0]*100 >= of*5 || foundOfAll[1]*100 >= of*5) {
		t.Errorf("a difference in %v of %d comparisons with themselves", foundOfAll, of)
	}
	if long {
		golden.Table(t, "../docs/validation/stats.md", "planted",
			"seeds 1 to 10, of the truth 10001 to 10040, of designs and themselves 100000 to 199999", lines, *update)
	}
}
