package drives

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"farflash/numeric/rng"
	"farflash/planner/tco"
	"farflash/planner/tco/calendar"
	"farflash/policy/ftl/waf"
	"farflash/scenario/shape"
	"farflash/workload/characterise"
)

// near reports whether two numbers agree but for rounding.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b), 1) }

// TestBetween verifies the latency at, between and beyond the simulated loads.
func TestBetween(t *testing.T) {
	curve := []latencies{{10, 1}, {20, 2}, {40, 6}, {80, 10}} // the drive is saturated at 85 %
	for load, want := range map[float64]latencies{0: {10, 1}, 0.1: {10, 1}, 0.2: {15, 1.5}, 0.3: {20, 2}, 0.35: {25, 3},
		0.5: {40, 6}, 0.7: {80, 10}, 0.7000001: {math.Inf(1), math.Inf(1)}, 0.96: {math.Inf(1), math.Inf(1)}} {
		if got := between(curve, load); got != want && (!near(got.read, want.read) || !near(got.write, want.write)) {
			t.Errorf("at %v: %v, want %v", load, got, want)
		}
	}
	if got := between(nil, 0); !math.IsInf(got.read, 1) {
		t.Errorf("a drive that keeps up with nothing takes %v us", got)
	}
}

// TestTailIsLinear verifies the interpolation between mixes: a latency that is linear in each of them is exact, and
// mixes without reads or without writes take theirs from their neighbours.
func TestTailIsLinear(t *testing.T) {
	read := func(w, size, s float64) float64 { return 100 + 40*w + 30*size + 8*s }
	write := func(w, size, s float64) float64 { return 900 - 50*w + 7*size - 3*s }
	tail := &simulatedTail{curves: map[node][]latencies{}}
	for w := range writeParts + 1 {
		for size := -2; size <= 13; size++ {
			for s := range sequentialParts + 1 {
				a, b, c := float64(w), float64(size), float64(s)
				v := latencies{read(a, b, c), write(a, b, c)}
				if w == 0 {
					v.write = math.NaN()
				} else if w == writeParts {
					v.read = math.NaN()
				}
				var curve []latencies
				for range tailLoads {
					curve = append(curve, v)
				}
				tail.curves[node{w, size, s}] = curve
			}
		}
	}
	r := rng.NewStream(5, "mixes")
	for range 300 {
		m := tco.Traffic{Load: 0.9 * r.Float64(), Writes: 0.125 + 0.75*r.Float64(),
			Size: 4 * math.Exp2(14*r.Float64()-2), Sequential: r.Float64()}
		w, size, s := 8*m.Writes, math.Log2(max(m.Size, 1)/4), 2*m.Sequential
		if gotR, gotW := tail.P99(m); !near(gotR, read(w, size, s)) || !near(gotW, write(w, size, s)) {
			t.Fatalf("%+v: %v and %v, want %v and %v", m, gotR, gotW, read(w, size, s), write(w, size, s))
		}
	}
	for _, x := range []struct {
		m           tco.Traffic
		read, write float64
	}{
		{tco.Traffic{Size: 4}, read(0, 0, 0), write(1, 0, 0)},
		{tco.Traffic{Size: 4, Writes: 1}, read(7, 0, 0), write(8, 0, 0)},
		{tco.Traffic{Size: 16, Writes: 1, Sequential: 1}, read(7, 2, 2), write(8, 2, 2)},
		{tco.Traffic{Size: 0.25, Writes: 0.5}, read(4, -2, 0), write(4, -2, 0)}, // as long as 1 KiB
		{tco.Traffic{Size: 4, Writes: 2, Sequential: 3}, read(7, 0, 2), write(8, 0, 2)},
		{tco.Traffic{Size: 4, Writes: -1, Sequential: -1}, read(0, 0, 0), write(1, 0, 0)},
	} {
		if gotR, gotW := tail.P99(x.m); !near(gotR, x.read) || !near(gotW, x.write) {
			t.Errorf("%+v: %v and %v, want %v and %v", x.m, gotR, gotW, x.read, x.write)
		}
	}
}

