package reproduce

import (
	"context"
	"fmt"

	"farflash/scenario/shape"
)

func replicastTable4() Experiment {
	return Experiment{ID: "replicast-table4", Title: "The authors' laboratory: 2 gateways, 10 targets, 16 KiB",
		Paper: replicastPaper + "table 4", inputs: replicastInputs, run: runReplicastTable4}
}

// Table 4: measurements on real machines. It prints the latency in us, which no rate of 23,352 chunks per second with
// two gateways is consistent with; as milliseconds it is, by Little's law with 57 chunks outstanding (TestTable4). The
// model has that many outstanding and yields the rate, from which the latency follows.
const (
	labRate        = 23351.91 // chunks per second
	labLatency     = 2.4505   // ms
	labOutstanding = 57       // chunks
	labTargets     = 10
)

// The paper's description of the machines, with our assumptions where it is silent:
//   - a target has 10 HDDs of 4 TB and 2 SSDs of 800 GB. Which of them a write must reach before it is acknowledged is
//     open;
//   - assumed: an SSD of that size and year writes 400 MB/s, an HDD 120 random writes per second or 150 MB/s
//     sequentially;
//   - 10 GbE for targets, and for gateways too;
//   - one negotiating group of ten would be likely; the model needs two, so five targets each;
//   - unicast data (Replicast-H): the paper does not state which protocol it was, and with that many chunks outstanding
//     for each of two groups Replicast-M's negotiations no longer find a common window;
//   - three replicas, frames of 9000 B and control messages as in the paper's simulations.
//
// The model has one disk per target, with the sum of its drives' rates. Processors, hashing and metadata take no time
// in it, and the real system ran in user mode, so the model gives the limit set by disks and links, not the performance
// of the software.
const (
	labHDDs, labSSDs = 10, 2
	ssdRate          = 400e6
	hddRate          = 150e6
	hddWrites        = 120 // per second, random
)

// labArm is a hypothesis about the bottleneck of such a cluster.
type labArm struct {
	label string
	rate  float64 // B/s of a target's disk
	why   string
	not   string // why it does not explain the laboratory
}

// goesThrough is the reason why neither SSDs nor links were the laboratory's bottleneck.
const goesThrough = "disks and links allow more than was measured: the limit is something outside the model, such " +
	"as processors, hashing or metadata"

// labShare is the tolerance for a hypothesis that explains the measurement, given that the drives' rates are
// assumptions.
const labShare = 0.1

// labTime is the simulated time of a run, shorter with few seeds.
func labTime(o Options) string {
	if o.few > 0 {
		return "300ms"
	}
	return "1s"
}

func runReplicastTable4(ctx context.Context, o Options) (*Report, error) {
	r := &Report{}
	const chunk = 16384
	arms := []labArm{
		{"writes reach the SSDs", labSSDs * ssdRate, "assumed: 2 x 400 MB/s", goesThrough},
		{"writes reach the HDDs in a row", labHDDs * hddRate,
			"assumed: 10 x 150 MB/s, each chunk behind the last one", goesThrough},
		{"writes reach the HDDs at random", labHDDs * hddWrites * chunk, "assumed: 10 x 120 writes a second",
			"writes cannot have waited for a seek each"},
	}
	changes := func(a labArm, gateways, each int, more ...shape.Change) []shape.Change {
		return append([]shape.Change{{Path: "object_cluster.gateways", Value: fmt.Sprint(gateways)},
			{Path: "object_cluster.outstanding", Value: fmt.Sprint(each)},
			{Path: "object_cluster.protocol", Value: "replicast-h"},
			{Path: "object_cluster.targets", Value: fmt.Sprint(labTargets)},
			{Path: "object_cluster.group", Value: "5"}, {Path: "object_cluster.chunk", Value: "16KiB"},
			{Path: "object_cluster.disk.rate", Value: fmt.Sprintf("%.0fB/s", a.rate)},
			{Path: "measure.until", Value: labTime(o)}}, more...)
	}
	// By SURGE's rules a gateway has one chunk outstanding, so 57 chunks need 57 gateways, each with its own link:
	// "simply adding more initiators", section IV-A.
	surge := shape.Change{Path: "object_cluster.compat", Value: "surge-d92018f"}
	var trials []variant
	seeds := o.seeds(replicastSeeds)
	for _, a := range arms {
		for seed := uint64(1); seed <= uint64(seeds); seed++ {
			trials = append(trials,
				variant{label: a.label + ", 57 gateways, as SURGE", seed: seed,
					changes: changes(a, labOutstanding, 1, surge)})
		}
		for seed := uint64(1); seed <= uint64(seeds); seed++ {
			trials = append(trials,
				variant{label: a.label + ", 2 gateways, steady", seed: seed,
					changes: changes(a, 2, (labOutstanding+1)/2)})
		}
	}
	mean := func(from int, metric string) float64 {
		sum := 0.0
		for _, t := range trials[from : from+seeds] {
			sum += value(t.result, metric)
		}
		return sum / float64(seeds)
	}
	if err := runTrials(ctx, o, r, "replicast", trials); err != nil {
		return nil, err
	}
	var curves [2]Curve
	for i, a := range arms {
		for w := range ways {
			from := (2*i + int(w)) * seeds
			rate := mean(from, "cluster.put.iops")
			r.Rows = append(r.Rows,
				Row{Label: trials[from].label, Metric: "chunks a second", Paper: number(labRate), Ours: rate,
					Unit:  "1/s",
					Meets: near(labRate, labShare), Expect: "within 10 %; " + a.why, Because: a.not})
			c := &curves[w]
			c.Panel, c.Name, c.XLabel, c.YLabel, c.YUnit = "what each reading allows",
				[]string{"57 gateways, as SURGE", "2 gateways, steady"}[w], "", "chunks a second", "1/s"
			c.Names, c.X, c.Y = append(c.Names, []string{"SSDs", "HDDs in a row", "HDDs at random"}[i]),
				append(c.X, float64(i)), append(c.Y, rate)
		}
	}
	r.Curves = append(r.Curves, curves[0], curves[1])
	printed := Curve{Panel: curves[0].Panel, Name: "table 4", YLabel: curves[0].YLabel, YUnit: "1/s",
		Names: curves[0].Names, X: curves[0].X}
	for range curves[0].X {
		printed.Y = append(printed.Y, labRate)
	}
	r.Curves = append(r.Curves, printed)
	return r, nil
}
