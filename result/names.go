package result

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Definition says what a name means.
type Definition struct {
	Name string
	Unit string // see Units in condition.go for those of metrics
	Help string // one sentence fragment, without a full stop
}

// Table is an ordered list of definitions. A name's first part may carry an index, "ssd[2].waf", if its group allows it.
type Table struct {
	what string
	list []Definition
	rank map[string]int
}

// indexed lists the first parts of names of which a system may have several.
var indexed = []string{"ssd", "initiator", "target", "flow"}

// newTable panics on a name that is listed twice.
func newTable(what string, list []Definition) *Table {
	t := &Table{what: what, list: list, rank: make(map[string]int, len(list))}
	for i, d := range list {
		if _, twice := t.rank[d.Name]; twice {
			panic("result: two definitions of " + d.Name)
		}
		t.rank[d.Name] = i
	}
	return t
}

// All returns the definitions in order. The caller must not change them.
func (t *Table) All() []Definition { return t.list }

// Lookup returns the definition of a name, an indexed one included.
func (t *Table) Lookup(name string) (Definition, bool) {
	plain, _, ok := cutIndex(name)
	if !ok {
		return Definition{}, false
	}
	i, ok := t.rank[plain]
	if !ok {
		return Definition{}, false
	}
	d := t.list[i]
	d.Name = name
	return d, true
}

// must returns the definition of a name that the program itself wrote.
func must(t *Table, name string) Definition {
	d, ok := t.Lookup(name)
	if !ok {
		panic(fmt.Sprintf("result: %q is not a %s; add it to names.go", name, t.what))
	}
	return d
}

// cutIndex turns "ssd[2].waf" into "ssd.waf" and 2; the index of a plain name is -1.
func cutIndex(name string) (plain string, index int, ok bool) {
	open := strings.IndexByte(name, '[')
	if open < 0 {
		return name, -1, true
	}
	group := name[:open]
	number, rest, found := strings.Cut(name[open+1:], "]")
	n, err := strconv.Atoi(number)
	if !found || err != nil || n < 0 || strconv.Itoa(n) != number || !slices.Contains(indexed, group) {
		return "", 0, false
	}
	return group + rest, n, true
}

// compare orders names as the table does: by group (the part before the first dot), then by index with the plain name
// first, then by place in the table. Names that are not in the table come last, in alphabetical order.
func (t *Table) compare(a, b string) int {
	if a == b {
		return 0
	}
	pa, ia, okA := cutIndex(a)
	pb, ib, okB := cutIndex(b)
	ra, knownA := t.rank[pa]
	rb, knownB := t.rank[pb]
	knownA, knownB = knownA && okA, knownB && okB
	switch {
	case !knownA && !knownB:
		return strings.Compare(a, b)
	case !knownA:
		return 1
	case !knownB:
		return -1
	}
	groupA, _, _ := strings.Cut(pa, ".")
	groupB, _, _ := strings.Cut(pb, ".")
	if groupA != groupB || ia == ib {
		return cmp.Compare(ra, rb)
	}
	return cmp.Compare(ia, ib)
}

// The tables of names. They never change.
var (
	Metrics        = newTable("metric", metricDefinitions())
	SeriesNames    = newTable("series", seriesDefinitions())
	HistogramNames = newTable("histogram", histogramDefinitions())
	MatrixNames    = newTable("matrix", matrixDefinitions())
)

// kinds are the operations that requests are counted by.
var kinds = []struct{ name, noun string }{
	{"read", "reads"}, {"write", "writes"}, {"trim", "trims"}, {"flush", "flushes"}, {"all", "all requests"},
}

// Stages are the parts of the time of a request that goes over a network to a drive, in the order of a read: the columns of
// the anatomy matrices and the names between "stage." and ".mean" of their metrics.
var Stages = []Stage{
	{"initiator", "initiator (queue and software)"}, {"network_out", "network out"}, {"target", "target queue"}, {"drive_wait", "drive wait"},
	{"flash", "flash"}, {"txq", "TXQ wait"}, {"network_back", "network back"},
}

// Stage is a part of the time of a request.
type Stage struct{ Name, Words string }

