package bound

import (
	"math"
)

// rents finds initial prices without a plan, for limits of wear alone. If a workload could be on several drives of a
// class that die on the same day, as long as those hold it once in total, a drive's price of wear would follow from its
// rent, which is the value it reaches: W v = C_I + c_M (T - T_I) - rent. A workload's price is then its payment on the
// drive that suits it best, and only one rent per class remains to be found, by Polyak's steps.
func (x *relaxation) rents(steps int) {
	n := len(x.classes)
	rent, best := make([]float64, n), make([]float64, n)
	pull := make([]float64, n)
	value := make([]float64, len(x.value))
	for i := range rent {
		// With these rents no workload has a price: the workload with the least wear uses all budgets.
		c := &x.classes[i]
		leanest := math.Inf(1)
		for j := range c.wear {
			if x.rate[j] > 0 {
				leanest = min(leanest, c.wear[j]/x.rate[j])
			}
		}
		rent[i] = c.c.Drive.Buy - float64(x.r*c.budget)/leanest
	}
	most, stride, stale := math.Inf(-1), 1.0, 0
	for range steps {
		for i := range pull {
			pull[i] = float64(x.classes[i].c.Count)
			if c := x.classes[i].c; c.Optional && x.most > 0 {
				if pull[i] = float64(x.least); rent[i] < 0 {
					pull[i] = float64(x.most)
				}
			}
		}
		f := 0.0
		for i := range rent {
			f += float64(pull[i] * rent[i])
		}
		for j := range value {
			least, of, wear := math.Inf(1), -1, 0.0
			for i := range x.classes {
				c := &x.classes[i]
				for s, span := range x.spans {
					if x.arrive[j] < span[0] {
						break
					}
					for k := range x.grid[i*len(x.spans)+s] {
						t := x.grid[i*len(x.spans)+s][k].t
						live := x.lived(j, t)
						if live <= 0 {
							continue
						}
						v := max(0, (c.c.Drive.Buy+float64(c.c.Drive.Run*(t-span[1]))-rent[i])/c.budget)
						if u := float64(live * (float64(v*c.wear[j]) - float64(x.r*x.rate[j]))); u < least {
							least, of, wear = u, i, live*c.wear[j]/c.budget
						}
					}
				}
			}
			if of >= 0 {
				value[j] = least
				f += least
				pull[of] -= wear
			}
		}
		if f > most {
			if f > most+float64(0.01*math.Abs(most)) {
				stale = 0
			}
			most = f
			copy(best, rent)
			copy(x.value, value)
		}
		if stale++; stale > 6 {
			stride, stale = stride*0.7, 0
			copy(rent, best)
			if stride < 1e-3 {
				return
			}
			continue
		}
		norm := 0.0
		for i := range pull {
			norm += float64(pull[i] * pull[i])
		}
		if norm == 0 || f >= 0 {
			return
		}
		for i := range rent {
			rent[i] += float64(float64(stride*-f) / norm * pull[i])
			if !x.classes[i].c.Optional {
				rent[i] = min(rent[i], x.classes[i].c.Drive.Buy)
			} else if x.most == 0 {
				rent[i] = min(rent[i], 0)
			}
		}
	}
}
