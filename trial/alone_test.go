package trial_test

import (
	"math"
	"testing"

	"farflash/trial/trialtest"
)

// TestProgressOfItsOwn holds that an item which begins when the other has ended is as fast as alone: nothing disturbs it.
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
