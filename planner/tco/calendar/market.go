package calendar

import (
	"cmp"
	"math"
	"slices"

	"farflash/numeric/rng"
	"farflash/planner/tco"
)

// market searches for rents with a high value. A drive's cost is divided among its unit resources: its space on the
// day, its IOPS, its other limits, and its write budget. A workload pays for its shares of these on the class where
// that is cheapest. The value is concave in the parts, which exponentiated gradients raise: a part grows if workloads
// demand more of it than of the others. So that the prices of classes converge, workloads are divided among classes of
// nearly equal cost, with a width that shrinks.
type market struct {
	classes []floored
	jobs    int
	now     []rents
	best    []rents
	kept    [][]rents // the most recent best rents
	shares  []float64 // a workload's shares by class
	out     []float64
}

// rents is the division of a class's cost.
type rents struct {
	part   []float64 // parts of a drive's one-off cost: of limits, then of wears; they add up to 1
	pull   []float64 // excess demand for each, smoothed
	run    float64   // share of the running cost paid by space; IOPS pay the rest
	scarce float64   // premium on a drive for being scarce
	asked  []float64 // the workloads' demand for each, in drives
	whole  []float64 // the demand of all workloads together for each, in drives
	runs   [2]float64
	taken  float64 // drives in demand
}

// mostSteps and mostLooks bound the work: the number of steps, and the total number of workloads times classes.
const (
	mostSteps = 600
	mostLooks = 12_000_000
)

// mostKept is the number of earlier best rents that are kept.
const mostKept = 4

func newMarket(classes []floored, jobs int) *market {
	m := &market{classes: classes, jobs: jobs, shares: make([]float64, len(classes)), out: make([]float64, jobs)}
	for i := range classes {
		x := &classes[i]
		n := len(x.limits) + len(x.wears)
		r := rents{part: make([]float64, n), pull: make([]float64, n), asked: make([]float64, n), run: 0.5}
		for v := range r.part {
			r.part[v] = 1 / float64(n)
		}
		for _, list := range x.limits {
			r.whole = append(r.whole, sum(list))
		}
		for _, list := range x.wears {
			r.whole = append(r.whole, sum(list)/x.left)
		}
		m.now = append(m.now, r)
	}
	m.clip()
	m.keep()
	return m
}

// clip limits the parts of wear to the amount that can be charged to it.
func (m *market) clip() {
	for i := range m.classes {
		x, r := &m.classes[i], &m.now[i]
		wear, all := 0.0, 0.0
		for v, part := range r.part {
			if all += part; v >= len(x.limits) {
				wear += part
			}
		}
		for v := range r.part {
			r.part[v] /= all
		}
		wear /= all
		money := x.mass + r.scarce
		most := x.successor * x.left
		if x.c.Optional {
			most = min(most, x.most+r.scarce)
		}
		if !(money > 0) || float64(wear*money) <= most {
			continue
		}
		to := most / money
		for v := range r.part {
			if v >= len(x.limits) {
				r.part[v] *= to / wear
			} else {
				r.part[v] *= (1 - to) / (1 - wear + 1e-300)
			}
		}
	}
}

// keep saves the present rents as the best.
func (m *market) keep() {
	m.best = make([]rents, len(m.now))
	for i := range m.now {
		m.best[i] = m.now[i]
		m.best[i].part = slices.Clone(m.now[i].part)
	}
}

// charge is the payment of a workload on a class.
func (x *floored) charge(r *rents, j int) float64 {
	money := x.mass + r.scarce
	u := float64(r.run*x.runSpace[j]) + float64((1-r.run)*x.runIO[j]) + x.load[j]
	sum := 0.0
	for v := range x.limits {
		sum += float64(r.part[v] * x.limits[v][j])
	}
	worn := 0.0
	for v := range x.wears {
		worn += float64(r.part[len(x.limits)+v] * x.wears[v][j])
	}
	return u + float64(money*(sum+worn/x.left))
}

