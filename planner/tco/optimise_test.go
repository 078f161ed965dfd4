package tco_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"farflash/internal/patience"
	"farflash/numeric/rng"
	"farflash/planner/tco"
	"farflash/planner/tco/bound"
	"farflash/planner/tco/catalogue"
	"farflash/planner/tco/certify"
	"farflash/policy/ftl/waf"
)

// pool resembles that of the paper's figure 7: 20 drives of 9 models. Prices that the catalogue lacks are assumptions.
func pool(t testing.TB, mode tco.Mode) []tco.Drive {
	t.Helper()
	var drives []tco.Drive
	for _, x := range []struct {
		name        string
		price, iops float64
		count       int
	}{
		{"Intel DC P3700 2TB", 3400, 0, 2}, {"Intel DC P3700 1.6TB", 2700, 0, 3}, {"Intel DC P3600 2TB", 2200, 0, 3},
		{"Intel DC P3608 4TB", 5600, 0, 2},
		{"HGST Ultrastar SN150 3.2TB", 8769, 300000, 1}, {"Memblaze PBlaze4 3.2TB", 3200, 300000, 2},
		{"SK hynix PE3100 960GB", 960, 100000, 2},
		{"Intel DC P3520 2TB", 1132, 100000, 3}, {"Samsung PM1725a U.2 6.4TB", 7000, 0, 2},
	} {
		m, err := catalogue.Find(catalogue.Models(), x.name)
		if err != nil {
			t.Fatal(err)
		}
		m.Price = x.price
		if x.iops > 0 {
			m.ReadIOPS, m.WriteIOPS = x.iops, x.iops/4
		}
		if m.ActiveW == 0 {
			m.ActiveW, m.IdleW = 25, 8
		}
		for range x.count {
			d, err := m.Drive(m.Name, mode, tco.DefaultCosts(), 0.3, 0.5)
			if err != nil {
				t.Fatal(err)
			}
			drives = append(drives, d)
		}
	}
	return drives
}

func fitted(t testing.TB) *tco.Fit {
	t.Helper()
	fit, err := tco.FitWorkloads(tco.Table4())
	if err != nil {
		t.Fatal(err)
	}
	return fit
}

// TestPoolsOfFigure7 compares the plan with hindsight with minTCO and with its proven bound.
func TestPoolsOfFigure7(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	seeds, workloads, modes := uint64(1), 80, []tco.Config{tco.DefaultConfig()}
	if patience.Long(t) {
		seeds, workloads, modes = 2, 100, append(modes, tco.PaperConfig())
	}
	how := tco.DefaultOptimiseConfig()
	how.Steps, how.Climb = 20_000, 100
	for _, cfg := range modes {
		for seed := range seeds {
			jobs := fitted(t).Draw(seed, workloads, 525)
			drives := pool(t, cfg.Mode)
			pl, online, err := tco.Online(tco.AllocatorConfig{Config: cfg}, drives, jobs)
			if err != nil {
				t.Fatal(err)
			}
			p, order := tco.PoolProblem(cfg, drives, jobs)
			o, err := bound.Optimise(how, &p, tco.Reorder(pl.Host, order))
			if err != nil {
				t.Fatal(err)
			}
			if err := certify.Check(&p, o.Certificate); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
			t.Logf("%v, seed %d: minTCO %.6f, plan %.6f, bound %.6f, gap %.2f %%", cfg.Mode, seed, online.CostPerGB(),
				o.CostPerGB(), o.Bound, 100*o.Gap())
			if o.CostPerGB() > online.CostPerGB()*(1+1e-12) || o.Gap() > 0.02 || o.Gap() < 0 {
				t.Errorf("%v, seed %d: minTCO %v, plan %v, bound %v", cfg.Mode, seed, online.CostPerGB(),
					o.CostPerGB(), o.Bound)
			}
		}
	}
}

