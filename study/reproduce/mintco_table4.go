package reproduce

import (
	"context"
	"fmt"

	"farflash/numeric/rng"
	"farflash/planner/tco"
)

func mintcoTable4() Experiment {
	return Experiment{ID: "mintco-table4",
		Title: "Cost of 20 drives of 9 models under 100 of the workloads that are printed, by placement",
		Paper: mintcoPaper + "table 4",
		inputs: "drives of the catalogue at assumed prices, 100 workloads drawn from the 16 of table 4, the WAF of " +
			"equation 7; 525 days, 30 draws", run: runMintcoTable4}
}

// runMintcoTable4 runs figure 7's comparison on 100 workloads drawn with replacement from the 16 printed in the paper,
// instead of draws from a fit to them. The table itself is an input: a workload's effect on a drive alone is the write
// amplification formula.
func runMintcoTable4(ctx context.Context, o Options) (*Report, error) {
	r := &Report{}
	cfg := tco.PaperConfig()
	drives, err := o.drives(mintcoDrives(cfg.Mode))
	if err != nil {
		return nil, err
	}
	fit, err := fitted()
	if err != nil {
		return nil, err
	}
	seeds := o.seeds(mintcoSeeds)
	runs := make([][]fig7Run, fig7Ours)
	for k := range runs {
		runs[k] = make([]fig7Run, seeds)
	}
	err = overSeeds(ctx, o, seeds, func(i int, seed uint64) error {
		jobs := o.jobs(drawn(fit, seed))
		for k, policy := range fig7Policies[:fig7Ours] {
			_, a, err := tco.Online(tco.AllocatorConfig{Config: cfg, Policy: o.policy(policy),
				Weights: tco.DefaultWeights(), Seed: seed}, drives, jobs)
			if err != nil {
				return err
			}
			if a.Refused > 0 {
				return fmt.Errorf("%v, seed %d: %d workloads are refused", policy, seed, a.Refused)
			}
			runs[k][i] = fig7Run{cost: a.CostPerGB(), countCV: a.WorkloadsCV}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	r.Scenarios = append(r.Scenarios, mintcoSettings(cfg, drives))
	placements(r, cfg, runs)
	return r, nil
}

// drawn returns 100 of the printed workloads, with the arrivals of figure 7.
func drawn(fit *tco.Fit, seed uint64) []tco.Workload {
	printed, pick := tco.Table4(), rng.NewStream(seed, "reproduce/mintco-table4")
	list := fit.Draw(seed, 100, 525)
	for i := range list {
		x := printed[pick.IntN(int64(len(printed)))]
		x.Name, x.Arrival = list[i].Name, list[i].Arrival
		list[i] = x
	}
	return list
}
