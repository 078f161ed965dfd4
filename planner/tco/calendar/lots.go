package calendar

import (
	"math"
	"slices"

	"farflash/numeric/rng"
)

// A fleet consists of whole drives, each of which is replaced a whole number of times. If one class alone has many of
// both, a bound of rents, which buys a third of a drive and wears out half of another, is short by a drive or two. lots
// searches for the cheapest numbers of drives and successors that no cut excludes: neither rents, by their cost, nor
// prices, by their capacity (Benders, Numerische Mathematik 4(1), 1962, on what linear programs imply for whole
// numbers). It applies if all workloads are present on the day and none leaves, so that every drive in use is in use on
// the day.
//
// It leaves out that a workload is on one drive, that a drive's successors belong to it alone, and latency and domains
// except for the market's limits.
type lots struct {
	kinds []lot
	jobs  int
	// rents: the need at the prices of drives; a fleet costs its excess supply plus at least the need
	sound  []cut
	cuts   []cut // capacity
	limit  float64
	best   float64
	found  []int // drives and successors by kind
	now    []int
	nodes  int
	useful [][]float64 // by cut and kind: the supply per unit of money from this kind on, an upper limit
	spare  [][]float64 // likewise, of drives that cost no money
}

// lot is a class whose whole drives are counted.
type lot struct {
	x           *floored
	drive, life float64 // price of a drive, and of a successor
	count       int
}

// cut is the constraint that the weighted numbers of drives and successors are at least the need.
type cut struct {
	drive, life []float64
	need        float64
}

// Limits of the work: the combinations of numbers examined, the cuts generated and the steps for one cut.
const (
	mostCounts = 2_000_000
	mostCuts   = 80
	cutSteps   = 160
)

// byLots returns the bound of whole drives, or 0 if there is none.
func byLots(classes []floored, jobs int, m *market) float64 {
	s := &lots{jobs: jobs}
	for i := range classes {
		x := &classes[i]
		if !x.after || !(x.left > 0) {
			return 0
		}
		if x.c.Count > 0 && !math.IsInf(x.mass, 1) {
			s.kinds = append(s.kinds, lot{x: x, drive: x.once, life: x.successor, count: min(x.c.Count, jobs)})
		}
	}
	least := 0.0
	for _, r := range m.kept {
		c := s.rents(r, classes)
		s.sound = append(s.sound, c)
		least = max(least, s.floor(&c))
	}
	if !(least > 0) {
		return 0
	}
	s.now = make([]int, 2*len(s.kinds))
	bound := least
	for s.limit = float64(least * 1.01); len(s.cuts) < mostCuts; {
		s.search()
		switch {
		case s.nodes > mostCounts:
			return bound
		case s.found == nil:
			if bound = s.limit; bound > float64(2*least) {
				return bound
			}
			s.limit *= 1.01
			continue
		}
		c, ok := s.separate(s.found)
		if !ok {
			return max(bound, s.best)
		}
		s.cuts = append(s.cuts, c)
	}
	return bound
}

// floor is the least cost of any fleet by these rents.
func (s *lots) floor(c *cut) float64 {
	sum := c.need
	for k := range s.kinds {
		sum += float64(min(0, s.kinds[k].drive-c.drive[k]) * float64(s.kinds[k].count))
	}
	return sum
}

// rents is a cut by cost: the excess of a drive's cost over the rents of its contents is lost.
func (s *lots) rents(r []rents, classes []floored) cut {
	c := cut{drive: make([]float64, len(s.kinds)), life: make([]float64, len(s.kinds))}
	least := make([]float64, s.jobs)
	for j := range least {
		least[j] = math.Inf(1)
	}
	k := 0
	for i := range classes {
		if k == len(s.kinds) || s.kinds[k].x != &classes[i] {
			continue
		}
		x, q := &classes[i], &r[i]
		money := x.mass + q.scarce
		wear := 0.0
		for _, part := range q.part[len(x.limits):] {
			wear += float64(part*money) / x.left
		}
		c.drive[k], c.life[k] = money+x.stays, wear
		for j := range least {
			if !x.never[j] {
				// The running cost of a drive on and after the day is part of its cost; the running cost before the day
				// is not.
				late := float64(q.run*(x.runSpace[j]-x.restSpace[j])) + float64((1-q.run)*(x.runIO[j]-x.restIO[j]))
				held := float64(x.stays * (float64(q.run*x.space[j]) + float64((1-q.run)*x.io[j])))
				least[j] = min(least[j], x.charge(q, j)-late+min(late, held))
			}
		}
		k++
	}
	for _, v := range least {
		if !math.IsInf(v, 1) {
			c.need += v
		}
	}
	return c
}

