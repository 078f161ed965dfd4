package drives

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"farflash/planner/tco"
	"farflash/planner/tco/bound"
	"farflash/planner/tco/calendar"
	"farflash/scenario/shape"
)

// Options selects results to compute in addition to the placement.
type Options struct {
	Bound bool // the proven lower bound
	// Sensitivity computes the effect of prices, power, horizon and wear on the cost, and the trade-off of cost against
	// balance.
	Sensitivity bool
	// Cache stores simulations of drives for later runs; nil: none.
	Cache Cache
}

// DriveRow is a drive of the plan with its workloads.
type DriveRow struct {
	Name, Model, Domain string
	Workloads           []string
	State               tco.DriveState
	EndsBy              string // endurance, horizon, its last workload's end, or unused
	// Replaced are the days on which it was worn out and replaced by one of its model, by objective calendar.
	Replaced []float64
	Failures tco.Failures
	Carbon   tco.Carbon
}

// endsBy names the cause that ends a drive's service.
func endsBy(s *tco.DriveState, horizon float64) string {
	switch {
	case s.Workloads == 0:
		return "unused"
	case s.Limited:
		return "endurance"
	case horizon == 0 || s.Lifetime < horizon*(1-1e-12):
		return "end of its last workload"
	}
	return "horizon"
}

// PlacementRow is the placement of a workload.
type PlacementRow struct {
	Workload string
	Drive    string // "" if none takes it
	Refused  string // the reason
	// Cost is its share of the plan's money, by objective calendar.
	Cost float64
}

// Slice is an addend of the cost.
type Slice struct {
	Name  string
	Money float64
}

// Outcome is the result of a plan.
type Outcome struct {
	Plan       *Plan
	Drives     []DriveRow
	Placements []PlacementRow
	// Assessment covers the drives that exist or are bought.
	Assessment *tco.Assessment
	Cost, Data float64 // TCO, GB
	// Slices add up to all money: the TCO, and by objective paper also the expected failures.
	Slices []Slice
	// Calendar holds the payments; nil by objective paper.
	Calendar *calendar.Book
	TBe      float64 // SNIA's effective TB
	PerMonth float64 // money per TBe and month
	Failures tco.Failures
	Carbon   tco.Carbon
	// Bound is a lower bound on the cost per GB of any plan; 0: none was requested, or none is proven. LeastCost is a
	// lower bound on the total cost of any plan, by objective calendar.
	Bound, LeastCost float64
	BoundNote        string
	Exact            bool // every plan was examined, and none costs less
	// Interrupted means that the search was interrupted: the plan is the best found until then.
	Interrupted bool
	Proof       *tco.Certificate
	Effects     []Effect // of the tornado
	Frontier    []Point
	// FrontierMore is the number of drives that the frontier's algorithms got in addition to the plan's, to fit all
	// workloads.
	FrontierMore int
	Moves        []Move // when drives wear out before the horizon, or at reviews
	Risk         *Risk  // nil: no input is uncertain

	fleet  *fleet
	host   []int
	kept   []int // the fleet's drives that exist or are bought
	stays  stays
	ownWAF []float64 // by the fleet's drives: simulated with the drive's own workloads; nil: none
	begin  *Outcome  // a plan with other inputs for the same drives and workloads, from which to start; nil: none
}

// stays are the plan's workloads as they are placed, with one entry per review interval.
type stays struct {
	jobs []tco.Workload
	of   []int // the plan's workload of each
	host []int
}

// CostPerGB is TCO'; NaN if no workload writes, in which case the plan is judged by its total cost.
func (o *Outcome) CostPerGB() float64 {
	if o.Data > 0 {
		return o.Cost / o.Data
	}
	return math.NaN()
}

// unwritten is the note that replaces a bound per gigabyte if no workload writes.
const unwritten = "no bound: the workloads write nothing, so there is no cost per GB"

// reads reports whether no workload writes.
func (p *Plan) reads() bool {
	return !slices.ContainsFunc(p.jobs, func(w tco.Workload) bool { return w.WriteRate > 0 })
}

