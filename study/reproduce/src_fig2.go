package reproduce

import (
	"context"
	"fmt"

	"farflash/numeric/stats"
	"farflash/scenario/shape"
)

// Figure 2 of SRC is a numerical example: a drive that completes nine requests per time unit, and a network that
// accepts six reads in it, or half as many when congestion control has cut the target's rate. Here it is simulated,
// including everything that the example leaves out.

func srcFig2() Experiment {
	return Experiment{ID: "src-fig2", Title: "The example: no congestion, DCQCN, and SRC",
		Paper: srcPredictPaper + "figure 2", inputs: srcInputs, run: runSrcFig2}
}

// fig2Unit is the example's time unit in seconds: the time in which the unrestricted drive, under two reads per write,
// completes nine requests. It does 350,000 per second if the hosts' links have 400 Gbit/s.
const fig2Unit = 9 / 350e3

// fig2Load is a target whose drive takes the same time for a read as for a write (72 dies, 165 us for either, 16 KiB
// each), overloaded with two reads per write. The data of six reads per time unit are 33 Gbit/s on the wire.
var fig2Load = []shape.Change{
	{Path: "targets", Value: "[{count: 2, ssds: 1}]"},
	{Path: "ssd", Value: "{preset: tlc-enterprise, " +
		"geometry: {channels: 8, chips_per_channel: 9, dies_per_chip: 1, planes_per_die: 1, page_size: 16KiB, " +
		"blocks_per_plane: 128, pages_per_block: 256}, " +
		"timing: {cell: SLC, read_latency: 165us, program_latency: 165us, channel_rate: 4800MT/s}, mapping: {grain: " +
		"page}, cache: {mode: 'off'}}"},
	{Path: "route", Value: "{target: {stripe: 512MiB}}"}, // so that the first 512 MiB belong to the first target
	{Path: "nvmf", Value: "{queue_depth: 4096, drive_depth: 144, in_capsule: 0B, txq: 512KiB, reads: {target: 256, " +
		"initiator: 256}}"},
	{Path: "place", Value: "{initiators: first, targets: last}"},
	{Path: "fabric.topology", Value: "{star: {hosts: 3}}"},
	{Path: "fabric.host_link", Value: "33Gbps"},
	{Path: "workload", Value: "[" + fig2Flow("reads", "reads", "0B", 2048) + ", " +
		fig2Flow("writes", "writes", "0B", 1024) + "]"},
}

// fig2Others adds reads from the other target, which share the initiator's link: they cause the congestion, and halve
// the first target's rate.
var fig2Others = shape.Change{Path: "workload",
	Value: "[" + fig2Flow("reads", "reads", "0B", 2048) + ", " + fig2Flow("writes", "writes", "0B", 1024) + ", " +
		fig2Flow("others", "reads", "512MiB", 2048) + "]"}

func fig2Flow(name, kind, start string, outstanding int) string {
	return fmt.Sprintf("{name: %s, synthetic: {%s: {size: 16KiB, addresses: {start: %s, space: 512MiB, align: "+
		"16KiB}}}, closed: %d}", name, kind, start, outstanding)
}

func runSrcFig2(ctx context.Context, o Options) (*Report, error) {
	r := &Report{}
	congested := with(fig2Load, fig2Others)
	const none, dcqcn, src = "no congestion", "DCQCN", "SRC"
	arms, err := srcArms(ctx, o, r, map[string][]shape.Change{
		none: fig2Load, dcqcn: congested, src: with(congested, underSRC...),
	}, []string{none, dcqcn, src})
	if err != nil {
		return nil, err
	}
	// Requests of a kind completed by the first target's drive per time unit.
	perUnit := func(a *srcArm, kind string) []float64 {
		x := a.each("ssd[0]." + kind + ".count")
		for i := range x {
			// over the measured time
			x[i] *= fig2Unit * value(a.runs[i].result, "all.iops") / value(a.runs[i].result, "all.count")
		}
		return x
	}
	sum := map[string][]float64{}
	for _, x := range []struct {
		arm                 string
		reads, writes, both float64 // the paper's
		says                string
	}{
		{none, 6, 3, 9, "the overall throughput (including both read and write requests) is 9 I/Os per time unit"},
		{dcqcn, 3, 3, 6, "The overall throughput is consequently reduced from 9 to 6"},
		{src, 3, 6, 9, "the overall throughput maintains the same (i.e., 9 per time unit) as the situation with no " +
			"congestion"},
	} {
		reads, writes := perUnit(arms[x.arm], "read"), perUnit(arms[x.arm], "write")
		both := make([]float64, len(reads))
		for i := range both {
			both[i] = reads[i] + writes[i]
		}
		sum[x.arm] = both
		for _, y := range []struct {
			metric string
			paper  float64
			ours   []float64
		}{{"reads", x.reads, reads}, {"writes", x.writes, writes}, {"both", x.both, both}} {
			in, err := stats.Replicates(y.ours, 0.95)
			if err != nil {
				return nil, err
			}
			r.Rows = append(r.Rows,
				Row{Label: x.arm, Metric: y.metric, Paper: number(y.paper), Ours: in.Mean, Unit: "a unit",
					Meets: near(y.paper, 0.1), Quote: x.says,
					Expect: "within 10 %; " + intervalWords(in, o.seeds(srcSeeds)), Because: fig2Because[x.arm]})
		}
	}
	for _, x := range []struct {
		over, under, says, expect string
		meets                     Criterion
		low                       bool
	}{
		{dcqcn, none, "The overall throughput is consequently reduced from 9 to 6", "a collapse: below 0.8",
			below(0.8), false},
		{src, dcqcn, "The overall performance is thus degraded ... we propose a new Storage-side Rate Control (SRC) " +
			"mechanism", "above 1", above(1), true},
	} {
		ratio := make([]float64, len(sum[x.over]))
		for i := range ratio {
			ratio[i] = sum[x.over][i] / sum[x.under][i]
		}
		in, err := stats.Replicates(ratio, 0.95)
		if err != nil {
			return nil, err
		}
		ours := in.High()
		end := "upper"
		if x.low {
			ours, end = in.Low(), "lower"
		}
		r.Rows = append(r.Rows,
			Row{Label: x.over + " over " + x.under + ", " + end + " end of the interval", Metric: "both", Ours: ours,
				Unit: "x", Meets: x.meets, Quote: x.says,
				Expect: x.expect + "; " + intervalWords(in, o.seeds(srcSeeds))})
	}
	return r, nil
}

// fig2Because explains where the example is too simple.
var fig2Because = map[string]string{
	"no congestion": "a transmit queue of 512 KiB and a link with no capacity to spare hold back a few reads, and " +
		"waiting reads keep their slots in the drive",
	"DCQCN": "in the example writes continue as before. Here reads whose data finds no space in the transmit " +
		"queue keep their slots in the drive, so fewer writes reach it, and the requests for write data wait in " +
		"the same queue",
	"SRC": "DCQCN demands what the target gets to send, 15 Gbit/s. Reads at that rate keep the transmit queue full, and " +
		"those that wait keep their slots in the drive; a constant weight ratio of 4 empties it, and completes more",
}
