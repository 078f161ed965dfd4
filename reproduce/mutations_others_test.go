package reproduce

import (
	"fmt"

	"farflash/shape"
	"farflash/study/training"
)

// What turns the rows of the Replicast paper, of SRC and of FlashNet. Runs of the Replicast tables are named as in "30x90, 128KiB, disks 400, replicast-m, as SURGE".

// runs makes those of a protocol another's.
func as(other string) shape.Change { return set("object_cluster.protocol", other) }

var (
	multicastUnicast = mutation{name: "Replicast-M sends each replica by itself, as Replicast-H does", changes: in("replicast-m", as("replicast-h"))}
	multicastHashed  = mutation{name: "Replicast-M chooses targets and sends as UCH-CCP does", changes: in("replicast-m", as("uch-ccp"))}
	hybridHashed     = mutation{name: "Replicast-H chooses targets as UCH-CCP does", changes: in("replicast-h", as("uch-ccp"))}
	diskAlike        = mutation{name: "disks of 1000 MiB/s are as slow as those of 400", changes: in("disks 1000", set("object_cluster.disk.rate", "400MiB/s"))}
	links            = mutation{name: "links have 5 Gbit/s", changes: all(set("object_cluster.link.rate", "5Gbps"))}
	lesserLinks      = mutation{name: "links have 8 Gbit/s", changes: all(set("object_cluster.link.rate", "8Gbps"))}
	greaterLinks     = mutation{name: "links have 10.6 Gbit/s", changes: all(set("object_cluster.link.rate", "10.6Gbps"))}
	trips            = mutation{name: "messages take 2 us from node to node", changes: all(set("object_cluster.link.trip", "2us"))}
)

// of is a mutation with the rows that it turns.
func (m mutation) of(rows string) mutation {
	m.rows = rows
	return m
}

var smallClusterMutations = []mutation{
	multicastUnicast.of(`over replicast-h`),
	{name: "120 gateways in the place of 30", rows: `30 initiators less 90`, changes: in("^30x", set("object_cluster.gateways", "120"))},
	multicastHashed.of(`over uch-ccp|less UCH-CCP`),
}

var replicastMutations = map[string][]mutation{
	"table2": {multicastUnicast.of(`the others$`), lesserLinks.of(`128KiB, replicast-h, as SURGE\tchunks`), greaterLinks.of(`1MiB, replicast-h, as SURGE\tlatency`), links.of(``)},
	"table3": {hybridHashed.of(`over UCH-CCP`), greaterLinks.of(`1MiB, (uch-ccp|replicast-h), as SURGE\t(chunks|latency)`), links.of(``)},
	"table4": {{name: "the disks of a target write 115 MB/s", rows: ``, changes: all(set("object_cluster.disk.rate", "115MB/s"))}},
	"table5": {
		{name: "45 gateways", rows: `128KiB, as SURGE\tcounted`, changes: all(set("object_cluster.gateways", "45"))},
		{name: "60 gateways", rows: `128KiB, steady\tcounted`, changes: all(set("object_cluster.gateways", "60"))},
		{name: "22 gateways", rows: `1MiB, steady\tcounted`, changes: all(set("object_cluster.gateways", "22"))},
		{name: "Replicast's control messages are of 250 B", rows: `(128KiB|1MiB), steady\ta bid`, changes: all(set("object_cluster.control.replicast", "250B"))},
		trips.of(``),
	},
	"fig8": {{name: "disks write 20 MiB/s", rows: ``, changes: all(set("object_cluster.disk.rate", "20MiB/s"))}},
	"fig9": {hybridHashed.of(`Replicast-H over`), diskAlike.of(``)},
	"fig10": {
		{name: "small chunks are put as by Replicast-H", rows: `disks 400, steady|over 1MiB, disks 400`, changes: in("16KiB.*replicast-m", as("replicast-h"))},
		{name: "large chunks are put as by Replicast-H, and control messages are of a byte", rows: ``, changes: func(run string) []shape.Change {
			return append(in("(128KiB|1MiB).*replicast-m", as("replicast-h"))(run), in("16KiB", set("object_cluster.control.replicast", "1B"))(run)...)
		}},
	},
	"fig11": {
		multicastUnicast.of(`disks 400`),
		{name: "Replicast's control messages are of 10 B", rows: ``, changes: all(set("object_cluster.control.replicast", "10B"))},
	},
	"fig12": append([]mutation{{name: "links have 40 Gbit/s", rows: `growth`, changes: all(set("object_cluster.link.rate", "40Gbps"))}}, smallClusterMutations...),
	"fig13": append([]mutation{diskAlike.of(`growth`)}, smallClusterMutations...),
}

