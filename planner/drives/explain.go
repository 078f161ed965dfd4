package drives

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"farflash/internal/spelling"
	"farflash/planner/tco"
	"farflash/planner/tco/calendar"
)

// Choice is a candidate drive for a workload.
type Choice struct {
	Drive    string
	Chosen   bool
	Obstacle string // why it cannot be there; "" if it can
	// CostPerGB is that of the whole pool with the workload there and all else unchanged (for online algorithms: as of
	// its arrival). Score is the objective of an online algorithm, lower being better.
	CostPerGB float64
	Score     float64
	WAF       float64 // the drive's
	Lifetime  float64 // days
}

// Explanation explains the placement of a workload.
type Explanation struct {
	Workload string
	Chosen   string // "" if no drive takes it
	// Worse is the increase of the pool's cost per gigabyte on the second-best drive, as a share; NaN if there is none.
	Worse float64
	Next  string
	// Whole means that costs are totals over all drives instead of costs per GB: by objective calendar, and if no
	// workload writes.
	Whole   bool
	Choices []Choice // best first, infeasible ones last
}

// Explain explains the placement of a workload.
func (o *Outcome) Explain(workload string) (*Explanation, error) {
	j := -1
	var names []string
	for i := range o.Plan.jobs {
		names = append(names, o.Plan.jobs[i].Name)
		if names[i] == workload {
			j = i
		}
	}
	if j < 0 {
		hint := ""
		if near := spelling.Nearest(workload, names); near != "" {
			hint = fmt.Sprintf("; did you mean %s?", near)
		}
		return nil, fmt.Errorf("the plan has no workload %q%s", workload, hint)
	}
	x := &Explanation{Workload: workload, Worse: math.NaN(), Whole: o.Plan.reads() ||
		o.Plan.Calendar() && (o.Plan.Algorithm.optimal || o.Plan.Algorithm.offline)}
	var err error
	if o.Plan.Algorithm.optimal || o.Plan.Algorithm.offline {
		o.whatIf(j, x)
	} else if err = o.replay(j, x); err != nil {
		return nil, err
	}
	rank := func(c *Choice) int {
		switch {
		case c.Obstacle != "":
			return 2
		case !c.Chosen:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(x.Choices, func(a, b Choice) int {
		return cmp.Or(cmp.Compare(rank(&a), rank(&b)), cmp.Compare(a.CostPerGB, b.CostPerGB))
	})
	if len(x.Choices) > 1 && x.Choices[0].Chosen && x.Choices[1].Obstacle == "" {
		x.Chosen, x.Next = x.Choices[0].Drive, x.Choices[1].Drive
		if a, b := x.Choices[0].CostPerGB, x.Choices[1].CostPerGB; a != b { // both may be 0
			x.Worse = b/a - 1
		} else {
			x.Worse = 0
		}
	} else if len(x.Choices) > 0 && x.Choices[0].Chosen {
		x.Chosen = x.Choices[0].Drive
	}
	return x, nil
}

// whatIf moves the workload to every drive, with all others unchanged.
func (o *Outcome) whatIf(j int, x *Explanation) {
	if o.Plan.Calendar() {
		o.whatIfBook(j, x)
		return
	}
	f := o.fleet
	host := slices.Clone(o.host)
	seen := map[int]bool{} // groups with an unused drive to buy, which represents all of them
	used := make([]bool, len(f.drives))
	for _, k := range host {
		if k >= 0 {
			used[k] = true
		}
	}
	for k := range f.drives {
		part := &f.parts[k]
		if part.up && !used[k] {
			if seen[part.group] {
				continue
			}
			seen[part.group] = true
		}
		c := Choice{Drive: f.drives[k].Name, Chosen: o.host[j] == k}
		host[j] = k
		a, err := tco.Assess(o.Plan.config(), f.drives, o.Plan.jobs, host)
		if err != nil {
			c.Obstacle = obstacle(err, x.Workload)
		} else {
			cost := 0.0
			for i := range a.Drives {
				if !f.parts[i].up || a.Drives[i].Workloads > 0 {
					cost += a.Drives[i].Cost
				}
			}
			if c.CostPerGB = cost; a.Data > 0 {
				c.CostPerGB /= a.Data
			}
			c.WAF, c.Lifetime = a.Drives[k].WAF, a.Drives[k].Lifetime
			c.Score = c.CostPerGB
		}
		x.Choices = append(x.Choices, c)
	}
}

// whatIfBook is whatIf over a calendar. A workload that moves is compared with each single drive for its whole service.
func (o *Outcome) whatIfBook(j int, x *Explanation) {
	f := o.fleet
	pricer, err := calendar.New(o.Plan.calendar())
	if err != nil {
		return
	}
	there, used := make([]bool, len(f.drives)), make([]bool, len(f.drives))
	for k := range there {
		there[k] = !f.parts[k].up
	}
	moves := false
	for i, k := range o.stays.host {
		if k >= 0 {
			used[k] = true
		}
		moves = moves || o.stays.of[i] == j && k != o.host[j]
	}
	try := func(k int, c Choice) {
		host := slices.Clone(o.stays.host)
		for i := range host {
			if o.stays.of[i] == j && k >= 0 {
				host[i] = k
			}
		}
		b, err := pricer.Keep(f.drives, there, o.stays.jobs, host)
		if err != nil {
			c.Obstacle = obstacle(err, x.Workload)
		} else {
			s := stateOf(&f.drives[max(k, 0)], &b.Drives[max(k, 0)], 1)
			c.CostPerGB, c.Score, c.WAF, c.Lifetime = b.Total, b.Total, s.WAF, s.Lifetime
		}
		x.Choices = append(x.Choices, c)
	}
	if moves {
		try(-1, Choice{Drive: f.drives[o.host[j]].Name + " and others", Chosen: true})
	}
	seen := map[int]bool{} // groups with an unused drive to buy, which represents all of them
	for k := range f.drives {
		if part := &f.parts[k]; part.up && !used[k] {
			if seen[part.group] {
				continue
			}
			seen[part.group] = true
		}
		try(k, Choice{Drive: f.drives[k].Name, Chosen: !moves && o.host[j] == k})
	}
}

// obstacle describes why a workload cannot be placed somewhere: because of itself, or of a later arrival.
func obstacle(err error, workload string) string {
	var m *tco.Misfit
	if !errors.As(err, &m) {
		return err.Error()
	}
	if m.Workload != workload {
		return fmt.Sprintf("%v: %s would no longer fit", m.Obstacle, m.Workload)
	}
	return m.Obstacle.String()
}

// replay places the earlier arrivals, and returns the candidates as the algorithm saw them.
func (o *Outcome) replay(j int, x *Explanation) error {
	a, err := tco.NewAllocator(o.allocator(), o.fleet.drives)
	if err != nil {
		return err
	}
	for _, i := range tco.ByArrival(o.Plan.jobs) {
		if i != j {
			if _, _, err := a.Place(&o.Plan.jobs[i]); err != nil {
				return err
			}
			continue
		}
		list, err := a.Explain(&o.Plan.jobs[j])
		if err != nil {
			return err
		}
		for _, c := range list {
			y := Choice{Drive: o.fleet.drives[c.Drive].Name, Chosen: o.host[j] == c.Drive, CostPerGB: c.CostPer,
				Score: c.Score, WAF: c.WAF, Lifetime: c.Lifetime}
			if c.Obstacle != tco.Fits {
				y.Obstacle = c.Obstacle.String()
			}
			x.Choices = append(x.Choices, y)
		}
		return nil
	}
	return nil
}
