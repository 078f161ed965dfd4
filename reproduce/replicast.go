package reproduce

import (
	"context"
	"fmt"
	"math"

	"farflash/scenario"
)

// The tables of the Replicast paper, each cell twice: by the rules of its simulator, over the times of its bench.sh and without a
// warm-up, as the mean of five seeds; and what is true of such a cluster in steady state, with control messages that wait for each
// other.

const replicastPaper = "Aizman and Bestler, Scalable Object Storage with Resource Reservations and Dynamic Load Balancing, 2016, "

// replicastCell is a cell of table 2 or 3.
type replicastCell struct {
	chunk, protocol string
	rate            float64 // chunks a second
	busy            float64 // share of the disks' time
	latency         float64 // us
	differs         string  // why it is farther off than 3 %
}

// replicastTime is how long bench.sh runs for a size, and how long the steady state is measured.
var replicastTime = map[string][2]string{"16KiB": {"10ms", "50ms"}, "128KiB": {"10ms", "200ms"}, "1MiB": {"30ms", "1s"}}

// ownModel is said of cells where the paper's own models, on an engine that runs events in order, are as far off.
const ownModel = "SURGE's own models, run event by event, are as far off"

var replicastTable2 = []replicastCell{
	{"16KiB", "uch-ccp", 536950, 0.706, 164.7, ""}, {"16KiB", "replicast-m", 635750, 0.836, 139.0, ""}, {"16KiB", "replicast-h", 525100, 0.690, 168.4, ""},
	{"128KiB", "uch-ccp", 58400, 0.664, 1401.7, ""}, {"128KiB", "replicast-m", 80700, 0.906, 1039.8, ""}, {"128KiB", "replicast-h", 73400, 0.836, 1132.6, ""},
	{"1MiB", "uch-ccp", 6733, 0.696, 10260.2, ""}, {"1MiB", "replicast-m", 8067, 0.856, 9210.8, ""}, {"1MiB", "replicast-h", 8000, 0.849, 8945.9, "start-up, not explained"},
}

var replicastTable3 = []replicastCell{
	{"16KiB", "uch-ccp", 918500, 0.481, 96.0, ""}, {"16KiB", "replicast-m", 907400, 0.474, 97.0, ""}, {"16KiB", "replicast-h", 632200, 0.329, 139.3, ""},
	{"128KiB", "uch-ccp", 108900, 0.470, 784.7, ""}, {"128KiB", "replicast-m", 176000, 0.747, 489.5, ownModel}, {"128KiB", "replicast-h", 127900, 0.550, 673.0, ""},
	{"1MiB", "uch-ccp", 13475, 0.484, 6042.9, ownModel}, {"1MiB", "replicast-m", 19850, 0.686, 4242.0, ""}, {"1MiB", "replicast-h", 16075, 0.571, 5163.8, ownModel},
}

// replicastSeeds is over how many seeds a cell's mean is.
const replicastSeeds = 5

func replicastTable(n int, disk string, cells []replicastCell) Experiment {
	return Experiment{ID: fmt.Sprintf("replicast-table%d", n), Title: "Put throughput, disks and latency of 90 gateways and 90 targets with disks of " + disk,
		Paper: replicastPaper + fmt.Sprintf("table %d", n), run: func(ctx context.Context, o Options) (*Report, error) { return runReplicast(ctx, o, disk, cells) }}
}

func runReplicast(ctx context.Context, o Options, disk string, cells []replicastCell) (*Report, error) {
	r := &Report{}
	var trials []trial
	for _, x := range cells {
		changes := func(more ...scenario.Change) []scenario.Change {
			return append([]scenario.Change{{Path: "object_cluster.protocol", Value: x.protocol}, {Path: "object_cluster.chunk", Value: x.chunk}, {Path: "object_cluster.disk.rate", Value: disk}}, more...)
		}
		for seed := uint64(1); seed <= replicastSeeds; seed++ {
			trials = append(trials, trial{label: x.label() + ", as SURGE", seed: seed, changes: changes(scenario.Change{Path: "object_cluster.compat", Value: "surge-d92018f"},
				scenario.Change{Path: "measure.until", Value: replicastTime[x.chunk][0]}, scenario.Change{Path: "measure.warm_up", Value: "none"})})
		}
		for seed := uint64(1); seed <= replicastSeeds; seed++ {
			trials = append(trials, trial{label: x.label() + ", steady", seed: seed, changes: changes(scenario.Change{Path: "measure.until", Value: replicastTime[x.chunk][1]})})
		}
	}
	if err := runTrials(ctx, o, r, "replicast", trials); err != nil {
		return nil, err
	}
	mean := func(from int, metric string) float64 {
		sum := 0.0
		for _, t := range trials[from : from+replicastSeeds] {
			sum += value(t.result, metric)
		}
		return sum / replicastSeeds
	}
	for i, x := range cells {
		k := 2 * replicastSeeds * i
		rate := mean(k, "cluster.put.iops")
		row := Row{Label: x.label() + ", as SURGE", Metric: "chunks a second", Paper: number(x.rate), Ours: rate, Unit: "1/s", Expect: "within 3 %", OK: within(rate, x.rate, 0.03)}
		if x.differs != "" {
			row.Expect, row.OK = "within 15 %: "+x.differs+" (docs/validation/replicast.md)", within(rate, x.rate, 0.15)
		}
		busyOff, busyExpect := 3.0, "within 3 points"
		if x.differs != "" {
			busyOff, busyExpect = 10, "within 10 points, as the rate differs"
		}
		busy, latency := 100*mean(k, "cluster.disk.utilisation"), mean(k, "cluster.put.latency.mean")
		r.Rows = append(r.Rows, row,
			Row{Label: row.Label, Metric: "disks busy", Paper: number(100 * x.busy), Ours: busy, Unit: "%", OK: math.Abs(busy-100*x.busy) < busyOff, Expect: busyExpect},
			Row{Label: row.Label, Metric: "latency, mean", Paper: number(x.latency), Ours: latency, Unit: "us", OK: within(latency, x.latency, 0.16), Expect: "as the rate, by Little's law"},
			Row{Label: x.label() + ", steady", Metric: "chunks a second", Ours: mean(k+replicastSeeds, "cluster.put.iops"), Unit: "1/s", OK: true, Expect: "the warm-up cut, control messages queued"},
			Row{Label: x.label() + ", steady", Metric: "of the bound", Ours: 100 * mean(k+replicastSeeds, "cluster.bound.reached"), Unit: "%", OK: mean(k+replicastSeeds, "cluster.bound.reached") <= 1, Expect: "at most 100 %"})
	}
	return r, nil
}

func (x *replicastCell) label() string { return x.chunk + ", " + x.protocol }
