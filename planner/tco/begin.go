package tco

import (
	"cmp"
	"math"
	"slices"
)

// filling builds initial plans: it takes workloads in a given order and fills one drive at a time, of the kind that
// uses them best.
type filling struct {
	*arranged
	weight []float64 // by workload: a lower bound on the cost of its share of a drive
	most   []float64 // by workload: the growth of its space and I/Os at their largest, relative to their initial values
	space  [][]float64
	load   [][]float64
	list   []int32
	best   []int32
	// lasting limits a drive's workloads to what its write budget sustains until the horizon.
	lasting bool
}

// lookahead is the number of consecutive workloads that must fail to fit before a drive is closed: all of them in
// problems of about a thousand workloads; fewer in larger problems, to bound the time.
func (f *filling) lookahead() int { return max(48, 3_000_000/len(f.jobs)) }

func (a *arranged) filling() *filling {
	f := &filling{arranged: a, weight: make([]float64, len(a.jobs)), most: make([]float64, len(a.jobs)),
		space: make([][]float64, len(a.kinds)), load: make([][]float64, len(a.kinds))}
	for j := range f.weight {
		f.weight[j], f.most[j] = math.Inf(1), a.p.most(&a.jobs[j])
	}
	for k := range a.kinds {
		d := &a.kinds[k].drive
		f.load[k] = make([]float64, len(a.jobs))
		price := d.Buy
		days := a.p.Config.Horizon
		if days > 0 {
			price += float64(d.Run * days)
		}
		for j := range a.jobs {
			w := &a.jobs[j]
			f.load[k][j] = d.Load(w)
			share := max(w.WorkingSet/a.pool.spaceMost[k], f.load[k][j]/a.pool.ioMost[k])
			if days > 0 {
				served := days
				if w.End > 0 {
					served = min(days, w.End-w.Arrival)
				}
				share = max(share, float64(d.Wearing(w)*float64(d.WAF.At(w.Sequential)*served))/(d.Budget-d.Worn))
			}
			f.weight[j] = min(f.weight[j], float64(share*price))
		}
	}
	total := 0.0
	for _, w := range f.weight {
		total += w
	}
	for j := range f.weight {
		f.weight[j] = max(f.weight[j], float64(1e-6*total)/float64(len(f.weight)), 1e-12)
	}
	return f
}

// orders returns the orders in which workloads are assigned to drives.
func (f *filling) orders() [][]int32 {
	keys := []func(w *Workload, j int32) float64{
		func(w *Workload, j int32) float64 { return -f.weight[j] },
		func(w *Workload, _ int32) float64 { return -w.WorkingSet / (w.WorkingSet + w.PeakIOPS + 1e-300) },
		func(w *Workload, _ int32) float64 { return -w.Sequential },
		func(w *Workload, j int32) float64 { return float64(j) },
		func(w *Workload, _ int32) float64 { return -w.WriteRate / (w.WorkingSet + 1e-300) },
	}
	var out [][]int32
	for _, key := range keys {
		order := make([]int32, len(f.jobs))
		at := make([]float64, len(f.jobs))
		for j := range order {
			order[j], at[j] = int32(j), key(&f.jobs[j], int32(j))
		}
		slices.SortStableFunc(order, func(x, y int32) int { return cmp.Compare(at[x], at[y]) })
		out = append(out, order)
	}
	return out
}

// plan fills drives in the given order of workloads. If only is a kind, it uses drives of that kind while any are left.
// A workload that fits on no drive goes where it exceeds the limits least, so that there is always a plan for the
// search to start from.
func (f *filling) plan(order []int32, only int) []slot {
	rest := slices.Clone(order)
	left := make([]int, len(f.kinds))
	for k := range left {
		left[k] = f.kinds[k].count
	}
	held := make([]int32, f.domains*f.groups)
	var slots []slot
	for len(rest) > 0 {
		least, kind := math.Inf(1), -1
		for k := range f.kinds {
			if left[k] == 0 || only >= 0 && left[only] > 0 && k != only {
				continue
			}
			cost, weight := f.fill(k, rest, held)
			if len(f.list) == 0 {
				continue
			}
			if v := cost / weight; v < least*(1-1e-12) {
				least, kind = v, k
				f.best = append(f.best[:0], f.list...)
			}
		}
		if kind < 0 {
			return f.cram(slots, rest, left)
		}
		left[kind]--
		taken := slot{kind: kind, list: slices.Clone(f.best)}
		slices.Sort(taken.list)
		if d := f.kinds[kind].domain; d >= 0 {
			for _, j := range taken.list {
				if g := f.group[j]; g >= 0 {
					held[int(d)*f.groups+int(g)]++
				}
			}
		}
		slots = append(slots, taken)
		// best and rest have the same order.
		n, b := 0, 0
		for _, j := range rest {
			if b < len(f.best) && f.best[b] == j {
				b++
				continue
			}
			rest[n] = j
			n++
		}
		rest = rest[:n]
	}
	return slots
}

