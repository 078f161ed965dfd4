package calendar

import (
	"math"
	"slices"

	"farflash/numeric/rng"
	"farflash/planner/tco"
	"farflash/planner/tco/bound"
)

// Floor is a lower bound on the cost of any placement of a problem.
//
// Least is Base, the cost of owned drives regardless of their workloads, plus the Value of all workloads, minus Scarce
// for each drive of a class. That is a bound because no drive of a class, with any workloads, costs less than their
// Value minus its Scarce (plus its part of Base, if it is owned). Values are rents: for each workload, on the class
// where it pays least, its share of a drive's space and IOPS on the day of the largest demand (a drive in use then has
// been bought), its running cost while the workload is present, and its wear. If whole drives cost more than their
// parts, Least counts them: the drives of each class that cover the demand on that day cost no less.
type Floor struct {
	Least  float64
	Base   float64
	Value  []float64 // by workload
	Scarce []float64 // by class
}

// floored is a class with the quantities of its floor.
type floored struct {
	c         *tco.Class
	mass      float64 // least cost of a drive in use on the day, once
	successor float64 // money, a lower bound
	left      float64 // initially unused share of the write budget
	most      float64 // upper limit on the money of a drive that can be charged to wear
	// least cost of a drive, whatever its workloads; if all workloads are present on the day, including its running
	// cost from then on
	once  float64
	after bool    // that is so, and only running costs before the day remain
	stays float64 // running cost of a drive from the day to the plan's end, if no workload leaves before
	// limits are resources of which a drive has 1 on the day, by workload: its space, its IOPS, and constraints derived
	// from these; wears are GB of wear over the budget, by lines below the write amplification.
	limits, wears [][]float64
	// By workload: shares of space and IOPS on the day; running cost by either; cost of power by load; running costs
	// before the day; and whether no drive of the class can take it.
	space, io, runSpace, runIO, load, restSpace, restIO []float64
	never                                               []bool
}

// Floor returns a bound of a problem that the calendar prices. It ignores latency and failure domains.
func (c *Calendar) Floor(p *tco.Problem) *Floor {
	day, stay := c.busiest(p)
	classes := make([]floored, len(p.Classes))
	f := &Floor{Value: make([]float64, len(p.Jobs)), Scarce: make([]float64, len(p.Classes))}
	for i := range p.Classes {
		classes[i] = c.floored(p, &p.Classes[i], day, stay)
		if x := &p.Classes[i]; !x.Optional {
			f.Base += float64(float64(x.Count) * c.unused(p, &x.Drive))
		}
	}
	m := newMarket(classes, len(p.Jobs))
	m.raise()
	f.Least = f.Base + m.value(f.Value)
	for i := range classes {
		f.Scarce[i] = m.best[i].scarce
	}
	if b := byColumns(classes, len(p.Jobs)); f.Base+b.Least > f.Least {
		f.Least, f.Value, f.Scarce = f.Base+b.Least, b.Value, b.Scarce
	}
	lots := byLots(classes, len(p.Jobs), m)
	if parts, of := c.divided(p, classes); len(parts) > len(classes) {
		m := newMarket(parts, len(p.Jobs))
		m.raise()
		value := make([]float64, len(p.Jobs))
		if least := f.Base + m.value(value); least > f.Least {
			f.Least, f.Value = least, value
			clear(f.Scarce)
			for i, k := range of {
				f.Scarce[k] = max(f.Scarce[k], m.best[i].scarce)
			}
		}
		lots = max(lots, byLots(parts, len(p.Jobs), m))
	}
	f.Least = max(f.Least, f.Base+lots)
	if whole := wholes(classes); whole > 0 {
		f.Least = max(f.Least, f.Base+whole+restOf(classes, len(p.Jobs)))
	}
	return f
}

// restOf is the running cost before the day and the power by load, by the best of eleven divisions between space and
// IOPS.
func restOf(classes []floored, jobs int) float64 {
	most := 0.0
	for n := range 11 {
		share, sum := float64(n)/10, 0.0
		for j := range jobs {
			low := math.Inf(1)
			for i := range classes {
				x := &classes[i]
				low = min(low, float64(share*x.restSpace[j])+float64((1-share)*x.restIO[j])+x.load[j])
			}
			sum += low
		}
		most = max(most, sum)
	}
	return most
}

