package bound

import (
	"math"
	"slices"

	"farflash/planner/tco"
)

// casesOf splits plans with drives of one class, bought as needed, by the number of drives: too few to hold the
// workloads, or enough. The relaxation alone would use 24.3 drives where 25 are needed.
func (d *dual) casesOf() []tco.Case {
	c := &d.classes[0]
	space, io := 0.0, 0.0
	for j := range c.space {
		space += c.space[j]
		io += c.io[j]
	}
	// Rounding must not add a drive to a sum that just fits.
	need := max(1, int(math.Ceil(space/c.spaceMost-1e-6)), int(math.Ceil(io/c.ioMost-1e-6)))
	return []tco.Case{{Least: 0, Most: need - 1, Impossible: true}, {Least: need, Most: c.c.Count}}
}

// relax initialises prices from a plan: per GB written, the price at which a drive gains by dying neither earlier nor
// later than it does; per GB of space, the price that then makes equal drives equally valuable; per workload, its cost
// on the drive that suits it best.
func (d *dual) relax(cfg tco.OptimiseConfig, spans int, host []int) *relaxation {
	n := len(d.p.Jobs)
	x := &relaxation{dual: d, spans: spansOf(d.arrive, spans), value: make([]float64, n), scale: make([]float64, n),
		share: make([]float64, n)}
	for i := range d.classes {
		for _, s := range x.spans {
			x.grid = append(x.grid, d.deathdays(&d.classes[i], s, cfg.Days))
		}
	}
	x.planned = make([]float64, n)
	x.suggest(host)
	total := 0.0
	for j, u := range x.value {
		x.scale[j] = math.Abs(u)
		total += math.Abs(u)
	}
	for j := range x.scale {
		x.scale[j] = max(x.scale[j], 0.1*total/float64(n), 1e-12)
	}
	return x
}

// suggest sets the workloads' prices from a plan.
func (x *relaxation) suggest(host []int) {
	p := x.p
	drives, class := p.Drives()
	type offer struct {
		class int
		t     float64
		q     tco.Piece
		rent  float64
	}
	a, err := tco.Assess(p.Config, drives, p.Jobs, host)
	if err != nil {
		panic("tco: " + err.Error())
	}
	rate, wear := make([]float64, len(drives)), make([]float64, len(drives))
	for j, k := range host {
		rate[k] += x.rate[j]
		wear[k] += x.classes[class[k]].wear[j]
	}
	var offers []offer
	dearest := make([]float64, len(p.Classes))
	for i := range dearest {
		dearest[i] = math.Inf(1)
	}
	for k := range drives {
		s := &a.Drives[k]
		if s.Workloads == 0 {
			continue
		}
		c := &x.classes[class[k]]
		o := offer{class: class[k], t: s.Death}
		if s.Limited && wear[k] > 0 {
			o.q.Wear = max(0, (float64(x.r*rate[k])-drives[k].Run)/wear[k])
		}
		o.rent = drives[k].Buy + float64(drives[k].Run*s.Lifetime) - float64(o.q.Wear*c.budget)
		dearest[class[k]] = min(dearest[class[k]], o.rent)
		offers = append(offers, o)
	}
	for i := range offers {
		o := &offers[i]
		c := &x.classes[o.class]
		if c.spaceTight {
			o.q.Space = (o.rent - min(0, dearest[o.class])) / c.spaceMost
			if !c.c.Optional {
				o.q.Space = (o.rent - dearest[o.class]) / c.spaceMost
			}
			o.q.Space = max(0, o.q.Space)
		}
	}
	for j := range x.value {
		least := math.Inf(1)
		for i := range offers {
			o := &offers[i]
			c := &x.classes[o.class]
			if o.t <= x.arrive[j] {
				continue
			}
			u := float64(x.lived(j, o.t)*(float64(o.q.Wear*c.wear[j])-float64(x.r*x.rate[j]))) +
				float64(o.q.Space*c.space[j])
			least = min(least, u)
		}
		if !math.IsInf(least, 1) {
			x.value[j] = least
		}
		x.planned[j] = x.lived(j, a.Drives[host[j]].Death)
	}
}

