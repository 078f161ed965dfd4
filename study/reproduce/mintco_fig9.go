package reproduce

import (
	"context"
	"fmt"
	"math"

	"farflash/numeric/stats"
	"farflash/planner/tco"
)

func mintcoFig9() Experiment {
	return Experiment{ID: "mintco-fig9", Title: "Sequential ratios over drives and zones, 1359 workloads offline",
		Paper: mintcoPaper + "figure 9", inputs: mintcoInputs + "; 1359 workloads at once", run: runMintcoFig9}
}

func runMintcoFig9(_ context.Context, o Options) (*Report, error) {
	r := &Report{}
	fit, err := fitted()
	if err != nil {
		return nil, err
	}
	jobs := o.jobs(fit.Draw(o.Seed, offlineWorkloads, 0))
	for _, cfg := range bothModes() {
		models, err := o.drives(oneModel(cfg.Mode))
		if err != nil {
			return nil, err
		}
		r.Scenarios = append(r.Scenarios, mintcoSettings(cfg, models))
		for zones := range mostZones + 1 {
			x, a, err := zoned(o, cfg, models[0], jobs, zones)
			if err != nil {
				return nil, err
			}
			c := Curve{Panel: fmt.Sprintf("Sequential ratio of each drive, %s, %s", zoneName(zones), modeName(cfg)),
				Name: "sequential ratio", XLabel: "drive", YLabel: "sequential ratio of its writes", Dots: true}
			spread, mean, rises := 0.0, 0.0, 0
			for k := range a.Drives {
				s := a.Drives[k].Sequential
				c.X, c.Y = append(c.X, float64(k+1)), append(c.Y, s)
				mean += s / float64(len(a.Drives))
				if k > 0 && s > a.Drives[k-1].Sequential {
					rises++
				}
			}
			for k := range a.Drives {
				spread += (a.Drives[k].Sequential - mean) * (a.Drives[k].Sequential - mean) / float64(len(a.Drives))
			}
			label, row := modeName(cfg)+": "+zoneName(zones), r.inMode(cfg)
			if zones == 0 {
				row(Row{Label: zoneName(zones), Metric: "deviation of the drives' ratios", Ours: math.Sqrt(spread),
					Meets: below(0.1), Expect: "below 0.1: every drive has a similar mix",
					Quote: "The greedy approach's sequential ratio distribution is similar to a randomized curve"})
			} else {
				row(Row{Label: zoneName(zones), Metric: "drives that are more sequential than the one before",
					Ours: float64(rises), Unit: "count", Meets: exactly(0),
					Expect: fmt.Sprintf("none of %d", len(a.Drives)),
					Quote:  "all these grouping approaches unsurprisingly have monotone decreasing curves",
					Because: "within a zone the distribution balances write rates, and a drive that is opened " +
						"late gets the remainder"})
			}
			if zones > 0 {
				r.tell(label, "deviation of the drives' ratios", math.Sqrt(spread), "", "")
			}
			r.tell(label, "drives", float64(len(x.Drives)), "", "")
			r.Curves = append(r.Curves, c)
		}
	}
	return r, nil
}

func mintcoFig10() Experiment {
	return Experiment{ID: "mintco-fig10",
		Title:  "From which difference of write rates grouping costs more than greedy",
		Paper:  mintcoPaper + "figure 10",
		inputs: mintcoInputs + "; 200 workloads above and 200 below the threshold, 30 draws", run: runMintcoFig10}
}

// fig10Ks are lambda_L/lambda_H, the write rate of the workloads below the threshold over that of the others.
var fig10Ks = []float64{0.2, 0.35, 0.5, 0.7, 0.85, 1, 1.1, 1.2, 1.31, 1.5, 1.8, 2.2, 3, 4, 6, 10, 20}

// fig10Workloads is the number of workloads of each group, which the paper does not state. With equal numbers on each
// side of the threshold, both need about as many drives, and k is also the ratio of the drives' rates, as the argument
// of section 4.4 requires.
const fig10Workloads = 200

// halves draws equal numbers of workloads above and below the threshold.
func halves(fit *tco.Fit, seed uint64) []tco.Workload {
	var list []tco.Workload
	high, low := 0, 0
	for _, w := range fit.Draw(seed, 40*fig10Workloads, 0) {
		n := &low
		if w.Sequential >= tco.PaperThreshold {
			n = &high
		}
		if *n < fig10Workloads {
			*n++
			list = append(list, w)
		}
	}
	return list
}

