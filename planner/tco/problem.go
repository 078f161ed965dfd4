package tco

import (
	"fmt"
	"math"
)

// Class is equal drives: what a plan may choose among, or what is there already.
type Class struct {
	Drive Drive
	Count int // how many there are, or may be bought
	// Optional drives are paid for only if they get a workload. The others are bought already.
	Optional bool
}

// Problem is what a plan with hindsight is made for: every arrival is known, and every workload must have a drive.
type Problem struct {
	Config  Config
	Classes []Class
	Jobs    []Workload
	// Pricer makes money of a drive and what is on it, and a plan is best that costs least; nil: by equation 3, least
	// a GB.
	Pricer Pricer
}

// Pricer prices a drive with all that is ever on it. Optimise calls it from one goroutine, some hundred thousand times.
type Pricer interface {
	// Price returns what a drive costs with those workloads, in the order of their arrival, and by how much it passes
	// its limits: 0 if it can have them, otherwise the sum of the shares by which it does. there says that it is
	// bought on day 0 whatever is on it; without workloads, what it costs nobody to use it.
	Price(d *Drive, there bool, jobs []Workload, list []int32) (cost, over float64)
	// Written is how many GB a workload writes in the plan.
	Written(w *Workload) float64
	// Most is what a workload's space and I/Os grow to, over what they are when it arrives.
	Most(w *Workload) float64
}

// mostDrives bounds a problem.
const mostDrives = 1_000_000

// Check reports what is wrong with a problem.
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
			return fmt.Errorf("workload %s grows, which money a gigabyte does not heed; price the plan over a calendar", w.Name)
		}
	}
	return checkInput(p.Config, nil, p.Jobs)
}

// Drives lists every drive, class after class, and the class of each. A class of several numbers them. One that is in
// no failure domain is one by itself.
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

// PoolProblem makes a problem of drives that are there, grouping equal ones.
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

// alike reports whether drives differ in nothing but their names. Drives in different failure domains differ.
func alike(a, b *Drive) bool {
	return a.Model == b.Model && a.Domain == b.Domain && a.Buy == b.Buy && a.Run == b.Run && a.Budget == b.Budget &&
		a.Worn == b.Worn && a.Capacity == b.Capacity &&
		a.IOPS == b.IOPS && a.WriteCost == b.WriteCost && a.Stripe == b.Stripe && a.Upkeep == b.Upkeep &&
		sameWAF(a.WAF, b.WAF) && a.Tail == nil && b.Tail == nil
}

// sameWAF compares write amplifications that can be compared, at a hundred mixes.
func sameWAF(a, b WAF) bool {
	for i := range 101 {
		if s := float64(i) / 100; a.At(s) != b.At(s) {
			return false
		}
	}
	return true
}

// cost is what a placement costs: drives that are optional and unused are not bought.
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

// Value assesses a placement: cost without unused optional drives, and data.
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
		return cost, a.Data, fmt.Errorf("a drive that nobody writes to lasts for ever without a horizon; set one")
	}
	return cost, a.Data, nil
}

// priced is Value by the Pricer; failure domains are not looked at.
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
			return 0, 0, fmt.Errorf("drive %s cannot have what is placed on it", drives[k].Name)
		}
		cost += c
	}
	return cost, data, nil
}

// Reorder turns drives' numbers of a pool into those of its problem, as PoolProblem ordered them.
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
