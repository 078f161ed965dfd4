package reproduce

import (
	"farflash/planner/tco"
	"farflash/policy/ftl/waf"
)

// Mutations for the rows of minTCO's figures. If a row is about the best of several, the mutation puts another in its
// place.

// weigh changes weights of equation 5.
func weigh(f func(*tco.Weights)) func(tco.Weights) tco.Weights {
	return func(w tco.Weights) tco.Weights {
		f(&w)
		return w
	}
}

// wearing sets the drives' write amplification to points.
func wearing(points ...waf.MixPoint) func(*tco.Drive) {
	return func(d *tco.Drive) {
		t, err := tco.NewTable(points)
		if err != nil {
			panic(err) // the points are those below
		}
		d.WAF = t
	}
}

// instead replaces each number of zones by another.
func instead(zones ...int) func(int) int { return func(n int) int { return zones[n] } }

var fig6Mutations = []mutation{
	{name: "sequential writes come in runs of 64 pages at random places, not in loops",
		rows: `A\(0.4\)|turning point: A falls`, mix: func(e *waf.Experiment) { e.Run = 64 }},
	{name: "sequential writes go to random pages", rows: `A\(1\)`, mix: func(e *waf.Experiment) { e.Run = 1 }},
	{name: "journal, data and what is moved go to blocks of their own", rows: `with a journal`,
		mix: func(e *waf.Experiment) { e.Layout = waf.StreamsApart }},
}

// placementMutations flip the paper's statements about the cheapest and the most expensive policy.
func placementMutations(more ...mutation) []mutation {
	return append(more,
		mutation{name: "mintco-v1 places at random", rows: `mintco-v1 over mintco-v3`,
			policy: map[tco.Policy]tco.Policy{tco.MinTCOv1: tco.Random}},
		mutation{name: "mintco-v3 places as maxRemCycle does", rows: `mintco-v3|mintco-v2|maxRemCycle\t`,
			policy: map[tco.Policy]tco.Policy{tco.MinTCOv3: tco.MaxRemCycle}})
}

var table4Mutations = placementMutations(
	mutation{name: "mintco-v2 places in turns", rows: `maxRemCycle\t`,
		policy: map[tco.Policy]tco.Policy{tco.MinTCOv2: tco.RoundRobin}},
	mutation{name: "all drives have one price", rows: `what is left of the cost`,
		drive: func(d *tco.Drive) { d.Buy = 3000 }})

var fig7Mutations = placementMutations(
	mutation{name: "power costs twice as much", rows: `what is left of the cost`,
		drive: func(d *tco.Drive) { d.Run *= 2 }},
	mutation{name: "imbalance of space weighs 15", rows: `cost as a ratio|CV of used space$`,
		weights: weigh(func(w *tco.Weights) { w.SpaceCV = 15 })},
	mutation{name: "imbalance of space weighs 400", rows: `CV of used IOPS$`,
		weights: weigh(func(w *tco.Weights) { w.SpaceCV = 400 })},
	mutation{name: "use of space weighs 300", rows: `less \[5,1,1,2,2\]`,
		weights: weigh(func(w *tco.Weights) { w.Space = 300 })},
	mutation{name: "cost weighs 5,200", rows: `mintco-perf \[5,1,1,3,3\] over`,
		weights: weigh(func(w *tco.Weights) { w.Cost = 5200 })},
	mutation{name: "drives do a tenth of the IOPS", rows: `space used over IOPS used`,
		drive: func(d *tco.Drive) { d.IOPS /= 10 }},
	mutation{name: "each workload takes 300 GB", rows: `space used, mean of the drives, most`,
		job: func(w *tco.Workload) { w.WorkingSet = 300 }})

var fig8Mutations = []mutation{
	{name: "arrays write nothing twice", rows: `RAID.*money`, drive: func(d *tco.Drive) { d.Stripe = tco.Stripe{} }},
	{name: "mirrors hold as much as stripes", rows: `RAID-1\tspace used`, drive: func(d *tco.Drive) {
		if d.Stripe.FullBytes == 2 {
			d.Capacity *= 2
		}
	}},
	{name: "a write of RAID-5 is one I/O", rows: `RAID-1\tIOPS used`, drive: func(d *tco.Drive) {
		if d.Stripe.SmallIOs == 4 {
			d.Stripe.FullIOs, d.Stripe.SmallIOs = 1, 1
		}
	}},
	{name: "three zones place as greedy does, and all else in one or two zones", rows: `3 zones`,
		zones: instead(1, 2, 1, 0, 2, 2)},
	{name: "greedy places in one zone, and all else as greedy does", rows: `greedy\tCV`,
		zones: instead(1, 0, 0, 0, 0, 0)},
	{name: "two zones are one, and one is two", rows: `2 zones`, zones: instead(0, 2, 1, 2, 2, 2)},
	{name: "random writes are amplified 40 times and sequential ones not at all", rows: `grouping over greedy`,
		drive: wearing(waf.MixPoint{S: 0, WAF: 40}, waf.MixPoint{S: 0.55, WAF: 40}, waf.MixPoint{S: 0.65, WAF: 1},
			waf.MixPoint{S: 1, WAF: 1})},
}

var fig9Mutations = []mutation{
	{name: "greedy places in two zones", rows: `greedy`, zones: instead(2, 1, 2, 3, 4, 5)},
	{name: "zones are not sorted: all is placed as greedy does", rows: `zone`, zones: instead(0, 0, 0, 0, 0, 0)},
}

var fig10Mutations = []mutation{
	{name: "sequential writes are amplified, and random ones not at all", rows: `k below`,
		drive: wearing(waf.MixPoint{S: 0, WAF: 1}, waf.MixPoint{S: 1, WAF: 4})},
}
