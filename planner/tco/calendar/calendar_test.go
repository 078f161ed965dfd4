package calendar_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"farflash/numeric/rng"
	"farflash/planner/tco"
	"farflash/planner/tco/calendar"
)

func drive() tco.Drive {
	return tco.Drive{Name: "d", Buy: 1000, Budget: 1e6, Capacity: 1000, IOPS: 1e5, WAF: tco.Constant(2),
		Upkeep: tco.Upkeep{Members: 1, Next: 1000, Idle: 0.01, Active: 0.03, Duty: 0.5}}
}

func job(name string) tco.Workload {
	return tco.Workload{Name: name, WriteRate: 100, PeakIOPS: 1000, WriteShare: 0.5, WorkingSet: 200}
}

func keep(t *testing.T, cfg calendar.Config, drives []tco.Drive, jobs []tco.Workload, host ...int) *calendar.Book {
	t.Helper()
	c, err := calendar.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.Keep(drives, make([]bool, len(drives)), jobs, host)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-9*max(1, math.Abs(want))) {
		t.Errorf("%s: %v; %v is right", what, got, want)
	}
}

// TestStill verifies that a fleet without growth costs its purchase and a constant amount per day.
func TestStill(t *testing.T) {
	d, w := drive(), job("w")
	d.Upkeep.Setup, d.Upkeep.Labour, d.Upkeep.Place = 70, 0.005, 0.002
	d.Buy += d.Upkeep.Setup
	w.Arrival = 25
	b := keep(t, calendar.DefaultConfig(), []tco.Drive{d}, []tco.Workload{w}, 0)
	near(t, "total", b.Total, 1000+70+1800*(0.02+0.005+0.002))
	near(t, "power", b.Money[calendar.Power], 1800*0.02)
	near(t, "data", b.Data, 1800*100)
	near(t, "wear", b.Drives[0].Wear, 1800*200/1e6)
	// By load: a hundredth of the IOPS is in use.
	d.Upkeep.ByLoad = true
	near(t, "power by load",
		keep(t, calendar.DefaultConfig(), []tco.Drive{d}, []tco.Workload{w}, 0).Money[calendar.Power],
		1800*(0.01+0.02*0.5*0.01))
}

// TestAnnuity verifies that a discounted daily payment is an annuity, and that a later purchase is discounted and costs
// the price of its day.
func TestAnnuity(t *testing.T) {
	cfg := calendar.DefaultConfig()
	cfg.Discount, cfg.Trend = 0.08, -0.2
	d, w := drive(), job("w")
	d.Upkeep.Idle, d.Upkeep.Active, d.Upkeep.Labour = 0, 0, 0.5
	w.Arrival = 730
	b := keep(t, cfg, []tco.Drive{d}, []tco.Workload{w}, 0)
	r := math.Log(1.08) / 365
	near(t, "labour", b.Present[calendar.Labour], 0.5*(math.Exp(-730*r)-math.Exp(-1825*r))/r)
	near(t, "labour on its days", b.Money[calendar.Labour], 0.5*1095)
	near(t, "purchase", b.Money[calendar.Purchases], 1000*0.8*0.8)
	near(t, "purchase, discounted", b.Present[calendar.Purchases], 1000*0.64/(1.08*1.08))
	near(t, "the third year", b.Years[2][calendar.Labour], 0.5*365)
	near(t, "the second", b.Years[1][calendar.Labour], 0)
	if len(b.Years) != 5 {
		t.Errorf("%d years", len(b.Years))
	}
}