// Gap is the plan's excess over the bound, as a share of it.
func (o *Outcome) Gap() float64 {
	if o.Calendar != nil {
		return o.Cost/o.LeastCost - 1
	}
	return o.CostPerGB()/o.Bound - 1
}

// Proved reports whether there is a bound.
func (o *Outcome) Proved() bool { return o.Bound > 0 || o.LeastCost > 0 }

// Unserved returns the error for workloads that have no drive, from the start or after theirs is worn out, or nil.
func (o *Outcome) Unserved() error {
	later := 0
	for i := range o.Moves {
		if o.Moves[i].To == "" {
			later++
		}
	}
	switch n := o.Assessment.Refused; {
	case n > 0 && later > 0:
		return fmt.Errorf("%d workloads have no drive, and %d more lose theirs when it is worn out; add drives", n,
			later)
	case n > 0:
		return fmt.Errorf("%d of %d workloads have no drive; add drives", n, n+o.Assessment.Placed)
	case later > 0:
		return fmt.Errorf("%d workloads lose their drive when it is worn out; add drives (up_to), or choose drives "+
			"with more endurance", later)
	}
	return nil
}

// Solve places the workloads.
func (p *Plan) Solve(ctx context.Context, opts Options) (*Outcome, error) {
	p.simulated.cache = opts.Cache
	o, refused, err := p.settle(ctx, opts.Bound)
	if err != nil {
		return nil, err
	}
	if opts.Bound && o.Bound == 0 && o.LeastCost == 0 && o.BoundNote == "" {
		if p.Calendar() && len(refused) == 0 {
			prob, _ := o.problem()
			o.floor(&prob)
		} else if p.reads() {
			o.BoundNote = unwritten
		} else if len(refused) > 0 {
			o.BoundNote = "no bound: the plan does not place every workload"
		} else {
			o.prove()
		}
	}
	if opts.Sensitivity && o.Data > 0 {
		o.Effects = o.sensitivity(ctx)
		o.Frontier, o.FrontierMore = o.frontier()
	}
	if !p.Calendar() {
		o.Moves = o.migrate()
	}
	if p.Uncertainty.asked() {
		o.Risk = o.risk(ctx)
	}
	return o, nil
}

// round makes a plan and evaluates it.
func (p *Plan) round(ctx context.Context, proof bool) (*Outcome, map[int]tco.Refusal, error) {
	f, err := p.fleet(ctx)
	if err != nil {
		return nil, nil, err
	}
	o := &Outcome{Plan: p, fleet: f}
	refused, err := o.solve(ctx, proof)
	if failed := f.failed(p); failed != nil {
		return nil, nil, failed
	}
	if err != nil {
		return nil, nil, err
	}
	return o, refused, o.judge(refused)
}

// solve places the workloads by the plan's algorithm.
func (o *Outcome) solve(ctx context.Context, proof bool) (map[int]tco.Refusal, error) {
	switch a := o.Plan.Algorithm; {
	case a.optimal:
		return map[int]tco.Refusal{}, o.optimise(ctx, proof)
	case a.offline:
		return o.offline()
	}
	return o.online()
}

// judge computes the outcome of the placement, by the plan's objective.
func (o *Outcome) judge(refused map[int]tco.Refusal) error {
	if o.stays.jobs == nil {
		o.stays = stays{jobs: o.Plan.jobs, host: o.host}
		for j := range o.Plan.jobs {
			o.stays.of = append(o.stays.of, j)
		}
	}
	if o.Plan.Calendar() {
		return o.keepBook(refused)
	}
	return o.assess(refused)
}

