package tco

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"farflash/internal/spelling"
	"farflash/numeric/rng"
)

// OptimiseConfig sets the effort spent on a plan and its bound.
type OptimiseConfig struct {
	Steps int    // tries of the local search
	Climb int    // steps of the bound (package planner/tco/bound); 0: no bound
	Days  int    // days of death that the bound considers before it refines them
	Spans int    // groups of arrivals that the bound distinguishes
	Seed  uint64 // of the search
	// Exact is the largest number of workloads for which every plan is examined if that takes at most about a second;
	// up to ExactWorkloads it always is.
	Exact int
	// Stop, if not nil, is polled and reports whether the best plan so far suffices.
	Stop func() bool
}

// DefaultOptimiseConfig suits a hundred workloads in a second.
func DefaultOptimiseConfig() OptimiseConfig {
	return OptimiseConfig{Steps: 200_000, Climb: 150, Days: 28, Spans: 6, Seed: 1}
}

// Optimum is a plan made with hindsight and a bound on its distance from the best plan.
type Optimum struct {
	Host   []int
	Drives []Drive
	Class  []int
	Cost   float64
	Data   float64
	// Bound is proven by the Certificate: no plan costs less per gigabyte. 0: no bound was requested, or none was
	// proven. Package planner/tco/bound sets both.
	Bound       float64
	Certificate *Certificate
	// Exact means that every plan was examined, and none costs less.
	Exact bool
}

// CostPerGB is TCO'.
func (o *Optimum) CostPerGB() float64 { return o.Cost / o.Data }

// Gap is the plan's excess over the bound, as a share of the bound.
func (o *Optimum) Gap() float64 {
	if o.Bound <= 0 {
		return math.Inf(1)
	}
	return o.CostPerGB()/o.Bound - 1
}

// Infeasible is the error if no placement was found that gives each workload a drive.
type Infeasible struct {
	Workload string
	Obstacle Obstacle
	Proven   bool   // no plan exists
	Remedy   string // a change that would help
}

func (e *Infeasible) Error() string {
	certain := "no placement of all workloads was found"
	if e.Proven {
		certain = "no plan can place all workloads"
	}
	return fmt.Sprintf("%s: workload %s has no drive, for %v; %s", certain, e.Workload, e.Obstacle, e.Remedy)
}

// Optimise places all workloads with knowledge of every arrival. For a few workloads it examines every plan and returns
// the best; for more it searches from several initial plans, one of which is start if that is not nil. The result does
// not depend on the order or the names of classes and workloads.
func Optimise(cfg OptimiseConfig, p *Problem, start []int) (*Optimum, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	if none := p.misfits(); len(none) > 0 {
		return nil, p.refuse(none)
	}
	a, err := arrange(p)
	if err != nil {
		return nil, err
	}
	o := &Optimum{}
	o.Drives, o.Class = p.Drives()
	if a.few(cfg.Exact) {
		slots, ok := a.exactly()
		if !ok {
			none := p.obstacle(o.Drives, a.hardest())
			none.Proven = true
			return nil, none
		}
		o.Exact, o.Host = true, a.placement(slots)
	} else if o.Host = a.search(cfg, start); o.Host == nil {
		return nil, p.obstacle(o.Drives, a.hardest())
	}
	if o.Cost, o.Data, err = p.Value(o.Host); err != nil {
		return nil, err
	}
	return o, nil
}

// hardest returns the workload that takes the largest share of a drive: the one to name if not all fit.
func (a *arranged) hardest() *Workload {
	f := a.filling()
	best := 0
	for j := range f.weight {
		if f.weight[j] > f.weight[best] {
			best = j
		}
	}
	return &a.p.Jobs[a.from[best]]
}

// many is the number of workloads from which on the search uses one initial plan and accepts no worse plans: one
// workload is then small relative to a drive.
const many = 2000

