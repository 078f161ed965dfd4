package calibrate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"farflash/experiment/trial"
	"farflash/numeric/rng"
	"farflash/result"
	"farflash/scenario/shape"
	"farflash/study"
)

// params are the four parameters of a trial, as factors of those of the preset tlc-enterprise.
type params struct{ read, program, channel, lane float64 }

// law is a drive in closed form: its figures, by the names of their metrics.
type law func(p params) map[string]float64

// runner simulates by a law. The preset's values are those of the first trial.
func runner(l law, calls *int) func(context.Context, []trial.Trial) []study.Outcome {
	var preset params
	return func(_ context.Context, trials []trial.Trial) []study.Outcome {
		*calls++
		var out []study.Outcome
		for _, x := range trials {
			c := x.Scenario.SSD.Config
			p := params{float64(c.Timing.Read[0]), float64(c.Timing.Program[0]), float64(c.Timing.TransferRate),
				float64(c.Host.LaneRate)}
			if preset == (params{}) {
				preset = p
			}
			r := &result.Result{}
			for name, v := range l(params{p.read / preset.read, p.program / preset.program, p.channel / preset.channel,
				p.lane / preset.lane}) {
				r.Metrics = append(r.Metrics, result.Metric{Name: name, Value: v})
			}
			out = append(out, study.Outcome{State: study.Done, Result: r})
		}
		return out
	}
}

// figure is one of a measurement.
func figure(metric string, measured, weight float64) Figure {
	return Figure{Job: "a", Name: metric, Unit: "us", Measured: measured, weight: weight, metric: metric}
}

// prepared returns a fit of figures, of one job that reads, by a law.
func prepared(t *testing.T, l law, calls *int, figures ...Figure) *Calibration {
	t.Helper()
	m, err := Read(strings.NewReader(`{"fio version": "fio-3.33", "jobs": [{"jobname": "a", "job options": {"rw": `+
		`"randread", "bs": "4k"}, "read": {"iops": 1000, "total_ios": 5, "clat_ns": {"mean": 1000}}}]}`), "r.json")
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(m, Config{Preset: "tlc-enterprise", Requests: 1000, Seed: 1, Run: runner(l, calls)})
	if err != nil {
		t.Fatal(err)
	}
	m.Figures = figures
	return c
}

// near reports whether two numbers agree to a share.
func near(a, b, share float64) bool { return math.Abs(a-b) <= share*math.Abs(b) }