// problem groups the fleet into classes, and returns the order of the fleet's drives in it.
func (o *Outcome) problem() (tco.Problem, []int) {
	f, p := o.fleet, o.Plan
	prob := tco.Problem{Config: p.config(), Jobs: p.jobs}
	var order []int
	apart := slices.ContainsFunc(p.jobs, func(w tco.Workload) bool { return w.Apart != "" })
	type group struct {
		group  int
		domain string
	}
	at := map[group]int{}
	var members [][]int
	for k := range f.drives {
		g := group{group: f.parts[k].group}
		shared := len(p.Drives[g.group].Domains) > 0
		if shared && apart {
			g.domain = f.drives[k].Domain
		}
		i, ok := at[g]
		if !ok {
			i = len(prob.Classes)
			at[g] = i
			d := f.drives[k]
			if !shared {
				d.Domain = "" // each drive is its own domain
			}
			prob.Classes = append(prob.Classes, tco.Class{Drive: d, Optional: f.parts[k].up})
			members = append(members, nil)
		}
		prob.Classes[i].Count++
		members[i] = append(members[i], k)
	}
	for i := range members {
		// A lone drive keeps its own name as its domain.
		if c := &prob.Classes[i]; c.Count == 1 && c.Drive.Domain == "" {
			c.Drive.Domain = c.Drive.Name
		}
		order = append(order, members[i]...)
	}
	return prob, order
}

// exactStays is the largest number of stays for which every plan is examined, if that takes about a second; plans that
// are recomputed repeatedly are searched.
const exactStays = 18

func (o *Outcome) optimise(ctx context.Context, proof bool) error {
	prob, order := o.problem()
	c := tco.DefaultOptimiseConfig()
	c.Steps, c.Seed = o.Plan.Search.Steps, o.Plan.Search.Seed
	c.Climb = o.Plan.Search.Climb
	c.Stop = func() bool { return ctx.Err() != nil }
	if o.begin == nil {
		c.Exact = exactStays
	}
	var start []int
	if o.begin != nil {
		start = tco.Reorder(o.begin.host, order)
		c.Steps /= 4
	}
	best, err := o.search(c, &prob, start)
	if err != nil {
		var none *tco.Infeasible
		if errors.As(err, &none) && o.begin == nil {
			none.Remedy += o.remedy(prob)
		}
		return err
	}
	// Among equal drives, the first ones are bought.
	to, next, used := make([]int, len(order)), 0, make([]bool, len(order))
	for _, k := range best.Host {
		used[k] = true
	}
	for first := 0; first < len(order); first = next {
		for next < len(order) && best.Class[next] == best.Class[first] {
			next++
		}
		rank := first
		for k := first; k < next; k++ {
			if used[k] {
				to[k] = order[rank]
				rank++
			}
		}
	}
	o.stays.host = make([]int, len(best.Host))
	o.host = make([]int, len(o.Plan.jobs))
	for j, k := range best.Host {
		o.stays.host[j] = to[k]
		if prob.Jobs[j].Stay.At == 0 {
			o.host[o.stays.of[j]] = to[k]
		}
	}
	o.stays.jobs = prob.Jobs
	o.Exact, o.Interrupted = best.Exact, ctx.Err() != nil && !best.Exact
	switch {
	case !proof:
		return nil
	case o.Interrupted:
		o.BoundNote = "no bound: the search was interrupted"
	case o.Plan.Calendar():
		if o.LeastCost = best.Cost; !o.Exact {
			o.floor(&prob)
		}
	case o.Plan.reads():
		o.BoundNote = unwritten
	default:
		bound.Prove(c, &prob, best)
		if o.Bound, o.Proof = best.Bound, best.Certificate; o.Bound == 0 {
			o.BoundNote = "no bound above 0 was found"
		}
	}
	return nil
}

// search finds the best placement. If workloads may move, it starts from the best placement without moves.
func (o *Outcome) search(c tco.OptimiseConfig, prob *tco.Problem, start []int) (*tco.Optimum, error) {
	p := o.Plan
	if !p.Calendar() {
		for j := range prob.Jobs {
			o.stays.of = append(o.stays.of, j)
		}
		return tco.Optimise(c, prob, start)
	}
	pricer, err := calendar.New(p.calendar())
	if err != nil {
		return nil, err
	}
	prob.Pricer = pricer
	whole := prob.Jobs
	for j := range whole {
		o.stays.of = append(o.stays.of, j)
	}
	if p.Review == 0 {
		return tco.Optimise(c, prob, start)
	}
	still, err := tco.Optimise(c, prob, start)
	prob.Jobs, o.stays.of = calendar.Stays(whole, float64(p.Review), float64(p.Horizon))
	start = nil
	if err == nil {
		for _, j := range o.stays.of {
			start = append(start, still.Host[j])
		}
	}
	return tco.Optimise(c, prob, start)
}