// TestLoadSimulated verifies the workload that is simulated for a mix: its rates add up, and each direction has enough
// requests.
func TestLoadSimulated(t *testing.T) {
	for _, x := range []struct {
		m    mixed
		want string
	}{
		{mixed{1000, 0, 4, 0}, "[{synthetic: {reads: {size: 4096B, interarrival: {mean: 1000us}}, duration: 2e+07us}}]"},
		{mixed{1000, 1, 4, 1}, "[{synthetic: {writes: {size: 4096B, interarrival: {mean: 1000us}, " +
			"addresses: {run_length: 1000000}}, duration: 2e+07us}}]"},
		{mixed{1000, 0.25, 8, 0}, "[{synthetic: {reads: {size: 8192B, interarrival: {mean: 1333.33us}}, writes: " +
			"{size: 8192B, interarrival: {mean: 4000us}}, duration: 2e+07us}}]"},
		{mixed{1000, 0.5, 128, 0.5}, "[{synthetic: {reads: {size: 131072B, interarrival: {mean: 2000us}}, writes: " +
			"{size: 131072B, interarrival: {mean: 4000us}}, duration: 1e+07us}}, {synthetic: {writes: {size: 131072B, " +
			"interarrival: {mean: 4000us}, addresses: {run_length: 1000000}}, duration: 1e+07us}}]"},
		// 500 requests of the rarer direction, of which every eighth writes.
		{mixed{1000, 0.125, 16384, 0}, "[{synthetic: {reads: {size: 16777216B, interarrival: {mean: 1142.86us}}, writes: " +
			"{size: 16777216B, interarrival: {mean: 8000us}}, duration: 4e+06us}}]"},
	} {
		if got := x.m.workload(); got != x.want {
			t.Errorf("%+v:\n%s, want\n%s", x.m, got, x.want)
		}
	}
}

