package objects

import (
	"farflash/experiment"
	"farflash/result"
)

// Operations are the names of what gateways do.
func Operations() result.Words {
	var l result.Lexicon
	experiment.Operation(&l, "put", true, true)
	experiment.Operation(&l, "get", false, true)
	experiment.Operation(&l, "update", false, true)
	return l.Words
}

// Words are the names of what object clusters did, beside operations and bounds.
func Words() result.Words {
	var l result.Lexicon
	l.Metric("cluster.lost", "count", "frames and messages that a receiver missed")
	l.Metric("cluster.retried", "count", "attempts at a chunk that were not done in time and were begun again")
	l.Metric("cluster.failed", "count", "chunks that could not be put or got")
	l.Metric("cluster.get.degraded", "count", "reads of chunks of which a piece was missing")
	l.Metric("cluster.get.unavailable", "count", "reads of chunks of which too many pieces were missing")
	l.Metric("cluster.repair.lost", "count", "pieces of chunks that failures of targets have cost")
	l.Metric("cluster.repair.done", "count", "pieces that were made again")
	l.Metric("cluster.repair.replaced", "count", "lost pieces that nobody wants again because another chunk has taken the place of theirs")
	l.Metric("cluster.repair.missing", "count", "lost pieces that are not made again when the run ends; what was lost is what was made again, replaced, missing here, or in cluster.lost.pieces")
	l.Metric("cluster.repair.retried", "count", "attempts at reading what makes a piece again that were not done in time and were begun again")
	l.Metric("cluster.lost.chunks", "count", "chunks of which failures have left too little to restore them")
	l.Metric("cluster.lost.pieces", "count", "lost pieces of such chunks")
	l.Metric("cluster.put.rebuild.count", "count", "put operations that were under way while pieces were made again")
	l.Metric("cluster.put.rebuild.mean", "us", "mean time of these")
	l.Metric("cluster.put.rebuild.p99", "us", "their 99th percentile")
	l.Metric("cluster.get.rebuild.count", "count", "get operations that were under way while pieces were made again")
	l.Metric("cluster.get.rebuild.mean", "us", "mean time of these")
	l.Metric("cluster.get.rebuild.p99", "us", "their 99th percentile")
	l.Metric("cluster.quorum.short", "count", "chunks that counted as put by a quorum, and of which not all pieces could be kept")
	l.Metric("cluster.repair.until", "s", "when the last piece was made again")
	l.Metric("cluster.durability.mttdl", "years", "mean time until any chunk is lost, by failures of drives alone")
	l.Metric("cluster.durability.loss", "ratio", "chance that any chunk is lost within a year")
	l.Metric("cluster.durability.nines", "ratio", "minus the decimal logarithm of that chance")
	l.Metric("cluster.durability.chunk_nines", "ratio", "the same of the chance that a given chunk is lost within a year")
	l.Metric("cluster.durability.rebuild", "s", "time to make again what a failed drive kept")
	l.Metric("cluster.durability.copysets", "count", "sets of targets that keep all copies of some chunk")
	l.Metric("cluster.durability.accelerated.factor", "ratio", "how much more often drives fail where the loss of one such set is simulated")
	l.Metric("cluster.durability.accelerated.chain", "years", "mean time to that loss by the formula")
	l.Metric("cluster.durability.accelerated.simulated", "years", "mean time to that loss as simulated")
	l.Metric("cluster.durability.accelerated.half", "years", "half the 95 % interval of the simulated time")
	l.Metric("cluster.multicast.rules", "count", "rules that each switch holds if every set of 2 to all replicas of each group has one")
	l.Metric("cluster.multicast.bier", "B", "header that each multicast packet has if it names its receivers by bits (BIER)")
	l.Metric("cluster.get.hedged", "count", "reads that asked one target more, as the first was late")
	l.Metric("cluster.backlog.growth", "fraction", "of an open loop: chunks that came less those that were done in the measured time, over those that came")
	l.Metric("cluster.drift", "fraction", "of an open loop: mean time of an operation in the second half of the measured time over that in the first half, less one")
	l.Metric("cluster.disk.utilisation", "fraction", "share of time that disks were busy, mean over disks")
	l.Metric("cluster.link.utilisation", "fraction", "share of time that links were busy, mean over links")
	l.Metric("cluster.ding.count", "count", "times that a sender halved its rate because its target said so")
	l.Metric("cluster.choosy.retries", "count", "times that a gateway asked for other bids because the best was too far away")
	l.Metric("cluster.reject.count", "count", "windows that were promised to two gateways and taken back from one that had chosen them")
	l.Metric("cluster.replica.count", "count", "replicas acknowledged")
	l.Metric("cluster.message.count", "count", "control messages received")
	l.Metric("cluster.frame.count", "count", "frames of data received, counted once for each receiver")
	l.Metric("cluster.tx.bytes", "B", "bytes that nodes sent; what is multicast counts once")
	l.Metric("cluster.rx.data", "B", "bytes of data that targets received")
	l.Metric("cluster.rx.control", "B", "bytes of control messages that nodes received")
	l.Metric("cluster.rx.busy.data", "fraction", "share of time that targets' links received data, mean over targets")
	l.Metric("cluster.rx.busy.control", "fraction", "share of time that targets' links received control messages, mean over targets")
	l.Metric("cluster.processor.gateway", "fraction", "share of time that gateways' processors sent and handled messages and frames, mean over gateways")
	l.Metric("cluster.processor.target", "fraction", "the same of targets'")
	l.Metric("cluster.disk.queue.mean", "count", "frames that wait for a disk, mean over disks and the ends of slices")
	l.Metric("cluster.disk.queue.max", "count", "most frames that wait for a disk at the end of a slice")
	l.Matrix("cluster.target.busy", "fraction", "share of measured time that each target's disk and receiving link were busy")
	l.Matrix("cluster.spent", "fraction", "where the measured time of the disks went, and of the links if they bound the cluster; mean over nodes, of disks by how fast they are")
	l.Matrix("cluster.target.time", "fraction", "the same of each target's disk")
	l.Matrix("cluster.group.busy", "fraction", "share of measured time that the disks of each negotiating group were busy")
	l.Matrix("cluster.gateway.bytes", "B", "what each gateway sent and received; columns sent, data and control")
	l.Matrix("cluster.target.bytes", "B", "the same of each target")
	l.Matrix("cluster.bounds", "B/s", "what each resource allows by itself")
	l.Matrix("cluster.protocol", "us", "messages, windows of bids, data and writes of a few chunks that follow each other at the same targets; rows are what, columns whose and when")
	return l.Words
}