// value is the value of the best rents; it stores each workload's value in out.
func (m *market) value(out []float64) float64 { return m.sum(m.best, out, 0) }

// sum computes the workloads' values at the given rents, and returns their sum minus the premium of scarce drives. With
// a width it also computes the demand: classes that cost a workload up to about that share of its price more than the
// minimum get a part of it.
func (m *market) sum(at []rents, out []float64, width float64) float64 {
	all := 0.0
	for i := range m.now {
		r := &m.now[i]
		clear(r.asked)
		r.runs, r.taken = [2]float64{}, 0
	}
	for j := range out {
		least := math.Inf(1)
		for i := range m.classes {
			x := &m.classes[i]
			if m.shares[i] = math.Inf(1); x.c.Count > 0 && !x.never[j] {
				m.shares[i] = x.charge(&at[i], j)
				least = min(least, m.shares[i])
			}
		}
		if math.IsInf(least, 1) { // no class can take it: the bound is vacuous
			least = 0
		}
		out[j] = least
		all += least
		if width > 0 {
			m.ask(j, least, float64(width*math.Abs(least))+1e-300)
		}
	}
	for i := range m.classes {
		all -= float64(float64(m.classes[i].c.Count) * at[i].scarce)
	}
	return all
}

// ask adds up a workload's demand.
func (m *market) ask(j int, least, width float64) {
	total := 0.0
	for i := range m.shares {
		away := (m.shares[i] - least) / width
		if m.shares[i] = 0; away < 12 {
			m.shares[i] = rng.Exp(-away)
			total += m.shares[i]
		}
	}
	for i, q := range m.shares {
		if q == 0 {
			continue
		}
		q /= total
		x, r := &m.classes[i], &m.now[i]
		for v := range x.limits {
			r.asked[v] += float64(q * x.limits[v][j])
		}
		for v := range x.wears {
			r.asked[len(x.limits)+v] += float64(q*x.wears[v][j]) / x.left
		}
		r.runs[0] += float64(q * x.runSpace[j])
		r.runs[1] += float64(q * x.runIO[j])
	}
}

// raise ascends towards rents with the highest value.
func (m *market) raise() {
	dearest := 0.0
	for i := range m.classes {
		x := &m.classes[i]
		dearest = max(dearest, x.mass+x.stays+x.successor)
	}
	steps := max(40, min(mostSteps, mostLooks/max(1, m.jobs*len(m.classes))))
	most := math.Inf(-1)
	for n := range steps {
		done := float64(n) / float64(steps)
		width := 0.1 * rng.Exp(-6*done)
		f := m.sum(m.now, m.out, width)
		if f > most {
			most = f
			m.keep()
			m.kept = append(m.kept, m.best)
			if len(m.kept) > mostKept {
				m.kept = m.kept[1:]
			}
		}
		step := 0.7 * rng.Exp(-4.5*done)
		for i := range m.classes {
			m.now[i].step(&m.classes[i], step, dearest)
		}
		m.clip()
	}
}

// step updates a class's rents by the demand.
func (r *rents) step(x *floored, step, dearest float64) {
	most, mean := 1e-300, 0.0
	for v, a := range r.asked {
		most = max(most, a)
		mean += float64(r.part[v] * a)
	}
	r.taken = mean
	mean = 0
	for v := range r.pull {
		r.pull[v] = float64(0.6*r.pull[v]) + float64(0.4*r.asked[v]/most)
		mean += float64(r.part[v] * r.pull[v])
	}
	for v := range r.part {
		r.part[v] = max(1e-7, float64(r.part[v]*rng.Exp(float64(step*(r.pull[v]-mean)))))
	}
	if all := r.runs[0] + r.runs[1]; all > 0 {
		up := rng.Exp(float64(step * (r.runs[0] - r.runs[1]) / max(r.runs[0], r.runs[1])))
		r.run = float64(r.run*up) / (float64(r.run*up) + 1 - r.run)
		r.run = min(1-1e-7, max(1e-7, r.run))
	}
	// The premium for scarcity grows with excess demand and falls with excess supply, on one scale. If the demand
	// alternates between all drives of a class and none, the mean converges.
	count, asked := float64(x.c.Count), 1.0
	for v, all := range r.whole {
		asked = max(asked, float64(r.part[v]*all))
	}
	over := (r.taken - count) / max(asked, count)
	r.scarce = max(0, r.scarce+float64(float64(0.3*step*over)*dearest))
}