// search finds a plan, or returns nil.
func (a *arranged) search(cfg OptimiseConfig, start []int) []int {
	f := a.filling()
	var found [][]slot
	if start != nil {
		found = append(found, a.slotsOf(start))
	}
	for _, f.lasting = range []bool{false, true} {
		if f.lasting && !(a.p.Config.Horizon > 0) {
			break
		}
		for _, order := range f.orders() {
			found = append(found, f.plan(order, -1))
			if len(a.jobs) < many {
				for k := range a.kinds {
					found = append(found, f.plan(order, k))
				}
			}
		}
	}
	found = append(found, f.levels()...)
	searches := make([]*search, 0, len(found))
	for _, slots := range found {
		searches = append(searches, a.begin(slots))
	}
	slices.SortStableFunc(searches, func(x, y *search) int {
		return cmp.Or(cmp.Compare(x.least, y.least), cmp.Compare(x.over+float64(x.clash), y.over+float64(y.clash)))
	})
	searches = unlike(searches, theBest)
	least := math.Inf(1)
	var best []slot
	keep := func(s *search) {
		if s.best != nil && s.least < least*(1-1e-12) {
			least, best = s.least, s.best
		}
	}
	for i, s := range searches {
		keep(s)
		if i >= len(heats) || i >= theBest && len(a.jobs) > fewWorkloads || i > 0 && len(a.jobs) >= many {
			continue
		}
		if len(s.slots) == 0 {
			continue
		}
		mean := (s.cost + a.sunk) / float64(len(s.slots))
		how := annealing{steps: cfg.Steps / theBest, penalty: mean, hot: float64(mean * heats[i]), stop: cfg.Stop}
		if n := len(a.jobs); n >= many {
			how.steps, how.hot = cfg.Steps, 0
		} else if n > 800 && a.p.Pricer != nil {
			how.steps = how.steps * 800 / n // each takes its time and finds little
		}
		r := rng.NewStream(cfg.Seed+uint64(i), "tco/search")
		s.run(how, &r)
		if s.best != nil {
			s = a.begin(s.best)
			s.rebuild(how.steps/1000, cfg.Stop, &r)
		}
		keep(s)
	}
	if best == nil {
		return nil
	}
	return a.placement(best)
}

// unlike reorders sorted plans, best first, so that after the first best plans come those whose set of drives no
// earlier plan has. From plans with the same drives a search mostly converges to the same results, and may never
// discover that more and smaller drives are cheaper.
func unlike(sorted []*search, best int) []*search {
	seen := map[string]bool{}
	var first, rest []*search
	for i, s := range sorted {
		drives := fmt.Sprint(s.used)
		if i < best || !seen[drives] {
			first = append(first, s)
		} else {
			rest = append(rest, s)
		}
		seen[drives] = true
	}
	return append(first, rest...)
}

// theBest is the number of plans, best first, from which the search starts; heats are their initial temperatures, as a
// share of a drive's cost. With up to fewWorkloads workloads, as many plans with different drives follow: a drive is
// then large relative to the problem, and a search seldom changes all of them.
const theBest, fewWorkloads = 4, 200

var heats = [2 * theBest]float64{0.02, 0.1, 0.4, 1.5, 1.5, 0.4, 0.1, 0.02}

// slotsOf converts a placement into the drives in use.
func (a *arranged) slotsOf(host []int) []slot {
	kindOf := map[int]int{}
	for k := range a.kinds {
		for _, m := range a.kinds[k].members {
			kindOf[int(m)] = k
		}
	}
	at := map[int]int{}
	var slots []slot
	for j, from := range a.from {
		d := host[from]
		i, ok := at[d]
		if !ok {
			i = len(slots)
			at[d] = i
			slots = append(slots, slot{kind: kindOf[d]})
		}
		slots[i].list = append(slots[i].list, int32(j))
	}
	return slots
}