// TestReplaced computes successors by hand: 1,000 GB per day amplified by 2 wear out 10^6 GB in 500 days and, since 200
// GB are copied at 2 onto each successor, each successor in 499.8.
func TestReplaced(t *testing.T) {
	cfg := calendar.DefaultConfig()
	cfg.Replacing, cfg.Trend = 50, 0.1
	d, w := drive(), job("w")
	w.WriteRate, d.Upkeep.Next = 1000, 900
	b := keep(t, cfg, []tco.Drive{d}, []tco.Workload{w}, 0)
	days, want := []float64{500, 500 + 499.8, 500 + 2*499.8}, 0.0
	for i, day := range days {
		want += 50 + 900*math.Pow(1.1, day/365)
		if len(b.Drives[0].Replaced) != 3 || math.Abs(b.Drives[0].Replaced[i]-day) > 1e-6 {
			t.Fatalf("replaced on %v; %v is right", b.Drives[0].Replaced, days)
		}
	}
	near(t, "successors", b.Money[calendar.Replacements], want)
	near(t, "wear of the last", b.Drives[0].Wear, (400+(1825-days[2])*2000)/1e6)
	near(t, "copied", b.Drives[0].Copied, 600)
	// No drive is replaced on the day on which the last workload leaves, or the plan ends.
	w.End = 500
	if b = keep(t, cfg, []tco.Drive{d}, []tco.Workload{w}, 0); len(b.Drives[0].Replaced) != 0 ||
		b.Drives[0].Last != 500 {
		t.Errorf("%+v", b.Drives[0])
	}
	cfg.Horizon, w.End = 500, 0
	if b = keep(t, cfg, []tco.Drive{d}, []tco.Workload{w}, 0); len(b.Drives[0].Replaced) != 0 {
		t.Errorf("%+v", b.Drives[0])
	}
	// An owned, worn drive is replaced sooner; an array is replaced as a whole.
	d.Worn, d.Upkeep.Members, cfg.Horizon = 5e5, 4, 251
	if b = keep(t, cfg, []tco.Drive{d}, []tco.Workload{w}, 0); len(b.Drives[0].Replaced) != 1 ||
		math.Abs(b.Drives[0].Replaced[0]-250) > 1e-9 {
		t.Errorf("%+v", b.Drives[0].Replaced)
	}
	near(t, "an array", b.Money[calendar.Replacements], 4*(50+900*math.Pow(1.1, 250.0/365)))
}

// TestFailures verifies that failures are members AFR years, that those after the warranty are paid for, and that a
// successor has its own warranty.
func TestFailures(t *testing.T) {
	cfg := calendar.DefaultConfig()
	cfg.Replacing, cfg.Warranty = 30, 365
	d, w := drive(), job("w")
	d.Upkeep.AFR, d.Upkeep.Members, d.Upkeep.Next = 0.02, 3, 800
	b := keep(t, cfg, []tco.Drive{d}, []tco.Workload{w}, 0)
	near(t, "expected", b.Drives[0].Failures, 3*0.02*5)
	near(t, "failures", b.Money[calendar.Failures], 3*0.02*(5*30+4*800))
	w.WriteRate = 1e6 / 2 / 730 // worn out after two years, the successor (400 GB are copied) slightly sooner
	b = keep(t, cfg, []tco.Drive{d}, []tco.Workload{w}, 0)
	second := 730 * (1 - 400e-6)
	near(t, "failures, replaced twice", b.Money[calendar.Failures],
		3*0.02/365*(1825*30+(365+second-365+max(0, 1825-730-second-365))*800))
}

