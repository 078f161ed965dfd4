package bound

import (
	"math"
	"slices"
	"testing"

	"farflash/numeric/rng"
	"farflash/planner/tco"
	"farflash/planner/tco/certify"
)

// bounded draws a problem of a kind and a good plan of it. Up to the kind "many" there are so few workloads that the
// plan is optimal.
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
	if kind == "horizon" || kind == "few" || kind == "one with a horizon" || kind == "many with a horizon" ||
		kind == "hundreds with a horizon" {
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

// relaxed returns the relaxation of a problem at the rate of a plan.
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

var smallKinds = []string{"plain", "horizon", "owned", "space", "few", "array", "one", "one with a horizon",
	"together", "ends"}

// TestEvaluate verifies that the dual's value is that of the prices and of each class's minimum, and that the shares
// taken are its gradient.
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
				continue // with several limits the prices are not optimal
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

// TestShares verifies that a workload's price is the minimum over all pieces and both of their ends, that no piece's
// prices exceed the cost of a drive there, that demand is the derivative of the sum by the rents, and that raising
// keeps the best prices.
func TestShares(t *testing.T) {
	for n, kind := range []string{"plain", "horizon", "few", "ends", "owned", "one with a horizon",
		"many with a horizon"} {
		p, host := bounded(t, kind, uint64(n))
		x, cost, _ := relaxed(t, p, host, 5, 6)
		b := x.newShares()
		first, _ := b.sum(0, true)
		b.raise(40, 0)
		if again, _ := b.sum(0, true); again < first-1e-9*cost || math.IsInf(again, 0) {
			t.Errorf("%s: raised from %v to %v", kind, first, again)
		}
		before, _ := b.sum(0.01, true)
		pieces := len(b.pieces)
		if b.refine(0.005); len(b.pieces) <= pieces {
			t.Errorf("%s: %d pieces are refined to %d", kind, pieces, len(b.pieces))
		}
		if after, _ := b.sum(0, true); after < before-1e-9*cost {
			t.Errorf("%s: shorter pieces come to less: %v, %v before", kind, after, before)
		}
		r := rng.NewStream(uint64(n), "shares")
		for i := range b.rent {
			b.rent[i] = 0.2 * p.Classes[i].Drive.Buy * r.Float64()
		}
		got, _ := b.sum(0, true)
		want := 0.0
		prices := make([]float64, len(p.Jobs))
		for j := range prices {
			prices[j] = math.Inf(1)
		}
		for i := range x.classes {
			c, lowest := &x.classes[i], 0.0
			for s, span := range x.spans {
				last := span[0]
				for _, e := range b.pieces[b.from[i][s]:b.from[i][s+1]] {
					if e.from != last || e.class != i {
						t.Fatalf("%s: a piece from %v behind %v", kind, e.from, last)
					}
					last = e.to
					money := c.c.Drive.Run * (e.from - span[1])
					if c.c.Optional {
						money += c.c.Drive.Buy
					}
					lowest = min(lowest, money-e.price[0]*c.budget-e.price[1]*c.spaceMost-e.price[2]*c.ioMost)
					for j := range prices {
						a := x.arrive[j]
						if a < span[0] || e.to <= a {
							continue
						}
						for _, t := range []float64{e.from, e.to} {
							if math.IsInf(t, 1) {
								continue
							}
							days := min(t, x.end[j]) - a
							prices[j] = min(prices[j],
								(e.price[0]*c.wear[j]-x.r*x.rate[j])*days+e.price[1]*c.space[j]+e.price[2]*c.io[j])
						}
					}
				}
				if end := p.Config.Horizon + span[1]; p.Config.Horizon > 0 && math.Abs(last-end) > 1e-9 ||
					p.Config.Horizon == 0 && !math.IsInf(last, 1) {
					t.Fatalf("%s: the pieces end on day %v", kind, last)
				}
			}
			if p.Config.Horizon > 0 && lowest < -b.rent[i]*(1+1e-9)-c.c.Drive.Run*1200 {
				t.Errorf("%s: a drive comes to %v less than what is on it; its rent is %v", kind, -lowest, b.rent[i])
			}
			if want += float64(c.c.Count) * lowest; !c.c.Optional {
				want += float64(c.c.Count) * c.c.Drive.Buy
			}
		}
		for j := range prices {
			want += prices[j]
			if math.Abs(b.value[j]-prices[j]) > 1e-9*cost {
				t.Errorf("%s: workload %d has the price %v, not %v", kind, j, b.value[j], prices[j])
			}
		}
		if math.Abs(got-want) > 1e-9*cost {
			t.Errorf("%s: they come to %v, not %v", kind, got, want)
		}
	}
}

// TestProofs verifies that proofs by prices pass an independent checker, for problems of all kinds that are not
// enumerated.
func TestProofs(t *testing.T) {
	for n, kind := range append(slices.Clone(smallKinds), "many", "many with a horizon") {
		for seed := range uint64(1) {
			p, host := bounded(t, kind, uint64(n)+100*(seed+1))
			cfg := tco.DefaultOptimiseConfig()
			cfg.Climb = 60
			cert := Priced(cfg, p, host)
			if err := certify.Check(p, cert); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
			cost, data, err := p.Value(host)
			if err != nil {
				t.Fatal(err)
			}
			if cert.Rate > cost/data*(1+1e-9) {
				t.Errorf("%s: a bound of %v, and a plan of %v", kind, cert.Rate, cost/data)
			}
		}
	}
}

// TestWholes verifies that 70 workloads of 100 GB on drives of 1,000 and 3,000 GB at the same price per GB need whole
// drives, which the proof counts; that an independent checker accepts it, and rejects it with a higher rate or if the
// drives are declared as owned.
func TestWholes(t *testing.T) {
	p := &tco.Problem{Config: tco.Config{Horizon: 1000, FillSpace: 1, FillIOPS: 1}}
	for k, size := range []float64{1000, 3000} {
		p.Classes = append(p.Classes,
			tco.Class{Drive: tco.Drive{Name: string(rune('a' + k)), Buy: size + 100*float64(k), Budget: 1e12,
				Capacity: size, IOPS: 1e6, WAF: tco.Constant(1)}, Count: 80, Optional: true})
	}
	host := make([]int, 71)
	for j := range host {
		w := tco.Workload{Name: "w" + string(rune('0'+j)), WriteRate: 10, WorkingSet: 100, PeakIOPS: 1}
		p.Jobs = append(p.Jobs, w)
		host[j] = j / 10 // eight drives of the first class, one of them with a single workload
	}
	cert := Priced(tco.DefaultOptimiseConfig(), p, host)
	if err := certify.Check(p, cert); err != nil {
		t.Fatal(err)
	}
	// The workloads need 7.1 drives of the first class, hence eight whole ones; no plan is cheaper.
	if best := 8000 / (71 * 10 * 1000.0); !cert.Cases[0].Whole || cert.Rate < best*(1-1e-4) ||
		cert.Rate > best*(1+1e-9) {
		t.Errorf("counting whole drives: %v; a rate of %v, not %v", cert.Cases[0].Whole, cert.Rate, best)
	}
	forged := *cert
	forged.Rate *= 1.001
	if certify.Check(p, &forged) == nil {
		t.Error("a higher rate passes")
	}
	p.Classes[1].Optional = false
	if certify.Check(p, cert) == nil {
		t.Error("drives that are there are counted")
	}
	d := newDual(p)
	for _, c := range []struct{ each, want [2]float64 }{
		{[2]float64{1000, 3100}, [2]float64{8000}}, {[2]float64{1000, 2900}, [2]float64{7800}},
		{[2]float64{5000, 2900}, [2]float64{8700}}, {[2]float64{0, 7}, [2]float64{0}},
	} {
		if got := d.wholes(c.each[:]); math.Abs(got-c.want[0]) > 1e-9 {
			t.Errorf("at %v whole drives come to %v, not %v", c.each, got, c.want[0])
		}
	}
}

// TestCells verifies that cells cover each day of death once, that none spans a workload's end, that each is as low as
// its ends, and that refining raises the sum they prove.
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
					if list[0].From != span[0] ||
						math.Abs(list[len(list)-1].To-last) > 1e-9 && !math.IsInf(last, 1) ||
						math.IsInf(last, 1) && !math.IsInf(list[len(list)-1].To, 1) {
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
		// With a case's number of drives, each drive has a workload.
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

// TestReach verifies that each way to prices is no worse than recorded, and that no proof exceeds the best plan. A
// weaker bound is still a bound, and no other test would detect it.
func TestReach(t *testing.T) {
	for _, c := range reaches {
		got := reached(t, c.kind, c.seed)
		for k, least := range c.least {
			if least != 0 && got[k] < least {
				t.Errorf("%s %d: %s %.5f, less than %.5f", c.kind, c.seed,
					[...]string{"the plan's prices come to", "rents come to", "shares come to",
						"raised prices come to", "what is proven is"}[k], got[k], least)
			}
		}
		if got[4] > 1+1e-9 {
			t.Errorf("%s %d: a rate of %v of the plan's is proven", c.kind, c.seed, got[4])
		}
	}
}

// reaches are rounded down. 0: not measured.
var reaches = []struct {
	kind  string
	seed  uint64
	least [5]float64
}{
	{"plain", 0, [5]float64{-0.26839, -0.13267, -0.38116, -0.13267, 0.74699}},
	{"plain", 1, [5]float64{-1.35259, -1.44445, -1.36766, -0.56981, 0.33188}},
	{"plain", 2, [5]float64{-0.89603, -0.99177, -0.95727, -0.19219, 0.81093}},
	{"horizon", 0, [5]float64{-0.19801, -0.11963, -0.16233, -0.1471, 0.95014}},
	{"horizon", 1, [5]float64{-0.01495, -0.05579, -0.07208, -0.02612, 0.97759}},
	{"horizon", 2, [5]float64{-26.37662, -0.23427, -0.63726, -0.29495, 0.67336}},
	{"owned", 0, [5]float64{-0.20142, -0.13297, -0.26564, 0.01226, 0.98565}},
	{"owned", 1, [5]float64{-0.55019, -0.37871, -0.40433, 0.00811, 0.96269}},
	{"owned", 2, [5]float64{-0.31879, -0.2165, -0.34955, -0.0297, 0.94118}},
	{"space", 0, [5]float64{-1.51174, -0.31264, -0.37469, -0.22193, 0.67008}},
	{"space", 1, [5]float64{-0.05274, -0.08872, -0.07568, 0.00066, 0}},
	{"space", 2, [5]float64{-0.05753, -0.28274, -0.17512, -0.0106, 0.95501}},
	{"few", 0, [5]float64{-0.24934, -0.25529, -0.31161, -0.2968, 0.72565}},
	{"few", 1, [5]float64{-0.21825, -0.13305, -0.15984, -0.14064, 0.92093}},
	{"few", 2, [5]float64{-0.22608, -0.12643, -0.14001, -0.098, 0.94495}},
	{"array", 0, [5]float64{-0.30043, -0.36968, -0.24206, -0.07269, 0.93539}},
	{"array", 1, [5]float64{-0.40673, -0.405, -0.30603, -0.40478, 0.65419}},
	{"array", 2, [5]float64{-0.21247, -0.15768, -0.27461, -0.15768, 0.88745}},
	{"one", 0, [5]float64{-0.5945, -0.1393, -0.31321, -0.02076, 0.86141}},
	{"one", 1, [5]float64{-0.06609, -0.06445, -0.15185, -0.03478, 0.96137}},
	{"one", 2, [5]float64{-1.22436, -0.48385, -0.91225, -0.40737, 0}},
	{"one with a horizon", 0, [5]float64{-0.70883, -0.13754, -0.18985, -0.18985, 0.88347}},
	{"one with a horizon", 1, [5]float64{-0.28236, -0.08441, -0.13055, -0.07045, 0.92451}},
	{"one with a horizon", 2, [5]float64{-0.92133, -0.0997, -0.10037, -0.10037, 0.9372}},
	{"together", 0, [5]float64{-0.18719, -0.12266, -0.2549, -0.11598, 0.89617}},
	{"together", 1, [5]float64{-0.56406, -0.12712, -0.36938, -0.05749, 0.91763}},
	{"together", 2, [5]float64{-0.18183, -0.25162, -0.25408, -0.14881, 0.89439}},
	{"ends", 0, [5]float64{-0.48585, -0.21406, -0.43271, -0.1316, 0.85666}},
	{"ends", 1, [5]float64{-0.1129, -0.07447, -0.19451, -0.04436, 0.90683}},
	{"ends", 2, [5]float64{-0.10594, -0.2536, -1.22555, -0.05279, 0.91683}},
	{"many", 0, [5]float64{-0.77868, -0.26566, -0.91441, -0.26566, 0}},
	{"many with a horizon", 0, [5]float64{-2.6115, -0.12826, -0.08832, -0.08697, 0}},
	{"hundreds with a horizon", 0, [5]float64{0, 0, 0, 0, 0.85067}},
}

// TestIdleDrives verifies that owned drives without income are paid for, and no more than that.
func TestIdleDrives(t *testing.T) {
	p, host := bounded(t, "owned", 1)
	x, _, _ := relaxed(t, p, host, 5, 20) // a span for each first day
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

// reached measures each way to prices: the dual's value, as a share of the plan's cost, for the prices suggested by the
// plan, by rents and by shares, and after raising them, and the proven rate, as a share of the plan's.
func reached(t *testing.T, kind string, seed uint64) (got [5]float64) {
	t.Helper()
	p, host := bounded(t, kind, seed)
	x, cost, data := relaxed(t, p, host, 8, 4)
	if len(p.Jobs) < 500 {
		got[0] = x.evaluate(1, false) / cost
		x.rents(100)
		got[1] = x.evaluate(1, false) / cost
		b := x.newShares()
		b.raise(40, 0)
		f, _ := b.sum(0, true)
		got[2] = f / cost
		if p.Config.Horizon > 0 {
			copy(x.value, b.value)
			b.into()
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

// TestSuggest verifies the prices suggested by a plan. For a drive that wears out, the price of wear is that at which
// one more day pays for itself; if space is short, a GB of it costs what makes a drive worth as much as the least of
// its class; and a workload's price is its cost on the drive that suits it best.
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
			wear, rent, space := make([]float64, len(drives)), make([]float64, len(drives)),
				make([]float64, len(drives))
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
				if days := min(a.Drives[host[j]].Death, x.end[j]) -
					x.arrive[j]; math.Abs(x.planned[j]-days) > 1e-9*days {
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

// TestOptimise verifies that a plan of few workloads is its own bound except for the last digits, that there is no
// bound unless requested or if no workload writes, and that infeasibility is reported.
func TestOptimise(t *testing.T) {
	p, host := bounded(t, "plain", 1)
	how := tco.OptimiseConfig{Climb: 1, Days: 5, Spans: 2, Seed: 1}
	o, err := Optimise(how, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c := Of(how, p, host); !c.Exhaustive || !o.Certificate.Exhaustive || c.Rate != o.Bound ||
		!(o.Bound < o.CostPerGB()) || o.Gap() > 1e-8 {
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