// queues are the classes of flash transactions that wait apart from each other.
var queues = []struct{ name, noun string }{
	{"host_read", "reads for the host"},
	{"host_read.urgent", "reads for the host of class urgent"},
	{"host_read.high", "reads for the host of class high"},
	{"host_read.medium", "reads for the host of class medium"},
	{"host_read.low", "reads for the host of class low"},
	{"host_write", "programs for the host"},
	{"host_write.urgent", "programs for the host of class urgent"},
	{"host_write.high", "programs for the host of class high"},
	{"host_write.medium", "programs for the host of class medium"},
	{"host_write.low", "programs for the host of class low"},
	{"mapping_read", "reads of mapping pages"},
	{"mapping_write", "programs of mapping pages"},
	{"gc_read", "reads for garbage collection and wear levelling"},
	{"gc_write", "programs for garbage collection and wear levelling"},
	{"gc_erase", "erases"},
}

func metricDefinitions() []Definition {
	var list []Definition
	add := func(name, unit, help string) { list = append(list, Definition{name, unit, help}) }
	for _, k := range kinds {
		add(k.name+".count", "count", "completed "+k.noun+" after the warm-up")
		add(k.name+".bytes", "B", "bytes of completed "+k.noun+" after the warm-up")
		add(k.name+".iops", "1/s", "completed "+k.noun+" per second of measured time")
		add(k.name+".bandwidth", "B/s", "bytes of completed "+k.noun+" per second of measured time")
		what := " of the time from submission to completion of " + k.noun
		add(k.name+".latency.mean", "us", "mean"+what)
		add(k.name+".latency.stddev", "us", "standard deviation"+what)
		add(k.name+".latency.min", "us", "minimum"+what)
		for _, q := range Quantiles {
			add(k.name+".latency."+q.Name, "us", strconv.FormatFloat(q.Share*100, 'g', 6, 64)+"th percentile"+what)
		}
		add(k.name+".latency.max", "us", "maximum"+what)
		if k.name != "read" && k.name != "write" {
			continue
		}
		for _, s := range Stages {
			add(k.name+".stage."+s.Name+".mean", "us", "mean time that "+k.noun+" over a network spent in the stage "+s.Words)
		}
	}
	ssdDefinitions(add)

	add("fabric.pause.count", "count", "PFC pause frames sent")
	add("fabric.pause.time", "s", "time during which ports were paused, summed over ports")
	add("fabric.ecn.marks", "count", "packets marked with congestion experienced")
	add("fabric.cnp.count", "count", "congestion notification packets sent")
	add("fabric.drops", "count", "packets dropped")
	add("fabric.packet_hops", "count", "packets forwarded, counted once per link")
	add("fabric.retransmits", "count", "packets sent again")
	add("fabric.timeouts", "count", "retransmission timers that expired")
	add("fabric.nacks", "count", "negative acknowledgements sent")
	add("fabric.queue.max", "B", "largest queue of any switch port and class, warm-up included")
	add("fabric.deadlocks", "count", "circles of paused ports that the watchdog found")
	add("fabric.goodput", "bit/s", "payload that reached hosts per second of measured time, over all hosts")
	add("fabric.utilisation.max", "fraction", "share of measured time that the busiest link was busy")
	add("flow.count", "count", "flows that began after the warm-up and ended")
	add("flow.unfinished", "count", "flows that began after the warm-up and did not end")
	add("flow.bytes", "B", "bytes of the flows that ended")
	for _, f := range []struct{ name, unit, noun string }{{"fct", "us", "flow completion time"}, {"slowdown", "ratio", "flow completion time over what it would be alone"}} {
		add("flow."+f.name+".mean", f.unit, "mean of the "+f.noun)
		for _, q := range FlowQuantiles {
			add("flow."+f.name+"."+q.Name, f.unit, strconv.FormatFloat(q.Share*100, 'g', 6, 64)+"th percentile of the "+f.noun)
		}
		add("flow."+f.name+".max", f.unit, "maximum of the "+f.noun)
	}
	add("nvmf.commands", "count", "commands that ended; a request may be several")
	add("nvmf.held.initiator", "count", "commands that waited for a place in a queue pair")
	add("nvmf.held.target", "count", "commands that waited for a place in a drive's queue")
	add("nvmf.held.txq", "count", "commands that waited for room in a target's transmit queue")
	add("nvmf.txq.max", "B", "most that a target's transmit queue has held")
	add("initiator.read.bandwidth", "B/s", "read data received at initiators per second of measured time")
	add("target.write.bandwidth", "B/s", "write data stored at targets per second of measured time")
	add("aggregate.bandwidth", "B/s", "reads received at initiators plus writes done at targets, per second (SRC's definition)")

	for _, op := range []string{"put", "get", "exchange"} {
		name, noun := "cluster."+op, op+" operation"
		add(name+".count", "count", "completed "+noun+"s")
		add(name+".aborted", "count", noun+"s that were given up and begun again")
		add(name+".iops", "1/s", "completed "+noun+"s per second")
		add(name+".rate", "B/s", "bytes of completed "+noun+"s per second")
		add(name+".latency.mean", "us", "mean time of a "+noun)
		add(name+".latency.stddev", "us", "standard deviation of the time of a "+noun)
		add(name+".latency.min", "us", "shortest time of a "+noun)
		for _, q := range Quantiles {
			add(name+".latency."+q.Name, "us", strconv.FormatFloat(q.Share*100, 'g', 6, 64)+"th percentile of the time of a "+noun)
		}
		add(name+".latency.max", "us", "longest time of a "+noun)
	}
	add("cluster.lost", "count", "frames and messages that a receiver missed")
	add("cluster.retried", "count", "attempts at a chunk that were not done in time and were begun again")
	add("cluster.failed", "count", "chunks that could not be put or got")
	add("cluster.get.degraded", "count", "reads of chunks of which a piece was missing")
	add("cluster.get.unavailable", "count", "reads of chunks of which too many pieces were missing")
	add("cluster.repair.lost", "count", "pieces of chunks that failures of targets have cost")
	add("cluster.repair.done", "count", "pieces that were made again")
	add("cluster.repair.until", "s", "when the last piece was made again")
	add("cluster.durability.mttdl", "years", "mean time until any chunk is lost, by failures of drives alone")
	add("cluster.durability.loss", "ratio", "chance that any chunk is lost within a year")
	add("cluster.durability.nines", "ratio", "minus the decimal logarithm of that chance")
	add("cluster.durability.chunk_nines", "ratio", "the same of the chance that a given chunk is lost within a year")
	add("cluster.durability.rebuild", "s", "time to make again what a failed drive kept")
	add("cluster.durability.copysets", "count", "sets of targets that keep all copies of some chunk")
	add("cluster.durability.accelerated.factor", "ratio", "how much more often drives fail where the loss of one such set is simulated")
	add("cluster.durability.accelerated.chain", "years", "mean time to that loss by the formula")
	add("cluster.durability.accelerated.simulated", "years", "mean time to that loss as simulated")
	add("cluster.durability.accelerated.half", "years", "half the 95 % interval of the simulated time")
	add("cluster.multicast.rules", "count", "rules that each switch holds if every set of 2 to all replicas of each group has one")
	add("cluster.multicast.bier", "B", "header that each multicast packet has if it names its receivers by bits (BIER)")
	add("cluster.get.hedged", "count", "reads that asked one target more, as the first was late")
	add("cluster.disk.utilisation", "fraction", "share of time that disks were busy, mean over disks")
	add("cluster.link.utilisation", "fraction", "share of time that links were busy, mean over links")
	add("cluster.ding.count", "count", "times that a sender halved its rate because its target said so")
	add("cluster.choosy.retries", "count", "times that a gateway asked for other bids because the best was too far away")
	add("cluster.reject.count", "count", "windows that were promised to two gateways and taken back from one that had chosen them")
	add("cluster.replica.count", "count", "replicas acknowledged")
	add("cluster.message.count", "count", "control messages received")
	add("cluster.frame.count", "count", "frames of data received, counted once for each receiver")
	add("cluster.tx.bytes", "B", "bytes that nodes sent; what is multicast counts once")
	add("cluster.rx.data", "B", "bytes of data that targets received")
	add("cluster.rx.control", "B", "bytes of control messages that nodes received")
	add("cluster.rx.busy.data", "fraction", "share of time that targets' links received data, mean over targets")
	add("cluster.rx.busy.control", "fraction", "share of time that targets' links received control messages, mean over targets")
	add("cluster.disk.queue.mean", "count", "frames that wait for a disk, mean over disks and the ends of slices")
	add("cluster.disk.queue.max", "count", "most frames that wait for a disk at the end of a slice")
	add("cluster.event.count", "count", "events that nodes handled")
	add("cluster.event.iops", "1/s", "events that nodes handled per second")
	add("cluster.event.held", "count", "exchanges that were not begun because no peer that was drawn had room")
	add("cluster.event.shaped", "count", "exchanges that waited for their node's bucket")
	add("cluster.event.pending.mean", "count", "time-weighted mean number of events on their way to a node or waiting there, mean over nodes that receive")
	add("cluster.event.pending.max", "count", "most events that were on their way to a node or waiting there")
	add("cluster.event.crowded", "fraction", "share of time that more than one event was on its way to a node or waiting there, mean over nodes that receive")
	add("cluster.tier.used", "fraction", "share of the SSD that was in use, mean over the ends of slices")
	add("cluster.tier.moved", "count", "chunks that left the SSD for an HDD")
	add("cluster.tier.held", "count", "writes that waited for the SSD to take them")
	add("cluster.tier.waiting.mean", "count", "writes that wait for the SSD to take them, mean over the ends of slices")
	add("cluster.tier.waiting.max", "count", "most writes that waited for the SSD to take them")
	add("cluster.tier.drains", "count", "times that the SSD came to its high watermark")
	add("cluster.bound.rate", "B/s", "largest rate that the busiest resource allows")
	add("cluster.bound.reached", "fraction", "measured rate over the bound")
	add("cluster.bound.used", "fraction", "share of the time of the disks or links that bound the cluster in which they worked for chunks; what is lost of it is in cluster.loss, and the sum is 1")
	add("cluster.loss.repair", "fraction", "share in which disks read or wrote to make pieces again")
	add("cluster.loss.control", "fraction", "share in which links carried control messages")
	add("cluster.loss.receiving", "fraction", "share in which disks waited for a piece that came in just then")
	add("cluster.loss.reserved", "fraction", "share in which data was promised to a target, or some of a piece had come, and nothing was sent to it")
	add("cluster.loss.tentative", "fraction", "share in which a target had bid, or offered itself, and nobody had answered")
	add("cluster.loss.waiting", "fraction", "share in which gateways' links waited for answers while chunks were under way, or targets' links for what disks read")
	add("cluster.loss.idle", "fraction", "share in which nobody wanted anything of the target, or the gateway had no chunk")
	add("cluster.loss.down", "fraction", "share in which the target had failed")
	add("cluster.imbalance.target.max", "ratio", "use of the busiest target's disk over the mean of all")
	add("cluster.imbalance.target.cv", "fraction", "standard deviation of the use of targets' disks over its mean")
	add("cluster.imbalance.group.max", "ratio", "use of the disks of the busiest negotiating group over the mean of all")
	add("cluster.imbalance.group.cv", "fraction", "standard deviation of the use of negotiating groups' disks over its mean")
	add("cluster.bid.requests", "count", "requests for bids that came to targets")
	add("cluster.bid.interval", "us", "mean time between two such requests at a target")
	add("cluster.bid.tentative", "us", "mean time from a bid to its gateway's answer, at the target")
	add("cluster.bid.overlap", "fraction", "share of requests that came while another bid of the target was tentative")

	add("snis.iterations", "count", "iterations between the storage and the network simulation")
	add("snis.converged", "count", "1 if the iterations converged, 0 if not")
	add("snis.fixed_at", "count", "the first iteration that gave exactly what the one before gave")
	add("snis.error.request.mean", "us", "mean distance of a request's delay in the last iteration from that in one loop")
	add("snis.error.request.max", "us", "largest distance of a request's delay in the last iteration from that in one loop")

	add("rate.demanded", "B/s", "mean rate that the controller asked the targets to keep to")
	add("rate.weight_ratio", "ratio", "mean weight of writes over reads that the controller set")
	add("rate.control_delay.mean", "us", "mean time from a change of the network to the change of the weights")
	add("rate.predictions", "count", "predictions that the controller asked its model for")

	add("sim.events", "count", "events that the simulation ran")
	return list
}