// TestGrowth verifies that the bytes are the integral of the growing rate, and the space that at each quarter's end.
func TestGrowth(t *testing.T) {
	cfg := calendar.DefaultConfig()
	cfg.Horizon = 2 * 365
	d, w := drive(), job("w")
	w.Growth = 0.5
	c, err := calendar.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	b := keep(t, cfg, []tco.Drive{d}, []tco.Workload{w}, 0)
	k := math.Log(1.5) / 365
	near(t, "data", b.Data, 100*(math.Exp(k*730)-1)/k)
	near(t, "what is written", c.Written(&w), b.Data)
	near(t, "wear", b.Drives[0].NAND, 2*b.Data)
	near(t, "space", b.Drives[0].MostSpace, 200*2.25)
	near(t, "most", c.Most(&w), 2.25)
	// Full in the quarter in which it exceeds 1,000 GB: a shrinking neighbour helps from its next quarter on.
	w.WorkingSet, w.Growth = 700, 0.5
	var misfit *tco.Misfit
	if _, err := c.Keep([]tco.Drive{d}, []bool{false}, []tco.Workload{w}, []int{0}); !errors.As(err, &misfit) ||
		misfit.Obstacle != tco.NoSpace {
		t.Errorf("%v", err)
	}
	x := job("x")
	x.WorkingSet, x.Growth = 400, -0.9
	w.WorkingSet, w.Growth = 440, 0.5
	if b = keep(t, cfg, []tco.Drive{d}, []tco.Workload{w, x}, 0, 0); b.Drives[0].MostSpace > 1000 {
		t.Errorf("%v", b.Drives[0].MostSpace)
	}
	x.Growth = 0
	if _, err := c.Keep([]tco.Drive{d}, []bool{false}, []tco.Workload{w, x}, []int{0, 0}); !errors.As(err, &misfit) {
		t.Errorf("%v", err)
	}
}

// TestResidual: a drive's value falls with its age, or with its wear if that is faster.
func TestResidual(t *testing.T) {
	cfg := calendar.DefaultConfig()
	cfg.Residual, cfg.Over, cfg.Horizon = 0.6, 1000, 400
	d, w := drive(), job("w")
	b := keep(t, cfg, []tco.Drive{d}, []tco.Workload{w}, 0)
	near(t, "by age", b.Money[calendar.Residual], -1000*0.6*0.6)
	w.WriteRate = 1000
	b = keep(t, cfg, []tco.Drive{d}, []tco.Workload{w}, 0)
	near(t, "by wear", b.Money[calendar.Residual], -1000*0.6*0.2)
	// An unused drive is sold as well; wear from before is not.
	c, _ := calendar.New(cfg)
	cost, _ := c.Price(&d, true, nil, nil)
	near(t, "unused", cost, 1000-1000*0.6*0.6)
	d.Buy = 0
	cost, _ = c.Price(&d, true, nil, nil)
	near(t, "owned", cost, 0)
}

// TestMoves verifies that a stay on another drive than the one before is copied, which costs money and wears the flash.
func TestMoves(t *testing.T) {
	cfg := calendar.DefaultConfig()
	cfg.Moving = 10
	w := job("w")
	w.Growth, w.Apart = 0.2, "x"
	stays, of := calendar.Stays([]tco.Workload{w}, 365, 1825)
	if len(stays) != 5 || of[4] != 0 || stays[4].End != 0 || stays[3].End != 4*365 || stays[0].Apart == stays[1].Apart {
		t.Fatalf("%+v", stays)
	}
	c, _ := calendar.New(cfg)
	data := 0.0
	for i := range stays {
		data += c.Written(&stays[i])
	}
	near(t, "stays write what the whole does", data, c.Written(&w))
	d := drive()
	one := keep(t, cfg, []tco.Drive{d, d}, []tco.Workload{w}, 0)
	stay := keep(t, cfg, []tco.Drive{d, d}, stays, 0, 0, 0, 0, 0)
	near(t, "one that stays", stay.Total, one.Total)
	near(t, "and wears", stay.Drives[0].NAND, one.Drives[0].NAND)
	away := keep(t, cfg, []tco.Drive{d, d}, stays, 0, 0, 1, 1, 0)
	if len(away.Moves) != 2 || away.Moves[0].Day != 730 || away.Moves[1].To != 0 {
		t.Errorf("%+v", away.Moves)
	}
	near(t, "copies", away.Money[calendar.Moves], 10*0.2*(math.Pow(1.2, 2)+math.Pow(1.2, 4)))
	near(t, "the second drive's wear", away.Drives[1].Wear, (200*1.44*2+2*away.Drives[1].Data)/1e6)
}

