package trial_test

import (
	"fmt"
	"math"
	"testing"

	"farflash/experiment"
	"farflash/experiment/trial"
	"farflash/experiment/trial/trialtest"
)

// TestProgressOfItsOwn verifies that an item which starts when the other has ended is as fast as alone.
func TestProgressOfItsOwn(t *testing.T) {
	o := trialtest.Run(t, `
ssd: mqsim-default
workload:
  - {name: a, synthetic: {reads: {size: 4KiB}, requests: 4000}, closed: 1}
  - {name: b, after: a, synthetic: {reads: {size: 4KiB}, requests: 200}, closed: 1}
measure: {alone: true}
`, 1)
	for _, name := range []string{"workload[0].progress", "workload[1].progress", "fairness.progress"} {
		if v := trialtest.Metric(t, o, name); math.Abs(v-1) > 0.02 {
			t.Errorf("%s is %v of items that do not meet", name, v)
		}
	}
}

// TestAloneWithoutRequests verifies that a part without requests has no figures, and that there is no fairness then.
func TestAloneWithoutRequests(t *testing.T) {
	o := trialtest.Run(t, `
ssd: mqsim-default
workload:
  - {synthetic: {reads: {size: 4KiB}, requests: 200000}, closed: 1}
  - {start: 40ms, synthetic: {reads: {size: 4KiB, interarrival: 1s}, requests: 2}}
measure: {alone: true, until: 41ms}
`, 1)
	if v := trialtest.Metric(t, o, "workload[0].slowdown.mean"); v != 1 {
		t.Errorf("with nobody beside it the first is slowed down by %v", v)
	}
	for _, name := range []string{"workload[1].slowdown.mean", "workload[1].alone.latency.mean",
		"workload[1].progress", "fairness.slowdown", "fairness.progress"} {
		if m, ok := o.Result.Metric(name); ok {
			t.Errorf("%+v", m)
		}
	}
}

// TestAlone compares the figures of parts alone with runs of each separately, and the derived figures with their
// definitions, for items and tenants.
func TestAlone(t *testing.T) {
	for _, x := range []struct {
		scope string
		set   []string
	}{
		{"workload", nil},
		{"tenant", []string{"workload[0].tenant=web", "workload[1].tenant=log"}},
	} {
		s, err := trialtest.Parse(trialtest.Mixed, append(x.set, "measure.alone=true")...)
		if err != nil {
			t.Fatal(err)
		}
		passes := map[int]bool{}
		o, err := trial.Run(t.Context(), s, experiment.Options{Seed: 3, Progress: func(p experiment.Progress) {
			if p.Passes != 0 && p.Passes != 3 {
				t.Fatalf("pass %d of %d", p.Pass, p.Passes)
			}
			passes[p.Pass] = true
		}})
		if err != nil {
			t.Fatal(err)
		}
		if len(passes) != 3 || !passes[0] || !passes[1] || !passes[2] {
			t.Errorf("%s: passes %v", x.scope, passes)
		}
		among, err := trialtest.Parse(trialtest.Mixed, x.set...)
		if err != nil {
			t.Fatal(err)
		}
		events := uint64(0)
		slow, rates := []float64{}, []float64{}
		for i := range 2 {
			by, err := trial.Run(t.Context(), among.Lone(i), experiment.Options{Seed: 3})
			if err != nil {
				t.Fatal(err)
			}
			events += by.Events
			part := fmt.Sprintf("%s[%d].", x.scope, i)
			for _, m := range []struct{ what, alone string }{{part + "alone.latency.mean", "all.latency.mean"},
				{part + "alone.latency.p99", "all.latency.p99"}, {part + "alone.iops", "all.iops"}} {
				if got, want := trialtest.Metric(t, o, m.what), trialtest.Metric(t, by, m.alone); got != want {
					t.Errorf("%s is %v, and %v of a run of its own", m.what, got, want)
				}
			}
			for _, m := range []string{"mean", "p99"} {
				got, want := trialtest.Metric(t, o, part+"slowdown."+m),
					trialtest.Metric(t, o, part+"all.latency."+m)/trialtest.Metric(t, by, "all.latency."+m)
				if math.Abs(got-want) > 1e-12 {
					t.Errorf("%sslowdown.%s is %v, not %v", part, m, got, want)
				}
			}
			slow, rates = append(slow, trialtest.Metric(t, o, part+"slowdown.mean")),
				append(rates, trialtest.Metric(t, o, part+"progress"))
			if slow[i] < 1 {
				t.Errorf("%s is faster among others: %v", part, slow[i])
			}
		}
		together, err := trial.Run(t.Context(), among, experiment.Options{Seed: 3})
		if err != nil || o.Events != together.Events+events {
			t.Errorf("%s: %d events are counted, of %d and %d; %v", x.scope, o.Events, together.Events, events, err)
		}
		if got, want := trialtest.Metric(t, o, "fairness.slowdown"),
			min(slow[0], slow[1])/max(slow[0], slow[1]); got != want {
			t.Errorf("%s: fairness of slowdowns %v is %v, not %v", x.scope, slow, got, want)
		}
		sum, squares := rates[0]+rates[1], rates[0]*rates[0]+rates[1]*rates[1]
		if got, want := trialtest.Metric(t, o, "fairness.progress"), sum*sum/(2*squares); math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: fairness of progress %v is %v, not Jain's %v", x.scope, rates, got, want)
		}
	}
}