func ssdDefinitions(add func(name, unit, help string)) {
	for _, k := range kinds[:2] {
		add("ssd."+k.name+".count", "count", k.noun+" that drives completed after the warm-up")
		add("ssd."+k.name+".bytes", "B", "bytes of "+k.noun+" that drives completed after the warm-up")
	}
	add("ssd.waf", "ratio", "write amplification: pages programmed per page that the host wrote")
	add("ssd.writes.host", "count", "pages programmed with the host's data")
	add("ssd.writes.gc", "count", "pages programmed to move data for garbage collection")
	add("ssd.writes.mapping", "count", "mapping pages programmed")
	add("ssd.writes.wear", "count", "pages programmed to move data for wear levelling")
	add("ssd.gc.count", "count", "blocks collected")
	add("ssd.gc.pages_moved", "count", "valid pages moved by garbage collection")
	add("ssd.flash.reads", "count", "flash page reads")
	add("ssd.flash.programs", "count", "flash page programs")
	add("ssd.flash.erases", "count", "flash block erases")
	add("ssd.flash.suspensions", "count", "programs and erases suspended for a read")
	add("ssd.cmt.hit_ratio", "fraction", "mapping look-ups answered by the cached mapping table")
	add("ssd.cache.hit_ratio", "fraction", "requested pages found in the drive's DRAM cache")
	add("ssd.utilisation.die", "fraction", "share of measured time that dies were busy, mean over dies")
	add("ssd.utilisation.channel", "fraction", "share of measured time that flash channels were busy, mean over channels")
	add("ssd.utilisation.link", "fraction", "share of measured time that the busier direction of the host link was busy")
	add("ssd.wear.min", "count", "erases of the least worn block")
	add("ssd.wear.mean", "count", "erases of a block, mean over blocks")
	add("ssd.wear.max", "count", "erases of the most worn block")
	add("ssd.wear.life_used", "fraction", "mean erases of a block over the rated program/erase cycles")
	add("ssd.free_blocks.min", "count", "fewest free blocks of any plane during the run")
	add("ssd.energy", "J", "energy taken during the run")
	add("ssd.power", "W", "mean power during the run")
	for _, part := range []struct{ name, help string }{
		{"execution", "mean time that the array worked on a flash %s"},
		{"transfer", "mean time that a flash %s moved over its channel"},
		{"wait", "mean time that a flash %s waited for its die or channel"},
	} {
		for _, op := range []string{"read", "write"} {
			add("ssd.transaction."+part.name+"."+op+".mean", "us", fmt.Sprintf(part.help, op))
		}
	}
	for _, q := range queues {
		add("ssd.queue.length."+q.name+".mean", "count", "time-weighted mean number of waiting "+q.noun+", mean over queues")
		add("ssd.queue.length."+q.name+".max", "count", "largest number of waiting "+q.noun+" in one queue")
	}
	for _, q := range queues {
		add("ssd.queue.wait."+q.name+".mean", "us", "mean time that "+q.noun+" waited in their queue")
		add("ssd.queue.wait."+q.name+".max", "us", "longest time that one of the "+q.noun+" waited in its queue")
	}
}