// TestManyWorkloads plans 1359 workloads on drives to be bought.
func TestManyWorkloads(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	modes := []tco.Config{tco.DefaultConfig(), {Mode: tco.Paper, FillSpace: 1, FillIOPS: 1}}
	if !patience.Long(t) {
		modes = modes[:1]
	}
	for _, cfg := range modes {
		jobs := fitted(t).Draw(3, 1359, 0)
		p := tco.Problem{Config: cfg, Classes: []tco.Class{{Drive: pool(t, cfg.Mode)[2], Count: 200, Optional: true}},
			Jobs: jobs}
		o, err := bound.Optimise(tco.DefaultOptimiseConfig(), &p, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := certify.Check(&p, o.Certificate); err != nil {
			t.Error(err)
		}
		t.Logf("%v: plan %.6f, bound %.6f, gap %.2f %%", cfg.Mode, o.CostPerGB(), o.Bound, 100*o.Gap())
		if o.Gap() > 0.05 || o.Gap() < 0 {
			t.Errorf("%v: the gap is %v", cfg.Mode, o.Gap())
		}
	}
}

// small draws a problem small enough to enumerate every plan.
func small(r *rng.Stream) tco.Problem {
	p := tco.Problem{Config: tco.Config{FillSpace: 0.8 + 0.2*r.Float64(), FillIOPS: 0.9}}
	if r.IntN(2) == 0 {
		p.Config.Horizon = 300 + 2000*r.Float64()
	}
	for range 1 + r.IntN(2) {
		c := tco.Class{Count: 1 + int(r.IntN(3)), Optional: r.IntN(2) == 0}
		c.Drive = tco.Drive{Name: fmt.Sprint("d", len(p.Classes)), Buy: 500 + 3000*r.Float64(),
			Run: 0.5 * r.Float64(), Budget: 1e5 * (1 + 20*r.Float64()), Capacity: 200 + 400*r.Float64(),
			IOPS: 500 + 2000*r.Float64()}
		switch r.IntN(5) {
		case 0:
			c.Drive.WAF = tco.Constant(1 + 4*r.Float64())
		case 1:
			t, err := tco.NewTable([]waf.MixPoint{{S: 0, WAF: 3 + r.Float64()}, {S: 0.3, WAF: 3 + r.Float64()},
				{S: 0.6, WAF: 2 + r.Float64()}, {S: 1, WAF: 1 + 0.5*r.Float64()}})
			if err != nil {
				panic(err)
			}
			c.Drive.WAF = t
		case 2: // convex, and clamped at 1
			c.Drive.WAF = waf.SequentialMix{Random: 4, Sequential: 0.5 + r.Float64(), Turn: 0.3, Slope: -4}
		default:
			c.Drive.WAF = waf.DefaultSequentialMix(2 + 5*r.Float64())
		}
		if r.IntN(3) == 0 {
			c.Drive.Worn = 0.5 * c.Drive.Budget * r.Float64()
		}
		if r.IntN(4) == 0 {
			d, err := tco.Array{Kind: tco.RAID5, Drives: 4}.Of(c.Drive, tco.Corrected)
			if err != nil {
				panic(err)
			}
			c.Drive = d
		}
		p.Classes = append(p.Classes, c)
	}
	together := r.IntN(3) == 0
	for j := range 2 + r.IntN(5) {
		w := tco.Workload{Name: fmt.Sprint("w", j), WriteRate: 5 + 300*r.Float64()*r.Float64(),
			Sequential: r.Float64(), PeakIOPS: 500 * r.Float64(), WriteShare: r.Float64(),
			WorkingSet: 200 * r.Float64(), FullStripe: r.Float64()}
		if !together {
			w.Arrival = 200 * r.Float64()
			if r.IntN(5) == 0 {
				w.End = w.Arrival + 100 + 400*r.Float64()
			}
		}
		if r.IntN(6) == 0 {
			w.Apart = "group"
		}
		p.Jobs = append(p.Jobs, w)
	}
	return p
}

// brute enumerates every plan.
func brute(p *tco.Problem) (least float64, found bool) {
	drives, _ := p.Drives()
	host := make([]int, len(p.Jobs))
	least = math.Inf(1)
	var next func(j int)
	next = func(j int) {
		if j == len(host) {
			if cost, data, err := p.Value(host); err == nil && cost/data < least {
				least, found = cost/data, true
			}
			return
		}
		for host[j] = range drives {
			next(j + 1)
		}
	}
	next(0)
	return least, found
}

// TestSmallCases verifies bound <= brute force <= plan.
func TestSmallCases(t *testing.T) {
	cases := 100
	if testing.Short() {
		cases = 70
	}
	if patience.Long(t) {
		cases = 1000
	}
	cfg := tco.OptimiseConfig{Steps: 6000, Climb: 40, Days: 16, Spans: 6, Seed: 1}
	checked, optimal, missed := 0, 0, 0
	var gaps []float64
	for seed := uint64(0); checked < cases; seed++ {
		r := rng.NewStream(seed, "small")
		p := small(&r)
		drives, _ := p.Drives()
		if math.Pow(float64(len(drives)), float64(len(p.Jobs))) > 5000 {
			continue
		}
		least, possible := brute(&p)
		o, err := bound.Optimise(cfg, &p, nil)
		if err != nil {
			var none *tco.Infeasible
			if !errors.As(err, &none) {
				t.Fatal(seed, err)
			}
			if possible {
				missed++
				if none.Proven {
					t.Errorf("seed %d: %v, but a plan costs %v a GB", seed, err, least)
				}
			}
			continue
		}
		checked++
		if !possible {
			t.Fatalf("seed %d: a plan was found, and none is possible", seed)
		}
		if err := certify.Check(&p, o.Certificate); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		if o.Bound > least*(1+1e-12) || least > o.CostPerGB()*(1+1e-12) {
			t.Errorf("seed %d: bound %v, brute force %v, plan %v", seed, o.Bound, least, o.CostPerGB())
		}
		if o.CostPerGB() <= least*(1+1e-9) {
			optimal++
		}
		if o.Gap() > 1e-6 {
			t.Errorf("seed %d: every plan was looked at, and the gap is %v", seed, o.Gap())
		}
		high := *o.Certificate
		high.Rate = least * (1 + 1e-6)
		if certify.Check(&p, &high) == nil {
			t.Errorf("seed %d: a bound of %v passes, and a plan costs %v", seed, high.Rate, least)
		}
		c := bound.Priced(cfg, &p, o.Host)
		if err := certify.Check(&p, c); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		if c.Rate > least*(1+1e-12) {
			t.Errorf("seed %d: prices bound it at %v, brute force finds %v", seed, c.Rate, least)
		}
		gaps = append(gaps, 1-c.Rate/least)
	}
	slices.Sort(gaps)
	t.Logf("%d cases: prices bound them %.1f %% below the best in half of them, %.1f %% in nine of ten", checked,
		100*gaps[checked/2], 100*gaps[checked*9/10])
	if optimal < checked || missed > 0 {
		t.Errorf("the best plan was found in %d of %d cases; %d were refused that have a plan", optimal, checked,
			missed)
	}
}

// TestForgedCertificates verifies that the checker rejects invalid proofs.
func TestForgedCertificates(t *testing.T) {
	jobs := fitted(t).Draw(1, 30, 100)
	p, _ := tco.PoolProblem(tco.DefaultConfig(), pool(t, tco.Corrected)[:4], jobs)
	cfg := tco.DefaultOptimiseConfig()
	cfg.Steps, cfg.Climb = 1000, 10
	for name, forge := range map[string]func(c *tco.Certificate){
		"prices and drives sum to":         func(c *tco.Certificate) { c.Rate *= 1.2 },
		"invalid price":                    func(c *tco.Certificate) { c.Cases[0].Value[3] = math.NaN() },
		"prices of 29 workloads":           func(c *tco.Certificate) { c.Cases[0].Value = c.Cases[0].Value[1:] },
		"no block has a first arrival":     func(c *tco.Certificate) { b := &c.Cases[0].Classes[0].Blocks; *b = (*b)[1:] },
		"the pieces end with deaths":       func(c *tco.Certificate) { b := &c.Cases[0].Classes[0].Blocks[0].Pieces; *b = (*b)[:len(*b)-1] },
		"the one before ends":              func(c *tco.Certificate) { c.Cases[0].Classes[0].Blocks[0].Pieces[2].From += 5 },
		"has prices":                       func(c *tco.Certificate) { c.Cases[0].Classes[0].Blocks[0].Pieces[2].Wear = -1 },
		"where the write amplification is": func(c *tco.Certificate) { raiseAll(c.Cases[0].Classes[0].Minorant, 0.1) },
		"bends upwards":                    func(c *tco.Certificate) { c.Cases[0].Classes[0].Minorant[400].WAF = 0.1 },
		"does not reach from 0 to 1":       func(c *tco.Certificate) { m := &c.Cases[0].Classes[0].Minorant; *m = (*m)[1:] },
		"the cases end with":               func(c *tco.Certificate) { c.Cases[0].Most-- },
		"invalid rate":                     func(c *tco.Certificate) { c.Rate = math.Inf(1) },
	} {
		o, err := bound.Optimise(cfg, &p, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := certify.Check(&p, o.Certificate); err != nil {
			t.Fatal(err)
		}
		forge(o.Certificate)
		if err := certify.Check(&p, o.Certificate); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v; one with %q is right", err, name)
		}
	}
}

func raiseAll(knots []waf.MixPoint, by float64) {
	for i := range knots {
		knots[i].WAF += by
	}
}

func TestInfeasible(t *testing.T) {
	drive := tco.Drive{Name: "d", Buy: 100, Budget: 1e6, Capacity: 100, IOPS: 1000, WAF: tco.Constant(2)}
	for _, c := range []struct {
		jobs []tco.Workload
		want string
	}{
		{[]tco.Workload{{Name: "big", WriteRate: 1, WorkingSet: 101}},
			"no plan can place all workloads: workload big has no drive, for space; its 101 GB need a drive of more than " +
				"the 100 GB"},
		{[]tco.Workload{{Name: "fast", WriteRate: 1, PeakIOPS: 2000}},
			"for IOPS; its 2000 I/Os a second need a drive that does more than the 1000"},
		{[]tco.Workload{{Name: "a", WriteRate: 1, WorkingSet: 90}, {Name: "b", WriteRate: 1, WorkingSet: 90},
			{Name: "c", WriteRate: 1, WorkingSet: 90}},
			"the workloads need 270 GB of the 200 GB that may be filled; 70 GB more would hold them"},
		{[]tco.Workload{{Name: "a", WriteRate: 1, Apart: "g"}, {Name: "b", WriteRate: 1, Apart: "g"},
			{Name: "c", WriteRate: 1, Apart: "g"}},
			"no plan can place all workloads: workload a has no drive, for failure domain"},
		{[]tco.Workload{{Name: "ok", WriteRate: 1}, {Name: "x", WorkingSet: 200}, {Name: "y", PeakIOPS: 1001},
			{Name: "z", WorkingSet: 101}},
			"workload x has no drive, for space; its 200 GB need a drive of more than the 100 GB that the largest " +
				"may fill; no drive is large enough for 2 more either: y, z"},
	} {
		p := tco.Problem{Config: tco.DefaultConfig(), Classes: []tco.Class{{Drive: drive, Count: 2}}, Jobs: c.jobs}
		if _, err := bound.Optimise(tco.DefaultOptimiseConfig(), &p, nil); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v; one with %q is right", err, c.want)
		}
	}
}

