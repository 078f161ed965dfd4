package bound

import (
	"math"
	"slices"

	"farflash/planner/tco"
	"farflash/policy/ftl/waf"
)

// slack is the relative excess of a limit that is attributed to rounding of a sum of shares, as in pools.
const slack = 1e-9

// dual is the Lagrangian relaxation of a problem at a rate r: prices on workloads replace the constraint that each has
// one drive; prices on wear, space and I/O replace the drives' limits.
type dual struct {
	p       *tco.Problem
	r       float64
	classes []dualClass
	arrive  []float64
	end     []float64 // +Inf: never
	rate    []float64 // GB per day from users
	edges   []float64 // ends of workloads, ascending
}

// dualClass is the demand of each workload on a class of drives.
type dualClass struct {
	c          *tco.Class
	minorant   []waf.MixPoint
	wear       []float64 // GB per day to the NAND, a lower bound
	space      []float64
	io         []float64
	budget     float64 // GB of write budget left
	spaceMost  float64
	ioMost     float64
	spaceTight bool // the sum over all workloads exceeds the limit
	ioTight    bool
}

func newDual(p *tco.Problem) *dual {
	n := len(p.Jobs)
	d := &dual{p: p, arrive: make([]float64, n), end: make([]float64, n), rate: make([]float64, n)}
	for j := range p.Jobs {
		w := &p.Jobs[j]
		d.arrive[j], d.end[j], d.rate[j] = w.Arrival, math.Inf(1), w.WriteRate
		if w.End > 0 {
			d.end[j] = w.End
			d.edges = append(d.edges, w.End)
		}
	}
	slices.Sort(d.edges)
	d.edges = slices.Compact(d.edges)
	for i := range p.Classes {
		c := &p.Classes[i]
		x := dualClass{c: c, minorant: minorant(c.Drive.WAF), wear: make([]float64, n), space: make([]float64, n),
			io:        make([]float64, n),
			budget:    c.Drive.Budget - c.Drive.Worn,
			spaceMost: float64(c.Drive.Capacity*p.Config.FillSpace) * (1 + slack),
			ioMost:    float64(c.Drive.IOPS*p.Config.FillIOPS) * (1 + slack)}
		space, io := 0.0, 0.0
		for j := range p.Jobs {
			w := &p.Jobs[j]
			x.wear[j] = c.Drive.Wearing(w) * AtKnots(x.minorant, w.Sequential)
			if w.End == 0 { // one that ends leaves its capacity to others
				x.space[j], x.io[j] = w.WorkingSet, c.Drive.Load(w)
			}
			space += x.space[j]
			io += x.io[j]
		}
		x.spaceTight, x.ioTight = space > x.spaceMost, io > x.ioMost
		d.classes = append(d.classes, x)
	}
	return d
}

// AtKnots interpolates a piecewise-linear function.
func AtKnots(knots []waf.MixPoint, s float64) float64 {
	for i := 1; i < len(knots); i++ {
		if s <= knots[i].S {
			a, b := knots[i-1], knots[i]
			return a.WAF + float64((b.WAF-a.WAF)*((s-a.S)/(b.S-a.S)))
		}
	}
	return knots[len(knots)-1].WAF
}

// lived is the number of days for which a workload writes to a drive that dies at t.
func (d *dual) lived(j int, t float64) float64 { return min(t, d.end[j]) - d.arrive[j] }

// least is a lower bound on the value of a drive of class x, at the prices of a piece, if its first workload arrives
// from day `from` to day `to` and it dies at t. Workloads that arrive before from, or at before or later, are not on
// it.
func (d *dual) least(x *dualClass, value []float64, from, to, t, before float64, q *tco.Piece) float64 {
	sum := x.c.Drive.Buy + float64(x.c.Drive.Run*(t-to))
	sum -= float64(q.Wear*x.budget) + float64(q.Space*x.spaceMost)
	sum -= float64(q.IOPS * x.ioMost)
	for j, u := range value {
		a := d.arrive[j]
		if a < from || a >= before {
			continue
		}
		live := min(t, d.end[j]) - a
		term := -u + float64(live*(float64(q.Wear*x.wear[j])-float64(d.r*d.rate[j])))
		term += float64(q.Space*x.space[j]) + float64(q.IOPS*x.io[j])
		if term < 0 {
			sum += term
		}
	}
	return sum
}

