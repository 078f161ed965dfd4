package drives

import (
	"farflash/numeric/units"
	"farflash/planner/tco"
	"farflash/planner/tco/catalogue"
	"farflash/policy/ftl/waf"
	"farflash/workload/runs"
)

func (p *Plan) amplification(a *Amplification, m *catalogue.Model) (tco.WAF, error) {
	switch {
	case a.Constant != 0:
		return tco.Constant(a.Constant), nil
	case a.Table != "":
		return table(p.path(a.Table), readMix)
	case a.Points != nil:
		return a.table()
	case a.Simulate != 0:
		return p.simulatedWAF(a.Simulate, m.Alpha())
	}
	if a.Trace != "" {
		r, err := runs.Open(p.path(a.Trace))
		if err != nil {
			return nil, units.Within("trace", err)
		}
		e := waf.DefaultExperiment()
		e.Alpha, e.Seed, e.Runs = m.Alpha(), p.Search.Seed, r.Runs
		if e.Blocks, e.Pages, err = r.Layout(e.Pages); err != nil {
			return nil, units.Within("trace", err)
		}
		found, err := waf.Simulate(e)
		if err != nil {
			return nil, err
		}
		return tco.Constant(max(1, found.WAF)), nil
	}
	mix := waf.SequentialMix{Random: a.Random, Sequential: a.Sequential, Turn: float64(a.Turn), Slope: a.Slope}
	if mix.Sequential == 0 {
		mix.Sequential = 1
	}
	return mix, nil
}

// table converts the points to a table of write amplification.
func (a *Amplification) table() (*tco.Table, error) {
	var points []waf.MixPoint
	for _, x := range a.Points {
		points = append(points, waf.MixPoint{S: float64(x.Sequential), WAF: x.WAF})
	}
	return tco.NewTable(points)
}