// Bounds are the names of what bounds a cluster of any kind, and of where the time went.
func Bounds() result.Words {
	var l result.Lexicon
	l.Metric("cluster.bound.rate", "B/s", "largest rate that the busiest resource allows")
	l.Metric("cluster.bound.reached", "fraction", "measured rate over the bound")
	l.Metric("cluster.bound.used", "fraction", "share of the time of the disks or links that bound the cluster in which they worked for chunks; what is lost of it is in cluster.loss, and the sum is 1")
	l.Metric("cluster.loss.repair", "fraction", "share in which disks read or wrote to make pieces again")
	l.Metric("cluster.loss.control", "fraction", "share in which links carried control messages")
	l.Metric("cluster.loss.receiving", "fraction", "share in which disks waited for a piece that came in just then")
	l.Metric("cluster.loss.reserved", "fraction", "share in which data was promised to a target, or some of a piece had come, and nothing was sent to it")
	l.Metric("cluster.loss.tentative", "fraction", "share in which a target had bid, or offered itself, and nobody had answered")
	l.Metric("cluster.loss.waiting", "fraction", "share in which gateways' links waited for answers while chunks were under way, or targets' links for what disks read")
	l.Metric("cluster.loss.idle", "fraction", "share in which nobody wanted anything of the target, or the gateway had no chunk")
	l.Metric("cluster.loss.down", "fraction", "share in which the target had failed")
	l.Metric("cluster.imbalance.target.max", "ratio", "use of the busiest target's disk over the mean of all")
	l.Metric("cluster.imbalance.target.cv", "fraction", "standard deviation of the use of targets' disks over its mean")
	l.Metric("cluster.imbalance.group.max", "ratio", "use of the disks of the busiest negotiating group over the mean of all")
	l.Metric("cluster.imbalance.group.cv", "fraction", "standard deviation of the use of negotiating groups' disks over its mean")
	l.Metric("cluster.bid.requests", "count", "requests for bids that came to targets")
	l.Metric("cluster.bid.interval", "us", "mean time between two such requests at a target")
	l.Metric("cluster.bid.tentative", "us", "mean time from a bid to its gateway's answer, at the target")
	l.Metric("cluster.bid.overlap", "fraction", "share of requests that came while another bid of the target was tentative")
	return l.Words
}