// limit lists the unit resources of a drive on the day: space and IOPS; weights that count only large items, few of
// which fit together (dual feasible functions: a set that fits by shares also fits by these); the IOPS that a p99
// leaves; and one workload of each group that is kept apart.
func (x *floored) limit(c *Calendar, p *tco.Problem, day float64) {
	d := &x.c.Drive
	add := func(weight func(j int) float64) {
		list, some := make([]float64, len(p.Jobs)), false
		for j := range list {
			list[j] = weight(j)
			some = some || list[j] > 0
		}
		if some {
			x.limits = append(x.limits, list)
		}
	}
	for _, shares := range [][]float64{x.space, x.io} {
		x.limits = append(x.limits, shares)
		largest := slices.Max(shares)
		for k := 1.0; k <= 4 && largest*(k+1) > 1; k++ {
			add(func(j int) float64 {
				v := float64(shares[j] * (k + 1))
				whole := math.Floor(v)
				if v-whole < 1e-6 { // a share of just whole/(k+1), of which k+1 may fit
					return whole / (k + 1)
				}
				return whole / k
			})
		}
	}
	tail, _ := d.Tail.(tco.TailTable)
	var leaves []float64 // share of the IOPS at which a drive is as slow as a workload allows
	if tail != nil {
		leaves = make([]float64, len(p.Jobs))
	}
	for j := range p.Jobs {
		w := &p.Jobs[j]
		if tail != nil && w.P99 > 0 {
			leaves[j] = loadOf(tail, w.P99)
		}
		here := c.factor(w, day)
		x.never[j] = x.space[j] > 1+1e-6 || x.io[j] > 1+1e-6 ||
			tail != nil && w.P99 > 0 && here > 0 && float64(d.Load(w)*here)/d.IOPS > float64(leaves[j]*(1+1e-6))+1e-9
	}
	if tail != nil {
		var some []float64
		for j, v := range leaves {
			if p.Jobs[j].P99 > 0 && v > 0 {
				some = append(some, v)
			}
		}
		slices.Sort(some)
		for n := range min(5, len(some)) {
			at := some[(len(some)-1)*n/max(1, min(5, len(some))-1)]
			add(func(j int) float64 {
				w := &p.Jobs[j]
				if w.P99 == 0 || leaves[j] > at {
					return 0
				}
				return float64(d.Load(w)*c.factor(w, day)) / (float64(d.IOPS*at) * (1 + 1e-6))
			})
		}
	}
	for _, g := range c.largestGroups(p, day) {
		add(func(j int) float64 {
			if w := &p.Jobs[j]; w.Apart == g && c.factor(w, day) > 0 {
				return 1
			}
			return 0
		})
	}
}

// loadOf is the largest share of the IOPS at which the p99 does not exceed a limit.
func loadOf(tail tco.TailTable, p99 float64) float64 {
	lo, hi := 0.0, 1.0
	if tail.At(0) > p99 {
		return 0
	}
	if tail.At(1) <= p99 {
		return 1
	}
	for range 50 {
		if mid := (lo + hi) / 2; tail.At(mid) <= p99 {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// largestGroups returns the groups to be kept apart with the most workloads on the day, up to four.
func (c *Calendar) largestGroups(p *tco.Problem, day float64) []string {
	count := map[string]int{}
	var names []string
	for j := range p.Jobs {
		if w := &p.Jobs[j]; w.Apart != "" && c.factor(w, day) > 0 {
			if count[w.Apart]++; count[w.Apart] == 2 {
				names = append(names, w.Apart)
			}
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b)) })
	return names[:min(4, len(names))]
}