func seriesDefinitions() []Definition {
	var list []Definition
	add := func(name, unit, help string) { list = append(list, Definition{name, unit, help}) }
	for _, k := range kinds {
		add(k.name+".iops", "1/s", k.noun+" completed per second")
		add(k.name+".bandwidth", "B/s", "bytes of "+k.noun+" completed per second")
		add(k.name+".latency.mean", "us", "mean latency of "+k.noun)
		add(k.name+".latency.p99", "us", "99th percentile of the latency of "+k.noun)
		add(k.name+".latency.max", "us", "maximum latency of "+k.noun)
		add(k.name+".outstanding", "count", k.noun+" submitted and not completed")
	}
	add("ssd.writes.host", "count", "pages programmed with the host's data")
	add("ssd.writes.gc", "count", "pages programmed for garbage collection")
	add("ssd.writes.mapping", "count", "mapping pages programmed")
	add("ssd.writes.wear", "count", "pages programmed for wear levelling")
	add("ssd.waf", "ratio", "write amplification")
	add("ssd.free_blocks", "count", "free blocks, over all planes")
	add("ssd.queue.length", "count", "flash transactions that wait")
	add("fabric.goodput", "bit/s", "payload that reached hosts per second, over all hosts")
	add("fabric.pause.time", "fraction", "share of time that ports were paused, mean over ports")
	add("fabric.ecn.marks", "1/s", "packets marked per second")
	add("fabric.queue", "B", "largest queue of any port")
	add("flow.rate", "bit/s", "rate of a queue pair")
	add("aggregate.bandwidth", "B/s", "reads received at initiators plus writes done at targets, per second")
	add("snis.conv_c", "fraction", "Conv_C, by iteration: the three distances below, weighted (SNIS, equation 3)")
	add("snis.rd_mean", "fraction", "relative distance of the mean throughput of a request from that of the iteration before")
	add("snis.rd_median", "fraction", "relative distance of the median throughput of a request from that of the iteration before")
	add("snis.rd_p90", "fraction", "relative distance of the 90th percentile of requests' throughput from that of the iteration before")
	add("rate.demanded", "B/s", "rate that the controller asked the targets to keep to")
	add("rate.weight_ratio", "ratio", "weight of writes over reads that the controller set")
	return list
}

