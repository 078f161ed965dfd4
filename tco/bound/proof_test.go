package bound

import (
	"math"
	"slices"
	"testing"

	"farflash/rng"
	"farflash/tco"
	"farflash/tco/certify"
)

// bounded draws a problem of a kind and a good plan of it. There are so few workloads, up to the kind "many", that the plan is the best.
func bounded(t *testing.T, kind string, seed uint64) (*tco.Problem, []int) {
	t.Helper()
	r := rng.NewStream(seed, "bounded "+kind)
	p := &tco.Problem{Config: tco.Config{FillSpace: 0.9, FillIOPS: 0.8}}
	models, jobs := 2, 9
	switch kind {
	case "one", "one with a horizon":
		models = 1
	case "many", "many with a horizon":
		jobs = 70
	case "hundreds", "hundreds with a horizon":
		models, jobs = 1, 510
	}
	if kind == "horizon" || kind == "few" || kind == "one with a horizon" || kind == "many with a horizon" || kind == "hundreds with a horizon" {
		p.Config.Horizon = 1200
	}
	for _, d := range someDrives(&r, models) {
		d.Budget /= 10
		c := tco.Class{Drive: d, Count: 5, Optional: true}
		switch kind {
		case "owned and short of space":
			c.Optional, c.Count, c.Drive.Capacity = len(p.Classes) == 1, 4, 250
		case "owned":
			c.Optional, c.Count = len(p.Classes) == 1, 2
		case "space":
			c.Drive.Capacity = 250
		case "few":
			c.Count = 2
		case "array":
			c.Drive.Stripe = tco.Stripe{FullBytes: 1.2, SmallBytes: 2, FullIOs: 1.2, SmallIOs: 4}
		case "one", "one with a horizon":
			c.Count, c.Drive.Capacity = 9, 300
		case "many", "many with a horizon":
			c.Count = 30
		case "hundreds", "hundreds with a horizon":
			c.Count = 150
		}
		p.Classes = append(p.Classes, c)
	}
	p.Jobs = someJobs(&r, jobs, 90)
	for j := range p.Jobs {
		if kind == "together" || jobs > 500 {
			p.Jobs[j].Arrival = 0
		}
		if kind == "ends" && j%3 > 0 {
			p.Jobs[j].End = p.Jobs[j].Arrival + 50 + 400*r.Float64()
		}
	}
	o, err := tco.Optimise(tco.OptimiseConfig{Steps: 12000, Seed: 1}, p, nil)
	if err != nil {
		t.Fatal(kind, seed, err)
	}
	return p, o.Host
}

// relaxed is the relaxation of a problem at the rate of a plan.
func relaxed(t *testing.T, p *tco.Problem, host []int, days, spans int) (x *relaxation, cost, data float64) {
	t.Helper()
	cost, data, err := p.Value(host)
	if err != nil {
		t.Fatal(err)
	}
	d := newDual(p)
	d.r = cost / data
	return d.relax(tco.OptimiseConfig{Days: days}, spans, host), cost, data
}

var smallKinds = []string{"plain", "horizon", "owned", "space", "few", "array", "one", "one with a horizon", "together", "ends"}

