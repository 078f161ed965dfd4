package accounts

import (
	"slices"
	"strings"

	"farflash/result"
)

// Define defines the scopes, whose parts have the existing metrics of reads, writes and both, and fairness.
func Define(l *result.Lexicon) {
	own := func(name string) bool {
		op, _, _ := strings.Cut(name, ".")
		return slices.Contains([]string{"read", "write", "all"}, op) ||
			slices.Contains([]string{"trim", "flush", "reset", "finish", "open", "close"}, op) &&
				!strings.Contains(name, "latency")
	}
	for k, x := range scopeNames {
		var more []result.Definition
		if k == workload || k == tenant {
			more = lone
		}
		if k == namespace {
			more = flash
		}
		l.Scope(x.name, x.noun, own, more...)
	}
	l.Metric("fairness.bandwidth", "fraction",
		"Jain's index of the bandwidths of tenants (workloads if none is named): 1 if all are equal, 1/n if one of n "+
			"has it all")
	l.Metric("fairness.progress", "fraction",
		"Jain's index of the progress of tenants or workloads: requests per second of its own time over those of a run "+
			"alone (measure.alone)")
	l.Metric("fairness.slowdown", "fraction",
		"smallest slowdown of a tenant or workload over the largest: 1 if sharing slows all equally (measure.alone)")
	l.More("fairness.bandwidth", "fairness.progress", "fairness.slowdown")
}

// flash are the metrics of flash by namespace, if the drive has several.
var flash = []result.Definition{
	{Name: "writes.host", Unit: "count", Help: "map grains programmed with host data"},
	{Name: "writes.moved", Unit: "count",
		Help: "map grains programmed to move data, for garbage collection, wear levelling or refresh"},
	{Name: "waf", Unit: "ratio",
		Help:   "write amplification: grains programmed per grain of host writes, without the map's",
		Better: result.LowerIsBetter},
}

// lone are the metrics of a tenant or workload that was also run alone.
var lone = []result.Definition{
	{Name: "alone.latency.mean", Unit: "us", Help: "mean request latency when running alone",
		Better: result.LowerIsBetter},
	{Name: "alone.latency.p99", Unit: "us",
		Help:   "99th percentile of request latency when running alone",
		Better: result.LowerIsBetter},
	{Name: "alone.iops", Unit: "1/s", Help: "requests per second when running alone", Better: result.HigherIsBetter},
	{Name: "slowdown.mean", Unit: "ratio", Help: "mean latency over that when running alone",
		Better: result.LowerIsBetter},
	{Name: "slowdown.p99", Unit: "ratio", Help: "99th percentile of latency over that when running alone",
		Better: result.LowerIsBetter},
	{Name: "progress", Unit: "ratio",
		Help: "requests per second over those when running alone, each from its first arrival to its last completion", Better: result.HigherIsBetter},
}
