// Package bound proves how far a plan of package tco can be from the best at most.
//
// Its functions are Optimise, a plan with a bound, Prove, the bound of such a plan, and Of, the bound of one that
// somebody else made. They find the prices of a Lagrangian relaxation and write them down as a tco.Certificate, which
// package planner/tco/certify checks; docs/adr/0007-planner.md has the proof. Where every plan was looked at there is
// nothing to be relaxed, and the plan is its own bound.
//
// What it leaves out: latency and failure domains, which can only make plans dearer.
package bound

import (
	"cmp"
	"slices"

	"farflash/planner/tco"
)

// Of proves a lower bound of the cost a gigabyte of any plan: the best plan's own cost where every plan can be looked
// at, else by prices that host, which is a good one, suggests.
func Of(cfg tco.OptimiseConfig, p *tco.Problem, host []int) *tco.Certificate {
	if len(p.Jobs) <= tco.ExactWorkloads {
		if o, err := tco.Optimise(cfg, p, nil); err == nil && o.Data > 0 {
			return exhaustive(o)
		}
	}
	return Priced(cfg, p, host)
}

// Priced is the proof by prices, of any number of workloads.
func Priced(cfg tco.OptimiseConfig, p *tco.Problem, host []int) *tco.Certificate {
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
	spans := cfg.Spans
	if p.Config.Horizon > 0 {
		// A day between a first workload and its block's end is a day of service that is not there; few days of death
		// matter.
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
		cfg.Days = min(cfg.Days, 28) // what matters among them is refined anyhow
	}
	x := d.relax(cfg, spans, host)
	work := 0 // of forming the dual once
	for n := range x.grid {
		work += len(x.grid[n]) * len(p.Jobs)
	}
	fresh := x.taken()
	// of very many workloads each step takes its time
	climb := max(min(cfg.Climb, 20), min(cfg.Climb, cfg.Climb*5000/len(p.Jobs)))
	b, rate, proved := x.divided(climb, cost, data)
	cert := &tco.Certificate{Cases: []tco.Case{proved}}
	if rate > 0 && len(p.Jobs) > 500 && (len(p.Classes) > 1 || work > mostWork) {
		cert.Rate = rate
		return cert
	}
	// Where drives hold few workloads prices of workloads alone may prove more, from several beginnings: the plan's
	// where drives are worn out, that of rents, and that of drives divided among many.
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
		enough = 0.002 // a tenth of what many workloads leave open anyhow, in half of the time
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
			break // each proof takes its time: the likeliest that holds is enough
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
		return &tco.Certificate{} // nothing is proved but that cost is not negative
	}
	cert.Rate = rate
	return cert
}

// divided proves a rate by drives that are divided among many workloads, also by counting whole ones; 0 if it proves
// none.
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

// refinements is how often pieces are divided.
const refinements = 3

// beginning finds prices of workloads.
type beginning struct {
	find    func()
	reaches float64
}

// start is where a climb begins: prices of workloads, and what its cells hold of what drives have.
type start struct {
	value []float64
	grid  [][]deathday
}

// taken is the relaxation's present start.
func (x *relaxation) taken() start {
	s := start{value: slices.Clone(x.value), grid: make([][]deathday, len(x.grid))}
	for i := range x.grid {
		s.grid[i] = slices.Clone(x.grid[i])
	}
	return s
}

// put makes a start the relaxation's.
func (x *relaxation) put(s start) {
	copy(x.value, s.value)
	for i := range x.grid {
		copy(x.grid[i], s.grid[i])
	}
}

// mostCells is about how many kinds of drives, by class, first day and last, many workloads are divided among.
const mostCells = 1500

// mostWork is up to how many workloads times days of death every step looks at all.
const mostWork = 1_000_000

// Optimise is tco.Optimise with its bound, if Climb is not 0.
func Optimise(cfg tco.OptimiseConfig, p *tco.Problem, start []int) (*tco.Optimum, error) {
	o, err := tco.Optimise(cfg, p, start)
	if err == nil {
		Prove(cfg, p, o)
	}
	return o, err
}

// Prove gives a plan its bound, if Climb is not 0 and anybody writes.
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

// exhaustive is the proof by all plans; a checker's sums may differ in the last digits.
func exhaustive(o *tco.Optimum) *tco.Certificate {
	return &tco.Certificate{Rate: o.CostPerGB() * (1 - 1e-9), Exhaustive: true}
}