// TestEvaluate: the dual's value is that of the prices and of each class's least, and what it takes of each workload is its slope.
func TestEvaluate(t *testing.T) {
	slopes := 0
	for n, kind := range smallKinds {
		p, host := bounded(t, kind, uint64(n))
		x, cost, _ := relaxed(t, p, host, 7, 3)
		r := rng.NewStream(uint64(n), "evaluate")
		for range 3 {
			for j := range x.value {
				x.value[j] *= 0.7 + 0.7*r.Float64()
			}
			got := x.evaluate(1e-7, true)
			share := slices.Clone(x.share)
			want := 0.0
			for _, u := range x.value {
				want += u
			}
			for i := range x.classes {
				c := &x.classes[i]
				least := math.Inf(1)
				for s := range x.spans {
					for k := range x.grid[i*len(x.spans)+s] {
						e := &x.grid[i*len(x.spans)+s][k]
						least = min(least, x.dual.least(c, x.value, x.spans[s][0], x.spans[s][1], e.t, e.t, &e.q))
					}
				}
				if c.c.Optional {
					least = min(least, 0)
				} else {
					least = min(least, c.c.Drive.Buy)
				}
				want += float64(c.c.Count) * least
			}
			if math.Abs(got-want) > 1e-9*cost {
				t.Errorf("%s: %v, not %v", kind, got, want)
			}
			if x.classes[0].spaceTight || x.classes[0].ioTight {
				continue // prices of several limits are not the best ones
			}
			at := slices.Clone(x.value)
			for j := range at {
				h := 1e-5 * (1 + math.Abs(at[j]))
				x.value[j] = at[j] + h
				up := (x.evaluate(1e-7, false) - got) / h
				x.value[j] = at[j] - h
				down := (got - x.evaluate(1e-7, false)) / h
				x.value[j] = at[j]
				if math.Abs(up-down) > 1e-4 {
					continue // a corner
				}
				slopes++
				if math.Abs(up-(1-share[j])) > 1e-3 {
					t.Errorf("%s: workload %d is taken %v times; the slope says %v", kind, j, share[j], 1-up)
				}
			}
		}
	}
	if slopes < 100 {
		t.Errorf("%d slopes: no test", slopes)
	}
}

// TestBlocks: a workload's price is the least that any drive asks, what the drives take is the slope of the sum, and raising leaves the best.
func TestBlocks(t *testing.T) {
	for n, kind := range []string{"horizon", "few", "one with a horizon", "many with a horizon"} {
		p, host := bounded(t, kind, uint64(n))
		x, cost, _ := relaxed(t, p, host, 5, 6)
		b := x.newBlocks()
		first := b.value(true)
		b.raise(12)
		again := b.value(true)
		if again < first-1e-9*cost || math.IsInf(again, 0) {
			t.Errorf("%s: raised from %v to %v", kind, first, again)
		}
		for j := range x.value {
			if math.Abs(x.value[j]-b.least[j]) > 1e-9*cost {
				t.Errorf("%s: workload %d has the price %v, the best cells say %v", kind, j, x.value[j], b.least[j])
			}
		}
		r := rng.NewStream(uint64(n), "blocks")
		for i := range b.rent {
			b.rent[i] = 0.2 * p.Classes[i].Drive.Buy * r.Float64()
		}
		got, want := b.value(true), 0.0
		prices := make([]float64, len(p.Jobs))
		for j := range prices {
			prices[j] = math.Inf(1)
		}
		at := 0
		for i := range x.classes {
			c := &x.classes[i]
			want -= float64(c.c.Count) * b.rent[i]
			for s, span := range x.spans {
				for _, day := range x.grid[i*len(x.spans)+s] {
					e := &b.cells[at]
					at++
					if e.class != i || e.dies != day.t || math.Abs(e.share[0]+e.share[1]+e.share[2]-1) > 1e-9 {
						t.Fatalf("%s: cell %d is %+v", kind, at-1, e)
					}
					if whole := c.c.Drive.Buy + c.c.Drive.Run*max(0, day.t-span[1]); math.Abs(e.cost-whole) > 1e-9*whole {
						t.Fatalf("%s: a drive from day %v to day %v costs %v, not %v", kind, span[1], day.t, e.cost, whole)
					}
					for j := range prices {
						if a := x.arrive[j]; a >= span[0] && min(e.dies, x.end[j]) > a {
							days := min(e.dies, x.end[j]) - a
							all := e.cost + b.rent[i]
							u := all*(e.share[0]*c.wear[j]*days/c.budget+e.share[1]*c.space[j]/c.spaceMost+e.share[2]*c.io[j]/c.ioMost) - x.r*x.rate[j]*days
							prices[j] = min(prices[j], u)
						}
					}
				}
			}
		}
		for j := range prices {
			want += prices[j]
			if math.Abs(b.least[j]-prices[j]) > 1e-9*cost {
				t.Errorf("%s: workload %d has the price %v, not %v", kind, j, b.least[j], prices[j])
			}
		}
		if math.Abs(got-want) > 1e-9*cost {
			t.Errorf("%s: they come to %v, not %v", kind, got, want)
		}
		for i := range b.rent {
			taken := 0.0
			for k := range b.cells {
				if e := &b.cells[k]; e.class == i {
					taken += e.share[0]*e.use[0] + e.share[1]*e.use[1] + e.share[2]*e.use[2]
				}
			}
			was, h := b.rent[i], 1e-6*p.Classes[i].Drive.Buy
			b.rent[i] = was + h
			up := (b.value(false) - got) / h
			b.rent[i] = was - h
			down := (got - b.value(false)) / h
			b.rent[i] = was
			got = b.value(true)
			if math.Abs(up-down) < 1e-4 && math.Abs(up-(taken-float64(p.Classes[i].Count))) > 1e-3 {
				t.Errorf("%s: class %d is taken %v times; the slope of %d is %v", kind, i, taken, p.Classes[i].Count, up)
			}
		}
		// The relaxation's cells begin with these prices.
		b.into()
		at = 0
		for i := range x.classes {
			for s := range x.spans {
				for _, day := range x.grid[i*len(x.spans)+s] {
					e := &b.cells[at]
					at++
					c, all := &x.classes[i], e.cost+b.rent[i]
					for k, pair := range [3][2]float64{{day.q.Wear, c.budget}, {day.q.Space, c.spaceMost}, {day.q.IOPS, c.ioMost}} {
						if math.Abs(pair[0]*pair[1]-all*e.share[k]) > 1e-9*all {
							t.Fatalf("%s: a price of %v on %v, of %v in all", kind, pair[0], pair[1], all)
						}
					}
				}
			}
		}
	}
}

