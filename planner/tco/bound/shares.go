package bound

import (
	"cmp"
	"math"
	"slices"

	"farflash/numeric/rng"
	"farflash/planner/tco"
)

// shares derives prices of workloads from prices of drive resources. If a drive is divided among many workloads,
// integrality matters little, and a linear program remains: for each class, span of first arrivals and piece of days of
// death, the least cost of a drive is divided among its wear, space and I/O, and a workload's price is its payment for
// its demand where that is lowest. No drive then costs less than the prices of its workloads, so a choice among many
// drives loses no precision. A part grows if workloads demand more of it than of the others (exponentiated gradients),
// and so does the rent of drives that are too few. Workloads are divided among drives of nearly equal cost, with a
// width that shrinks.
type shares struct {
	x      *relaxation
	order  []int // workloads in order of arrival
	last   []int // by workload in that order: the last span that it can be in
	pieces []share
	from   [][]int   // by class and span: start of its pieces, with a sentinel
	rent   []float64 // by class: the premium on its drives for being scarce
	hold   []float64 // by class: the excess of a drive's cost over the prices of its workloads, for being indivisible
	whole  float64   // what whole drives contribute to the sum by that
	taken  []float64 // by class: drives in demand
	value  []float64 // by workload
	terms  []float64
	near   [][]int32 // by workload in that order: pieces in which it pays little more than the minimum
}

// share is a piece of days of death of a class and a span.
type share struct {
	class    int
	from, to float64
	money    float64    // cost of a drive that dies on day from, without rent
	part     [3]float64 // shares of wear, space and I/O in it
	price    [3]float64 // per GB written to the NAND, per GB of space and per IOPS
	use      [3]float64 // the workloads' demand, in drives
	pull     [3]float64
}

// newShares divides the days of death at those of the relaxation's grid.
func (x *relaxation) newShares() *shares {
	b := &shares{x: x, rent: make([]float64, len(x.classes)), hold: make([]float64, len(x.classes)),
		taken: make([]float64, len(x.classes)), value: make([]float64, len(x.value))}
	for j := range x.value {
		b.order = append(b.order, j)
	}
	slices.SortStableFunc(b.order, func(i, j int) int { return cmp.Compare(x.arrive[i], x.arrive[j]) })
	at := 0
	for _, j := range b.order {
		for at+1 < len(x.spans) && x.arrive[j] >= x.spans[at+1][0] {
			at++
		}
		b.last = append(b.last, at)
	}
	for i := range x.classes {
		c := &x.classes[i]
		space, io := 0.0, 0.0
		for j := range x.value {
			space += c.space[j] / c.spaceMost
			io += c.io[j] / c.ioMost
		}
		var from []int
		for n, span := range x.spans {
			from = append(from, len(b.pieces))
			days := x.grid[i*len(x.spans)+n]
			begin := span[0]
			for k := range days {
				to := days[k].t
				last := k == len(days)-1
				if !(to > begin) || len(x.edges) > 0 && !last && slices.Contains(x.edges, to) && k%2 > 0 &&
					len(days) > mostDays {
					continue
				}
				b.add(i, begin, to, span, space, io)
				begin = to
			}
			if x.p.Config.Horizon == 0 {
				b.add(i, begin, math.Inf(1), span, space, io)
			}
		}
		b.from = append(b.from, append(from, len(b.pieces)))
	}
	return b
}

// mostDays is the number of days of death that are distinguished if many workloads end.
const mostDays = 40

// add adds a piece whose initial parts are proportional to the squares of the resources that all workloads together use
// of a drive.
func (b *shares) add(class int, from, to float64, span [2]float64, space, io float64) {
	x := b.x
	c := &x.classes[class]
	s := share{class: class, from: from, to: to, money: float64(c.c.Drive.Run * (from - span[1]))}
	if c.c.Optional {
		s.money += c.c.Drive.Buy
	}
	wear := 0.0
	for j := range x.value {
		wear += float64(max(0, min(from+float64(0.5*(min(to, 2*from+1)-from)), x.end[j])-x.arrive[j])*c.wear[j]) /
			c.budget
	}
	total := 0.0
	for k, v := range [3]float64{wear, space, io} {
		s.part[k] = float64(v*v) + 1e-300
		total += s.part[k]
	}
	for k := range s.part {
		s.part[k] = max(1e-3, s.part[k]/total)
	}
	b.pieces = append(b.pieces, s)
}

