package reproduce

import (
	"context"
	"fmt"
	"math"
)

// mqsim-fairness: the mutual slowdown of two flows on one drive, and its imbalance (Tavakkol et al., FAST 2018, the
// section on concurrent flows).
//
// The paper's three experiments each run two flows together and each alone: in the flash behind the interface, in the
// drive's data cache, and in the queues from which the drive fetches. The slowdown of a flow is its mean response time
// over that when it runs alone, and the fairness is the smallest slowdown over the largest. The inputs are those of the
// folder fast18 distributed with the simulator: two flows of uniformly random reads of 4 KiB on all dies, the first
// with a fixed number of outstanding requests, 2 for the flash and 8 for the queues, the second with 2 (8) to 256; half
// of the addresses are in use, queues are fetched 16 or 1,024 commands deep, and the map is ideal. For the data cache
// they are flows of writes on separate channels, the second one to more addresses than the cache can hold.
//
// The text's figures are not available: the rows test the statements of the section, and contain no number of the
// paper. Here the flows of reads run for 60 ms and those of writes for 400 ms instead of ten seconds, on the drive
// distributed with the simulator; for the writes its cache and its number of blocks are smaller, so that the cache is
// full before the warm-up of 100 ms ends.
func mqsimFairness() Experiment {
	return Experiment{
		ID:    "mqsim-fairness",
		Title: "Two flows on one drive: slowdown and fairness",
		Paper: "Tavakkol et al., MQSim: A Framework for Enabling Realistic Studies of Modern Multi-Queue SSD " +
			"Devices, FAST 2018, interference of concurrent flows",
		inputs: "the drive that MQSim is distributed with; two closed flows of uniformly random 4 KiB reads, or of " +
			"writes on channels of their own",
		run: runMQSimFairness,
	}
}

// fairnessPoint is the result of two flows together.
type fairnessPoint struct{ first, second, fairness float64 }

// fairnessScenario has two flows of reads with the given numbers of outstanding requests.
func fairnessScenario(name string, chips, fetch, first, second int) string {
	flow := func(name string, depth int) string {
		return fmt.Sprintf("  - {name: %s, closed: %d, until: 60ms, synthetic: {reads: {size: 4KiB, addresses: "+
			"{align: 8KiB}}}}\n", name, depth)
	}
	return fmt.Sprintf("name: %s\nworkload:\n%s%sssd: {preset: mqsim-default, geometry: {chips_per_channel: %d}, "+
		"mapping: {ideal: true}, host: {fetch_size: %d}, preconditioning: {fill: sequential, occupancy: "+
		"75%%}}\nmeasure: {alone: true}\n",
		name, flow("flow-1", first), flow("flow-2", second), chips, fetch)
}

// cacheScenario has two flows of writes: the first to addresses that fit in the cache, the second to all addresses of
// its channels.
func cacheScenario(second int, space string) string {
	flow := func(name string, depth, namespace int, space string) string {
		return fmt.Sprintf("  - {name: %s, closed: %d, until: 400ms, namespace: %d, synthetic: {writes: {size: 4KiB, "+
			"addresses: {align: 8KiB, space: %s}}}}\n", name, depth, namespace, space)
	}
	return fmt.Sprintf("name: fairness-cache-%d-%s\nworkload:\n%s%sssd: {preset: mqsim-default, mapping: {ideal: "+
		"true}, geometry: {blocks_per_plane: 256}, cache: {capacity: 16MiB}, namespaces: [{channels: [0, 1, 2, 3]}, "+
		"{channels: [4, 5, 6, 7]}]}\nmeasure: {alone: true, warm_up: 100ms}\n",
		second, space, flow("flow-1", 8, 0, "4MiB"), flow("flow-2", second, 1, space))
}