// fill selects into list the workloads of rest that a drive of kind k takes, in their order, and returns the drive's
// cost and the sum of weights. Without a horizon the cost is per unit of data the drive holds, because that is what a
// drive is bought for.
func (f *filling) fill(k int, rest, held []int32) (cost, weight float64) {
	f.list = f.list[:0]
	space, load, wear, first := 0.0, 0.0, 0.0, math.Inf(1)
	// If no workload leaves, sums suffice: growing workloads are all largest on the last day. Some that shrink would
	// still fit, but only small problems are checked day by day.
	quick := f.endless && f.groups == 0 && f.kinds[k].drive.Tail == nil && (!f.grows || len(f.jobs) > fewWorkloads)
	// space and IOPS alone decide
	simple := f.p.Pricer != nil && f.groups == 0 && f.kinds[k].drive.Tail == nil && !f.grows
	missed, most := 0, f.lookahead()
	var sorted []int32
	for _, j := range rest {
		if missed >= most {
			break
		}
		fits := !f.endless || f.grows && !quick ||
			space+float64(f.most[j]*f.jobs[j].WorkingSet) <= f.pool.spaceMost[k] &&
				load+float64(f.most[j]*f.load[k][j]) <= f.pool.ioMost[k]
		worn := 0.0
		if f.lasting && fits {
			worn = f.shares(k, int(j))[2]
			if days := f.p.Config.Horizon; f.p.Pricer == nil {
				first = min(first, f.jobs[j].Arrival)
				worn *= max(0, 1-(f.jobs[j].Arrival-first)/days)
			}
			fits = wear+worn <= 1 || len(f.list) == 0
		}
		if fits && f.groups > 0 {
			if d := f.kinds[k].domain; d >= 0 && f.group[j] >= 0 {
				fits = held[int(d)*f.groups+int(f.group[j])] == 0
			}
		}
		switch {
		case !fits || quick:
		case simple:
			fits = f.room(k, j)
		default:
			sorted = with(append([]int32(nil), sorted...), -1, j, sorted)
			if _, _, over := f.try(k, sorted); over > 0 {
				fits = false
				sorted = with(append([]int32(nil), sorted...), j, -1, sorted)
			}
		}
		if !fits {
			missed++
			continue
		}
		missed = 0
		f.list = append(f.list, j)
		wear += worn
		space, load, weight = space+float64(f.most[j]*f.jobs[j].WorkingSet), load+float64(f.most[j]*f.load[k][j]),
			weight+f.weight[j]
	}
	for len(f.list) > 0 {
		sorted = append(sorted[:0], f.list...)
		slices.Sort(sorted)
		c, data, over := f.try(k, sorted)
		if over == 0 || len(f.list) == 1 && over < 1e-9 {
			if f.p.Config.Horizon == 0 && data > 0 {
				return c, data
			}
			return c, weight
		}
		// A late arrival finds the drive worn out or past its horizon.
		f.list = f.list[:len(f.list)/2]
		weight = 0
		for _, j := range f.list {
			weight += f.weight[j]
		}
	}
	return math.Inf(1), 1
}

// room reports whether a drive of kind k with the workloads in list has the space and the IOPS for workload j on each
// day on which one of them arrives while it is there. Valid for workloads that do not grow.
func (f *filling) room(k int, j int32) bool {
	x := &f.jobs[j]
	there := func(w *Workload, day float64) bool { return w.Arrival <= day && (w.End == 0 || w.End > day) }
	for at := -1; at < len(f.list); at++ {
		day := x.Arrival
		if at >= 0 {
			if day = f.jobs[f.list[at]].Arrival; !there(x, day) {
				continue
			}
		}
		space, load := x.WorkingSet, f.load[k][j]
		for _, l := range f.list {
			if w := &f.jobs[l]; there(w, day) {
				space, load = space+w.WorkingSet, load+f.load[k][l]
			}
		}
		if space > f.pool.spaceMost[k] || load > f.pool.ioMost[k] {
			return false
		}
	}
	return true
}