// staticWeights are a controller that changes nothing.
func staticWeights(ratio int) []shape.Change {
	return []shape.Change{set("rate_control.kind", "static"), set("rate_control.weight_ratio", fmt.Sprint(ratio))}
}

// Runs of SRC's figures are named by their arm.
var (
	unsteered = []shape.Change{{Path: "rate_control", Value: "{kind: static, weight_ratio: 1}"}}
	weighted  = []shape.Change{{Path: "rate_control", Value: "{kind: static, weight_ratio: 32}"}}
	neverFull = mutation{name: "links have 400 Gbit/s", changes: all(uncongested[0])}
	asNone    = mutation{name: "SRC never changes the weights", changes: in("SRC", unsteered...)}
)

var srcMutations = map[string][]mutation{
	"fig2": {
		{name: "writes weigh four times as much as reads", rows: `SRC\twrites`, changes: in("^SRC", set("rate_control", "{kind: static, weight_ratio: 8}"))},
		neverFull.of(``),
	},
	"fig7":  {asNone.of(`lower end`), neverFull.of(``)},
	"fig8":  {neverFull.of(``)},
	"fig10": {asNone.of(`lower end`), {name: "SRC has writes weigh 32 times as much as reads, whatever is demanded", rows: ``, changes: in("SRC", weighted...)}},
	"fig5": {
		{name: "the weight ratio is always 1", rows: `ratio 8 over 1`, changes: all(set("rate_control.weight_ratio", "1"))},
		{name: "the lightest load is as the heaviest", rows: `largest change`, changes: in("^10KB-25us", fig5Flows(40, 10))},
		{name: "all loads are as the lightest", rows: ``, changes: all(fig5Flows(10, 25))},
	},
	"fig9": {
		{name: "weights stay at 3 to 1", rows: `60 ms\tweight`, changes: in("figure", staticWeights(3)...)},
		{name: "weights stay at 5 to 1", rows: `100 ms\tweight`, changes: in("figure", staticWeights(5)...)},
		{name: "reads are paced in the place of weights", rows: ``, changes: in("figure|long", set("rate_control.kind", "pace"))},
	},
	"table1": {
		{name: "a forest of one tree, whose leaves have 100 samples", rows: `random forest`, train: func(c *training.Config) {
			c.Micro, c.Synthetic, c.Forest.Trees, c.Forest.Leaf = 60, 60, 1, 100
		}},
		{name: "each branch of the forest tries one input", rows: `flow speeds`, train: func(c *training.Config) { c.Micro, c.Synthetic, c.Forest.Try = 60, 60, 1 }},
		{name: "16 traces", rows: ``, train: func(c *training.Config) { c.Micro, c.Synthetic = 16, 16 }},
	},
	"table3": {
		{name: "32 traces", rows: ``, train: func(c *training.Config) { c.Micro, c.Synthetic = 16, 16 }},
	},
	"table4": {asNone.of(`2:1\timprovement`), neverFull.of(``)},
}

var flashnetMutations = []mutation{
	{name: "one stream for all pages", rows: `95/20`, flash: func(x *flashInputs) { x.single = true }},
	{name: "20 % of spare space", rows: `80/20`, flash: func(x *flashInputs) { x.spare = 0.2 }},
	{name: "128 segments of 32 pages", rows: ``, flash: func(x *flashInputs) { x.segments, x.pages = 128, 32 }},
}
