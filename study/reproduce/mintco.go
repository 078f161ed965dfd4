package reproduce

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"farflash/numeric/stats"
	"farflash/planner/tco"
	"farflash/planner/tco/bound"
	"farflash/planner/tco/catalogue"
	"farflash/planner/tco/certify"
)

// The tables and figures of minTCO. Its drive table, its constants and all but 16 of its workloads are not printed, so
// no figure can be reproduced exactly except by chance: our inputs are stated here and in the experiments' output, and
// most rows test sentences about rankings, over 30 seeds.

const mintcoPaper = "Yang et al., I/O Workload Management for All-Flash Datacenter Storage Systems Based on Total " +
	"Cost of Ownership, IEEE Trans. Big Data 8(2), 2022, "

// mintcoSeeds is the number of draws of workloads behind a figure.
const mintcoSeeds = 30

// poolModel is the drives of one model in the pool of figure 7: 20 drives of 9 models from 2014 to 2016. Endurance,
// capacity and power are from the catalogue; prices and IOPS that it lacks are assumptions for that time.
type poolModel struct {
	name        string
	price, iops float64 // iops of reads; 0: the catalogue's
	count       int
}

var mintcoPool = []poolModel{
	{"Intel DC P3700 2TB", 3400, 0, 2}, {"Intel DC P3700 1.6TB", 2700, 0, 3}, {"Intel DC P3600 2TB", 2200, 0, 3},
	{"Intel DC P3608 4TB", 5600, 0, 2},
	{"HGST Ultrastar SN150 3.2TB", 8769, 300000, 1}, {"Memblaze PBlaze4 3.2TB", 3200, 300000, 2},
	{"SK hynix PE3100 960GB", 960, 100000, 2},
	{"Intel DC P3520 2TB", 1132, 100000, 3}, {"Samsung PM1725a U.2 6.4TB", 7000, 0, 2},
}

// drive builds one drive of a pool's model.
func (x *poolModel) drive(mode tco.Mode) (tco.Drive, error) {
	m, err := catalogue.Find(catalogue.Models(), x.name)
	if err != nil {
		return tco.Drive{}, err
	}
	m.Price = x.price
	if x.iops > 0 {
		m.ReadIOPS, m.WriteIOPS = x.iops, x.iops/4
	}
	if m.ActiveW == 0 {
		m.ActiveW, m.IdleW = 25, 8
	}
	return m.Drive(m.Name, mode, tco.DefaultCosts(), tco.DefaultDuty, 0.5)
}

// mintcoDrives returns the 20 drives.
func mintcoDrives(mode tco.Mode) ([]tco.Drive, error) {
	var list []tco.Drive
	for i := range mintcoPool {
		d, err := mintcoPool[i].drive(mode)
		if err != nil {
			return nil, err
		}
		for n := range mintcoPool[i].count {
			d.Name = fmt.Sprintf("%s #%d", mintcoPool[i].name, n+1)
			list = append(list, d)
		}
	}
	return list, nil
}

// mintcoSettings describes the assumptions, for the directory of an experiment.
func mintcoSettings(cfg tco.Config, drives []tco.Drive) Named {
	var b strings.Builder
	fmt.Fprintf(&b, "# Drives: endurance, capacity and power of the catalogue; prices and IOPS that it lacks are "+
		"assumed. Costs: electricity %v a kWh,\n"+
		"# PUE %v, duty %v, no setup, no labour. Workloads: drawn from a normal distribution fitted to table 4 on "+
		"the scales log (rate, peak,\n"+
		"# working set) and logit (sequential ratio, write share), with its covariances, cut off where the table "+
		"ends; arrivals are a Poisson process.\n"+
		"mode: %v\nhorizon_days: %v\nwarm_up: %v\ndrives:\n", tco.DefaultElectricity, tco.DefaultPUE, tco.DefaultDuty,
		cfg.Mode, cfg.Horizon, cfg.WarmUp)
	for i := range drives {
		d := &drives[i]
		fmt.Fprintf(&b, "  - {drive: %q, price: %v, running_a_day: %.5f, write_budget_gb: %v, capacity_gb: %v, iops: "+
			"%.0f, random_waf: %.4f}\n", d.Name, d.Buy, d.Run, d.Budget, d.Capacity, d.IOPS, d.WAF.At(0))
	}
	return Named{"settings, " + modeName(cfg), b.String()}
}

