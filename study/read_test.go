package study

import (
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"farflash/experiment/trial"
	"farflash/result"
)

// TestCurvesReadBack verifies that the results of a sweep are read back unchanged from its directory, including
// failures, gaps and shards, and that inconsistent documents are rejected.
func TestCurvesReadBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sweep")
	for _, shard := range []Shard{{}, {2, 3}} {
		p := sweepOf(t, 3, "ssd.timing.read_latency=40us..160us:x2", "ssd.over_provisioning=7%,9%")
		p.Shard = shard
		folder, err := OpenFolder(filepath.Join(dir, "x"+strings.ReplaceAll(shard.String(), "/", "-")), p, self)
		if err != nil {
			t.Fatal(err)
		}
		fails := func(x trial.Trial) bool { return x.Seed == 3 && x.Digest == p.Points[1].Digest }
		c, err := Respond(p,
			(&Runner{Version: "v", Execute: (&fake{fails: fails}).execute}).Run(t.Context(), p.Trials()), 0.9)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ReadCurves(folder.Path()); err == nil || Found(err) {
			t.Errorf("before there are any: %v", err)
		}
		c.Points[2].Transient = "it falls"
		if err := folder.WriteJSON(CurvesFile, c.Document()); err != nil {
			t.Fatal(err)
		}
		back, err := ReadCurves(folder.Path())
		if err != nil {
			t.Fatal(err)
		}
		if back.Name != c.Name || back.Level != 0.9 || back.Seed != c.Seed || back.Reps != 3 ||
			!reflect.DeepEqual(back.Axes, c.Axes) || len(back.Points) != 6 {
			t.Errorf("%+v is read as %+v", c, back)
		}
		for i := range c.Points {
			x, y := &c.Points[i], &back.Points[i]
			if x.Digest != y.Digest || x.Done != y.Done || x.Pending != y.Pending || x.Transient != y.Transient ||
				!slices.Equal(x.Values, y.Values) || len(x.Failed) != len(y.Failed) ||
				len(x.Metrics) != len(y.Metrics) {
				t.Errorf("point %d: %+v is read as %+v", i, x, y)
			}
			for _, e := range x.Metrics {
				if got, ok := y.Metric(e.Name); !ok || got.Mean != e.Mean || got.Half != e.Half || got.N != e.N ||
					got.Unit != e.Unit || got.Help != e.Help || got.Level != e.Level {
					t.Errorf("point %d: %+v is read as %+v", i, e, got)
				}
			}
		}
	}
	p := sweepOf(t, 1, "ssd.timing.read_latency=40us,80us")
	c, err := Respond(p, (&Runner{Execute: (&fake{}).execute}).Run(t.Context(), p.Trials()), 0.95)
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*CurvesDocument){
		"no axes or no points": func(d *CurvesDocument) { d.Axes = nil },
		"no points":            func(d *CurvesDocument) { d.Points = nil },
		"2 points, and its axes span 3": func(d *CurvesDocument) {
			d.Axes[0].Values = []string{"40us", "80us",
				"90us"}
		},
		"its axes do not span a grid":                         func(d *CurvesDocument) { d.Axes[0].Values = nil },
		"point 1 has ssd.timing.read_latency = \"80us\", not": func(d *CurvesDocument) { d.Axes[0].Values = []string{"40us", "81us"} },
	} {
		d := c.Document()
		d.Axes = []Axis{{Path: c.Axes[0].Path, Values: slices.Clone(c.Axes[0].Values)}}
		change(&d)
		if _, err := d.Curves(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v; want %s", err, what)
		}
	}
	d := c.Document()
	for range 3 { // each with 10,000 values
		a := Axis{Path: strings.Repeat("x", len(d.Axes)), Values: make([]string, mostValues)}
		d.Axes = append(d.Axes, a)
	}
	if _, err := d.Curves(); err == nil || !strings.Contains(err.Error(), "do not span a grid of 1 to 1000000 points") {
		t.Errorf("a grid of 10^12: %v", err)
	}
}