// prices computes the prices from the parts. Writing to a drive that may last forever must be so expensive that no
// workload gains by it.
func (b *shares) prices() {
	x := b.x
	for n := range b.pieces {
		e := &b.pieces[n]
		c := &x.classes[e.class]
		money := max(0, e.money+b.rent[e.class]-b.hold[e.class])
		e.price = [3]float64{float64(money*e.part[0]) / c.budget, float64(money*e.part[1]) / c.spaceMost,
			float64(money*e.part[2]) / c.ioMost}
		if math.IsInf(e.to, 1) {
			for j := range x.rate {
				if x.rate[j] > 0 && math.IsInf(x.end[j], 1) {
					e.price[0] = max(e.price[0], float64(x.r*x.rate[j])/c.wear[j]*(1+1e-12))
				}
			}
			// The remainder pays for space and I/O.
			left := max(0, money-float64(e.price[0]*c.budget))
			if rest := e.part[1] + e.part[2]; rest > 0 {
				e.price[1], e.price[2] = float64(left*e.part[1])/rest/c.spaceMost, float64(left*e.part[2])/rest/c.ioMost
			}
		}
	}
}

// sum computes the workloads' prices at the rate, and the lower bound on workloads and drives together. With a width it
// also computes the demand: a piece that costs a workload up to about that share of its price more than the minimum
// gets a part of it. Unless all is set, only the pieces that were near at the last full pass are evaluated, and the sum
// may be too high. slope is the increase of the sum per decrease of the rate.
func (b *shares) sum(width float64, all bool) (sum, slope float64) {
	x := b.x
	b.prices()
	for n := range b.pieces {
		b.pieces[n].use = [3]float64{}
	}
	if len(b.near) != len(b.order) {
		b.near, all = make([][]int32, len(b.order)), true
	}
	for rank, j := range b.order {
		if all {
			b.look(rank, j, max(3*width, nearly))
		}
		least, days := math.Inf(1), 0.0
		b.terms = b.terms[:0]
		for _, n := range b.near[rank] {
			u, live := b.term(&b.pieces[n], j)
			if b.terms = append(b.terms, u); u < least {
				least, days = u, live
			}
		}
		b.value[j] = least
		sum += least
		slope += float64(x.rate[j] * days)
		if width > 0 {
			b.take(rank, j, least, float64(width*math.Abs(least))+1e-300)
		}
	}
	sum += b.whole
	for i := range x.classes {
		c := x.classes[i].c
		low := b.low(i)
		if c.Optional {
			sum += float64(float64(c.Count) * low)
		} else {
			sum += float64(float64(c.Count) * (c.Drive.Buy + low))
		}
	}
	return sum, slope
}

// term is the payment of a workload in a piece, at the end of the piece where it pays less, and the number of days that
// it writes by then.
func (b *shares) term(e *share, j int) (u, live float64) {
	x := b.x
	c := &x.classes[e.class]
	k := float64(e.price[0]*c.wear[j]) - float64(x.r*x.rate[j])
	live = min(e.from, x.end[j]) - x.arrive[j]
	if k < 0 {
		live = min(e.to, x.end[j]) - x.arrive[j]
		if math.IsInf(live, 1) { // only by rounding
			live, k = 0, 0
		}
	}
	u = float64(k*live) + float64(e.price[1]*c.space[j])
	return u + float64(e.price[2]*c.io[j]), live
}

// look lists the pieces in which a workload pays the minimum or little more.
func (b *shares) look(rank, j int, within float64) {
	x := b.x
	a, least, scale := x.arrive[j], math.Inf(1), 0.0
	b.terms = b.terms[:0]
	near := b.near[rank][:0]
	for i := range x.classes {
		for n := b.from[i][0]; n < b.from[i][b.last[rank]+1]; n++ {
			e := &b.pieces[n]
			if e.to <= a {
				continue
			}
			u, live := b.term(e, j)
			if u < least {
				least, scale = u, math.Abs(u)+float64(float64(x.r*x.rate[j])*max(0, live))
			}
			if u <= least+float64(within*scale) {
				near, b.terms = append(near, int32(n)), append(b.terms, u)
			}
		}
	}
	most, n := least+float64(within*scale), 0
	for i, u := range b.terms {
		if u <= most {
			near[n] = near[i]
			n++
		}
	}
	b.near[rank] = near[:n]
}

