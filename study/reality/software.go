// Package reality holds figures that somebody measured on real machines, and the runs whose results belong beside
// them.
//
// Its main types are Run, a scenario, and Figure, a measurement with the model's value. Software has the runs of
// NVMe-oF's software, and SoftwareFigures the figures that follow from them.
//
// It leaves out whether a figure is close enough, which is package reproduce's. The measurements' sources are named by
// each figure; model/nvmf/stack.go says which of them set which parameter.
package reality

import (
	"fmt"
	"math"
	"strings"
)

// Run is a scenario that is to be run.
type Run struct{ Name, Text string }

// Metrics has the results of runs by name: the values of their metrics by name.
type Metrics map[string]map[string]float64

// None is the Parameter of a figure that sets none.
const None = "no parameter"

// Figure is a measured figure beside the model's.
type Figure struct {
	Machines, Metric, Unit string
	Measured, Ours         float64
	Parameter              string // the one that it sets, or None
}

// softwareRun is a run of initiators' and targets' software against a drive of memory.
type softwareRun struct {
	name               string
	initiator, target  string // stacks
	depth, cores, many int    // requests outstanding, cores of the side that is the limit, requests in all
	byTarget           bool   // the target is the limit
	writes             string // "": reads only; "only", or a share of reads
	extra              string // further keys of nvmf
	size               string // "": 4KiB
}

// text returns the scenario.
func (b *softwareRun) text() string {
	protocol, transport := "nvmeof", "rocev2"
	if strings.HasSuffix(b.initiator, "tcp") || b.initiator == "i10" {
		protocol, transport = "nvme-tcp", "tcp"
	}
	size := b.size
	if size == "" {
		size = "4KiB"
	}
	load := fmt.Sprintf("reads: {size: %s}", size)
	switch b.writes {
	case "":
	case "only":
		load = fmt.Sprintf("writes: {size: %s}", size)
	default:
		load = fmt.Sprintf("reads: {size: %s}, writes: {size: %s}, read_fraction: %s", size, size, b.writes)
	}
	side := func(stack string, limits bool) string {
		switch {
		case b.cores == 0:
			return stack
		case limits:
			return fmt.Sprintf("{stack: %s, cores: %d}", stack, b.cores)
		}
		return fmt.Sprintf("{stack: %s, command: 0s, cores: 128}", stack)
	}
	pairs, link := 1, "100Gbps"
	if b.cores > 0 {
		pairs, link = 2*b.cores, "800Gbps"
	}
	extra := ""
	if b.extra != "" {
		extra = ", " + b.extra
	}
	return fmt.Sprintf("name: %s\nssd: ram\ntargets: [{count: 1, ssds: 1}]\nprotocol: %s\nfabric: {transport: %s, "+
		"topology: {star: {hosts: 2}}, host_link: %s, delay: 600ns, buffer: 1GiB, pfc: {enabled: false}}\n"+
		"nvmf: {initiator: %s, target: %s, queue_pairs: %d, queue_depth: 4096%s}\n"+
		"workload: [{name: load, synthetic: {%s}, closed: %d, limit: %d}]\nmeasure: {warm_up: 10%%}\n",
		b.name, protocol, transport, link, side(b.initiator, !b.byTarget), side(b.target, b.byTarget), pairs, extra,
		load, b.depth, b.many)
}

