package tco

import (
	"math"
	"math/bits"

	"farflash/numeric/rng"
)

// ExactWorkloads is the largest number of workloads for which every plan is always examined.
const ExactWorkloads = 12

// mostDivisions and mostSeconds bound the work for larger problems: the number of divisions of a set in two that are
// examined, and the approximate time to price all sets.
const (
	mostDivisions = 400_000_000
	mostSeconds   = 1.5
)

// few reports whether every plan must be examined, for up to most workloads. The divisions of each set are repeated for
// each drive of a scarce kind and for each further group of drives.
func (a *arranged) few(most int) bool {
	n := len(a.jobs)
	if n <= ExactWorkloads {
		return true
	}
	if n > min(most, 20) {
		return false
	}
	if float64(a.priced()*rng.Pow(2, float64(n)))*float64(len(a.kinds)) > mostSeconds {
		return false
	}
	passes := 1.0
	for k := range a.kinds {
		if q := &a.kinds[k]; q.count < n || q.domain >= 0 {
			passes += float64(q.count + 1)
		}
	}
	if a.p.Pricer == nil {
		passes *= 4 // the rate converges in a few iterations
	}
	return float64(passes*rng.Pow(3, float64(n))) <= mostDivisions
}

// priced is the approximate time, in seconds, to price a set of workloads on a drive.
func (a *arranged) priced() float64 {
	if a.grows {
		return 20e-6 // once per quarter of a year
	}
	return 1.5e-6
}

// exactly finds the best plan of a few workloads: it prices every set of workloads on every kind of drive, and finds
// the best division into such sets. A plan costs less than r per GB if its drives' sums of cost - r data are negative,
// so the best division at a rate yields a lower rate, until no division does (Dinkelbach). ok is false if no plan has
// space for all workloads, which is then proven.
func (a *arranged) exactly() (slots []slot, ok bool) {
	jobs, counts := make([]int32, len(a.jobs)), make([]int, len(a.kinds))
	for j := range jobs {
		jobs[j] = int32(j)
	}
	for k := range counts {
		counts[k] = a.kinds[k].count
	}
	x := a.division(jobs, counts, nil)
	rate, least := 0.0, math.Inf(1)
	for {
		found := x.divide(rate)
		if found == nil {
			return slots, slots != nil
		}
		cost, data := a.sunk, 0.0
		for i := range found {
			cost += found[i].cost
			data += found[i].data
		}
		v := worth(cost, data)
		if !(v < least*(1-1e-14)) {
			return slots, true
		}
		if least, slots = v, found; !(data > 0) {
			return slots, true // no workload writes: this is the cheapest
		}
		rate = least
	}
}

// division returns a solver for the best division of jobs, in order of arrival, among counts[k] drives of each kind.
// held counts the workloads of each group that each domain has already; nil: none.
func (a *arranged) division(jobs []int32, counts []int, held []int32) *division {
	x := &division{a: a, jobs: jobs, counts: counts, held: held, sets: 1 << len(jobs),
		cost: make([][]float64, len(a.kinds)), data: make([][]float64, len(a.kinds))}
	var list []int32
	for k := range a.kinds {
		if counts[k] == 0 {
			continue
		}
		x.cost[k], x.data[k] = make([]float64, x.sets), make([]float64, x.sets)
		for set := 1; set < x.sets; set++ {
			list = x.list(set, list[:0])
			cost, data, over := a.try(k, list)
			if over > 0 || math.IsInf(cost, 1) {
				cost, data = math.Inf(1), 0
			}
			x.cost[k][set], x.data[k][set] = cost, data
		}
	}
	return x
}

// list appends the workloads of a set to out.
func (x *division) list(set int, out []int32) []int32 {
	for s := uint(set); s != 0; s &= s - 1 {
		out = append(out, x.jobs[bits.TrailingZeros(s)])
	}
	return out
}

// division finds the best division of workloads among drives at a given rate.
type division struct {
	a          *arranged
	jobs       []int32
	counts     []int
	held       []int32
	sets       int
	cost, data [][]float64 // by kind and set
}

// stage is the best that some kinds of drives can do with each set of workloads.
type stage struct {
	least []float64
	split []int32 // the subset that the last part takes
	layer []stage // of a scarce kind: with one drive, with two, and so on
	value []float64
	kind  []int16 // kind of the drive that holds the set alone; nil: own
	own   int
	parts []stage // the joined stages: split is the second one's subset
}