// TestCells: cells cover each day of death once, none goes across a workload's end, each is as low as its ends, and refining raises what they prove.
func TestCells(t *testing.T) {
	for n, kind := range smallKinds {
		p, host := bounded(t, kind, uint64(n))
		x, cost, _ := relaxed(t, p, host, 6, 3)
		hold := func(cells [][]cell) {
			t.Helper()
			want := 0.0
			for _, u := range x.value {
				want += u
			}
			for i := range x.classes {
				c := &x.classes[i]
				least := math.Inf(1)
				for s, span := range x.spans {
					list := cells[i*len(x.spans)+s]
					last := math.Inf(1)
					if p.Config.Horizon > 0 {
						last = p.Config.Horizon + span[1]
					}
					if list[0].From != span[0] || math.Abs(list[len(list)-1].To-last) > 1e-9 && !math.IsInf(last, 1) || math.IsInf(last, 1) && !math.IsInf(list[len(list)-1].To, 1) {
						t.Fatalf("%s: from %v to %v", kind, list[0].From, list[len(list)-1].To)
					}
					for k, e := range list {
						if k > 0 && e.From != list[k-1].To || !(e.From < e.To) {
							t.Fatalf("%s: from %v to %v behind %v", kind, e.From, e.To, list[max(k-1, 0)].To)
						}
						for _, end := range x.edges {
							if end > e.From && end < e.To {
								t.Fatalf("%s: a workload ends on day %v, between %v and %v", kind, end, e.From, e.To)
							}
						}
						low := x.dual.least(c, x.value, span[0], span[1], e.From, e.To, &e.Piece)
						if !math.IsInf(e.To, 1) {
							low = min(low, x.dual.least(c, x.value, span[0], span[1], e.To, e.To, &e.Piece))
						}
						if math.Abs(e.low-low) > 1e-9*cost {
							t.Fatalf("%s: from %v to %v: %v, not %v", kind, e.From, e.To, e.low, low)
						}
						least = min(least, e.low)
					}
				}
				if c.c.Optional {
					least = min(least, 0)
				} else {
					least = min(least, c.c.Drive.Buy)
				}
				want += float64(c.c.Count) * least
			}
			if got := x.total(cells); math.Abs(got-want) > 1e-9*cost {
				t.Errorf("%s: they prove %v, not %v", kind, got, want)
			}
		}
		cells := x.cells()
		hold(cells)
		before := x.total(cells)
		x.refine(cells, 1e-4*cost)
		hold(cells)
		if after := x.total(cells); after < before-1e-9*cost {
			t.Errorf("%s: refined from %v to %v", kind, before, after)
		}
		// With a case's number of drives each has a workload.
		if p.Classes[0].Optional && len(p.Classes) == 1 {
			x.least, x.most = 2, 7
			least, sum := math.Inf(1), 0.0
			for _, u := range x.value {
				sum += u
			}
			for _, list := range cells {
				for _, e := range list {
					least = min(least, e.low)
				}
			}
			if want := sum + min(2*least, 7*least); math.Abs(x.total(cells)-want) > 1e-9*cost {
				t.Errorf("%s: 2 to 7 drives prove %v, not %v", kind, x.total(cells), want)
			}
		}
	}
}