// TestLaws fits drives whose figures are powers of their parameters, so that the answer and what the data determine are
// known.
func TestLaws(t *testing.T) {
	one := func(p params) map[string]float64 { // each parameter has a figure of its own
		return map[string]float64{"r": 40 * p.read, "w": 300 / p.program, "c": 2 * p.channel * p.channel, "l": 9 / p.lane}
	}
	bent := func(p params) map[string]float64 { // channels faster than the preset's, and links slower, have no effect
		return map[string]float64{"r": 40 * p.read, "w": 300 / p.program, "c": 2 * math.Min(p.channel, 1),
			"l": 9 * math.Max(p.lane, 1)}
	}
	joint := func(p params) map[string]float64 { // only the product of two parameters counts, and two not at all
		return map[string]float64{"r": 40 * p.read * p.program, "w": 70 / (p.read * p.program), "c": 2, "l": 9}
	}
	const fitted = Fitted
	for name, x := range map[string]struct {
		law     law
		figures []Figure
		factors [4]float64 // 0: unknown
		states  [4]State
		with    [4]int // index of the other, -1 for none
	}{
		"the preset itself": {one, []Figure{figure("r", 40, 1), figure("w", 300, 1), figure("c", 2, 1), figure("l", 9, 1)},
			[4]float64{1, 1, 1, 1}, [4]State{fitted, fitted, fitted, fitted}, [4]int{-1, -1, -1, -1}},
		"other values": {one, []Figure{figure("r", 40*0.7, 1), figure("w", 300/2.5, 1), figure("c", 2*0.3*0.3, 1),
			figure("l", 9/3.7, 1)}, [4]float64{0.7, 2.5, 0.3, 3.7}, [4]State{fitted, fitted, fitted, fitted},
			[4]int{-1, -1, -1, -1}},
		"beyond the range": {one, []Figure{figure("r", 40*100, 1), figure("w", 300*100, 1), figure("c", 2, 1),
			figure("l", 9, 1)}, [4]float64{16, 1. / 16, 1, 1}, [4]State{AtBound, AtBound, fitted, fitted},
			[4]int{-1, -1, -1, -1}},
		"bounds": {bent, []Figure{figure("r", 40, 1), figure("w", 300, 1), figure("c", 2, 1), figure("l", 9, 1)},
			[4]float64{1, 1, 1, 1}, [4]State{fitted, fitted, AtLeast, AtMost}, [4]int{-1, -1, -1, -1}},
		"a pair": {joint, []Figure{figure("r", 40*1.5, 1), figure("w", 70/1.5, 1), figure("c", 2, 1), figure("l", 9, 1)},
			[4]float64{0, 0, 1, 1}, [4]State{fitted, fitted, Unidentified, Unidentified}, [4]int{1, 0, -1, -1}},
		"a tail alone says nothing": {one, []Figure{figure("r", 40, 1), figure("w", 300, 0.99), figure("c", 2, 1),
			figure("l", 9, 1)}, [4]float64{1, 1, 1, 1}, [4]State{fitted, Unidentified, fitted, fitted},
			[4]int{-1, -1, -1, -1}},
	} {
		calls := 0
		c := prepared(t, x.law, &calls, x.figures...)
		steps := 0
		c.step = func(n int, _ float64) {
			if steps++; n != steps {
				t.Errorf("%s: evaluation %d is reported as %d", name, steps, n)
			}
		}
		if err := c.Fit(context.Background()); err != nil {
			t.Fatal(err)
		}
		if c.Evaluations != calls || steps != calls || len(c.known) != calls {
			t.Errorf("%s: %d evaluations, %d runs, %d reports", name, c.Evaluations, calls, steps)
		}
		for i, p := range c.Parameters {
			if f := x.factors[i]; f != 0 && !near(p.Factor, f, 0.004) || p.State != x.states[i] {
				t.Errorf("%s: %s: %s by %v, want %s by %v", name, p.Path, p.State, p.Factor, x.states[i], f)
			}
			with := ""
			if k := x.with[i]; k >= 0 {
				with = c.Parameters[k].Path
			}
			if p.With != with || (p.Value == p.Preset) != (p.Factor == 1) {
				t.Errorf("%s: %s: %s (was %s), with %q", name, p.Path, p.Value, p.Preset, p.With)
			}
		}
		if name == "a pair" {
			if f := c.Parameters[0].Factor * c.Parameters[1].Factor; !near(f, 1.5, 0.004) {
				t.Errorf("the product is %v", f)
			}
		}
		if name != "beyond the range" {
			for _, f := range c.Fits {
				if !near(f.Simulated, f.Measured, 0.01) || math.Abs(f.Difference()) > 0.01 {
					t.Errorf("%s: %s is %v, measured %v", name, f.Name, f.Simulated, f.Measured)
				}
			}
		}
	}
}

// TestOutlierPulls verifies that a figure far off pulls a parameter no harder than one that is off by the threshold:
// against four figures alike, by a fortieth.
func TestOutlierPulls(t *testing.T) {
	for _, far := range []float64{3, 200} {
		var figures []Figure
		for i := range 5 {
			figures = append(figures, figure(fmt.Sprintf("f%d", i), 10*0.8, 1))
		}
		figures[4].Measured *= far
		calls := 0
		c := prepared(t, func(p params) map[string]float64 {
			out := map[string]float64{}
			for _, f := range figures {
				out[f.metric] = 10 * p.read
			}
			return out
		}, &calls, figures...)
		if err := c.Fit(context.Background()); err != nil {
			t.Fatal(err)
		}
		if got, want := c.Parameters[0].Factor, 0.8*math.Exp(0.1/4); !near(got, want, 0.01) {
			t.Errorf("a figure %v times too large leads to %v, want %v", far, got, want)
		}
	}
}

