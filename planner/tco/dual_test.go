package tco

import (
	"slices"
	"testing"
)

// TestObstacles verifies the reason why no drive takes a workload, and whether that is certain, to the last GB and I/O.
func TestObstacles(t *testing.T) {
	drive := Drive{Name: "d", Buy: 100, Budget: 1e6, Capacity: 100, IOPS: 1000, WAF: Constant(2)}
	for name, c := range map[string]struct {
		jobs   []Workload
		why    Obstacle
		proven bool
	}{
		"as much as a drive has":       {[]Workload{{WorkingSet: 100}}, NoSpace, false}, // a further drive would do
		"more than a drive has":        {[]Workload{{WorkingSet: 100.1}}, NoSpace, true},
		"as many I/Os as a drive does": {[]Workload{{PeakIOPS: 1000}}, NoSpace, false},
		"more I/Os than a drive does":  {[]Workload{{PeakIOPS: 1001}}, NoIOPS, true},
		"as much as two drives have":   {[]Workload{{WorkingSet: 100}, {WorkingSet: 100}}, NoSpace, false},
		"more than two drives have": {[]Workload{{WorkingSet: 100}, {WorkingSet: 60}, {WorkingSet: 41}}, NoSpace,
			true},
		"more, but one leaves": {[]Workload{{WorkingSet: 100}, {WorkingSet: 60}, {WorkingSet: 41, End: 9}},
			NoSpace, false},
		"more I/Os than two drives do":  {[]Workload{{PeakIOPS: 1000}, {PeakIOPS: 600}, {PeakIOPS: 401}}, NoIOPS, true},
		"as many I/Os as two drives do": {[]Workload{{PeakIOPS: 1000}, {PeakIOPS: 1000}}, NoSpace, false},
		"apart":                         {[]Workload{{Apart: "g"}}, SameDomain, false},
		"a latency":                     {[]Workload{{P99: 5}}, TooSlow, false},
		"later than any drive":          {[]Workload{{Arrival: DefaultHorizon}}, NoLife, false},
		"earlier than that":             {[]Workload{{Arrival: DefaultHorizon - 1}}, NoSpace, false},
	} {
		p := &Problem{Config: DefaultConfig(), Classes: []Class{{Drive: drive, Count: 2}}, Jobs: c.jobs}
		drives, _ := p.Drives()
		if e := p.obstacle(drives, &c.jobs[0]); e.Obstacle != c.why || e.Proven != c.proven {
			t.Errorf("%s: %v, for certain: %v", name, e.Obstacle, e.Proven)
		}
	}
}

// TestProblems verifies that equal drives form a class, that their order can be restored, and that they keep their
// names.
func TestProblems(t *testing.T) {
	a := Drive{Name: "a", Buy: 100, Budget: 1e6, Capacity: 100, IOPS: 1000, WAF: Constant(2)}
	b := a
	b.WAF = Constant(3)
	rack := a
	rack.Domain = "r"
	p, order := PoolProblem(DefaultConfig(), []Drive{a, b, a, rack, b, a}, nil)
	if len(p.Classes) != 3 || p.Classes[0].Count != 3 || p.Classes[1].Count != 2 || p.Classes[2].Count != 1 ||
		!slices.Equal(order, []int{0, 2, 5, 1, 4, 3}) {
		t.Errorf("%+v in the order %v", p.Classes, order)
	}
	if got := Reorder([]int{5, -1, 1, 3, 0}, order); !slices.Equal(got, []int{2, -1, 3, 5, 0}) {
		t.Errorf("reordered: %v", got)
	}
	drives, class := p.Drives()
	if len(drives) != 6 || drives[0].Name != "a-1" || drives[2].Name != "a-3" || drives[2].Domain != "a-3" ||
		drives[5].Name != "a" || drives[5].Domain != "r" || !slices.Equal(class, []int{0, 0, 0, 1, 1, 2}) {
		t.Errorf("%+v of %v", drives, class)
	}
	for name, p := range map[string]Problem{
		"no drives":       {Config: DefaultConfig(), Jobs: []Workload{{}}},
		"no workloads":    {Config: DefaultConfig(), Classes: []Class{{Drive: a, Count: 1}}},
		"fewer than none": {Config: DefaultConfig(), Classes: []Class{{Drive: a, Count: -1}}, Jobs: []Workload{{}}},
		"too many": {Config: DefaultConfig(),
			Classes: []Class{{Drive: a, Count: mostDrives}, {Drive: b, Count: 1}}, Jobs: []Workload{{}}},
		"a bad drive": {Config: DefaultConfig(), Classes: []Class{{Count: 1}}, Jobs: []Workload{{}}},
		"a bad workload": {Config: DefaultConfig(), Classes: []Class{{Drive: a, Count: 1}},
			Jobs: []Workload{{WriteRate: -1}}},
	} {
		if p.Check() == nil {
			t.Errorf("%s: taken", name)
		}
	}
	most := Problem{Config: DefaultConfig(), Classes: []Class{{Drive: a, Count: mostDrives}, {Drive: b, Count: 0}},
		Jobs: []Workload{{}}}
	if err := most.Check(); err != nil {
		t.Error(err)
	}
}
