package result

import "testing"

func TestDirectionOf(t *testing.T) {
	for name, want := range map[string]Direction{
		"read.latency.p99_9": LowerIsBetter, "all.latency.stddev": LowerIsBetter, "flow.slowdown.p99": LowerIsBetter, "ssd[3].waf": LowerIsBetter,
		"fabric.drops": LowerIsBetter, "read.iops": HigherIsBetter, "initiator[0].read.bandwidth": HigherIsBetter, "ssd.cache.hit_ratio": HigherIsBetter,
		"ssd.utilisation.die": NeitherBetter, "read.count": NeitherBetter, "ssd.gc.count": NeitherBetter, "nonsense": NeitherBetter, "cpu[1].waf": NeitherBetter,
	} {
		if got := DirectionOf(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	for _, name := range append(append([]string(nil), fewer...), more...) {
		if _, ok := Metrics.Lookup(name); !ok {
			t.Errorf("there is no metric %s", name)
		}
	}
}
