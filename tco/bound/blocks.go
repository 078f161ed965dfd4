package bound

import (
	"math"
	"slices"

	"farflash/rng"
)

// blocks finds prices of workloads from prices of what drives have. With a horizon and many workloads a drive is divided among so many
// that whole drives matter little: what is left is a linear program, with a price of a drive's wear, space and I/O for each class
// and each group of arrivals that it begins with. Together these are what a drive costs until it dies, and a workload's price is
// what it takes of the drive where it takes least, over the days on which a drive may die. The shares of the three in each drive's cost are raised where workloads ask
// for more of one (exponentiated gradients), and so is what drives cost of which there are too few.
type blocks struct {
	x     *relaxation
	order []int // workloads by arrival
	last  []int // by workload in that order: the last span that it may be in
	cells []resource
	from  [][]int   // by class and span: where its cells begin, with an end
	rent  []float64 // by class: what its drives cost more for being few
	taken []float64 // by class: drives that are asked for
	least []float64
}

// resource is what a drive of a class has that begins in a span and dies on a day, and its prices.
type resource struct {
	class int
	share [3]float64 // of wear, space and I/O in its cost
	cost  float64    // until it dies, without rent
	dies  float64
	use   [3]float64 // of wear, space and I/O by workloads, in drives
	pull  [3]float64
}

func (x *relaxation) newBlocks() *blocks {
	b := &blocks{x: x, rent: make([]float64, len(x.classes)), taken: make([]float64, len(x.classes)), least: make([]float64, len(x.value))}
	for j := range x.value {
		b.order = append(b.order, j)
	}
	slices.SortStableFunc(b.order, func(i, j int) int {
		switch {
		case x.arrive[i] < x.arrive[j]:
			return -1
		case x.arrive[i] > x.arrive[j]:
			return 1
		}
		return 0
	})
	at := 0
	for _, j := range b.order {
		for at+1 < len(x.spans) && x.arrive[j] >= x.spans[at+1][0] {
			at++
		}
		b.last = append(b.last, at)
	}
	for i := range x.classes {
		c := &x.classes[i]
		var from []int
		for n, span := range x.spans {
			from = append(from, len(b.cells))
			for _, day := range x.grid[i*len(x.spans)+n] {
				need, total := [3]float64{}, 0.0
				for j := range x.value {
					need[0] += float64(max(0, min(day.t, x.end[j])-x.arrive[j])*c.wear[j]) / c.budget
					need[1] += c.space[j] / c.spaceMost
					need[2] += c.io[j] / c.ioMost
				}
				for k := range need {
					need[k] = float64(need[k]*need[k]) + 1e-300
					total += need[k]
				}
				r := resource{class: i, cost: float64(c.c.Drive.Run * max(0, day.t-span[1])), dies: day.t}
				if c.c.Optional {
					r.cost += c.c.Drive.Buy
				}
				for k := range need {
					r.share[k] = max(1e-3, need[k]/total)
				}
				b.cells = append(b.cells, r)
			}
		}
		b.from = append(b.from, append(from, len(b.cells)))
	}
	return b
}

// value forms the workloads' prices at the rate, and the sum that they and the drives come to; with a direction also what is taken.
func (b *blocks) value(direction bool) float64 {
	x := b.x
	type prices struct{ wear, space, io, dies float64 }
	list := make([]prices, len(b.cells))
	for n := range b.cells {
		e := &b.cells[n]
		c := &x.classes[e.class]
		all := e.cost + b.rent[e.class]
		list[n] = prices{float64(all*e.share[0]) / c.budget, float64(all*e.share[1]) / c.spaceMost, float64(all*e.share[2]) / c.ioMost, e.dies}
		e.use = [3]float64{}
	}
	sum := 0.0
	for rank, j := range b.order {
		least, of := math.Inf(1), -1
		a, end := x.arrive[j], x.end[j]
		gain := float64(x.r * x.rate[j])
		for i := range x.classes {
			c := &x.classes[i]
			wear, space, io := c.wear[j], c.space[j], c.io[j]
			mine := list[b.from[i][0]:b.from[i][b.last[rank]+1]]
			for n := range mine {
				q := &mine[n]
				days := min(q.dies, end) - a
				if days <= 0 {
					continue
				}
				u := float64((float64(q.wear*wear)-gain)*days) + float64(q.space*space)
				if u += float64(q.io * io); u < least {
					least, of = u, b.from[i][0]+n
				}
			}
		}
		b.least[j] = least
		sum += least
		if direction && of >= 0 {
			e := &b.cells[of]
			c := &x.classes[e.class]
			e.use[0] += float64((min(e.dies, end)-a)*c.wear[j]) / c.budget
			e.use[1] += c.space[j] / c.spaceMost
			e.use[2] += c.io[j] / c.ioMost
		}
	}
	for i := range x.classes {
		if c := x.classes[i].c; c.Optional {
			sum -= float64(float64(c.Count) * b.rent[i])
		} else {
			sum += float64(float64(c.Count) * (c.Drive.Buy - b.rent[i]))
		}
	}
	return sum
}

// raise goes so many steps towards prices with the largest sum, and leaves the best in the relaxation.
func (b *blocks) raise(steps int) {
	x := b.x
	most := math.Inf(-1)
	best := slices.Clone(b.cells)
	rent := slices.Clone(b.rent)
	for n := range steps {
		if f := b.value(true); f > most {
			most = f
			copy(best, b.cells)
			copy(rent, b.rent)
			copy(x.value, b.least)
		}
		step := 0.5 / math.Sqrt(1+float64(0.25*float64(n)))
		for i := range x.classes {
			b.taken[i] = 0
		}
		for k := range b.cells {
			e := &b.cells[k]
			asked, mean := max(e.use[0], e.use[1], e.use[2]), 0.0
			for q := range e.pull {
				if asked > 0 {
					e.pull[q] = float64(0.7*e.pull[q]) + float64(0.3*e.use[q]/asked)
				}
				mean += float64(e.share[q] * e.pull[q])
			}
			b.taken[e.class] += float64(e.share[0]*e.use[0]) + float64(e.share[1]*e.use[1]) + float64(e.share[2]*e.use[2])
			total := 0.0
			for q := range e.share {
				e.share[q] = max(1e-6, float64(e.share[q]*rng.Exp(float64(step*(e.pull[q]-mean)))))
				total += e.share[q]
			}
			for q := range e.share {
				e.share[q] /= total
			}
		}
		for i := range x.classes {
			c := x.classes[i].c
			over := min(1, max(-1, b.taken[i]/float64(max(1, c.Count))-1))
			b.rent[i] = max(0, b.rent[i]+float64(float64(0.3*step*over)*(c.Drive.Buy+float64(c.Drive.Run*x.p.Config.Horizon))))
		}
	}
	copy(b.cells, best)
	copy(b.rent, rent)
}

// into gives the cells of a relaxation these prices to begin with.
func (b *blocks) into() {
	next := 0
	for i := range b.x.classes {
		c := &b.x.classes[i]
		for n := range b.x.spans {
			days := b.x.grid[i*len(b.x.spans)+n]
			for k := range days {
				e, q := &b.cells[next], &days[k].q
				all := e.cost + b.rent[i]
				q.Wear, q.Space, q.IOPS = float64(all*e.share[0])/c.budget, float64(all*e.share[1])/c.spaceMost, float64(all*e.share[2])/c.ioMost
				next++
			}
		}
	}
}
