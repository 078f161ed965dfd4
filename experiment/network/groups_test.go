package network_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"farflash/experiment"
	"farflash/experiment/trial"
	"farflash/experiment/trial/trialtest"
	"farflash/result"
)

const grouped = `
fabric: {topology: {leaf_spine: {leaves: 4, spines: 2, hosts_per_leaf: 4}}}
flows:
- {name: mice, poisson: {load: 20%, sizes: websearch, duration: 200us}}
- {incast: {fan: 6, size: 40KB}, start: 50us}
- {permutation: {size: 30KB}}
`

// TestGroups verifies that groups of flows add up to the total, that rows name their group, and that the division of
// the network has no effect.
func TestGroups(t *testing.T) {
	var first *result.Result
	for _, parts := range []string{"1", "4"} {
		s, err := trialtest.Parse(grouped, "fabric.parts="+parts)
		if err != nil {
			t.Fatal(err)
		}
		rows := map[int32]int{}
		out, err := trial.Run(context.Background(), s, experiment.Options{Seed: 1, Flow: func(f experiment.Flow) error {
			rows[f.Group]++
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		r := out.Result
		if want := []result.Parts{{Scope: "flows",
			Names: []string{"mice", "incast", "permutation"}}}; !reflect.DeepEqual(r.Parts, want) {
			t.Errorf("%v", r.Parts)
		}
		sum, bytes := 0.0, 0.0
		for i := range 3 {
			name := fmt.Sprintf("flows[%d].", i)
			n := trialtest.Metric(t, out, name+"count")
			if int(n) != rows[int32(i)] {
				t.Errorf("group %d has %v flows, %d rows", i, n, rows[int32(i)])
			}
			sum, bytes = sum+n, bytes+trialtest.Metric(t, out, name+"bytes")
			if h := r.Histogram(name + "fct"); h.Count() != int64(n) ||
				trialtest.Metric(t, out, name+"slowdown.mean") < 1 {
				t.Errorf("group %d: %d in the distribution", i, h.Count())
			}
		}
		if sum != trialtest.Metric(t, out, "flow.count") || bytes != trialtest.Metric(t, out, "flow.bytes") ||
			rows[1] != 6 || rows[2] != 16 {
			t.Errorf("%v flows of %v bytes by group, rows %v", sum, bytes, rows)
		}
		if first != nil && !reflect.DeepEqual(first.Metrics, r.Metrics) {
			t.Error("parts change figures")
		}
		first = r
		for _, c := range r.Checks {
			if !c.OK {
				t.Error(c)
			}
		}
	}
}

// TestGroupsBesideRequests verifies the same for flows next to a system's requests.
func TestGroupsBesideRequests(t *testing.T) {
	o := trialtest.Run(t,
		"initiators: 2\ntargets: [{count: 2, ssds: 1, ssd: tlc-enterprise}]\nfabric: {topology: {leaf_spine: "+
			"{leaves: 2, spines: 1, hosts_per_leaf: 4}}}\nworkload: [{synthetic: {reads: {size: 4KiB, interarrival: "+
			"5us}, requests: 100}}]\n"+
			"flows: [{incast: {fan: 3, size: 10KB}}, {permutation: {size: 20KB}}]\n", 1)
	if a, b := trialtest.Metric(t, o, "flows[0].count"), trialtest.Metric(t, o, "flows[1].count"); a != 3 || b != 8 {
		t.Errorf("%v and %v flows", a, b)
	}
}
