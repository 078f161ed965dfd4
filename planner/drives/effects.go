package drives

import (
	"fmt"
	"slices"

	"farflash/tco"
	"farflash/units"
)

// Effect is what one input does to the cost a gigabyte of the placement as it is.
type Effect struct {
	Name      string
	Low, High string  // what the input is changed to
	AtLow     float64 // money a GB then; 0: the placement cannot be then
	AtHigh    float64
}

// Span is how far the cost moves.
func (e *Effect) Span() float64 { return max(e.AtLow, e.AtHigh) - min(e.AtLow, e.AtHigh) }

// scaledWAF is a write amplification that is higher or lower by a factor.
type scaledWAF struct {
	of     tco.WAF
	factor float64
}

// At implements tco.WAF.
func (s scaledWAF) At(x float64) float64 { return max(1, s.of.At(x)*s.factor) }

// sensitivity changes one input at a time, and leaves every workload where it is.
func (o *Outcome) sensitivity() []Effect {
	p := o.Plan
	var drives []tco.Drive
	var parts []part
	index := map[int]int{}
	for i, k := range o.kept {
		index[k] = i
		drives, parts = append(drives, o.fleet.drives[k]), append(parts, o.fleet.parts[k])
	}
	host := make([]int, len(o.host))
	for j, k := range o.host {
		if host[j] = -1; k >= 0 {
			host[j] = index[k]
		}
	}
	try := func(cfg tco.Config, jobs []tco.Workload, change func(d *tco.Drive, x *part)) float64 {
		list := slices.Clone(drives)
		if change != nil {
			for i := range list {
				change(&list[i], &parts[i])
			}
		}
		a, err := tco.Assess(cfg, list, jobs, host)
		if err != nil || !(a.Data > 0) {
			return 0
		}
		return a.CostPerGB()
	}
	cfg := p.config()
	price := func(f float64) float64 {
		return try(cfg, p.jobs, func(d *tco.Drive, x *part) { d.Buy += float64((f - 1) * x.price * float64(x.members)) })
	}
	power := func(pue, electricity float64) float64 {
		return try(cfg, p.jobs, func(d *tco.Drive, x *part) {
			c := p.costs()
			was := c.PowerCost(x.watts)
			c.PUE, c.Electricity = pue, electricity
			d.Run += float64((c.PowerCost(x.watts) - was) * float64(x.members))
		})
	}
	wear := func(f float64) float64 {
		return try(cfg, p.jobs, func(d *tco.Drive, _ *part) { d.WAF = scaledWAF{d.WAF, f} })
	}
	writes := func(f float64) float64 {
		jobs := slices.Clone(p.jobs)
		for j := range jobs {
			jobs[j].WriteRate *= f
		}
		return try(cfg, jobs, nil)
	}
	horizon := func(days float64) float64 {
		c := cfg
		c.Horizon = days
		return try(c, p.jobs, nil)
	}
	c := p.costs()
	list := []Effect{
		{"Price of drives", "half", "double", price(0.5), price(2)},
		{"Write rates", "half", "double", writes(0.5), writes(2)},
		{"Write amplification", "-25 %", "+25 %", wear(0.75), wear(1.25)},
		{"Electricity", "half", "double", power(c.PUE, c.Electricity/2), power(c.PUE, c.Electricity*2)},
		{"PUE", "1.1", "2", power(1.1, c.Electricity), power(2, c.Electricity)},
	}
	if h := cfg.Horizon; h > 0 {
		list = append(list, Effect{"Horizon", units.Days(h * 0.6).String(), units.Days(h * 1.6).String(), horizon(h * 0.6), horizon(h * 1.6)})
	}
	slices.SortStableFunc(list, func(a, b Effect) int {
		switch {
		case a.Span() > b.Span():
			return -1
		case a.Span() < b.Span():
			return 1
		}
		return 0
	})
	return list
}

// Point is an algorithm's cost and balance on the plan's drives.
type Point struct {
	Name      string
	CostPerGB float64
	SpaceCV   float64
	IOPSCV    float64
	Refused   int
	Weighted  bool // minTCO-PERF with some weights: a point of the frontier
}

// frontierWeights are how heavily balance counts against cost, times the default weights.
var frontierWeights = []float64{0, 0.1, 0.3, 1, 3, 10}

// frontier places the workloads on the plan's drives by every algorithm, and by minTCO-PERF with more and more weight on balance. Where
// minTCO has no room for all on them, it gets more of those that may be bought, as few as it takes; more is how many.
func (o *Outcome) frontier() (list []Point, more int) {
	p := o.Plan
	var drives []tco.Drive
	kept := make([]bool, len(o.fleet.drives))
	for _, k := range o.kept {
		kept[k] = true
		drives = append(drives, o.fleet.drives[k])
	}
	for k := range o.fleet.drives {
		if kept[k] {
			continue
		}
		pl, _, err := tco.Online(tco.AllocatorConfig{Config: p.config()}, drives, p.jobs)
		if err != nil || len(pl.Refused) == 0 {
			break
		}
		drives = append(drives, o.fleet.drives[k])
		more++
	}
	add := func(name string, a *tco.Assessment, weighted bool) {
		if a.Data > 0 {
			list = append(list, Point{name, a.CostPerGB(), a.SpaceCV, a.IOPSCV, a.Refused, weighted})
		}
	}
	add("this plan", o.Assessment, false)
	for _, w := range frontierWeights {
		d := tco.DefaultWeights()
		d.Space, d.IOPS, d.SpaceCV, d.IOPSCV = d.Space*w, d.IOPS*w, d.SpaceCV*w, d.IOPSCV*w
		if _, a, err := tco.Online(tco.AllocatorConfig{Config: p.config(), Policy: tco.MinTCOPerf, Weights: d}, drives, p.jobs); err == nil {
			add(fmt.Sprintf("mintco-perf, balance x%v", w), a, true)
		}
	}
	for _, policy := range tco.Policies() {
		if policy == tco.MinTCOPerf {
			continue
		}
		if _, a, err := tco.Online(tco.AllocatorConfig{Config: p.config(), Policy: policy, Seed: p.Search.Seed}, drives, p.jobs); err == nil {
			add(policy.String(), a, false)
		}
	}
	return list, more
}

// Move is a workload that must leave a drive that is worn out before its horizon.
type Move struct {
	Day           float64
	Workload      string
	From, To      string // To is "" if nobody takes it
	Copied        float64
	Refused       string
	NeedsNewDrive bool // To is a drive that is bought for it
}

// migrate follows the plan through its days.
func (o *Outcome) migrate() []Move {
	f := o.fleet
	moves, _, err := tco.Migrate(o.Plan.config(), f.drives, o.Plan.jobs, o.host)
	if err != nil {
		return nil
	}
	bought := make([]bool, len(f.drives))
	for _, k := range o.kept {
		bought[k] = true
	}
	var list []Move
	for _, m := range moves {
		x := Move{Day: m.Day, Workload: o.Plan.jobs[m.Workload].Name, From: f.drives[m.From].Name, Copied: m.Copied}
		if m.To >= 0 {
			x.To, x.NeedsNewDrive = f.drives[m.To].Name, !bought[m.To]
			bought[m.To] = true
		} else {
			x.Refused = m.Refused.Main().String()
		}
		list = append(list, x)
	}
	return list
}
