package drives

import (
	"context"
	"fmt"
	"math"
	"strings"

	"farflash/experiment"
	"farflash/ftl/waf"
	"farflash/scenario"
	"farflash/shape"
	"farflash/tco"
	"farflash/trial"
)

// part is what is known of the drives of a group beside what package tco needs.
type part struct {
	group   int
	model   tco.Model
	members int     // drives of an array, or 1
	watts   float64 // mean of a member
	raw     float64 // GB of flash of a member
	price   float64 // of a member
	code    float64 // (k+m)/k
	copies  float64
	afr     float64
	up      bool // may be bought
}

// fleet is every drive of the plan, group after group.
type fleet struct {
	drives []tco.Drive
	parts  []part
}

// fleet makes the drives.
func (p *Plan) fleet(ctx context.Context) (*fleet, error) {
	f := &fleet{}
	named := map[string]int{}
	for i := range p.Drives {
		g := &p.Drives[i]
		d, x, err := p.drive(ctx, g, i)
		if err != nil {
			return nil, err
		}
		x.group, x.up = i, g.UpTo > 0
		base := g.Name
		if base == "" {
			base = x.model.Name
		}
		for n := range max(g.Count, g.UpTo) {
			d.Name = base
			named[base]++
			if max(g.Count, g.UpTo) > 1 || named[base] > 1 {
				d.Name = fmt.Sprintf("%s #%d", base, named[base])
			}
			d.Domain = d.Name
			if len(g.Domains) > 0 {
				d.Domain = g.Domains[n%len(g.Domains)]
			}
			f.drives, f.parts = append(f.drives, d), append(f.parts, x)
		}
	}
	return f, nil
}

// wrong is an error at a group's key, or at the group.
func (p *Plan) wrong(i int, key string, err error) error {
	at := fmt.Sprintf("drives[%d]", i)
	path := at
	if _, ok := p.set[at+"."+key]; ok {
		path = at + "." + key
	}
	return shape.Errors{{At: p.set[path], Msg: fmt.Sprintf("%s: %v", path, err)}}
}

// drive makes one drive of a group.
func (p *Plan) drive(ctx context.Context, g *Group, i int) (tco.Drive, part, error) {
	m, err := tco.FindModel(p.models, g.Model)
	if err != nil {
		return tco.Drive{}, part{}, p.wrong(i, "model", fmt.Errorf("%w (farflash list drives shows all)", err))
	}
	if g.Price != nil {
		m.Price = float64(*g.Price)
	}
	for _, x := range []struct {
		to   *float64
		from *float64
	}{{&m.ReadIOPS, g.ReadIOPS}, {&m.WriteIOPS, g.WriteIOPS}, {&m.ActiveW, g.ActiveW}, {&m.IdleW, g.IdleW}, {&m.TBW, g.TBW}} {
		if x.from != nil {
			*x.to = *x.from
		}
	}
	if g.AFR != nil {
		m.AFR = float64(*g.AFR)
	}
	if m.ActiveW == 0 {
		return tco.Drive{}, part{}, p.wrong(i, "model", fmt.Errorf("nothing is known of the power of %s; state active_w and idle_w, in W", m.Name))
	}
	c := p.costs()
	var curve tco.WAF
	if g.WAF != nil {
		if curve, err = p.amplification(g.WAF, &m); err != nil {
			return tco.Drive{}, part{}, p.wrong(i, "waf", err)
		}
	}
	if g.RatedWAF != 0 {
		m.RandomWAF = g.RatedWAF
	}
	d, err := m.Drive(m.Name, p.Mode, c, float64(g.Duty), float64(g.WriteShare))
	if err != nil {
		return tco.Drive{}, part{}, p.wrong(i, "model", err)
	}
	if curve != nil {
		d.WAF = curve
	}
	d.Worn = d.Budget * float64(g.Worn)
	x := part{model: m, members: 1, watts: tco.Power{Active: m.ActiveW, Idle: m.IdleW, Duty: float64(g.Duty)}.Mean(), raw: m.Alpha() * m.Capacity, price: m.Price, code: 1, copies: 1, afr: m.FailureRate()}
	if g.Latency != nil {
		if d.Tail, err = p.tail(ctx, g, d.IOPS); err != nil {
			return tco.Drive{}, part{}, p.wrong(i, "latency", err)
		}
	}
	if g.Array != nil {
		a := tco.Array{Kind: g.Array.Kind, Drives: g.Array.Drives, Data: g.Array.Data, Parity: g.Array.Parity}
		if d, err = a.Of(d, p.Mode); err != nil {
			return tco.Drive{}, part{}, p.wrong(i, "array", err)
		}
		k, parity := a.Shape()
		x.members = max(1, a.Drives)
		if a.Kind == tco.RAID1 || a.Kind == tco.Replication {
			x.copies = float64(k + parity)
		} else {
			x.code = float64(k+parity) / float64(k)
		}
	}
	return d, x, nil
}

