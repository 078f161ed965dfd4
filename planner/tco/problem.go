package tco

import (
	"fmt"
	"math"
)

// Class is a set of identical drives: options for a plan, or drives already owned.
type Class struct {
	Drive Drive
	Count int // number of drives that exist or can be bought
	// Optional drives are paid for only if they get a workload. The others are already bought.
	Optional bool
}

// Problem is the input of a plan with hindsight: every arrival is known, and every workload must have a drive.
type Problem struct {
	Config  Config
	Classes []Class
	Jobs    []Workload
	// Pricer prices a drive with its workloads, and the plan with the least total cost is best; nil: the least cost per
	// GB by equation 3.
	Pricer Pricer
}

// Pricer prices a drive with all workloads that are ever on it. Optimise calls it from one goroutine, several hundred
// thousand times.
type Pricer interface {
	// Price returns the cost of a drive with the listed workloads, in order of arrival, and the amount by which it
	// exceeds its limits: 0 if they all fit, otherwise the sum of the excess shares. If there is set, the drive is
	// bought on day 0 regardless of its workloads; without workloads, cost is that of leaving it unused.
	Price(d *Drive, there bool, jobs []Workload, list []int32) (cost, over float64)
	// Written is the number of GB that a workload writes in the plan.
	Written(w *Workload) float64
	// Most is the largest growth of a workload's space and I/Os, relative to its arrival.
	Most(w *Workload) float64
}

// mostDrives limits the size of a problem.
const mostDrives = 1_000_000

// Check validates the problem.
func (p *Problem) Check() error {
	if len(p.Classes) == 0 || len(p.Jobs) == 0 {
		return fmt.Errorf("%d classes of drives and %d workloads; a plan needs at least one of each", len(p.Classes),
			len(p.Jobs))
	}
	n := 0
	for i := range p.Classes {
		c := &p.Classes[i]
		if err := checkInput(p.Config, []Drive{c.Drive}, nil); err != nil {
			return err
		}
		if c.Count < 0 || n+c.Count > mostDrives {
			return fmt.Errorf("%d drives of class %s; there can be up to %d in all", c.Count, c.Drive.Name, mostDrives)
		}
		n += c.Count
	}
	for j := range p.Jobs {
		if w := &p.Jobs[j]; p.Pricer == nil && w.Growth != 0 {
			return fmt.Errorf("workload %s grows, which the cost per GB ignores; price the plan over a calendar", w.Name)
		}
	}
	return checkInput(p.Config, nil, p.Jobs)
}

// Drives lists every drive, class by class, and the class of each. The drives of a class of several are numbered. A
// drive without a failure domain is one of its own.
func (p *Problem) Drives() (drives []Drive, class []int) {
	domains := map[string]bool{}
	for i := range p.Classes {
		domains[p.Classes[i].Drive.Domain] = true
	}
	for i := range p.Classes {
		c := &p.Classes[i]
		for n := range c.Count {
			d := c.Drive
			if c.Count > 1 {
				d.Name = fmt.Sprintf("%s-%d", d.Name, n+1)
			}
			if d.Domain == "" {
				d.Domain = d.Name
				for domains[d.Domain] {
					d.Domain += "'"
				}
				domains[d.Domain] = true
			}
			drives, class = append(drives, d), append(class, i)
		}
	}
	return drives, class
}

// PoolProblem builds a problem from existing drives, grouping equal ones.
func PoolProblem(cfg Config, drives []Drive, jobs []Workload) (p Problem, order []int) {
	p = Problem{Config: cfg, Jobs: jobs}
	of := make([]int, len(drives))
	for k := range drives {
		of[k] = -1
		for i := range p.Classes {
			if alike(&p.Classes[i].Drive, &drives[k]) {
				of[k] = i
				p.Classes[i].Count++
				break
			}
		}
		if of[k] < 0 {
			of[k] = len(p.Classes)
			p.Classes = append(p.Classes, Class{Drive: drives[k], Count: 1})
		}
	}
	for i := range p.Classes {
		for k := range drives {
			if of[k] == i {
				order = append(order, k)
			}
		}
	}
	return p, order
}

// alike reports whether drives differ only in their names. Drives in different failure domains differ.
func alike(a, b *Drive) bool {
	return a.Model == b.Model && a.Domain == b.Domain && a.Buy == b.Buy && a.Run == b.Run && a.Budget == b.Budget &&
		a.Worn == b.Worn && a.Capacity == b.Capacity &&
		a.IOPS == b.IOPS && a.WriteCost == b.WriteCost && a.Stripe == b.Stripe && a.Upkeep == b.Upkeep &&
		sameWAF(a.WAF, b.WAF) && a.Tail == nil && b.Tail == nil
}

// sameWAF compares two write amplifications at 101 mixes.
func sameWAF(a, b WAF) bool {
	for i := range 101 {
		if s := float64(i) / 100; a.At(s) != b.At(s) {
			return false
		}
	}
	return true
}

// cost is the cost of a placement: unused optional drives are not bought.
func (p *Problem) cost(a *Assessment, class []int) float64 {
	sum := 0.0
	for k := range a.Drives {
		if a.Drives[k].Workloads == 0 && p.Classes[class[k]].Optional {
			continue
		}
		sum += a.Drives[k].Cost
	}
	return sum
}

// Value assesses a placement and returns its cost without unused optional drives, and its data.
func (p *Problem) Value(host []int) (cost, data float64, err error) {
	drives, class := p.Drives()
	if p.Pricer != nil {
		return p.priced(host, drives, class)
	}
	a, err := Assess(p.Config, drives, p.Jobs, host)
	if err != nil {
		return 0, 0, err
	}
	if a.Placed != len(p.Jobs) {
		return 0, 0, fmt.Errorf("%d of %d workloads have no drive", len(p.Jobs)-a.Placed, len(p.Jobs))
	}
	cost = p.cost(a, class)
	if math.IsInf(cost, 1) {
		return cost, a.Data, fmt.Errorf("a drive without writes lasts forever; set a horizon")
	}
	return cost, a.Data, nil
}

// priced is Value by the Pricer; it ignores failure domains.
func (p *Problem) priced(host []int, drives []Drive, class []int) (cost, data float64, err error) {
	on := make([][]int32, len(drives))
	for _, j := range ByArrival(p.Jobs) {
		if host[j] < 0 {
			return 0, 0, fmt.Errorf("workload %s has no drive", p.Jobs[j].Name)
		}
		on[host[j]] = append(on[host[j]], int32(j))
		data += p.Pricer.Written(&p.Jobs[j])
	}
	for k := range drives {
		there := !p.Classes[class[k]].Optional
		if len(on[k]) == 0 && !there {
			continue
		}
		c, over := p.Pricer.Price(&drives[k], there, p.Jobs, on[k])
		if over > 0 {
			return 0, 0, fmt.Errorf("drive %s cannot hold its workloads", drives[k].Name)
		}
		cost += c
	}
	return cost, data, nil
}

// Reorder converts a placement on a pool's drives to its problem's drive numbers; order is that of PoolProblem.
func Reorder(host, order []int) []int {
	to := make([]int, len(order))
	for i, k := range order {
		to[k] = i
	}
	out := make([]int, len(host))
	for j, k := range host {
		out[j] = k
		if k >= 0 {
			out[j] = to[k]
		}
	}
	return out
}
