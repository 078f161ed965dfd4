package tco

import (
	"math"
	"slices"

	"farflash/numeric/rng"
)

// search improves a plan by changing one or two drives at a time: workloads move or are exchanged, drives change kind,
// are merged or split. Initially it also accepts plans that cost more (simulated annealing), and plans that exceed
// limits, at a penalty that rises; it keeps the best plan that exceeds none.
//
// It draws from the drives in use and the kinds of the others, so the number of drives that may be bought has no effect
// until it binds.
type search struct {
	*arranged
	slots []slot
	host  []int32 // slot of each workload
	used  []int   // by kind
	held  []int32 // by domain and group: number of the group's workloads in a shared domain
	clash int     // workloads of a group beyond the first in a domain

	cost, data, over float64
	rate, penalty    float64

	best      []slot
	least     float64 // worth of best
	unsaved   bool    // the present plan is the best and not yet copied
	one, two  []int32
	three     []int32
	threshold float64
}

// begin returns a search that starts from a plan, which may exceed limits.
func (a *arranged) begin(slots []slot) *search {
	s := &search{arranged: a, host: make([]int32, len(a.jobs)), used: make([]int, len(a.kinds)),
		held: make([]int32, a.domains*a.groups), least: math.Inf(1)}
	for i := range slots {
		x := slots[i]
		x.list = slices.Clone(x.list)
		x.cost, x.data, x.over = a.try(x.kind, x.list)
		s.slots = append(s.slots, x)
		s.used[x.kind]++
		s.clash += s.enter(x.kind, x.list, 1)
		for _, j := range x.list {
			s.host[j] = int32(i)
		}
	}
	s.addUp()
	s.rate = worth(s.cost+a.sunk, s.data)
	if s.data == 0 || math.IsInf(s.rate, 1) {
		s.rate = 0
	}
	s.note()
	s.save()
	return s
}

// addUp recomputes the sums, because incremental updates lose precision.
func (s *search) addUp() {
	s.cost, s.data, s.over = 0, 0, 0
	for i := range s.slots {
		s.cost += s.slots[i].cost
		s.data += s.slots[i].data
		s.over += s.slots[i].over
	}
}

// enter adds workloads to a kind's domain (by 1) or removes them (by -1), and returns the change in clashes.
func (s *search) enter(kind int, list []int32, by int32) (clashes int) {
	d := s.kinds[kind].domain
	if d < 0 {
		return 0
	}
	for _, j := range list {
		if g := s.group[j]; g >= 0 {
			n := &s.held[int(d)*s.groups+int(g)]
			if by > 0 && *n > 0 {
				clashes++
			} else if by < 0 && *n > 1 {
				clashes--
			}
			*n += by
		}
	}
	return clashes
}

// sound reports whether the plan exceeds no limit.
func (s *search) sound() bool { return s.over < 1e-12 && s.clash == 0 }

// note records the plan if it is the best.
func (s *search) note() {
	if !s.sound() {
		return
	}
	if v := worth(s.cost+s.sunk, s.data); v < s.least*(1-1e-12) {
		// Sums of many moves lose precision; the comparison counts only after a recount.
		s.addUp()
		if v = worth(s.cost+s.sunk, s.data); v < s.least*(1-1e-12) && s.sound() {
			s.least, s.unsaved = v, true
		}
	}
}

// save copies the best plan before it changes.
func (s *search) save() {
	if !s.unsaved {
		return
	}
	s.unsaved = false
	s.best = slices.Grow(s.best[:0], len(s.slots))
	for i := range s.slots {
		s.best = append(s.best, slot{kind: s.slots[i].kind, list: slices.Clone(s.slots[i].list)})
	}
}

// propose turns slot a into a drive of kind ka with workloads la, and slot b into one of kind kb with lb, if that
// changes the sum of cost - rate data and penalties by less than the threshold. A slot of -1 is a new drive; one
// without workloads is released.
func (s *search) propose(a, ka int, la []int32, b, kb int, lb []int32) {
	if !s.there(a, ka, la, b, kb, lb) {
		return
	}
	ca, da, oa := s.try(ka, la)
	cb, db, ob := s.try(kb, lb)
	if math.IsInf(ca, 1) || math.IsInf(cb, 1) {
		return
	}
	cost, data, over := ca+cb, da+db, oa+ob
	for _, i := range [2]int{a, b} {
		if i >= 0 {
			x := &s.slots[i]
			cost, data, over = cost-x.cost, data-x.data, over-x.over
		}
	}
	worse := cost - float64(s.rate*data)
	clash := 0
	if s.domains > 0 {
		clash = s.exchangeDomains(a, ka, la, b, kb, lb)
	}
	if !(worse+float64(s.penalty*(over+float64(clash))) < s.threshold) {
		if s.domains > 0 {
			s.undoDomains(a, ka, la, b, kb, lb)
		}
		return
	}
	s.save()
	s.clash += clash
	s.cost, s.data, s.over = s.cost+cost, s.data+data, s.over+over
	a = s.set(a, slot{ka, la, ca, da, oa})
	b = s.set(b, slot{kb, lb, cb, db, ob})
	// The higher index first, because the last slot moves into the place of a released one.
	for _, i := range [2]int{max(a, b), min(a, b)} {
		if i >= 0 && len(s.slots[i].list) == 0 {
			s.drop(i)
		}
	}
	s.note()
}

