package tco

import (
	"fmt"
	"math"

	"farflash/numeric/rng"
	"farflash/numeric/units"
)

// Policy selects the drive for an arriving workload. Ties go to the drive that is listed first.
type Policy uint8

// The policies: minTCO's family and its baselines.
const (
	MinTCOv3       Policy = iota // lowest cost per gigabyte of the pool (equation 3): minTCO
	MinTCOv2                     // lowest cost per day of lifetime
	MinTCOv1                     // lowest cost over the lifetimes (equation 1)
	MinTCOPerf                   // equation 5
	MaxRemCycle                  // largest remaining write budget
	MinWAF                       // lowest write amplification with the workload
	MinRate                      // lowest write rate so far
	MinWorkloadNum               // fewest workloads so far
	RoundRobin                   // next drive that has space for it
	Random                       // any drive that has space for it, at random
	policies
)

var policyNames = units.Names[Policy]{"mintco-v3", "mintco-v2", "mintco-v1", "mintco-perf", "max-rem-cycle",
	"min-waf", "min-rate", "min-workload-num", "round-robin", "random"}

// String returns the policy's name in a plan.
func (p Policy) String() string { return policyNames.Name(p) }

// MarshalText writes the policy's name.
func (p Policy) MarshalText() ([]byte, error) { return policyNames.Marshal(p) }

// UnmarshalText reads a policy's name.
func (p *Policy) UnmarshalText(text []byte) error { return policyNames.Unmarshal(text, p) }

// Policies returns all policies.
func Policies() []Policy {
	list := make([]Policy, policies)
	for i := range list {
		list[i] = Policy(i)
	}
	return list
}

// Weights are the weights of equation 5, in the paper's order: cost, utilisation of space and of IOPS, imbalance of
// space and of IOPS.
type Weights struct {
	Cost, Space, IOPS, SpaceCV float64
	IOPSCV                     float64 `yaml:"iops_cv"`
	// Linear scales the weights by the arriving workload: cost by its share of writes, the others by its share of
	// reads.
	Linear bool
}

// DefaultWeights returns the paper's best weights: [5, 1, 1, 3, 3].
func DefaultWeights() Weights { return Weights{Cost: 5, Space: 1, IOPS: 1, SpaceCV: 3, IOPSCV: 3} }

// Validate reports invalid weights, by the keys of a plan's weights.
func (w Weights) Validate() error {
	var f units.Faults
	for _, x := range []struct {
		key string
		v   float64
	}{{"cost", w.Cost}, {"space", w.Space}, {"iops", w.IOPS}, {"space_cv", w.SpaceCV}, {"iops_cv", w.IOPSCV}} {
		f.Hold(finite(x.v), x.key, "%v is not possible; write 0 or more", x.v)
	}
	return f.Err()
}

// AllocatorConfig configures how workloads are placed as they arrive.
type AllocatorConfig struct {
	Config
	Policy  Policy
	Weights Weights // of MinTCOPerf
	// Threshold is the highest cost per gigabyte allowed for a single drive, Th_c of equation 5; 0: no limit.
	Threshold float64
	// Relative makes MaxRemCycle compare the remaining share of the budget instead of the remaining bytes.
	Relative bool
	Seed     uint64 // of Random
}

// DefaultAllocatorConfig returns minTCO-v3 with the corrected formulas.
func DefaultAllocatorConfig() AllocatorConfig {
	return AllocatorConfig{Config: DefaultConfig(), Weights: DefaultWeights(), Seed: 1}
}

// Allocator places workloads on a pool of drives one by one. An arrival takes time linear in the number of drives: a
// candidate changes only its own drive's terms of the sums over all drives, so the sums are not recomputed for each
// candidate as in algorithm 1.
type Allocator struct {
	cfg    AllocatorConfig
	pool   *Pool
	stream rng.Stream
	turn   int // of RoundRobin
	idle   int // drives without a workload, during the warm-up
	last   float64
	placed int
	later  func(k int, w *Workload) Obstacle // what else drive k must have space for; nil: no further constraint

	sum struct { // over all drives, before the arrival
		cost, data, life         float64
		space, space2, iops, io2 float64 // utilisations and their squares
	}
}

// NewAllocator makes an allocator of an empty pool.
func NewAllocator(cfg AllocatorConfig, drives []Drive) (*Allocator, error) {
	pool, err := NewPool(cfg.Config, drives)
	if err != nil {
		return nil, err
	}
	if len(drives) == 0 {
		return nil, fmt.Errorf("no drives to place workloads on")
	}
	if err := units.Within("weights", cfg.Weights.Validate()); err != nil {
		return nil, err
	}
	if !finite(cfg.Threshold) {
		return nil, fmt.Errorf("a threshold of %v; it cannot be negative", cfg.Threshold)
	}
	a := &Allocator{cfg: cfg, pool: pool, stream: rng.NewStream(cfg.Seed, "tco/random")}
	if cfg.WarmUp {
		a.idle = len(drives)
	}
	return a, nil
}

