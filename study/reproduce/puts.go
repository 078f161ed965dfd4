package reproduce

import (
	"context"
	"fmt"

	"farflash/scenario/shape"
)

// puts are clusters of the Replicast paper, each run in two ways over five seeds: by the rules of the paper's
// simulator, with the durations of its bench.sh and no warm-up, and in steady state, with control messages that queue
// behind each other.
type puts struct {
	cases  []putCase
	keep   bool // record completed chunks
	trials []variant
	seeds  int
}

// putCase is one cluster.
type putCase struct {
	gateways              int
	chunk, disk, protocol string // disk in MiB/s
	surge, steady         string // duration in each way
}

// way is the manner in which a case is run.
type way int

const (
	asSURGE way = iota
	inSteadyState
	ways
)

func (w way) String() string { return [...]string{"as SURGE", "steady"}[w] }

// replicastSeeds is the number of seeds per cell.
const replicastSeeds = 5

// label identifies a case within an experiment; it is also part of a file name.
func (x *putCase) label() string {
	return fmt.Sprintf("%dx90, %s, disks %s, %s", x.gateways, x.chunk, x.disk, x.protocol)
}

// changes returns the changes of the preset for a case.
//
// If few seeds are requested, the steady state is shorter, too.
func (x *putCase) changes(o *Options, w way) []shape.Change {
	list := []shape.Change{{Path: "object_cluster.gateways", Value: fmt.Sprint(x.gateways)},
		{Path: "object_cluster.protocol", Value: x.protocol},
		{Path: "object_cluster.chunk", Value: x.chunk}, {Path: "object_cluster.disk.rate", Value: x.disk + "MiB/s"}}
	if w == inSteadyState {
		until := x.steady
		if o.few > 0 {
			until = map[string]string{"50ms": "20ms", "60ms": "30ms", "200ms": "60ms", "500ms": "150ms",
				"1s": "200ms"}[until]
		}
		return append(list, shape.Change{Path: "measure.until", Value: until})
	}
	return append(list, shape.Change{Path: "object_cluster.compat", Value: "surge-d92018f"},
		shape.Change{Path: "measure.until", Value: x.surge}, shape.Change{Path: "measure.warm_up", Value: "none"})
}

// run runs all cases.
func (p *puts) run(ctx context.Context, o Options, r *Report) error {
	p.seeds = o.seeds(replicastSeeds)
	for i := range p.cases {
		x := &p.cases[i]
		for w := range ways {
			for seed := uint64(1); seed <= uint64(p.seeds); seed++ {
				p.trials = append(p.trials,
					variant{label: x.label() + ", " + w.String(), seed: seed, changes: x.changes(&o, w), keep: p.keep})
			}
		}
	}
	return runTrials(ctx, o, r, "replicast", p.trials)
}

// of returns the trials of a case, by seed.
func (p *puts) of(i int, w way) []variant {
	from := (i*int(ways) + int(w)) * p.seeds
	return p.trials[from : from+p.seeds]
}

// mean is a metric's mean over the seeds.
func (p *puts) mean(i int, w way, metric string) float64 {
	sum := 0.0
	for _, t := range p.of(i, w) {
		sum += value(t.result, metric)
	}
	return sum / float64(p.seeds)
}

// find returns the index of a case.
func (p *puts) find(gateways int, chunk, disk, protocol string) int {
	for i := range p.cases {
		if x := &p.cases[i]; x.gateways == gateways && x.chunk == chunk && x.disk == disk && x.protocol == protocol {
			return i
		}
	}
	panic("reproduce: no such case")
}

// rate is a case's chunks per second.
func (p *puts) rate(w way, gateways int, chunk, disk, protocol string) float64 {
	return p.mean(p.find(gateways, chunk, disk, protocol), w, "cluster.put.iops")
}