// TestReach: what the ways to prices come to is no worse than it was measured to be, and no proof is above the best plan; a bound that is worse than it could be is a bound still, and
// nothing else would say so.
func TestReach(t *testing.T) {
	for _, c := range reaches {
		got := reached(t, c.kind, c.seed)
		for k, least := range c.least {
			if least != 0 && got[k] < least {
				t.Errorf("%s %d: %s %.5f, less than %.5f", c.kind, c.seed, [...]string{"the plan's prices come to", "rents come to", "blocks come to", "raised prices come to", "what is proven is"}[k], got[k], least)
			}
		}
		if got[4] > 1+1e-9 {
			t.Errorf("%s %d: a rate of %v of the plan's is proven", c.kind, c.seed, got[4])
		}
	}
}

// reaches are rounded down. 0: not asked for.
var reaches = []struct {
	kind  string
	seed  uint64
	least [5]float64
}{
	{"plain", 0, [5]float64{-0.26839, -0.13267, 0, -0.13267, 0.70709}},
	{"plain", 1, [5]float64{-1.35259, -1.44445, 0, -0.56981, 0.33188}},
	{"plain", 2, [5]float64{-0.89603, -0.99177, 0, -0.19219, 0.81093}},
	{"horizon", 0, [5]float64{-0.19801, -0.11963, -0.11286, -0.09852, 0.90198}},
	{"horizon", 1, [5]float64{-0.01495, -0.05579, -0.05403, -0.02111, 0.97096}},
	{"horizon", 2, [5]float64{-26.37662, -0.23427, -0.16899, -0.12898, 0.65838}},
	{"owned", 0, [5]float64{-0.20142, -0.13297, 0, 0.01226, 0.98565}},
	{"owned", 1, [5]float64{-0.55019, -0.37871, 0, 0.00811, 0.96269}},
	{"owned", 2, [5]float64{-0.31879, -0.2165, 0, -0.0297, 0.94118}},
	{"space", 0, [5]float64{-1.51174, -0.31264, 0, -0.22193, 0.66401}},
	{"space", 1, [5]float64{-0.05274, -0.08872, 0, 0.00066, 0}},
	{"space", 2, [5]float64{-0.05753, -0.28274, 0, -0.0106, 0.96003}},
	{"few", 0, [5]float64{-0.24934, -0.25529, -0.25981, -0.25981, 0.69378}},
	{"few", 1, [5]float64{-0.21825, -0.13305, -0.14262, -0.14262, 0.88329}},
	{"few", 2, [5]float64{-0.22608, -0.12643, -0.1194, -0.07711, 0.9243}},
	{"array", 0, [5]float64{-0.30043, -0.36968, 0, -0.07269, 0.89867}},
	{"array", 1, [5]float64{-0.40673, -0.405, 0, -0.40478, 0.65975}},
	{"array", 2, [5]float64{-0.21247, -0.15768, 0, -0.15768, 0.83374}},
	{"one", 0, [5]float64{-0.5945, -0.1393, 0, -0.02076, 0.81628}},
	{"one", 1, [5]float64{-0.06609, -0.06445, 0, -0.03478, 0.96137}},
	{"one", 2, [5]float64{-1.22436, -0.48385, 0, -0.40737, 0}},
	{"one with a horizon", 0, [5]float64{-0.70883, -0.13754, -0.15485, -0.15485, 0.88329}},
	{"one with a horizon", 1, [5]float64{-0.28236, -0.08441, -0.09858, -0.07278, 0.8231}},
	{"one with a horizon", 2, [5]float64{-0.92133, -0.0997, -0.16216, -0.16216, 0.92953}},
	{"together", 0, [5]float64{-0.18719, -0.12266, 0, -0.11598, 0.89617}},
	{"together", 1, [5]float64{-0.56406, -0.12712, 0, -0.05749, 0.91763}},
	{"together", 2, [5]float64{-0.18183, -0.25162, 0, -0.14881, 0.89439}},
	{"ends", 0, [5]float64{-0.48585, -0.21406, 0, -0.1316, 0.85666}},
	{"ends", 1, [5]float64{-0.1129, -0.07447, 0, -0.04436, 0.90683}},
	{"ends", 2, [5]float64{-0.10594, -0.2536, 0, -0.05279, 0.91683}},
	{"many", 0, [5]float64{-0.77868, -0.26566, 0, -0.26566, 0}},
	{"many with a horizon", 0, [5]float64{-2.30238, -0.09711, -0.0579, -0.05843, 0}},
	{"hundreds with a horizon", 0, [5]float64{0, 0, 0, 0, 0.85958}},
}