// remedy finds the number of further drives of one group that would suffice for all workloads.
func (o *Outcome) remedy(prob tco.Problem) string {
	for more := 1; more <= 1024; more *= 2 {
		for i := range prob.Classes {
			try := prob
			try.Classes = slices.Clone(prob.Classes)
			try.Classes[i].Count += more
			if _, err := tco.Optimise(tco.OptimiseConfig{Seed: 1}, &try, nil); err != nil {
				continue
			}
			need := more
			for low := more / 2; need-low > 1; {
				try.Classes[i].Count = prob.Classes[i].Count + (low+need)/2
				if _, err := tco.Optimise(tco.OptimiseConfig{Seed: 1}, &try, nil); err != nil {
					low = (low + need) / 2
				} else {
					need = (low + need) / 2
				}
			}
			return fmt.Sprintf(" (%d more %s would be enough)", need, prob.Classes[i].Drive.Model)
		}
	}
	return ""
}

// floor computes a lower bound on the money of any plan.
func (o *Outcome) floor(prob *tco.Problem) {
	c, err := calendar.New(o.Plan.calendar())
	if err == nil {
		o.LeastCost = max(0, c.Floor(prob).Least)
	}
	if o.LeastCost == 0 {
		o.BoundNote = "no bound above 0 was found"
	}
}

// prove computes the bound for a placement of another algorithm.
func (o *Outcome) prove() {
	prob, order := o.problem()
	c := tco.DefaultOptimiseConfig()
	c.Climb = o.Plan.Search.Climb
	o.Proof = bound.Of(c, &prob, tco.Reorder(o.host, order))
	if o.Bound = o.Proof.Rate; o.Bound == 0 {
		o.BoundNote = "no bound above 0 was found"
	}
}

func (o *Outcome) allocator() tco.AllocatorConfig {
	p := o.Plan
	return tco.AllocatorConfig{Config: p.config(), Policy: p.Algorithm.policy, Weights: p.Weights, Seed: p.Search.Seed}
}

func (o *Outcome) online() (map[int]tco.Refusal, error) {
	for k := range o.fleet.parts {
		if x := &o.fleet.parts[k]; x.up {
			return nil, o.Plan.wrong(x.group, "up_to",
				fmt.Errorf("%v uses only existing drives; write count, or choose the algorithm optimal",
					o.Plan.Algorithm))
		}
	}
	pl, _, err := tco.Online(o.allocator(), o.fleet.drives, o.Plan.jobs)
	if err != nil {
		return nil, err
	}
	o.host = pl.Host
	return pl.Refused, nil
}

func (o *Outcome) offline() (map[int]tco.Refusal, error) {
	p, f := o.Plan, o.fleet
	if len(p.Drives) != 1 {
		return nil, shape.Errors{{At: p.set["drives"],
			Msg: fmt.Sprintf("drives: %d groups; mintco-offline buys drives of one model; write one group",
				len(p.Drives))}}
	}
	c := p.zones()
	c.Most = len(f.drives)
	r, err := tco.Offline(c, f.drives[0], p.jobs)
	if err != nil {
		return nil, err
	}
	o.host = r.Host
	return r.Refused, nil
}

// keep lists the drives that exist or are bought, and the placement on them; -1 means no drive.
func (o *Outcome) keep() (drives []tco.Drive, host []int) {
	f := o.fleet
	used := make([]bool, len(f.drives))
	for _, k := range o.stays.host {
		if k >= 0 {
			used[k] = true
		}
	}
	index := make([]int, len(f.drives))
	for k := range f.drives {
		index[k] = -1
		if used[k] || !f.parts[k].up {
			index[k] = len(drives)
			o.kept, drives = append(o.kept, k), append(drives, f.drives[k])
		}
	}
	host = make([]int, len(o.stays.host))
	for j, k := range o.stays.host {
		if host[j] = -1; k >= 0 {
			host[j] = index[k]
		}
	}
	return drives, host
}