// unused is the least cost of an owned drive, whatever its workloads: it may be sold on the day on which the first
// workload leaves.
func (c *Calendar) unused(p *tco.Problem, d *tco.Drive) float64 {
	cost, _ := c.Price(d, true, nil, nil)
	for j := range p.Jobs {
		end := c.end(&p.Jobs[j])
		left := max(0, min(1-end/c.cfg.Over, 1-d.Worn/d.Budget))
		cost = min(cost, d.Buy-float64(float64((d.Buy-d.Upkeep.Setup)*c.cfg.Residual)*left))
	}
	return cost
}

// busiest returns the day of the largest demand, and whether every workload stays until the plan's end.
func (c *Calendar) busiest(p *tco.Problem) (day float64, stay bool) {
	stay = true
	days := []float64{c.cfg.Horizon}
	for j := range p.Jobs {
		stay = stay && c.end(&p.Jobs[j]) == c.cfg.Horizon
		days = append(days, p.Jobs[j].Arrival)
	}
	slices.Sort(days)
	days = slices.Compact(days)
	const looks = 64
	most := -1.0
	for n := range min(looks, len(days)) {
		at := days[len(days)-1-n*len(days)/min(looks, len(days))]
		asked := 0.0
		for j := range p.Jobs {
			w := &p.Jobs[j]
			least := math.Inf(1)
			for i := range p.Classes {
				if d := &p.Classes[i].Drive; p.Classes[i].Count > 0 {
					least = min(least, max(w.WorkingSet/d.Capacity, d.Load(w)/d.IOPS)*(d.Buy+1e-9))
				}
			}
			asked += float64(least * c.factor(w, at))
		}
		if asked > most {
			most, day = asked, at
		}
	}
	return day, stay
}

// factor is a workload's growth by a given day; 0: it is absent. The plan's last day is included.
func (c *Calendar) factor(w *tco.Workload, day float64) float64 {
	if end := c.end(w); day < w.Arrival || day > end || day == end && end < c.cfg.Horizon {
		return 0
	}
	return rng.Exp(growth(w) * (day - w.Arrival))
}

func (c *Calendar) floored(p *tco.Problem, class *tco.Class, day float64, stay bool) floored {
	d := &class.Drive
	u, n := &d.Upkeep, len(p.Jobs)
	x := floored{c: class, successor: math.Inf(1), left: 1 - d.Worn/d.Budget, never: make([]bool, n)}
	for _, list := range []*[]float64{&x.space, &x.io, &x.runSpace, &x.runIO, &x.load, &x.restSpace, &x.restIO} {
		*list = make([]float64, n)
	}
	members := float64(max(1, u.Members))
	for _, t := range []float64{0, c.cfg.Horizon} { // prices are monotonic, so the ends suffice
		price := float64(float64(u.Next*power(c.fadeAndDearer, t)) * (1 - c.cfg.Residual))
		x.successor = min(x.successor, float64(members*(price+float64(c.cfg.Replacing*power(c.fade, t)))))
	}
	least := math.Inf(1) // minimum over purchases on any day
	if x.mass = math.Inf(1); !class.Optional {
		x.mass, least = 0, 0
	} else {
		first := math.Inf(1) // earliest end of a workload present on the day
		for j := range p.Jobs {
			if end := c.end(&p.Jobs[j]); end >= day {
				first = min(first, end)
			}
		}
		for j := range p.Jobs {
			t := p.Jobs[j].Arrival
			price := float64((d.Buy - u.Setup) * power(c.dearer, t))
			least = min(least, float64(u.Setup*power(c.fade, t))+
				float64(float64(price*(1-c.cfg.Residual))*power(c.fade, t)))
			if t <= day {
				left := max(0, 1-(max(first, t)-t)/c.cfg.Over)
				x.mass = min(x.mass,
					float64((u.Setup+price)*power(c.fade, t))-
						float64(float64(float64(price*c.cfg.Residual)*left)*power(c.fade, max(first, t))))
			}
		}
	}
	// An optional drive that is not in use on the day costs at least least; for an owned one there is no such bound.
	if x.most = float64(x.successor * x.left); class.Optional {
		x.most = max(0, min(x.most, least, x.mass))
	}
	fail := float64(members*u.AFR) / tco.Year
	fixed, trended := u.Idle+u.Labour+u.Place+float64(fail*c.cfg.Replacing), 0.0
	if !u.ByLoad {
		fixed += float64((u.Active - u.Idle) * u.Duty)
	}
	if c.cfg.Warranty == 0 {
		trended = float64(fail * u.Next)
	}
	if stay {
		x.stays = float64(fixed*integral(c.fade, day, c.cfg.Horizon)) +
			float64(trended*integral(c.fadeAndDearer, day, c.cfg.Horizon))
	}
	spaceMost, ioMost := float64(d.Capacity*c.cfg.FillSpace)*(1+2*slack), float64(d.IOPS*c.cfg.FillIOPS)*(1+2*slack)
	for j := range p.Jobs {
		c.floorJob(&x, &p.Jobs[j], j, day, stay, fixed, trended, spaceMost, ioMost)
	}
	for _, line := range bound.Minorants(d.WAF) {
		wears := make([]float64, n)
		for j := range p.Jobs {
			w := &p.Jobs[j]
			wears[j] = c.wear(d, w) * bound.AtKnots(line, w.Sequential)
		}
		x.wears = append(x.wears, wears)
	}
	if x.after = stay; stay {
		for j := range p.Jobs {
			x.after = x.after && p.Jobs[j].Arrival <= day
		}
	}
	switch {
	case !class.Optional:
	case x.after:
		x.once = x.mass
	default:
		x.once = min(x.mass, least)
	}
	if x.after {
		x.once += x.stays
	}
	x.limit(c, p, day)
	return x
}