// TestHopeless verifies that a drive whose successors do not last a day is no valid plan.
func TestHopeless(t *testing.T) {
	d, w := drive(), job("w")
	w.WriteRate = 1e7
	c, _ := calendar.New(calendar.DefaultConfig())
	var misfit *tco.Misfit
	if _, err := c.Keep([]tco.Drive{d}, []bool{false}, []tco.Workload{w}, []int{0}); !errors.As(err, &misfit) ||
		misfit.Obstacle != tco.NoLife {
		t.Errorf("%v", err)
	}
	w.WriteRate, w.Arrival = 1, 1825
	if _, over := c.Price(&d, false, []tco.Workload{w}, []int32{0}); !(over > 0) {
		t.Error("one that comes when the plan is over has a drive")
	}
}

// TestValidate checks the limits of settings from both sides.
func TestValidate(t *testing.T) {
	for _, x := range []struct {
		change func(c *calendar.Config, v float64)
		good   []float64
		bad    []float64
	}{
		{func(c *calendar.Config, v float64) { c.Horizon = v }, []float64{1},
			[]float64{0, -1, math.Inf(1), math.NaN()}},
		{func(c *calendar.Config, v float64) { c.Discount = v }, []float64{0, 1}, []float64{-0.01, 1.01, math.NaN()}},
		{func(c *calendar.Config, v float64) { c.Trend = v }, []float64{-0.99, 1}, []float64{-1, 1.01, math.NaN()}},
		{func(c *calendar.Config, v float64) { c.Residual = v }, []float64{0, 1}, []float64{-0.01, 1.01, math.NaN()}},
		{func(c *calendar.Config, v float64) { c.Residual, c.Over = 0.5, v }, []float64{1},
			[]float64{0, -1, math.Inf(1)}},
		{func(c *calendar.Config, v float64) { c.Replacing = v }, []float64{0}, []float64{-1, math.Inf(1)}},
		{func(c *calendar.Config, v float64) { c.Warranty = v }, []float64{0}, []float64{-1, math.Inf(1)}},
		{func(c *calendar.Config, v float64) { c.Moving = v }, []float64{0}, []float64{-1, math.Inf(1)}},
		{func(c *calendar.Config, v float64) { c.FillSpace = v }, []float64{1}, []float64{0, 1.01}},
		{func(c *calendar.Config, v float64) { c.FillIOPS = v }, []float64{1}, []float64{0, 1.01}},
	} {
		for i, v := range slices.Concat(x.good, x.bad) {
			cfg := calendar.DefaultConfig()
			x.change(&cfg, v)
			if _, err := calendar.New(cfg); (err == nil) != (i < len(x.good)) {
				t.Errorf("%+v: %v", cfg, err)
			}
		}
	}
}