// low is the least cost of a drive of a class minus the prices of its workloads: minus its rent, or less where prices
// are forced.
func (b *shares) low(class int) float64 {
	c := &b.x.classes[class]
	low := 0.0
	for n := b.from[class][0]; n < b.from[class][len(b.x.spans)]; n++ {
		e := &b.pieces[n]
		low = min(low, e.money-b.hold[class]-float64(e.price[0]*c.budget)-float64(e.price[1]*c.spaceMost)-
			float64(e.price[2]*c.ioMost))
	}
	return low
}

// take adds up a workload's demand on the pieces that cost it nearly the minimum.
func (b *shares) take(rank, j int, least, width float64) {
	x := b.x
	total := 0.0
	for i, u := range b.terms {
		b.terms[i] = max(0, 1-(u-least)/width)
		total += b.terms[i]
	}
	for i, n := range b.near[rank] {
		q := b.terms[i] / total
		if q == 0 {
			continue
		}
		e := &b.pieces[n]
		c := &x.classes[e.class]
		live := min(e.to, x.end[j]) - x.arrive[j]
		if math.IsInf(live, 1) || float64(e.price[0]*c.wear[j]) > float64(x.r*x.rate[j]) {
			live = max(0, min(e.from, x.end[j])-x.arrive[j])
		}
		e.use[0] += float64(float64(q*live)*c.wear[j]) / c.budget
		e.use[1] += float64(q*c.space[j]) / c.spaceMost
		e.use[2] += float64(q*c.io[j]) / c.ioMost
	}
}

// looks is the number of steps between full passes over all pieces.
const looks = 8

// nearly is the excess of a piece's cost, as a share of a workload's price and of the worth of its data, up to which
// the piece counts as near.
const nearly = 0.05

// raise makes the given number of steps towards prices with the largest sum, and keeps the best. From is the initial
// progress of the narrowing width, from 0 to 1.
func (b *shares) raise(steps int, from float64) {
	x := b.x
	most := math.Inf(-1)
	best, rent := slices.Clone(b.pieces), slices.Clone(b.rent)
	for n := range steps {
		done := from + float64((1-from)*float64(n))/float64(steps)
		all := n%looks == 0 || n == steps-1 || x.p.Config.Horizon == 0
		if f, _ := b.sum(float64(0.2*rng.Exp(-5*done)), all); all && f > most {
			most = f
			copy(best, b.pieces)
			copy(rent, b.rent)
		}
		step := float64(0.6 * rng.Exp(-4*done))
		for i := range x.classes {
			b.taken[i] = 0
		}
		for k := range b.pieces {
			e := &b.pieces[k]
			asked, mean := max(e.use[0], e.use[1], e.use[2]), 0.0
			for q := range e.pull {
				if asked > 0 {
					e.pull[q] = float64(0.6*e.pull[q]) + float64(0.4*e.use[q]/asked)
				}
				mean += float64(e.part[q] * e.pull[q])
			}
			b.taken[e.class] += float64(e.part[0]*e.use[0]) + float64(e.part[1]*e.use[1]) + float64(e.part[2]*e.use[2])
			total := 0.0
			for q := range e.part {
				e.part[q] = max(1e-6, float64(e.part[q]*rng.Exp(float64(step*(e.pull[q]-mean)))))
				total += e.part[q]
			}
			for q := range e.part {
				e.part[q] /= total
			}
		}
		for i := range x.classes {
			c := x.classes[i].c
			over := min(1, max(-1, b.taken[i]/float64(max(1, c.Count))-1))
			b.rent[i] = max(0, b.rent[i]+
				float64(float64(0.3*step*over)*(c.Drive.Buy+float64(c.Drive.Run*max(x.p.Config.Horizon, tco.Year)))))
		}
	}
	copy(b.pieces, best)
	copy(b.rent, rent)
}