// search finds the cheapest numbers below the limit.
func (s *lots) search() {
	s.useful, s.spare = s.useful[:0], s.spare[:0]
	for i := range s.cuts {
		useful, spare := make([]float64, len(s.kinds)+1), make([]float64, len(s.kinds)+1)
		for k := len(s.kinds) - 1; k >= 0; k-- {
			q := &s.kinds[k]
			useful[k], spare[k] = useful[k+1], spare[k+1]
			if q.drive > 0 {
				useful[k] = max(useful[k], s.cuts[i].drive[k]/q.drive)
			} else {
				spare[k] += float64(float64(q.count) * s.cuts[i].drive[k])
			}
			useful[k] = max(useful[k], s.cuts[i].life[k]/max(1e-9, q.life))
		}
		s.useful, s.spare = append(s.useful, useful), append(s.spare, spare)
	}
	s.best, s.found = s.limit, nil
	lost := make([]float64, len(s.sound))
	for i := range s.sound {
		lost[i] = s.floor(&s.sound[i])
	}
	s.look(0, 0, lost, make([]float64, len(s.cuts)))
}

// look tries numbers of the kinds from the k-th on, after spending money; least is the total cost by each rents, held
// the supply by each cut.
func (s *lots) look(k int, money float64, least, held []float64) {
	if k == len(s.kinds) {
		value := money
		for _, v := range least {
			value = max(value, v)
		}
		if value < s.best {
			s.best, s.found = value, slices.Clone(s.now)
		}
		return
	}
	q := &s.kinds[k]
	lost, more := make([]float64, len(least)), make([]float64, len(held))
	for n := 0; n <= q.count; n++ {
		first := money + float64(float64(n)*q.drive)
		if n > 0 && first >= s.best {
			break
		}
		for l := 0; l == 0 || n > 0; l++ {
			now := first + float64(float64(l)*q.life)
			if l > 0 && (now >= s.best || q.life <= 0) {
				break
			}
			if s.nodes++; s.nodes > mostCounts {
				return
			}
			ok := true
			for i := range least {
				c := &s.sound[i]
				away := q.drive - c.drive[k]
				lost[i] = least[i] + float64(float64(n)*away) - float64(min(0, away)*float64(q.count)) +
					float64(float64(l)*(q.life-c.life[k]))
				ok = ok && lost[i] < s.best
			}
			if !ok {
				if l > 0 {
					break // further successors cost more than they gain
				}
				continue
			}
			for i := range held {
				c := &s.cuts[i]
				more[i] = held[i] + float64(float64(n)*c.drive[k]) + float64(float64(l)*c.life[k])
				ok = ok && more[i]+s.spare[i][k+1]+float64((s.best-now)*s.useful[i][k+1]) >= c.need*(1-1e-9)
			}
			if ok {
				s.now[2*k], s.now[2*k+1] = n, l
				s.look(k+1, now, lost, more)
			}
		}
	}
	s.now[2*k], s.now[2*k+1] = 0, 0
}

// room is a resource of the drives of a kind, with each workload's demand for it.
type room struct {
	k    int
	list []float64 // by workload
	has  float64
	wear bool
}

// charge computes into out the payment of workload j on each kind if the whole of each room costs its weight, and
// returns the minimum. A kind without drives, or that cannot take it, costs infinity.
func (s *lots) charge(out []float64, rooms []room, weight []float64, numbers []int, j int) (least float64) {
	for k := range out {
		if out[k] = math.Inf(1); numbers[2*k] > 0 && !s.kinds[k].x.never[j] {
			out[k] = 0
		}
	}
	for v := range rooms {
		r := &rooms[v]
		out[r.k] += float64(weight[v] * r.list[j] / r.has)
	}
	return slices.Min(out)
}

