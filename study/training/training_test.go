package training_test

import (
	"bytes"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"farflash/block"
	"farflash/experiment/trial/trialtest"
	"farflash/internal/patience"
	"farflash/numeric/units"
	"farflash/policy/forest"
	"farflash/policy/ratecontrol"
	"farflash/scenario"
	"farflash/study"
	"farflash/study/training"
)

// tiny is a training that takes a second, on a drive of trialtest.
func tiny() training.Config {
	c := training.DefaultConfig()
	c.Micro, c.Synthetic, c.Ratios, c.Per = 12, 8, []int{1, 2, 4, 8}, 2
	c.Sizes, c.Gaps = [2]units.Bytes{4 * units.KiB, 16 * units.KiB},
		[2]units.Duration{40 * units.Microsecond, 400 * units.Microsecond}
	c.WarmUp, c.Window = units.Millisecond, 4*units.Millisecond
	c.Forest.Trees = 10
	return c
}

// driveOf returns the drive of a scenario's text.
func driveOf(t testing.TB, name string) *scenario.Drive {
	t.Helper()
	s, err := trialtest.Parse("ssd: " + name +
		"\nworkload: [{synthetic: {reads: {size: 4KiB, interarrival: 1ms}, requests: 1}}]\n")
	if err != nil {
		t.Fatal(err)
	}
	return s.SSD
}

// TestSweep verifies that samples agree with a run of their scenario, that the number of processors and a cache have no
// effect, and that an interrupted training resumes.
func TestSweep(t *testing.T) {
	drive, cfg := driveOf(t, trialtest.TinyDrive), tiny()
	first, err := training.Sweep(t.Context(), study.Runner{Workers: 1}, drive, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(first.Rows); n != 40 || first.Samples.Rows() != n {
		t.Fatalf("%d rows and %d samples of 20 traces at 2 ratios each", n, first.Samples.Rows())
	}
	cache, err := study.OpenCache(t.TempDir(), "test")
	if err != nil {
		t.Fatal(err)
	}
	last := study.Progress{}
	for range 2 {
		again, err := training.Sweep(t.Context(),
			study.Runner{Workers: 3, Cache: cache, Progress: func(p study.Progress) { last = p }}, drive, cfg)
		if err != nil {
			t.Fatal(err)
		}
		var a, b bytes.Buffer
		if first.WriteCSV(&a) != nil || again.WriteCSV(&b) != nil || a.String() != b.String() {
			t.Fatal("side by side, or out of a cache, samples are others")
		}
	}
	if last.Done != 40 || last.Of != 40 {
		t.Errorf("the second time %d of %d trials were run", last.Done, last.Of)
	}
	// With all samples cached, no trial is run, whatever the runner.
	ran := false
	if _, err := training.Sweep(t.Context(),
		study.Runner{Cache: cache, Progress: func(study.Progress) { ran = true }}, drive, cfg); err != nil || ran {
		t.Errorf("a third training runs again: %v", err)
	}
	speeds := 0
	for i := range first.Rows {
		x, y := first.Samples.X(i), first.Samples.Y(i)
		for k := range y {
			speed := x[5+5*k]
			if y[k] < 0 || y[k] > 3*speed+1e8 || math.IsNaN(y[k]) {
				t.Errorf("row %d: %v of %v bytes/s that came", i, y[k], speed)
			}
			if speed > 0 {
				speeds++
			}
		}
		if got, want := first.Rows[i].Saturated, y[0]+y[1] < 0.95*(x[5]+x[10]); got != want {
			t.Errorf("row %d: saturated %v", i, got)
		}
		if first.Rows[i].Ratio != int(x[ratecontrol.Inputs-1]) {
			t.Errorf("row %d: ratio %d and input %v", i, first.Rows[i].Ratio, x[ratecontrol.Inputs-1])
		}
		if i > 0 && first.Rows[i].Trace == first.Rows[i-1].Trace {
			before := first.Samples.X(i - 1)
			for k := range x[:ratecontrol.Inputs-1] {
				if x[k] != before[k] {
					t.Errorf("row %d: a trace has other features at another ratio", i)
				}
			}
		}
	}
	if speeds < 70 {
		t.Errorf("%d of 80 speeds are not 0", speeds)
	}
}

// TestEvaluate checks the report of an evaluation, and verifies that no trace is on both sides of a division: a forest
// that had seen a trace's other ratios would know outputs that are unrelated to its features.
func TestEvaluate(t *testing.T) {
	set := &training.Set{Samples: &forest.Samples{Inputs: ratecontrol.InputNames(), Outputs: ratecontrol.OutputNames()}}
	// Each trace has unrelated features and outputs, and many rows.
	for trace := range 60 {
		h := uint64(trace+1) * 0x9e3779b97f4a7c15
		for w := 1; w <= 8; w++ {
			x := make([]float64, ratecontrol.Inputs)
			x[5], x[11] = float64(trace), float64(w)
			y := float64(h >> 40)
			class := training.Micro
			if trace >= 40 {
				class = training.LowLow + training.Class(trace%4)
			}
			set.Samples.Add(x, []float64{y, y}, trace)
			set.Rows = append(set.Rows, training.Row{Trace: trace, Class: class, Ratio: w, Saturated: trace%2 == 0})
		}
	}
	cfg := tiny()
	r, err := set.Evaluate(t.Context(), &cfg, 2)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Models) != 5 || len(r.Classes) != 4 || r.Traces != 60 || r.Samples != 480 ||
		len(r.Importance) != ratecontrol.Inputs {
		t.Fatalf("%+v", r)
	}
	for _, j := range append(r.Models, r.Classes...) {
		if j.All.Mean > 0.35 {
			t.Errorf("%s: R^2 %v of what cannot be foreseen", j.Name, j.All.Mean)
		}
		if j.All.Rows != j.Saturated.Rows+j.Unsaturated.Rows || j.All.Rows == 0 {
			t.Errorf("%s: %d rows, %d and %d", j.Name, j.All.Rows, j.Saturated.Rows, j.Unsaturated.Rows)
		}
	}
	if r.Importance[0].Input != "read.flow_speed" || r.FlowSpeed < 0.5 {
		t.Errorf("importance %+v", r.Importance)
	}
}