func histogramDefinitions() []Definition {
	var list []Definition
	for _, k := range kinds {
		list = append(list, Definition{k.name + ".latency", "us", "time from submission to completion of " + k.noun})
	}
	return append(list,
		Definition{"flow.fct", "us", "flow completion time"},
		Definition{"cluster.put.latency", "us", "time of a put operation"},
		Definition{"cluster.get.latency", "us", "time of a get operation"},
		Definition{"cluster.exchange.latency", "us", "time of an exchange of events"})
}

func matrixDefinitions() []Definition {
	return []Definition{
		{"read.anatomy", "us", "where the time of reads over a network went; rows are the mean and the requests about a quantile of latency, columns stages"},
		{"write.anatomy", "us", "the same for writes"},
		{"ssd.die.busy", "fraction", "share of measured time that each die was busy; rows are channels, columns chip.die"},
		{"ssd.channel.busy", "fraction", "share of measured time that each channel was busy"},
		{"ssd.latency.breakdown", "us", "where the mean latency went; rows are operations, columns resources"},
		{"ssd.wear", "count", "blocks by how often they were erased"},
		{"fabric.link.utilisation", "fraction", "share of time that each port sent; columns are ends of slices, in seconds"},
		{"fabric.link.queue", "B", "what waited in each port at the end of each slice"},
		{"fabric.link.paused", "fraction", "share of time that each port was paused"},
		{"fabric.link.totals", "count", "what each port did after the warm-up, each column in its own unit"},
		{"fabric.queue.histogram", "count", "how often the queue of each switch port had which depth when it was looked at"},
		{"fabric.host.goodput", "bit/s", "payload that reached each host per second of measured time"},
		{"fabric.layout", "fraction", "where each node stands in a picture, and its tier"},
		{"cluster.target.busy", "fraction", "share of measured time that each target's disk and receiving link were busy"},
		{"cluster.spent", "fraction", "where the measured time of the disks went, and of the links if they bound the cluster; mean over nodes, of disks by how fast they are"},
		{"cluster.target.time", "fraction", "the same of each target's disk"},
		{"cluster.group.busy", "fraction", "share of measured time that the disks of each negotiating group were busy"},
		{"cluster.gateway.bytes", "B", "what each gateway sent and received; columns sent, data and control"},
		{"cluster.target.bytes", "B", "the same of each target"},
		{"cluster.tier.rate", "B/s", "bytes of writes that each device of a tiered server took per second"},
		{"cluster.bounds", "B/s", "what each resource allows by itself"},
		{"cluster.protocol", "us", "messages, windows of bids, data and writes of a few chunks that follow each other at the same targets; rows are what, columns whose and when"},
		{"flow.slowdown", "ratio", "flow completion time over what it would be alone, by size; the first column counts flows"},
		{"snis.turns", "count", "each iteration's pauses, writes that moved, and the time up to which nothing can change any more"},
		{"snis.protocol", "us", "delays with one flow a request and with NVMe over Fabrics, both in one loop"},
		{"snis.error", "us", "latency by iterations and by one event loop; columns iterative, coupled and relative, the last a fraction of the coupled"},
		{"snis.throughput", "B/s", "size over latency of a request; rows are quantiles over requests, columns iterations"},
	}
}