// TestIdleDrives: drives that are there and earn nothing are paid for all the same, and no more than that.
func TestIdleDrives(t *testing.T) {
	p, host := bounded(t, "owned", 1)
	x, _, _ := relaxed(t, p, host, 5, 20) // a first day each
	x.r = 0
	clear(x.value)
	cells := x.cells()
	if got, want := x.total(cells), 2*p.Classes[0].Drive.Buy; math.Abs(got-want) > 1e-9*want {
		t.Errorf("they come to %v, not %v", got, want)
	}
	if got, want := x.evaluate(1, false), 2*p.Classes[0].Drive.Buy; math.Abs(got-want) > 1e-9*want {
		t.Errorf("the dual is %v, not %v", got, want)
	}
}

// reached is how far each way to prices comes: the dual's value, as a share of the plan's cost, of the prices that the plan, rents and blocks suggest and after
// they were raised, and the rate that is proven, as a share of the plan's.
func reached(t *testing.T, kind string, seed uint64) (got [5]float64) {
	t.Helper()
	p, host := bounded(t, kind, seed)
	x, cost, data := relaxed(t, p, host, 8, 4)
	if len(p.Jobs) < 500 {
		got[0] = x.evaluate(1, false) / cost
		x.rents(100)
		got[1] = x.evaluate(1, false) / cost
		if p.Config.Horizon > 0 {
			b := x.newBlocks()
			b.raise(40)
			b.into()
			got[2] = x.evaluate(1, false) / cost
		}
		x.raise(30, 1e-9*cost)
		got[3] = x.evaluate(1, false) / cost
	}
	c := Priced(tco.OptimiseConfig{Climb: 60, Days: 20, Spans: 4}, p, host)
	if err := certify.Check(p, c); err != nil {
		t.Errorf("%s %d: %v", kind, seed, err)
	}
	got[4] = c.Rate / (cost / data)
	return got
}