// TestMisfits verifies that workloads too large for any drive are refused before the search: for each limit alone, for
// two limits that no single drive meets, and for latency.
func TestMisfits(t *testing.T) {
	wide := tco.Drive{Name: "wide", Buy: 100, Budget: 1e6, Capacity: 1000, IOPS: 100, WAF: tco.Constant(2)}
	quick := tco.Drive{Name: "quick", Buy: 100, Budget: 1e6, Capacity: 100, IOPS: 1000, WAF: tco.Constant(2)}
	many := make([]tco.Workload, 10000)
	for i := range many {
		many[i] = tco.Workload{Name: fmt.Sprintf("w%d", i), WriteRate: 0.1, WorkingSet: 0.1, PeakIOPS: 0.01}
	}
	many[4321].WorkingSet, many[4321].PeakIOPS = 500, 500
	p := tco.Problem{Config: tco.DefaultConfig(),
		Classes: []tco.Class{{Drive: wide, Count: 20}, {Drive: quick, Count: 20}}, Jobs: many}
	const want = "no plan can place all workloads: workload w4321 has no drive, for IOPS; no drive has both its 500 GB and " +
		"its 500 I/Os a second"
	if _, err := tco.Optimise(tco.OptimiseConfig{Stop: func() bool { t.Error("it is searched for"); return true }},
		&p, nil); err == nil || err.Error() != want {
		t.Errorf("error %v", err)
	}
	for _, w := range []tco.Workload{{Name: "edge", WorkingSet: 1000, PeakIOPS: 100},
		{Name: "edge", WorkingSet: 100, PeakIOPS: 1000}} {
		p.Jobs = []tco.Workload{w}
		p.Jobs[0].WriteRate = 1
		if _, err := tco.Optimise(tco.OptimiseConfig{}, &p, nil); err != nil {
			t.Errorf("what just fits: %v", err)
		}
	}
	tail, err := tco.NewTailTable([]tco.TailPoint{{Utilisation: 0.1, P99: 100}, {Utilisation: 0.9, P99: 900}})
	if err != nil {
		t.Fatal(err)
	}
	wide.Tail, quick.Tail = tail, tail
	p.Classes = []tco.Class{{Drive: wide, Count: 1}, {Drive: quick, Count: 1}}
	for limit, want := range map[float64]string{500: "",
		499: "for p99 latency; no drive with space for it meets its p99, even alone"} {
		// half of the quick drive's IOPS
		p.Jobs = []tco.Workload{{Name: "alone", WriteRate: 1, PeakIOPS: 500, P99: limit}}
		if _, err := tco.Optimise(tco.OptimiseConfig{}, &p, nil); (err == nil) != (want == "") ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("p99 %v: error %v", limit, err)
		}
	}
}

