package study

import (
	"fmt"
	"slices"
	"strings"

	"farflash/result"
	"farflash/rng"
)

// family is what designs of one kind of experiment are judged by. It is chosen before anything runs: a choice that knows the results would find what chance made.
type family struct {
	has     []string // a result that has one of these is of the kind; none: any is
	most    int      // how many of the metrics are tested: 6 to 8
	metrics []string // the first ones that there are; what one has before it under another name, or what is 0 in all runs, is passed over
}

// families are looked through in order: what is served over a network has drives and flows of its own.
var families = []family{
	{has: []string{"cluster.put.count", "cluster.get.count", "cluster.update.count"}, most: 8, metrics: []string{
		"cluster.put.latency.p99", "cluster.get.latency.p99", "cluster.put.latency.mean", "cluster.get.latency.mean", "cluster.put.iops", "cluster.get.iops", "cluster.lost", "cluster.bound.reached",
		"cluster.update.latency.p99", "cluster.update.latency.mean", "cluster.update.iops", "cluster.disk.utilisation", "cluster.retried", "cluster.failed", "cluster.put.latency.p99_9", "cluster.get.latency.p99_9", "cluster.link.utilisation",
		"cluster.put.latency.p95", "cluster.get.latency.p95", "cluster.imbalance.target.max", "cluster.put.latency.max", "cluster.get.latency.max", "cluster.put.latency.p50", "cluster.get.latency.p50"}},
	{has: []string{"cluster.exchange.count", "cluster.event.count"}, most: 6, metrics: []string{
		"cluster.exchange.latency.p99", "cluster.exchange.latency.mean", "cluster.exchange.iops", "cluster.event.iops", "cluster.event.pending.mean", "cluster.event.crowded", "cluster.event.held", "cluster.event.shaped"}},
	{has: []string{"initiator.read.bandwidth", "target.write.bandwidth", "nvmf.commands"}, most: 8, metrics: []string{
		"read.latency.p99", "write.latency.p99", "read.latency.mean", "write.latency.mean", "initiator.read.bandwidth", "target.write.bandwidth", "ssd.waf", "fabric.pause.time",
		"read.bandwidth", "write.bandwidth", "read.latency.p99_9", "write.latency.p99_9", "fabric.queue.max", "fabric.drops", "fabric.ecn.marks"}},
	{has: []string{"flow.count"}, most: 7, metrics: []string{
		"flow.fct.p99", "flow.fct.mean", "flow.slowdown.p99", "fabric.goodput", "fabric.queue.max", "fabric.pause.time", "fabric.drops",
		"collective.time.mean", "collective.bus_bandwidth", "flow.slowdown.mean", "flow.fct.p50", "flow.fct.max", "fabric.retransmits", "fabric.ecn.marks"}},
	{most: 6, metrics: []string{
		"ssd.waf", "read.latency.p99", "write.latency.p99", "read.latency.mean", "write.latency.mean", "all.bandwidth",
		"trim.latency.p99", "read.latency.p99_9", "write.latency.p99_9", "read.latency.p50", "write.latency.p50", "ssd.utilisation.die", "ssd.energy", "read.latency.p95", "write.latency.p95", "read.latency.p90", "read.latency.max", "write.latency.max"}},
}

// familyOf returns the family that suits two designs.
func familyOf(a, b []*result.Result) *family {
	has := func(name string) bool {
		_, inA := a[0].Metric(name)
		_, inB := b[0].Metric(name)
		return inA && inB
	}
	i := slices.IndexFunc(families, func(f family) bool { return len(f.has) == 0 || slices.ContainsFunc(f.has, has) })
	return &families[i]
}

// identity is the same for metrics that are one number under several names: whose values over all runs of both arms are proportional, or equal and of one unit if
// fewer than three values occur, among which there is proportion by accident. So the latency of all requests is that of writes where nothing else is done,
// and the bandwidth is the rate where all requests are of one size.
func identity(unit string, a, b []float64) string {
	all := slices.Concat(a, b)
	unitOfAll := 1.0
	if at := slices.IndexFunc(all, func(v float64) bool { return v != 0 }); at >= 0 && several(all) {
		unitOfAll, unit = all[at], ""
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s %t", unit, unitOfAll > 0)
	for _, v := range all {
		fmt.Fprintf(&text, " %.9e", v/unitOfAll) // what is written of it is the same where only the last bits differ
	}
	return text.String()
}

// several tells whether at least three values occur.
func several(all []float64) bool {
	sorted := slices.Clone(all)
	slices.Sort(sorted)
	return len(slices.Compact(sorted)) >= 3
}

// share is how many times e to the power of a logarithm exceeds 1.
func share(logarithm float64) float64 { return rng.Exp(logarithm) - 1 }