// obstacle reports why a workload has no drive, and whether that is certain.
func (p *Problem) obstacle(drives []Drive, w *Workload) *Infeasible {
	e := &Infeasible{Workload: w.Name}
	space, io, unit := 0.0, 0.0, "I/Os"
	for k := range drives {
		space = max(space, drives[k].Capacity*p.Config.FillSpace)
		if d := &drives[k]; w.PeakIOPS > 0 {
			io = max(io, float64(d.IOPS*p.Config.FillIOPS)/(d.Load(w)/w.PeakIOPS))
		}
		if drives[k].WriteCost > 0 {
			unit = "reads, or writes of as much time,"
		}
	}
	needSpace, needIO, haveSpace, haveIO := 0.0, 0.0, 0.0, 0.0
	for j := range p.Jobs {
		if x := &p.Jobs[j]; x.End == 0 {
			most := p.most(x)
			needSpace += float64(x.WorkingSet * most)
			needIO += float64(p.leastLoad(x) * most)
		}
	}
	crowd, members, fates := p.crowd(drives)
	ownSpace, ownIO, grown := float64(w.WorkingSet*p.most(w)), float64(w.PeakIOPS*p.most(w)), ""
	if ownSpace > w.WorkingSet {
		grown = " that it grows to"
	}
	for k := range drives {
		haveSpace += float64(drives[k].Capacity * p.Config.FillSpace)
		haveIO += float64(drives[k].IOPS * p.Config.FillIOPS)
	}
	switch {
	case ownSpace > space*(1+roundOff):
		e.Obstacle, e.Proven, e.Remedy = NoSpace, true,
			fmt.Sprintf("its %.6g GB%s need a drive of more than the %.6g GB that the largest may fill", ownSpace,
				grown, space)
	case ownIO > io*(1+roundOff):
		e.Obstacle, e.Proven, e.Remedy = NoIOPS, true,
			fmt.Sprintf("its %.6g I/Os a second%s need a drive that does more than the %.6g of the best", ownIO,
				grown, io)
	case needSpace > haveSpace*(1+roundOff):
		e.Obstacle, e.Proven, e.Remedy = NoSpace, true,
			fmt.Sprintf("the workloads need %.6g GB of the %.6g GB that may be filled; %.6g GB more would hold "+
				"them",
				needSpace, haveSpace, needSpace-haveSpace)
	case needIO > haveIO*(1+roundOff):
		e.Obstacle, e.Proven, e.Remedy = NoIOPS, true,
			fmt.Sprintf("the workloads need %.6g %s a second of the %.6g that may be used; drives of %.6g more "+
				"would suffice", needIO, unit, haveIO, needIO-haveIO)
	case crowd != nil:
		if w.Apart != crowd.Apart {
			e.Workload = crowd.Name
		}
		e.Obstacle, e.Proven, e.Remedy = SameDomain, true,
			fmt.Sprintf("group %s has %s to keep apart, in %s; %d more would suffice", groupName(crowd.Apart),
				spelling.Plural(members, "workload"), spelling.Plural(fates, "failure domain"), members-fates)
	case w.Apart != "":
		e.Obstacle, e.Remedy = SameDomain,
			fmt.Sprintf("a further failure domain would keep it apart from group %s", groupName(w.Apart))
	case w.P99 > 0:
		e.Obstacle, e.Remedy = TooSlow, "a further drive, or a looser p99, would suffice"
	case p.Config.Horizon > 0 && w.Arrival >= p.Config.Horizon:
		e.Obstacle, e.Remedy = NoLife, "a drive whose service starts later, or a longer horizon, would take it"
	default:
		e.Obstacle, e.Remedy = NoSpace, "a further drive would take it"
	}
	return e
}

// groupName is a group's name without the suffix that distinguishes its stays between reviews.
func groupName(apart string) string {
	name, _, _ := strings.Cut(apart, "\x00")
	return name
}

// crowd returns the last workload of a group with more members than there are failure domains, or nil.
func (p *Problem) crowd(drives []Drive) (last *Workload, members, fates int) {
	seen := map[string]bool{}
	for k := range drives {
		seen[drives[k].Domain] = true
	}
	count := map[string]int{}
	for j := range p.Jobs {
		if w := &p.Jobs[j]; w.Apart != "" {
			if count[w.Apart]++; count[w.Apart] > max(len(seen), members) {
				last, members = w, count[w.Apart]
			}
		}
	}
	return last, members, len(seen)
}

// most is the largest growth of a workload's space and I/Os, relative to its arrival.
func (p *Problem) most(w *Workload) float64 {
	if p.Pricer == nil {
		return 1
	}
	return p.Pricer.Most(w)
}

// leastLoad is the IOPS that a workload takes of the class on which it takes least.
func (p *Problem) leastLoad(w *Workload) float64 {
	least := math.Inf(1)
	for i := range p.Classes {
		if p.Classes[i].Count > 0 {
			least = min(least, p.Classes[i].Drive.Load(w))
		}
	}
	return least
}