func TestFit(t *testing.T) {
	table := tco.Table4()
	jobs := fitted(t).Draw(1, 2000, 525)
	mean := func(list []tco.Workload, f func(*tco.Workload) float64) float64 {
		sum := 0.0
		for i := range list {
			sum += f(&list[i])
		}
		return sum / float64(len(list))
	}
	for name, f := range map[string]func(*tco.Workload) float64{
		"ln of the write rate":  func(w *tco.Workload) float64 { return math.Log(w.WriteRate) },
		"ln of the working set": func(w *tco.Workload) float64 { return math.Log(w.WorkingSet) },
		"sequential ratio":      func(w *tco.Workload) float64 { return 10 * w.Sequential },
	} {
		t.Logf("%s: mean %.2f, of the table %.2f", name, mean(jobs, f), mean(table, f))
		if math.Abs(mean(jobs, f)-mean(table, f)) > 0.7 {
			t.Errorf("%s: mean %v, of the table %v", name, mean(jobs, f), mean(table, f))
		}
	}
	if jobs[0].Arrival != 0 || math.Abs(jobs[len(jobs)-1].Arrival-525) > 1e-9 {
		t.Errorf("they arrive from day %v to day %v", jobs[0].Arrival, jobs[len(jobs)-1].Arrival)
	}
	for _, w := range jobs {
		if w.WriteRate > 575.95 || w.Sequential < 0.0746-1e-9 || w.WorkingSet > 763.2 {
			t.Errorf("%+v is outside of the table", w)
		}
	}
	if _, err := tco.FitWorkloads(table[:5]); err == nil {
		t.Error("five workloads were fitted")
	}
}

