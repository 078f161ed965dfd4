package objects

import (
	"farflash/experiment"
	"farflash/result"
)

// Operations returns the metrics of the gateways' operations.
func Operations() result.Words {
	var l result.Lexicon
	experiment.Operation(&l, "put", true, true)
	experiment.Operation(&l, "get", false, true)
	experiment.Operation(&l, "update", false, true)
	return l.Words
}

// Words returns the metrics of object clusters, other than operations and bounds.
func Words() result.Words {
	var l result.Lexicon
	l.Metric("cluster.lost", "count", "frames and messages lost")
	l.Metric("cluster.retried", "count", "puts and gets that timed out and were retried")
	l.Metric("cluster.failed", "count", "chunks that could not be put or got")
	l.Metric("cluster.get.degraded", "count", "reads of chunks with a piece missing")
	l.Metric("cluster.get.unavailable", "count", "failed reads: too many pieces of the chunk missing")
	l.Metric("cluster.repair.lost", "count", "pieces of chunks lost with failed targets")
	l.Metric("cluster.repair.done", "count", "pieces rebuilt")
	l.Metric("cluster.repair.replaced", "count",
		"lost pieces that need no rebuild because their chunk was replaced")
	l.Metric("cluster.repair.missing", "count",
		"lost pieces not rebuilt at the end; cluster.repair.lost is the sum of done, replaced, missing and "+
			"cluster.lost.pieces")
	l.Metric("cluster.repair.retried", "count", "rebuild reads that timed out and were retried")
	l.Metric("cluster.lost.chunks", "count", "chunks lost: failures left too few pieces")
	l.Metric("cluster.lost.pieces", "count", "lost pieces of lost chunks")
	l.Metric("cluster.put.rebuild.count", "count", "puts in flight during a rebuild")
	l.Metric("cluster.put.rebuild.mean", "us", "mean latency of puts in flight during a rebuild")
	l.Metric("cluster.put.rebuild.p99", "us", "99th percentile of the latency of puts in flight during a rebuild")
	l.Metric("cluster.get.rebuild.count", "count", "gets in flight during a rebuild")
	l.Metric("cluster.get.rebuild.mean", "us", "mean latency of gets in flight during a rebuild")
	l.Metric("cluster.get.rebuild.p99", "us", "99th percentile of the latency of gets in flight during a rebuild")
	l.Metric("cluster.quorum.short", "count", "chunks put by a quorum without all pieces stored")
	l.Metric("cluster.repair.until", "s", "time at which the last piece was rebuilt")
	l.Metric("cluster.durability.mttdl", "years", "mean time to the loss of any chunk, by drive failures alone")
	l.Metric("cluster.durability.loss", "ratio", "probability of losing any chunk within a year")
	l.Metric("cluster.durability.nines", "ratio",
		"nines of durability: minus log10 of cluster.durability.loss")
	l.Metric("cluster.durability.chunk_nines", "ratio", "nines of durability of a given chunk, within a year")
	l.Metric("cluster.durability.rebuild", "s", "time to rebuild a failed drive")
	l.Metric("cluster.durability.copysets", "count", "copysets: sets of targets with all copies of a chunk")
	l.Metric("cluster.durability.accelerated.factor", "ratio",
		"acceleration of drive failures in the simulation of a copyset's loss")
	l.Metric("cluster.durability.accelerated.chain", "years",
		"mean time to a copyset's loss under acceleration, by the formula")
	l.Metric("cluster.durability.accelerated.simulated", "years",
		"mean time to a copyset's loss under acceleration, simulated")
	l.Metric("cluster.durability.accelerated.half", "years", "half the 95 % interval of the simulated time")
	l.Metric("cluster.multicast.rules", "count",
		"multicast rules in each switch, one for every subset of at least 2 replicas of each group")
	l.Metric("cluster.multicast.bier", "B", "header of a multicast packet that names its receivers by bits (BIER)")
	l.Metric("cluster.get.hedged", "count", "reads that asked a second target because the first was late")
	l.Metric("cluster.backlog.growth", "fraction",
		"in an open loop: share of the arrived chunks that did not complete")
	l.Metric("cluster.drift", "fraction",
		"in an open loop: mean latency in the second half of the measured time over that in the first half, minus one")
	l.Metric("cluster.disk.utilisation", "fraction", "utilisation of disks, mean over disks")
	l.Metric("cluster.link.utilisation", "fraction", "utilisation of links, mean over links")
	l.Metric("cluster.ding.count", "count", "halvings of a sender's rate at its target's request")
	l.Metric("cluster.choosy.retries", "count", "requests for new bids because the best was too late")
	l.Metric("cluster.reject.count", "count",
		"windows promised to two gateways and withdrawn from one after its acceptance")
	l.Metric("cluster.replica.count", "count", "replicas acknowledged")
	l.Metric("cluster.message.count", "count", "control messages received")
	l.Metric("cluster.frame.count", "count", "data frames received, counted once per receiver")
	l.Metric("cluster.tx.bytes", "B", "bytes sent by nodes; multicast counts once")
	l.Metric("cluster.rx.data", "B", "data bytes received by targets")
	l.Metric("cluster.rx.control", "B", "control message bytes received by nodes")
	l.Metric("cluster.rx.busy.data", "fraction", "share of time that targets' links received data, mean over targets")
	l.Metric("cluster.rx.busy.control", "fraction",
		"share of time that targets' links received control messages, mean over targets")
	l.Metric("cluster.processor.gateway", "fraction",
		"utilisation of gateways' processors, mean over gateways")
	l.Metric("cluster.processor.target", "fraction",
		"utilisation of targets' processors, mean over targets")
	l.Metric("cluster.disk.queue.mean", "count", "frames waiting for a disk, mean over disks and the ends of slices")
	l.Metric("cluster.disk.queue.max", "count", "most frames waiting for a disk at the end of a slice")
	l.Matrix("cluster.target.busy", "fraction",
		"utilisation of each target's disk and receiving link")
	l.Matrix("cluster.spent", "fraction",
		"breakdown of the time of disks, and of links if they are the bottleneck; mean over nodes, disks weighted by "+
			"rate")
	l.Matrix("cluster.target.time", "fraction", "breakdown of the time of each target's disk")
	l.Matrix("cluster.group.busy", "fraction",
		"utilisation of each negotiating group's disks")
	l.Matrix("cluster.gateway.bytes", "B", "bytes sent and received by each gateway; columns sent, data and control")
	l.Matrix("cluster.target.bytes", "B", "bytes sent and received by each target, likewise")
	l.Matrix("cluster.bounds", "B/s", "rate limit of each resource alone")
	l.Matrix("cluster.protocol", "us",
		"messages, bids' windows, data and writes of a few successive chunks at the same targets; rows are kinds, "+
			"columns nodes and times")
	return l.Words
}