// separate searches for prices at which the workloads' total demand exceeds the supply of the given numbers of drives
// and successors. The prices are weights of the resources, which grow with demand (multiplicative weights; Plotkin,
// Shmoys and Tardos, Mathematics of Operations Research 20(2), 1995). ok is false if it finds none.
func (s *lots) separate(numbers []int) (c cut, ok bool) {
	var rooms []room
	for k := range s.kinds {
		x := s.kinds[k].x
		n := float64(numbers[2*k])
		if n == 0 {
			continue
		}
		for _, list := range x.limits {
			rooms = append(rooms, room{k, list, n, false})
		}
		for _, list := range x.wears {
			rooms = append(rooms, room{k, list, float64(n*x.left) + float64(numbers[2*k+1]), true})
		}
	}
	weight, asked, charge := make([]float64, len(rooms)), make([]float64, len(rooms)), make([]float64, len(s.kinds))
	for v := range weight {
		weight[v] = 1 / float64(len(rooms))
	}
	var best []float64
	most := 1 + 1e-6
	for step := range cutSteps {
		done := float64(step) / cutSteps
		width := 0.2 * rng.Exp(-5*done)
		clear(asked)
		sum := 0.0
		for j := range s.jobs {
			least := s.charge(charge, rooms, weight, numbers, j)
			if math.IsInf(least, 1) {
				return s.hopeless(j), true
			}
			sum += least
			total, near := 0.0, float64(width*math.Abs(least))+1e-300
			for k, q := range charge {
				if charge[k] = 0; q-least <= float64(12*near) {
					charge[k] = rng.Exp(-(q - least) / near)
					total += charge[k]
				}
			}
			for v := range rooms {
				if r := &rooms[v]; charge[r.k] > 0 {
					asked[v] += float64(charge[r.k] / total * r.list[j] / r.has)
				}
			}
		}
		if sum > most {
			most, best = sum, slices.Clone(weight)
			if sum > 1.002 && step > 40 {
				break
			}
		}
		top := 1e-300
		for _, a := range asked {
			top = max(top, a)
		}
		all, rate := 0.0, 1.2*rng.Exp(-3*done)
		for v := range weight {
			weight[v] = max(1e-9, float64(weight[v]*rng.Exp(float64(rate*asked[v]/top))))
			all += weight[v]
		}
		for v := range weight {
			weight[v] /= all
		}
	}
	if best == nil {
		return c, false
	}
	// The cut of these prices. A kind without drives is priced so high that no workload would choose it.
	c = cut{drive: make([]float64, len(s.kinds)), life: make([]float64, len(s.kinds))}
	least := make([]float64, s.jobs)
	for j := range least {
		least[j] = s.charge(charge, rooms, best, numbers, j)
		c.need += least[j]
	}
	for v := range rooms {
		r := &rooms[v]
		p := best[v] / r.has
		if r.wear {
			c.life[r.k] += p
			c.drive[r.k] += float64(p * s.kinds[r.k].x.left)
		} else {
			c.drive[r.k] += p
		}
	}
	for k := range s.kinds {
		if numbers[2*k] == 0 {
			c.drive[k], c.life[k] = s.dear(k, least)
		}
	}
	return c, true
}

// dear is a price of a kind's drives and successors at which each workload pays no less there than elsewhere: by space,
// IOPS and wear together, or by some of them, whichever makes the drives cheapest.
func (s *lots) dear(k int, least []float64) (drive, life float64) {
	x := s.kinds[k].x
	drive = math.Inf(1)
	for pick := 1; pick < 8; pick++ {
		var lists [][]float64
		for i, list := range [][]float64{x.space, x.io, x.wears[0]} {
			if pick&(1<<i) != 0 {
				lists = append(lists, list)
			}
		}
		scale := 0.0
		for j, v := range least {
			if x.never[j] {
				continue
			}
			asked := 0.0
			for _, list := range lists {
				asked += list[j]
			}
			if asked < 0 { // a line of wear may be negative, and then no price of it suffices
				scale = math.Inf(1)
				break
			}
			scale = max(scale, v/max(asked, 1e-300))
		}
		if math.IsInf(scale, 1) {
			continue
		}
		worn := 0.0
		if pick&4 != 0 {
			worn = scale
		}
		if price := float64(scale*float64(len(lists))) - float64(worn*(1-x.left)); price < drive {
			drive, life = price, worn
		}
	}
	return drive, life
}

// hopeless is the cut for a workload that none of the present drives can take: one of the other kinds is needed.
func (s *lots) hopeless(j int) cut {
	c := cut{drive: make([]float64, len(s.kinds)), life: make([]float64, len(s.kinds)), need: 1}
	for k := range s.kinds {
		if !s.kinds[k].x.never[j] {
			c.drive[k] = 1
		}
	}
	return c
}
