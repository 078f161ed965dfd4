package bound

import (
	"math"
	"slices"

	"farflash/planner/tco"
	"farflash/policy/ftl/waf"
)

// slack is how far sums of shares may pass a limit that they meet but for rounding, as pools have it.
const slack = 1e-9

// dual is the Lagrangian relaxation of a problem at a rate r: a price on each workload takes the place of the rule
// that each has one drive, prices on wear, space and I/O that of the drives' limits.
type dual struct {
	p       *tco.Problem
	r       float64
	classes []dualClass
	arrive  []float64
	end     []float64 // +Inf: never
	rate    []float64 // GB a day from users
	edges   []float64 // ends of workloads, rising
}

// dualClass is what a class of drives asks of each workload.
type dualClass struct {
	c          *tco.Class
	minorant   []waf.MixPoint
	wear       []float64 // GB a day to the NAND, at least
	space      []float64
	io         []float64
	budget     float64 // GB that the NAND takes yet
	spaceMost  float64
	ioMost     float64
	spaceTight bool // all workloads together pass the limit
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
		x := dualClass{c: c, minorant: Minorant(c.Drive.WAF), wear: make([]float64, n), space: make([]float64, n),
			io:        make([]float64, n),
			budget:    c.Drive.Budget - c.Drive.Worn,
			spaceMost: float64(c.Drive.Capacity*p.Config.FillSpace) * (1 + slack),
			ioMost:    float64(c.Drive.IOPS*p.Config.FillIOPS) * (1 + slack)}
		space, io := 0.0, 0.0
		for j := range p.Jobs {
			w := &p.Jobs[j]
			x.wear[j] = c.Drive.Wearing(w) * AtKnots(x.minorant, w.Sequential)
			if w.End == 0 { // those that end leave their room to others
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

// AtKnots is the height of a line of knots.
func AtKnots(knots []waf.MixPoint, s float64) float64 {
	for i := 1; i < len(knots); i++ {
		if s <= knots[i].S {
			a, b := knots[i-1], knots[i]
			return a.WAF + float64((b.WAF-a.WAF)*((s-a.S)/(b.S-a.S)))
		}
	}
	return knots[len(knots)-1].WAF
}

// lived is for how many days a workload writes to a drive that dies at t.
func (d *dual) lived(j int, t float64) float64 { return min(t, d.end[j]) - d.arrive[j] }

// least is what a drive of class x reaches at least if its first workload comes from day `from` to day `to` and it
// dies at t, for the prices of a piece. Workloads that come before from or at before or later are not on it.
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

// lowest is what a drive reaches at least that dies within a piece. Each gain is a straight line in the day of death
// until its workload ends, and level from then on: of workloads that end within the piece the larger of both ends
// counts, and of the others the sum is concave.
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

// critical returns the price at which items, taken by falling ratio of worth to weight, fill a size: the ratio of the
// first that does not fit whole; 0 if all fit. It reorders them.
func critical(items []item, size float64) float64 {
	lo, hi := 0, len(items)
	for {
		if lo == hi {
			return 0
		}
		pivot := items[(lo+hi)/2].ratio
		// Those above the pivot to the front, those below to the end.
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

// scratch is memory for prices.
type scratch struct {
	items []item
	worth []float64
}

// prices chooses, for a drive that dies at t, prices that make least large: exact for one limit that binds, one
// coordinate at a time for several, from where q stands.
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
