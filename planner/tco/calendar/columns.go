package calendar

import (
	"math"

	"farflash/planner/tco/columns"
)

// Few workloads fill few drives, of which whole ones are bought and replaced: what rents of space, IOPS and wear do
// not see. Of so many workloads every set on every class is priced by what it costs at least, a number of successors
// at a time (package planner/tco/columns).

// mostColumns is up to how many workloads that is done.
const mostColumns = 64

// mostWearOuts is how many successors of a drive are told apart; more are paid by what is worn.
const mostWearOuts = 6

// byColumns is the bound of a few workloads, nothing if there are more.
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

// kind is a class by what its drives cost at least, for each number of wear-outs.
func (x *floored) kind(jobs int) columns.Kind {
	k := columns.Kind{Count: x.c.Count, Never: x.never}
	if math.IsInf(x.mass, 1) || x.c.Count == 0 { // there is nobody to use it
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
	worn := 0.0 // of all workloads together, by whichever line says most
	for _, w := range x.wears {
		wears = append(wears, notBelow0(w, x.wears[0]))
		worn = max(worn, sum(wears[len(wears)-1]))
	}
	for n := 0; ; n++ {
		m := columns.Mode{Cost: x.once + float64(float64(n)*x.successor), Limits: append([][]float64{}, x.limits...),
			Charge: running}
		if n == mostWearOuts {
			// Worn out more often than that: successors are more than the budgets that are worn less the first, which
			// is at most a share of these.
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

// notBelow0 mixes a line of wear, which may be below 0 for some workloads, with the main one, which is not, until it
// is not either: a mixture of lines below a write amplification is below it, but what is left out of a line, or
// raised to 0, is not. Knapsacks hold nothing that weighs less than nothing.
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
