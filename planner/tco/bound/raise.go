package bound

import (
	"farflash/numeric/rng"
	"farflash/planner/tco"
	"math"
	"slices"
)

// relaxation maximises a dual by changing the workloads' prices.
type relaxation struct {
	*dual
	spans       [][2]float64 // ranges of days of a drive's first arrival
	grid        [][]deathday // by class and span: class*len(spans)+span
	value       []float64
	least, most int  // drives in use: of a case, or 0 and all
	whole       bool // the drives in use suffice to hold everything
	scale       []float64
	planned     []float64 // number of days for which each workload writes in the plan

	s     scratch
	share []float64 // share of each workload that the drives take
}

// deathday is a sampled day of death with its prices.
type deathday struct {
	t float64
	q tco.Piece
	g float64 // value of a drive
}

// spansOf divides the workloads' arrivals into at most the given number of groups, each with its first and last day.
func spansOf(arrive []float64, most int) [][2]float64 {
	days := slices.Clone(arrive)
	slices.Sort(days)
	days = slices.Compact(days)
	n := min(most, len(days))
	var out [][2]float64
	for i := range n {
		from, to := i*len(days)/n, (i+1)*len(days)/n-1
		out = append(out, [2]float64{days[from], days[to]})
	}
	return out
}

// deathdays returns the days of death to sample, for drives of class x whose first workload arrives within a span: with
// a horizon up to its end, otherwise as long as a drive can pay off.
func (d *dual) deathdays(x *dualClass, span [2]float64, count int) []deathday {
	all, leanest := 0.0, math.Inf(1)
	for j := range x.wear {
		all += x.wear[j]
		if x.wear[j] > 0 {
			leanest = min(leanest, x.wear[j]/d.rate[j])
		}
	}
	lo := 1.0
	if all > 0 {
		lo = x.budget / all / 2
	}
	var hi float64
	if h := d.p.Config.Horizon; h > 0 {
		hi = h + span[1] - span[0]
		lo = min(lo, hi/2)
	} else {
		// At the price r/leanest of wear no workload gains by living longer; beyond this point the budget does not pay
		// for the running cost.
		hi = 1e6 * lo
		if x.c.Drive.Run > 0 && !math.IsInf(leanest, 1) {
			hi = min(hi, max(4*lo, float64(d.r*x.budget)/leanest/x.c.Drive.Run))
		}
	}
	var days []float64
	step := rng.Log(hi/lo) / float64(count-1)
	for i := range count {
		days = append(days, span[0]+float64(lo*rng.Exp(float64(step*float64(i)))))
	}
	days[count-1] = span[0] + hi
	for _, e := range d.edges {
		if e > days[0] && (e < days[count-1] || d.p.Config.Horizon == 0) {
			days = append(days, e)
		}
	}
	slices.Sort(days)
	days = slices.Compact(days)
	out := make([]deathday, len(days))
	for i, t := range days {
		out[i].t = t
	}
	return out
}

// evaluate computes the dual's value: the prices of all workloads plus the minima over drives. If direction is set, it
// also computes the share of each workload that the drives take. Drives close to their minimum are weighted by their
// distance from it, so that equal drives do not all take the same workloads.
func (x *relaxation) evaluate(width float64, direction bool) float64 {
	for j := range x.share {
		x.share[j] = 0
	}
	sum := 0.0
	for _, u := range x.value {
		sum += u
	}
	for i := range x.classes {
		c := &x.classes[i]
		grids := x.grid[i*len(x.spans) : (i+1)*len(x.spans)]
		least := math.Inf(1)
		for k, days := range grids {
			for n := range days {
				e := &days[n]
				x.prices(c, x.value, x.spans[k][0], e.t, e.t, &e.q, &x.s)
				e.g = x.dual.least(c, x.value, x.spans[k][0], x.spans[k][1], e.t, e.t, &e.q)
				least = min(least, e.g)
			}
		}
		idle := c.c.Drive.Buy // value of a drive without workloads
		many := float64(c.c.Count)
		switch {
		case c.c.Optional && x.most > 0:
			idle, many = math.Inf(1), float64(x.least)
			if least < 0 {
				many = float64(x.most)
			}
		case c.c.Optional:
			idle = 0
		}
		sum += float64(many * min(least, idle))
		if !direction {
			continue
		}
		least = min(least, idle)
		weights := 0.0
		if idle < math.Inf(1) {
			weights += rng.Exp(-(idle - least) / width)
		}
		for _, days := range grids {
			for n := range days {
				if away := (days[n].g - least) / width; away < 12 {
					weights += rng.Exp(-away)
				}
			}
		}
		for k, days := range grids {
			for n := range days {
				if away := (days[n].g - least) / width; away < 12 {
					x.take(c, x.spans[k][0], &days[n], float64(many*rng.Exp(-away))/weights)
				}
			}
		}
	}
	return sum
}

// take adds the weighted share of each workload that a drive takes.
func (x *relaxation) take(c *dualClass, from float64, e *deathday, weight float64) {
	budget := c.budget
	x.s.items = x.s.items[:0] // workloads at the margin, of which a part is taken
	limit := 0.0
	for j, u := range x.value {
		a := x.arrive[j]
		if a < from || a >= e.t {
			continue
		}
		wear := float64(x.lived(j, e.t) * c.wear[j])
		gain := u + float64(x.lived(j, e.t)*float64(x.r*x.rate[j]))
		cost := float64(e.q.Wear*wear) + float64(e.q.Space*c.space[j])
		cost += float64(e.q.IOPS * c.io[j])
		switch {
		case gain > cost+float64(1e-9*(math.Abs(cost)+1e-12)):
			x.share[j] += weight
			budget -= wear
		case gain > cost-float64(1e-9*(math.Abs(cost)+1e-12)):
			x.s.items = append(x.s.items, item{float64(j), wear})
			limit += wear
		}
	}
	if limit > 0 && budget > 0 {
		part := min(1, budget/limit)
		for _, it := range x.s.items {
			x.share[int(it.ratio)] += float64(weight * part)
		}
	}
}

// raise ascends by Polyak's steps towards 0, which no dual exceeds at a rate that a plan reaches. It stops within
// tolerance of 0, or after the given number of steps, and leaves the best prices.
func (x *relaxation) raise(steps int, tolerance float64) {
	best := slices.Clone(x.value)
	most, stride, stale := math.Inf(-1), 1.0, 0
	drives := 0.0
	for i := range x.classes {
		drives += float64(x.classes[i].c.Count)
	}
	if x.most > 0 {
		drives = float64(x.most)
	}
	width := 1.0
	direction := make([]float64, len(x.value))
	for n := range steps {
		f := x.evaluate(width, true)
		if f > most {
			if f > most+float64(0.02*math.Abs(most)) || n == 0 {
				stale = 0
			}
			most = f
			copy(best, x.value)
		}
		if stale++; stale > 8 {
			stride, stale = stride*0.6, 0
			copy(x.value, best)
			if stride < 1e-3 {
				break
			}
			continue
		}
		if f >= -tolerance {
			break
		}
		width = max(0.3*-f/drives, 1e-9)
		norm := 0.0
		for j := range direction {
			g := 1 - x.share[j]
			direction[j] = float64(0.3*direction[j]) + float64(0.7*g)
			norm += float64(float64(x.scale[j]*direction[j]) * float64(x.scale[j]*direction[j]))
		}
		if norm == 0 {
			break
		}
		step := float64(stride*-f) / norm
		for j := range direction {
			x.value[j] += float64(step * float64(x.scale[j]*x.scale[j]) * direction[j])
		}
	}
	copy(x.value, best)
}