// instance draws a small problem: owned drives and drives to be bought, workloads that arrive, grow and leave.
func instance(seed uint64) (calendar.Config, *tco.Problem) {
	r := rng.NewStream(seed, "calendar")
	cfg := calendar.DefaultConfig()
	cfg.Horizon = 500 + 1500*r.Float64()
	cfg.FillSpace, cfg.FillIOPS = 0.9, 0.8
	if r.IntN(2) == 0 {
		cfg.Discount, cfg.Trend = 0.1*r.Float64(), 0.3*r.Float64()-0.2
	}
	if r.IntN(2) == 0 {
		cfg.Residual, cfg.Over = r.Float64(), 500+2000*r.Float64()
	}
	cfg.Replacing, cfg.Warranty, cfg.Moving = 50*r.Float64(), 900*r.Float64(), 20*r.Float64()
	p := &tco.Problem{Config: tco.Config{Horizon: cfg.Horizon, FillSpace: cfg.FillSpace, FillIOPS: cfg.FillIOPS}}
	for i := range 2 + int(r.IntN(2)) {
		d := drive()
		d.Name = fmt.Sprintf("m%d", i)
		d.Buy = 300 + 1500*r.Float64()
		d.Upkeep.Next, d.Upkeep.Setup = d.Buy*0.9, d.Buy*0.1
		d.Upkeep.AFR, d.Upkeep.Members, d.Upkeep.ByLoad = 0.05*r.Float64(), 1+int(r.IntN(3)), r.IntN(2) == 0
		d.Upkeep.Labour, d.Upkeep.Place = 0.1*r.Float64(), 0.1*r.Float64()
		d.Budget, d.Capacity = 2e5+2e6*r.Float64(), 500+800*r.Float64()
		d.WAF = tco.Constant(1 + 4*r.Float64())
		if r.IntN(3) == 0 {
			d.Stripe = tco.Stripe{FullBytes: 1.25, SmallBytes: 2, FullIOs: 1.25, SmallIOs: 4, SmallReads: 2}
		}
		c := tco.Class{Drive: d, Count: 2, Optional: r.IntN(3) > 0}
		if !c.Optional && r.IntN(2) == 0 {
			c.Drive.Buy, c.Drive.Upkeep.Setup, c.Drive.Worn = 0, 0, d.Budget*r.Float64()
		}
		p.Classes = append(p.Classes, c)
	}
	for j := range 4 {
		w := job(string(rune('a' + j)))
		w.WriteRate, w.WorkingSet, w.PeakIOPS = 1500*r.Float64()*r.Float64(), 50+350*r.Float64(), 20000*r.Float64()
		w.FullStripe = r.Float64()
		if r.IntN(2) == 0 {
			w.Arrival = 300 * r.Float64()
		}
		if r.IntN(3) == 0 {
			w.End = w.Arrival + 2000*r.Float64()
		}
		if r.IntN(2) == 0 {
			w.Growth = r.Float64() - 0.3
		}
		p.Jobs = append(p.Jobs, w)
	}
	return cfg, p
}