func runMintcoFig10(ctx context.Context, o Options) (*Report, error) {
	r := &Report{}
	fit, err := fitted()
	if err != nil {
		return nil, err
	}
	seeds := o.seeds(mintcoSeeds)
	for _, cfg := range bothModes() {
		models, err := o.drives(oneModel(cfg.Mode))
		if err != nil {
			return nil, err
		}
		model := models[0]
		r.Scenarios = append(r.Scenarios, mintcoSettings(cfg, models))
		better, same := make([][]float64, len(fig10Ks)), make([][]bool, len(fig10Ks))
		for k := range better {
			better[k], same[k] = make([]float64, seeds), make([]bool, seeds)
		}
		err = overSeeds(ctx, o, seeds, func(i int, seed uint64) error {
			for k, ratio := range fig10Ks {
				jobs := o.jobs(halves(fit, seed))
				high, low := 0.0, 0.0
				for j := range jobs {
					if jobs[j].Sequential >= tco.PaperThreshold {
						high += jobs[j].WriteRate
					} else {
						low += jobs[j].WriteRate
					}
				}
				// Keep the sum, with lambda_L = k lambda_H.
				all := high + low
				for j := range jobs {
					if jobs[j].Sequential >= tco.PaperThreshold {
						jobs[j].WriteRate *= all / (1 + ratio) / high
					} else {
						jobs[j].WriteRate *= all * ratio / (1 + ratio) / low
					}
				}
				_, greedy, err := zoned(o, cfg, model, jobs, 0)
				if err != nil {
					return err
				}
				_, grouping, err := zoned(o, cfg, model, jobs, 2)
				if err != nil {
					return err
				}
				better[k][i] = 100 * (1 - grouping.CostPerGB()/greedy.CostPerGB())
				same[k][i] = len(grouping.Drives) == len(greedy.Drives)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		fig10Rows(r, cfg, better, same)
	}
	return r, nil
}

// fig10Rows adds rows over all seeds, and over those in which both approaches buy equal numbers of drives: an
// additional drive for the remainder of a zone outweighs the gain of sorting.
func fig10Rows(r *Report, cfg tco.Config, better [][]float64, same [][]bool) {
	mode := modeName(cfg)
	all := Curve{Panel: "Grouping against greedy, " + mode, Name: "all seeds", XLabel: "(k-1)/(k+1), in %",
		YLabel: "cheaper by, in %"}
	equal := all
	equal.Name = "as many drives"
	crossing, last, before := math.NaN(), math.NaN(), math.NaN()
	worst := stats.Interval{Mean: math.NaN(), Half: math.NaN()} // of those at which grouping should be better
	worstAt := 0.0
	for k, ratio := range fig10Ks {
		at := 100 * (ratio - 1) / (ratio + 1)
		var v []float64
		for i := range better[k] {
			if same[k][i] {
				v = append(v, better[k][i])
			}
		}
		x := interval(better[k])
		all.X, all.Y = append(all.X, at), append(all.Y, x.Mean)
		r.tell(fmt.Sprintf("%s: k = %v", mode, ratio), "grouping cheaper by, all seeds", x.Mean, "%", plusMinus(x))
		if len(v) < 3 {
			continue
		}
		y := interval(v)
		equal.X, equal.Y = append(equal.X, at), append(equal.Y, y.Mean)
		r.tell(fmt.Sprintf("%s: k = %v", mode, ratio), "grouping cheaper by, as many drives", y.Mean, "%",
			fmt.Sprintf("%d seeds, %s", len(v), plusMinus(y)))
		if at < 100*tco.PaperSwitch-0.1 && !(worst.Low() <= y.Low()) {
			worst, worstAt = y, ratio
		}
		if ratio > 1 && last > 0 && y.Mean <= 0 && math.IsNaN(crossing) {
			crossing = before + (at-before)*last/(last-y.Mean)
		}
		last, before = y.Mean, at
	}
	r.Curves = append(r.Curves, all, equal)
	r.inMode(cfg)(Row{Label: "k below 1.31, as many drives",
		Metric: "grouping cheaper by, lower end of the interval, least", Ours: worst.Low(), Unit: "%", Meets: above(0),
		Quote:  "when k is less than 1.31 (i.e., delta = 13.46%), the grouping approach is better",
		Expect: fmt.Sprintf("above 0; at k = %v, mean %.3g, %s", worstAt, worst.Mean, plusMinus(worst)),
		Because: "it is cheaper on the mean of the draws at every k, but the draws vary too much to conclude it " +
			"for all"})
	if cfg.Mode != tco.Paper {
		return
	}
	row := row(mode+", as many drives", "grouping is dearer from", number(tco.PaperSwitch*100), crossing, "%",
		"within a tenth", near(tco.PaperSwitch*100, 0.1))
	row.Because = fmt.Sprintf(
		"with as many drives grouping never costs more up to %.1f %% (k = %v): the crossover depends on the drive "+
			"and workloads, which are not printed", before, fig10Ks[len(fig10Ks)-1])
	if !math.IsNaN(crossing) {
		row.Because = "the crossover depends on the drive and workloads, which are not printed"
	}
	r.Rows = append(r.Rows, row)
}
