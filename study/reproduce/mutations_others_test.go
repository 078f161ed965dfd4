package reproduce

import (
	"farflash/scenario/shape"
	"farflash/study/training"
)

// Mutations for the rows of the Replicast paper, of SRC and of FlashNet. Runs of the Replicast tables have names such
// as "30x90, 128KiB, disks 400, replicast-m, as SURGE".

// as replaces a protocol by another.
func as(other string) shape.Change { return set("object_cluster.protocol", other) }

var (
	multicastUnicast = mutation{name: "Replicast-M sends each replica by itself, as Replicast-H does",
		changes: in("replicast-m", as("replicast-h"))}
	multicastHashed = mutation{name: "Replicast-M chooses targets and sends as UCH-CCP does",
		changes: in("replicast-m", as("uch-ccp"))}
	hybridHashed = mutation{name: "Replicast-H chooses targets as UCH-CCP does",
		changes: in("replicast-h", as("uch-ccp"))}
	diskAlike = mutation{name: "disks of 1000 MiB/s are as slow as those of 400",
		changes: in("disks 1000", set("object_cluster.disk.rate", "400MiB/s"))}
	links       = mutation{name: "links have 5 Gbit/s", changes: all(set("object_cluster.link.rate", "5Gbps"))}
	lesserLinks = mutation{name: "links have 8 Gbit/s", changes: all(set("object_cluster.link.rate", "8Gbps"))}
	littleMore  = mutation{name: "links have 10.25 Gbit/s",
		changes: all(set("object_cluster.link.rate", "10.25Gbps"))}
	greaterLinks = mutation{name: "links have 10.6 Gbit/s",
		changes: all(set("object_cluster.link.rate", "10.6Gbps"))}
	trips = mutation{name: "messages take 2 us from node to node",
		changes: all(set("object_cluster.link.trip", "2us"))}
)

// nothing lists rows that are not reproduced and that no known mutation flips.
func nothing(rows string) mutation { return mutation{rows: rows} }

// of returns a mutation with the rows that it flips.
func (m mutation) of(rows string) mutation {
	m.rows = rows
	return m
}

var softwareMutations = []mutation{
	{name: "cores share nothing", rows: `(5|10|24) cores.*\tcommands`,
		changes: all(set("nvmf.initiator.scaling", "100%"))},
	{name: "latencies are constant", rows: `percentile`, changes: all(set("nvmf.initiator.latency_p99", "0s"))},
	{name: "digests take no time", rows: `^CRC`, changes: all(set("nvmf.target.digest", "0B/s"))},
	{name: "an idle core finds messages at once", rows: `poller`, changes: all(set("nvmf.target.poll", "0s"))},
	{name: "a command takes 20 us at both ends", rows: ``,
		changes: all(set("nvmf.initiator.command", "20us"), set("nvmf.target.command", "20us"))},
}

var smallClusterMutations = []mutation{
	multicastUnicast.of(`over replicast-h`),
	{name: "20 gateways in the place of 90", rows: `30 initiators less 90`,
		changes: in("^90x", set("object_cluster.gateways", "20"))},
	multicastHashed.of(`over uch-ccp|less UCH-CCP`),
}

var replicastMutations = map[string][]mutation{
	"table2": {multicastUnicast.of(`the others$`), lesserLinks.of(`128KiB, replicast-h, as SURGE\tchunks`),
		greaterLinks.of(`1MiB, replicast-h, as SURGE\tlatency`), links.of(``)},
	"table3": {nothing(`1MiB, replicast-h, as SURGE\tlatency`), hybridHashed.of(`over UCH-CCP`),
		greaterLinks.of(`1MiB, uch-ccp, as SURGE\t(chunks|latency)`),
		littleMore.of(`1MiB, replicast-h, as SURGE\tchunks`), links.of(``)},
	"table4": {{name: "the disks of a target write 115 MB/s", rows: ``,
		changes: all(set("object_cluster.disk.rate", "115MB/s"))}},
	"table5": {
		{name: "60 gateways", rows: `128KiB, steady\tcounted`, changes: all(set("object_cluster.gateways", "60"))},
		nothing(`1MiB.*counted|128KiB, as SURGE\tcounted|(128KiB|1MiB), steady\ta bid`),
		trips.of(``),
	},
	"fig8": {{name: "disks write 20 MiB/s", rows: ``, changes: all(set("object_cluster.disk.rate", "20MiB/s"))}},
	"fig9": {
		nothing(`^Replicast-M, 128 KiB, steady`), hybridHashed.of(`Replicast-H over`),
		multicastHashed.of(`uch-ccp over`), multicastUnicast.of(`replicast-h over`),
		{name: "large chunks find disks of 1000 MiB/s as slow as those of 400", rows: `1 MiB over`,
			changes: in("1MiB, disks 1000", set("object_cluster.disk.rate", "400MiB/s"))},
		diskAlike.of(``),
	},
	"fig10": {
		{name: "small chunks are put as by Replicast-H", rows: `disks 400, steady|over 1MiB, disks 400`,
			changes: in("16KiB.*replicast-m", as("replicast-h"))},
		{name: "large chunks are put as by UCH-CCP", rows: `disks 1000, steady`,
			changes: in("(128KiB|1MiB).*replicast-m", as("uch-ccp"))},
		{name: "large chunks are put as by Replicast-H, and control messages are of a byte", rows: ``,
			changes: func(run string) []shape.Change {
				return append(in("(128KiB|1MiB).*replicast-m", as("replicast-h"))(run),
					in("16KiB.*replicast-m", set("object_cluster.control.replicast", "1B"))(run)...)
			}},
	},
	"fig11": {
		multicastUnicast.of(`disks 400`),
		nothing(`disks 1000, steady`),
		{name: "UCH-CCP chooses targets and sends as Replicast-H does", rows: ``,
			changes: in("uch-ccp", as("replicast-h"))},
	},
	"fig12": append([]mutation{{name: "links have 40 Gbit/s", rows: `growth`,
		changes: all(set("object_cluster.link.rate", "40Gbps"))}}, smallClusterMutations...),
	"fig13": append([]mutation{diskAlike.of(`growth`)}, smallClusterMutations...),
}

