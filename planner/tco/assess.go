package tco

import (
	"fmt"
	"math"
	"slices"
)

// Placement maps workloads to drives: Host[j] is the drive of workload j, or -1 if no drive takes it.
type Placement struct {
	Host    []int
	Refused map[int]Refusal // of the workloads without a drive
}

// DriveState is the state of a drive at the end of a plan.
type DriveState struct {
	Workloads   int
	WriteRate   float64 // GB per day from users
	Sequential  float64 // S of the writes to its members
	WAF         float64
	Worn        float64 // w: GB written to its flash until the last arrival
	First       float64 // T_I
	Recent      float64 // T_R
	Death       float64 // T_D
	Lifetime    float64 // T_Lf
	Cost        float64 // C_I + c_M T_Lf
	Data        float64 // GB that users write before its death
	WearAtDeath float64 // share of the budget that is used by then
	Space, Load float64 // GB; I/Os per second
	SpaceShare  float64
	IOPSShare   float64
	Limited     bool // by endurance
}

// Assessment is the outcome of a plan.
type Assessment struct {
	Drives []DriveState
	Cost   float64 // TCO, equation 1
	Data   float64 // GB, the sum of D_j
	Days   float64 // the sum of T_Lf
	// Used is how many drives have a workload; Placed and Refused count workloads.
	Used, Placed, Refused int

	SpaceShare, SpaceCV       float64 // mean of the drives' utilisations, and their coefficient of variation
	IOPSShare, IOPSCV         float64
	WorkloadsCV               float64
	EnduranceLimited          float64 // share of the used drives that wear out before anything else ends their service
	EarliestDeath, MeanLife   float64 // days; of used drives
	BudgetAtDeath, RateOfPool float64 // share of all budgets that is used; GB per day
}

// CostPerGB is TCO', equation 3; NaN if no workload writes.
func (a *Assessment) CostPerGB() float64 { return perGB(a.Cost, a.Data) }

func perGB(cost, data float64) float64 {
	if data > 0 {
		return cost / data
	}
	return math.NaN()
}

// CostPerDay is minTCO-v2's objective.
func (a *Assessment) CostPerDay() float64 { return a.Cost / a.Days }

// Misfit is the error for a placement that violates a drive's constraint.
type Misfit struct {
	Workload, Drive string
	Obstacle        Obstacle
}

func (e *Misfit) Error() string {
	return fmt.Sprintf("workload %s does not fit on drive %s: %v", e.Workload, e.Drive, e.Obstacle)
}

// Assess places each workload on the drive in host and returns the outcome. It checks every constraint.
func Assess(cfg Config, drives []Drive, jobs []Workload, host []int) (*Assessment, error) {
	if len(host) != len(jobs) {
		return nil, fmt.Errorf("the placement has %d workloads, the problem %d", len(host), len(jobs))
	}
	if err := checkInput(cfg, drives, jobs); err != nil {
		return nil, err
	}
	p, err := NewPool(cfg, drives)
	if err != nil {
		return nil, err
	}
	for _, j := range ByArrival(jobs) {
		k := host[j]
		if k < 0 {
			continue
		}
		if k >= len(drives) {
			return nil, fmt.Errorf("workload %s is placed on drive %d of %d", jobs[j].Name, k, len(drives))
		}
		p.advanceDrive(k, jobs[j].Arrival)
		why := p.fits(k, &jobs[j])
		var o outcome
		if why == Fits && !p.with(k, &jobs[j], jobs[j].Arrival, &o) {
			why = NoLife
		}
		if why != Fits {
			return nil, &Misfit{Workload: jobs[j].Name, Drive: drives[k].Name, Obstacle: why}
		}
		p.put(k, &jobs[j])
	}
	last := 0.0
	for j := range jobs {
		last = max(last, jobs[j].Arrival)
	}
	p.advance(last)
	return p.assess(len(jobs)), nil
}