// BenchmarkOnline places 100,000 workloads on 10,000 drives.
func BenchmarkOnline(b *testing.B) {
	models := pool(b, tco.Corrected)
	drives := make([]tco.Drive, 10_000)
	for k := range drives {
		drives[k] = models[k%len(models)]
	}
	jobs := fitted(b).Draw(1, 100_000, 525)
	for b.Loop() {
		_, a, err := tco.Online(tco.DefaultAllocatorConfig(), drives, jobs)
		if err != nil {
			b.Fatal(err)
		}
		if a.Refused > 0 {
			b.Fatal(a.Refused, "workloads are refused")
		}
	}
	b.ReportMetric(float64(b.N*len(jobs))/b.Elapsed().Seconds(), "workloads/s")
}

// BenchmarkPlan plans 1359 workloads on drives to be bought, with the bound.
func BenchmarkPlan(b *testing.B) {
	for _, cfg := range []tco.Config{{Mode: tco.Paper, FillSpace: 1, FillIOPS: 1}, tco.DefaultConfig()} {
		b.Run(cfg.Mode.String(), func(b *testing.B) {
			jobs := fitted(b).Draw(3, 1359, 0)
			p := tco.Problem{Config: cfg,
				Classes: []tco.Class{{Drive: pool(b, cfg.Mode)[2], Count: 200, Optional: true}}, Jobs: jobs}
			gap := 0.0
			for b.Loop() {
				o, err := bound.Optimise(tco.DefaultOptimiseConfig(), &p, nil)
				if err != nil {
					b.Fatal(err)
				}
				gap = 100 * o.Gap()
			}
			b.ReportMetric(gap, "%gap")
		})
	}
}

// BenchmarkMixed chooses among six models for workloads that arrive over 525 days, without the bound and, for the
// smallest case, with it.
func BenchmarkMixed(b *testing.B) {
	for _, n := range []int{1359, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			drives := pool(b, tco.Corrected)
			p := tco.Problem{Config: tco.DefaultConfig(), Jobs: fitted(b).Draw(3, n, 525)}
			for _, i := range []int{0, 2, 5, 8, 11, 19} {
				p.Classes = append(p.Classes, tco.Class{Drive: drives[i], Count: n, Optional: true})
			}
			how := tco.DefaultOptimiseConfig()
			if n > 2000 {
				how.Climb = 0
			}
			var o *tco.Optimum
			for b.Loop() {
				var err error
				if o, err = bound.Optimise(how, &p, nil); err != nil {
					b.Fatal(err)
				}
			}
			if how.Climb > 0 {
				b.ReportMetric(100*o.Gap(), "%gap")
			}
		})
	}
}