// Bounds returns the metrics of bounds for clusters of any kind, and of the breakdown of time.
func Bounds() result.Words {
	var l result.Lexicon
	l.Metric("cluster.bound.rate", "B/s", "rate limit of the busiest resource")
	l.Metric("cluster.bound.reached", "fraction", "measured rate over the bound")
	l.Metric("cluster.bound.used", "fraction",
		"share of the bottleneck's (disks' or links') time spent on chunks; cluster.loss.* is the rest, and all shares "+
			"add up to 1")
	l.Metric("cluster.loss.repair", "fraction", "share of the bottleneck's time lost to rebuilds")
	l.Metric("cluster.loss.control", "fraction", "share of the bottleneck's time lost to control messages on links")
	l.Metric("cluster.loss.receiving", "fraction",
		"share of the bottleneck's time that disks waited for an arriving piece")
	l.Metric("cluster.loss.reserved", "fraction",
		"share of the bottleneck's time reserved for a piece, without data in flight")
	l.Metric("cluster.loss.tentative", "fraction",
		"share of the bottleneck's time held by unanswered bids and offers")
	l.Metric("cluster.loss.waiting", "fraction",
		"share of the bottleneck's time that gateways' links waited for answers, or targets' links for disk reads")
	l.Metric("cluster.loss.idle", "fraction",
		"share of the bottleneck's time without work for the target, or without a chunk at the gateway")
	l.Metric("cluster.loss.down", "fraction", "share of the bottleneck's time that the target was down")
	l.Metric("cluster.imbalance.target.max", "ratio", "utilisation of the busiest target's disk over the mean")
	l.Metric("cluster.imbalance.target.cv", "fraction", "coefficient of variation of the utilisation of targets' disks")
	l.Metric("cluster.imbalance.group.max", "ratio",
		"utilisation of the busiest negotiating group's disks over the mean")
	l.Metric("cluster.imbalance.group.cv", "fraction",
		"coefficient of variation of the utilisation of negotiating groups' disks")
	l.Metric("cluster.bid.requests", "count", "requests for bids received by targets")
	l.Metric("cluster.bid.interval", "us", "mean time between two requests for bids at a target")
	l.Metric("cluster.bid.tentative", "us", "mean time from a bid to its gateway's answer, at the target")
	l.Metric("cluster.bid.overlap", "fraction",
		"share of requests that arrived while another bid of the target was tentative")
	return l.Words
}