// byHand prices a drive independently: it lists the intervals without changes first, evaluates each separately, and
// sums money by plain powers. It shares no code with the package; +Inf means that the drive cannot take the workloads.
func byHand(cfg calendar.Config, d *tco.Drive, there bool, jobs []tco.Workload) float64 {
	worth := func(day float64) float64 { return math.Pow(1+cfg.Discount, -day/365) }
	priceOf := func(day float64) float64 { return math.Pow(1+cfg.Trend, day/365) }
	spread := func(yearly, a, b float64) float64 { // of (1+yearly)^(day/365)
		if yearly == 0 {
			return b - a
		}
		return 365 / math.Log1p(yearly) * (math.Pow(1+yearly, b/365) - math.Pow(1+yearly, a/365))
	}
	discounted := 1/(1+cfg.Discount) - 1
	both := (1+cfg.Trend)/(1+cfg.Discount) - 1
	first, last := math.Inf(1), 0.0
	cuts := []float64{cfg.Horizon}
	end := func(w *tco.Workload) float64 {
		if w.End == 0 {
			return cfg.Horizon
		}
		return min(w.End, cfg.Horizon)
	}
	for i := range jobs {
		first, last = min(first, jobs[i].Arrival), max(last, end(&jobs[i]))
		cuts = append(cuts, jobs[i].Arrival, end(&jobs[i]))
	}
	for q := 0.0; q < cfg.Horizon; q += 91.25 {
		cuts = append(cuts, q)
	}
	slices.Sort(cuts)
	bought := first
	if there {
		bought = 0
	}
	if len(jobs) == 0 {
		left := max(0, min(1-cfg.Horizon/cfg.Over, 1-d.Worn/d.Budget))
		return d.Buy - (d.Buy-d.Upkeep.Setup)*cfg.Residual*left*worth(cfg.Horizon)
	}
	paid := (d.Buy - d.Upkeep.Setup) * priceOf(bought)
	cost := (paid + d.Upkeep.Setup) * worth(bought)
	worn, n, fail := d.Worn, float64(d.Upkeep.Members), float64(d.Upkeep.Members)*d.Upkeep.AFR/365
	replacedAt := math.Inf(-1)
	for i := range cuts[1:] {
		a, b := cuts[i], cuts[i+1]
		if b <= first || a >= last || b <= a {
			continue
		}
		quarter := math.Floor(a/91.25+1e-9) * 91.25
		nand, space, load := 0.0, 0.0, 0.0
		for k := range jobs {
			w := &jobs[k]
			if w.Arrival >= b || end(w) <= a {
				continue
			}
			lo, hi := max(w.Arrival, quarter), min(end(w), quarter+91.25)
			mean := spread(w.Growth, lo-w.Arrival, hi-w.Arrival) / (hi - lo)
			at := math.Pow(1+w.Growth, (hi-w.Arrival)/365)
			if w.Growth < 0 {
				at = math.Pow(1+w.Growth, (lo-w.Arrival)/365)
			}
			bytes, ios := 1.0, 1.0
			if d.Stripe != (tco.Stripe{}) {
				f := w.FullStripe
				bytes = f*d.Stripe.FullBytes + (1-f)*d.Stripe.SmallBytes
				ios = w.WriteShare*(f*d.Stripe.FullIOs+(1-f)*d.Stripe.SmallIOs) + 1 - w.WriteShare
			}
			nand += w.WriteRate * mean * bytes * d.WAF.At(0)
			space += w.WorkingSet * at
			load += w.PeakIOPS * at * ios
		}
		if space > d.Capacity*cfg.FillSpace*(1+1e-9) || load > d.IOPS*cfg.FillIOPS*(1+1e-9) {
			return math.Inf(1)
		}
		for a < b {
			if worn >= d.Budget*(1-1e-12) {
				if a-replacedAt < 1 {
					return math.Inf(1)
				}
				bytes := 1.0
				if d.Stripe != (tco.Stripe{}) {
					bytes = d.Stripe.FullBytes
				}
				paid, bought, replacedAt = d.Upkeep.Next*n*priceOf(a), a, a
				cost += (paid + cfg.Replacing*n) * worth(a)
				worn = space * bytes * d.WAF.At(1)
			}
			until := b
			if nand > 0 {
				until = min(b, a+max(0, d.Budget-worn)/nand)
			}
			busy := d.Upkeep.Duty
			if d.Upkeep.ByLoad {
				busy *= min(1, load/d.IOPS)
			}
			daily := d.Upkeep.Idle*(1-busy) + d.Upkeep.Active*busy + d.Upkeep.Labour + d.Upkeep.Place +
				fail*cfg.Replacing
			cost += daily * spread(discounted, a, until)
			if old := max(a, bought+cfg.Warranty); old < until {
				cost += fail * d.Upkeep.Next * spread(both, old, until)
			}
			if worn += nand * (until - a); until < b {
				worn = d.Budget
			}
			a = until
		}
	}
	left := max(0, min(1-(last-bought)/cfg.Over, 1-worn/d.Budget))
	return cost - paid*cfg.Residual*left*worth(last)
}

