package drives

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"farflash/numeric/units"
	"farflash/planner/tco"
	"farflash/planner/tco/calendar"
)

// Effect is the effect of one input on the plan's objective, with the placement unchanged and with a new plan.
type Effect struct {
	Name      string
	Low, High string // the changed values of the input
	// HeldLow and HeldHigh are the objective with the placement unchanged, AtLow and AtHigh that of a new plan. 0:
	// infeasible.
	HeldLow, HeldHigh float64
	AtLow, AtHigh     float64
}

// Span is the range of the objective over the new plans.
func (e *Effect) Span() float64 { return max(e.AtLow, e.AtHigh) - min(e.AtLow, e.AtHigh) }

// scaledWAF is a write amplification multiplied by a factor.
type scaledWAF struct {
	of     tco.WAF
	factor float64
}

// At implements tco.WAF.
func (s scaledWAF) At(x float64) float64 { return max(1, s.of.At(x)*s.factor) }

// bend is a change of a plan's inputs: factors, except PUE and the horizon, which are replaced, and growth, which is
// added.
type bend struct {
	price, writes, space, iops, waf, electricity, pue, horizon, growth float64
	// drawn are the groups of drives with figures drawn for the estimated ones; nil: unchanged.
	drawn []Group
}

func (p *Plan) straight() bend {
	return bend{price: 1, writes: 1, space: 1, iops: 1, waf: 1, electricity: 1, pue: p.Costs.PUE,
		horizon: float64(p.Horizon)}
}

// bent returns the outcome's plan and fleet with changed inputs, before placement.
func (o *Outcome) bent(ctx context.Context, b bend) (*Outcome, error) {
	p := *o.Plan
	from := o.fleet
	if b.drawn != nil {
		p.Drives = b.drawn
		var err error
		if from, err = p.fleet(ctx); err != nil {
			return nil, err
		}
	}
	p.jobs = slices.Clone(p.jobs)
	for j := range p.jobs {
		w := &p.jobs[j]
		w.WriteRate, w.WorkingSet, w.PeakIOPS = w.WriteRate*b.writes, w.WorkingSet*b.space, w.PeakIOPS*b.iops
		w.Growth = max(-0.99, w.Growth+b.growth)
	}
	p.Horizon = units.Days(b.horizon)
	was := p.costs()
	p.Costs.Electricity *= units.Money(b.electricity)
	p.Costs.PUE = b.pue
	is := p.costs()
	f := &fleet{drives: slices.Clone(from.drives), parts: slices.Clone(from.parts)}
	for k := range f.drives {
		d, x := &f.drives[k], &f.parts[k]
		n := float64(x.members)
		d.Buy += float64((b.price - 1) * x.paid * n)
		d.Upkeep.Next *= b.price
		x.paid, x.price = x.paid*b.price, x.price*b.price
		d.Run += float64((is.PowerCost(x.watts) - was.PowerCost(x.watts)) * n)
		d.Upkeep.Idle, d.Upkeep.Active = is.PowerCost(x.model.IdleW)*n, is.PowerCost(x.model.ActiveW)*n
		if b.waf != 1 && !x.model.Disk {
			d.WAF = scaledWAF{d.WAF, b.waf}
		}
	}
	return &Outcome{Plan: &p, fleet: f}, nil
}

// Objective is the value that the plan minimises: money over a calendar, or money per GB; total money if no workload
// writes.
func (o *Outcome) Objective() float64 {
	if o.Calendar != nil || !(o.Data > 0) {
		return o.Cost
	}
	return o.CostPerGB()
}

// held is the objective with changed inputs and the placement unchanged; 0: infeasible.
func (o *Outcome) held(ctx context.Context, b bend) float64 {
	x, err := o.bent(ctx, b)
	if err != nil {
		return 0
	}
	x.host = slices.Clone(o.host)
	if x.Plan.Review > 0 {
		x.stays.jobs, x.stays.of = calendar.Stays(x.Plan.jobs, float64(x.Plan.Review), float64(x.Plan.Horizon))
		x.stays.host = slices.Clone(o.stays.host)
		if len(x.stays.jobs) != len(x.stays.host) {
			return 0 // the reviews differ
		}
	}
	if x.Plan.timely() != nil || x.judge(map[int]tco.Refusal{}) != nil {
		return 0
	}
	return x.Objective()
}

// again is the objective of a new plan with changed inputs; 0: infeasible.
func (o *Outcome) again(ctx context.Context, b bend) float64 {
	x, err := o.bent(ctx, b)
	if err != nil {
		return 0
	}
	x.begin = o
	if x.Plan.timely() != nil {
		return 0
	}
	refused, err := x.solve(ctx, false)
	if err != nil || len(refused) > 0 && o.Assessment.Refused == 0 || x.judge(refused) != nil {
		return 0
	}
	return x.Objective()
}