// bothModes are the settings for figures 7 to 10: the paper's, until the flash is worn out and with a warm-up, and ours
// over five years.
func bothModes() []tco.Config { return []tco.Config{tco.PaperConfig(), tco.DefaultConfig()} }

func modeName(c tco.Config) string {
	if c.Mode == tco.Paper {
		return "paper mode"
	}
	return "5 years"
}

// overSeeds calls f for each seed, in parallel on all processors.
func overSeeds(ctx context.Context, o Options, seeds int, f func(i int, seed uint64) error) error {
	errs := make([]error, seeds)
	var next, done atomic.Int64
	var tell sync.Mutex
	var all sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), seeds) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < seeds; i = int(next.Add(1)) - 1 {
				if errs[i] = ctx.Err(); errs[i] == nil {
					errs[i] = f(i, o.Seed+uint64(i))
				}
				tell.Lock()
				if n := done.Add(1); o.Progress != nil {
					o.Progress(int(n), seeds)
				}
				tell.Unlock()
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// interval returns the mean over seeds with its 95 % interval.
func interval(v []float64) stats.Interval {
	x, err := stats.Replicates(v, 0.95)
	if err != nil {
		return stats.Interval{Mean: math.NaN(), Half: math.NaN()}
	}
	return x
}

// plusMinus formats the half-width of an interval for a row.
func plusMinus(x stats.Interval) string { return fmt.Sprintf("95%% interval +-%.2g", x.Half) }

// tie is the relative difference up to which two costs are equal.
const tie = 1e-9

// wins counts the pairs in which a is less than b, equal and more.
func wins(a, b []float64) (less, equal, more int) {
	for i := range a {
		switch {
		case a[i] < b[i]*(1-tie):
			less++
		case a[i] > b[i]*(1+tie):
			more++
		default:
			equal++
		}
	}
	return less, equal, more
}

// ratios returns a[i]/b[i].
func ratios(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] / b[i]
	}
	return out
}

// mintcoShare is the tolerated deviation from a printed figure, as a share: the paper's drives, prices and most of its
// workloads are not printed, so that a closer match would be due to our assumptions.
const (
	mintcoShare = 0.1
	aTenth      = "within a tenth"
	unprinted   = "of drives, prices and workloads that are not printed"
)

// mintcoInputs are the inputs of all minTCO figures.
const mintcoInputs = "drives of the catalogue at assumed prices, workloads drawn from a fit to table 4, the WAF of " +
	"equation 7"

// inMode returns a function that adds rows. In the paper's mode, the only one in the paper, they have verdicts;
// five-year figures are printed without one.
func (r *Report) inMode(cfg tco.Config) func(Row) {
	mode := modeName(cfg) + ": "
	return func(x Row) {
		if cfg.Mode != tco.Paper {
			r.tell(mode+x.Label, x.Metric, x.Ours, x.Unit, "")
			return
		}
		x.Label = mode + x.Label
		r.Rows = append(r.Rows, x)
	}
}

// percentInterval formats an interval of ratios in percentage points.
func percentInterval(x stats.Interval) string {
	return fmt.Sprintf("95%% interval +-%.2g points", 100*x.Half)
}

// greater returns the maximum of each pair.
func greater(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = max(a[i], b[i])
	}
	return out
}

// bestPlan plans with hindsight from a start, and checks the bound.
func bestPlan(cfg tco.Config, drives []tco.Drive, jobs []tco.Workload, start []int, steps int) (cost, least float64,
	err error) {
	p, order := tco.PoolProblem(cfg, drives, jobs)
	how := tco.DefaultOptimiseConfig()
	how.Steps = steps
	if slices.Contains(start, -1) {
		start = nil
	} else {
		start = tco.Reorder(start, order)
	}
	x, err := bound.Optimise(how, &p, start)
	if err != nil {
		return 0, 0, err
	}
	if err := certify.Check(&p, x.Certificate); err != nil {
		return 0, 0, fmt.Errorf("the bound's certificate: %w", err)
	}
	return x.CostPerGB(), x.Bound, nil
}

// fitted is the distribution of workloads fitted to table 4.
func fitted() (*tco.Fit, error) { return tco.FitWorkloads(tco.Table4()) }