// Runs of SRC's figures are named by their arm.
var (
	unsteered    = mutation{name: "SRC's arm has no rate control", changes: in("SRC", set("rate_control.kind", "none"))}
	whileWaiting = mutation{name: "shares of the drives' depth bind only while both queues wait",
		changes: in("SRC", set("rate_control.partition", "waiting"))}
	neverFull = mutation{name: "links have 400 Gbit/s", changes: all(uncongested[0])}
)

// For many of SRC's rows that are not reproduced no known mutation makes them ok: the paper's drives and loads are not
// printed.
var srcMutations = map[string][]mutation{
	"fig2": {{name: "the hosts' links have 15 Gbit/s without congestion", rows: `no congestion\treads`,
		changes: in("no congestion", set("fabric.host_link", "15Gbps"))},
		neverFull.of(`(DCQCN|SRC)\treads|interval`)},
	"fig7": {unsteered.of(`lower end`), whileWaiting.of(`reads`), {
		name: "links have 400 Gbit/s, and shares bind only while both queues wait", rows: `SRC over no congestion`,
		changes: all(uncongested[0], set("rate_control.partition", "waiting"))}},
	"fig8": {{name: "the load ends after a tenth of the time", rows: ``,
		changes: all(set("workload[0].synthetic.requests", "2000"))}},
	"fig9": {nothing(`weight ratio|control delay|^3 Gbit`), {name: "the weight ratio is always 1", rows: `reads`,
		changes: in("figure", set("rate_control.kind", "static"))}},
	"fig10":  {unsteered.of(``)},
	"table4": {whileWaiting.of(`2:1\timprovement`)},
	"fig5": {
		{name: "the weight ratio is always 1", rows: `ratio 8 over 1`,
			changes: all(set("rate_control.weight_ratio", "1"))},
		{name: "shares bind under the lightest load only while both queues wait", rows: `largest change`,
			changes: in("^10KB-25us", set("rate_control.partition", "waiting"))},
		{name: "all loads are as the lightest", rows: ``, changes: all(fig5Flows(10, 25))},
	},
	"table1": {
		nothing(`linear|polynomial|worst output`),
		{name: "requests arrive a tenth as often, and no drive is saturated", rows: `flow speeds`,
			train: func(c *training.Config) {
				c.Micro, c.Synthetic, c.Gaps[0], c.Gaps[1] = 60, 60, 10*c.Gaps[0], 10*c.Gaps[1]
			}},
		{name: "a forest of one tree, whose leaves have 100 samples", rows: `random forest`,
			train: func(c *training.Config) {
				c.Micro, c.Synthetic, c.Forest.Trees, c.Forest.Leaf = 60, 60, 1, 100
			}},
		{name: "16 traces", rows: ``, train: func(c *training.Config) { c.Micro, c.Synthetic = 16, 16 }},
	},
	"table3": {
		nothing(`low size SCV \+ low|high size SCV \+ high`),
		{name: "32 traces, and a forest of one tree, whose leaves have 100 samples", rows: ``,
			train: func(c *training.Config) {
				c.Micro, c.Synthetic, c.Forest.Trees, c.Forest.Leaf = 16, 16, 1, 100
			}},
	},
}

var flashnetMutations = []mutation{
	{name: "one stream for all pages, in a pool of 128 segments of 32 pages", rows: `95/20`,
		flash: func(x *flashInputs) { x.segments, x.pages, x.single = 128, 32, true }},
	{name: "pages that are written about as often as the mean are what tells hot from cold, in a pool of 128 " +
		"segments of 32 pages", rows: ``,
		flash: func(x *flashInputs) { x.segments, x.pages, x.hot, x.warm = 128, 32, 0.9, 1.1 }},
}