// sensitivity changes one input at a time.
func (o *Outcome) sensitivity(ctx context.Context) []Effect {
	p := o.Plan
	var list []Effect
	try := func(name, low, high string, change func(b *bend, high bool)) {
		e := Effect{Name: name, Low: low, High: high}
		for _, up := range []bool{false, true} {
			b := p.straight()
			change(&b, up)
			held, again := o.held(ctx, b), o.again(ctx, b)
			if up {
				e.HeldHigh, e.AtHigh = held, again
			} else {
				e.HeldLow, e.AtLow = held, again
			}
		}
		list = append(list, e)
	}
	of := func(high bool, a, b float64) float64 {
		if high {
			return b
		}
		return a
	}
	try("Price of drives", "half", "double", func(b *bend, high bool) { b.price = of(high, 0.5, 2) })
	try("Write rates", "half", "double", func(b *bend, high bool) { b.writes = of(high, 0.5, 2) })
	try("Write amplification", "-25 %", "+25 %", func(b *bend, high bool) { b.waf = of(high, 0.75, 1.25) })
	try("Electricity", "half", "double", func(b *bend, high bool) { b.electricity = of(high, 0.5, 2) })
	try("PUE", "1.1", "2", func(b *bend, high bool) { b.pue = of(high, 1.1, 2) })
	if h := float64(p.Horizon); h > 0 {
		try("Horizon", units.Days(h*0.6).String(), units.Days(h*1.6).String(),
			func(b *bend, high bool) { b.horizon = of(high, h*0.6, h*1.6) })
	}
	if p.Calendar() && p.Algorithm.optimal {
		try("Growth a year", "-5 points", "+10 points", func(b *bend, high bool) { b.growth = of(high, -0.05, 0.1) })
	}
	slices.SortStableFunc(list, func(a, b Effect) int { return cmp.Compare(b.Span(), a.Span()) })
	return list
}

// Point is an algorithm's cost and balance on the plan's drives.
type Point struct {
	Name     string
	Cost     float64 // the plan's objective: see Outcome.Objective
	SpaceCV  float64
	IOPSCV   float64
	Refused  int
	Weighted bool // minTCO-PERF with certain weights: a point of the frontier
}

// largest returns the plan's workloads at their peak, for algorithms that ignore growth.
func (p *Plan) largest() []tco.Workload {
	jobs := slices.Clone(p.jobs)
	if !p.Calendar() {
		return jobs
	}
	c, err := calendar.New(p.calendar())
	if err != nil {
		return jobs
	}
	for j := range jobs {
		most := c.Most(&jobs[j])
		jobs[j].WorkingSet, jobs[j].PeakIOPS = jobs[j].WorkingSet*most, jobs[j].PeakIOPS*most
	}
	return jobs
}

// frontierWeights are the weights of balance against cost, as multiples of the default weights.
var frontierWeights = []float64{0, 0.1, 0.3, 1, 3, 10}

// frontier places the workloads on the plan's drives by every algorithm, and by minTCO-PERF with increasing weight on
// balance. If minTCO cannot fit all workloads on them, it gets more of the drives that may be bought, as few as
// necessary; more is their number.
func (o *Outcome) frontier() (list []Point, more int) {
	p := o.Plan
	jobs := p.largest()
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
		pl, _, err := tco.Online(tco.AllocatorConfig{Config: p.config()}, drives, jobs)
		if err != nil || len(pl.Refused) == 0 {
			break
		}
		drives = append(drives, o.fleet.drives[k])
		more++
	}
	add := func(name string, a *tco.Assessment, host []int, weighted bool) {
		x := Point{Name: name, SpaceCV: a.SpaceCV, IOPSCV: a.IOPSCV, Refused: a.Refused, Weighted: weighted}
		switch {
		case host == nil:
			x.Cost = o.Objective()
		case !p.Calendar():
			if x.Cost = a.CostPerGB(); !(a.Data > 0) {
				return
			}
		default:
			c, err := calendar.New(p.calendar())
			if err != nil {
				return
			}
			b, err := c.Keep(drives, make([]bool, len(drives)), p.jobs, host)
			if err != nil {
				return // a workload outgrows the demand that the algorithm considered
			}
			x.Cost = b.Total
		}
		list = append(list, x)
	}
	add("this plan", o.Assessment, nil, false)
	for _, w := range frontierWeights {
		d := tco.DefaultWeights()
		d.Space, d.IOPS, d.SpaceCV, d.IOPSCV = d.Space*w, d.IOPS*w, d.SpaceCV*w, d.IOPSCV*w
		if pl, a, err := tco.Online(tco.AllocatorConfig{Config: p.config(), Policy: tco.MinTCOPerf, Weights: d},
			drives, jobs); err == nil {
			add(fmt.Sprintf("mintco-perf, balance x%v", w), a, pl.Host, true)
		}
	}
	for _, policy := range tco.Policies() {
		if policy == tco.MinTCOPerf {
			continue
		}
		if pl, a, err := tco.Online(tco.AllocatorConfig{Config: p.config(), Policy: policy, Seed: p.Search.Seed},
			drives, jobs); err == nil {
			add(policy.String(), a, pl.Host, false)
		}
	}
	return list, more
}

// Move is a workload that must leave a drive that wears out before its horizon.
type Move struct {
	Day           float64
	Workload      string
	From, To      string // To is "" if no drive takes it
	Copied        float64
	Refused       string
	NeedsNewDrive bool // To is a drive bought for it
}

// migrate follows the plan day by day.
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
