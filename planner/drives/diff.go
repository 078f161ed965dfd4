package drives

import (
	"cmp"
	"fmt"
	"slices"
)

// Difference lists the differences between two plans.
type Difference struct {
	Schema    string `json:"schema"`
	Before    string `json:"before"`
	After     string `json:"after"`
	Objective string `json:"objective"`
	// Inputs are the assumptions that differ; those of drives and workloads carry their name.
	Inputs []InputDifference `json:"inputs"`
	// Sums are the total cost and other figures; Costs is the money by purpose.
	Sums   []SumDifference   `json:"sums"`
	Costs  []SumDifference   `json:"costs"`
	Drives []CountDifference `json:"drives"`
	// Workloads are those on another drive, or in one plan only.
	Workloads []PlaceDifference `json:"workloads"`
}

// InputDifference is an assumption that differs.
type InputDifference struct {
	Of     string `json:"of"`
	Name   string `json:"name"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// SumDifference is a figure that differs; Money marks amounts of money.
type SumDifference struct {
	Name   string  `json:"name"`
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	Money  bool    `json:"-"`
}

// CountDifference is the number of drives of a model in each plan.
type CountDifference struct {
	Model  string `json:"model"`
	Before int    `json:"before"`
	After  int    `json:"after"`
}

// PlaceDifference is a workload on another drive; "" means that it is not in that plan, or has no drive. A drive of the
// second plan gets the name of the first plan's drive with which it shares most workloads, if both are of one model.
type PlaceDifference struct {
	Workload string `json:"workload"`
	Before   string `json:"before"`
	After    string `json:"after"`
}

// Differ compares two plans with the same objective.
func Differ(before, after *Outcome) (*Difference, error) {
	if before.Plan.Calendar() != after.Plan.Calendar() {
		return nil, fmt.Errorf(
			"one plan is judged by its TCO, the other by its cost per GB; write the same objective in both")
	}
	d := &Difference{Schema: "farflash/plan-diff/1", Before: before.Plan.Name, After: after.Plan.Name,
		Objective: PaperObjective.String(), Inputs: []InputDifference{}, Drives: []CountDifference{},
		Workloads: []PlaceDifference{}}
	if before.Plan.Calendar() {
		d.Objective = CalendarObjective.String()
	}
	d.inputs(before.Plan.Assumptions(), after.Plan.Assumptions())
	sum := func(name string, money bool, a, b float64) {
		d.Sums = append(d.Sums, SumDifference{name, a, b, money})
	}
	sum("TCO", true, before.Cost, after.Cost)
	sum("GB written", false, before.Data, after.Data)
	if before.Data > 0 && after.Data > 0 {
		sum("cost per GB written", true, before.CostPerGB(), after.CostPerGB())
	}
	sum("drives in use", false, float64(before.Assessment.Used), float64(after.Assessment.Used))
	sum("worn-out drives replaced", false, float64(before.replaced()), float64(after.replaced()))
	sum("expected failures", false, before.Failures.Expected, after.Failures.Expected)
	sum("workloads without a drive", false, float64(before.Assessment.Refused), float64(after.Assessment.Refused))
	sum("kg CO2e", false, before.Carbon.Total(), after.Carbon.Total())
	for i := range before.Slices {
		if a, b := before.Slices[i], after.Slices[i]; a.Money != 0 || b.Money != 0 {
			d.Costs = append(d.Costs, SumDifference{a.Name, a.Money, b.Money, true})
		}
	}
	d.counts(before, after)
	d.places(before, after)
	return d, nil
}

// replaced is the number of drives that replaced worn-out ones.
func (o *Outcome) replaced() (n int) {
	for i := range o.Drives {
		n += len(o.Drives[i].Replaced)
	}
	return n
}

func (d *Difference) inputs(before, after []Assumption) {
	type key struct{ of, name string }
	was := map[key]string{}
	seen := map[key]bool{}
	for _, a := range before {
		was[key{a.Of, a.Name}] = a.Value
	}
	for _, b := range after {
		k := key{b.Of, b.Name}
		seen[k] = true
		if a := was[k]; a != b.Value {
			d.Inputs = append(d.Inputs, InputDifference{b.Of, b.Name, a, b.Value})
		}
	}
	for _, a := range before {
		if !seen[key{a.Of, a.Name}] {
			d.Inputs = append(d.Inputs, InputDifference{a.Of, a.Name, a.Value, ""})
		}
	}
}

func (d *Difference) counts(before, after *Outcome) {
	at := map[string]int{}
	count := func(o *Outcome, add func(c *CountDifference)) {
		for i := range o.Drives {
			m := o.Drives[i].Model
			k, ok := at[m]
			if !ok {
				k = len(d.Drives)
				at[m] = k
				d.Drives = append(d.Drives, CountDifference{Model: m})
			}
			add(&d.Drives[k])
		}
	}
	count(before, func(c *CountDifference) { c.Before++ })
	count(after, func(c *CountDifference) { c.After++ })
}

// places lists workloads on other drives. Drives of one model are interchangeable: the pairs with most workloads in
// common are identified with each other.
func (d *Difference) places(before, after *Outcome) {
	was := map[string]int{} // drive of each workload
	for i := range before.Drives {
		for _, w := range before.Drives[i].Workloads {
			was[w] = i
		}
	}
	type pair struct{ a, b, common int }
	var pairs []pair
	for j := range after.Drives {
		common := map[int]int{}
		for _, w := range after.Drives[j].Workloads {
			if i, ok := was[w]; ok && before.Drives[i].Model == after.Drives[j].Model {
				common[i]++
			}
		}
		for i, n := range common {
			pairs = append(pairs, pair{i, j, n})
		}
	}
	slices.SortFunc(pairs, func(x, y pair) int {
		return cmp.Or(cmp.Compare(y.common, x.common), cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b))
	})
	same, taken := map[int]int{}, map[int]bool{}
	for _, p := range pairs {
		if _, ok := same[p.b]; !ok && !taken[p.a] {
			same[p.b], taken[p.a] = p.a, true
		}
	}
	names := map[string]string{} // of the second plan's drives
	used := map[string]bool{}
	for i := range before.Drives {
		used[before.Drives[i].Name] = true
	}
	for j := range after.Drives {
		name := after.Drives[j].Name
		if i, ok := same[j]; ok {
			name = before.Drives[i].Name
		} else if used[name] {
			name += " (another)"
		}
		names[after.Drives[j].Name] = name
	}
	then := map[string]string{}
	seen := map[string]bool{}
	for _, x := range after.Placements {
		then[x.Workload] = names[x.Drive]
	}
	for _, x := range before.Placements {
		seen[x.Workload] = true
		if to := then[x.Workload]; to != x.Drive {
			d.Workloads = append(d.Workloads, PlaceDifference{x.Workload, x.Drive, to})
		}
	}
	for _, x := range after.Placements {
		if !seen[x.Workload] {
			d.Workloads = append(d.Workloads, PlaceDifference{x.Workload, "", names[x.Drive]})
		}
	}
}