func runMQSimFairness(ctx context.Context, o Options) (*Report, error) {
	r := &Report{}
	depths := []int{8, 32, 128, 256}
	done, all := 0, 3*len(depths)+1
	point := func(name, text string) (fairnessPoint, error) {
		m, err := measure(ctx, name+".yaml", text, o)
		if err != nil {
			return fairnessPoint{}, err
		}
		r.Scenarios = append(r.Scenarios, Named{name, text})
		if done++; o.Progress != nil {
			o.Progress(done, all)
		}
		return fairnessPoint{m["workload[0].slowdown.mean"], m["workload[1].slowdown.mean"], m["fairness.slowdown"]},
			nil
	}
	sweep := func(what, title string, chips, fetch, first int) ([]fairnessPoint, error) {
		var out []fairnessPoint
		c := [3]Curve{{Name: "flow 1"}, {Name: "flow 2"}, {Name: "fairness"}}
		for i := range c {
			c[i].Panel, c[i].XLabel, c[i].YLabel = title, "requests of flow 2 outstanding", "slowdown"
		}
		c[2].Panel, c[2].YLabel = title+": fairness", "least slowdown over greatest"
		for _, d := range depths {
			name := fmt.Sprintf("%s-%d", what, d)
			p, err := point(name, fairnessScenario(name, chips, fetch, first, d))
			if err != nil {
				return nil, err
			}
			out = append(out, p)
			for i, y := range []float64{p.first, p.second, p.fairness} {
				c[i].X, c[i].Y = append(c[i].X, float64(d)), append(c[i].Y, y)
			}
		}
		r.Curves = append(r.Curves, c[:]...)
		return out, nil
	}
	flash, err := sweep("fairness-flash", "Flash: flow 1 with 2 outstanding", 4, 512, 2)
	if err != nil {
		return nil, err
	}
	small, err := sweep("fairness-fetch16", "Queues fetched 16 deep: flow 1 with 8 outstanding", 2, 16, 8)
	if err != nil {
		return nil, err
	}
	large, err := sweep("fairness-fetch1024", "Queues fetched 1,024 deep: flow 1 with 8 outstanding", 2, 1024, 8)
	if err != nil {
		return nil, err
	}
	floods, err := point("fairness-cache-floods", cacheScenario(64, "4GiB"))
	if err != nil {
		return nil, err
	}
	last := len(depths) - 1
	growth := func(list []fairnessPoint, of func(fairnessPoint) float64) float64 {
		least := math.Inf(1)
		for i := 1; i < len(list); i++ {
			least = math.Min(least, of(list[i])/of(list[i-1]))
		}
		return least
	}
	first := func(p fairnessPoint) float64 { return p.first }
	unfair := func(p fairnessPoint) float64 { return 1 / p.fairness }
	r.Rows = []Row{
		row("flash, flow 2 from 8 to 256", "slowdown of flow 1, least growth from a point to the next", nil,
			growth(flash, first), "",
			"the busier flow 2, the more the flash makes flow 1 wait: by a twentieth at least", above(1.05)),
		row("flash, flow 2 with 256", "slowdown of flow 1", nil, flash[last].first, "", "flow 1 loses much",
			atLeast(2)),
		row("flash, flow 2 with 256", "slowdown of flow 2", nil, flash[last].second, "",
			"flow 2 loses hardly anything", atMost(1.1)),
		row("flash, flow 2 from 8 to 256", "unfairness, least growth from a point to the next", nil,
			growth(flash, unfair), "", "so sharing becomes less fair, by a twentieth at least", above(1.05)),
		row("queues fetched 1,024 deep, flow 2 with 256", "slowdown of flow 1", nil, large[last].first, "",
			"a drive that fetches all of flow 2 makes flow 1 wait behind it", atLeast(2)),
		row("queues fetched 16 deep, flow 2 with 256", "slowdown of flow 1, share of that at 1,024", nil,
			small[last].first/large[last].first, "", "requests in flow 2's own queue do not delay flow 1",
			atMost(0.6)),
		row("queues fetched 16 deep, flow 2 with 256", "fairness, over that at 1,024", nil,
			small[last].fairness/large[last].fairness, "", "so the smaller fetch size is fairer, by a tenth at least",
			above(1.1)),
		row("cache, flow 2 floods it", "slowdown of flow 1", nil, floods.first, "",
			"writes that no cache can hold displace flow 1's", atLeast(2)),
		row("cache, flow 2 floods it", "fairness", nil, floods.fairness, "", "flow 2 loses far less", atMost(0.7)),
	}
	for i := range r.Rows {
		r.Rows[i].Quote = interference
	}
	return r, nil
}

// interference is a quotation from the paper's abstract.
const interference = "MQSim uncovers several real and important issues that were not captured by existing " +
	"simulators, such as the performance impact of inter-flow interference in modern SSDs"