// TestExhaustive prices every placement of small problems independently, and verifies that Optimise finds the cheapest
// at that cost, and reports if there is none.
func TestExhaustive(t *testing.T) {
	solved, none := 0, 0
	var gaps []float64
	for seed := range uint64(150) {
		cfg, p := instance(seed)
		c, err := calendar.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		p.Pricer = c
		drives, class := p.Drives()
		least := math.Inf(1)
		host := make([]int, len(p.Jobs))
		floor := c.Floor(p)
		priced := map[[2]int]float64{} // by drive and set
		for code := range int(math.Pow(float64(len(drives)), float64(len(host)))) {
			sets := make([]int, len(drives))
			for j, rest := 0, code; j < len(host); j, rest = j+1, rest/len(drives) {
				host[j] = rest % len(drives)
				sets[host[j]] |= 1 << j
			}
			sum := 0.0
			for k := range drives {
				there := !p.Classes[class[k]].Optional
				if sets[k] == 0 && !there {
					continue
				}
				cost, ok := priced[[2]int{k, sets[k]}]
				if !ok {
					var list []tco.Workload
					for j := range p.Jobs {
						if sets[k]&(1<<j) != 0 {
							list = append(list, p.Jobs[j])
						}
					}
					cost = byHand(cfg, &drives[k], there, list)
					rents := -floor.Scarce[class[k]]
					for j := range p.Jobs {
						if sets[k]&(1<<j) != 0 {
							rents += floor.Value[j]
						}
					}
					if len(list) > 0 && !there && rents > cost*(1+1e-9) {
						t.Errorf("seed %d: a drive costs %v, less than the rents of what is on it, %v", seed, cost,
							rents)
					}
					priced[[2]int{k, sets[k]}] = cost
				}
				sum += cost
			}
			least = min(least, sum)
		}
		o, err := tco.Optimise(tco.OptimiseConfig{Seed: 1}, p, nil)
		if err != nil {
			none++
			if infeasible := (*tco.Infeasible)(nil); !errors.As(err, &infeasible) || !math.IsInf(least, 1) {
				t.Errorf("seed %d: %v; %v can be had", seed, err, least)
			}
			continue
		}
		solved++
		if floor.Least > least*(1+1e-9) {
			t.Errorf("seed %d: a bound of %v; %v can be had", seed, floor.Least, least)
		}
		if least > 0 {
			gaps = append(gaps, least/floor.Least-1)
		}
		if math.Abs(o.Cost-least) > 1e-7*math.Abs(least) {
			t.Errorf("seed %d: %v; %v is the least", seed, o.Cost, least)
		}
		if !o.Exact {
			t.Errorf("seed %d: not exact", seed)
		}
		there := make([]bool, len(drives))
		for k := range drives {
			there[k] = !p.Classes[class[k]].Optional
		}
		b, err := c.Keep(o.Drives, there, p.Jobs, o.Host)
		if err != nil {
			t.Fatal(seed, err)
		}
		conserved(t, seed, b, o, p.Jobs, c, there)
	}
	slices.Sort(gaps)
	t.Logf("gaps: median %.3f, nine of ten %.3f, worst %.3f", gaps[len(gaps)/2], gaps[len(gaps)*9/10],
		gaps[len(gaps)-1])
	if solved < 100 || none < 2 {
		t.Errorf("%d solved, %d without a plan: neither should be rare", solved, none)
	}
}

// conserved verifies that all ways of summing a book agree.
func conserved(t *testing.T, seed uint64, b *calendar.Book, o *tco.Optimum, jobs []tco.Workload, c *calendar.Calendar,
	there []bool) {
	t.Helper()
	same := func(what string, x, y float64) {
		if math.Abs(x-y) > 1e-9*(1+math.Abs(y)) {
			t.Errorf("seed %d: %s: %v and %v", seed, what, x, y)
		}
	}
	items, byDrive, byJob, used, data := 0.0, 0.0, 0.0, 0.0, 0.0
	for _, v := range b.Present {
		items += v
	}
	for k := range b.Drives {
		a := &b.Drives[k]
		byDrive += a.Total()
		if slices.Contains(o.Host, k) {
			used += a.Total()
		}
		entries := 0.0
		for _, e := range a.Entries {
			if e.Drive != k {
				t.Errorf("seed %d: an entry of drive %d is in the account of %d", seed, e.Drive, k)
			}
			entries += e.Money
		}
		same("entries", entries,
			a.Money[calendar.Purchases]+a.Money[calendar.Setup]+a.Money[calendar.Replacements]+
				a.Money[calendar.Moves]+a.Money[calendar.Residual])
	}
	for _, v := range b.Workloads {
		byJob += v
	}
	for j := range jobs {
		data += c.Written(&jobs[j])
	}
	for i := range b.Money {
		years := 0.0
		for y := range b.Years {
			years += b.Years[y][i]
		}
		same("years", years, b.Money[i])
	}
	same("the plan", b.Total, o.Cost)
	same("items", items, b.Total)
	same("drives", byDrive, b.Total)
	same("workloads", byJob, used)
	same("data", b.Data, data)
	same("data of the plan", o.Data, data)
}

