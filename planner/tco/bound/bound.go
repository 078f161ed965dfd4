// Package bound proves upper limits on the distance of a plan of package tco from the best plan.
//
// Its functions are Optimise, which returns a plan with a bound; Prove, which adds the bound to such a plan; and Of,
// which bounds a plan from elsewhere. They compute the prices of a Lagrangian relaxation and record them as a
// tco.Certificate, which package planner/tco/certify checks; docs/adr/0007-planner.md has the proof. If every plan was
// examined, no relaxation is needed, and the plan is its own bound.
//
// It leaves out latency and failure domains, which can only make plans more expensive.
package bound

import (
	"cmp"
	"slices"

	"farflash/planner/tco"
)

// Of proves a lower bound on the cost per gigabyte of any plan: the best plan's own cost if every plan can be examined,
// otherwise a bound by prices derived from host, which should be a good plan.
func Of(cfg tco.OptimiseConfig, p *tco.Problem, host []int) *tco.Certificate {
	if len(p.Jobs) <= tco.ExactWorkloads {
		if o, err := tco.Optimise(cfg, p, nil); err == nil && o.Data > 0 {
			return exhaustive(o)
		}
	}
	return Priced(cfg, p, host)
}

// Priced returns the proof by prices, for any number of workloads.
func Priced(cfg tco.OptimiseConfig, p *tco.Problem, host []int) *tco.Certificate {
	d := newDual(p)
	cost, data, err := p.Value(host)
	if err != nil {
		panic("tco: invalid plan: " + err.Error())
	}
	d.r = cost / data
	total := 0
	for i := range p.Classes {
		total += p.Classes[i].Count
	}
	spans := cfg.Spans
	if p.Config.Horizon > 0 {
		// The proof loses the days between a first workload and its block's end, because they count as service that
		// does not exist; a few days of death suffice.
		spans, cfg.Days = 128, max(4, cfg.Days/4)
		if len(p.Jobs) > 500 {
			spans = 48
			if len(p.Jobs) > 5000 {
				spans = 20
			}
			cfg.Days = max(6, min(28, mostCells/(len(spansOf(d.arrive, spans))*len(p.Classes))))
		}
	}
	if len(p.Jobs) > 500 {
		cfg.Days = min(cfg.Days, 28) // refinement adds days where they matter
	}
	x := d.relax(cfg, spans, host)
	work := 0 // work of one evaluation of the dual
	for n := range x.grid {
		work += len(x.grid[n]) * len(p.Jobs)
	}
	fresh := x.taken()
	// fewer steps for very many workloads, because each is slow
	climb := max(min(cfg.Climb, 20), min(cfg.Climb, cfg.Climb*5000/len(p.Jobs)))
	b, rate, proved := x.divided(climb, cost, data)
	cert := &tco.Certificate{Cases: []tco.Case{proved}}
	if rate > 0 && len(p.Jobs) > 500 && (len(p.Classes) > 1 || work > mostWork) {
		cert.Rate = rate
		return cert
	}
	// If drives hold few workloads, prices of workloads alone may prove more. Start from several points: the plan's
	// prices where drives wear out, those of rents, and those of drives divided among many workloads.
	cases := []tco.Case{{Least: 0, Most: total}}
	if len(p.Classes) == 1 && p.Classes[0].Optional {
		cases = d.casesOf()
	}
	last := &cases[len(cases)-1] // the others are impossible
	if len(cases) > 1 {
		x.least, x.most = last.Least, last.Most
	}
	begin := []beginning{{find: func() { copy(x.value, fresh.value) }}}
	if work < mostWork {
		begin = append(begin, beginning{find: func() { x.rents(300) }})
	}
	if p.Config.Horizon > 0 {
		begin = append(begin, beginning{find: func() {
			copy(x.value, b.value)
			b.into()
		}})
	}
	enough := 0.0005
	if len(p.Jobs) > 500 {
		enough = 0.002 // a tenth of the gap that usually remains with many workloads, in half the time
	}
	for i := range begin {
		x.r = cost / data
		x.put(fresh)
		begin[i].find()
		begin[i].reaches = x.evaluate(1, false)
	}
	slices.SortStableFunc(begin, func(a, b beginning) int { return cmp.Compare(b.reaches, a.reaches) })
	most := 0.0
	for _, f := range begin {
		if n := len(p.Jobs); most > 0 && n > 60 && (n > 500 || p.Config.Horizon == 0) {
			break // each proof is slow: the first one that holds suffices, most promising first
		}
		x.r = cost / data
		x.put(fresh)
		f.find()
		x.raise(min(cfg.Climb, cfg.Climb*mostWork/max(1, work)), enough*cost)
		if r, proof := x.prove(cost, data); proof != nil {
			if most = max(most, r); r > rate {
				rate = r
				cert.Cases = cases
				x.write(last, proof)
			}
		}
	}
	if rate == 0 {
		return &tco.Certificate{} // only the trivial bound of 0 is proven
	}
	cert.Rate = rate
	return cert
}

