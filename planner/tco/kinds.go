package tco

import (
	"cmp"
	"math"
	"slices"
)

// kind is a set of drives, of one or several classes, that are interchangeable in a plan.
type kind struct {
	drive    Drive
	optional bool
	count    int     // capped at the number of workloads: further drives stay unused in any plan
	domain   int32   // -1: each drive is a failure domain of its own
	members  []int32 // their indices in Problem.Drives
}

// arranged is a problem in canonical order, independent of the order and the names of its classes and workloads.
type arranged struct {
	p       *Problem
	jobs    []Workload // in order of arrival; group has their groups
	from    []int32    // their indices in the problem
	group   []int32    // group of workloads to be kept apart; -1: none
	groups  int
	kinds   []kind
	domains int
	sunk    float64   // cost of the drives that are bought already
	unused  []float64 // cost of an unused drive of each kind
	pool    *Pool     // one drive of each kind
	// together means that all workloads arrive at once and none ends: a drive's sums are all that matters.
	together bool
	endless  bool    // no workload ends
	grows    bool    // some workloads grow
	asked    [][]ask // by kind and workload, computed on first use
	seen     []int32
	stamp    int32
}

// measures returns the quantities by which a plan distinguishes drives.
func (d *Drive) measures() []float64 {
	u := &d.Upkeep
	byLoad := 0.0
	if u.ByLoad {
		byLoad = 1
	}
	list := []float64{d.Buy, d.Run, d.Budget, d.Worn, d.Capacity, d.IOPS, d.WriteCost, d.Stripe.FullBytes,
		d.Stripe.SmallBytes, d.Stripe.FullIOs, d.Stripe.SmallIOs, d.Stripe.SmallReads,
		float64(u.Members), u.AFR, u.Setup, u.Next, u.Idle, u.Active, u.Duty, byLoad, u.Labour, u.Place}
	for i := range 101 {
		list = append(list, d.WAF.At(float64(i)/100))
	}
	if d.Tail == nil {
		return list
	}
	return append(list, d.Tail.Measures()...)
}

// measures returns the quantities by which a plan distinguishes workloads.
func (w *Workload) measures() []float64 {
	return []float64{w.Arrival, w.WorkingSet, w.WriteRate, w.Sequential, w.PeakIOPS, w.IOSize, w.WriteShare, w.End,
		w.FullStripe, w.P99, w.Growth, w.Wears, float64(w.Stay.At)}
}

// arrange brings a problem into canonical order.
func arrange(p *Problem) (*arranged, error) {
	a := &arranged{p: p, together: true, endless: true}
	a.arrangeJobs()
	a.arrangeKinds()
	one := make([]Drive, len(a.kinds))
	for i := range a.kinds {
		one[i] = a.kinds[i].drive
		one[i].Domain = ""
	}
	for i := range p.Classes {
		if c := &p.Classes[i]; !c.Optional {
			a.sunk += float64(float64(c.Count) * p.unused(&c.Drive))
		}
	}
	for i := range a.kinds {
		idle := 0.0
		if k := &a.kinds[i]; !k.optional {
			idle = p.unused(&k.drive)
		}
		a.unused = append(a.unused, idle)
	}
	var err error
	a.pool, err = NewPool(p.Config, one)
	return a, err
}

// unused is the cost of an owned drive without workloads.
func (p *Problem) unused(d *Drive) float64 {
	if p.Pricer == nil {
		return d.Buy
	}
	cost, _ := p.Pricer.Price(d, true, nil, nil)
	return cost
}

func (a *arranged) arrangeJobs() {
	n := len(a.p.Jobs)
	// A group is identified by its workloads, not by its name.
	ids := map[string]int{}
	var members [][]int32
	for j := range a.p.Jobs {
		if name := a.p.Jobs[j].Apart; name != "" {
			id, ok := ids[name]
			if !ok {
				id = len(members)
				ids[name], members = id, append(members, nil)
			}
			members[id] = append(members[id], int32(j))
		}
	}
	measures := make([][]float64, n)
	order := make([]int32, n)
	for j := range order {
		order[j], measures[j] = int32(j), a.p.Jobs[j].measures()
	}
	alone := func(x, y int32) int { return slices.Compare(measures[x], measures[y]) }
	for _, list := range members {
		slices.SortStableFunc(list, alone)
	}
	byMembers := make([]int, len(members))
	for g := range byMembers {
		byMembers[g] = g
	}
	slices.SortStableFunc(byMembers, func(x, y int) int { return slices.CompareFunc(members[x], members[y], alone) })
	group := make([]int32, n)
	for j := range group {
		group[j] = -1
	}
	for rank, g := range byMembers {
		for _, j := range members[g] {
			group[j] = int32(rank)
		}
	}
	slices.SortStableFunc(order, func(x, y int32) int { return cmp.Or(alone(x, y), cmp.Compare(group[x], group[y])) })
	a.from, a.groups, a.seen = order, len(members), make([]int32, len(members))
	for _, j := range order {
		w := a.p.Jobs[j]
		w.Apart = ""
		a.jobs, a.group = append(a.jobs, w), append(a.group, group[j])
		a.together = a.together && w.Arrival == a.p.Jobs[0].Arrival && w.End == 0
		a.endless = a.endless && w.End == 0
		a.grows = a.grows || w.Growth != 0
	}
}

