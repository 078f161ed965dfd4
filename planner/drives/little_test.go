package drives_test

import (
	"strings"
	"testing"

	"farflash/planner/drives"
)

// TestLittleData verifies that algorithms are compared by their cost per GB also if all workloads together write less
// than 1 GB.
func TestLittleData(t *testing.T) {
	const text = "objective: paper\nhorizon: 100d\ndrives: [{model: Intel DC P3700 2TB, count: 2, price: $1000}]\n" +
		"workloads: {list: [{name: a, write_gb_per_day: RATE, working_set_gb: 1, end_day: 4}, {name: b, " +
		"write_gb_per_day: RATE, working_set_gb: 1, end_day: 4}]}\n"
	few := solve(t, strings.ReplaceAll(text, "RATE", "0.05"), drives.Options{Sensitivity: true})
	many := solve(t, strings.ReplaceAll(text, "RATE", "50"), drives.Options{Sensitivity: true})
	if few.Data <= 0 || few.Data >= 1 || len(few.Frontier) != len(many.Frontier) || len(few.Frontier) < 2 {
		t.Errorf("of %v GB there are %d points, of %v GB %d", few.Data, len(few.Frontier), many.Data, len(many.Frontier))
	}
}
