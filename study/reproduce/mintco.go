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

// The tables and figures of minTCO. Its drive table, its constants and all but 16 of its workloads are not printed,
// so that nothing can be reproduced to the number but by chance: ours are stated here and in what the experiments
// write, and most rows are of sentences that order, over 30 seeds.

const mintcoPaper = "Yang et al., I/O Workload Management for All-Flash Datacenter Storage Systems Based on Total " +
	"Cost of Ownership, IEEE Trans. Big Data 8(2), 2022, "

// mintcoSeeds is over how many draws of workloads a figure is.
const mintcoSeeds = 30

// poolModel is drives of one model of the pool of figure 7: 20 of 9 models of 2014 to 2016. Endurance, capacity and
// power are the catalogue's; prices and IOPS that it lacks are assumed, of that time.
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

// drive makes one drive of a pool's model.
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

// mintcoDrives are the 20 drives.
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

// mintcoSettings says what was assumed, for the folder of an experiment.
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

// bothModes are what figures 7 to 10 are run in: as the paper has it, until the flash is worn out and with a warm-up,
// and over five years.
func bothModes() []tco.Config { return []tco.Config{tco.PaperConfig(), tco.DefaultConfig()} }

func modeName(c tco.Config) string {
	if c.Mode == tco.Paper {
		return "paper mode"
	}
	return "5 years"
}

// overSeeds calls f for each seed, as many at a time as there are processors.
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

// interval is "mean, with its interval" of values over seeds.
func interval(v []float64) stats.Interval {
	x, err := stats.Replicates(v, 0.95)
	if err != nil {
		return stats.Interval{Mean: math.NaN(), Half: math.NaN()}
	}
	return x
}

// plusMinus writes an interval's half for a row.
func plusMinus(x stats.Interval) string { return fmt.Sprintf("95%% interval +-%.2g", x.Half) }

// tie is within what relative difference two costs are equal.
const tie = 1e-9

// wins counts in how many pairs a is less than b, equal and more.
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

// mintcoShare is how far a figure may be from one that the paper prints, as a share: its drives, prices and most of
// its workloads are not printed, so that a figure which comes nearer than by a factor has come about by what was
// assumed.
const (
	mintcoShare = 0.1
	aTenth      = "within a tenth"
	unprinted   = "of drives, prices and workloads that are not printed"
)

// mintcoInputs are the inputs of all minTCO figures.
const mintcoInputs = "drives of the catalogue at assumed prices, workloads drawn from a fit to table 4, the WAF of " +
	"equation 7"

// inMode adds rows of the paper's mode, the only one that it has; five-year figures are printed without a verdict.
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

// percentInterval writes an interval of ratios in points of per cent.
func percentInterval(x stats.Interval) string {
	return fmt.Sprintf("95%% interval +-%.2g points", 100*x.Half)
}

// greater takes the greater of each pair.
func greater(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = max(a[i], b[i])
	}
	return out
}

// bestPlan plans with hindsight from a start and has the bound checked.
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

// fitted is the distribution of workloads that table 4 suggests.
func fitted() (*tco.Fit, error) { return tco.FitWorkloads(tco.Table4()) }
