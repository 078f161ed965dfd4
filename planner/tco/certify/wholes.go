package certify

import (
	"fmt"
	"math"

	"farflash/planner/tco"
	"farflash/policy/ftl/waf"
)

// mostCombinations is the number of combinations of drives that the checker examines.
const mostCombinations = 2_000_000

// checkWholes verifies that every combination of drives with capacity for all workloads that never end costs at least
// much, if each drive of class i costs each[i]. Every plan uses at least the drives of such a combination.
func checkWholes(p *tco.Problem, each []float64, much float64) error {
	n := len(p.Classes)
	space, io := make([]float64, n), make([]float64, n)
	var need, rush float64
	shares := make([][]ask, n)
	for i := range p.Classes {
		d := &p.Classes[i].Drive
		space[i], io[i] = d.Capacity*p.Config.FillSpace*(1+slack), d.IOPS*p.Config.FillIOPS*(1+slack)
		shares[i] = asks(p, d, []waf.MixPoint{{S: 0, WAF: 1}, {S: 1, WAF: 1}})
	}
	for j := range p.Jobs {
		room, rate := math.Inf(1), math.Inf(1)
		for i := range shares {
			room, rate = min(room, shares[i][j].space), min(rate, shares[i][j].io)
		}
		need, rush = need+room, rush+rate
	}
	looked := 0
	// Class by class: after i classes, need and rush are the remaining space and I/O.
	var from func(i int, need, rush, sum float64) error
	from = func(i int, need, rush, sum float64) error {
		if sum >= much {
			return nil
		}
		need, rush = max(0, need), max(0, rush)
		if need == 0 && rush == 0 {
			return fmt.Errorf("drives that hold all workloads reach %v, not %v", sum, much)
		}
		if looked++; looked > mostCombinations {
			return fmt.Errorf("more than %d combinations of drives", mostCombinations)
		}
		// The remainder costs no less than at the class with the most capacity for the money.
		cheapest := [2]float64{math.Inf(1), math.Inf(1)}
		for k := i; k < n; k++ {
			if p.Classes[k].Count > 0 {
				cheapest[0], cheapest[1] = min(cheapest[0], each[k]/space[k]), min(cheapest[1], each[k]/io[k])
			}
		}
		if i == n || need > 0 && sum+float64(need*cheapest[0]) >= much ||
			rush > 0 && sum+float64(rush*cheapest[1]) >= much {
			return nil
		}
		for have := 0; have <= p.Classes[i].Count; have++ {
			q := float64(have)
			if err := from(i+1, need-float64(q*space[i]), rush-float64(q*io[i]), sum+float64(q*each[i])); err != nil {
				return err
			}
			if need-float64(q*space[i]) <= 0 && rush-float64(q*io[i]) <= 0 || sum+float64(q*each[i]) >= much {
				break
			}
		}
		return nil
	}
	return from(0, need*(1-1e-9), rush*(1-1e-9), 0)
}