// ByArrival returns the workloads' indices in order of arrival; simultaneous arrivals keep their order.
func ByArrival(jobs []Workload) []int {
	order := make([]int, len(jobs))
	for j := range order {
		order[j] = j
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case jobs[a].Arrival < jobs[b].Arrival:
			return -1
		case jobs[a].Arrival > jobs[b].Arrival:
			return 1
		}
		return 0
	})
	return order
}

// assess returns the outcome for the pool. The argument workloads is the number of workloads that asked for a drive.
func (p *Pool) assess(workloads int) *Assessment {
	a := &Assessment{Drives: make([]DriveState, len(p.drives)), EarliestDeath: math.Inf(1)}
	budget, used := 0.0, 0.0
	for k := range p.drives {
		d := &p.drives[k]
		s := &a.Drives[k]
		*s = DriveState{Workloads: int(p.taken[k]), WriteRate: p.rate[k], Worn: p.worn[k], First: p.first[k],
			Recent: p.recent[k], Death: p.death[k],
			Lifetime: p.death[k] - p.first[k], Cost: p.cost[k], Data: p.data[k], Space: p.space[k], Load: p.ios[k],
			SpaceShare: p.space[k] / d.Capacity, IOPSShare: p.load[k] / d.IOPS, Limited: p.limited[k]}
		if p.wearing[k] > 0 {
			s.Sequential = min(1, p.mix[k]/p.wearing[k])
		}
		s.WAF = d.WAF.At(s.Sequential)
		s.WearAtDeath = p.spent[k] / d.Budget
		if p.started[k] {
			a.Used++
			a.EarliestDeath = min(a.EarliestDeath, s.Death)
			a.MeanLife += s.Lifetime
		}
		budget += d.Budget
		used += float64(d.Budget * s.WearAtDeath)
		a.Placed += s.Workloads
		a.RateOfPool += s.WriteRate
	}
	a.Cost, a.Data, a.Days = p.totals()
	a.Refused = workloads - a.Placed
	if a.Used > 0 {
		a.MeanLife /= float64(a.Used)
	}
	a.Spread()
	if budget > 0 {
		a.BudgetAtDeath = used / budget
	}
	return a
}

// Spread computes the means and variations over the drives' states, and the share of used drives that wear out.
func (a *Assessment) Spread() {
	var space, iops, counts []float64
	limited := 0
	for k := range a.Drives {
		s := &a.Drives[k]
		space, iops, counts = append(space, s.SpaceShare), append(iops, s.IOPSShare),
			append(counts, float64(s.Workloads))
		if s.Workloads > 0 && s.Limited {
			limited++
		}
	}
	a.SpaceShare, a.SpaceCV = meanAndCV(space)
	a.IOPSShare, a.IOPSCV = meanAndCV(iops)
	_, a.WorkloadsCV = meanAndCV(counts)
	if a.Used > 0 {
		a.EnduranceLimited = float64(limited) / float64(a.Used)
	}
}

// meanAndCV follows section 4.2: the mean, and the population standard deviation divided by it.
func meanAndCV(v []float64) (mean, cv float64) {
	if len(v) == 0 {
		return 0, 0
	}
	for _, x := range v {
		mean += x
	}
	mean /= float64(len(v))
	if mean == 0 {
		return 0, 0
	}
	sum := 0.0
	for _, x := range v {
		sum += float64((x - mean) * (x - mean))
	}
	return mean, math.Sqrt(sum/float64(len(v))) / mean
}

// Online places workloads in order of arrival and returns the placement and its outcome.
func Online(cfg AllocatorConfig, drives []Drive, jobs []Workload) (*Placement, *Assessment, error) {
	if err := checkInput(cfg.Config, drives, jobs); err != nil {
		return nil, nil, err
	}
	a, err := NewAllocator(cfg, drives)
	if err != nil {
		return nil, nil, err
	}
	pl := &Placement{Host: make([]int, len(jobs)), Refused: map[int]Refusal{}}
	for _, j := range ByArrival(jobs) {
		k, refusal, err := a.Place(&jobs[j])
		if err != nil {
			return nil, nil, err
		}
		pl.Host[j] = k
		if k < 0 {
			pl.Refused[j] = refusal
		}
	}
	return pl, a.pool.assess(len(jobs)), nil
}
