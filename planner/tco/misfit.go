package tco

import (
	"fmt"
	"strings"
)

// misfits returns the indices of workloads that no class of drives can take even alone: for space, I/O or latency.
// Checking each workload alone needs no search, so a plan of thousands with one oversized workload is refused at once,
// and all such workloads are named together.
func (p *Problem) misfits() (list []int) {
	for j := range p.Jobs {
		w := &p.Jobs[j]
		takes := false
		for i := range p.Classes {
			if c := &p.Classes[i]; c.Count > 0 && p.takesAlone(&c.Drive, w) {
				takes = true
				break
			}
		}
		if !takes {
			list = append(list, j)
		}
	}
	return list
}

// takesAlone reports whether an empty drive has capacity for a workload, up to rounding.
func (p *Problem) takesAlone(d *Drive, w *Workload) bool {
	const slack = 1 + roundOff
	most := p.most(w)
	load := d.Load(w)
	if float64(w.WorkingSet*most) > float64(d.Capacity*p.Config.FillSpace)*slack ||
		float64(load*most) > float64(d.IOPS*p.Config.FillIOPS)*slack {
		return false
	}
	var alone Group
	alone.Join(d, w, 1)
	return alone.Late(d, load) <= slack
}

// namedMisfits is the number of misfits that an error names.
const namedMisfits = 5

// refuse returns the error for workloads that no drive can take.
func (p *Problem) refuse(list []int) *Infeasible {
	w := &p.Jobs[list[0]]
	drives, _ := p.Drives()
	e := p.obstacle(drives, w)
	if !e.Proven || e.Workload != w.Name {
		e.Workload, e.Obstacle, e.Remedy = w.Name, NoIOPS,
			fmt.Sprintf("no drive has both its %.6g GB and its %.6g I/Os a second", w.WorkingSet*p.most(w),
				w.PeakIOPS*p.most(w))
		if p.slow(w) {
			e.Obstacle, e.Remedy = TooSlow,
				"no drive with space for it meets its p99, even alone; relax the p99"
		}
	}
	e.Proven = true
	if more := len(list) - 1; more > 0 {
		names := make([]string, 0, namedMisfits)
		for _, j := range list[1:min(len(list), namedMisfits+1)] {
			names = append(names, p.Jobs[j].Name)
		}
		e.Remedy += fmt.Sprintf("; no drive is large enough for %d more either: %s", more, strings.Join(names, ", "))
		if more > namedMisfits {
			e.Remedy += " and others"
		}
	}
	return e
}

// slow reports whether a workload would fit on some drive but for its latency limit.
func (p *Problem) slow(w *Workload) bool {
	patient := *w
	patient.P99 = 0
	for i := range p.Classes {
		if p.Classes[i].Count > 0 && p.takesAlone(&p.Classes[i].Drive, &patient) {
			return true
		}
	}
	return false
}
