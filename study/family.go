package study

import (
	"fmt"
	"slices"
	"strings"

	"farflash/numeric/rng"
	"farflash/result"
)

// family is the list of metrics by which a kind of experiment is judged. It is fixed in advance, because a choice after
// the results would select chance findings.
type family struct {
	has     []string // metrics that identify the kind; nil matches any
	most    int      // size of the family: 6 to 8
	metrics []string // by priority; aliases of earlier ones, and metrics that are 0 throughout, are skipped
}

// families are matched in order, because a system also has the metrics of drives and of flows.
var families = []family{
	{has: []string{"cluster.put.count", "cluster.get.count", "cluster.update.count"}, most: 8, metrics: []string{
		"cluster.put.latency.p99", "cluster.get.latency.p99", "cluster.put.latency.mean", "cluster.get.latency.mean",
		"cluster.put.iops", "cluster.get.iops", "cluster.lost", "cluster.bound.reached",
		"cluster.update.latency.p99", "cluster.update.latency.mean", "cluster.update.iops",
		"cluster.disk.utilisation", "cluster.retried", "cluster.failed", "cluster.put.latency.p99_9",
		"cluster.get.latency.p99_9", "cluster.link.utilisation",
		"cluster.put.latency.p95", "cluster.get.latency.p95", "cluster.imbalance.target.max",
		"cluster.put.latency.max", "cluster.get.latency.max", "cluster.put.latency.p50", "cluster.get.latency.p50"}},
	{has: []string{"cluster.exchange.count", "cluster.event.count"}, most: 6, metrics: []string{
		"cluster.exchange.latency.p99", "cluster.exchange.latency.mean", "cluster.exchange.iops",
		"cluster.event.iops", "cluster.event.pending.mean", "cluster.event.crowded", "cluster.event.held",
		"cluster.event.shaped"}},
	{has: []string{"initiator.read.bandwidth", "target.write.bandwidth", "nvmf.commands"}, most: 8, metrics: []string{
		"read.latency.p99", "write.latency.p99", "read.latency.mean", "write.latency.mean",
		"initiator.read.bandwidth", "target.write.bandwidth", "ssd.waf", "fabric.pause.time",
		"read.bandwidth", "write.bandwidth", "read.latency.p99_9", "write.latency.p99_9", "fabric.queue.max",
		"fabric.drops", "fabric.ecn.marks"}},
	{has: []string{"flow.count"}, most: 7, metrics: []string{
		"flow.fct.p99", "flow.fct.mean", "flow.slowdown.p99", "fabric.goodput", "fabric.queue.max",
		"fabric.pause.time", "fabric.drops",
		"collective.time.mean", "collective.bus_bandwidth", "flow.slowdown.mean", "flow.fct.p50", "flow.fct.max",
		"fabric.retransmits", "fabric.ecn.marks"}},
	{most: 6, metrics: []string{
		"ssd.waf", "read.latency.p99", "write.latency.p99", "read.latency.mean", "write.latency.mean", "all.bandwidth",
		"trim.latency.p99", "read.latency.p99_9", "write.latency.p99_9", "read.latency.p50", "write.latency.p50",
		"ssd.utilisation.die", "ssd.energy", "read.latency.p95", "write.latency.p95", "read.latency.p90",
		"read.latency.max", "write.latency.max"}},
}

// familyOf returns the family for two designs.
func familyOf(a, b []*result.Result) *family {
	has := func(name string) bool {
		_, inA := a[0].Metric(name)
		_, inB := b[0].Metric(name)
		return inA && inB
	}
	i := slices.IndexFunc(families, func(f family) bool { return len(f.has) == 0 || slices.ContainsFunc(f.has, has) })
	return &families[i]
}

// identity returns equal strings for aliases: metrics whose values over all runs of both arms are proportional or, with
// fewer than three distinct values, where proportionality means little, equal and of one unit. Thus all.latency is
// write.latency if there are only writes, and bandwidth is IOPS if all requests have one size.
func identity(unit string, a, b []float64) string {
	all := slices.Concat(a, b)
	unitOfAll := 1.0
	if at := slices.IndexFunc(all, func(v float64) bool { return v != 0 }); at >= 0 && several(all) {
		unitOfAll, unit = all[at], ""
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s %t", unit, unitOfAll > 0)
	for _, v := range all {
		fmt.Fprintf(&text, " %.9e", v/unitOfAll) // ten digits: aliases may differ in the last bits
	}
	return text.String()
}

// several reports whether there are at least three distinct values.
func several(all []float64) bool {
	sorted := slices.Clone(all)
	slices.Sort(sorted)
	return len(slices.Compact(sorted)) >= 3
}

// share converts a log ratio to a relative change.
func share(logarithm float64) float64 { return rng.Exp(logarithm) - 1 }