// divided proves a rate by treating drives as divisible among many workloads, and also by counting whole drives; it
// returns 0 if it proves none.
func (x *relaxation) divided(climb int, cost, data float64) (b *shares, rate float64, proved tco.Case) {
	margin := float64(1e-9 * cost)
	b = x.newShares()
	b.raise(climb, 0)
	for range refinements {
		b.sum(0.002, true)
		if !b.refine(0.005) {
			break
		}
		b.raise(climb/3, 0.4)
	}
	for i := range x.classes {
		proved.Most += x.classes[i].c.Count
	}
	for _, part := range []float64{0, 0.7, 0.85, 1} {
		q := b.clone()
		if part > 0 {
			if !q.count(part) {
				break
			}
			q.raise(climb, 0.3)
		}
		x.r = cost / data
		if r, proof := q.settle(margin); proof != nil && r > rate {
			rate = r
			x.write(&proved, proof)
		}
	}
	x.whole = false
	return b, rate, proved
}

// refinements is the number of rounds that divide pieces.
const refinements = 3

// beginning is a starting point: find sets the prices of workloads.
type beginning struct {
	find    func()
	reaches float64
}

// start is the state from which a climb starts: the prices of workloads and of the cells.
type start struct {
	value []float64
	grid  [][]deathday
}

// taken returns a copy of the relaxation's present state.
func (x *relaxation) taken() start {
	s := start{value: slices.Clone(x.value), grid: make([][]deathday, len(x.grid))}
	for i := range x.grid {
		s.grid[i] = slices.Clone(x.grid[i])
	}
	return s
}

// put restores a state.
func (x *relaxation) put(s start) {
	copy(x.value, s.value)
	for i := range x.grid {
		copy(x.grid[i], s.grid[i])
	}
}

// mostCells is the approximate limit on kinds of drives, by class, first day and last, among which many workloads are
// divided.
const mostCells = 1500

// mostWork is the product of workloads and days of death up to which every step evaluates all of them.
const mostWork = 1_000_000

// Optimise is tco.Optimise followed by Prove, which has an effect if Climb is not 0.
func Optimise(cfg tco.OptimiseConfig, p *tco.Problem, start []int) (*tco.Optimum, error) {
	o, err := tco.Optimise(cfg, p, start)
	if err == nil {
		Prove(cfg, p, o)
	}
	return o, err
}

// Prove adds a bound to a plan, if Climb is not 0 and any workload writes.
func Prove(cfg tco.OptimiseConfig, p *tco.Problem, o *tco.Optimum) {
	switch {
	case cfg.Climb == 0 || !(o.Data > 0):
		return
	case o.Exact:
		o.Certificate = exhaustive(o)
	default:
		o.Certificate = Priced(cfg, p, o.Host)
	}
	o.Bound = o.Certificate.Rate
}

// exhaustive returns the proof by enumeration. The margin is for a checker whose sums differ in the last digits.
func exhaustive(o *tco.Optimum) *tco.Certificate {
	return &tco.Certificate{Rate: o.CostPerGB() * (1 - 1e-9), Exhaustive: true}
}
