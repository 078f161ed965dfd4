package reproduce

import (
	"context"
	"fmt"
	"math"

	"farflash/stats"
	"farflash/tco"
	"farflash/tco/bound"
	"farflash/tco/certify"
)

func mintcoFig8() Experiment {
	return Experiment{ID: "mintco-fig8", Title: "RAID 0, 1, 5 and a mix on 8 sets of 6 drives; 1359 workloads offline by 1 to 5 zones",
		Paper: mintcoPaper + "figure 8", run: runMintcoFig8}
}

// raidMixes are the four cases: the mode of each of the 8 sets in turn.
var raidMixes = []struct {
	name  string
	kinds []tco.ArrayKind
}{{"RAID-0", []tco.ArrayKind{tco.RAID0}}, {"RAID-1", []tco.ArrayKind{tco.RAID1}}, {"RAID-5", []tco.ArrayKind{tco.RAID5}}, {"mix", []tco.ArrayKind{tco.RAID0, tco.RAID1, tco.RAID5}}}

// raidSets are 8 sets of 6 drives, one of each of the pool's first 8 models.
func raidSets(mode tco.Mode, kinds []tco.ArrayKind) ([]tco.Drive, error) {
	var list []tco.Drive
	for i := range 8 {
		d, err := mintcoPool[i].drive(mode)
		if err == nil {
			d, err = tco.Array{Kind: kinds[i%len(kinds)], Drives: 6}.Of(d, mode)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	return list, nil
}

// offlineWorkloads is how many the paper places offline.
const offlineWorkloads = 1359

// zoneThresholds are those of a number of zones of equal width; of 2 the paper's; 0 zones are the greedy approach. One zone is sorted
// but not divided: nothing lies below its threshold.
func zoneThresholds(zones int) []float64 {
	switch zones {
	case 0:
		return nil
	case 1:
		return []float64{1e-12}
	case 2:
		return []float64{tco.PaperThreshold}
	}
	return tco.EvenThresholds(zones)
}

// zoned places workloads offline with a number of zones, kept apart whatever their rates.
func zoned(cfg tco.Config, model tco.Drive, jobs []tco.Workload, zones int) (*tco.OfflineResult, *tco.Assessment, error) {
	cfg.WarmUp = false
	r, err := tco.Offline(tco.OfflineConfig{Config: cfg, Thresholds: zoneThresholds(zones), Switch: 2}, model, jobs)
	if err != nil {
		return nil, nil, err
	}
	a, err := tco.Assess(cfg, r.Drives, jobs, r.Host)
	return r, a, err
}

const mostZones = 5

// hindsightSeeds is over how many of the seeds plans with hindsight are made, which take most of the time.
const hindsightSeeds = 10

func zoneName(zones int) string {
	switch zones {
	case 0:
		return "greedy"
	case 1:
		return "1 zone"
	}
	return fmt.Sprintf("%d zones", zones)
}

func runMintcoFig8(ctx context.Context, o Options) (*Report, error) {
	r := &Report{}
	fit, err := fitted()
	if err != nil {
		return nil, err
	}
	for _, cfg := range bothModes() {
		if err := fig8Arrays(ctx, o, r, cfg, fit); err != nil {
			return nil, err
		}
		if err := fig8Zones(ctx, o, r, cfg, fit); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func fig8Arrays(ctx context.Context, o Options, r *Report, cfg tco.Config, fit *tco.Fit) error {
	runs := make([][]fig7Run, len(raidMixes))
	for k := range runs {
		runs[k] = make([]fig7Run, mintcoSeeds)
	}
	sets := make([][]tco.Drive, len(raidMixes))
	for k := range raidMixes {
		var err error
		if sets[k], err = raidSets(cfg.Mode, raidMixes[k].kinds); err != nil {
			return err
		}
	}
	err := overSeeds(ctx, o, mintcoSeeds, func(i int, seed uint64) error {
		jobs := fit.Draw(seed, 100, 525)
		for k := range raidMixes {
			_, a, err := tco.Online(tco.AllocatorConfig{Config: cfg, Policy: tco.MinTCOPerf, Weights: tco.DefaultWeights()}, sets[k], jobs)
			if err != nil {
				return err
			}
			runs[k][i] = fig7Run{cost: a.CostPerGB(), space: a.SpaceShare, iops: a.IOPSShare, spaceCV: a.SpaceCV, iopsCV: a.IOPSCV, limited: a.EnduranceLimited}
		}
		return nil
	})
	if err != nil {
		return err
	}
	mode := modeName(cfg)
	mean := func(k int, f func(*fig7Run) float64) float64 { return interval(column(runs[k], f)).Mean }
	cost := func(x *fig7Run) float64 { return x.cost }
	space, io := func(x *fig7Run) float64 { return x.space }, func(x *fig7Run) float64 { return x.iops }
	c := Curve{Panel: "Money a GB over RAID-0, " + mode, Name: "mean of the seeds", XLabel: "arrays", YLabel: "money a GB over RAID-0"}
	for k := range raidMixes {
		x := interval(ratios(column(runs[k], cost), column(runs[0], cost)))
		r.tell(mode+": "+raidMixes[k].name, "money a GB over RAID-0", x.Mean, "x", plusMinus(x))
		c.X, c.Y, c.Names = append(c.X, float64(k)), append(c.Y, x.Mean), append(c.Names, raidMixes[k].name)
	}
	r.Curves = append(r.Curves, c)
	over := func(a, b int) stats.Interval { return interval(ratios(column(runs[a], cost), column(runs[b], cost))) }
	const raid0, raid1, raid5, mix = 0, 1, 2, 3
	for _, u := range []struct {
		a, b int
		says string
	}{
		{raid1, raid5, "RAID-1 has the highest TCO since it duplicates each I/O, followed by RAID-5"}, {raid5, raid0, "RAID-0 has zero replica so its TCO per data is the lowest"},
		{mix, raid5, "The results of the mix case is in between RAID-1 and RAID-5"}, {raid1, mix, "The results of the mix case is in between RAID-1 and RAID-5"},
	} {
		x := over(u.a, u.b)
		r.Rows = append(r.Rows, Row{Label: mode + ": " + raidMixes[u.a].name + " over " + raidMixes[u.b].name, Metric: "money a GB", Ours: x.Mean, Unit: "x", Meets: above(1), Says: u.says,
			Expect: "above 1, " + plusMinus(x), Because: "endurance binds nowhere in five years, so that what an array writes costs nothing"})
	}
	for _, u := range []struct {
		metric, because string
		f               func(*fig7Run) float64
	}{
		{"space used, over the most of the other arrays", "", space},
		{"IOPS used, over the most of the other arrays", "by the paper's equation 6 a small write takes 4 I/Os of RAID-5 and 2 of RAID-1", io},
	} {
		x := row(mode+": RAID-1", u.metric, nil, mean(1, u.f)/max(mean(0, u.f), mean(2, u.f), mean(3, u.f)), "x", "the greatest", above(1))
		x.Says, x.Because = "the average utilization ratios of both throughput and capacity of RAID-1 are the greatest among all, since it mirrors each I/O", u.because
		r.Rows = append(r.Rows, x)
	}
	return nil
}

func fig8Zones(ctx context.Context, o Options, r *Report, cfg tco.Config, fit *tco.Fit) error {
	model, err := mintcoPool[2].drive(cfg.Mode)
	if err != nil {
		return err
	}
	sets, err := raidSets(cfg.Mode, []tco.ArrayKind{tco.RAID5})
	if err != nil {
		return err
	}
	r.Scenarios = append(r.Scenarios, mintcoSettings(cfg, append(sets, model)))
	type run struct{ cost, disks, spaceCV, iopsCV, limited float64 }
	runs := make([][]run, mostZones+1)
	for z := range runs {
		runs[z] = make([]run, mintcoSeeds)
	}
	best, proved := make([]float64, hindsightSeeds), make([]float64, hindsightSeeds)
	err = overSeeds(ctx, o, mintcoSeeds, func(i int, seed uint64) error {
		jobs := fit.Draw(seed, offlineWorkloads, 0)
		for z := range runs {
			x, a, err := zoned(cfg, model, jobs, z)
			if err != nil {
				return err
			}
			runs[z][i] = run{a.CostPerGB(), float64(len(x.Drives)), a.SpaceCV, a.IOPSCV, a.EnduranceLimited}
		}
		if i >= hindsightSeeds {
			return nil
		}
		p := tco.Problem{Config: cfg, Classes: []tco.Class{{Drive: model, Count: 200, Optional: true}}, Jobs: jobs}
		p.Config.WarmUp = false
		x, err := bound.Optimise(tco.DefaultOptimiseConfig(), &p, nil)
		if err != nil {
			return err
		}
		if err := certify.Check(&p, x.Certificate); err != nil {
			return fmt.Errorf("the bound's certificate: %w", err)
		}
		best[i], proved[i] = x.CostPerGB(), x.Bound
		return nil
	})
	if err != nil {
		return err
	}
	of := func(z int, f func(*run) float64) []float64 {
		out := make([]float64, mintcoSeeds)
		for i := range out {
			out[i] = f(&runs[z][i])
		}
		return out
	}
	mode := modeName(cfg)
	cost, disks := func(x *run) float64 { return x.cost }, func(x *run) float64 { return x.disks }
	greedy := of(0, cost)
	c := Curve{Panel: "Money a GB over greedy, " + mode, Name: "mean of the seeds", XLabel: "zones", YLabel: "money a GB over greedy"}
	most, least := 0.0, math.Inf(1)
	for z := range runs {
		y := interval(ratios(of(z, cost), greedy))
		c.X, c.Y, c.Names = append(c.X, float64(z)), append(c.Y, y.Mean), append(c.Names, zoneName(z))
		less, equal, more := wins(of(z, cost), greedy)
		expect := "1 by definition"
		if z > 0 {
			expect = fmt.Sprintf("%s; wins %d, ties %d, loses %d against greedy", plusMinus(y), less, equal, more)
		}
		if z != 2 {
			least = min(least, y.Mean)
		}
		for i := range greedy {
			most = max(most, 1-runs[z][i].cost/greedy[i])
		}
		r.tell(mode+": "+zoneName(z), "money a GB over greedy", y.Mean, "x", expect)
		r.tell(mode+": "+zoneName(z), "drives", interval(of(z, disks)).Mean, "", "as many as the workloads' space takes, and one more or so for each further zone")
	}
	r.Curves = append(r.Curves, c)
	two := interval(ratios(of(2, cost), greedy))
	for _, b := range []struct {
		zones        int
		metric, says string
		f            func(*run) float64
	}{
		{3, "CV of used IOPS, over the least of the other approaches", "the 3-zone grouping case's I/O throughput is best balanced", func(x *run) float64 { return x.iopsCV }},
		{0, "CV of used space, over the least of the other approaches", "the greedy approach achieving the best balance in spatial capacity", func(x *run) float64 { return x.spaceCV }},
	} {
		others := math.Inf(1)
		for z := range runs {
			if z != b.zones {
				others = min(others, interval(of(z, b.f)).Mean)
			}
		}
		x := row(mode+": "+zoneName(b.zones), b.metric, nil, interval(of(b.zones, b.f)).Mean/others, "x", "the least, on the mean of the seeds", below(1))
		x.Says = b.says
		r.Rows = append(r.Rows, x)
	}
	limited := interval(of(0, func(x *run) float64 { return 100 * x.limited })).Mean
	const lowest = "2-zone grouping approach has the lowest TCO rate"
	r.Rows = append(r.Rows,
		Row{Label: mode + ": grouping against greedy", Metric: "cheaper by at most, in any seed and number of zones", Paper: number(83.53), Ours: 100 * most, Unit: "%", Meets: near(83.53, 0.1), Expect: "within a tenth",
			Says: "MINTCO-OFFLINE can also reduce TCO by up to 83.53 percent", Because: "of drives and workloads that are not printed, and against whom is not said; ours is against greedy"},
		Row{Label: mode + ": 2 zones over the cheapest of the others", Metric: "money a GB", Ours: two.Mean / least, Unit: "x", Meets: below(1), Says: lowest, Expect: "below 1, on the mean of the seeds",
			Because: "one to three zones are within a per cent of each other, and which is the cheapest rests on drives and workloads that are not printed; over five years zones cost space"})
	gap, mostGap := interval(ratios(best, proved)), 0.0
	for i := range best {
		mostGap = max(mostGap, best[i]/proved[i]-1)
	}
	saved := interval(ratios(best, greedy[:hindsightSeeds]))
	r.tell(mode+": greedy", "drives worn out before anything else ends them", limited, "%", "all without a horizon")
	for _, x := range []Row{
		{Metric: "money a GB over greedy", Ours: saved.Mean, Unit: "x", Expect: "at most 1, " + plusMinus(saved), Meets: atMost(1)},
		{Metric: "above the proven bound, mean of the seeds", Ours: 100 * (gap.Mean - 1), Unit: "%", Expect: "within 5 %, " + plusMinus(gap), Meets: atMost(5), Because: looserZones},
		{Metric: "most above the bound in any seed", Ours: 100 * mostGap, Unit: "%", Expect: "within 5 %", Meets: atMost(5), Because: looserZones},
	} {
		x.Label = mode + ": plan with hindsight, 10 seeds"
		r.Rows = append(r.Rows, x)
	}
	return nil
}