// TestSuggest: what a plan suggests. A drive that wears out has the price of wear at which a day more of it pays for itself; where space is short a GB of it
// takes what makes a drive worth as much as the least of its class; and a workload costs what it does on the drive that suits it best.
func TestSuggest(t *testing.T) {
	limited := 0
	short := 0
	for n, kind := range append([]string{"owned and short of space"}, smallKinds...) {
		for _, slower := range []float64{1, 400} { // some write less than a GB a day
			p, host := bounded(t, kind, uint64(n))
			for j := range p.Jobs {
				p.Jobs[j].WriteRate /= slower
			}
			for i := range p.Classes {
				p.Classes[i].Drive.Budget /= slower
			}
			x, cost, _ := relaxed(t, p, host, 5, 3)
			drives, class := p.Drives()
			a, err := tco.Assess(p.Config, drives, p.Jobs, host)
			if err != nil {
				t.Fatal(err)
			}
			wear, rent, space := make([]float64, len(drives)), make([]float64, len(drives)), make([]float64, len(drives))
			least := make([]float64, len(p.Classes))
			for i := range least {
				if least[i] = math.Inf(1); p.Classes[i].Optional {
					least[i] = 0
				}
			}
			for k := range drives {
				s := &a.Drives[k]
				rate, worn := 0.0, 0.0
				for j := range host {
					if host[j] == k {
						rate, worn = rate+p.Jobs[j].WriteRate, worn+x.classes[class[k]].wear[j]
					}
				}
				if s.Limited && worn > 0 {
					limited++
					wear[k] = max(0, x.r*rate-drives[k].Run) / worn
				}
				if rent[k] = s.Cost - wear[k]*(drives[k].Budget-drives[k].Worn); s.Workloads > 0 {
					least[class[k]] = min(least[class[k]], rent[k])
				}
			}
			for k := range drives {
				if c := &x.classes[class[k]]; c.spaceTight {
					if space[k] = max(0, rent[k]-least[class[k]]) / c.spaceMost; space[k] > 0 && !c.c.Optional {
						short++
					}
				}
			}
			for j := range host {
				want := math.Inf(1)
				for k := range drives {
					if s := &a.Drives[k]; s.Workloads > 0 && s.Death > x.arrive[j] {
						c, days := &x.classes[class[k]], min(s.Death, x.end[j])-x.arrive[j]
						want = min(want, days*(wear[k]*c.wear[j]-x.r*x.rate[j])+space[k]*c.space[j])
					}
				}
				if math.Abs(x.value[j]-want) > 1e-8*cost {
					t.Errorf("%s: workload %d has the price %v, not %v", kind, j, x.value[j], want)
				}
				if days := min(a.Drives[host[j]].Death, x.end[j]) - x.arrive[j]; math.Abs(x.planned[j]-days) > 1e-9*days {
					t.Errorf("%s: workload %d writes for %v days, not %v", kind, j, x.planned[j], days)
				}
			}
		}
	}
	if short == 0 {
		t.Error("no drive that is there is short of space: no test")
	}
	if limited < 20 {
		t.Errorf("%d drives wear out: no test", limited)
	}
}

// TestOptimise: a plan of few workloads is its own bound, all but the last digits; none is made unless it is asked for or if nobody writes, and where there is no plan that is said.
func TestOptimise(t *testing.T) {
	p, host := bounded(t, "plain", 1)
	how := tco.OptimiseConfig{Climb: 1, Days: 5, Spans: 2, Seed: 1}
	o, err := Optimise(how, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c := Of(how, p, host); !c.Exhaustive || !o.Certificate.Exhaustive || c.Rate != o.Bound || !(o.Bound < o.CostPerGB()) || o.Gap() > 1e-8 {
		t.Errorf("%+v, a bound of %v for %v", c, o.Bound, o.CostPerGB())
	}
	how.Climb = 0
	if o, err = Optimise(how, p, nil); err != nil || o.Certificate != nil || o.Bound != 0 {
		t.Errorf("%v: %+v", err, o)
	}
	how.Climb = 1
	p.Config.Horizon = 900
	for j := range p.Jobs {
		p.Jobs[j].WriteRate = 0
	}
	if o, err = Optimise(how, p, nil); err != nil || o.Certificate != nil || o.Bound != 0 {
		t.Errorf("%v: %+v", err, o)
	}
	p.Jobs[0].WorkingSet = 1e9
	if o, err = Optimise(how, p, nil); err == nil {
		t.Errorf("%+v", o)
	}
}