// TestStandardError compares a parameter's error with that of linear regression, in closed form: n figures that are
// proportional to the parameter, some off by a few per cent.
func TestStandardError(t *testing.T) {
	off := []float64{0.03, -0.02, 0.01, -0.04, 0.02}
	weights := []float64{1, 1, 1, 1, 0.5}
	var figures []Figure
	for i := range off {
		figures = append(figures, figure(fmt.Sprintf("f%d", i), 10*math.Exp(off[i]), weights[i]))
	}
	calls := 0
	c := prepared(t, func(p params) map[string]float64 {
		out := map[string]float64{}
		for _, f := range figures {
			out[f.metric] = 10 * p.read
		}
		return out
	}, &calls, figures...)
	if err := c.Fit(context.Background()); err != nil {
		t.Fatal(err)
	}
	mean, whole, rest := 0.0, 0.0, 0.0
	for i := range off {
		mean, whole = mean+weights[i]*off[i], whole+weights[i]
	}
	mean /= whole
	for i := range off {
		rest += weights[i] * (off[i] - mean) * (off[i] - mean)
	}
	want := math.Sqrt(rest / 4 / whole)
	p := c.Parameters[0]
	if !near(math.Log(p.Factor), mean, 0.3) || !near(p.Error, want, 0.05) {
		t.Errorf("by %v with an error of %v, want %v and %v", p.Factor, p.Error, math.Exp(mean), want)
	}
	// As many parameters as figures leave no error to estimate.
	c = prepared(t, func(p params) map[string]float64 { return map[string]float64{"f0": 10 * p.read} }, &calls,
		figures[0])
	if err := c.Fit(context.Background()); err != nil || c.Parameters[0].Error != 0 || c.Parameters[0].State != Fitted {
		t.Errorf("%v: %+v", err, c.Parameters[0])
	}
}

// TestLoss computes the loss of a set of parameters by hand.
func TestLoss(t *testing.T) {
	for _, x := range []struct{ simulated, measured, want float64 }{
		{5, 5, 0}, {5 * math.Exp(0.05), 5, 0.00125}, {5, 5 * math.Exp(0.05), 0.00125},
		{5 * math.Exp(0.0999999), 5, 0.005}, {5 * math.Exp(0.3), 5, 0.025}, {5, 5 * math.Exp(2), 0.195},
		{math.NaN(), 5, 0.295},
	} {
		if got := huber(x.simulated, x.measured); !near(got, x.want, 1e-5) && got != x.want {
			t.Errorf("the loss of %v for %v is %v, want %v", x.simulated, x.measured, got, x.want)
		}
	}
	calls := 0
	c := prepared(t, func(p params) map[string]float64 {
		return map[string]float64{"r": 40 * p.read, "w": 300 * p.program, "none": 0}
	}, &calls, figure("r", 40, 1), figure("w", 300, 0.5), figure("none", 7, 0.1), figure("unknown", 7, 0.1))
	ctx := context.Background()
	base := (0.1*0.295 + 0.1*0.295) / 1.7
	for _, x := range []struct {
		logs []float64
		want float64
	}{
		{[]float64{0, 0, 0, 0}, base},
		{[]float64{1, 0, 0, 0}, base + 0.1*(math.Ln2-0.05)/1.7 + 1e-6},
		{[]float64{0, -2, 0, 0}, base + 0.5*0.1*(2*math.Ln2-0.05)/1.7 + 4e-6},
		{[]float64{0, 0, 3, -1}, base + 10e-6},
	} {
		for range 2 { // the second time from memory
			v, err := c.at(ctx, x.logs)
			if err != nil || !near(v.loss, x.want, 1e-9) {
				t.Errorf("at %v: loss %v, %v; want %v", x.logs, v.loss, err, x.want)
			}
			if !math.IsNaN(v.figures[2]) || !math.IsNaN(v.figures[3]) || v.figures[0] != 40*math.Exp2(x.logs[0]) {
				t.Errorf("at %v: figures %v", x.logs, v.figures)
			}
		}
	}
	if calls != 4 || c.Evaluations != 4 {
		t.Errorf("%d runs, %d evaluations", calls, c.Evaluations)
	}
}