// Refusal counts the drives that refused a workload, by obstacle.
type Refusal [obstacles]int32

// Main returns the most frequent obstacle.
func (r Refusal) Main() Obstacle {
	best := NoSpace
	for o := NoSpace; o < obstacles; o++ {
		if r[o] > r[best] {
			best = o
		}
	}
	return best
}

// Place puts a workload on a drive and returns the drive's index, or -1 and the refusals if no drive takes it. The
// caller must place workloads in order of arrival.
func (a *Allocator) Place(w *Workload) (int, Refusal, error) {
	k, refusal, err := a.choose(w, nil)
	if err != nil || k < 0 {
		return k, refusal, err
	}
	if a.idle > 0 && a.pool.count[k] == 0 {
		a.idle--
	}
	a.pool.put(k, w)
	if a.cfg.Policy == RoundRobin {
		a.turn = k + 1
	}
	a.placed++
	return k, refusal, nil
}

// Candidate describes a drive as a candidate for an arriving workload.
type Candidate struct {
	Drive    int
	Obstacle Obstacle
	// Score is the policy's objective, lower being better; for MinTCOv3 the pool's cost per gigabyte. It is 0 if there
	// is an obstacle.
	Score    float64
	WAF      float64 // with the workload
	Lifetime float64 // days from the drive's first workload
	Cost     float64 // of the pool, with the workload there
	CostPer  float64 // of the pool per gigabyte, likewise
}

// Explain returns the result of placing the workload on each drive, without placing it.
func (a *Allocator) Explain(w *Workload) ([]Candidate, error) {
	list := make([]Candidate, len(a.pool.drives))
	_, _, err := a.choose(w, list)
	return list, err
}

// better reports whether score beats the best score so far. Sums over many drives differ in their last bits with the
// order of summation; a difference that small counts as a tie.
func better(score, best float64) bool {
	return score < best-float64(1e-11*math.Abs(best)) || math.IsInf(best, 1) && !math.IsInf(score, 1)
}

// choose returns the drive for w. If list is not nil, it receives all candidates.
func (a *Allocator) choose(w *Workload, list []Candidate) (int, Refusal, error) {
	var refusal Refusal
	if err := w.check(); err != nil {
		return -1, refusal, err
	}
	if w.Arrival < a.last {
		return -1, refusal, fmt.Errorf(
			"workload %s arrives on day %v, after one of day %v was placed; sort them by arrival", w.Name, w.Arrival,
			a.last)
	}
	if w.WriteRate == 0 && w.End == 0 && a.cfg.Horizon == 0 {
		return -1, refusal, fmt.Errorf(
			"workload %s writes nothing: without a horizon its drive would last forever; set a horizon", w.Name)
	}
	a.last = w.Arrival
	p := a.pool
	p.advance(w.Arrival)
	a.addUp(list != nil)
	best, bestScore := -1, math.Inf(1)
	fitting := int64(0)
	n := len(p.drives)
	var o outcome
	for i := range n {
		k := i
		if a.cfg.Policy == RoundRobin {
			k = (a.turn + i) % n
		}
		if a.idle > 0 && p.count[k] > 0 && list == nil {
			continue
		}
		why := p.fits(k, w)
		if why == Fits && a.later != nil {
			why = a.later(k, w)
		}
		if why == Fits && !p.with(k, w, w.Arrival, &o) {
			why = NoLife
		}
		if why == Fits && a.cfg.Threshold > 0 && o.cost > float64(a.cfg.Threshold*o.data) {
			why = TooCostly
		}
		if list != nil {
			list[k] = Candidate{Drive: k, Obstacle: why}
		}
		refusal[why]++
		if why != Fits {
			continue
		}
		score := a.score(k, w, &o, i)
		if list != nil {
			c := &list[k]
			first := w.Arrival
			if p.started[k] {
				first = p.first[k]
			}
			c.Score, c.WAF, c.Lifetime = score, o.waf, o.death-first
			c.Cost = a.sum.cost - p.cost[k] + o.cost
			c.CostPer = worth(c.Cost, a.sum.data-p.data[k]+o.data)
			continue
		}
		if a.cfg.Policy == Random {
			// Reservoir sampling: the n-th drive that fits replaces the choice with probability 1/n, so all are equally
			// likely.
			if fitting++; a.stream.IntN(fitting) == 0 {
				best = k
			}
			continue
		}
		if best < 0 || better(score, bestScore) {
			best, bestScore = k, score
		}
	}
	if best < 0 && a.idle > 0 && list == nil {
		// No idle drive takes it: the warm-up must not reject a workload that a drive already in use can hold.
		idle := a.idle
		a.idle = 0
		best, refusal, err := a.choose(w, nil)
		a.idle = idle
		return best, refusal, err
	}
	return best, refusal, nil
}