// TestRatesScale verifies that simulated write amplification depends on the ratios of the workloads' rates only, also
// if they are below 1 GB a day, and that a fleet without writes has none.
func TestRatesScale(t *testing.T) {
	sweep := func(rate float64) []waf.MixPoint {
		p := loaded(t, oneOfTLC)
		p.jobs = []tco.Workload{{WriteRate: rate, WorkingSet: 10, Sequential: 0.5},
			{WriteRate: rate / 2, WorkingSet: 30, Sequential: 0.5}}
		got, err := p.sweptWAF(leastBlocks*2, 1.25)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	a, b := sweep(0.5), sweep(64)
	if len(a) != 1 || len(b) != 1 || a[0] != b[0] || a[0].S != 0.5 || a[0].WAF <= 1 {
		t.Errorf("%v and %v", a, b)
	}
	if c := sweep(0); len(c) != 1 || c[0] != (waf.MixPoint{WAF: 1}) {
		t.Errorf("nothing is written: %v", c)
	}
	p := loaded(t, oneOfTLC)
	if w, err := p.simulatedWAF(leastBlocks, 1.25); err != nil || w.At(0.3) != 1 {
		t.Errorf("%v, %v", w, err)
	}
}

// TestBent verifies what each change of the inputs does to a drive, an array and a workload, by hand.
func TestBent(t *testing.T) {
	p := loaded(t, `
costs: {electricity: $0.24, pue: 2, setup: $70}
drives:
  - {model: Intel DC P3700 2TB, name: one, count: 1, price: $1000, active_w: 20, idle_w: 4, duty: 50%, waf: 2}
  - {model: Intel DC P3700 2TB, name: two, count: 1, price: $1000, active_w: 20, idle_w: 4, duty: 50%, waf: 2, array: {kind: raid1, drives: 2}}
workloads: {list: [{name: w, write_gb_per_day: 8, working_set_gb: 100, peak_iops: 50}]}
`)
	f, err := p.fleet(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o := &Outcome{Plan: p, fleet: f}
	const day = 24 * 0.24 * 2 / 1000 // a watt's money a day
	for _, x := range []struct {
		name                                         string
		set                                          func(b *bend)
		buy, next, run, idle, waf                    float64 // of one drive; an array has two
		writes, space, iops, growth, horizon, charge float64
	}{
		{"nothing", func(*bend) {}, 1070, 1000, 12 * day, 4 * day, 2, 8, 100, 50, 0, 1825, 0.24},
		{"price", func(b *bend) { b.price = 1.5 }, 1570, 1500, 12 * day, 4 * day, 2, 8, 100, 50, 0, 1825, 0.24},
		{"electricity", func(b *bend) { b.electricity = 2 }, 1070, 1000, 24 * day, 8 * day, 2, 8, 100, 50, 0, 1825, 0.48},
		{"PUE", func(b *bend) { b.pue = 1 }, 1070, 1000, 6 * day, 2 * day, 2, 8, 100, 50, 0, 1825, 0.24},
		{"wear", func(b *bend) { b.waf = 1.25 }, 1070, 1000, 12 * day, 4 * day, 2.5, 8, 100, 50, 0, 1825, 0.24},
		{"least wear", func(b *bend) { b.waf = 0.25 }, 1070, 1000, 12 * day, 4 * day, 1, 8, 100, 50, 0, 1825, 0.24},
		{"workload", func(b *bend) { b.writes, b.space, b.iops = 2, 3, 4 }, 1070, 1000, 12 * day, 4 * day, 2, 16, 300, 200,
			0, 1825, 0.24},
		{"growth", func(b *bend) { b.growth = 0.1 }, 1070, 1000, 12 * day, 4 * day, 2, 8, 100, 50, 0.1, 1825, 0.24},
		{"shrinking", func(b *bend) { b.growth = -2 }, 1070, 1000, 12 * day, 4 * day, 2, 8, 100, 50, -0.99, 1825, 0.24},
		{"horizon", func(b *bend) { b.horizon = 7 }, 1070, 1000, 12 * day, 4 * day, 2, 8, 100, 50, 0, 7, 0.24},
	} {
		b := p.straight()
		x.set(&b)
		got, err := o.bent(context.Background(), b)
		if err != nil {
			t.Fatal(err)
		}
		for k, n := range []float64{1, 2} {
			d := &got.fleet.drives[k]
			if !near(d.Buy, x.buy*n) || !near(d.Upkeep.Next, x.next) || !near(d.Run, x.run*n) ||
				!near(d.Upkeep.Idle, x.idle*n) || !near(d.Upkeep.Active, 5*x.idle*n) || !near(d.WAF.At(0.3), x.waf) ||
				!near(got.fleet.parts[k].paid, x.next) || !near(got.fleet.parts[k].price, x.next) {
				t.Errorf("%s of %v drives: %+v, %+v", x.name, n, d, got.fleet.parts[k])
			}
		}
		w := got.Plan.jobs[0]
		if !near(w.WriteRate, x.writes) || !near(w.WorkingSet, x.space) || !near(w.PeakIOPS, x.iops) ||
			!near(w.Growth, x.growth) || float64(got.Plan.Horizon) != x.horizon ||
			!near(float64(got.Plan.Costs.Electricity), x.charge) {
			t.Errorf("%s: %+v, horizon %v, electricity %v", x.name, w, got.Plan.Horizon, got.Plan.Costs.Electricity)
		}
		if p.jobs[0].WriteRate != 8 || f.drives[0].Buy != 1070 || p.Costs.PUE != 2 {
			t.Fatalf("%s: the plan itself has changed", x.name)
		}
	}
	e := Effect{AtLow: 5, AtHigh: 3}
	if e.Span() != 2 || (&Effect{AtLow: 3, AtHigh: 5}).Span() != 2 {
		t.Errorf("a span of %v", e.Span())
	}
}

// TestStateOf verifies a drive's state from its account.
func TestStateOf(t *testing.T) {
	d := tco.Drive{Budget: 1000, Capacity: 200, IOPS: 50, WAF: tco.Constant(3)}
	a := calendar.Account{First: 10, Last: 30, Data: 80, Wear: 0.25, MostSpace: 50, MostIOs: 7, MostLoad: 10,
		Hosted: 160, Mixed: 40, NAND: 400, Replaced: []float64{20}}
	a.Present[0] = 12
	want := tco.DriveState{Workloads: 2, First: 10, Death: 30, Lifetime: 20, Cost: 12, Data: 80, WearAtDeath: 0.25,
		Worn: 250, Space: 50, SpaceShare: 0.25, Load: 7, IOPSShare: 0.2, Limited: true, WriteRate: 4, Sequential: 0.25,
		WAF: 2.5}
	if got := stateOf(&d, &a, 2); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := stateOf(&d, &calendar.Account{}, 0); got != (tco.DriveState{WAF: 3}) {
		t.Errorf("an unused drive is %+v", got)
	}
	a.Mixed = 170 // rounding
	if got := stateOf(&d, &a, 2).Sequential; got != 1 {
		t.Errorf("a share of %v", got)
	}
}

// TestProved verifies what counts as a bound, the gap to it, and the value by which a plan is judged.
func TestProved(t *testing.T) {
	for _, x := range []struct {
		o                   Outcome
		proved              bool
		gap, per, objective float64
	}{
		{Outcome{Cost: 6, Data: 3}, false, math.Inf(1), 2, 2},
		{Outcome{Cost: 6, Data: 3, Bound: 1.6}, true, 0.25, 2, 2},
		{Outcome{Cost: 6, Data: 3, LeastCost: 5, Calendar: &calendar.Book{}}, true, 0.2, 2, 6},
		{Outcome{Cost: 6, LeastCost: 0.5, Calendar: &calendar.Book{}}, true, 11, math.NaN(), 6},
		{Outcome{Cost: 6}, false, math.NaN(), math.NaN(), 6},
	} {
		same := func(a, b float64) bool { return math.IsNaN(a) && math.IsNaN(b) || a == b || near(a, b) }
		if o := &x.o; o.Proved() != x.proved || !same(o.Gap(), x.gap) || !same(o.CostPerGB(), x.per) ||
			!same(o.Objective(), x.objective) {
			t.Errorf("%+v: proved %v, gap %v, %v per GB, judged by %v", x, o.Proved(), o.Gap(), o.CostPerGB(), o.Objective())
		}
	}
}

// TestFreeDrives verifies that a plan which may cost nothing has no bound, and says so.
func TestFreeDrives(t *testing.T) {
	var list []string
	for i := range exactStays + 12 {
		list = append(list, fmt.Sprintf("{name: w%d, write_gb_per_day: 0.001, working_set_gb: 1}", i))
	}
	p := loaded(t, "search: {steps: 200}\ncosts: {electricity: 0}\ndrives: [{model: Intel DC P3700 2TB, count: 2, price: "+
		"$1, owned: true, afr: 0%}]\nworkloads: {list: ["+strings.Join(list, ", ")+"]}\n")
	o, err := p.Solve(t.Context(), Options{Bound: true})
	if err != nil || o.Cost != 0 || o.LeastCost != 0 || o.Proved() {
		t.Errorf("%v, %v: cost %v, at least %v", err, o.BoundNote, o.Cost, o.LeastCost)
	}
	if !o.Exact && o.BoundNote != "no bound above 0 was found" {
		t.Errorf("%q", o.BoundNote)
	}
	if b := Describe(o, nil).Bound; !o.Exact && (b == nil || b.TCO != nil || b.PerGB != nil || b.Note != o.BoundNote) {
		t.Errorf("%+v", b)
	}
}

// TestDescribed verifies the parts of a document that a plan may lack.
func TestDescribed(t *testing.T) {
	p := loaded(t, oneOfTLC)
	of := func(change func(*Outcome)) *Document {
		o := &Outcome{Plan: p, Assessment: &tco.Assessment{}, Cost: 6}
		change(o)
		return Describe(o, nil)
	}
	show := func(x *float64) string {
		if x == nil {
			return "none"
		}
		return fmt.Sprint(*x)
	}
	for _, x := range []struct {
		name   string
		change func(*Outcome)
		want   string // cost per GB, then the bound's total, per GB, gap and note
	}{
		{"nothing", func(*Outcome) {}, "none"},
		{"data", func(o *Outcome) { o.Data = 3 }, "2"},
		{"a bound", func(o *Outcome) { o.Data, o.Bound = 3, 1.5 }, "2 none 1.5 0.33"},
		{"the least cost", func(o *Outcome) { o.Data, o.LeastCost, o.Calendar = 3, 4, &calendar.Book{} }, "2 4 1.33 0.5"},
		{"a cost without data", func(o *Outcome) { o.LeastCost, o.Calendar = 0.5, &calendar.Book{} }, "none 0.5 none 11"},
		{"a note", func(o *Outcome) { o.BoundNote = "why" }, "none none none none why"},
	} {
		d := of(x.change)
		got := show(d.Metrics.PerGB)
		if b := d.Bound; b != nil {
			got += fmt.Sprintf(" %s %s %s %s", show(b.TCO), show(b.PerGB), show(b.Gap), b.Note)
		}
		cut := strings.NewReplacer("0.33333333333333326", "0.33", "0.33333333333333337", "0.33", "1.3333333333333333", "1.33")
		if got = strings.TrimSpace(cut.Replace(got)); got != x.want {
			t.Errorf("%s: %s, want %s", x.name, got, x.want)
		}
		if (d.Calendar != nil) != (d.Objective == "calendar") || d.Drives == nil || d.Placements == nil {
			t.Errorf("%s: %+v", x.name, d)
		}
	}
	o := &Outcome{Plan: p, Assessment: &tco.Assessment{}}
	for worse, want := range map[float64]float64{0.5: 0.5, math.NaN(): 0, math.Inf(1): 0, 0: 0} {
		for _, whole := range []bool{false, true} {
			why := &Explanation{Workload: "w", Chosen: "a", Next: "b", Worse: worse, Whole: whole,
				Choices: []Choice{{Drive: "a", CostPerGB: 4, Score: 5, WAF: 2, Lifetime: 9, Obstacle: "full"}}}
			x := Describe(o, why).Explain
			per := 4.0
			if whole {
				per = 0
			}
			if x.Worse != want || x.Drive != "a" || x.Next != "b" || x.Workload != "w" ||
				x.Choices[0] != (ChoiceDocument{Drive: "a", PerGB: per, Score: 5, WAF: 2, Lifetime: 9, Obstacle: "full"}) {
				t.Errorf("%v, %v: %+v", worse, whole, x)
			}
		}
	}
}

// TestObstacles verifies the words for why a workload cannot be on a drive.
func TestObstacles(t *testing.T) {
	full := &tco.Misfit{Workload: "a"}
	for _, x := range []struct {
		err      error
		workload string
		want     string
	}{
		{errors.New("no idea"), "a", "no idea"},
		{full, "a", full.Obstacle.String()},
		{fmt.Errorf("plan: %w", full), "b", full.Obstacle.String() + ": a would no longer fit"},
	} {
		if got := obstacle(x.err, x.workload); got != x.want {
			t.Errorf("%v for %s: %q", x.err, x.workload, got)
		}
	}
}

// TestDrivesOfGroup verifies the names, domains and figures of a group's drives, by hand.
func TestDrivesOfGroup(t *testing.T) {
	p := loaded(t, `
apart_by: zone
costs: {electricity: 0, space: $30, labour: $0.5, setup: $7}
drives:
  - {model: Intel DC P3700 2TB, count: 3, price: $100, spare: 25%, worn: 10%, tbw: 5000, rated_waf: 4, waf: 2, domains: [east/r1, west/r2]}
  - {model: Intel DC P3700 2TB, count: 1, price: $100, owned: true, afr: 0%, domains: [east/r9]}
  - {model: Intel DC P3700 2TB, name: pair, up_to: 2, price: $100, array: {kind: raid1, drives: 2}, domains: [west/r1]}
  - {model: Intel DC P3700 2TB, name: five, count: 1, price: $100, array: {kind: raid5, drives: 5}, domains: [west/r1]}
workloads: {list: [{name: w, write_gb_per_day: 8, working_set_gb: 100, peak_iops: 50}]}
`)
	f, err := p.fleet(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for k, want := range []string{"Intel DC P3700 2TB #1 in east of east/r1", "Intel DC P3700 2TB #2 in west of west/r2",
		"Intel DC P3700 2TB #3 in east of east/r1", "Intel DC P3700 2TB #4 in east of east/r9", "pair #1 in west of west/r1",
		"pair #2 in west of west/r1", "five in west of west/r1"} {
		d, x := &f.drives[k], &f.parts[k]
		if got := fmt.Sprintf("%s in %s of %s", d.Name, d.Domain, x.domain); got != want {
			t.Errorf("drive %d is %s, not %s", k, got, want)
		}
		n := map[string]float64{"pair": 2, "five": 5}[strings.Fields(d.Name)[0]]
		n = max(n, 1)
		if u := &d.Upkeep; u.Members != int(n) || !near(u.Labour, 0.5*n) || !near(u.Place, n*30/tco.Month) ||
			x.members != int(n) || u.Next != 100 || !u.ByLoad || x.up != (k == 4 || k == 5) {
			t.Errorf("%s: %+v, %+v", d.Name, u, x)
		}
		buy, setup := 107*n, 7*n
		if k == 3 {
			buy, setup = 0, 0
		}
		if !near(d.Buy, buy) || !near(d.Upkeep.Setup, setup) || (x.afr == 0) != (k == 3) || (x.paid == 0) != (k == 3) {
			t.Errorf("%s costs %v with a setup of %v, fails %v a year", d.Name, d.Buy, d.Upkeep.Setup, x.afr)
		}
	}
	whole := f.drives[3].Capacity
	d := &f.drives[0]
	if !near(d.Capacity, 0.75*whole) || !near(d.Budget, 20e6) || !near(d.Worn, d.Budget/10) ||
		d.WAF.At(0.5) != 2 {
		t.Errorf("%v of %v GB, a budget of %v, %v worn, a WAF of %v", d.Capacity, whole, d.Budget, d.Worn, d.WAF.At(0.5))
	}
	if x := f.parts[4]; x.copies != 2 || x.code != 1 {
		t.Errorf("a mirror is %+v", x)
	}
	if x := f.parts[6]; x.copies != 1 || x.code != 1.25 {
		t.Errorf("five with a parity are %+v", x)
	}
}

// TestRatedWAF verifies that the write amplification of a rating multiplies the budget, and is not that of the drive.
func TestRatedWAF(t *testing.T) {
	of := func(more string) *tco.Drive {
		p := loaded(t, "drives: [{model: Intel DC P3700 2TB, count: 1, price: $1, tbw: 1000"+more+"}]\n"+
			"workloads: {list: [{name: w, write_gb_per_day: 1}]}\n")
		f, err := p.fleet(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return &f.drives[0]
	}
	own := of("").WAF.At(0)
	if b := of("").Budget; own <= 1 || !near(b, 1e6*own) {
		t.Errorf("a budget of %v at a write amplification of %v", b, own)
	}
	for more, want := range map[string]float64{", rated_waf: 4": own, ", rated_waf: 4, waf: 2": 2,
		", rated_waf: 4, spare: 10%": of(", spare: 10%").WAF.At(0)} {
		if d := of(more); !near(d.Budget, 4e6) || !near(d.WAF.At(0), want) {
			t.Errorf("%s: a budget of %v, a write amplification of %v, want %v", more, d.Budget, d.WAF.At(0), want)
		}
	}
	if spared := of(", spare: 10%"); spared.WAF.At(0) >= own || !near(spared.Budget, 1e6*own) {
		t.Errorf("with spare space: a budget of %v at %v", spared.Budget, spared.WAF.At(0))
	}
}

// TestSlopes verifies that a slope must be a number.
func TestSlopes(t *testing.T) {
	for slope, good := range map[float64]bool{0.5: true, -3: true, math.NaN(): false, math.Inf(1): false,
		math.Inf(-1): false} {
		err := (&Amplification{Random: 3, Slope: slope}).validate()
		if (err == nil) != good || err != nil && !strings.Contains(err.Error(), "is not a slope") {
			t.Errorf("%v: %v", slope, err)
		}
	}
}

// TestFinite verifies that statistics which a trace is too short for become 0.
func TestFinite(t *testing.T) {
	for v, want := range map[float64]float64{3: 3, -2: -2, 0: 0, math.NaN(): 0, math.Inf(1): 0, math.Inf(-1): 0} {
		if got := finite(characterise.Number(v)); got != want {
			t.Errorf("%v becomes %v", v, got)
		}
	}
}

// TestGiven verifies which key of a section is said to be set: the section itself, or the first below it.
func TestGiven(t *testing.T) {
	p := &Plan{set: map[string]shape.Position{"costs.pue": {}, "costs.grid": {}, "costsother.a": {}, "fill": {}}}
	for section, want := range map[string]string{"costs": "costs.grid", "fill": "fill", "zones": "", "costs.pue": "costs.pue"} {
		if got, ok := p.given(section); got != want || ok != (want != "") {
			t.Errorf("of %s: %q, %v", section, got, ok)
		}
	}
}

// TestOtherFiles verifies that files other than traces are passed over with the reason, wherever they are.
func TestOtherFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.csv":  "128166372003061629,hm,0,Write,0,4096,100\n128166972003061629,hm,0,Read,4096,4096,100\n",
		"b.txt":  "no trace\n",
		"c.csv":  "128166372003061629,hm,0,Write,0,4096,100\n128166972003061629,hm,0,Write,4096,4096,100\n",
		".d.csv": "hidden\n", "e.txt": "no trace\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, skipped, err := FromTraces(dir, true, nil)
	if err != nil || len(list) != 2 || list[0].Name != "a" || list[1].Name != "c" || len(skipped) != 2 ||
		!strings.HasPrefix(skipped[0], "b.txt: ") || !strings.HasPrefix(skipped[1], "e.txt: ") {
		t.Errorf("%+v, %q, %v", list, skipped, err)
	}
	// A trace of 60,000 s: two requests of 4 KiB, of which one or both write.
	for i, writes := range []float64{1, 2} {
		w := list[i]
		if w.WriteShare != writes/2 || w.IOSize != 4 || !near(float64(w.Span), 60000./86400) ||
			!near(w.WriteRate, writes*4096*86400/60000/1e9) || w.Trace != filepath.Join(dir, string("ac"[i])+".csv") {
			t.Errorf("%+v", w)
		}
	}
	if jobs := JobsOf(list); len(jobs) != 2 || jobs[1].Name != "c" {
		t.Errorf("%+v", jobs)
	}
	if _, _, err := FromTraces(dir, false, nil); err == nil || !strings.Contains(err.Error(),
		"a.csv: the trace spans only 16.7 h, and daily writes need a day") {
		t.Errorf("%v", err)
	}
}
