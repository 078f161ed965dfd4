package reproduce

import (
	"context"
	"fmt"
	"slices"

	"farflash/units"
)

// snis-fig2: how much reads and writes slow each other down on one drive, against
// the time between requests and against their size (SNIS, section II, figure 2).
//
// The paper plots the mean latency of the reads of a mixed trace over that of the
// same reads alone, and the same for writes. It names MQSim, a mean size of 4 KB with
// the inter-arrival time varied, and a mean inter-arrival time of 100 us with the
// size varied from 512 B to 64 KB. It prints no numbers and leaves open:
//   - the drive: the one of its table I, its setup of MQSim for everything else, with
//     MQSim's quirks;
//   - the distributions: exponential times and constant sizes, as in the micro traces
//     of the same authors (SRC, section IV-A; there sizes are exponential too, which
//     sizes of at least a sector cannot be);
//   - the mix: as many reads as writes. The stated time is that between the requests
//     of the mixed trace, so that its reads, and its writes, are twice as far apart;
//   - the number of requests: 10,000 of each. Where the drive is overloaded the
//     latency grows with it, so that the slowdown there is that of this length.
//
// docs/validation/snis.md shows what the other readings give.
func snisFig2() Experiment {
	return Experiment{
		ID:    "snis-fig2",
		Title: "Read and write interference on one drive",
		Paper: "Jia et al., SNIS: Storage-Network Iterative Simulation for Disaggregated Storage Systems, IPCCC 2022, figure 2",
		run:   runSnisFig2,
	}
}

const fig2Requests = 10000

// fig2Scenario is the scenario of one point; what is "both", "reads" or "writes".
func fig2Scenario(what string, size units.Bytes, gap units.Duration) string {
	flow := fmt.Sprintf("{size: %v, interarrival: {mean: %v, kind: exponential}, addresses: {align: %v}}", size, 2*gap, min(size, 4*units.KiB))
	text := fmt.Sprintf("name: snis-fig2-%s-%v-%v\nworkload:\n  - synthetic:\n", what, size, gap)
	if what != "writes" {
		text += "      reads: " + flow + "\n"
	}
	if what != "reads" {
		text += "      writes: " + flow + "\n"
	}
	// The streams' random numbers do not depend on one another, so the requests alone
	// are the requests of the mix.
	text += fmt.Sprintf("      duration: %v\n", fig2Requests*2*gap)
	return text + "ssd: {preset: snis-table1, compat: mqsim}\n"
}

// slowdown is one point of the figure.
type slowdown struct{ read, write float64 }

func runSnisFig2(ctx context.Context, o Options) (*Report, error) {
	gaps := []units.Duration{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}
	for i := range gaps {
		gaps[i] *= units.Microsecond
	}
	sizes := []units.Bytes{512, 1024, 2048, 4096, 8192, 16384, 32768, 65536}
	r := &Report{}
	done, all := 0, 3*(len(gaps)+len(sizes))
	point := func(size units.Bytes, gap units.Duration) (slowdown, error) {
		mean := map[string]slowdown{}
		for _, what := range []string{"both", "reads", "writes"} {
			text := fig2Scenario(what, size, gap)
			m, err := measure(ctx, fmt.Sprintf("%s-%v-%v.yaml", what, size, gap), text, o)
			if err != nil {
				return slowdown{}, err
			}
			r.Scenarios = append(r.Scenarios, Named{fmt.Sprintf("%s-%v-%v", what, size, gap), text})
			mean[what] = slowdown{m["read.latency.mean"], m["write.latency.mean"]}
			if done++; o.Progress != nil {
				o.Progress(done, all)
			}
		}
		return slowdown{mean["both"].read / mean["reads"].read, mean["both"].write / mean["writes"].write}, nil
	}
	panel := func(name, x string, label func(i int) string, n int, at func(i int) (units.Bytes, units.Duration), value func(i int) float64) ([]slowdown, error) {
		points := make([]slowdown, n)
		reads, writes := Curve{Panel: name, Name: "reads", XLabel: x, YLabel: "slowdown"}, Curve{Panel: name, Name: "writes", XLabel: x, YLabel: "slowdown"}
		for i := range points {
			size, gap := at(i)
			var err error
			if points[i], err = point(size, gap); err != nil {
				return nil, err
			}
			reads.X, reads.Y = append(reads.X, value(i)), append(reads.Y, points[i].read)
			writes.X, writes.Y = append(writes.X, value(i)), append(writes.Y, points[i].write)
			for _, row := range []Row{{Metric: "read slowdown", Ours: points[i].read}, {Metric: "write slowdown", Ours: points[i].write}} {
				row.Label, row.Unit, row.OK = label(i), "x", row.Ours > 0
				row.Expect = "the paper plots it and prints no number"
				r.Rows = append(r.Rows, row)
			}
		}
		r.Curves = append(r.Curves, reads, writes)
		return points, nil
	}
	times, err := panel("(a) 4 KiB requests", "mean inter-arrival time, us", func(i int) string { return fmt.Sprintf("every %v, 4KiB", gaps[i]) }, len(gaps),
		func(i int) (units.Bytes, units.Duration) { return 4 * units.KiB, gaps[i] }, func(i int) float64 { return gaps[i].Microseconds() })
	if err != nil {
		return nil, err
	}
	volumes, err := panel("(b) every 100 us", "request size, KiB", func(i int) string { return fmt.Sprintf("every 100us, %v", sizes[i]) }, len(sizes),
		func(i int) (units.Bytes, units.Duration) { return sizes[i], 100 * units.Microsecond }, func(i int) float64 { return float64(sizes[i]) / 1024 })
	if err != nil {
		return nil, err
	}
	yes := func(label, expect string, value float64, ok bool) {
		r.Rows = append(r.Rows, Row{Label: label, Metric: "holds", Ours: value, Unit: "x", Expect: expect, OK: ok})
	}
	at := func(us int64) slowdown { return times[slices.Index(gaps, units.Duration(us)*units.Microsecond)] }
	yes("reads suffer as the load grows", "text: degradation is visible at 10 us; read slowdown at 10 us over that at 1000 us is above 1.2",
		at(10).read/at(1000).read, at(10).read/at(1000).read > 1.2)
	yes("writes suffer as the load grows", "text: both suffer at 10 us; write slowdown at 10 us is above 1.01", at(10).write, at(10).write > 1.01)
	yes("at 1 us reads suffer more than writes", "text: from 10 us to 1 us the slowdown of reads boosts more than that of writes; ratio of the two growths above 1",
		(at(1).read/at(10).read)/(at(1).write/at(10).write), at(1).read/at(10).read > at(1).write/at(10).write)
	last := volumes[len(volumes)-1]
	yes("larger requests interfere more", "text: the same is seen with size; read slowdown at 64 KiB over that at 512 B is above 1",
		last.read/volumes[0].read, last.read > volumes[0].read)
	return r, nil
}
