package calendar

import (
	"math"

	"farflash/planner/tco/columns"
)

// A few workloads fill a few drives, which are bought and replaced as whole units; rents of space, IOPS and wear ignore
// that. For so few workloads, every set on every class is priced at its least cost, separately for each number of
// successors (package planner/tco/columns).

// mostColumns is the largest number of workloads for which that is done.
const mostColumns = 64

// mostWearOuts is the number of successors of a drive that are distinguished; further ones are charged in proportion to
// wear.
const mostWearOuts = 6

// byColumns returns the bound for a few workloads, or the zero Bound if there are more.
func byColumns(classes []floored, jobs int) (b columns.Bound) {
	if jobs > mostColumns {
		return b
	}
	var kinds []columns.Kind
	for i := range classes {
		kinds = append(kinds, classes[i].kind(jobs))
	}
	return columns.Solve(jobs, kinds)
}

// kind is a class with the least cost of its drives, for each number of wear-outs.
func (x *floored) kind(jobs int) columns.Kind {
	k := columns.Kind{Count: x.c.Count, Never: x.never}
	if math.IsInf(x.mass, 1) || x.c.Count == 0 { // no workload can use it
		k.Count = 0
		return k
	}
	running := make([]float64, jobs)
	space, io := 0.0, 0.0
	for j := range jobs {
		space, io = space+x.runSpace[j], io+x.runIO[j]
	}
	for j := range jobs {
		run, rest := x.runSpace[j], x.restSpace[j]
		if io > space {
			run, rest = x.runIO[j], x.restIO[j]
		}
		if x.after {
			run = rest
		}
		running[j] = run + x.load[j]
	}
	var wears [][]float64
	worn := 0.0 // of all workloads together, by the strictest line
	for _, w := range x.wears {
		wears = append(wears, notBelow0(w, x.wears[0]))
		worn = max(worn, sum(wears[len(wears)-1]))
	}
	for n := 0; ; n++ {
		m := columns.Mode{Cost: x.once + float64(float64(n)*x.successor), Limits: append([][]float64{}, x.limits...),
			Charge: running}
		if n == mostWearOuts {
			// Worn out more often than that: the successors number more than the worn budgets minus the first, which is
			// at most a share of these.
			share := float64(n-1) / (float64(n-1) + x.left)
			m.Cost, m.Charge = x.once, make([]float64, jobs)
			for j := range jobs {
				m.Charge[j] = running[j] + float64(float64(x.successor*share)*x.wears[0][j])
			}
			k.Modes = append(k.Modes, m)
			return k
		}
		budget := (float64(n) + x.left) * (1 + 1e-9)
		for _, w := range wears {
			list := make([]float64, jobs)
			for j := range list {
				list[j] = w[j] / budget
			}
			m.Limits = append(m.Limits, list)
		}
		k.Modes = append(k.Modes, m)
		if worn <= budget {
			return k
		}
	}
}

// notBelow0 mixes a line of wear, which may be negative for some workloads, with the main line, which is not, until the
// mixture is not negative either. A mixture of lines below a write amplification is below it; a line with terms omitted
// or raised to 0 is not. Knapsack weights must not be negative.
func notBelow0(line, main []float64) []float64 {
	share := 0.0
	for j, v := range line {
		if v < 0 {
			share = max(share, v/(v-main[j]))
		}
	}
	if share == 0 {
		return line
	}
	out := make([]float64, len(line))
	for j, v := range line {
		out[j] = max(0, float64((1-share)*v)+float64(share*main[j]))
	}
	return out
}
