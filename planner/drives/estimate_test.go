package drives_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"farflash/planner/drives"
	"farflash/planner/tco/catalogue"
)

// TestCatalogueEstimated verifies that every drive of the catalogue can be planned if its unknown figures may be
// estimated, and that each estimate is marked as one; without that permission it is rejected with every missing key.
func TestCatalogueEstimated(t *testing.T) {
	const jobs = "workloads: {list: [{name: w, write_gb_per_day: 1, working_set_gb: 100, peak_iops: 10}]}\n"
	whole := 0
	for _, m := range catalogue.Models() {
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
		o := solve(t, fmt.Sprintf("drives: [{model: %q, count: 1, estimate: [%s]}]\n%s", m.Name, keys, jobs),
			drives.Options{})
		marked := 0
		for _, a := range o.Plan.Assumptions() {
			if strings.HasSuffix(a.Name, ", estimated") && strings.HasPrefix(a.Source, "estimate: median of ") {
				marked++
			}
		}
		if o.Assessment.Placed != 1 || marked != len(unknown) {
			t.Errorf("%s: %d workloads are placed, %d of %d estimates are marked", m.Name, o.Assessment.Placed,
				marked, len(unknown))
		}
	}
	if whole != 2 {
		t.Errorf("%d drives have all figures of their own", whole)
	}
	p, err := drives.Load(source("drives: [{model: Intel DC P3700 2TB, count: 1, price: $5, estimate: [price]}]\n"+
		jobs), nil)
	if err == nil {
		_, err = p.Solve(context.Background(), drives.Options{})
	}
	if err == nil || !strings.Contains(err.Error(),
		"drives[0].estimate: price: it is known of Intel DC P3700 2TB; leave it out") {
		t.Errorf("error %v", err)
	}
}

// TestEstimatesDrawn verifies that an estimated price is drawn log-uniformly between the least and the most of other
// drives; the cost of one drive is that price plus the rest, so its percentiles are those of plans that state the
// price's percentiles. Drawing has no other effect on the plan.
func TestEstimatesDrawn(t *testing.T) {
	const rest = "workloads: {list: [{name: w, write_gb_per_day: 1, working_set_gb: 100, peak_iops: 10}]}\n"
	const drawn = "uncertainty: {draws: 4000, estimates: true}\n"
	m, err := catalogue.Find(catalogue.Models(), "Intel DC P3700 2TB")
	if err != nil {
		t.Fatal(err)
	}
	e, err := m.Estimate(catalogue.PriceFigure, catalogue.Models())
	if err != nil {
		t.Fatal(err)
	}
	const estimated = "drives: [{model: Intel DC P3700 2TB, count: 1, estimate: [price]}]\n"
	o := solve(t, drawn+estimated+rest, drives.Options{})
	if without := solve(t, estimated+rest, drives.Options{}); o.Cost != without.Cost {
		t.Errorf("the plan costs %v, without draws %v", o.Cost, without.Cost)
	}
	if o.Risk == nil || o.Risk.Holds != 1 {
		t.Fatalf("the risk is %+v", o.Risk)
	}
	for q, got := range map[float64]float64{0.05: o.Risk.Low, 0.5: o.Risk.Median, 0.95: o.Risk.High} {
		price := e.Low * math.Pow(e.High/e.Low, q)
		want := solve(t, fmt.Sprintf("drives: [{model: Intel DC P3700 2TB, count: 1, price: $%.2f}]\n", price)+rest,
			drives.Options{}).Cost
		if math.Abs(got/want-1) > 0.08 {
			t.Errorf("percentile %v is %v, at a price of %.2f it is %v", q, got, price, want)
		}
	}
	if _, err := drives.Load(source(drawn+"drives: [{model: Intel DC P3700 2TB, count: 1, price: $100}]\n"+rest),
		nil); err == nil || !strings.Contains(err.Error(),
		"plan.yaml:1:39: uncertainty.estimates: no drive has estimated figures") {
		t.Errorf("error %v", err)
	}
}
