package reproduce

import (
	"context"

	"farflash/tco"
)

func mintcoTable4() Experiment {
	return Experiment{ID: "mintco-table4", Title: "The 16 workloads as printed: what each does to a drive by itself, and where they go together",
		Paper: mintcoPaper + "table 4", run: runMintcoTable4}
}

func runMintcoTable4(_ context.Context, o Options) (*Report, error) {
	r := &Report{}
	jobs := tco.Table4()
	alone, err := mintcoPool[0].drive(tco.Corrected)
	if err != nil {
		return nil, err
	}
	cfg := tco.DefaultConfig()
	cfg.Horizon = 0
	c := Curve{Panel: "Years that a drive lasts under each workload alone", Name: "years", XLabel: "workload of table 4", YLabel: "years"}
	for j := range jobs {
		w := &jobs[j]
		a, err := tco.Assess(cfg, []tco.Drive{alone}, jobs[j:j+1], []int{0})
		if err != nil {
			return nil, err
		}
		years := a.Drives[0].Lifetime / tco.Year
		want := alone.Budget / (w.WriteRate * alone.WAF.At(w.Sequential)) / tco.Year
		r.Rows = append(r.Rows, row(w.Name, "GB a day to the NAND", nil, w.WriteRate*a.Drives[0].WAF, "GB", "lambda A(S), from the printed lambda and S by equation 7", atLeast(w.WriteRate)),
			row(w.Name, "years that "+alone.Name+" lasts", nil, years, "", "W/(lambda A): without a horizon lifetimes are absurd", near(want, 1e-9)))
		c.X, c.Y, c.Names = append(c.X, float64(j)), append(c.Y, years), append(c.Names, w.Name)
	}
	r.Curves = append(r.Curves, c)
	for _, cfg := range bothModes() {
		drives, err := mintcoDrives(cfg.Mode)
		if err != nil {
			return nil, err
		}
		pl, a, err := tco.Online(tco.AllocatorConfig{Config: cfg, Policy: tco.MinTCOv3, Seed: o.Seed}, drives, jobs)
		if err != nil {
			return nil, err
		}
		best, bound, err := bestPlan(cfg, drives, jobs, pl.Host, 60_000)
		if err != nil {
			return nil, err
		}
		mode := modeName(cfg)
		label := mode + ": all on the 20 drives of figure 7"
		r.Rows = append(r.Rows, row(label, "money a GB, plan with hindsight over mintco-v3", nil, best/a.CostPerGB(), "x", "no dearer", atMost(1+tie)),
			row(label, "above the proven bound", nil, 100*(best/bound-1), "%", "within 10 %: 16 workloads on 20 drives leave gaps of whole drives", between(0, 10)))
		r.tell(label, "money a GB, mintco-v3", a.CostPerGB(), "$", "our prices")
		r.Scenarios = append(r.Scenarios, mintcoSettings(cfg, drives))
	}
	return r, nil
}