// simulatedShares are the sequential shares at which the FTL simulator is asked.
var simulatedShares = []float64{0, 0.15, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1}

func (p *Plan) amplification(a *Amplification, m *tco.Model) (tco.WAF, error) {
	switch {
	case a.Constant != 0:
		return tco.Constant(a.Constant), nil
	case a.Table != "":
		return table(p.path(a.Table), readMix)
	case a.Simulate != 0:
		e := waf.DefaultExperiment()
		e.Alpha, e.Blocks, e.Seed = m.Alpha(), a.Simulate, p.Search.Seed
		points, err := tco.Simulated(e, simulatedShares)
		if err != nil {
			return nil, err
		}
		return tco.NewTable(points)
	}
	mix := waf.SequentialMix{Random: a.Random, Sequential: a.Sequential, Turn: float64(a.Turn), Slope: a.Slope}
	if mix.Sequential == 0 {
		mix.Sequential = 1
	}
	return mix, nil
}

// tailLoads are the shares of the IOPS at which a drive's latency is simulated.
var tailLoads = []float64{0.1, 0.3, 0.5, 0.7, 0.85, 0.95}

// tailRequests are how many requests each takes.
const tailRequests = 20000

// tail makes the latency under load. A simulated one is of 4 KiB at random places with the group's share of writes, arriving as a
// Poisson process.
func (p *Plan) tail(ctx context.Context, g *Group, iops float64) (tco.Tail, error) {
	var points []tco.TailPoint
	for _, x := range g.Latency.Points {
		points = append(points, tco.TailPoint{Utilisation: float64(x.Load), P99: x.P99.Microseconds()})
	}
	if preset := g.Latency.Simulate; preset != "" {
		src, err := scenario.Find(preset)
		if err != nil {
			return nil, err
		}
		s, err := scenario.Parse(src, nil)
		if err != nil {
			return nil, err
		}
		if s.SSD == nil || s.Fabric != nil {
			return nil, fmt.Errorf("%s is no scenario of a drive alone", preset)
		}
		for _, load := range tailLoads {
			v, err := p.simulatedTail(ctx, src, float64(g.WriteShare), load*iops)
			if err != nil {
				return nil, err
			}
			if len(points) > 0 {
				v = max(v, points[len(points)-1].P99) // more load does no good; what looks so is chance
			}
			points = append(points, tco.TailPoint{Utilisation: load, P99: v})
		}
	}
	t, err := tco.NewTailTable(points)
	if err != nil {
		return nil, err
	}
	return t, nil
}

func (p *Plan) simulatedTail(ctx context.Context, src shape.Source, writes, rate float64) (float64, error) {
	flow := func(share float64) string {
		return fmt.Sprintf("{size: 4KiB, interarrival: {mean: %.6gus}}", 1e6/(rate*share))
	}
	var sides []string
	if writes < 1 {
		sides = append(sides, "reads: "+flow(1-writes))
	}
	if writes > 0 {
		sides = append(sides, "writes: "+flow(writes))
	}
	load := fmt.Sprintf("[{synthetic: {%s, requests: %d}}]", strings.Join(sides, ", "), tailRequests)
	s, err := scenario.Parse(src, []shape.Change{{Path: "workload", Value: load, Flag: "latency"}})
	if err != nil {
		return 0, err
	}
	out, err := trial.Run(ctx, s, experiment.Options{Seed: p.Search.Seed})
	if err != nil {
		return 0, err
	}
	if out.Interrupted {
		return 0, context.Canceled
	}
	for _, m := range out.Result.Metrics {
		if m.Name == "all.latency.p99" && !math.IsNaN(m.Value) {
			return m.Value, nil
		}
	}
	return 0, fmt.Errorf("the simulated drive has no latency at %.0f I/Os a second", rate)
}