// TestReviewed verifies that workloads that may move cost no more than ones that may not, and that the cheapest of all
// ways to move is found.
func TestReviewed(t *testing.T) {
	cfg := calendar.DefaultConfig()
	cfg.Horizon, cfg.Moving = 3*365, 1
	small, large := drive(), drive()
	small.Name, small.Capacity, small.Buy, small.Upkeep.Next = "small", 500, 500, 500
	large.Name, large.Capacity, large.Buy, large.Upkeep.Next = "large", 2000, 1800, 1800
	cfg.Trend = -0.4 // later purchases are cheaper
	p := &tco.Problem{Config: tco.Config{Horizon: cfg.Horizon, FillSpace: 1, FillIOPS: 1},
		Classes: []tco.Class{{Drive: small, Count: 3, Optional: true}, {Drive: large, Count: 2, Optional: true}}}
	w := job("w")
	w.WorkingSet, w.Growth = 250, 0.8
	x := job("x")
	x.WorkingSet = 40
	p.Jobs = []tco.Workload{w, x}
	c, _ := calendar.New(cfg)
	p.Pricer = c
	still, err := tco.Optimise(tco.DefaultOptimiseConfig(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	q := *p
	q.Jobs, _ = calendar.Stays(p.Jobs, 365, cfg.Horizon)
	best, err := tco.Optimise(tco.DefaultOptimiseConfig(), &q, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !(best.Cost < still.Cost*0.95) {
		t.Errorf("%v when it may move, %v when not", best.Cost, still.Cost)
	}
	b, err := c.Keep(best.Drives, make([]bool, len(best.Drives)), q.Jobs, best.Host)
	if err != nil || len(b.Moves) == 0 || b.Moves[0].Day != 365 {
		t.Errorf("%+v, %v", b, err)
	}
}

func Example() {
	c, err := calendar.New(calendar.DefaultConfig())
	if err != nil {
		panic(err)
	}
	d := tco.Drive{Name: "d", Buy: 1000, Budget: 1e6, Capacity: 2000, IOPS: 1e5, WAF: tco.Constant(2),
		Upkeep: tco.Upkeep{Members: 1, Next: 1000, Idle: 0.02, Active: 0.02}}
	jobs := []tco.Workload{{Name: "log", WriteRate: 400, WorkingSet: 500}}
	b, err := c.Keep([]tco.Drive{d}, []bool{false}, jobs, []int{0})
	if err != nil {
		panic(err)
	}
	for _, e := range b.Drives[0].Entries {
		fmt.Printf("day %.0f: $%.0f for %v\n", e.Day, e.Money, e.What)
	}
	fmt.Printf("in all: $%.2f\n", b.Total)
	// Output:
	// day 0: $1000 for Drives
	// day 1250: $1000 for Replacements, worn out
	// in all: $2036.50
}

// TestStaysGrow: a stay starts with its workload's growth so far, in writes, I/Os and space; without growth it is
// unchanged.
func TestStaysGrow(t *testing.T) {
	w := job("w")
	w.Growth, w.Arrival = 0.2, 100
	stays, of := calendar.Stays([]tco.Workload{job("still"), w}, 365, 1095)
	if len(stays) != 6 || of[2] != 0 || of[3] != 1 {
		t.Fatalf("%d stays, of %v", len(stays), of)
	}
	for i, x := range stays[:3] {
		if x.WriteRate != 100 || x.PeakIOPS != 1000 || x.WorkingSet != 200 || x.Arrival != float64(i)*365 ||
			int(x.Stay.At) != i || x.Stay.Of != 1 {
			t.Errorf("stay %d of what does not grow: %+v", i, x)
		}
	}
	for i, x := range stays[3:] {
		at := max(100, float64(i)*365)
		more := math.Pow(1.2, (at-100)/365)
		near(t, "write rate", x.WriteRate, 100*more)
		near(t, "I/Os", x.PeakIOPS, 1000*more)
		near(t, "space", x.WorkingSet, 200*more)
		if x.Arrival != at || x.WriteShare != 0.5 || int(x.Stay.At) != i || x.Stay.Of != 2 {
			t.Errorf("stay %d: %+v", i, x)
		}
	}
}
