package drives_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"farflash/planner/drives"
	"farflash/tco"
)

// TestCatalogueEstimated: every drive of the catalogue is planned when what is not known of it may be estimated, and each estimate is said to be one;
// without that word it is refused, with every key that is wanted.
func TestCatalogueEstimated(t *testing.T) {
	const jobs = "workloads: {list: [{name: w, write_gb_per_day: 1, working_set_gb: 100, peak_iops: 10}]}\n"
	whole := 0
	for _, m := range tco.Catalogue() {
		unknown := m.Unknown()
		keys := strings.ReplaceAll(strings.Trim(fmt.Sprint(unknown), "[]"), " ", ", ")
		plain := fmt.Sprintf("drives: [{model: %q, count: 1}]\n%s", m.Name, jobs)
		if unknown == nil {
			whole++
			solve(t, plain, drives.Options{})
			continue
		}
		p, err := drives.Load(source(plain), nil)
		if err == nil {
			_, err = p.Solve(context.Background(), drives.Options{})
		}
		if err == nil || !strings.Contains(err.Error(), "(estimate: ["+keys+"])") {
			t.Errorf("%s: error %v; one that asks for %s is right", m.Name, err, keys)
		}
		o := solve(t, fmt.Sprintf("drives: [{model: %q, count: 1, estimate: [%s]}]\n%s", m.Name, keys, jobs), drives.Options{})
		marked := 0
		for _, a := range o.Plan.Assumptions() {
			if strings.HasSuffix(a.Name, ", estimated") && strings.HasPrefix(a.Source, "estimate: the middle of ") {
				marked++
			}
		}
		if o.Assessment.Placed != 1 || marked != len(unknown) {
			t.Errorf("%s: %d workloads are placed, %d of %d estimates are marked", m.Name, o.Assessment.Placed, marked, len(unknown))
		}
	}
	if whole != 2 {
		t.Errorf("%d drives have all figures of their own", whole)
	}
	p, err := drives.Load(source("drives: [{model: Intel DC P3700 2TB, count: 1, price: $5, estimate: [price]}]\n"+jobs), nil)
	if err == nil {
		_, err = p.Solve(context.Background(), drives.Options{})
	}
	if err == nil || !strings.Contains(err.Error(), "drives[0].estimate: price: it is known of Intel DC P3700 2TB; leave it out") {
		t.Errorf("error %v", err)
	}
}