// TestTrainer verifies that one model is trained per drive, the same with and without a cache, that it is found there,
// and that a damaged one is trained again.
func TestTrainer(t *testing.T) {
	drive, cfg := driveOf(t, trialtest.TinyDrive), tiny()
	other := driveOf(t, strings.Replace(trialtest.TinyDrive, "25%", "30%", 1))
	alone := training.NewTrainer(cfg, study.Runner{})
	file, err := alone.File(t.Context(), drive, ratecontrol.WhileBothWait)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cache, err := study.OpenCache(dir, "test")
	if err != nil {
		t.Fatal(err)
	}
	var warned []error
	runner := study.Runner{Cache: cache, Warn: func(err error) { warned = append(warned, err) }}
	same, err := training.NewTrainer(cfg, runner).File(t.Context(), drive, ratecontrol.WhileBothWait)
	if err != nil || !bytes.Equal(file, same) {
		t.Fatalf("with a cache it is another model: %v", err)
	}
	for _, x := range []struct {
		drive     *scenario.Drive
		partition ratecontrol.Partition
	}{{other, ratecontrol.WhileBothWait}, {drive, ratecontrol.Always}} {
		model, err := training.NewTrainer(cfg, runner).File(t.Context(), x.drive, x.partition)
		if err != nil || bytes.Equal(model, file) {
			t.Errorf("another drive or partition, %v, has the same model: %v", x.partition, err)
		}
	}
	ran := false
	runner.Progress = func(study.Progress) { ran = true }
	predict := training.NewTrainer(cfg, runner).Predict(t.Context())
	p, err := predict(drive, ratecontrol.WhileBothWait)
	if err != nil || ran {
		t.Fatalf("it was trained again: %v", err)
	}
	ch := ratecontrol.Features{ReadShare: 1,
		Of: [2]ratecontrol.FlowFeatures{{Size: 8192, Interarrival: 1e-4, Speed: 8e7}, {Interarrival: 1}}}
	if r, w := p.Predict(&ch, 1); !(r > 0) || !(w >= 0) {
		t.Errorf("it foresees %v and %v", r, w)
	}
	path, err := training.NewTrainer(cfg, runner).Path(drive, ratecontrol.WhileBothWait)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, file[:len(file)/2], 0o666); err != nil {
		t.Fatal(err)
	}
	same, err = training.NewTrainer(cfg, runner).File(t.Context(), drive, ratecontrol.WhileBothWait)
	if err != nil || !bytes.Equal(file, same) || len(warned) != 1 {
		t.Errorf("after damage: %v, warnings %v", err, warned)
	}
}

