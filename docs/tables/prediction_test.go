package tables

import (
	"context"
	"fmt"
	"os"
	"testing"

	"farflash/internal/golden"
	"farflash/internal/patience"
	"farflash/policy/ratecontrol"
	"farflash/scenario"
	"farflash/study"
	"farflash/study/training"
)

// Figures that SRC prints: table I by model, table III by class, in the order of training.Report.
var (
	foreseen = []string{"0.77", "0.74", "0.86", "0.89", "0.94"}
	unseen   = []string{"0.89", "0.98", "0.96", "0.95"}
)

// TestPrediction checks, or writes, the accuracy of models of SRC's drives. It is skipped without FARFLASH_LONG,
// because training takes thousands of runs.
func TestPrediction(t *testing.T) {
	if !patience.Long(t) {
		t.Skip("it trains on three drives; FARFLASH_LONG=1 does")
	}
	var cache *study.Cache
	if dir := os.Getenv("FARFLASH_CACHE"); dir != "" {
		var err error
		if cache, err = study.OpenCache(dir, "tables"); err != nil {
			t.Fatal(err)
		}
	}
	trainer := training.NewTrainer(training.DefaultConfig(), study.Runner{Cache: cache})
	drives := []string{"src-ssd-a", "src-ssd-b", "src-ssd-c"}
	reports := make([]*training.Report, len(drives))
	for i, preset := range drives {
		src, err := scenario.Find(preset)
		if err != nil {
			t.Fatal(err)
		}
		s, err := scenario.Parse(src, nil)
		if err != nil {
			t.Fatal(err)
		}
		if reports[i], err = trainer.Evaluate(context.Background(), s.SSD, ratecontrol.Always, 1); err != nil {
			t.Fatal(err)
		}
	}
	const page = "../validation/prediction.md"
	a := reports[0]
	lines := golden.Head("model, micro traces, 60 % train", ">paper", ">R^2", ">read", ">write",
		">saturated: read, write", ">others: read, write", ">worst of five divisions")
	for i, m := range a.Models {
		lines = append(lines, golden.Row(append(accuracy(&a.Models[i], foreseen[i]), three(m.Least))...))
	}
	golden.Table(t, page, "prediction-models",
		fmt.Sprintf("seed 1; %d samples of %d traces, %d of the %d that test are saturated", a.Samples, a.Traces,
			a.Models[0].Saturated.Rows, a.Models[0].All.Rows), lines, *update)

	// No mean over the outputs: it would hide that one of them has nothing to predict.
	lines = golden.Head("prediction, R^2 on the same micro traces", ">read", ">write", ">saturated: read, write",
		">others: read, write")
	for i := range a.Weight {
		cells := accuracy(&a.Weight[i], "")
		lines = append(lines, golden.Row(append(cells[:1:1], cells[3:]...)...))
	}
	golden.Table(t, page, "prediction-weight", "seed 1", lines, *update)

	lines = golden.Head("class of synthetic traces, all others train", ">paper", ">R^2", ">read", ">write",
		">saturated: read, write", ">others: read, write")
	for i := range a.Classes {
		lines = append(lines, golden.Row(accuracy(&a.Classes[i], unseen[i])...))
	}
	golden.Table(t, page, "prediction-classes", "seed 1", lines, *update)

	lines = golden.Head("drive", ">samples", ">worst class", ">importance of both flow speeds")
	for i, x := range reports {
		worst := x.Classes[0].All.Mean
		for _, c := range x.Classes {
			worst = min(worst, c.All.Mean)
		}
		lines = append(lines,
			golden.Row("`"+drives[i]+"`", fmt.Sprint(x.Samples), three(worst), fmt.Sprintf("%.2f", x.FlowSpeed)))
	}
	golden.Table(t, page, "prediction-drives", "seed 1", lines, *update)
}

// accuracy returns the cells of a model, or of a class, next to the paper's figure.
func accuracy(j *training.Judged, paper string) []string {
	pair := func(x [ratecontrol.Outputs]training.Number) string { return three(x[0]) + ", " + three(x[1]) }
	return []string{j.Name, paper, three(j.All.Mean), three(j.All.Each[0]), three(j.All.Each[1]),
		pair(j.Saturated.Each), pair(j.Unsaturated.Each)}
}

func three(n training.Number) string { return fmt.Sprintf("%.3f", float64(n)) }

// prediction is figure 5 of SRC, the effect of the weight ratio on reads and writes, for some of its plots at both
// ends.
func prediction() []table {
	t := table{page: "prediction", name: "prediction-ratios", made: "seeds 1 to 10", gate: []int{0},
		head: []string{"us between requests, KB", ">shares bind while both wait: ratio 1", ">ratio 8", ">always: ratio 1",
			">ratio 8", ">always, MQSim's deviations: ratio 1", ">ratio 8"}}
	for _, p := range []struct{ gap, size int }{{25, 10}, {20, 20}, {15, 30}, {10, 30}, {10, 40}} {
		line := []cell{words(fmt.Sprintf("%d, %d", p.gap, p.size))}
		for _, c := range []struct{ compat, partition string }{{"none", "waiting"}, {"none", "always"},
			{"mqsim", "always"}} {
			for _, w := range []int{1, 8} {
				flow := fmt.Sprintf(
					"{size: {mean: %dKB, kind: exponential}, interarrival: {mean: %dus, kind: exponential}}", p.size,
					p.gap)
				needs := seeds(1, 10, "src-ssd-a", "ssd.compat="+c.compat,
					"workload[0].synthetic={reads: "+flow+", writes: "+flow+"}",
					fmt.Sprintf("rate_control={kind: static, weight_ratio: %d, partition: %s}", w, c.partition),
					"measure={until: 40ms, warm_up: 10ms}")
				line = append(line, cell{needs, func(x []found) string {
					return fmt.Sprintf("%.2f, %.2f", 1e-9*meanOf(x, "read.bandwidth"),
						1e-9*meanOf(x, "write.bandwidth"))
				}})
			}
		}
		t.rows = append(t.rows, line)
	}
	return []table{t}
}
