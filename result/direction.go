package result

import (
	"slices"
	"strings"
)

// Direction says which of two values of a metric is better.
type Direction int8

// The directions. Most metrics have none: more garbage collection, say, may be the price of something else.
const (
	LowerIsBetter  Direction = -1
	NeitherBetter  Direction = 0
	HigherIsBetter Direction = 1
)

// fewer lists metrics that are a cost by themselves, more those that are the purpose.
var (
	fewer = []string{"ssd.waf", "ssd.wear.life_used", "ssd.energy", "ssd.power", "fabric.pause.count", "fabric.pause.time", "fabric.drops",
		"fabric.retransmits", "fabric.timeouts", "fabric.nacks", "fabric.deadlocks", "flow.unfinished"}
	more = []string{"ssd.cmt.hit_ratio", "ssd.cache.hit_ratio", "fabric.goodput", "cluster.put.rate", "cluster.get.rate"}
)

// DirectionOf returns which values of a metric are better, where that is beyond doubt: times are to be short, throughput is to
// be high, and what is in the lists above. The metric may carry an index.
func DirectionOf(name string) Direction {
	name, _, ok := cutIndex(name)
	switch {
	case !ok:
		return NeitherBetter
	case slices.Contains(fewer, name), slices.ContainsFunc([]string{".latency.", ".fct.", ".slowdown.", "ssd.queue.wait.", "ssd.transaction.wait."}, func(part string) bool {
		return strings.Contains(name, part)
	}):
		return LowerIsBetter
	case slices.Contains(more, name), strings.HasSuffix(name, ".iops"), strings.HasSuffix(name, ".bandwidth"):
		return HigherIsBetter
	}
	return NeitherBetter
}
