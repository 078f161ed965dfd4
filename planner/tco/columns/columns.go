// Package columns computes a lower bound on the cost of dividing a few dozen items among bins: the linear program over
// every set that a bin can hold.
//
// Its main types are Kind, bins that exist or can be had, with the Modes that a bin can be in; and Bound, prices of the
// items that no bin undercuts. The program is solved by column generation: a simplex over the known sets and, at its
// prices, the most valuable set, a knapsack with several limits, by branch and bound. If the knapsack search is cut
// short, its upper bound is used instead, so the result is a bound at any effort. It is far tighter than prices of the
// limits alone if few items fill a bin (Gilmore and Gomory, Operations Research 9(6), 1961; for the bound at prices
// that are not final: Farley, Operations Research 38(5), 1990).
//
// It leaves out which division is the best.
package columns

import (
	"cmp"
	"math"
	"slices"
)

// Mode is a state of a bin: its cost, its limits, and the charges of items in it.
type Mode struct {
	Cost   float64     // positive, unless the kind is scarce
	Limits [][]float64 // by limit and item: of the items in a bin, each limit's sum is at most 1
	Charge []float64   // by item: its additional cost, 0 or more
}

// Kind is a set of identical bins.
type Kind struct {
	Count int // a number not below that of the items means unlimited
	Modes []Mode
	Never []bool // by item: no bin can hold it
}

// Bound is a lower bound on the cost of any division. The Values of a set of items, minus the kind's Scarce, do not
// exceed the cost of a bin with those items and their charges, in any mode.
type Bound struct {
	Least  float64 // sum of the values, minus Scarce for each bin of a kind
	Value  []float64
	Scarce []float64
}

// Limits of the work: the total number of knapsacks, and the branches of each.
const (
	mostRounds   = 400
	mostBranches = 4000
)

// solver is a simplex over the known columns, with the inverse of its basis.
type solver struct {
	items   int
	kinds   []Kind
	rowOf   []int // row of a scarce kind; -1: none
	inverse [][]float64
	costs   []float64 // of the columns in the basis
	level   []float64 // value of each
	prices  []float64 // of rows
	best    Bound
}

// Solve returns the best bound found; Least is 0 if none is positive.
func Solve(items int, kinds []Kind) Bound {
	s := &solver{items: items, kinds: kinds}
	s.begin()
	for range mostRounds {
		s.price()
		if !s.improve() {
			break
		}
	}
	return s.best
}

// begin starts with an expensive bin for each item, and no bins of scarce kinds.
func (s *solver) begin() {
	rows := s.items
	for k := range s.kinds {
		s.rowOf = append(s.rowOf, -1)
		if s.kinds[k].Count < s.items {
			s.rowOf[k] = rows
			rows++
		}
	}
	dear := 0.0
	for k := range s.kinds {
		for m := range s.kinds[k].Modes {
			x := &s.kinds[k].Modes[m]
			dear = max(dear, x.Cost)
			for _, c := range x.Charge {
				dear = max(dear, x.Cost+c)
			}
		}
	}
	s.inverse, s.costs, s.level, s.prices = make([][]float64, rows), make([]float64, rows), make([]float64, rows),
		make([]float64, rows)
	for i := range rows {
		s.inverse[i] = make([]float64, rows)
		s.inverse[i][i] = 1
		if s.level[i] = 1; i < s.items {
			s.costs[i] = 4 * dear
		}
	}
	for k, r := range s.rowOf {
		if r >= 0 {
			s.level[r] = float64(s.kinds[k].Count)
		}
	}
	s.best = Bound{Value: make([]float64, s.items), Scarce: make([]float64, len(s.kinds))}
}

// price computes the rows' prices. An item may be in several bins, so its price is not negative, and that of a scarce
// kind is not positive.
func (s *solver) price() {
	for r := range s.prices {
		sum := 0.0
		for i := range s.costs {
			sum += float64(s.costs[i] * s.inverse[i][r])
		}
		s.prices[r] = sum
	}
}

// improve searches for columns that the prices undervalue, keeps the bound that follows from them, and enters the best
// one into the basis. It returns false if there is none.
func (s *solver) improve() bool {
	scale := 1.0
	scarce := make([]float64, len(s.kinds))
	least, entering, of := -1e-9, []int(nil), 0
	cost := 0.0
	worth := make([]float64, s.items)
	for k := range s.kinds {
		for m := range s.kinds[k].Modes {
			x := &s.kinds[k].Modes[m]
			for j := range worth {
				if worth[j] = max(0, s.prices[j]); x.Charge != nil {
					worth[j] -= x.Charge[j]
				}
				if s.kinds[k].Never[j] {
					worth[j] = 0
				}
			}
			set, value, most := knapsack(worth, x.Limits)
			if s.rowOf[k] >= 0 {
				scarce[k] = max(scarce[k], most-x.Cost)
			} else if most > x.Cost {
				scale = min(scale, x.Cost/most)
			}
			reduced := x.Cost - value
			if r := s.rowOf[k]; r >= 0 {
				reduced -= min(0, s.prices[r])
			}
			if reduced < least {
				least, entering, of, cost = reduced, set, k, x.Cost
				for _, j := range set {
					if x.Charge != nil {
						cost += x.Charge[j]
					}
				}
			}
		}
	}
	s.keep(scale, scarce)
	if entering == nil || least > -1e-7*s.dearest() {
		return false
	}
	return s.enter(entering, of, cost)
}

