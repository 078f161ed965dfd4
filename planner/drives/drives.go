package drives

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"farflash/planner/tco"
	"farflash/planner/tco/catalogue"
	"farflash/scenario/shape"
)

// part holds the properties of a drive that package tco does not need.
type part struct {
	group   int
	model   catalogue.Model
	members int     // drives of an array, or 1
	watts   float64 // mean power of a member
	raw     float64 // GB of flash of a member
	price   float64 // of a replacement member
	paid    float64 // per member: 0 if it is owned
	setup   float64 // likewise
	code    float64 // (k+m)/k
	copies  float64
	afr     float64
	up      bool   // may be bought
	domain  string // full name of the domain
}

// fleet is all drives of the plan, group by group.
type fleet struct {
	drives []tco.Drive
	parts  []part
}

// failed returns the first error of a simulated drive, or nil.
func (f *fleet) failed(p *Plan) error {
	for k := range f.drives {
		if t, ok := f.drives[k].Tail.(*simulatedTail); ok && t.err != nil {
			return p.wrong(f.parts[k].group, "latency", t.err)
		}
	}
	return nil
}

// rates returns the I/Os per second of a group's drive as a function of the share of writes.
func (p *Plan) rates(g *Group, m *catalogue.Model) func(writes float64) float64 {
	if p.Mode == tco.Paper {
		return func(float64) float64 { return m.IOPS(float64(g.WriteShare)) }
	}
	return m.IOPS
}

// fleet builds the drives.
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
			d.Domain, x.domain = d.Name, d.Name
			if len(g.Domains) > 0 {
				x.domain = g.Domains[n%len(g.Domains)]
				d.Domain = p.ApartBy.of(x.domain)
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

// known returns a group's model with the figures stated in the plan in place of the catalogue's, and with estimates for
// the figures named in the plan.
func (p *Plan) known(g *Group, i int) (catalogue.Model, []catalogue.Estimate, error) {
	m, err := catalogue.Find(p.models, g.Model)
	if err != nil {
		return m, nil, p.wrong(i, "model", fmt.Errorf("%w (farflash list drives lists all)", err))
	}
	if g.Price != nil {
		m.Price, m.Free = float64(*g.Price), *g.Price == 0
	}
	for _, x := range []struct {
		to   *float64
		from *float64
	}{{&m.ReadIOPS, g.ReadIOPS}, {&m.WriteIOPS, g.WriteIOPS}, {&m.ActiveW, g.ActiveW}, {&m.IdleW, g.IdleW},
		{&m.TBW, g.TBW}} {
		if x.from != nil {
			*x.to = *x.from
		}
	}
	var estimates []catalogue.Estimate
	wanted := slices.Clone(g.Estimate)
	slices.Sort(wanted)
	var needless []string
	for _, f := range slices.Compact(wanted) {
		e, err := m.Estimate(f, catalogue.Models())
		if err != nil {
			needless = append(needless, fmt.Sprintf("%v: %v", f, err))
			continue
		}
		m.Take(e)
		estimates = append(estimates, e)
	}
	if len(needless) > 0 {
		return m, nil, p.wrong(i, "estimate", errors.New(strings.Join(needless, "; ")))
	}
	unknown := slices.DeleteFunc(m.Unknown(), func(f catalogue.Figure) bool { // a power of 0 can be stated
		return f == catalogue.ActiveFigure && g.ActiveW != nil || f == catalogue.IdleFigure && g.IdleW != nil
	})
	if len(unknown) > 0 {
		var names []string
		for _, f := range unknown {
			names = append(names, f.String())
		}
		last := len(names) - 1
		text := names[last]
		if last > 0 {
			text = strings.Join(names[:last], ", ") + " and " + text
		}
		return m, nil, p.wrong(i, "model",
			fmt.Errorf("the catalogue has no %s of %s; state it next to model (%s: ...), or take the median of the "+
				"catalogue's other drives (estimate: [%s])",
				text, m.Name, names[0], strings.Join(names, ", ")))
	}
	return m, estimates, nil
}

// drive builds one drive of a group.
func (p *Plan) drive(ctx context.Context, g *Group, i int) (tco.Drive, part, error) {
	m, _, err := p.known(g, i)
	if err != nil {
		return tco.Drive{}, part{}, err
	}
	if m.Disk && (g.WAF != nil || g.RatedWAF != 0) {
		return tco.Drive{}, part{},
			p.wrong(i, "waf", fmt.Errorf("%s is a hard disk and has no write amplification; leave out waf and rated_waf", m.Name))
	}
	c := p.costs()
	if m.Disk && g.Spare > 0 {
		return tco.Drive{}, part{},
			p.wrong(i, "spare", fmt.Errorf("%s is a hard disk and collects no garbage; leave out spare", m.Name))
	}
	spared := m.Spared(float64(g.Spare))
	curve := tco.WAF(spared.Amplification()) // that of the rating, which follows, concerns the budget only
	if g.WAF != nil {
		if curve, err = p.amplification(g.WAF, &spared); err != nil {
			return tco.Drive{}, part{}, p.wrong(i, "waf", err)
		}
	}
	if g.RatedWAF != 0 {
		m.RandomWAF = g.RatedWAF
	}
	d, err := m.Drive(m.Name, p.Mode, c, g.duty(), float64(g.WriteShare))
	if err != nil {
		return tco.Drive{}, part{}, p.wrong(i, "model", err)
	}
	d.WAF = curve
	d.Worn = d.Budget * float64(g.Worn)
	d.Capacity *= 1 - float64(g.Spare)
	x := part{paid: m.Price, setup: c.Setup, model: m, members: 1,
		watts: tco.Power{Active: m.ActiveW, Idle: m.IdleW, Duty: g.duty()}.Mean(), raw: m.Alpha() * m.Capacity,
		price: m.Price, code: 1, copies: 1, afr: m.FailureRate()}
	if g.AFR != nil {
		x.afr = float64(*g.AFR) // 0 is valid: none fails
	}
	if g.Owned {
		d.Buy, x.paid, x.setup = 0, 0, 0
	}
	if m.Disk {
		x.raw = 0 // Embodied applies to flash only
	}
	d.Upkeep = tco.Upkeep{Members: 1, AFR: x.afr, Setup: x.setup, Next: x.price, Idle: c.PowerCost(m.IdleW),
		Active: c.PowerCost(m.ActiveW), Duty: g.duty(), ByLoad: g.Duty == nil,
		Labour: c.Labour, Place: float64(p.Costs.Space) / tco.Month}
	if g.Latency != nil {
		if d.Tail, err = p.tail(ctx, g, p.rates(g, &m)); err != nil {
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
		n, u := float64(x.members), &d.Upkeep
		u.Members, u.Setup, u.Idle, u.Active, u.Labour, u.Place = x.members, float64(u.Setup*n), float64(u.Idle*n),
			float64(u.Active*n), float64(u.Labour*n), float64(u.Place*n)
		if a.Kind == tco.RAID1 || a.Kind == tco.Replication {
			x.copies = float64(k + parity)
		} else {
			x.code = float64(k+parity) / float64(k)
		}
	}
	return d, x, nil
}
