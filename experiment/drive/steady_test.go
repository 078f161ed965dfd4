package drive_test

import (
	"flag"
	"fmt"
	"math"
	"strings"
	"testing"

	"farflash/experiment"
	"farflash/experiment/trial/trialtest"
	"farflash/internal/golden"
	"farflash/internal/patience"
)

var update = flag.Bool("update", false, "write tables of docs/validation/stats.md, with FARFLASH_LONG")

// collecting is a drive on which an occasional read waits for a collection, which fewer than one write in a hundred
// triggers.
const collecting = `
ssd: {preset: mqsim-default, geometry: {channels: 2, chips_per_channel: 2, dies_per_chip: 1, planes_per_die: 1, blocks_per_plane: 64, pages_per_block: 64}, over_provisioning: 25%, cache: {capacity: 256KiB}, collection: {victim: greedy}, preconditioning: {fill: steady}}
workload:
  - synthetic: {reads: {size: 8KiB, interarrival: {mean: 2ms}, addresses: {align: 8KiB}}}
  - synthetic: {writes: {size: 8KiB, interarrival: {mean: 4ms}, addresses: {align: 8KiB}}}
`

// TestSteadyWaits verifies that a run does not end in an apparent steady state before the drive has collected garbage,
// or while its cache fills, and that it states when it cannot guarantee the precision.
func TestSteadyWaits(t *testing.T) {
	warned := func(o *experiment.Outcome, text string) bool {
		return strings.Contains(strings.Join(o.Result.Warnings, "\n"), text)
	}
	o := trialtest.Run(t, collecting, 1, "measure.until=steady",
		"workload[1].synthetic.writes.interarrival.mean=30ms", "workload[0].synthetic.reads.interarrival.mean=10ms")
	if n := trialtest.Metric(t, o, "ssd.flash.erases"); !o.Result.Steady.Reached || n < 320 {
		t.Errorf("it ended after %v erased blocks: %+v", n, o.Result.Steady)
	}
	for _, c := range []struct {
		name, text, want string
		set              []string
	}{
		{"few requests", trialtest.Mixed,
			"measure.until: steady was not reached, so the means may not be those of a longer run: 3500 observations " +
				"are too few; at least 4096 are needed", nil},
		{"too much", collecting,
			"steady was not reached, so the means may not be those of a longer run: no steady state within the run",
			[]string{
				"workload[0].synthetic.requests=20000", "workload[1].synthetic.requests=20000",
				"workload[1].synthetic.writes.interarrival.mean=500us"}},
		{"an empty drive", collecting, "the drive is steady only while it has free blocks",
			[]string{"ssd.preconditioning.fill=none", "ssd.geometry.blocks_per_plane=2048"}},
	} {
		o := trialtest.Run(t, c.text, 1, append(c.set, "measure.until=steady")...)
		if !warned(o, c.want) {
			t.Errorf("%s: %+v, %q", c.name, o.Result.Steady, o.Result.Warnings)
		}
	}
	if o := trialtest.Run(t, trialtest.Mixed, 1); o.Result.Steady != nil {
		t.Error("nobody asked for a steady state")
	}
}

// TestSteadyPromise verifies that of runs that end in steady state 93 % are within 5 % of the mean of far longer ones,
// from idle dies to busy ones; with FARFLASH_LONG.
func TestSteadyPromise(t *testing.T) {
	patience.SkipUnlessLong(t)
	lines := golden.Head("reads apart, mean", ">true mean", ">runs within 5 %", ">bias")
	for _, apart := range []string{"8ms", "4ms", "2ms", "1ms"} {
		set := "workload[0].synthetic.reads.interarrival.mean=" + apart
		truth := 0.0
		for seed := range 4 {
			truth += trialtest.Metric(t, trialtest.Run(t, collecting, uint64(1000+seed), set, "measure.until=5000s"),
				"all.latency.mean") / 4
		}
		const runs = 40
		inside, reached, bias := 0, 0, 0.0
		for seed := range runs {
			o := trialtest.Run(t, collecting, uint64(1+seed), set, "measure.until=steady")
			off := trialtest.Metric(t, o, "all.latency.mean")/truth - 1
			bias += off / runs
			if o.Result.Steady.Reached {
				reached++
			}
			if math.Abs(off) <= 0.05 {
				inside++
			}
		}
		what := fmt.Sprintf("reads %s apart: %d of %d runs are within 5 %% of %.4g us, bias %+.2f %%, %d are steady",
			apart, inside, runs, truth, 100*bias, reached)
		t.Log(what)
		if inside < 37 || reached < runs {
			t.Error(what)
		}
		lines = append(lines,
			golden.Row(apart, fmt.Sprintf("%.0f us", truth), fmt.Sprintf("%d of %d", inside, runs),
				fmt.Sprintf("%+.2f %%", 100*bias)))
	}
	golden.Table(t, "../../docs/validation/stats.md", "settling-drives", "seeds 1 to 40, of the truth 1000 to 1003",
		lines, *update)
}

// TestSteadySeldom verifies that a run ends only after 320 occurrences of each enabled rare event, or reports which
// were too few.
func TestSteadySeldom(t *testing.T) {
	const reads = `
ssd: {preset: mqsim-default, geometry: {channels: 2, chips_per_channel: 2, dies_per_chip: 1, planes_per_die: 1, blocks_per_plane: 64, pages_per_block: 64}, mapping: {ideal: true}, cache: {mode: off}}
workload: [{synthetic: {reads: {size: 8KiB, interarrival: {mean: 200us}}}}]
measure: {until: steady}
`
	const worn = "ssd.reliability={curve: tlc-72-layers, cycles: 1000, retention: "
	for _, c := range []struct {
		name   string
		set    []string
		metric string
		least  float64
	}{
		{"nothing is seldom", nil, "read.count", 4096},
		{"one read in 200 is long", []string{"workload[0].synthetic.reads.size={mix: \"8KiB/99.5:128KiB/0.5\"}"},
			"read.count", 320 * 200},
		{"one in 50 is a write",
			[]string{"workload[0].synthetic.writes={size: 8KiB}", "workload[0].synthetic.reads={size: 8KiB}",
				"workload[0].synthetic.interarrival=200us", "workload[0].synthetic.read_fraction=98%"}, "write.count",
			320},
	} {
		o := trialtest.Run(t, reads, 1, c.set...)
		if n := trialtest.Metric(t, o, c.metric); !o.Result.Steady.Reached || n < c.least || n > 3*c.least {
			t.Errorf("%s: %v of %s, %+v", c.name, n, c.metric, o.Result.Steady)
		}
	}
	o := trialtest.Run(t, reads, 1, worn+"365d}")
	if n := trialtest.Metric(t, o, "ssd.errors.retried") *
		trialtest.Metric(t, o, "ssd.flash.reads"); !o.Result.Steady.Reached || n < 320 {
		t.Errorf("reads were repeated %v times: %+v", n, o.Result.Steady)
	}
	if !patience.Long(t) {
		return
	}
	// After a million requests it stops waiting.
	o = trialtest.Run(t, reads, 1, worn+"90d}")
	const want = "reads repeated: only 0 in 1236991 observations; at least 320 are needed"
	if n := trialtest.Metric(t, o, "read.count"); o.Result.Steady.Reached || n < 1<<20 ||
		!strings.Contains(strings.Join(o.Result.Warnings, "\n"), want) {
		t.Errorf("%v reads: %+v, %q", n, o.Result.Steady, o.Result.Warnings)
	}
}