// TestConfig verifies that invalid settings are rejected with their key.
func TestConfig(t *testing.T) {
	for want, change := range map[string]func(*training.Config){
		"micro: no traces":             func(c *training.Config) { c.Micro, c.Synthetic = 0, 0 },
		"ratios[1]: 1 is not possible": func(c *training.Config) { c.Ratios = []int{1, 1} },
		"sizes: 1MiB to 4KiB":          func(c *training.Config) { c.Sizes = [2]units.Bytes{units.MiB, 4 * units.KiB} },
		"forest.trees: 0 is not":       func(c *training.Config) { c.Forest.Trees = 0 },
		"window: 1us after 1ms is not": func(c *training.Config) { c.Window = units.Microsecond },
	} {
		c := training.DefaultConfig()
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v", want, err)
		}
	}
	c := training.DefaultConfig()
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}

// TestAccuracy compares the default training on SRC's SSD-A with the goals for accuracy, and logs its duration.
func TestAccuracy(t *testing.T) {
	if !patience.Long(t) {
		t.Skip("takes minutes; set FARFLASH_LONG=1")
	}
	cfg := training.DefaultConfig()
	began := time.Now()
	set, err := training.Sweep(t.Context(), study.Runner{Workers: 2}, driveOf(t, "src-ssd-a"), cfg)
	if err != nil {
		t.Fatal(err)
	}
	swept := time.Since(began)
	f, err := set.Grow("src-ssd-a", &cfg, 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d samples in %v, grown in %v: %d nodes, R^2 out of bag %.3f", len(set.Rows), swept,
		time.Since(began)-swept, f.Nodes(), f.OutOfBag)
	r, err := set.Evaluate(t.Context(), &cfg, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range append(r.Models, r.Classes...) {
		t.Logf("%-45s %.3f (least %.3f), %s %.3f, %s %.3f; saturated %.3f of %d, others %.3f of %d", j.Name,
			j.All.Mean, j.Least, block.Read, j.All.Each[0], block.Write, j.All.Each[1],
			j.Saturated.Each, j.Saturated.Rows, j.Unsaturated.Each, j.Unsaturated.Rows)
	}
	t.Log(r.Importance, r.FlowSpeed)
	for _, v := range r.Models[4].All.Each {
		if v < 0.94 {
			t.Errorf("micro traces: R^2 %v", r.Models[4].All.Each)
		}
	}
	for _, j := range r.Classes {
		if j.All.Mean < 0.89 {
			t.Errorf("%s: R^2 %v", j.Name, j.All)
		}
	}
}

// TestWeightReport verifies the figures about the weight ratio on samples with known ones: outputs that are the flow
// speeds have no response, and the speeds themselves predict them; outputs of the ratio alone are all response, and a
// forest without the ratio knows nothing of them.
func TestWeightReport(t *testing.T) {
	for _, byRatio := range []bool{false, true} {
		set := &training.Set{Samples: &forest.Samples{Inputs: ratecontrol.InputNames(),
			Outputs: ratecontrol.OutputNames()}}
		for trace := range 60 {
			for w := 1; w <= 8; w++ {
				x := make([]float64, ratecontrol.Inputs)
				x[5], x[10], x[11] = float64(trace), float64(trace*37%60), float64(w)
				y := []float64{x[5], x[10]}
				if byRatio {
					y = []float64{1 / float64(w), float64(w)}
				}
				set.Samples.Add(x, y, trace)
				set.Rows = append(set.Rows, training.Row{Trace: trace, Ratio: w})
			}
		}
		cfg := tiny()
		r, err := set.Evaluate(t.Context(), &cfg, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Weight) != 3 {
			t.Fatalf("%+v", r.Weight)
		}
		blind, speeds, response := r.Weight[0].All, r.Weight[1].All, r.Weight[2].All
		for k := range ratecontrol.Outputs {
			if byRatio && (blind.Each[k] > 0.1 || speeds.Each[k] > 0 || response.Each[k] < 0.9) {
				t.Errorf("output %d of the ratio: %v without it, %v by speeds, response %v", k, blind.Each[k],
					speeds.Each[k], response.Each[k])
			}
			if !byRatio && (blind.Each[k] < 0.8 || speeds.Each[k] != 1 || !math.IsNaN(float64(response.Each[k]))) {
				t.Errorf("output %d of the speeds: %v without the ratio, %v by speeds, response %v", k, blind.Each[k],
					speeds.Each[k], response.Each[k])
			}
		}
	}
}
