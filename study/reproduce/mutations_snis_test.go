package reproduce

import (
	"fmt"

	"farflash/scenario/shape"
)

// Mutations for the rows of SNIS, and for two flows on one drive.

// set is one change of a scenario.
func set(path, value string) shape.Change { return shape.Change{Path: path, Value: value} }

var fairnessMutations = []mutation{
	{name: "flow 1 has 256 outstanding", rows: `slowdown of flow 2|floods it\tslowdown`,
		changes: all(set("workload[0].closed", "256"))},
	{name: "flow 2 has 8 outstanding", rows: `floods it\tfairness`, changes: all(set("workload[1].closed", "8"))},
	{name: "each flow has channels of its own", rows: `flash|queues`,
		changes: all(set("ssd.namespaces", "[{channels: [0, 1, 2, 3]}, {channels: [4, 5, 6, 7]}]"),
			set("workload[1].namespace", "1"))},
}

var snisFig2Mutations = []mutation{
	{name: "nothing is cached", rows: `to 2us|64KiB, reads over`, changes: all(set("ssd.cache.mode", "off"))},
	{name: "nothing is cached, and flash is programmed in 2 us, on 64 channels", rows: ``,
		changes: all(set("ssd.cache.mode", "off"), set("ssd.geometry.channels", "64"),
			set("ssd.timing.program_latency", "2us"))},
}

// criteria are other parameters of the convergence test.
func criteria(threshold string, stableFor int) []shape.Change {
	return []shape.Change{set("coupling.iterative.threshold", threshold),
		set("coupling.iterative.stable_for", fmt.Sprint(stableFor))}
}

var snisTable2Mutations = []mutation{
	{name: "converged is below 0.3 %", rows: `^F_s_m\titerations`, changes: all(criteria("0.3%", 3)...)},
	{name: "converged is below 0.6 %, or stable once", rows: `^F_s_h\titerations`,
		changes: all(criteria("0.6%", 1)...)},
	{name: "converged is below 0.6 %, or stable twice", rows: `^F_t_.\titerations|^F_s_m and`,
		changes: all(criteria("0.6%", 2)...)},
	{name: "two iterations, and converged is below 0.001 %", rows: `converge`,
		changes: all(append(criteria("0.001%", 3), set("coupling.iterative.iterations", "2"))...)},
	{name: "moderate arrivals are as heavy ones", rows: `less F_t_h`,
		changes: in("^F_t_m", snisRows[snisHeavy].changes()...)},
	{name: "of Tencent's sizes converged is below 0.3 %", rows: `differ`,
		changes: in("Tencent", criteria("0.3%", 3)...)},
}

var snisFig4Mutations = []mutation{
	{name: "1,000 requests", rows: `iteration 1|90th`, changes: all(set("workload[0].synthetic.requests", "1000"))},
	{name: "light arrivals are as moderate ones", rows: `F_t_l, from`, changes: in("^F_t_l", snisRows[1].changes()...)},
	{name: "a write's delay is SD_i - A", rows: `over that of the median`,
		changes: all(set("coupling.iterative.write_delay", "departure"))},
}

var snisFig5Mutations = []mutation{
	{name: "100 requests", rows: `any two iterations`, changes: all(set("workload[0].synthetic.requests", "100"))},
	{name: "300 requests", rows: ``, changes: all(set("workload[0].synthetic.requests", "300"))},
}

var snisFig6Mutations = []mutation{
	{name: "the threshold is fixed, and a write comes every 10 us", rows: `dynamic|5 us\twrites`,
		changes: all(set("fabric.pfc.threshold", "20600B"),
			set("workload[0].synthetic.writes.interarrival.mean", "10us"))},
	{name: "switches do not pause, and hold 100 MB", rows: ``,
		changes: all(set("fabric.pfc.enabled", "false"), set("fabric.buffer", "100MB"))},
}

var snisFig7Mutations = []mutation{
	{name: "writes are of 19 KB", rows: `F_s_h`, changes: all(set("workload[0].synthetic.writes.size.mean", "19KB"))},
	{name: "100 requests", rows: `F_s_m`, changes: all(set("workload[0].synthetic.requests", "100"))},
}