// lowest is a lower bound on the value of a drive that dies within a piece. Each gain is linear in the day of death
// until its workload ends, and constant from then on. Of a workload that ends within the piece the larger of the values
// at both ends counts; the sum of the others is concave.
func (d *dual) lowest(x *dualClass, value []float64, span [2]float64, q *tco.Piece) float64 {
	if q.To <= span[0] {
		return math.Inf(1)
	}
	fixed := -float64(q.Wear*x.budget) - float64(q.Space*x.spaceMost) - float64(q.IOPS*x.ioMost) + x.c.Drive.Buy
	at := [2]float64{float64(x.c.Drive.Run * (q.From - span[1])), float64(x.c.Drive.Run * (q.To - span[1]))}
	ends := 2
	if math.IsInf(q.To, 1) {
		ends = 1
	}
	for j, u := range value {
		a, end := d.arrive[j], d.end[j]
		if a < span[0] || a >= q.To {
			continue
		}
		var gain [2]float64
		for n := range ends {
			t := q.From
			if n > 0 {
				t = q.To
			}
			live := min(t, end) - a
			gain[n] = u - float64(live*(float64(q.Wear*x.wear[j])-float64(d.r*d.rate[j]))) -
				float64(q.Space*x.space[j]) - float64(q.IOPS*x.io[j])
		}
		if ends == 2 && end > q.From && end < q.To {
			fixed -= max(0, gain[0], gain[1])
			continue
		}
		for n := range ends {
			at[n] -= max(0, gain[n])
		}
	}
	if ends == 1 {
		return fixed + at[0]
	}
	return fixed + min(at[0], at[1])
}

// item is a workload in a knapsack.
type item struct{ ratio, weight float64 }

// critical returns the price at which items, taken in descending order of ratio of worth to weight, fill a size: the
// ratio of the first that does not fit entirely; 0 if all fit. It reorders items.
func critical(items []item, size float64) float64 {
	lo, hi := 0, len(items)
	for {
		if lo == hi {
			return 0
		}
		pivot := items[(lo+hi)/2].ratio
		// Three-way partition: those above the pivot to the front, those below to the end.
		i, j, k := lo, lo, hi
		above, same := 0.0, 0.0
		for j < k {
			switch r := items[j].ratio; {
			case r > pivot:
				above += items[j].weight
				items[i], items[j] = items[j], items[i]
				i++
				j++
			case r < pivot:
				k--
				items[j], items[k] = items[k], items[j]
			default:
				same += items[j].weight
				j++
			}
		}
		switch {
		case above > size:
			hi = i
		case above+same > size:
			return pivot
		default:
			size -= above + same
			lo = k
		}
	}
}

// scratch is reusable memory for prices.
type scratch struct {
	items []item
	worth []float64
}

// prices chooses, for a drive that dies at t, prices that maximise least: exactly if one limit binds, otherwise by
// coordinate ascent from q.
func (d *dual) prices(x *dualClass, value []float64, from, t, before float64, q *tco.Piece, s *scratch) {
	s.worth = s.worth[:0]
	for j, u := range value {
		w := math.Inf(-1)
		if a := d.arrive[j]; a >= from && a < before {
			w = u + float64(d.lived(j, t)*float64(d.r*d.rate[j]))
		}
		s.worth = append(s.worth, w)
	}
	fill := func(size float64, weight, rest func(j int) float64) float64 {
		s.items = s.items[:0]
		sum := 0.0
		for j, w := range s.worth {
			if math.IsInf(w, -1) {
				continue
			}
			if left := w - rest(j); left > 0 {
				if b := weight(j); b > 0 {
					s.items = append(s.items, item{left / b, b})
					sum += b
				}
			}
		}
		if sum <= size {
			return 0
		}
		return critical(s.items, size)
	}
	wear := func(j int) float64 { return float64(d.lived(j, t) * x.wear[j]) }
	rounds := 1
	if x.spaceTight || x.ioTight {
		rounds = 3
	}
	for range rounds {
		was := *q
		q.Wear = fill(x.budget, wear,
			func(j int) float64 { return float64(q.Space*x.space[j]) + float64(q.IOPS*x.io[j]) })
		if x.spaceTight {
			q.Space = fill(x.spaceMost, func(j int) float64 { return x.space[j] },
				func(j int) float64 { return float64(q.Wear*wear(j)) + float64(q.IOPS*x.io[j]) })
		}
		if x.ioTight {
			q.IOPS = fill(x.ioMost, func(j int) float64 { return x.io[j] },
				func(j int) float64 { return float64(q.Wear*wear(j)) + float64(q.Space*x.space[j]) })
		}
		if *q == was {
			break
		}
	}
}