// TestEffectsReadBack verifies that the results of a comparison are read back unchanged from its directory.
func TestEffectsReadBack(t *testing.T) {
	p, out := armsOf(8,
		func(r *result.Result, rep int) {
			r.Set("read.latency.mean", 100+wave(rep))
			r.Set("ssd.waf", 2)
			r.Set("all.latency.mean", 1)
		},
		func(r *result.Result, rep int) { r.Set("read.latency.mean", 90+wave(rep+1)); r.Set("ssd.waf", 2) },
		func(r *result.Result, rep int) {
			r.Set("read.latency.mean", 100+wave(rep+2))
			r.Set("ssd.waf", 2.5)
			r.Set("write.iops", 5)
		})
	x, err := Compare(p, out, DefaultTest())
	if err != nil {
		t.Fatal(err)
	}
	x.Pairs[0].Remarks = []string{"it limited nothing"}
	dir := t.TempDir()
	if _, err := ReadEffects(dir); err == nil || Found(err) {
		t.Errorf("before there are any: %v", err)
	}
	f := &Folder{path: dir}
	if err := f.WriteJSON(EffectsFile, x.Document()); err != nil {
		t.Fatal(err)
	}
	back, err := ReadEffects(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(back.Document(), x.Document()) {
		t.Errorf("%+v\nis read as\n%+v", x.Document(), back.Document())
	}
	for k := range x.Pairs {
		if back.Pairs[k].Arm != x.Pairs[k].Arm {
			t.Errorf("pair %d is of arm %d, not %d", k, back.Pairs[k].Arm, x.Pairs[k].Arm)
		}
		for i := range x.Pairs[k].Effects {
			e := &x.Pairs[k].Effects[i]
			at := slices.IndexFunc(back.Pairs[k].Effects, func(y Effect) bool { return y.Name == e.Name })
			if got := back.Pairs[k].Effects[at]; got.Effect != e.Effect || got.A != e.A || got.B != e.B ||
				got.Verdict != e.Verdict {
				t.Errorf("%+v is read as %+v", e, got)
			}
		}
	}
	// A value that is not finite is null in the document.
	for _, mean := range []float64{1e300, 710, 0, -1e300} {
		e := Effect{Name: "read.iops"}
		e.Ratio, e.Effect.Mean = true, mean
		doc := (&Effects{Arms: []ArmSummary{{}, {}}, Pairs: []Pair{{Arm: 1, Effects: []Effect{e}}}}).Document()
		if got := doc.Pairs[0].Metrics["read.iops"].Ratio; (got == nil) != (mean > 0) {
			t.Errorf("e to %v is %v", mean, got)
		}
		if _, err := json.Marshal(doc); err != nil {
			t.Error(err)
		}
	}
	d := x.Document()
	d.Pairs[0].B = "nobody"
	if err := f.WriteJSON(EffectsFile, d); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadEffects(dir); err == nil || !strings.Contains(err.Error(), `no arm "nobody"`) {
		t.Errorf("%v", err)
	}
}

// TestDesigns verifies that a path that is not a study is reported as such, not as a fault.
func TestDesigns(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := result.WriteFile(file, nil); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, file, filepath.Join(dir, "nothing")} {
		if _, err := ReadDesigns(path); err == nil || Found(err) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if Found(errors.New("torn")) != true {
		t.Error("any fault is taken for nothing")
	}
}

// TestCompareTurnedAround verifies that with the arms exchanged every difference has the opposite sign and the same p
// values, that better and worse are exchanged, and so are the metrics that only one arm has.
func TestCompareTurnedAround(t *testing.T) {
	a := func(r *result.Result, rep int) {
		r.Set("read.latency.mean", 100+5*wave(rep))
		r.Set("read.iops", 1000+wave(rep))
		r.Set("ssd.gc.count", 100+wave(rep+2))
		r.Set("ssd.waf", 2)
		r.Set("all.latency.mean", 1)
	}
	b := func(r *result.Result, rep int) {
		r.Set("read.latency.mean", 90+5*wave(rep)+wave(rep+3)/10)
		r.Set("read.iops", 900+wave(rep+1))
		r.Set("ssd.gc.count", 130+wave(rep+4))
		r.Set("ssd.waf", 2)
		r.Set("trim.latency.mean", 1)
	}
	compare := func(arms ...func(*result.Result, int)) *Pair {
		p, out := armsOf(10, arms...)
		x, err := Compare(p, out, DefaultTest())
		if err != nil {
			t.Fatal(err)
		}
		return &x.Pairs[0]
	}
	one, other := compare(a, b), compare(b, a)
	turned := map[Verdict]Verdict{Better: Worse, Worse: Better, Higher: Lower, Lower: Higher, Identical: Identical,
		NoEvidence: NoEvidence}
	said := map[Verdict]bool{}
	for i := range one.Effects {
		x, y := &one.Effects[i], &other.Effects[i]
		said[x.Verdict] = true
		if x.Name != y.Name || x.Effect.Mean != -y.Effect.Mean || x.Effect.Half != y.Effect.Half || x.A != y.B ||
			x.P != y.P || x.Adjusted != y.Adjusted || x.Wilcoxon != y.Wilcoxon || x.More != y.More ||
			turned[x.Verdict] != y.Verdict {
			t.Errorf("%+v is turned around\n%+v", x, y)
		}
		if x.Verdict == Identical && (x.Adjusted != 1 || x.Differs()) {
			t.Errorf("%+v", x)
		}
	}
	if !said[Better] || !said[Worse] || !said[Higher] || !said[Identical] {
		t.Errorf("verdicts are %v", said)
	}
	if one.Family != 1 || one.Explored != 2 || Differing(one.Effects) != 3 || !slices.Equal(one.OnlyA, other.OnlyB) ||
		!slices.Equal(one.OnlyB, other.OnlyA) || len(one.OnlyA) != 1 || len(one.OnlyB) != 1 {
		t.Errorf("%+v is turned around\n%+v", one, other)
	}
}

// TestKneeOfTheSameCurve verifies that a knee does not depend on the units of either axis, on the curve's direction, or
// on the side to which it bends.
func TestKneeOfTheSameCurve(t *testing.T) {
	var x []float64
	for i := range 25 {
		x = append(x, 0.04*float64(i))
	}
	bend := func(x float64) float64 { return 1 / (1 - x) }
	first := curve(false, 0, x, bend).Knees([]string{"m"})
	if len(first) != 1 {
		t.Fatalf("%v", first)
	}
	for name, f := range map[string]func(float64) float64{
		"in other units": func(x float64) float64 { return 1e6 * bend(x) },
		"from elsewhere": func(x float64) float64 { return bend(x) - 1000 },
		"falling":        func(x float64) float64 { return -bend(x) },
	} {
		k := curve(false, 0, x, f).Knees([]string{"m"})
		if len(k) != 1 || k[0].Point != first[0].Point || math.Abs(k[0].Bend-first[0].Bend) > 1e-9 {
			t.Errorf("%s: %v, not %v", name, k, first)
		}
	}
	// Mirrored.
	last := x[len(x)-1]
	k := curve(false, 0, x, func(v float64) float64 { return bend(last - v) }).Knees([]string{"m"})
	if len(k) != 1 || k[0].Point != len(x)-1-first[0].Point || math.Abs(k[0].Bend-first[0].Bend) > 1e-9 {
		t.Errorf("from the other end: %v, not %v", k, first)
	}
	// A step right before one end, and one right after the other, are as far from the line as possible.
	for _, at := range []int{1, 5} {
		points := []float64{0, 1, 2, 3, 4, 5, 6}
		k := curve(false, 0, points, func(v float64) float64 {
			if int(v) >= at {
				return 6 + v/100
			}
			return v / 100
		}).Knees([]string{"m"})
		want := at
		if at > 3 {
			want = at - 1
		}
		if len(k) != 1 || k[0].Point != want {
			t.Errorf("a step at %d: %v", at, k)
		}
	}
}