// keep derives a bound from the prices, corrected for their excess.
func (s *solver) keep(scale float64, scarce []float64) {
	sum := 0.0
	for j := range s.items {
		sum += float64(max(0, s.prices[j]) * scale)
	}
	for k, v := range scarce {
		if s.rowOf[k] >= 0 {
			sum -= float64(v * float64(s.kinds[k].Count))
		}
	}
	if !(sum > s.best.Least) {
		return
	}
	s.best.Least = sum
	for j := range s.items {
		s.best.Value[j] = float64(max(0, s.prices[j]) * scale)
	}
	copy(s.best.Scarce, scarce)
}

// dearest is the highest price.
func (s *solver) dearest() float64 {
	most := 0.0
	for _, p := range s.prices {
		most = max(most, p)
	}
	return most
}

// enter adds a column to the basis; it returns false if the column is unbounded, or if rounding dominates.
func (s *solver) enter(set []int, kind int, cost float64) bool {
	rows := len(s.level)
	d := make([]float64, rows)
	for i := range d {
		for _, j := range set {
			d[i] += s.inverse[i][j]
		}
		if r := s.rowOf[kind]; r >= 0 {
			d[i] += s.inverse[i][r]
		}
	}
	leaving, least := -1, math.Inf(1)
	for i, v := range d {
		if v > 1e-9 {
			if ratio := s.level[i] / v; ratio < least-1e-12 || ratio < least+1e-12 && (leaving < 0 || v > d[leaving]) {
				leaving, least = i, ratio
			}
		}
	}
	if leaving < 0 {
		return false
	}
	pivot := d[leaving]
	for r := range rows {
		s.inverse[leaving][r] /= pivot
	}
	s.level[leaving] /= pivot
	for i := range rows {
		if i == leaving || d[i] == 0 {
			continue
		}
		for r := range rows {
			s.inverse[i][r] -= float64(d[i] * s.inverse[leaving][r])
		}
		s.level[i] = max(0, s.level[i]-float64(d[i]*s.level[leaving]))
	}
	s.costs[leaving] = cost
	return true
}

// sack is a knapsack's items by worth over weight, with all limits combined.
type sack struct {
	items    []int
	worth    []float64
	weight   []float64 // all limits combined: a set that fits weighs at most 1
	limits   [][]float64
	used     []float64
	taken    []int
	best     []int
	value    float64
	most     float64 // upper limit on the worth of the branches that were cut off
	branches int
}

// knapsack returns the most valuable set found, its value, and an upper limit on the value of any set.
func knapsack(worth []float64, limits [][]float64) (set []int, value, most float64) {
	s := &sack{}
	all := 0.0
	for j, w := range worth {
		fits := w > 0
		for _, l := range limits {
			fits = fits && l[j] <= 1+1e-9
		}
		if fits {
			s.items = append(s.items, j)
			all += w
		}
	}
	if len(s.items) == 0 {
		return nil, 0, 0
	}
	// Weight the limits by their scarcity: a few steps towards weights that minimise the fractional knapsack.
	parts := make([]float64, len(limits))
	for v := range parts {
		parts[v] = 1 / float64(len(parts))
	}
	weight, least := make([]float64, len(worth)), math.Inf(1)
	for range 24 {
		for _, j := range s.items {
			weight[j] = 1e-12
			for v, l := range limits {
				weight[j] += float64(parts[v] * l[j])
			}
		}
		order := slices.Clone(s.items)
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(worth[b]/weight[b], worth[a]/weight[a]) })
		room, at := 1+1e-9, 0.0
		asked := make([]float64, len(limits))
		for _, j := range order {
			part := min(1, room/weight[j])
			at += float64(part * worth[j])
			for v, l := range limits {
				asked[v] += float64(part * l[j])
			}
			if room -= float64(part * weight[j]); part < 1 {
				break
			}
		}
		if at < least {
			least = at
			s.items, s.weight = order, slices.Clone(weight)
		}
		sum := 0.0
		for v := range parts {
			parts[v] = max(1e-6, float64(parts[v]*min(4, max(0.25, asked[v]+0.2))))
			sum += parts[v]
		}
		for v := range parts {
			parts[v] /= sum
		}
	}
	s.worth, s.limits, s.used = worth, limits, make([]float64, len(limits))
	s.branch(0, 0, 1+1e-9)
	return s.best, s.value, max(s.value, min(all, s.most))
}

// branch examines the items from the at-th on, with the value so far and the remaining room.
func (s *sack) branch(at int, value, room float64) {
	if value > s.value {
		s.value, s.best = value, slices.Clone(s.taken)
	}
	// The fractional relaxation bounds the value of the remainder.
	bound, left := value, room
	for _, j := range s.items[at:] {
		if s.weight[j] > left {
			bound += float64(s.worth[j] * left / s.weight[j])
			break
		}
		bound, left = bound+s.worth[j], left-s.weight[j]
	}
	if enough := float64(s.value*(1+1e-9)) + 1e-12; at == len(s.items) || bound <= enough {
		s.most = max(s.most, min(bound, enough))
		return
	}
	if s.branches++; s.branches > mostBranches {
		s.most = max(s.most, bound)
		return
	}
	j := s.items[at]
	fits := true
	for v, l := range s.limits {
		fits = fits && s.used[v]+l[j] <= 1+1e-9
	}
	if fits {
		for v, l := range s.limits {
			s.used[v] += l[j]
		}
		s.taken = append(s.taken, j)
		s.branch(at+1, value+s.worth[j], room-s.weight[j])
		s.taken = s.taken[:len(s.taken)-1]
		for v, l := range s.limits {
			s.used[v] -= l[j]
		}
	}
	s.branch(at+1, value, room)
}