// cell is a piece under construction.
type cell struct {
	tco.Piece
	low float64 // lower bound on the value of a drive that dies within it
}

// price chooses the prices of a cell for the middle of its days, and evaluates the bound at its ends: in between it is
// concave.
func (x *relaxation) price(c *dualClass, span [2]float64, e *cell) {
	e.low = math.Inf(1)
	if e.To <= span[0] { // no drive dies before its first workload arrives
		return
	}
	if math.IsInf(e.To, 1) {
		e.Wear = 0
		for j := range x.rate {
			if x.rate[j] > 0 && math.IsInf(x.end[j], 1) {
				e.Wear = max(e.Wear, float64(x.r*x.rate[j])/c.wear[j])
			}
		}
		e.Wear *= 1 + 1e-12
		e.low = x.dual.least(c, x.value, span[0], span[1], e.From, e.To, &e.Piece)
		return
	}
	x.prices(c, x.value, span[0], e.From+float64((e.To-e.From)/2), e.To, &e.Piece, &x.s)
	e.low = min(x.dual.least(c, x.value, span[0], span[1], e.From, e.To, &e.Piece),
		x.dual.least(c, x.value, span[0], span[1], e.To, e.To, &e.Piece))
}

// cells returns cells that cover every day of death.
func (x *relaxation) cells() [][]cell {
	out := make([][]cell, len(x.grid))
	for n, days := range x.grid {
		c, span := &x.classes[n/len(x.spans)], x.spans[n%len(x.spans)]
		from := span[0]
		for i := range days {
			for _, e := range x.edges { // no workload ends within a cell
				if e > from && e < days[i].t {
					out[n] = append(out[n], cell{Piece: tco.Piece{From: from, To: e}})
					from = e
				}
			}
			out[n] = append(out[n],
				cell{Piece: tco.Piece{From: from, To: days[i].t, Space: days[i].q.Space, IOPS: days[i].q.IOPS}})
			from = days[i].t
		}
		if x.p.Config.Horizon == 0 {
			out[n] = append(out[n], cell{Piece: tco.Piece{From: from, To: math.Inf(1)}})
		}
		for i := range out[n] {
			x.price(c, span, &out[n][i])
		}
	}
	return out
}

// refine halves the cells of each class that attain its minimum, as long as that raises the minimum.
func (x *relaxation) refine(cells [][]cell, tolerance float64) {
	for i := range x.classes {
		c := &x.classes[i]
		mine := cells[i*len(x.spans) : (i+1)*len(x.spans)]
		for range 400 {
			low, at, of := math.Inf(1), -1, -1
			for s := range mine {
				for k := range mine[s] {
					if mine[s][k].low < low {
						low, of, at = mine[s][k].low, s, k
					}
				}
			}
			if of < 0 {
				break
			}
			e := mine[of][at]
			mid := e.From + float64((e.To-e.From)/2)
			if math.IsInf(e.To, 1) {
				mid = 2 * e.From
			}
			if !(mid > e.From && mid < e.To) || e.To-e.From < 1e-6*e.From {
				break
			}
			// The best that prices can reach on that very day, which limits any cell around it.
			here := tco.Piece{From: mid, To: mid, Space: e.Space, IOPS: e.IOPS}
			x.prices(c, x.value, x.spans[of][0], mid, e.To, &here, &x.s)
			roof := x.dual.least(c, x.value, x.spans[of][0], x.spans[of][1], mid, e.To, &here)
			if roof-low < tolerance {
				break
			}
			left, right := e, e
			left.To, right.From = mid, mid
			x.half(c, x.spans[of], &left, &e)
			x.half(c, x.spans[of], &right, &e)
			mine[of][at] = left
			mine[of] = slices.Insert(mine[of], at+1, right)
		}
	}
}

