package study

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"farflash/experiment"
	"farflash/experiment/trial"
	"farflash/numeric/units"
	"farflash/result"
	"farflash/scenario/shape"
)

const small = `
workload:
  - synthetic: {reads: {size: 4KiB, interarrival: {mean: 50us, kind: exponential}}, requests: 200}
ssd: mqsim-default
`

// self identifies the test program.
var self = Program{"v", "self"}

func source() shape.Source { return shape.Source{File: "small.yaml", Text: []byte(small)} }

func axis(t testing.TB, text string) Axis {
	t.Helper()
	a, err := ParseAxis(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func sweepOf(t testing.TB, reps int, axes ...string) *Plan {
	t.Helper()
	var list []Axis
	for _, a := range axes {
		list = append(list, axis(t, a))
	}
	p, err := NewSweep(source(), nil, list, 1, reps)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// fake replaces a simulation: the mean latency is the read latency of the point plus a small random part by seed.
type fake struct {
	runs  atomic.Int64
	fails func(trial.Trial) bool
}

func (f *fake) execute(_ context.Context, t trial.Trial, version string, _ func(experiment.Progress)) (*result.Result,
	error) {
	f.runs.Add(1)
	if f.fails != nil && f.fails(t) {
		return nil, errors.New("out of paper")
	}
	r := result.New(trial.Vocabulary(), t.Digest, t.Seed, version)
	r.Set("read.latency.mean", t.Scenario.SSD.Timing.Read[0].Microseconds()+float64(t.Seed%7))
	r.Set("read.count", 200)
	return r, nil
}

func TestGrid(t *testing.T) {
	p := sweepOf(t, 2, "ssd.timing.read_latency=40us,80us", "ssd.over_provisioning=7%..21%:+7%")
	var labels []string
	for _, x := range p.Points {
		labels = append(labels, x.Label)
	}
	want := "read_latency=40us, over_provisioning=7%|read_latency=40us, over_provisioning=14%|read_latency=40us, " +
		"over_provisioning=21%|" +
		"read_latency=80us, over_provisioning=7%|read_latency=80us, over_provisioning=14%|read_latency=80us, " +
		"over_provisioning=21%"
	if got := strings.Join(labels, "|"); got != want {
		t.Errorf("points are\n%s, not\n%s", got, want)
	}
	trials := p.Trials()
	if len(trials) != 12 || trials[1].Seed != 2 || trials[1].Digest != p.Points[0].Digest ||
		trials[11].Digest != p.Points[5].Digest {
		t.Errorf("%d trials: %v", len(trials), trials)
	}
	var parts []string
	for i := range 5 {
		part := *p
		part.Shard = Shard{i + 1, 5}
		for k, x := range part.Trials() {
			if at := slices.IndexFunc(p.Points, func(y Point) bool { return y.Label == part.Label(k) }); at < 0 ||
				p.Points[at].Digest != x.Digest {
				t.Errorf("trial %d of shard %d is called %s", k, i, part.Label(k))
			}
			parts = append(parts, x.Name())
		}
	}
	var all []string
	for _, x := range trials {
		all = append(all, x.Name())
	}
	slices.Sort(parts)
	slices.Sort(all)
	if !slices.Equal(parts, all) {
		t.Errorf("the shards have %d trials of %d", len(parts), len(all))
	}
}

// TestShortPaths verifies that points have unique labels if two axes end alike.
func TestShortPaths(t *testing.T) {
	for _, c := range []struct{ paths, want []string }{
		{[]string{"ssd.over_provisioning", "workload[0].closed"}, []string{"over_provisioning", "closed"}},
		{[]string{"a.reads.size", "ssd.collection.victim", "a.writes.size"},
			[]string{"a.reads.size", "ssd.collection.victim", "a.writes.size"}},
		{[]string{"initiators"}, []string{"initiators"}},
	} {
		var axes []Axis
		for _, p := range c.paths {
			axes = append(axes, Axis{Path: p})
		}
		if got := shortPaths(axes); !slices.Equal(got, c.want) {
			t.Errorf("%v are shortened to %v", c.paths, got)
		}
	}
}

func TestPlanErrors(t *testing.T) {
	for _, c := range []struct {
		axes []string
		reps int
		want string
	}{
		{nil, 1, "needs an axis"},
		{[]string{"ssd.over_provisioning=7%", "ssd.over_provisioning=9%"}, 1, "varied twice"},
		{[]string{"ssd.over_provisioning=7%"}, 0, "0 replicates"},
		{[]string{"ssd.over_provisioning=7%,lots"}, 1, "--vary:1:1:1: ssd.over_provisioning"},
		{[]string{"ssd.over_provisioning=7%,8%", "ssd.victim=greedy"}, 1, "--vary:2:1:1"},
		{[]string{"ssd.over_provisioning=7%,8%", "ssd.victim=greedy"}, 1, "(with over_provisioning=7%, victim=greedy)"},
		{[]string{"ssd.over_provisioning=1..9000:+1", "ssd.timing.read_latency=1us..1000us:+1us"}, 1,
			"more than 1000000 trials"},
	} {
		var axes []Axis
		for _, a := range c.axes {
			axes = append(axes, axis(t, a))
		}
		if _, err := NewSweep(source(), nil, axes, 1, c.reps); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v; want %s", c.axes, err, c.want)
		}
	}
	if _, err := NewComparison([]Arm{{Source: source()}}, 1, 3); err == nil {
		t.Error("one arm is compared")
	}
	if _, err := NewComparison([]Arm{{Source: source()}, {Source: source()}}, 1, 1); err == nil {
		t.Error("one replicate is compared")
	}
	p, err := NewComparison([]Arm{{Source: source()}, {Source: source()}, {Label: "c", Source: source()}}, 1, 2)
	if err == nil && (p.Name != "small" || p.Seed != 1 || p.Reps != 2 || p.Kind != Comparison) {
		t.Errorf("%+v", p)
	}
	if err != nil || p.Points[0].Label != "small" || p.Points[1].Label != "small (2)" || p.Points[2].Label != "c" {
		t.Errorf("%+v, %v", p, err)
	}
	// Labels of arms are unique, whatever their names.
	called := []Arm{{Label: "a", Source: source()}, {Label: "a (2)", Source: source()},
		{Label: "a", Source: source()}, {Label: "a", Source: source()}}
	if p, err = NewComparison(called, 1, 2); err != nil || p.Points[1].Label != "a (2)" ||
		p.Points[2].Label != "a (3)" || p.Points[3].Label != "a (4)" {
		t.Errorf("%+v, %v", p, err)
	}
	for _, s := range []string{"", "2", "0/3", "4/3", "a/b", "1/0", "-1/2"} {
		if _, err := ParseShard(s); err == nil {
			t.Errorf("%q is a shard", s)
		}
	}
	if s, err := ParseShard("2/5"); err != nil || s.String() != "2/5" {
		t.Errorf("%v, %v", s, err)
	}
}

// TestRunOrder verifies that outcomes do not depend on the number of workers, that a duplicate trial runs once, and
// that failures do not affect the others.
func TestRunOrder(t *testing.T) {
	p := sweepOf(t, 3, "ssd.timing.read_latency=40us,80us,120us")
	twice := append(p.Trials(), p.Trials()...)
	var first []Outcome
	for _, workers := range []int{1, 8} {
		f := &fake{fails: func(t trial.Trial) bool { return t.Digest == p.Points[1].Digest && t.Seed == 2 }}
		var last Progress
		r := Runner{Workers: workers, Version: "v", Execute: f.execute, Progress: func(x Progress) { last = x }}
		out := r.Run(t.Context(), twice)
		if n := f.runs.Load(); n != 9 {
			t.Errorf("%d trials were run", n)
		}
		if last.Done != 9 || last.Of != 9 || last.Failed != 1 || last.Running != 0 {
			t.Errorf("progress ends with %+v", last)
		}
		for i, o := range out {
			want := Done
			if i%9 == 4 {
				want = Failed
			}
			if o.State != want || (o.Result != nil) != (want == Done) || (o.Err != nil) != (want == Failed) ||
				o.Name() != twice[i].Name() {
				t.Fatalf("outcome %d is %+v", i, o)
			}
		}
		if first == nil {
			first = out
		}
		for i := range out {
			if o := first[i]; o.Result != nil && o.Result.Metrics[0].Value != out[i].Result.Metrics[0].Value {
				t.Errorf("outcome %d depends on the workers", i)
			}
		}
	}
}

// TestAtMostOneAProcessor asks for far more trials at once than there are processors.
func TestAtMostOneAProcessor(t *testing.T) {
	p := sweepOf(t, 100, "ssd.timing.read_latency=40us")
	var running, most atomic.Int64
	f := &fake{}
	r := Runner{Workers: 1000, Version: "v",
		Execute: func(ctx context.Context, x trial.Trial, v string,
			progress func(experiment.Progress)) (*result.Result, error) {
			n := running.Add(1)
			defer running.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			runtime.Gosched()
			return f.execute(ctx, x, v, progress)
		}}
	if out := r.Run(t.Context(), p.Trials()); count(out, Done) != 100 || most.Load() > int64(runtime.GOMAXPROCS(0)) {
		t.Errorf("%d done, %d at once", count(out, Done), most.Load())
	}
}

// TestProgressWithin verifies that a study tracks the progress of its running trials, and drops it when they complete.
func TestProgressWithin(t *testing.T) {
	p := sweepOf(t, 2, "ssd.timing.read_latency=40us")
	var seen []float64
	f := &fake{}
	r := Runner{Workers: 1, Version: "v", Progress: func(x Progress) { seen = append(seen, float64(x.Done)+x.Begun) },
		Execute: func(ctx context.Context, x trial.Trial, v string,
			progress func(experiment.Progress)) (*result.Result, error) {
			progress(experiment.Progress{Requests: 25, Expected: 100})
			progress(experiment.Progress{Requests: 25, Expected: 100, Simulated: units.Second, Until: 2 * units.Second})
			return f.execute(ctx, x, v, progress)
		}}
	r.Run(t.Context(), p.Trials())
	if want := []float64{0, 0.25, 0.5, 1, 1, 1.25, 1.5, 2}; !slices.Equal(seen, want) {
		t.Errorf("it is %v far, want %v", seen, want)
	}
}

// TestPanic verifies that a panic in a model is one failed trial.
func TestPanic(t *testing.T) {
	_, err := trial.Simulate(t.Context(), trial.Trial{Scenario: nil, Digest: "d", Seed: 1},
		experiment.Options{Version: "v"})
	if err == nil || !strings.Contains(err.Error(), "panic: ") ||
		!strings.Contains(err.Error(), "farflash/experiment/drive.Kind.Is") {
		t.Errorf("%v", err)
	}
}

// TestCancel cancels the context midway; the rest stays pending and runs the next time.
func TestCancel(t *testing.T) {
	p := sweepOf(t, 4, "ssd.timing.read_latency=40us,80us")
	dir := filepath.Join(t.TempDir(), "sweep")
	folder, err := OpenFolder(dir, p, self)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	f := &fake{}
	r := Runner{Workers: 2, Version: "v", Folder: folder,
		Execute: func(ctx context.Context, x trial.Trial, v string,
			progress func(experiment.Progress)) (*result.Result, error) {
			if f.runs.Load() >= 3 {
				cancel()
				<-ctx.Done()
				return nil, trial.ErrInterrupted
			}
			return f.execute(ctx, x, v, progress)
		}}
	out := r.Run(ctx, p.Trials())
	done := count(out, Done)
	if done < 3 || done > 4 || count(out, Failed) != 0 || count(out, Pending) != 8-done {
		t.Fatalf("%d done, %d pending", done, count(out, Pending))
	}
	if err := folder.Record(out); err != nil {
		t.Fatal(err)
	}
	again, err := OpenFolder(dir, p, self)
	if err != nil {
		t.Fatal(err)
	}
	g := &fake{}
	out = (&Runner{Version: "v", Folder: again, Execute: g.execute}).Run(t.Context(), p.Trials())
	if count(out, Done) != 8 || g.runs.Load() != int64(8-done) {
		t.Errorf("%d done after %d runs", count(out, Done), g.runs.Load())
	}
}

// TestCancelSimulation stops a real simulation that would run forever.
func TestCancelSimulation(t *testing.T) {
	text := "workload: [{synthetic: {reads: {size: 4KiB}, requests: 2000000000}, closed: 8}]\nssd: mqsim-default\n"
	p, err := NewSweep(shape.Source{File: "long.yaml", Text: []byte(text)}, nil,
		[]Axis{axis(t, "ssd.over_provisioning=7%,14%")}, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var once sync.Once
	r := Runner{Workers: 1, Version: "v", Progress: func(x Progress) {
		if x.Running > 0 {
			once.Do(cancel)
		}
	}}
	if out := r.Run(ctx, p.Trials()); count(out, Pending) != 2 {
		t.Errorf("%+v", out)
	}
}

func count(out []Outcome, s State) int {
	n := 0
	for _, o := range out {
		if o.State == s {
			n++
		}
	}
	return n
}

func TestCache(t *testing.T) {
	dir := t.TempDir()
	p := sweepOf(t, 2, "ssd.timing.read_latency=40us,80us")
	run := func(program string) (int64, []Outcome, []string) {
		c, err := OpenCache(dir, program)
		if err != nil {
			t.Fatal(err)
		}
		f := &fake{}
		var warnings []string
		r := Runner{Version: "v", Cache: c, Execute: f.execute,
			Warn: func(err error) { warnings = append(warnings, err.Error()) }}
		out := r.Run(t.Context(), p.Trials())
		return f.runs.Load(), out, warnings
	}
	if n, out, w := run("one"); n != 4 || count(out, Done) != 4 || len(w) > 0 {
		t.Fatalf("%d runs, %v", n, w)
	}
	if n, out, w := run("one"); n != 0 || count(out, Done) != 4 || !out[3].Reused || len(w) > 0 {
		t.Errorf("%d runs, %v", n, w)
	}
	if n, _, _ := run("two/../.."); n != 4 {
		t.Errorf("another program ran %d", n)
	}
	entries, err := filepath.Glob(filepath.Join(dir, "one", "*", "*"))
	if err != nil || len(entries) != 4 {
		t.Fatalf("%v, %v", entries, err)
	}
	other, err := os.ReadFile(entries[1])
	if err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(entries[0])
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(good), `"value": 200`, `"value": 201`, 1) // still a result of this trial
	if changed == string(good) {
		t.Fatalf("nothing to change in %s", good)
	}
	for i, text := range []string{"", "{", string(other), `{"schema": "farflash/result/9"}`,
		string(good[:len(good)-2]), changed} {
		if err := os.WriteFile(entries[0], []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		n, out, w := run("one")
		if n != 1 || count(out, Done) != 4 || len(w) != 1 || !strings.Contains(w[0], "is damaged") {
			t.Errorf("damage %d: %d runs, %v", i, n, w)
		}
		if n, _, w := run("one"); n != 0 || len(w) > 0 {
			t.Errorf("damage %d is not repaired: %d runs, %v", i, n, w)
		}
	}
	// Characters other than letters, digits and a few safe signs are replaced in directory names.
	for name, want := range map[string]string{"v1.2-rc+a_B9": "v1.2-rc+a_B9", "a/../b c:\u00e9": "a_.._b_c__",
		"-": "-"} {
		if c, err := OpenCache(dir, name); err != nil || c.Path("x/y") != filepath.Join(dir, want, "x", "y") {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	if _, err := OpenCache(dir, ".."); err == nil {
		t.Error("a program without a name has a cache")
	}
}

func TestFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sweep")
	p := sweepOf(t, 2, "ssd.timing.read_latency=40us,80us")
	run := func(p *Plan) (int64, []string, error) {
		folder, err := OpenFolder(dir, p, self)
		if err != nil {
			return 0, nil, err
		}
		f := &fake{}
		var warnings []string
		out := (&Runner{Version: "v", Folder: folder, Execute: f.execute,
			Warn: func(err error) { warnings = append(warnings, err.Error()) }}).Run(t.Context(), p.Trials())
		return f.runs.Load(), warnings, folder.Record(out)
	}
	if n, _, err := run(p); err != nil || n != 4 {
		t.Fatalf("%d, %v", n, err)
	}
	if n, _, err := run(p); err != nil || n != 0 {
		t.Errorf("taken up: %d, %v", n, err)
	}
	place := filepath.Join(dir, trials, p.Trials()[2].Name())
	if r, err := result.Load(place); err != nil || r.Scenario == "" || r.Result.Seed != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if err := os.WriteFile(filepath.Join(place, result.ResultFile), []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	if n, w, err := run(p); err != nil || n != 1 || len(w) != 1 {
		t.Errorf("after damage: %d, %v, %v", n, w, err)
	}
	shard := *p
	shard.Shard = Shard{1, 2}
	for want, other := range map[string]*Plan{
		"its --reps is 2, not 3": sweepOf(t, 3, "ssd.timing.read_latency=40us,80us"),
		"its values of ssd.timing.read_latency are 40us, 80us, not 40us, 90us": sweepOf(t, 2,
			"ssd.timing.read_latency=40us,90us"),
		"it varies ssd.timing.read_latency, not ssd.over_provisioning": sweepOf(t, 2,
			"ssd.over_provisioning=7%,8%"),
		"it is no shard, not shard 1/2": &shard,
	} {
		if _, _, err := run(other); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "mine.txt"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFolder(dir, p, Program{"v", "newer"}); !errors.Is(err, ErrOther) ||
		!strings.Contains(err.Error(), "another build of the program, self, not newer") {
		t.Errorf("a folder of another program: %v", err)
	}
	if _, err := OpenFolder(full, p, self); !errors.Is(err, ErrOther) {
		t.Errorf("a folder with other files: %v", err)
	}
	if err := os.WriteFile(filepath.Join(full, sweepFile), []byte(`{"schema": "farflash/sweep/9"}`), 0o666); err !=
		nil {
		t.Fatal(err)
	}
	if _, err := OpenFolder(full, p, self); err == nil || !strings.Contains(err.Error(), "farflash/sweep/9") {
		t.Errorf("a newer manifest: %v", err)
	}
}

func TestRespond(t *testing.T) {
	p := sweepOf(t, 3, "ssd.timing.read_latency=40us,80us")
	out := (&Runner{Execute: (&fake{fails: func(x trial.Trial) bool {
		return x.Seed == 3 &&
			x.Digest == p.Points[1].Digest
	}}).execute}).Run(t.Context(), p.Trials())
	c, err := Respond(p, out, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	e, ok := c.Points[0].Metric("read.latency.mean")
	if !ok || e.N != 3 || math.Abs(e.Mean-42) > 1e-9 || math.Abs(e.Half-4.30265/math.Sqrt(3)) > 1e-4 {
		t.Errorf("%+v", e)
	}
	if x := c.Points[1]; x.Done != 2 || len(x.Failed) != 1 || x.Failed[0].Err != "out of paper" {
		t.Errorf("%+v", x)
	}
	if got := c.Main(nil); !slices.Equal(got, []string{"read.latency.mean"}) {
		t.Errorf("main metrics are %v", got)
	}
	if got := c.Main([]string{"read.c*", "*.mean"}); !slices.Equal(got, []string{"read.count", "read.latency.mean"}) {
		t.Errorf("chosen metrics are %v", got)
	}
	if d := c.Document(); *d.Points[0].Metrics["read.latency.mean"].Half != e.Half ||
		d.Points[1].Values["ssd.timing.read_latency"] != "80us" {
		t.Errorf("%+v", d)
	}
}

// armsOf returns a plan and outcomes of arms whose metrics are functions of the replicate.
func armsOf(reps int, arms ...func(r *result.Result, rep int)) (*Plan, []Outcome) {
	p := &Plan{Kind: Comparison, Name: "test", Seed: 1, Reps: reps}
	for i := range arms {
		p.Points = append(p.Points, Point{Label: fmt.Sprint(i), Digest: fmt.Sprint("d", i)})
	}
	var out []Outcome
	for _, s := range p.slots() {
		r := result.New(trial.Vocabulary(), p.Points[s.point].Digest, uint64(s.rep), "v")
		arms[s.point](r, s.rep)
		out = append(out, Outcome{Trial: trial.Trial{Digest: r.Digest, Seed: uint64(s.rep + 1)}, State: Done,
			Result: r})
	}
	return p, out
}

// wave is a simple substitute for chance: its mean over ten replicates is 0.
func wave(rep int) float64 { return []float64{1, -2, 3, -1, 2, -3, 1, 0, -2, 1}[rep%10] }

func TestCompare(t *testing.T) {
	a := func(r *result.Result, rep int) {
		r.Set("read.latency.mean", 100+10*wave(rep))
		r.Set("read.iops", 1000)
		r.Set("write.latency.mean", 50+wave(rep))
		r.Set("ssd.waf", 2)
		r.Set("ssd.gc.count", 100+float64(rep))
		r.Set("write.iops", 1000+wave(rep))
		r.Set("sim.events", float64(rep))
		r.Set("all.latency.mean", 7)
	}
	b := func(r *result.Result, rep int) {
		r.Set("read.latency.mean", 90+10*wave(rep)+0.1*wave(rep+3)) // the spread of the replicates cancels
		r.Set("read.iops", 1100+float64(rep))
		r.Set("write.latency.mean", 52-5*wave(rep))
		r.Set("ssd.waf", 2)
		r.Set("ssd.gc.count", 200+float64(rep))
		r.Set("write.iops", 1000+wave(rep+1))
		r.Set("sim.events", float64(2*rep))
		r.Set("trim.latency.mean", 3)
	}
	p, out := armsOf(10, a, b)
	x, err := Compare(p, out, DefaultTest())
	if err != nil {
		t.Fatal(err)
	}
	pair := x.Pairs[0]
	if pair.Family != 2 || pair.Explored != 3 || !slices.Equal(pair.OnlyA, []string{"all.latency.mean"}) ||
		!slices.Equal(pair.OnlyB, []string{"trim.latency.mean"}) {
		t.Errorf("family of %d, only A %v, only B %v", pair.Family, pair.OnlyA, pair.OnlyB)
	}
	want := map[string]Verdict{"read.latency.mean": Better, "read.iops": Better, "write.latency.mean": TooFew,
		"ssd.waf": Identical, "ssd.gc.count": Higher, "write.iops": NoEvidence}
	for i := range pair.Effects {
		e := &pair.Effects[i]
		if e.Verdict != want[e.Name] {
			t.Errorf("%s: %+v", e.Name, e)
		}
		delete(want, e.Name)
		switch e.Name {
		case "write.latency.mean":
			if e.More < 1 || e.Within {
				t.Errorf("%s is settled: %+v", e.Name, e)
			}
		case "write.iops":
			if !e.Within || e.More != 0 {
				t.Errorf("%s is not settled: %+v", e.Name, e)
			}
		case "ssd.gc.count":
			if e.P != math.Ldexp(1, -9) || e.Primary || math.Abs(e.B-e.A-100) > 0.1 { // all differ by 100
				t.Errorf("%s: %+v", e.Name, e)
			}
		case "read.latency.mean":
			if mean, _, _, ok := e.Relative(); !ok || math.Abs(mean+0.104) > 1e-3 || e.Wilcoxon != math.Ldexp(1, -9) {
				t.Errorf("%s: %+v", e.Name, e)
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("not compared: %v", want)
	}
	// A smaller family needs less correction.
	test := DefaultTest()
	test.Metrics = []string{"read.*"}
	if x, err = Compare(p, out, test); err != nil || x.Pairs[0].Family != 2 {
		t.Errorf("%+v, %v", x, err)
	}
	test.Metrics = []string{"flow.*"}
	if _, err = Compare(p, out, test); !errors.Is(err, errNoMetric) {
		t.Errorf("%v", err)
	}
	// A seed that one arm lacks is ignored for both.
	out[3].State, out[3].Result, out[3].Err = Failed, nil, errors.New("out of paper")
	if x, err = Compare(p, out, DefaultTest()); err != nil || len(x.Seeds) != 9 || slices.Contains(x.Seeds, 4) ||
		x.Arms[0].Done != 9 || x.Arms[1].Done != 10 || len(x.Arms[0].Failed) != 1 {
		t.Errorf("%+v, %v", x, err)
	}
	if x.Document().Interrupted {
		t.Error("trials that failed are taken for ones that have not been run")
	}
	out[3].State, out[3].Err = Pending, nil
	if x, err = Compare(p, out, DefaultTest()); err != nil || x.Arms[0].Pending != 1 || !x.Document().Interrupted {
		t.Errorf("a trial that has not been run: %+v, %v", x, err)
	}
	for i := range out[:9] {
		out[i].State, out[i].Result = Pending, nil
	}
	if _, err = Compare(p, out, DefaultTest()); err == nil || !strings.Contains(err.Error(), "1 of 10 seeds") {
		t.Errorf("%v", err)
	}
}

// TestDoubtful has a mean determined by a few replicates, with and without enough replicates for a rank test.
func TestDoubtful(t *testing.T) {
	test := DefaultTest()
	for _, c := range []struct {
		deltas   []float64
		doubtful bool
	}{
		{[]float64{5, 6, 5, 6, 5}, false}, // ranks of five never attain 0.05
		{[]float64{5, 6, 5, 6, 5, 6, 5}, false},
	} {
		p, out := armsOf(len(c.deltas), func(r *result.Result, rep int) { r.Set("ssd.waf", 10) },
			func(r *result.Result, rep int) { r.Set("ssd.waf", 10+c.deltas[rep]) })
		x, err := Compare(p, out, test)
		if err != nil || x.Pairs[0].Effects[0].Doubtful != c.doubtful || x.Pairs[0].Effects[0].Verdict != Worse {
			t.Errorf("%v: %+v, %v", c.deltas, x, err)
		}
	}
	e := Effect{Name: "ssd.waf", Adjusted: 0.01, Wilcoxon: 0.08}
	e.Effect.N = 8
	if test.call(&e); !e.Doubtful {
		t.Errorf("%+v", e)
	}
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"read.latency.p99", "read.latency.p99", true}, {"read.latency.*", "read.latency.p99", true},
		{"*p99*", "read.latency.p99_9", true},
		{"ssd[0].waf", "ssd[0].waf", true}, {"ssd[*].waf", "ssd[3].waf", true},
		{"read.latency.p9", "read.latency.p99", false},
	} {
		if got := Matches([]string{c.pattern}, c.name); got != c.want {
			t.Errorf("%s, %s: %v", c.pattern, c.name, got)
		}
	}
}