// place lists the placement of each workload, and the workloads on each kept drive.
func (o *Outcome) place(drives []tco.Drive, host []int, refused map[int]tco.Refusal) (on [][]string) {
	on = make([][]string, len(drives))
	last := map[[2]int]bool{}
	for i, k := range host {
		j := o.stays.of[i]
		w := &o.Plan.jobs[j]
		if at := [2]int{j, k}; k >= 0 && !last[at] {
			on[k], last[at] = append(on[k], w.Name), true
		}
		if o.stays.jobs[i].Stay.At > 0 {
			continue
		}
		x := PlacementRow{Workload: w.Name}
		if k >= 0 {
			x.Drive = drives[k].Name
		} else {
			r := refused[j]
			x.Refused = fmt.Sprintf("%v, on %d of %d drives", r.Main(), r[r.Main()], len(o.fleet.drives))
		}
		o.Placements = append(o.Placements, x)
	}
	return on
}

// assess computes the outcome of the placement.
func (o *Outcome) assess(refused map[int]tco.Refusal) error {
	p, f := o.Plan, o.fleet
	drives, host := o.keep()
	a, err := tco.Assess(p.config(), drives, p.jobs, host)
	if err != nil {
		return err
	}
	o.Assessment, o.Cost, o.Data = a, a.Cost, a.Data
	on := o.place(drives, host, refused)
	c := p.costs()
	price, setup, power, labour, months := 0.0, 0.0, 0.0, 0.0, 0.0
	for i := range drives {
		x, s := &f.parts[o.kept[i]], &a.Drives[i]
		n := float64(x.members)
		row := DriveRow{Name: drives[i].Name, Model: x.model.Name, Domain: x.domain, Workloads: on[i], State: *s,
			EndsBy: endsBy(s, float64(p.Horizon))}
		row.Failures = c.Expect(x.members, x.afr, s.Lifetime, x.price, s.Space*x.code*x.copies/n,
			float64(p.Costs.Rebuild)/1e6)
		row.Carbon = c.CarbonOf(x.raw*n, x.watts*n, s.Lifetime)
		months += o.row(row, x)
		price += float64(n * x.paid)
		setup += float64(n * x.setup)
		power += float64(n * c.PowerCost(x.watts) * s.Lifetime)
		labour += float64(n * c.Labour * s.Lifetime)
	}
	o.Slices = []Slice{{"Drives", price}, {"Setup", setup}, {"Power and cooling", power}, {"Labour", labour},
		{"Failures, expected", o.Failures.Cost()}}
	if months > 0 {
		o.PerMonth = (o.Cost + o.Failures.Cost()) / months
	}
	if math.IsInf(o.Cost, 1) {
		return errors.New("a drive that is never written lasts forever without a horizon; set one, such as horizon: 5y")
	}
	return nil
}

// row adds a drive, and returns its effective TB times months.
func (o *Outcome) row(row DriveRow, x *part) (months float64) {
	p, s := o.Plan, &row.State
	o.Drives = append(o.Drives, row)
	o.Failures.Expected += row.Failures.Expected
	o.Failures.Spares += row.Failures.Spares
	o.Failures.Labour += row.Failures.Labour
	o.Failures.Rebuilt += row.Failures.Rebuilt
	o.Failures.Hours += row.Failures.Hours
	o.Carbon.Embodied += row.Carbon.Embodied
	o.Carbon.Operational += row.Carbon.Operational
	e := tco.Effective{Raw: x.model.Capacity * float64(x.members) / 1000, Utilisation: s.SpaceShare,
		Reduction: p.Effective.Reduction, Replication: p.Effective.Replication * x.copies, Encoding: x.code}
	o.TBe += e.TBe()
	return float64(e.TBe() * s.Lifetime / tco.Month)
}