// TestInterrupted verifies the result of a fit that ends early, after each number of evaluations, and that a failed
// run ends it.
func TestInterrupted(t *testing.T) {
	plain := func(p params) map[string]float64 {
		return map[string]float64{"r": 40 * p.read, "w": 300 / p.program, "c": 2 * p.channel, "l": 9 / p.lane}
	}
	figures := []Figure{figure("r", 40*0.7, 1), figure("w", 300/2.5, 1), figure("c", 2*0.3, 1), figure("l", 9/3.7, 1)}
	whole := 0
	if err := prepared(t, plain, &whole, figures...).Fit(context.Background()); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("out of memory")
	last := math.Inf(1)
	for after := 0; after < whole; after += 1 + whole/5 {
		for state, want := range map[study.State]error{study.Pending: trial.ErrInterrupted, study.Failed: broken} {
			calls := 0
			c := prepared(t, plain, &calls, figures...)
			inner := c.run
			c.run = func(ctx context.Context, trials []trial.Trial) []study.Outcome {
				if calls == after {
					return []study.Outcome{{State: state, Err: broken}}
				}
				return inner(ctx, trials)
			}
			err := c.Fit(context.Background())
			if !errors.Is(err, want) || c.Evaluations != after || c.Interrupted != (state == study.Pending) {
				t.Fatalf("after %d evaluations: %v, %d, interrupted %v", after, err, c.Evaluations, c.Interrupted)
			}
			if state == study.Failed {
				continue
			}
			if after == 0 {
				if c.Fits != nil {
					t.Error("a fit without an evaluation has figures")
				}
				continue
			}
			if len(c.Fits) != 4 || c.Loss > last {
				t.Errorf("after %d evaluations: loss %v, before %v", after, c.Loss, last)
			}
			last = c.Loss
			for i, f := range c.Fits { // the figures are those of the parameters that are kept
				x := c.Parameters
				p := params{x[0].Factor, x[1].Factor, x[2].Factor, x[3].Factor}
				if !near(f.Simulated, plain(p)[figures[i].metric], 0.001) {
					t.Errorf("after %d evaluations: %s is %v with %+v", after, f.Name, f.Simulated, p)
				}
			}
		}
	}
}

// TestAlgebra compares the least squares with closed forms.
func TestAlgebra(t *testing.T) {
	if got := solve([][]float64{{1, 2, 3}}, []float64{2, 4, 7}, 0.5); !near(got[0], (2+8+21)/14.5, 1e-12) {
		t.Errorf("one column: %v", got)
	}
	s := rng.NewStream(3, "algebra")
	for range 50 {
		var columns [][]float64
		for range 2 {
			columns = append(columns, []float64{s.Float64() - 0.5, s.Float64() - 0.5, s.Float64() - 0.5, s.Float64()})
		}
		target := []float64{s.Float64(), s.Float64(), -s.Float64(), s.Float64()}
		a, b, d := 0.0, 0.0, 0.0
		p, q := 0.0, 0.0
		for i := range target {
			a += columns[0][i] * columns[0][i]
			b += columns[0][i] * columns[1][i]
			d += columns[1][i] * columns[1][i]
			p += columns[0][i] * target[i]
			q += columns[1][i] * target[i]
		}
		inverse := inverseDiagonal(columns)
		if det := a*d - b*b; !near(inverse[0], d/det, 1e-6) || !near(inverse[1], a/det, 1e-6) {
			t.Errorf("%v: the inverse has %v, want %v and %v", columns, inverse, d/det, a/det)
		}
		a, d = a+0.25, d+0.25
		det := a*d - b*b
		got := solve(columns, target, 0.25)
		if !near(got[0], (p*d-q*b)/det, 1e-9) || !near(got[1], (a*q-b*p)/det, 1e-9) {
			t.Errorf("%v: %v", columns, got)
		}
	}
	if got := inverseDiagonal([][]float64{{1, 2}, {2, 4}}); !math.IsInf(got[0], 1) || !math.IsInf(got[1], 1) {
		t.Errorf("two columns alike: %v", got)
	}
	// A matrix that needs rows to be exchanged: x = 1, y = 2, z = 3.
	m := [][]float64{{0, 2, 1, 7}, {1, 0, 0, 1}, {3, 1, 2, 11}}
	if !eliminate(m) {
		t.Error("singular")
	}
	for i, want := range []float64{1, 2, 3} {
		if got := m[i][3] / m[i][i]; !near(got, want, 1e-12) {
			t.Errorf("unknown %d is %v", i, got)
		}
		for j := range 3 {
			if i != j && math.Abs(m[i][j]) > 1e-12 {
				t.Errorf("%v is not diagonal", m)
			}
		}
	}
	if eliminate([][]float64{{1, 1}, {1, 1 + 1e-13}}) || !eliminate([][]float64{{1, 1}, {1, 1 + 1e-11}}) {
		t.Error("which matrix is singular")
	}
}

