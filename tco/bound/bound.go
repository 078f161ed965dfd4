// Package bound proves how far a plan of package tco can be from the best at most.
//
// Its functions are Optimise, a plan with a bound, Prove, the bound of such a plan, and Of, the bound of one that somebody else made. They find the prices of a
// Lagrangian relaxation and write them down as a tco.Certificate, which package tco/certify checks; docs/adr/0007-planner.md has the
// proof. Where every plan was looked at there is nothing to be relaxed, and the plan is its own bound.
//
// What it leaves out: latency and failure domains, which can only make plans dearer.
package bound

import (
	"cmp"
	"slices"

	"farflash/tco"
)

// Of proves a lower bound of the cost a gigabyte of any plan: the best plan's own cost where every plan can be looked at, else by prices
// that host, which is a good one, suggests.
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
	cases := []tco.Case{{Least: 0, Most: total}}
	if len(p.Classes) == 1 && p.Classes[0].Optional {
		cases = d.casesOf()
	}
	spans := cfg.Spans
	if p.Config.Horizon > 0 {
		// A day between a first workload and its block's end is a day of service that is not there; few days of death matter.
		spans, cfg.Days = 128, max(4, cfg.Days/4)
		if len(p.Jobs) > 500 {
			spans = 32
			cfg.Days = max(6, min(28, mostCells/(len(spansOf(d.arrive, spans))*len(p.Classes))))
		}
	}
	if len(p.Jobs) > 500 {
		cfg.Days = min(cfg.Days, 28) // what matters among them is refined anyhow
	}
	cert := &tco.Certificate{Cases: cases}
	last := &cases[len(cases)-1] // the others are impossible
	x := d.relax(cfg, spans, host)
	if len(cases) > 1 {
		x.least, x.most = last.Least, last.Most
	}
	work := 0 // of forming the dual once
	for n := range x.grid {
		work += len(x.grid[n]) * len(p.Jobs)
	}
	// Several beginnings: the plan's where drives are worn out, that of rents, that of drives divided among many.
	planned := slices.Clone(x.value)
	begin := []beginning{{find: func() { copy(x.value, planned) }}}
	if work < mostWork {
		begin = append(begin, beginning{find: func() { x.rents(300) }})
	}
	margin := float64(1e-9 * cost)
	b := x.newShares()
	b.raise(cfg.Climb, 0)
	for range 3 {
		b.sum(0.002, true)
		if !b.refine(0.005) {
			break
		}
		b.raise(cfg.Climb/3, 0.4)
	}
	var rate float64
	shared := slices.Clone(b.value)
	one := tco.Case{Least: 0, Most: total}
	for _, part := range []float64{0, 0.7, 0.85, 1} {
		q := b.clone()
		if part > 0 {
			if !q.count(part) {
				break
			}
			q.raise(cfg.Climb/4, 0.5)
		}
		x.r = cost / data
		if r, proof := q.settle(margin); proof != nil && r > rate {
			rate = r
			copy(shared, x.value)
			x.write(&one, proof)
		}
	}
	x.whole = false
	if rate > 0 {
		cert.Cases = []tco.Case{one}
	}
	begin = append(begin, beginning{find: func() {
		copy(x.value, shared)
		b.into()
	}})
	enough := 0.0005
	if len(p.Jobs) > 500 {
		enough = 0.002 // a tenth of what many workloads leave open anyhow, in half of the time
	}
	// Each proof takes its time: of many workloads the likeliest that holds is enough.
	fresh := x.taken()
	for i := range begin {
		x.r = cost / data
		begin[i].find()
		begin[i].reaches = x.evaluate(1, false)
	}
	slices.SortStableFunc(begin, func(a, b beginning) int { return cmp.Compare(b.reaches, a.reaches) })
	tries := slices.Clone(begin)
	if len(p.Jobs) > 500 && rate > 0 {
		tries = nil
	}
	if n := len(p.Jobs); n > 60 && n <= 500 && p.Config.Horizon > 0 {
		// What the others have left in the cells may be a worse start than none.
		for _, f := range begin {
			f.fresh = true
			tries = append(tries, f)
		}
	}
	for _, f := range tries {
		if rate > 0 && len(p.Jobs) > 60 && !f.fresh {
			continue
		}
		x.r = cost / data
		if f.fresh {
			x.put(fresh)
		}
		f.find()
		if f.lower == nil {
			x.raise(min(cfg.Climb, cfg.Climb*mostWork/max(1, work)), enough*cost)
		}
		if r, proof := x.prove(cost, data, f.lower); proof != nil && r > rate {
			rate = r
			cert.Cases = cases
			x.write(last, proof)
		}
	}
	if rate == 0 {
		return &tco.Certificate{} // nothing is proved but that cost is not negative
	}
	cert.Rate = rate
	return cert
}

// beginning finds prices of workloads; lower, unless it is nil, forms them anew for a lower rate.
type beginning struct {
	find, lower func()
	reaches     float64
	fresh       bool // from cells that no other beginning has left anything in
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