// addUp computes the sums over all drives that the policy scores by, or every sum if all is set.
func (a *Allocator) addUp(all bool) {
	s, p := &a.sum, a.pool
	switch a.cfg.Policy {
	case MinTCOv1, MinTCOv2, MinTCOv3, MinTCOPerf:
		all = true
	}
	if all {
		s.cost, s.data, s.life = p.totals()
	}
	if a.cfg.Policy == MinTCOPerf {
		s.space, s.space2, s.iops, s.io2 = 0, 0, 0, 0
		for k := range p.drives {
			us, up := p.space[k]/p.drives[k].Capacity, p.load[k]/p.drives[k].IOPS
			s.space += us
			s.space2 += float64(us * us)
			s.iops += up
			s.io2 += float64(up * up)
		}
	}
}

// score returns the policy's objective for drive k, the i-th candidate in the policy's order; lower is better.
func (a *Allocator) score(k int, w *Workload, o *outcome, i int) float64 {
	p, s := a.pool, &a.sum
	switch a.cfg.Policy {
	case MinTCOv1:
		return s.cost - p.cost[k] + o.cost
	case MinTCOv2:
		first := w.Arrival
		if p.started[k] {
			first = p.first[k]
		}
		life := s.life - (p.death[k] - p.first[k]) + (o.death - first)
		return (s.cost - p.cost[k] + o.cost) / life
	case MinTCOv3:
		return a.costPer(k, w, o)
	case MinTCOPerf:
		return a.enhanced(k, w, o)
	case MaxRemCycle:
		left := p.drives[k].Budget - o.worn
		if a.cfg.Relative {
			left /= p.drives[k].Budget
		}
		return -left
	case MinWAF:
		return o.waf
	case MinRate:
		return p.rate[k]
	case MinWorkloadNum:
		return float64(p.count[k])
	case RoundRobin:
		return float64(i)
	}
	return 0
}

// costPer is the pool's cost per gigabyte with the workload on drive k (equation 3).
func (a *Allocator) costPer(k int, w *Workload, o *outcome) float64 {
	p, data := a.pool, o.data
	if a.cfg.Mode == Paper && p.started[k] {
		// Line 15 of algorithm 1 subtracts the arrival, a point in time, from a duration that started at T_I.
		data -= float64(p.first[k] * w.WriteRate)
	}
	return worth(a.sum.cost-p.cost[k]+o.cost, a.sum.data-p.data[k]+data)
}

// enhanced evaluates equation 5.
func (a *Allocator) enhanced(k int, w *Workload, o *outcome) float64 {
	p, s, c := a.pool, &a.sum, a.cfg.Weights
	if c.Linear {
		c.Cost = float64(c.Cost * w.WriteShare)
		for _, x := range []*float64{&c.Space, &c.IOPS, &c.SpaceCV, &c.IOPSCV} {
			*x = float64(*x * (1 - w.WriteShare))
		}
	}
	per := a.costPer(k, w, o)
	if a.cfg.Mode == Corrected && s.data > 0 {
		// A gigabyte costs about a thousandth of a currency unit, so only a ratio is comparable with the other shares.
		per /= s.cost / s.data
	}
	d := &p.drives[k]
	n := float64(len(p.drives))
	meanS, cvS := spread(s.space, s.space2, p.space[k]/d.Capacity, (p.space[k]+w.WorkingSet)/d.Capacity, n)
	meanP, cvP := spread(s.iops, s.io2, p.load[k]/d.IOPS, (p.load[k]+d.Load(w))/d.IOPS, n)
	score := float64(c.Cost*per) - float64(c.Space*meanS)
	score += float64(c.SpaceCV*cvS) - float64(c.IOPS*meanP)
	return score + float64(c.IOPSCV*cvP)
}

// spread returns the mean and the coefficient of variation of n shares, one of which changes from was to is.
func spread(sum, squares, was, is, n float64) (mean, cv float64) {
	mean = (sum - was + is) / n
	if !(mean > 0) {
		return mean, 0
	}
	variance := (squares-float64(was*was)+float64(is*is))/n - float64(mean*mean)
	return mean, math.Sqrt(max(0, variance)) / mean
}