func (a *arranged) arrangeKinds() {
	// A domain shared by several drives matters only to groups.
	drives := map[string]int{}
	for i := range a.p.Classes {
		drives[a.p.Classes[i].Drive.Domain] += a.p.Classes[i].Count
	}
	ids := map[string]int32{}
	var measures [][]float64
	first := int32(0)
	for i := range a.p.Classes {
		c := &a.p.Classes[i]
		if c.Count == 0 {
			continue
		}
		k := kind{drive: c.Drive, optional: c.Optional, domain: -1}
		if d := c.Drive.Domain; d != "" && drives[d] > 1 && a.groups > 0 {
			id, ok := ids[d]
			if !ok {
				id = int32(len(ids))
				ids[d] = id
			}
			k.domain = id
		}
		m := c.Drive.measures()
		at := slices.IndexFunc(a.kinds, func(x kind) bool { return x.optional == k.optional && x.domain == k.domain })
		for ; at >= 0 && at < len(a.kinds); at++ {
			if x := &a.kinds[at]; x.optional == k.optional && x.domain == k.domain && slices.Equal(measures[at], m) {
				break
			}
		}
		if at < 0 || at == len(a.kinds) {
			at = len(a.kinds)
			a.kinds, measures = append(a.kinds, k), append(measures, m)
		}
		for n := range int32(c.Count) {
			a.kinds[at].members = append(a.kinds[at].members, first+n)
		}
		first += int32(c.Count)
	}
	a.domains = len(ids)
	order := make([]int, len(a.kinds))
	for i := range order {
		order[i] = i
		a.kinds[i].count = min(len(a.kinds[i].members), len(a.jobs))
	}
	slices.SortStableFunc(order, func(x, y int) int {
		optional := func(i int) int {
			if a.kinds[i].optional {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(optional(x), optional(y)), slices.Compare(measures[x], measures[y]),
			cmp.Compare(a.kinds[x].count, a.kinds[y].count))
	})
	sorted := make([]kind, len(order))
	for i, k := range order {
		sorted[i] = a.kinds[k]
	}
	a.kinds = sorted
}

// try returns the additional cost of a drive of kind k with these workloads, the data it holds, and the amount by which
// it exceeds its limits: 0 if they all fit, otherwise the sum of the excess shares.
func (a *arranged) try(k int, list []int32) (cost, data, over float64) {
	if len(list) == 0 {
		return 0, 0, 0
	}
	switch {
	case a.p.Pricer != nil:
		cost, over = a.p.Pricer.Price(&a.kinds[k].drive, !a.kinds[k].optional, a.jobs, list)
	case a.together:
		cost, data, over = a.tryTogether(k, list)
	case a.endless:
		cost, data, over = a.tryStaying(k, list)
	default:
		cost, data, over = a.tryInOrder(k, list)
	}
	if a.groups > 0 {
		a.stamp++
		for _, j := range list {
			if g := a.group[j]; g >= 0 {
				if a.seen[g] == a.stamp {
					over++
				}
				a.seen[g] = a.stamp
			}
		}
	}
	return cost - a.unused[k], data, over
}

// tryInOrder puts workloads on a drive in order of arrival. One that arrives when the drive is worn out or past its
// horizon counts as an excess of 1.
func (a *arranged) tryInOrder(k int, list []int32) (cost, data, over float64) {
	p := a.pool
	p.clear(k)
	space, load, late, slow := 0.0, 0.0, 0.0, 0.0
	for _, j := range list {
		w := &a.jobs[j]
		if len(p.ends[k]) > 0 {
			p.advanceDrive(k, w.Arrival)
		}
		var o outcome
		if !p.with(k, w, w.Arrival, &o) {
			late++
			continue
		}
		p.place(k, w, &o)
		space, load = max(space, p.space[k]), max(load, p.load[k])
		if p.crowds != nil {
			slow = max(slow, p.crowds[k].tooSlow(&p.drives[k], p.load[k]))
		}
	}
	return p.cost[k], p.data[k], late + slow + max(0, space/p.spaceMost[k]-1) + max(0, load/p.ioMost[k]-1)
}

// tryStaying is tryInOrder for workloads that never end: bit-identical, with less state.
func (a *arranged) tryStaying(k int, list []int32) (cost, data, over float64) {
	p := a.pool
	d, horizon, budget, curve := &p.drives[k], p.cfg.Horizon, p.budget[k], p.waf[k]
	asks := a.asks(k)
	var rate, wearing, mix, nand, written, space, load, late, slow, life float64
	worn, crowd := d.Worn, Group{}
	first, recent := math.NaN(), 0.0
	for _, j := range list {
		w, ask := &a.jobs[j], &asks[j]
		t, nowWorn, nowWritten := w.Arrival, worn, 0.0
		if !math.IsNaN(first) {
			past := t - recent
			nowWorn, nowWritten = worn+float64(nand*past), written+float64(rate*past)
		}
		began := first
		if math.IsNaN(first) {
			began = t
		}
		if nowWorn >= budget || horizon > 0 && t >= began+horizon {
			late++
			continue
		}
		worn, written, recent, first = nowWorn, nowWritten, t, began
		rate, wearing, mix = rate+w.WriteRate, wearing+ask.bytes, mix+ask.mix
		amplified := 1.0
		if wearing > 0 {
			amplified = curve.At(mix / wearing)
		}
		nand = float64(wearing * amplified)
		if space, load = space+w.WorkingSet, load+ask.load; d.Tail != nil {
			crowd.Join(d, w, 1)
			slow = max(slow, crowd.tooSlow(d, load))
		}
	}
	left := math.Inf(1)
	if nand > 0 {
		left = (budget - worn) / nand
	}
	life = recent + left
	if horizon > 0 && first+horizon < life {
		life = first + horizon
		left = life - recent
	}
	return p.buy[k] + float64(p.run[k]*(life-first)), written + float64(rate*left),
		late + slow + max(0, space/p.spaceMost[k]-1) + max(0, load/p.ioMost[k]-1)
}

// ask is the demand of a workload on drives of a kind: GB per day written to the members, the sequential part of it,
// and I/Os.
type ask struct{ bytes, mix, load float64 }

// asks returns the demands of all workloads on a kind.
func (a *arranged) asks(k int) []ask {
	if a.asked == nil {
		a.asked = make([][]ask, len(a.kinds))
	}
	if a.asked[k] == nil {
		d, list := &a.kinds[k].drive, make([]ask, len(a.jobs))
		for j := range a.jobs {
			w := &a.jobs[j]
			bytes := w.WriteRate
			if !a.pool.plain[k] || w.Wears != 0 {
				bytes = d.Wearing(w)
			}
			list[j] = ask{bytes, float64(bytes * w.Sequential), d.Load(w)}
		}
		a.asked[k] = list
	}
	return a.asked[k]
}

// tryTogether sums up workloads that all arrive at once.
func (a *arranged) tryTogether(k int, list []int32) (cost, data, over float64) {
	p := a.pool
	d := &p.drives[k]
	rate, wearing, mix, space, load, crowd := 0.0, 0.0, 0.0, 0.0, 0.0, Group{}
	asks := a.asks(k)
	for _, j := range list {
		w, ask := &a.jobs[j], &asks[j]
		rate += w.WriteRate
		wearing += ask.bytes
		mix += ask.mix
		load += ask.load
		space += w.WorkingSet
		if d.Tail != nil {
			crowd.Join(d, w, 1)
		}
	}
	life := math.Inf(1)
	if wearing > 0 {
		life = (d.Budget - d.Worn) / float64(wearing*d.WAF.At(min(1, mix/wearing)))
	}
	if h := p.cfg.Horizon; h > 0 {
		life = min(life, h)
	}
	over = max(0, space/p.spaceMost[k]-1) + max(0, load/p.ioMost[k]-1)
	over += crowd.tooSlow(d, load)
	held := 0.0
	if rate > 0 {
		held = float64(rate * life)
	}
	return d.Buy + float64(d.Run*life), held, over
}

// worth is the objective of a plan: money per GB, or money alone if no workload writes.
func worth(cost, data float64) float64 {
	if data > 0 {
		return cost / data
	}
	return cost
}

// placement maps each workload of the problem to a drive, given the slots in use.
func (a *arranged) placement(slots []slot) []int {
	host := make([]int, len(a.jobs))
	next := make([]int, len(a.kinds))
	for i := range slots {
		s := &slots[i]
		k := a.kinds[s.kind].members[next[s.kind]]
		next[s.kind]++
		for _, j := range s.list {
			host[a.from[j]] = int(k)
		}
	}
	return host
}

// slot is a drive in use.
type slot struct {
	kind             int
	list             []int32 // workloads, in order of arrival
	cost, data, over float64
}