// cram places the remaining workloads where they exceed the limits least, largest first; it may also open unused
// drives.
func (f *filling) cram(slots []slot, rest []int32, left []int) []slot {
	for k, n := range left {
		for range min(n, len(rest)) {
			slots = append(slots, slot{kind: k})
		}
	}
	for i := range slots {
		s := &slots[i]
		s.cost, s.data, s.over = f.try(s.kind, s.list)
	}
	slices.SortStableFunc(rest, func(x, y int32) int { return cmp.Compare(f.weight[y], f.weight[x]) })
	step := max(1, len(slots)/64) // with many drives, only a sample is tried
	for n, j := range rest {
		best, least := n%len(slots), math.Inf(1)
		for i := n % step; i < len(slots); i += step {
			s := &slots[i]
			f.list = with(s.list, -1, j, f.list)
			if _, _, over := f.try(s.kind, f.list); over-s.over < least {
				best, least = i, over-s.over
			}
		}
		s := &slots[best]
		f.list = with(s.list, -1, j, f.list)
		s.list = append(s.list[:0:0], f.list...)
		s.cost, s.data, s.over = f.try(s.kind, s.list)
	}
	return slices.DeleteFunc(slots, func(s slot) bool { return len(s.list) == 0 })
}

// level divides workloads evenly among the given number of drives of kind k, largest first: each goes where it leaves
// the drive's largest share of space, I/Os and write budget smallest. Drives that are filled one after another wear
// unevenly, and moves of single workloads repair that slowly.
func (f *filling) level(k, drives int) []slot {
	slots := make([]slot, drives)
	used := make([][3]float64, drives)
	for i := range slots {
		slots[i].kind = k
	}
	order := make([]int32, len(f.jobs))
	shares := make([][3]float64, len(f.jobs))
	for j := range order {
		order[j], shares[j] = int32(j), f.shares(k, j)
	}
	slices.SortStableFunc(order,
		func(x, y int32) int { return cmp.Compare(slices.Max(shares[y][:]), slices.Max(shares[x][:])) })
	for _, j := range order {
		best, least := 0, math.Inf(1)
		for i := range used {
			most := 0.0
			for n, v := range shares[j] {
				most = max(most, used[i][n]+v)
			}
			if most < least {
				best, least = i, most
			}
		}
		for n, v := range shares[j] {
			used[best][n] += v
		}
		slots[best].list = append(slots[best].list, j)
	}
	for i := range slots {
		slices.Sort(slots[i].list)
	}
	return slices.DeleteFunc(slots, func(s slot) bool { return len(s.list) == 0 })
}

// shares returns a workload's share of a drive's space, I/Os and write budget until the horizon.
func (f *filling) shares(k, j int) [3]float64 {
	d, w := &f.kinds[k].drive, &f.jobs[j]
	wear := 0.0
	if days := f.p.Config.Horizon; days > 0 {
		if w.End > 0 {
			days = min(days, w.End-w.Arrival)
		}
		wear = float64(d.Wearing(w)*float64(d.WAF.At(w.Sequential)*days)) / (d.Budget - d.Worn)
	}
	return [3]float64{w.WorkingSet / f.pool.spaceMost[k], f.load[k][j] / f.pool.ioMost[k], wear}
}

// levels returns plans that use a single kind of drive each: the minimum number of drives, and one more.
func (f *filling) levels() (out [][]slot) {
	if len(f.jobs) < 100 || len(f.jobs) > 20_000 {
		return nil
	}
	for k := range f.kinds {
		sum := [3]float64{}
		for j := range f.jobs {
			for n, v := range f.shares(k, j) {
				sum[n] += v
			}
		}
		room := max(1, int(math.Ceil(max(sum[0], sum[1])-1e-9)))
		for _, n := range []int{room, room + 1, int(math.Ceil(sum[2]))} {
			if n >= room && n <= f.kinds[k].count && n < 2*room+2 {
				out = append(out, f.level(k, n))
			}
		}
	}
	return out
}
