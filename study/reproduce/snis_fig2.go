package reproduce

import (
	"context"
	"fmt"
	"math"
	"slices"

	"farflash/numeric/units"
)

// snis-fig2: the mutual slowdown of reads and writes on one drive, over the time between requests and over their size
// (SNIS, section II, figure 2).
//
// The paper plots the mean latency of the reads of a mixed trace over that of the same reads alone, and the same for
// writes. It names MQSim, a mean size of 4 KB with varying inter-arrival time, and a mean inter-arrival time of 100 us
// with sizes from 512 B to 64 KB. It prints no numbers and leaves open:
//   - the drive: we use that of its table I, its setup of MQSim for everything else, with MQSim's quirks;
//   - the distributions: we use exponential times and constant sizes, as in the micro traces of the same authors (SRC,
//     section IV-A; there sizes are exponential too, which is impossible with sizes of at least a sector);
//   - the mix: we use equal numbers of reads and writes. The stated time is that between requests of the mixed trace,
//     so its reads, and its writes, are twice as far apart;
//   - the number of requests: we use 10,000 of each. If the drive is overloaded the latency grows with it, so the
//     slowdown there depends on this length.
//
// docs/validation/snis.md has the results of the other readings.
func snisFig2() Experiment {
	return Experiment{
		ID:    "snis-fig2",
		Title: "Read and write interference on one drive",
		Paper: "Jia et al., SNIS: Storage-Network Iterative Simulation for Disaggregated Storage Systems, IPCCC " +
			"2022, figure 2",
		inputs: "the drive of SNIS' table I with MQSim's deviations; 10,000 reads and as many writes, exponential " +
			"times, constant sizes",
		run: runSnisFig2,
	}
}

const fig2Requests = 10000

// fig2Scenario returns the scenario of one point; what is "both", "reads" or "writes".
func fig2Scenario(what string, size units.Bytes, gap units.Duration) string {
	flow := fmt.Sprintf("{size: %v, interarrival: {mean: %v, kind: exponential}, addresses: {align: %v}}", size,
		2*gap, min(size, 4*units.KiB))
	text := fmt.Sprintf("name: snis-fig2-%s-%v-%v\nworkload:\n  - synthetic:\n", what, size, gap)
	if what != "writes" {
		text += "      reads: " + flow + "\n"
	}
	if what != "reads" {
		text += "      writes: " + flow + "\n"
	}
	// The streams' random numbers are independent of each other, so the requests alone are the requests of the mix.
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
	panel := func(name, x string, n int, at func(i int) (units.Bytes, units.Duration),
		value func(i int) float64) ([]slowdown, error) {
		points := make([]slowdown, n)
		reads, writes := Curve{Panel: name, Name: "reads", XLabel: x, YLabel: "slowdown"},
			Curve{Panel: name, Name: "writes", XLabel: x, YLabel: "slowdown"}
		for i := range points {
			size, gap := at(i)
			var err error
			if points[i], err = point(size, gap); err != nil {
				return nil, err
			}
			reads.X, reads.Y = append(reads.X, value(i)), append(reads.Y, points[i].read)
			writes.X, writes.Y = append(writes.X, value(i)), append(writes.Y, points[i].write)
		}
		r.Curves = append(r.Curves, reads, writes)
		return points, nil
	}
	times, err := panel("(a) 4 KiB requests", "mean inter-arrival time, us", len(gaps),
		func(i int) (units.Bytes, units.Duration) {
			return 4 * units.KiB,
				gaps[i]
		}, func(i int) float64 { return gaps[i].Microseconds() })
	if err != nil {
		return nil, err
	}
	volumes, err := panel("(b) every 100 us", "request size, KiB", len(sizes),
		func(i int) (units.Bytes, units.Duration) {
			return sizes[i],
				100 * units.Microsecond
		}, func(i int) float64 { return float64(sizes[i]) / 1024 })
	if err != nil {
		return nil, err
	}
	fig2Rows(r, gaps, times, sizes, volumes)
	return r, nil
}

// fig2Rows tests the text's statements. "Degraded" and "more visible" mean at least 5 %, the resolution of the figure.
func fig2Rows(r *Report, gaps []units.Duration, times []slowdown, sizes []units.Bytes, volumes []slowdown) {
	const (
		toTen = "As the mean inter-arrival time decreases to 10us, we can observe that both read and write " +
			"requests suffer latency degradation from the other"
		toOne = "As the inter-arrival time further decreases to 1us, the slowdown of read requests boosts more " +
			"dramatically than that of write requests"
		similar = "We obtain similar observations, e.g., the performance interference becomes more visible when the " +
			"workload gets more intensive"
		visible = "above 1.05, the least visible in the figure"
	)
	ten, last := slices.Index(gaps, 10*units.Microsecond), len(sizes)-1
	spread := fmt.Sprintf("from %v to %v", sizes[0], sizes[last])
	for _, x := range []struct {
		name string
		of   func(*slowdown) float64
		note string
	}{
		{"reads", func(p *slowdown) float64 { return p.read },
			"a write below a page's size first reads the rest of the page, and those reads delay the host's, the " +
				"more so the smaller the write"},
		{"writes", func(p *slowdown) float64 { return p.write }, ""},
	} {
		least := math.Inf(1) // the smallest growth between successive points
		for i := 1; i < len(volumes); i++ {
			least = min(least, x.of(&volumes[i])/x.of(&volumes[i-1]))
		}
		r.tell(x.name+", "+spread, "slowdown, least growth from a point to the next", least, "x", x.note)
		r.Rows = append(r.Rows,
			Row{Label: x.name + ", every 10 us", Metric: "slowdown", Ours: x.of(&times[ten]), Unit: "x",
				Meets: above(1.05), Quote: toTen, Expect: visible},
			Row{Label: x.name + ", " + spread, Metric: "growth of slowdown",
				Ours: x.of(&volumes[last]) / x.of(&volumes[0]), Unit: "x", Meets: above(1.05), Quote: similar,
				Expect:  visible,
				Because: "a write that waits in the cache to be programmed is already complete"})
	}
	for i := range ten {
		r.Rows = append(r.Rows,
			Row{Label: fmt.Sprintf("from 10 us to %v, reads over writes", gaps[i]), Metric: "growth of slowdown",
				Ours: times[i].read / times[ten].read / (times[i].write / times[ten].write), Unit: "x",
				Meets: above(1.1), Quote: toOne, Expect: "above 1.1: more dramatically",
				Because: "the writes alone stay just below the drive's program rate and complete in DRAM; with " +
					"the reads they do not, and wait for flash"})
	}
	r.Rows = append(r.Rows,
		Row{Label: spread + ", reads over writes", Metric: "growth of slowdown",
			Ours: volumes[last].read / volumes[0].read / (volumes[last].write / volumes[0].write),
			Unit: "x", Meets: above(1.05), Quote: similar, Expect: visible})
}
