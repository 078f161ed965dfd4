package drives

import (
	"math"

	"farflash/planner/tco"
	"farflash/planner/tco/calendar"
)

// keepBook computes the outcome of the placement over a calendar.
func (o *Outcome) keepBook(refused map[int]tco.Refusal) error {
	p, f := o.Plan, o.fleet
	drives, host := o.keep()
	b, err := o.book(drives, host)
	if err != nil {
		return err
	}
	o.Calendar, o.Cost, o.Data = b, b.Total, b.Data
	on := o.place(drives, host, refused)
	for i, k := range host {
		if k >= 0 {
			o.Placements[o.stays.of[i]].Cost += b.Workloads[i]
		}
	}
	for _, m := range b.Moves {
		o.Moves = append(o.Moves,
			Move{Day: m.Day, Workload: o.stays.jobs[m.Stay].Name, From: drives[m.From].Name, To: drives[m.To].Name,
				Copied:        m.Copied,
				NeedsNewDrive: b.Drives[m.To].First == m.Day && f.parts[o.kept[m.To]].up})
	}
	a := &tco.Assessment{Drives: make([]tco.DriveState, len(drives)), Cost: b.Total, Data: b.Data,
		EarliestDeath: math.Inf(1)}
	c := p.costs()
	months := 0.0
	for i := range drives {
		x := &f.parts[o.kept[i]]
		s := stateOf(&drives[i], &b.Drives[i], len(on[i]))
		a.Drives[i] = s
		if s.Workloads > 0 {
			a.Used++
			a.MeanLife += s.Lifetime
		}
		n := float64(x.members)
		row := DriveRow{Name: drives[i].Name, Model: x.model.Name, Domain: x.domain, Workloads: on[i], State: s,
			Replaced: b.Drives[i].Replaced, EndsBy: "unused"}
		if s.Workloads > 0 {
			row.EndsBy = "its last workload's end"
			if s.Death >= float64(p.Horizon)*(1-1e-12) {
				row.EndsBy = "horizon"
			}
		}
		row.Failures = c.Expect(x.members, x.afr, s.Lifetime, x.price, s.Space*x.code*x.copies/n,
			float64(p.Costs.Rebuild)/1e6)
		row.Failures.Spares = max(0, b.Drives[i].Money[calendar.Failures]-row.Failures.Labour)
		watts := x.model.IdleW
		if s.Lifetime > 0 {
			watts += float64((x.model.ActiveW - x.model.IdleW) * b.Drives[i].Busy / s.Lifetime)
		}
		row.Carbon = c.CarbonOf(x.raw*n*float64(1+len(row.Replaced)), watts*n, s.Lifetime)
		months += o.row(row, x)
	}
	if a.Used > 0 {
		a.MeanLife /= float64(a.Used)
	}
	for _, x := range o.Placements {
		if a.Placed++; x.Drive == "" {
			a.Placed--
			a.Refused++
		}
	}
	a.Spread()
	o.Assessment = a
	for _, item := range calendar.Items() {
		o.Slices = append(o.Slices, Slice{item.String(), b.Present[item]})
	}
	if months > 0 {
		o.PerMonth = o.Cost / months
	}
	return nil
}

// book prices a placement on a subset of the fleet's drives, which o.kept lists.
func (o *Outcome) book(drives []tco.Drive, host []int) (*calendar.Book, error) {
	c, err := calendar.New(o.Plan.calendar())
	if err != nil {
		return nil, err
	}
	there := make([]bool, len(drives))
	for i := range drives {
		there[i] = !o.fleet.parts[o.kept[i]].up
	}
	return c.Keep(drives, there, o.stays.jobs, host)
}

// stateOf converts an account to a drive's state: shares are the maximum over its days, rate and mix the means of its
// service.
func stateOf(d *tco.Drive, a *calendar.Account, workloads int) tco.DriveState {
	s := tco.DriveState{Workloads: workloads, First: a.First, Death: a.Last, Lifetime: a.Last - a.First,
		Cost: a.Total(), Data: a.Data, WearAtDeath: a.Wear, Worn: float64(a.Wear * d.Budget),
		Space: a.MostSpace, SpaceShare: a.MostSpace / d.Capacity, Load: a.MostIOs, IOPSShare: a.MostLoad / d.IOPS,
		Limited: len(a.Replaced) > 0}
	if s.Lifetime > 0 {
		s.WriteRate = a.Data / s.Lifetime
	}
	if s.WAF = d.WAF.At(0); a.Hosted > 0 {
		s.Sequential, s.WAF = min(1, a.Mixed/a.Hosted), a.NAND/a.Hosted
	}
	return s
}
