package tco

import (
	"farflash/rng"
	"math"
	"slices"
)

// search improves a placement by moving a workload to another drive or exchanging two, at first also when that costs more (simulated
// annealing), and at last only when it costs less.
type search struct {
	p      *Problem
	drives []Drive
	class  []int
	pool   *Pool // one drive at a time is made anew in it
	host   []int
	on     [][]int32 // by drive, in the order of arrival
	rank   []int32   // of each workload in that order
	cost   []float64 // by drive; an unused optional one costs nothing
	data   []float64

	sumCost, sumData float64
	together         bool // all arrive at once and none ends: a drive's sums are all that matters
	apart            bool // some workloads must be in different failure domains
	list             []int32
	other            []int32
}

func newSearch(p *Problem, host []int) (*search, error) {
	s := &search{p: p, host: slices.Clone(host), rank: make([]int32, len(p.Jobs)), together: true}
	s.drives, s.class = p.Drives()
	var err error
	if s.pool, err = NewPool(p.Config, s.drives); err != nil {
		return nil, err
	}
	s.on, s.cost, s.data = make([][]int32, len(s.drives)), make([]float64, len(s.drives)), make([]float64, len(s.drives))
	for r, j := range ByArrival(p.Jobs) {
		s.rank[j] = int32(r)
		if k := host[j]; k >= 0 {
			s.on[k] = append(s.on[k], int32(j))
		}
		s.together = s.together && p.Jobs[j].Arrival == p.Jobs[0].Arrival && p.Jobs[j].End == 0
		s.apart = s.apart || p.Jobs[j].Apart != ""
	}
	for k := range s.drives {
		s.cost[k], s.data[k], _ = s.try(k, s.on[k])
		s.sumCost += s.cost[k]
		s.sumData += s.data[k]
	}
	return s, nil
}

// clear takes all workloads off a drive of the pool.
func (p *Pool) clear(k int) {
	p.started[k], p.limited[k], p.count[k], p.taken[k] = false, false, 0, 0
	for _, a := range [][]float64{p.first, p.recent, p.rate, p.wearing, p.mix, p.nand, p.written, p.death, p.data, p.space, p.load} {
		a[k] = 0
	}
	p.worn[k], p.spent[k], p.cost[k], p.tight[k] = p.drives[k].Worn, p.drives[k].Worn, p.buy[k], math.Inf(1)
	p.ends[k] = p.ends[k][:0]
}

// try returns what a drive with these workloads costs and holds of data, and whether it can have them. Groups are not looked at.
func (s *search) try(k int, list []int32) (cost, data float64, ok bool) {
	if len(list) == 0 {
		if s.p.Classes[s.class[k]].Optional {
			return 0, 0, true
		}
		return s.drives[k].Buy, 0, true
	}
	if s.together {
		return s.tryTogether(k, list)
	}
	p := s.pool
	p.clear(k)
	for _, j := range list {
		w := &s.p.Jobs[j]
		if len(p.ends[k]) > 0 {
			p.advanceDrive(k, w.Arrival)
		}
		var o outcome
		group := w.Apart
		if group != "" {
			x := *w
			x.Apart = ""
			w = &x
		}
		if p.fits(k, w) != Fits || !p.with(k, w, w.Arrival, &o) {
			return 0, 0, false
		}
		p.put(k, w)
	}
	return p.cost[k], p.data[k], true
}

// tryTogether forms the sums of workloads that all arrive at once.
func (s *search) tryTogether(k int, list []int32) (cost, data float64, ok bool) {
	d := &s.drives[k]
	rate, wearing, mix, space, load, tight := 0.0, 0.0, 0.0, 0.0, 0.0, math.Inf(1)
	for _, j := range list {
		w := &s.p.Jobs[j]
		b := w.WriteRate
		if !s.pool.plain[k] {
			b = float64(w.WriteRate * d.Stripe.Bytes(w.FullStripe))
			load += d.Stripe.Load(w)
		} else {
			load += w.PeakIOPS
		}
		rate += w.WriteRate
		wearing += b
		mix += float64(b * w.Sequential)
		space += w.WorkingSet
		if w.P99 > 0 {
			tight = min(tight, w.P99)
		}
	}
	if space > s.pool.spaceMost[k] || load > s.pool.ioMost[k] || d.Tail != nil && !math.IsInf(tight, 1) && d.Tail.P99(load/d.IOPS) > tight {
		return 0, 0, false
	}
	life := math.Inf(1)
	if wearing > 0 {
		life = (d.Budget - d.Worn) / float64(wearing*d.WAF.At(min(1, mix/wearing)))
	}
	if h := s.p.Config.Horizon; h > 0 {
		life = min(life, h)
	}
	return d.Buy + float64(d.Run*life), float64(rate * life), true
}

// allowed reports whether a workload's group leaves a drive's failure domain to it; except is a workload that leaves.
func (s *search) allowed(j int32, k int, except int32) bool {
	group := s.p.Jobs[j].Apart
	if group == "" || s.pool.domains[k] < 0 {
		return true
	}
	for i := range s.p.Jobs {
		if int32(i) != j && int32(i) != except && s.p.Jobs[i].Apart == group && s.host[i] >= 0 && s.pool.domains[s.host[i]] == s.pool.domains[k] {
			return false
		}
	}
	return true
}