// TestNewRefuses verifies the limits of a fit.
func TestNewRefuses(t *testing.T) {
	m, err := Read(strings.NewReader(result1("a", `"rw": "randread", "bs": "4k"`, 1000, "")), "r.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		cfg  Config
		want string
	}{
		{Config{Preset: "tlc-enterprise", Requests: 1000}, ""},
		{Config{Preset: "tlc-enterprise", Requests: 10_000_000}, ""},
		{Config{Preset: "mqsim-default", Requests: 1000}, ""}, // whose controller takes no time
		{Config{Preset: "tlc-enterprise", Requests: 999}, "999 requests are not possible; use 1000 to 10000000"},
		{Config{Preset: "tlc-enterprise", Requests: 10_000_001}, "10000001 requests are not possible"},
		{Config{Preset: "no-such-drive", Requests: 1000}, "no-such-drive"},
		{Config{Preset: "tlc-enterprise", Requests: 1000, Changes: []shape.Change{{Path: "ssd.colour", Value: "red",
			Flag: "set"}}}, "colour"},
	} {
		c, err := New(m, x.cfg)
		if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)) {
			t.Errorf("%+v: %v", x.cfg, err)
		}
		if err != nil {
			continue
		}
		var paths []string
		for _, p := range c.Parameters {
			if paths = append(paths, p.Path); p.Value != p.Preset || p.Factor != 1 || p.State != "" {
				t.Errorf("%+v", p)
			}
		}
		if !slices.Equal(paths, []string{"ssd.timing.read_latency", "ssd.timing.program_latency",
			"ssd.timing.channel_rate", "ssd.host.lane_rate"}) || c.Controller != (x.cfg.Preset == "tlc-enterprise") {
			t.Errorf("%v", paths)
		}
	}
	// Times that differ between a page's kinds stay a list, rounded to a nanosecond and never 0.
	c, err := New(m, Config{Preset: "tlc-enterprise", Requests: 1000, Changes: []shape.Change{
		{Path: "ssd.timing.read_latency", Value: "[10us, 20us, 40us, 41us]", Flag: "set"},
		{Path: "ssd.timing.channel_rate", Value: "2000MT/s", Flag: "set"}}})
	if err != nil {
		t.Fatal(err)
	}
	for factor, want := range map[float64]string{1: "[10us, 20us, 40us, 41us]", 1.00004: "[10us, 20.001us, 40.002us, 41.002us]",
		1e-9: "1ns"} {
		if got := c.Parameters[0].write(factor); got != want {
			t.Errorf("times by %v are %s, want %s", factor, got, want)
		}
	}
	for factor, want := range map[float64]string{0.5: "1GT/s", 1.00002: "2GT/s", 1e-9: "100KT/s"} {
		if got := c.Parameters[2].write(factor); got != want {
			t.Errorf("the channel's rate by %v is %s, want %s", factor, got, want)
		}
	}
}

// TestScenarioWritten verifies that only parameters that moved are written as such, and the file's name is the
// scenario's.
func TestScenarioWritten(t *testing.T) {
	calls := 0
	c := prepared(t, func(p params) map[string]float64 { return map[string]float64{"r": 40 * p.read} }, &calls,
		figure("r", 20, 1))
	c.Measured.File = `C:\results\mine.json`
	if err := c.Fit(context.Background()); err != nil {
		t.Fatal(err)
	}
	text := c.Scenario()
	for _, want := range []string{"name: mine\n", "its timing fitted to C:\\results\\mine.json (fio-3.33) by farflash calibrate fio",
		"ssd.timing.read_latency: " + c.Parameters[0].Value + " (was " + c.Parameters[0].Preset + ")",
		"not identified: no figure depends on it"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