// Software returns the runs of NVMe-oF's software: one initiator and one target with a drive of memory.
//
// No publication measures all of a stack. Each figure is of two machines, a network of 100 Gbit/s or more between them,
// and a device of memory that is not the limit. So are the runs: drive ram behind one switch whose links take 600 ns,
// network cards included.
func Software() []Run {
	alone := func(name, initiator, target string) softwareRun {
		return softwareRun{name: name, initiator: initiator, target: target, depth: 1, many: 20000}
	}
	host := func(name string, cores int) softwareRun {
		return softwareRun{name: name, initiator: "linux-tcp", target: "linux-tcp", depth: 64 * cores, cores: cores,
			many: 20000 + 4000*cores}
	}
	only := func(b softwareRun, writes string) softwareRun {
		b.writes = writes
		return b
	}
	polls := func(b softwareRun) softwareRun { // one poller more in SPDK's loop
		b.target = "{stack: spdk-tcp, poll: 15us}"
		return b
	}
	served := func(name, initiator, target, size, extra string, cores int) softwareRun {
		return softwareRun{name: name, initiator: initiator, target: target, depth: 64 * cores, cores: cores,
			byTarget: true,
			many:     20000 + 10000*cores, size: size, extra: extra}
	}
	spdkHost := softwareRun{name: "spdk-rdma-4-cores", initiator: "spdk-rdma", target: "spdk-rdma", depth: 512,
		cores: 4,
		many:  200000}
	list := []softwareRun{
		host("linux-tcp-1-core", 1), host("linux-tcp-5-cores", 5), host("linux-tcp-10-cores", 10),
		host("linux-tcp-24-cores", 24), only(host("linux-tcp-24-cores-writes", 24), "only"),
		alone("linux-tcp", "linux-tcp", "linux-tcp"), alone("spdk-tcp", "spdk-tcp", "spdk-tcp"),
		alone("linux-to-spdk-tcp", "linux-tcp", "spdk-tcp"), polls(alone("spdk-tcp-polls", "spdk-tcp", "")),
		polls(alone("linux-to-spdk-tcp-polls", "linux-tcp", "")),
		alone("spdk-rdma", "spdk-rdma", "spdk-rdma"), alone("linux-to-spdk-rdma", "linux-rdma", "spdk-rdma"),
		alone("spdk-to-linux-rdma", "spdk-rdma", "linux-rdma"),
		only(alone("spdk-rdma-writes", "spdk-rdma", "spdk-rdma"), "only"),
		only(alone("linux-to-spdk-rdma-writes", "linux-rdma", "spdk-rdma"), "only"),
		only(alone("spdk-rdma-mixed", "spdk-rdma", "spdk-rdma"), "70%"),
		only(alone("linux-to-spdk-rdma-mixed", "linux-rdma", "spdk-rdma"), "70%"),
		served("spdk-rdma-8-cores", "spdk-rdma", "spdk-rdma", "", "", 8),
		served("linux-rdma-8-cores", "spdk-rdma", "linux-rdma", "", "", 8), spdkHost,
		served("spdk-tcp-4-cores", "linux-tcp", "spdk-tcp", "", "", 4),
		served("spdk-tcp-128k", "linux-tcp", "spdk-tcp", "128KiB", "", 1),
		served("spdk-tcp-128k-digest", "linux-tcp", "spdk-tcp", "128KiB", "tcp: {data_digest: true}", 1),
		{name: "i10-1-core", initiator: "i10", target: "linux-tcp", depth: 256, cores: 1, many: 60000},
		alone("i10", "i10", "linux-tcp"),
	}
	var out []Run
	for i := range list {
		out = append(out, Run{list[i].name, list[i].text()})
	}
	return out
}