// with puts a list with one workload less and one more, in order of arrival, into out. -1 is none.
func (s *search) with(list []int32, less, more int32, out []int32) []int32 {
	out = out[:0]
	for _, j := range list {
		if more >= 0 && s.rank[more] < s.rank[j] {
			out = append(out, more)
			more = -1
		}
		if j != less {
			out = append(out, j)
		}
	}
	if more >= 0 {
		out = append(out, more)
	}
	return out
}

// move tries to put workload j on drive k, in exchange for workload l if that is not -1, and does it if the change in cost - rate
// data is below limit.
func (s *search) move(j int32, k int, l int32, rate, limit float64) {
	from := s.host[j]
	if from == k || s.apart && (!s.allowed(j, k, l) || l >= 0 && !s.allowed(l, from, j)) {
		return
	}
	s.list = s.with(s.on[from], j, l, s.list)
	c1, d1, ok := s.try(from, s.list)
	if !ok {
		return
	}
	s.other = s.with(s.on[k], l, j, s.other)
	c2, d2, ok := s.try(k, s.other)
	if !ok {
		return
	}
	cost, data := c1+c2-s.cost[from]-s.cost[k], d1+d2-s.data[from]-s.data[k]
	if !(cost-float64(rate*data) < limit) {
		return
	}
	s.on[from] = append(s.on[from][:0], s.list...)
	s.on[k] = append(s.on[k][:0], s.other...)
	s.cost[from], s.data[from], s.cost[k], s.data[k] = c1, d1, c2, d2
	s.host[j] = k
	if l >= 0 {
		s.host[l] = from
	}
	s.sumCost += cost
	s.sumData += data
}

// add up the drives again: what moves add loses digits.
func (s *search) addUp() {
	s.sumCost, s.sumData = 0, 0
	for k := range s.drives {
		s.sumCost += s.cost[k]
		s.sumData += s.data[k]
	}
}

// run makes so many tries and returns the best placement it saw.
func (s *search) run(steps int, seed uint64) []int {
	r := rng.NewStream(seed, "tco/search")
	s.addUp()
	best := slices.Clone(s.host)
	least := s.sumCost / s.sumData
	n, m := int64(len(s.p.Jobs)), int64(len(s.drives))
	if m < 2 || n == 0 {
		return best
	}
	// A try may at first make things worse by some share of what a drive costs; more so where few drives leave few ways around.
	used := 0
	for k := range s.on {
		if len(s.on[k]) > 0 {
			used++
		}
	}
	// Of many workloads one is little beside a drive.
	hot := s.sumCost * min(0.05/float64(max(1, used)), 0.25/float64(n))
	if n < few {
		hot = s.sumCost / float64(max(1, used))
	}
	for i := range steps {
		cool := float64(i) / float64(steps)
		limit := 0.0
		if cool < 0.8 {
			limit = float64(-hot*(1-cool/0.8)*(1-cool/0.8)) * rng.Log(1-r.Float64())
		}
		rate := s.sumCost / s.sumData
		j := int32(r.IntN(n))
		switch r.IntN(8) {
		case 0, 1, 2, 3:
			s.move(j, s.target(&r, m), -1, rate, limit)
		case 4:
			s.exchange(s.host[j], s.target(&r, m), rate, limit)
		default:
			if l := int32(r.IntN(n)); s.host[l] != s.host[j] {
				s.move(j, s.host[l], l, rate, limit)
			}
		}
		if i%1024 == 1023 {
			s.addUp()
		}
		if now := s.sumCost / s.sumData; now < least*(1-1e-12) {
			least = now
			copy(best, s.host)
		}
	}
	return best
}

// few is below how many workloads a search tries whatever it takes to leave a local best.
const few = 20

// exchange tries to give each of two drives all that the other has. That changes models without a detour through plans that use both.
func (s *search) exchange(a, b int, rate, limit float64) {
	if s.class[a] == s.class[b] || s.apart && s.pool.domains[a] != s.pool.domains[b] {
		return
	}
	c1, d1, ok := s.try(a, s.on[b])
	if !ok {
		return
	}
	c2, d2, ok := s.try(b, s.on[a])
	if !ok {
		return
	}
	cost, data := c1+c2-s.cost[a]-s.cost[b], d1+d2-s.data[a]-s.data[b]
	if !(cost-float64(rate*data) < limit) {
		return
	}
	s.on[a], s.on[b] = s.on[b], s.on[a]
	s.cost[a], s.data[a], s.cost[b], s.data[b] = c1, d1, c2, d2
	for _, k := range []int{a, b} {
		for _, j := range s.on[k] {
			s.host[j] = k
		}
	}
	s.sumCost += cost
	s.sumData += data
}

// target draws a drive: of the unused ones only the first of each class stands for all.
func (s *search) target(r *rng.Stream, m int64) int {
	k := int(r.IntN(m))
	if len(s.on[k]) == 0 {
		for k > 0 && s.class[k-1] == s.class[k] && len(s.on[k-1]) == 0 {
			k--
		}
	}
	return k
}