// divide returns the drives of the division with the least sum of cost - rate data, or nil if there is none.
func (x *division) divide(rate float64) []slot {
	var joined *stage
	join := func(s stage) {
		if joined == nil {
			joined = &s
			return
		}
		j := x.join(*joined, s)
		joined = &j
	}
	// Kinds with at least as many drives as workloads, in no shared domain, act as one kind.
	free := x.freely(rate)
	if free != nil {
		join(x.cover(*free, math.MaxInt))
	}
	for d := int32(-1); d < int32(x.a.domains); d++ {
		var mine *stage
		for k := range x.a.kinds {
			if q := &x.a.kinds[k]; x.counts[k] > 0 && q.domain == d && (d >= 0 || x.counts[k] < len(x.jobs)) {
				s := x.cover(stage{value: x.values(k, rate), own: k}, x.counts[k])
				if mine != nil {
					s = x.join(*mine, s)
				}
				mine = &s
			}
		}
		if mine == nil {
			continue
		}
		if d >= 0 {
			for set := range mine.least {
				if x.clash(d, set) {
					mine.least[set] = math.Inf(1)
				}
			}
		}
		join(*mine)
	}
	if joined == nil || math.IsInf(joined.least[x.sets-1], 1) {
		return nil
	}
	var out []slot
	x.unfold(joined, x.sets-1, func(k, set int) {
		out = append(out, slot{kind: k, list: x.list(set, nil), cost: x.cost[k][set], data: x.data[k][set]})
	})
	return out
}

// clash reports whether a set has two workloads of one group, or one of a group that the domain already has.
func (x *division) clash(domain int32, set int) bool {
	for s := uint(set); s != 0; s &= s - 1 {
		at := bits.TrailingZeros(s)
		g := x.a.group[x.jobs[at]]
		if g < 0 {
			continue
		}
		if x.held != nil && x.held[int(domain)*x.a.groups+int(g)] > 0 {
			return true
		}
		for other := set & (1<<at - 1); other != 0; other &= other - 1 {
			if x.a.group[x.jobs[bits.TrailingZeros(uint(other))]] == g {
				return true
			}
		}
	}
	return false
}

func (x *division) values(k int, rate float64) []float64 {
	v := make([]float64, x.sets)
	for set := 1; set < x.sets; set++ {
		v[set] = x.cost[k][set]
		if !math.IsInf(v[set], 1) {
			v[set] -= float64(rate * x.data[k][set])
		}
	}
	return v
}

// freely is the best kind for each set, among kinds of unlimited number.
func (x *division) freely(rate float64) *stage {
	var s *stage
	for k := range x.a.kinds {
		if x.counts[k] < len(x.jobs) || x.a.kinds[k].domain >= 0 {
			continue
		}
		v := x.values(k, rate)
		if s == nil {
			s = &stage{value: v, kind: make([]int16, x.sets), own: -1}
			for set := range s.kind {
				s.kind[set] = int16(k)
			}
			continue
		}
		for set := range v {
			if v[set] < s.value[set] {
				s.value[set], s.kind[set] = v[set], int16(k)
			}
		}
	}
	return s
}

// cover divides each set among up to count drives with the stage's values.
func (x *division) cover(s stage, count int) stage {
	parts := func(before []float64, least []float64, split []int32) {
		for set := 1; set < x.sets; set++ {
			low := set & -set
			rest := set ^ low
			best, at := math.Inf(1), int32(0)
			for sub := rest; ; sub = (sub - 1) & rest {
				if v := s.value[sub|low] + before[rest^sub]; v < best {
					best, at = v, int32(sub|low)
				}
				if sub == 0 {
					break
				}
			}
			least[set], split[set] = best, at
		}
	}
	if count >= len(x.jobs) {
		s.least, s.split = make([]float64, x.sets), make([]int32, x.sets)
		parts(s.least, s.least, s.split) // the remainder of a set is a smaller number, computed before
		return s
	}
	none := stage{least: make([]float64, x.sets), split: make([]int32, x.sets)}
	for set := 1; set < x.sets; set++ {
		none.least[set] = math.Inf(1)
	}
	s.layer = append(s.layer, none)
	for i := range count {
		l := stage{least: make([]float64, x.sets), split: make([]int32, x.sets)}
		parts(s.layer[i].least, l.least, l.split)
		s.layer = append(s.layer, l)
	}
	s.least = s.layer[count].least
	return s
}

// join divides each set between two stages.
func (x *division) join(a, b stage) stage {
	s := stage{least: make([]float64, x.sets), split: make([]int32, x.sets), parts: []stage{a, b}}
	for set := range x.sets {
		best, at := math.Inf(1), int32(0)
		for sub := set; ; sub = (sub - 1) & set {
			if v := b.least[sub] + a.least[set^sub]; v < best {
				best, at = v, int32(sub)
			}
			if sub == 0 {
				break
			}
		}
		s.least[set], s.split[set] = best, at
	}
	return s
}

// unfold calls drive for each drive of a set's division.
func (x *division) unfold(s *stage, set int, drive func(kind, set int)) {
	if s.parts != nil {
		x.unfold(&s.parts[0], set^int(s.split[set]), drive)
		x.unfold(&s.parts[1], int(s.split[set]), drive)
		return
	}
	for layer := len(s.layer) - 1; set != 0; layer-- {
		split := s.split
		if s.layer != nil {
			split = s.layer[layer].split
		}
		k := s.own
		if s.kind != nil {
			k = int(s.kind[split[set]])
		}
		drive(k, int(split[set]))
		set ^= int(split[set])
	}
}