// there reports whether enough drives of both kinds are available for the change.
func (s *search) there(a, ka int, la []int32, b, kb int, lb []int32) bool {
	change := func(k int) (n int) {
		if len(la) > 0 && ka == k {
			n++
		}
		if len(lb) > 0 && kb == k {
			n++
		}
		if a >= 0 && s.slots[a].kind == k {
			n--
		}
		if b >= 0 && s.slots[b].kind == k {
			n--
		}
		return n
	}
	for _, k := range [2]int{ka, kb} {
		if n := change(k); n > 0 && s.used[k]+n > s.kinds[k].count {
			return false
		}
	}
	return true
}

func (s *search) exchangeDomains(a, ka int, la []int32, b, kb int, lb []int32) (clash int) {
	for _, i := range [2]int{a, b} {
		if i >= 0 {
			clash += s.enter(s.slots[i].kind, s.slots[i].list, -1)
		}
	}
	return clash + s.enter(ka, la, 1) + s.enter(kb, lb, 1)
}

func (s *search) undoDomains(a, ka int, la []int32, b, kb int, lb []int32) {
	s.enter(ka, la, -1)
	s.enter(kb, lb, -1)
	for _, i := range [2]int{a, b} {
		if i >= 0 {
			s.enter(s.slots[i].kind, s.slots[i].list, 1)
		}
	}
}

// set stores a drive in slot i, or in a new slot if i is negative, and returns the slot.
func (s *search) set(i int, x slot) int {
	if i < 0 {
		if len(x.list) == 0 {
			return -1
		}
		i = len(s.slots)
		s.slots = append(s.slots, slot{})
		s.used[x.kind]++
	} else {
		s.used[s.slots[i].kind]--
		s.used[x.kind]++
	}
	was := &s.slots[i]
	x.list = append(was.list[:0], x.list...)
	*was = x
	for _, j := range x.list {
		s.host[j] = int32(i)
	}
	return i
}

// drop releases an empty slot; the last slot moves into its place.
func (s *search) drop(i int) {
	s.used[s.slots[i].kind]--
	last := len(s.slots) - 1
	empty := s.slots[i].list
	s.slots[i] = s.slots[last]
	for _, j := range s.slots[i].list {
		s.host[j] = int32(i)
	}
	s.slots[last] = slot{list: empty}
	s.slots = s.slots[:last]
}

