package result

import "strings"

// Direction indicates which of two values of a metric is better.
type Direction int8

// Most metrics have no direction.
const (
	LowerIsBetter  Direction = -1
	NeitherBetter  Direction = 0
	HigherIsBetter Direction = 1
)

// direction derives the better direction from a metric's name alone: times should be short, throughput high.
func direction(name string) Direction {
	for _, part := range []string{".latency.", ".fct.", ".slowdown.", "ssd.queue.wait.", "ssd.transaction.wait."} {
		if strings.Contains(name, part) {
			return LowerIsBetter
		}
	}
	if strings.HasSuffix(name, ".iops") || strings.HasSuffix(name, ".bandwidth") {
		return HigherIsBetter
	}
	return NeitherBetter
}
