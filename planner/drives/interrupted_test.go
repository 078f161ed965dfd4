package drives

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"farflash/experiment/trial"
	"farflash/numeric/rng"
	"farflash/planner/tco"
	"farflash/planner/tco/catalogue"
	"farflash/result"
	"farflash/scenario"
	"farflash/scenario/shape"
)

// broken is a cache that cannot be read or written.
type broken struct{ puts int }

func (*broken) Get(trial.Trial) (*result.Result, error) { return nil, errors.New("unreadable") }

func (b *broken) Put(trial.Trial, *result.Result) error { b.puts++; return errors.New("full") }

// TestUnkept verifies that a result that cannot be read or stored is simulated all the same, and that what cannot be
// simulated is an error, not a drive without latency.
func TestUnkept(t *testing.T) {
	p := loaded(t, oneOfTLC)
	src, err := scenario.Find("tlc-enterprise")
	if err != nil {
		t.Fatal(err)
	}
	b := &broken{}
	p.simulated.cache = b
	mix := mixed{rate: 100, writes: 0.25, kib: 512}
	v, err := p.simulatedLatency(t.Context(), src, mix)
	if err != nil || b.puts != 1 || !(v.read > 50) || !(v.write > 50) {
		t.Errorf("%+v, %v, %d results for the cache", v, err, b.puts)
	}
	if again, err := p.simulatedLatency(t.Context(), src, mix); err != nil || again != v || b.puts != 1 {
		t.Errorf("%+v, %v, %d results for the cache", again, err, b.puts)
	}
	file := filepath.Join(t.TempDir(), "lost.csv")
	if err := os.WriteFile(file, []byte("128166372003061629,hm,0,Write,0,4096,100\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	lost, err := scenario.Parse(src, []shape.Change{{Path: "workload", Value: "[{trace: " + file + "}]", Flag: "x"}})
	if err != nil || os.Remove(file) != nil {
		t.Fatal(err)
	}
	if r, err := p.kept(t.Context(), trial.Trial{Scenario: lost}); err == nil || r != nil ||
		!strings.Contains(err.Error(), "lost.csv") || b.puts != 1 {
		t.Errorf("%+v, %v, %d results for the cache", r, err, b.puts)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	broken := shape.Source{File: "broken.yaml", Text: []byte("no: drive\n")}
	for _, c := range []struct {
		ctx  context.Context
		src  shape.Source
		want string
	}{{ctx, src, "cannot be simulated on tlc-enterprise.yaml: "},
		{t.Context(), broken, "cannot be simulated on broken.yaml: "}} {
		mix := mixed{rate: 1e5, writes: 0.25, kib: 2048}
		if _, err := p.simulatedLatency(c.ctx, c.src, mix); err == nil ||
			!strings.HasPrefix(err.Error(), "100000 I/Os a second of 2048 KiB, 25 % of them writes, cannot be") ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v; one with %q is right", err, c.want)
		}
	}
	// The first error of a drive's simulations is the plan's.
	f, err := p.fleet(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tail := f.drives[0].Tail.(*simulatedTail)
	if err := f.failed(p); err != nil {
		t.Errorf("error %v of a drive that can be simulated", err)
	}
	tail.src = broken
	for _, size := range []float64{16, 64} {
		if read, write := tail.P99(tco.Traffic{Load: 0.5, Writes: 0.5, Size: size}); !math.IsInf(read, 1) ||
			!math.IsInf(write, 1) {
			t.Errorf("%v and %v us without a simulation", read, write)
		}
	}
	if err := f.failed(p); err == nil || !strings.HasPrefix(err.Error(), "plan.yaml:1:") ||
		!strings.Contains(err.Error(), "drives[0].latency: ") || !strings.Contains(err.Error(), " of 16 KiB") {
		t.Errorf("error %v", err)
	}
}

// TestLargeRequests verifies that large requests have a p99 where a drive serves few of them, and that one which is
// overloaded by them is found to be, whatever they are among.
func TestLargeRequests(t *testing.T) {
	for _, c := range []struct{ writes, kib, want float64 }{{0, 4, 20000}, {0.125, 64, 20000}, {0, 128, 10000},
		{0.5, 512, 2500}, {0.125, 512, 4000}, {0.875, 512, 4000}, {0, 1 << 14, 500}, {1, 1 << 14, 500},
		{0.5, 1 << 14, 1000}} {
		if got := (&mixed{rate: 1, writes: c.writes, kib: c.kib}).requests(); got != c.want {
			t.Errorf("%v requests of %v KiB with %v of writes; %v is right", got, c.kib, c.writes, c.want)
		}
	}
	p := loaded(t, oneOfTLC)
	src, err := scenario.Find("tlc-enterprise")
	if err != nil {
		t.Fatal(err)
	}
	v, err := p.simulatedLatency(t.Context(), src, mixed{rate: 100, writes: 0.125, kib: 512})
	if err != nil || !(v.read > 100 && v.read < 1000) || !(v.write > 50 && v.write < 1000) {
		t.Errorf("%+v us, %v", v, err)
	}
	v, err = p.simulatedLatency(t.Context(), src, mixed{rate: 1e6, writes: 0.125, kib: 512})
	if err != nil || !math.IsInf(v.read, 1) || !math.IsInf(v.write, 1) {
		t.Errorf("%+v us of a drive that is overloaded, %v", v, err)
	}
}

// TestFewDraws verifies the result of uncertain inputs at its edges: none drawn, none that the plan serves, and none
// planned again.
func TestFewDraws(t *testing.T) {
	const text = "horizon: 4y\nuncertainty: {draws: 3, UNCERTAIN}\ncosts: {electricity: 0}\ndrives: [{model: " +
		"Intel DC P3700 2TB, count: 1, price: $1000, afr: 0%}]\nworkloads: {list: [{name: a, write_gb_per_day: 1, " +
		"working_set_gb: 1000, peak_iops: 1}]}\n"
	for uncertain, want := range map[string]Risk{
		"prices: [200%, 200%]": {Draws: 3, Holds: 1, Within: 0.2807, Low: 2000, Median: 2000, High: 2000, Again: 3},
		"space: [300%, 300%]":  {Draws: 3, Within: 0.2807},
		"space: [200%, 200%]":  {Draws: 3, Holds: 1, Within: 0.2807, Low: 1000, Median: 1000, High: 1000, Again: 3},
	} {
		p := loaded(t, strings.ReplaceAll(text, "UNCERTAIN", uncertain))
		o, err := p.Solve(t.Context(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := *o.Risk
		for _, x := range [][2]float64{{got.Holds, want.Holds}, {got.Within, want.Within}, {got.Low, want.Low},
			{got.Median, want.Median}, {got.High, want.High}, {got.Regret, 0}} {
			if !(math.Abs(x[0]-x[1]) <= 1e-4*max(1, x[1])) {
				t.Errorf("%s: %+v; %+v is right", uncertain, got, want)
				break
			}
		}
		if got.Draws != want.Draws || got.Again != want.Again {
			t.Errorf("%s: %+v; %+v is right", uncertain, got, want)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if r := o.risk(ctx); r != nil {
			t.Errorf("%+v of no draw", r)
		}
	}
	// A plan that is not the best possible is not compared with others: there is no regret, and no division by none.
	p := loaded(t, "algorithm: mintco-v3\nobjective: calendar\n"+strings.ReplaceAll(text, "UNCERTAIN", "waf: [100%, 200%]"))
	o, err := p.Solve(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	document, err := json.Marshal(o.Risk)
	if err != nil || o.Risk.Again != 0 || o.Risk.Regret != 0 || o.Risk.Holds != 1 {
		t.Errorf("%s, %v", document, err)
	}
}

// TestDrawnEstimates verifies that every estimated figure is drawn within the range of other drives, that others are
// left, and that without estimates nothing is drawn.
func TestDrawnEstimates(t *testing.T) {
	p := loaded(t, "drives: [{model: Intel DC P3700 1.6TB, count: 1}, {model: Intel DC P3520 2TB, count: 1, price: $9, estimate: "+
		"[read_iops, write_iops, active_w, idle_w]}]\nworkloads: {list: [{name: a, write_gb_per_day: 1, "+
		"working_set_gb: 10}]}\n")
	_, estimates, err := p.known(&p.Drives[1], 1)
	if err != nil || len(estimates) != 4 {
		t.Fatal(estimates, err)
	}
	r := rng.NewStream(1, "draws")
	sum := make([]float64, len(estimates))
	for range 50 {
		groups := p.drawEstimates(&r)
		g := &groups[1]
		if groups[0].Price != nil || *g.Price != 9 || g.TBW != nil || g.Estimate != nil {
			t.Fatalf("%+v", groups)
		}
		for i, e := range estimates {
			v := *map[catalogue.Figure]*float64{catalogue.ReadFigure: g.ReadIOPS,
				catalogue.WriteFigure: g.WriteIOPS, catalogue.ActiveFigure: g.ActiveW,
				catalogue.IdleFigure: g.IdleW}[e.Figure]
			if v < e.Low*(1-1e-9) || v > e.High*(1+1e-9) {
				t.Errorf("%v is drawn as %v, and others have %v to %v", e.Figure, v, e.Low, e.High)
			}
			sum[i] += math.Log(v/e.Low) / math.Log(e.High/e.Low) / 50
		}
	}
	if slices.Min(sum) < 0.3 || slices.Max(sum) > 0.7 {
		t.Errorf("draws lie at %v of their ranges on average", sum)
	}
	if p.Drives[1].ReadIOPS != nil || p.Drives[1].Estimate == nil {
		t.Error("drawing changes the plan")
	}
}