// count reserves a share of the least cost of each class's drives for whole drives, and reports whether that is
// possible.
func (b *shares) count(part float64) bool {
	x := b.x
	for i := range x.classes {
		c := &x.classes[i]
		if !c.c.Optional || b.rent[i] > 0 {
			return false
		}
		low := math.Inf(1)
		for n := b.from[i][0]; n < b.from[i][len(x.spans)]; n++ {
			low = min(low, b.pieces[n].money)
		}
		b.hold[i] = max(0, float64(part*low))
	}
	b.whole = x.wholes(b.hold)
	return b.whole > 0
}

// clone copies the variables that determine the prices.
func (b *shares) clone() *shares {
	c := *b
	c.pieces, c.rent, c.hold, c.value = slices.Clone(b.pieces), slices.Clone(b.rent), slices.Clone(b.hold),
		slices.Clone(b.value)
	c.near, c.terms = nil, nil
	return &c
}

// refine halves the pieces that workloads use, unless they are short already, and reports whether it halved any.
func (b *shares) refine(within float64) bool {
	x := b.x
	some := false
	var pieces []share
	for i := range x.classes {
		for n := range x.spans {
			first := b.from[i][n]
			b.from[i][n] = len(pieces)
			for k := first; k < b.from[i][n+1]; k++ {
				e := b.pieces[k]
				long := e.to-e.from > within*e.to
				if !long || e.use == [3]float64{} || math.IsInf(e.to, 1) {
					pieces = append(pieces, e)
					continue
				}
				some = true
				const parts = 3
				for m := range parts {
					q := e
					lo := max(e.from, 1e-3*e.to)
					cut := func(m int) float64 { return float64(lo * rng.Pow(e.to/lo, float64(m)/parts)) }
					if q.from, q.to = cut(m), cut(m+1); m == 0 {
						q.from = e.from
					}
					if m == parts-1 {
						q.to = e.to
					}
					if q.to > q.from {
						q.money = e.money + float64(x.classes[i].c.Drive.Run*(q.from-e.from))
						pieces = append(pieces, q)
					}
				}
			}
		}
		b.from[i][len(x.spans)] = -1
	}
	b.pieces, b.near = pieces, nil
	for i := range x.classes {
		b.from[i][len(x.spans)] = len(pieces)
		if i+1 < len(x.classes) {
			b.from[i][len(x.spans)] = b.from[i+1][0]
		}
	}
	return some
}

// settle lowers the rate until the prices prove it and leaves the workloads' prices in the relaxation; it returns 0 if
// no rate is proven.
func (b *shares) settle(margin float64) (rate float64, proof [][]cell) {
	x := b.x
	for range 60 {
		sum, slope := b.sum(0, true)
		if sum >= margin {
			copy(x.value, b.value)
			proof = b.cells()
			if x.whole = b.whole > 0; x.total(proof) >= margin/2 {
				return x.r, proof
			}
			x.r *= 1 - 1e-9
			continue
		}
		less := (float64(1.5*margin)-sum)/max(slope, 1e-300) + float64(1e-12*x.r)
		if !(x.r > less) {
			return 0, nil
		}
		x.r -= less
	}
	return 0, nil
}

// cells converts the pieces to those of a proof.
func (b *shares) cells() [][]cell {
	x := b.x
	out := make([][]cell, len(x.grid))
	for i := range x.classes {
		for n, span := range x.spans {
			for k := b.from[i][n]; k < b.from[i][n+1]; k++ {
				e := &b.pieces[k]
				q := cell{Piece: tco.Piece{From: e.from, To: e.to, Wear: e.price[0], Space: e.price[1],
					IOPS: e.price[2]}}
				q.low = x.dual.lowest(&x.classes[i], x.value, span, &q.Piece)
				out[i*len(x.spans)+n] = append(out[i*len(x.spans)+n], q)
			}
		}
	}
	return out
}

// into initialises the prices of a relaxation's cells from these.
func (b *shares) into() {
	x := b.x
	for i := range x.classes {
		for n := range x.spans {
			days := x.grid[i*len(x.spans)+n]
			for k := range days {
				for m := b.from[i][n]; m < b.from[i][n+1]; m++ {
					if e := &b.pieces[m]; days[k].t <= e.to {
						days[k].q.Wear, days[k].q.Space, days[k].q.IOPS = e.price[0], e.price[1], e.price[2]
						break
					}
				}
			}
		}
	}
}