// floorJob sets the quantities of one workload on a class.
func (c *Calendar) floorJob(x *floored, w *tco.Workload, j int, day float64, stay bool, fixed, trended, spaceMost,
	ioMost float64) {
	d := &x.c.Drive
	u, k := &d.Upkeep, growth(w)
	from, to := w.Arrival, c.end(w)
	over := func(a, b float64) (run, days float64) {
		// growth times running cost, and growth times discounted days
		if !(b > a) {
			return 0, 0
		}
		scale := power(k, -from)
		days = float64(scale * integral(k+c.fade, a, b))
		return float64(fixed*days) + float64(float64(trended*scale)*integral(k+c.fadeAndDearer, a, b)), days
	}
	run, days := over(from, to)
	space, load, here := w.WorkingSet/spaceMost, d.Load(w), c.factor(w, day)
	io := load / ioMost
	x.space[j], x.io[j] = float64(space*here), float64(io*here)
	x.runSpace[j], x.runIO[j] = float64(space*run), float64(io*run)
	if u.ByLoad && u.Active > u.Idle {
		x.load[j] = float64(float64((u.Active-u.Idle)*u.Duty)*load) / d.IOPS * days
	}
	rest := run
	if stay {
		rest, _ = over(from, min(to, max(from, day)))
	}
	x.restSpace[j], x.restIO[j] = float64(space*rest), float64(io*rest)
}

// wholes is the least cost of whole drives that cover the demand on the day: 0 if there are too many combinations.
func wholes(classes []floored) float64 {
	var kinds []tco.Whole
	space, io := 0.0, 0.0 // in GB and IOPS of the first class
	first := &classes[0]
	for j := range first.space {
		leastSpace, leastIO := math.Inf(1), math.Inf(1)
		for i := range classes {
			x := &classes[i]
			leastSpace = min(leastSpace, float64(x.space[j]*x.c.Drive.Capacity))
			leastIO = min(leastIO, float64(x.io[j]*x.c.Drive.IOPS))
		}
		space, io = space+leastSpace, io+leastIO
	}
	for i := range classes {
		x := &classes[i]
		if x.c.Count > 0 && !math.IsInf(x.mass, 1) {
			kinds = append(kinds,
				tco.Whole{Cost: x.mass + x.stays, Space: x.c.Drive.Capacity * (1 + slack),
					IO: x.c.Drive.IOPS * (1 + slack), Count: float64(x.c.Count)})
		}
	}
	return tco.Cover(kinds, space, io)
}

// wear is the part of a drive's budget that a workload writes, before amplification.
func (c *Calendar) wear(d *tco.Drive, w *tco.Workload) float64 {
	return float64(c.Written(w)*d.Stripe.Bytes(w.FullStripe)) * ownWear(w) / d.Budget
}

// ownWear is the workload's own factor of wear.
func ownWear(w *tco.Workload) float64 {
	if w.Wears == 0 {
		return 1
	}
	return w.Wears
}
