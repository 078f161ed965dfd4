package certify_test

import (
	"fmt"

	"farflash/planner/tco"
	"farflash/planner/tco/bound"
	"farflash/planner/tco/certify"
)

// A proven bound passes the check; a higher one does not.
func Example() {
	drive := tco.Drive{Name: "d", Buy: 1000, Run: 0.5, Budget: 2e6, Capacity: 800, IOPS: 1e5, WAF: tco.Constant(2)}
	p := tco.Problem{Config: tco.DefaultConfig(), Classes: []tco.Class{{Drive: drive, Count: 3, Optional: true}}}
	for i := range 6 {
		p.Jobs = append(p.Jobs, tco.Workload{Name: fmt.Sprint("w", i), WriteRate: 100, WorkingSet: 260})
	}
	best, err := bound.Optimise(tco.DefaultOptimiseConfig(), &p, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(certify.Check(&p, best.Certificate))
	best.Certificate.Rate *= 2
	fmt.Println(certify.Check(&p, best.Certificate) != nil)
	// Output:
	// <nil>
	// true
}