// with copies a list to out, in order of arrival, without less and with more. -1: none.
func with(list []int32, less, more int32, out []int32) []int32 {
	out = out[:0]
	for _, j := range list {
		if more >= 0 && more < j {
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

// merged merges two lists into out, in order of arrival.
func merged(a, b, out []int32) []int32 {
	out = out[:0]
	for len(a) > 0 && len(b) > 0 {
		if a[0] < b[0] {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// move tries to move workload j to slot b, in exchange for workload l unless that is -1.
func (s *search) move(j int32, b int, l int32) {
	a := int(s.host[j])
	if a == b {
		return
	}
	s.one = with(s.slots[a].list, j, l, s.one)
	s.two = with(s.slots[b].list, l, j, s.two)
	s.propose(a, s.slots[a].kind, s.one, b, s.slots[b].kind, s.two)
}

// annealing configures a search: the number of steps, of which the first four fifths accept cost increases of up to a
// share of a drive.
type annealing struct {
	steps   int
	hot     float64 // money
	penalty float64 // money for a 100 % excess of a limit, initially; a thousand times that at the end
	stop    func() bool
}

// run performs all steps.
func (s *search) run(how annealing, r *rng.Stream) {
	n, kinds := int64(len(s.jobs)), int64(len(s.kinds))
	if n == 0 {
		return
	}
	for i := range how.steps {
		if i%1024 == 0 {
			s.addUp()
			if how.stop != nil && how.stop() {
				break
			}
			if !math.IsInf(s.least, 1) && s.data > 0 {
				s.rate = s.least
			}
			s.penalty = float64(how.penalty * rng.Pow(1000, float64(i)/float64(how.steps)))
		}
		cool := float64(i) / float64(how.steps)
		s.threshold = 0
		if cool < 0.8 {
			s.threshold = float64(-how.hot*(1-cool/0.8)*(1-cool/0.8)) * rng.Log(1-r.Float64())
		}
		s.step(r, n, kinds)
	}
	s.save()
}

// step makes one attempt.
func (s *search) step(r *rng.Stream, n, kinds int64) {
	j := int32(r.IntN(n))
	a := int(s.host[j])
	b := int(r.IntN(int64(len(s.slots))))
	k := int(r.IntN(kinds))
	switch r.IntN(16) {
	case 0, 1, 2, 3, 4:
		s.move(j, b, -1)
	case 5, 6, 7, 8, 9:
		if l := int32(r.IntN(n)); s.host[l] != s.host[j] {
			s.move(j, int(s.host[l]), l)
		}
	case 10: // to a drive of its own
		s.one = with(s.slots[a].list, j, -1, s.one)
		s.two = append(s.two[:0], j)
		s.propose(a, s.slots[a].kind, s.one, -1, k, s.two)
	case 11: // replace a drive by one of another kind
		if s.slots[b].kind != k {
			s.one = append(s.one[:0], s.slots[b].list...)
			s.propose(b, k, s.one, -1, k, nil)
		}
	case 12: // exchange the kinds of two drives
		if a != b && s.slots[a].kind != s.slots[b].kind {
			s.one = append(s.one[:0], s.slots[a].list...)
			s.two = append(s.two[:0], s.slots[b].list...)
			s.propose(a, s.slots[b].kind, s.one, b, s.slots[a].kind, s.two)
		}
	case 13: // merge two drives
		if a != b {
			s.one = merged(s.slots[a].list, s.slots[b].list, s.one)
			s.propose(a, k, s.one, b, k, nil)
		}
	case 14: // split a drive
		s.one, s.two = s.one[:0], s.two[:0]
		for _, l := range s.slots[a].list {
			if r.IntN(2) == 0 {
				s.one = append(s.one, l)
			} else {
				s.two = append(s.two, l)
			}
		}
		s.propose(a, s.slots[a].kind, s.one, -1, k, s.two)
	default: // redistribute the workloads of two drives
		if a != b {
			s.three = merged(s.slots[a].list, s.slots[b].list, s.three)
			s.one, s.two = s.one[:0], s.two[:0]
			share := r.Float64()
			for _, l := range s.three {
				if r.Float64() < share {
					s.one = append(s.one, l)
				} else {
					s.two = append(s.two, l)
				}
			}
			s.propose(a, s.slots[a].kind, s.one, b, k, s.two)
		}
	}
}

// rebuild tries to redistribute the workloads of a few drives optimally, where these are few; it makes the given number
// of attempts.
func (s *search) rebuild(tries int, stop func() bool, r *rng.Stream) {
	rebuilt := s.rebuilt()
	jobs := make([]int32, 0, rebuilt)
	counts := make([]int, len(s.kinds))
	s.threshold, s.penalty = 0, math.Inf(1)
	for i := range tries {
		if len(s.slots) == 0 || stop != nil && i%16 == 0 && stop() {
			break
		}
		// Random drives, as long as their workloads are few in total.
		var taken []int
		jobs = jobs[:0]
		for range 8 {
			at := int(r.IntN(int64(len(s.slots))))
			if n := len(s.slots[at].list); n+len(jobs) <= rebuilt && !slices.Contains(taken, at) {
				taken, jobs = append(taken, at), append(jobs, s.slots[at].list...)
			}
		}
		if len(taken) == 0 {
			continue
		}
		slices.Sort(jobs)
		before := 0.0
		for _, at := range taken {
			before += s.slots[at].cost - float64(s.rate*s.slots[at].data)
			s.enter(s.slots[at].kind, s.slots[at].list, -1)
			s.used[s.slots[at].kind]--
		}
		for k := range counts {
			counts[k] = min(s.kinds[k].count-s.used[k], len(jobs))
		}
		found := s.division(jobs, counts, s.held).divide(s.rate)
		after := 0.0
		for k := range found {
			after += found[k].cost - float64(s.rate*found[k].data)
		}
		if found == nil || !(after < before-float64(1e-10*math.Abs(s.cost))) {
			for _, at := range taken {
				s.enter(s.slots[at].kind, s.slots[at].list, 1)
				s.used[s.slots[at].kind]++
			}
			continue
		}
		s.save()
		slices.Sort(taken)
		for _, at := range slices.Backward(taken) {
			s.used[s.slots[at].kind]++ // drop decrements it
			s.slots[at].list = s.slots[at].list[:0]
			s.drop(at)
		}
		for k := range found {
			s.enter(found[k].kind, found[k].list, 1)
			s.set(-1, found[k])
		}
		s.addUp()
		s.note()
		if s.data > 0 {
			s.rate = s.least
		}
	}
	s.save()
}

// rebuilt is the largest number of workloads that are redistributed at once: ExactWorkloads, or fewer if many kinds of
// drives or expensive pricing would make that too slow.
func (s *search) rebuilt() int {
	const least, most = 9, 0.02 // seconds
	n := ExactWorkloads
	for n > least && float64(s.priced()*float64(len(s.kinds)))*rng.Pow(2, float64(n)) > most {
		n--
	}
	return n
}
