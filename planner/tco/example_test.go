package tco_test

import (
	"fmt"

	"farflash/planner/tco"
	"farflash/policy/ftl/waf"
)

// Two drives, three workloads: the placement, and the cost per gigabyte written.
func Example() {
	mix := waf.DefaultSequentialMix(7) // equation 7
	drives := []tco.Drive{
		{Name: "large", Buy: 1000, Run: 0.5, Budget: 2e6, Capacity: 1600, IOPS: 2e5, WAF: mix},
		{Name: "small", Buy: 600, Run: 0.3, Budget: 1e6, Capacity: 800, IOPS: 1e5, WAF: mix},
	}
	jobs := []tco.Workload{
		{Name: "log", WriteRate: 200, Sequential: 0.9, WorkingSet: 50},
		{Name: "mail", WriteRate: 100, Sequential: 0.3, WorkingSet: 300, Arrival: 10},
		{Name: "db", WriteRate: 150, Sequential: 0.5, WorkingSet: 500, Arrival: 50},
	}
	placement, a, err := tco.Online(tco.DefaultAllocatorConfig(), drives, jobs)
	if err != nil {
		fmt.Println(err)
		return
	}
	for j, k := range placement.Host {
		fmt.Println(jobs[j].Name, "on", drives[k].Name)
	}
	fmt.Printf("$%.6f/GB\n", a.CostPerGB())
	// Output:
	// log on small
	// mail on large
	// db on large
	// $0.004326/GB
}
