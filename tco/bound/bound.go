// Package bound proves how far a plan of package tco can be from the best at most.
//
// Its functions are Optimise, a plan with a bound, and Of, the bound of a plan that somebody else made. They find the prices of a
// Lagrangian relaxation and write them down as a tco.Certificate, which package tco/certify checks; docs/adr/0007-planner.md has the
// proof. Where every plan was looked at there is nothing to be relaxed, and the plan is its own bound.
//
// What it leaves out: latency and failure domains, which can only make plans dearer.
package bound

import (
	"slices"

	"farflash/tco"
)

// Of proves a lower bound of the cost a gigabyte of any plan; host is a good one, from whose drives the first prices are taken.
func Of(cfg tco.OptimiseConfig, p *tco.Problem, host []int) *tco.Certificate {
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
	}
	if len(p.Jobs) > 500 {
		cfg.Days = min(cfg.Days, 14) // what matters among them is refined anyhow
	}
	cert := &tco.Certificate{Cases: cases}
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
		return &tco.Certificate{} // nothing is proved but that cost is not negative
	}
	cert.Rate = rate
	x.write(last, proof)
	return cert
}

// Optimise is tco.Optimise with its bound, if Climb is not 0.
func Optimise(cfg tco.OptimiseConfig, p *tco.Problem, start []int) (*tco.Optimum, error) {
	o, err := tco.Optimise(cfg, p, start)
	if err == nil && cfg.Climb > 0 && o.Data > 0 {
		o.Certificate = Of(cfg, p, o.Host)
		o.Bound = o.Certificate.Rate
	}
	return o, err
}
