package tco

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// OptimiseConfig says how hard a plan and its bound are worked on.
type OptimiseConfig struct {
	Steps int    // tries of the local search
	Climb int    // steps of the bound; 0: no bound
	Days  int    // days of death that the bound looks at, before it refines them
	Spans int    // groups of arrivals that it tells apart
	Seed  uint64 // of the search
}

// DefaultOptimiseConfig is for a hundred workloads in a second.
func DefaultOptimiseConfig() OptimiseConfig {
	return OptimiseConfig{Steps: 200_000, Climb: 150, Days: 28, Spans: 6, Seed: 1}
}

// Optimum is a plan with hindsight and how far from the best it can be.
type Optimum struct {
	Host   []int
	Drives []Drive
	Class  []int
	Cost   float64
	Data   float64
	// Bound is proven by the Certificate: no plan costs less a gigabyte. 0: none was asked for.
	Bound       float64
	Certificate *Certificate
}

// CostPerGB is TCO'.
func (o *Optimum) CostPerGB() float64 { return o.Cost / o.Data }

// Gap is how far the plan is above the bound, as a share of the bound.
func (o *Optimum) Gap() float64 {
	if o.Bound <= 0 {
		return math.Inf(1)
	}
	return o.CostPerGB()/o.Bound - 1
}

// Infeasible says that no placement was found that gives each workload a drive.
type Infeasible struct {
	Workload string
	Obstacle Obstacle
	Proven   bool   // no plan can
	Remedy   string // what would help
}

func (e *Infeasible) Error() string {
	certain := "no placement was found that has room for all"
	if e.Proven {
		certain = "no plan has room for all"
	}
	return fmt.Sprintf("%s: workload %s has no drive, for %v; %s", certain, e.Workload, e.Obstacle, e.Remedy)
}

// Optimise places all workloads knowing every arrival, at the least cost a gigabyte that it finds from several beginnings, of which
// start, unless it is nil, is one.
func Optimise(cfg OptimiseConfig, p *Problem, start []int) (*Optimum, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	drives, class := p.Drives()
	var best *search
	consider := func(host []int) error {
		cost, data, err := p.Value(host)
		if err != nil {
			return err
		}
		if best == nil || cost/data < best.sumCost/best.sumData {
			s, err := newSearch(p, host)
			if err != nil {
				return err
			}
			best = s
		}
		return nil
	}
	if start != nil {
		if err := consider(start); err != nil {
			return nil, err
		}
	}
	var refused error
	for _, begin := range p.beginnings(drives) {
		host, err := begin()
		if err == nil {
			err = consider(host)
		}
		if err != nil {
			refused = cmp.Or(refused, err)
		}
	}
	if best == nil {
		return nil, refused
	}
	o := &Optimum{Drives: drives, Class: class}
	o.Host = best.run(cfg.Steps, cfg.Seed)
	var err error
	if o.Cost, o.Data, err = p.Value(o.Host); err != nil {
		return nil, err
	}
	if cfg.Climb > 0 {
		o.Certificate = Bound(cfg, p, o.Host)
		o.Bound = o.Certificate.Rate
	}
	return o, nil
}

// beginnings are ways to a first placement.
func (p *Problem) beginnings(drives []Drive) []func() ([]int, error) {
	online := func(policy Policy) func() ([]int, error) {
		return func() ([]int, error) {
			cfg := AllocatorConfig{Config: p.Config, Policy: policy}
			pl, _, err := Online(cfg, drives, p.Jobs)
			if err != nil {
				return nil, err
			}
			return pl.Host, p.unplaced(drives, pl)
		}
	}
	sorted := func(order func(a, b *Workload) int) func() ([]int, error) {
		return func() ([]int, error) { return p.fill(drives, order) }
	}
	list := []func() ([]int, error){
		sorted(func(a, b *Workload) int { return cmp.Compare(b.Sequential, a.Sequential) }),
		sorted(func(a, b *Workload) int { return cmp.Compare(b.WorkingSet, a.WorkingSet) }),
		sorted(func(a, b *Workload) int { return cmp.Compare(a.Arrival, b.Arrival) }),
	}
	// Placing one by one on drives that are to be chosen would open all of them.
	if !slices.ContainsFunc(p.Classes, func(c Class) bool { return c.Optional }) {
		list = append(list, online(MinTCOv3), online(MinRate))
	}
	if len(p.Classes) == 1 {
		for _, thresholds := range [][]float64{nil, {PaperThreshold}, EvenThresholds(3)} {
			list = append(list, func() ([]int, error) {
				r, err := Offline(OfflineConfig{Config: p.Config, Thresholds: thresholds, Switch: 2, Most: p.Classes[0].Count}, p.Classes[0].Drive, p.Jobs)
				if err != nil {
					return nil, err
				}
				for j := range r.Host {
					if r.Host[j] < 0 {
						return nil, p.obstacle(drives, &p.Jobs[j])
					}
				}
				return r.Host, nil
			})
		}
	}
	return list
}