// half prices one half of a cell. It keeps the prices of the whole cell if they are better: with several limits,
// coordinate ascent may find worse ones.
func (x *relaxation) half(c *dualClass, span [2]float64, e, whole *cell) {
	x.price(c, span, e)
	if e.low >= whole.low {
		return
	}
	e.Wear, e.Space, e.IOPS = whole.Wear, whole.Space, whole.IOPS
	e.low = x.dual.least(c, x.value, span[0], span[1], e.From, e.To, &e.Piece)
	if !math.IsInf(e.To, 1) {
		e.low = min(e.low, x.dual.least(c, x.value, span[0], span[1], e.To, e.To, &e.Piece))
	}
}

// total is the sum that the cells prove at the present rate; if it is not negative, they are a proof.
func (x *relaxation) total(cells [][]cell) float64 {
	sum := 0.0
	for _, u := range x.value {
		sum += u
	}
	lows := make([]float64, len(x.classes))
	for i := range x.classes {
		c := &x.classes[i]
		least := math.Inf(1)
		for s := range x.spans {
			for _, e := range cells[i*len(x.spans)+s] {
				least = min(least, e.low)
			}
		}
		if x.whole {
			lows[i] = max(0, least)
			least = min(least, 0)
		}
		many := float64(c.c.Count)
		switch {
		case c.c.Optional && x.most > 0:
			if many = float64(x.least); least < 0 {
				many = float64(x.most)
			}
		case c.c.Optional:
			least = min(least, 0)
		default:
			least = min(least, c.c.Drive.Buy)
		}
		if many > 0 {
			sum += float64(many * least)
		}
	}
	if x.whole {
		sum += x.wholes(lows)
	}
	return sum
}

// reprice recomputes the prices of all cells for the present rate.
func (x *relaxation) reprice(cells [][]cell) {
	for n := range cells {
		for k := range cells[n] {
			x.price(&x.classes[n/len(x.spans)], x.spans[n%len(x.spans)], &cells[n][k])
		}
	}
}

// prove finds a high rate, up to the present one, that is proven by prices close to the workloads' present ones, and
// the cells of the proof. At a lower rate data are worth less, and so is a workload, by some part of its writes in the
// plan: all of them if drives reach their horizon, none if they wear out regardless of their workloads.
func (x *relaxation) prove(cost, data float64) (rate float64, proof [][]cell) {
	margin := float64(1e-9 * cost)
	from, prices := x.r, slices.Clone(x.value)
	var values []float64
	cells := x.cells()
	x.refine(cells, 1e-5*cost/float64(max(1, len(x.p.Jobs))))
	parts := []float64{0, 0.5, 1}
	if len(x.p.Jobs) > 500 { // each is slow; try the more promising one
		parts = parts[:1]
		if x.p.Config.Horizon > 0 {
			parts = []float64{1}
		}
	}
	for _, part := range parts {
		x.r = from
		copy(x.value, prices)
		now := make([][]cell, len(cells))
		for n := range cells {
			now[n] = slices.Clone(cells[n])
		}
		for range 40 {
			t := x.total(now)
			if t >= margin {
				if x.r > rate {
					rate, proof, values = x.r, now, slices.Clone(x.value)
				}
				break
			}
			less := 1.01*(float64(2*margin)-t)/data + float64(1e-12*x.r)
			if !(x.r-less > rate) {
				break
			}
			x.r -= less
			for j := range x.value {
				x.value[j] += float64(float64(part*less) * float64(x.rate[j]*x.planned[j]))
			}
			x.reprice(now)
			x.refine(now, 1e-4*cost/float64(max(1, len(x.p.Jobs))))
		}
	}
	if proof != nil {
		x.r = rate
		copy(x.value, values)
	}
	return rate, proof
}

// write stores a proof in a case.
func (x *relaxation) write(c *tco.Case, proof [][]cell) {
	c.Value, c.Whole = slices.Clone(x.value), x.whole
	c.Classes = nil
	for i := range x.classes {
		p := tco.ClassProof{Minorant: x.classes[i].minorant}
		for s, span := range x.spans {
			b := tco.Block{From: span[0], To: span[1]}
			for _, e := range proof[i*len(x.spans)+s] {
				b.Pieces = append(b.Pieces, e.Piece)
			}
			p.Blocks = append(p.Blocks, b)
		}
		c.Classes = append(c.Classes, p)
	}
}