// SoftwareFigures returns the measurements beside the results of Software. 24 cores, 5 and 10 cores, writes, both pairs
// of stacks for each latency, and a longer poll loop follow from the others.
func SoftwareFigures(got Metrics) (list []Figure) {
	rate := func(name string) float64 { return got[name]["all.iops"] }
	mean := func(name string) float64 { return got[name]["all.latency.mean"] }
	x := func(label, metric string, paper, ours float64, unit, expect string) {
		list = append(list, Figure{label, metric, unit, paper, ours, expect})
	}
	const iops, perSecond, latency, us = "commands", "1/s", "latency", "us"
	x("Linux TCP host, a core, N01", iops, 137e3, rate("linux-tcp-1-core"), perSecond, "the core time")
	x("Linux TCP host, a core, PM1725a, N06", iops, 140e3, rate("linux-tcp-1-core"), perSecond, None)
	x("Linux TCP host, 5 cores, PM1725a, N08", iops, 440e3, rate("linux-tcp-5-cores"), perSecond,
		None)
	x("Linux TCP host, 10 cores, PM1725a, N08", iops, 700e3, rate("linux-tcp-10-cores"), perSecond,
		None)
	x("Linux TCP host, 24 cores, N04", iops, 1.5e6, rate("linux-tcp-24-cores"), perSecond, "the scaling")
	x("Linux TCP host, 24 cores, writes, N05", iops, 1.53e6, rate("linux-tcp-24-cores-writes"), perSecond,
		None)
	x("Linux TCP, N02", latency, 31, mean("linux-tcp"), us, "the target's latency")
	x("Linux TCP, N03", "99th percentile", 100, got["linux-tcp"]["all.latency.p99"], us,
		"the latency's distribution")
	x("SPDK TCP, N13", latency, 27, mean("spdk-tcp"), us, "both latencies")
	x("SPDK TCP from a kernel, N14", latency, 33, mean("linux-to-spdk-tcp"), us, "the initiator's latency")
	x("SPDK TCP, another poller, N15", latency, 42, mean("spdk-tcp-polls"), us, "the loop's period, 15 us")
	x("SPDK TCP from a kernel, another poller, N15", latency, 44.5, mean("linux-to-spdk-tcp-polls"), us,
		None)
	x("SPDK RDMA, N18", latency, 4.64, mean("spdk-rdma"), us, "the links' 600 ns")
	x("SPDK RDMA from a kernel, N19", latency, 10.4, mean("linux-to-spdk-rdma"), us, "the initiator's latency")
	x("SPDK RDMA, writes, N20", latency, 4.01, mean("spdk-rdma-writes"), us, None)
	x("SPDK RDMA from a kernel, writes, N20", latency, 9.06, mean("linux-to-spdk-rdma-writes"), us,
		None)
	x("SPDK RDMA, 70 % reads, N21", latency, 4.48, mean("spdk-rdma-mixed"), us, None)
	x("SPDK RDMA from a kernel, 70 % reads, N21", latency, 10.1, mean("linux-to-spdk-rdma-mixed"), us,
		None)
	x("SPDK RDMA target, 8 cores, N22", iops, 10.94e6, rate("spdk-rdma-8-cores"), perSecond, "the core time")
	x("SPDK RDMA initiator, 4 cores, N23", iops, 5.46e6, rate("spdk-rdma-4-cores"), perSecond, "the core time")
	x("SPDK RDMA target over the kernel's, N24", iops, 5.09, rate("spdk-rdma-8-cores")/rate("linux-rdma-8-cores"),
		"ratio", "the core time, with the next")
	x("SPDK RDMA target over the kernel's, N25", "latency saved", 2.26, mean("spdk-to-linux-rdma")-mean("spdk-rdma"),
		us,
		"the core time, with the one above")
	x("SPDK RDMA initiator over the kernel's, N25", "latency saved", 4.94,
		mean("linux-to-spdk-rdma")-mean("spdk-rdma"), us, "the initiator's latency, with N19")
	x("SPDK TCP target, 4 cores, issue 2159", iops, 1.28e6, rate("spdk-tcp-4-cores"), perSecond, "the core time")
	digest := 1/rate("spdk-tcp-128k-digest") - 1/rate("spdk-tcp-128k")
	x("CRC32C, one stream, N32", "core time a byte", 1/3.5, 1e9*digest/(128<<10), "ns", "the digest's rate")
	return list
}

// SoftwareOthers returns results of Software that were not measured, or whose measurements were not seen, and
// measurements that no run shows, for the reason in place of a parameter.
func SoftwareOthers(got Metrics) []Figure {
	const iops, perSecond, latency, us = "commands", "1/s", "latency", "us"
	none := math.NaN()
	return []Figure{
		{"i10 host, a core", iops, perSecond, none, got["i10-1-core"]["all.iops"], "the paper's batches of 16"},
		{"i10", latency, us, none, got["i10"]["all.latency.mean"], "the paper's delay of 50 us"},
		{"SPDK TCP target, a core, 128 KiB with digest", iops, perSecond, none, got["spdk-tcp-128k-digest"]["all.iops"],
			""},
		{"PM1725a from a Linux TCP host, N07", latency, us, 112, none,
			"needs that drive; 112 us less the 31 of N02 are its own"},
		{"PM1725a from a Linux TCP host, writes on 1 and 10 cores, N09", iops, perSecond, 385e3, none,
			"needs that drive, which is the limit: memory takes 1.5 M writes a second"},
		{"ReFlex, N35, N36 and N37", iops, perSecond, 850e3, none, "a data-plane kernel, which is none of the stacks"},
		{"Local paths, N44 and N45", iops, perSecond, 346e3, none, "a local drive's host takes no time"},
	}
}