// fill puts workloads in an order on the first drive that takes them, and opens drives in their order. Because workloads must be put
// on a drive in the order of arrival, a drive is made anew with each.
func (p *Problem) fill(drives []Drive, order func(a, b *Workload) int) ([]int, error) {
	host := make([]int, len(p.Jobs))
	jobs := make([]int32, len(p.Jobs))
	for j := range host {
		host[j], jobs[j] = -1, int32(j)
	}
	s, err := newSearch(p, host)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(jobs, func(a, b int32) int { return order(&p.Jobs[a], &p.Jobs[b]) })
	for _, j := range jobs {
		w := &p.Jobs[j]
		for k := range drives {
			// A full drive is told from its sums, without a trial.
			if len(p.Jobs) > 200 && s.together && s.pool.space[k]+w.WorkingSet > s.pool.spaceMost[k] {
				continue
			}
			if s.apart && !s.allowed(j, k, -1) {
				continue
			}
			s.list = s.with(s.on[k], -1, j, s.list)
			if _, _, ok := s.try(k, s.list); ok {
				s.on[k] = append(s.on[k][:0], s.list...)
				s.host[j] = k
				if s.together {
					s.pool.space[k] += w.WorkingSet
				}
				break
			}
		}
		if s.host[j] < 0 {
			return nil, p.obstacle(drives, w)
		}
	}
	return s.host, nil
}

// unplaced is the error for workloads that a placement refuses.
func (p *Problem) unplaced(drives []Drive, pl *Placement) error {
	for j := range pl.Host {
		if pl.Host[j] < 0 {
			return p.obstacle(drives, &p.Jobs[j])
		}
	}
	return nil
}

// obstacle says why a workload has no drive, and whether that can be known for certain.
func (p *Problem) obstacle(drives []Drive, w *Workload) *Infeasible {
	e := &Infeasible{Workload: w.Name}
	space, io := 0.0, 0.0
	for k := range drives {
		space = max(space, drives[k].Capacity*p.Config.FillSpace)
		io = max(io, drives[k].IOPS*p.Config.FillIOPS/max(drives[k].Stripe.Load(w)/max(w.PeakIOPS, 1e-300), 1))
	}
	needSpace, needIO, haveSpace, haveIO := 0.0, 0.0, 0.0, 0.0
	for j := range p.Jobs {
		if p.Jobs[j].End == 0 {
			needSpace += p.Jobs[j].WorkingSet
			needIO += p.Jobs[j].PeakIOPS
		}
	}
	for k := range drives {
		haveSpace += float64(drives[k].Capacity * p.Config.FillSpace)
		haveIO += float64(drives[k].IOPS * p.Config.FillIOPS)
	}
	switch {
	case w.WorkingSet > space*(1+roundOff):
		e.Obstacle, e.Proven, e.Remedy = NoSpace, true, fmt.Sprintf("its %.6g GB need a drive of more than the %.6g GB that the largest may fill", w.WorkingSet, space)
	case w.PeakIOPS > io*(1+roundOff):
		e.Obstacle, e.Proven, e.Remedy = NoIOPS, true, fmt.Sprintf("its %.6g I/Os a second need a drive that does more than the %.6g of the best", w.PeakIOPS, io)
	case needSpace > haveSpace*(1+roundOff):
		e.Obstacle, e.Proven, e.Remedy = NoSpace, true, fmt.Sprintf("the workloads take %.6g GB of the %.6g GB that may be filled; %.6g GB more would hold them", needSpace, haveSpace, needSpace-haveSpace)
	case needIO > haveIO*(1+roundOff):
		e.Obstacle, e.Proven, e.Remedy = NoIOPS, true, fmt.Sprintf("the workloads ask for %.6g I/Os a second of the %.6g that may be done; drives of %.6g more would do them", needIO, haveIO, needIO-haveIO)
	case w.Apart != "":
		e.Obstacle, e.Remedy = SameFate, fmt.Sprintf("a further failure domain would hold it apart from group %s", w.Apart)
	case w.P99 > 0:
		e.Obstacle, e.Remedy = TooSlow, "a further drive, or a looser p99, would do"
	case p.Config.Horizon > 0 && w.Arrival >= p.Config.Horizon:
		e.Obstacle, e.Remedy = NoLife, "a drive that begins its service later, or a longer horizon, would take it"
	default:
		e.Obstacle, e.Remedy = NoSpace, "a further drive would take it"
	}
	return e
}

// Bound proves a lower bound of the cost a gigabyte of any plan; host is a good one, from whose drives the first prices are taken.
func Bound(cfg OptimiseConfig, p *Problem, host []int) *Certificate {
	d := newDual(p)
	cost, data, err := p.Value(host)
	if err != nil {
		panic("tco: a bound of a plan that is none: " + err.Error())
	}
	d.r = cost / data
	total := 0
	for i := range p.Classes {
		total += p.Classes[i].Count
	}
	cases := []Case{{Least: 0, Most: total}}
	if len(p.Classes) == 1 && p.Classes[0].Optional {
		cases = d.casesOf()
	}
	spans := cfg.Spans
	if p.Config.Horizon > 0 {
		// A day between a first workload and its block's end is a day of service that is not there; few days of death matter.
		spans, cfg.Days = 128, max(4, cfg.Days/4)
	}
	if len(p.Jobs) > 500 {
		cfg.Days = min(cfg.Days, 14) // what matters among them is refined anyhow
	}
	cert := &Certificate{Cases: cases}
	last := &cases[len(cases)-1] // the others are impossible
	x := d.relax(cfg, spans, host)
	if len(cases) > 1 {
		x.least, x.most = last.Least, last.Most
	}
	// Of two beginnings the higher: a plan's where drives are worn out, else that of rents.
	begin, at := slices.Clone(x.value), x.evaluate(1, false)
	x.rents(300)
	if x.evaluate(1, false) < at {
		copy(x.value, begin)
	}
	enough := 0.0005
	if len(p.Jobs) > 500 {
		enough = 0.002 // a tenth of what many workloads leave open anyhow, in half of the time
	}
	x.raise(cfg.Climb, enough*cost)
	rate, proof := x.prove(cost, data)
	if proof == nil {
		return &Certificate{} // nothing is proved but that cost is not negative
	}
	cert.Rate = rate
	x.write(last, proof)
	return cert
}
