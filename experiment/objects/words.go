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
	l.Metric("cluster.lost", "count", "frames and messages lost on their way to a receiver")
	l.Metric("cluster.retried", "count", "puts and gets of a chunk that timed out and were begun again")
	l.Metric("cluster.failed", "count", "chunks that could not be put or got")
	l.Metric("cluster.get.degraded", "count", "degraded reads: reads of chunks with a piece missing")
	l.Metric("cluster.get.unavailable", "count", "failed reads: reads of chunks with too many pieces missing")
	l.Metric("cluster.repair.lost", "count", "pieces of chunks lost with failed targets")
	l.Metric("cluster.repair.done", "count", "pieces rebuilt")
	l.Metric("cluster.repair.replaced", "count",
		"lost pieces that need no rebuild because another chunk replaced theirs")
	l.Metric("cluster.repair.missing", "count",
		"lost pieces not rebuilt when the run ends; cluster.repair.lost is the sum of done, replaced, missing and "+
			"cluster.lost.pieces")
	l.Metric("cluster.repair.retried", "count", "reads for a rebuild that timed out and were begun again")
	l.Metric("cluster.lost.chunks", "count", "chunks lost: failures left too few pieces")
	l.Metric("cluster.lost.pieces", "count", "lost pieces of lost chunks")
	l.Metric("cluster.put.rebuild.count", "count", "put operations under way during a rebuild")
	l.Metric("cluster.put.rebuild.mean", "us", "mean time of operations under way during a rebuild")
	l.Metric("cluster.put.rebuild.p99", "us", "99th percentile of the time of operations under way during a rebuild")
	l.Metric("cluster.get.rebuild.count", "count", "get operations under way during a rebuild")
	l.Metric("cluster.get.rebuild.mean", "us", "mean time of operations under way during a rebuild")
	l.Metric("cluster.get.rebuild.p99", "us", "99th percentile of the time of operations under way during a rebuild")
	l.Metric("cluster.quorum.short", "count", "chunks put by a quorum of which not all pieces could be stored")
	l.Metric("cluster.repair.until", "s", "when the last piece was rebuilt")
	l.Metric("cluster.durability.mttdl", "years", "mean time until any chunk is lost, by failures of drives alone")
	l.Metric("cluster.durability.loss", "ratio", "probability that any chunk is lost within a year")
	l.Metric("cluster.durability.nines", "ratio",
		"nines of durability: minus the decimal logarithm of cluster.durability.loss")
	l.Metric("cluster.durability.chunk_nines", "ratio", "nines of durability of one given chunk, within a year")
	l.Metric("cluster.durability.rebuild", "s", "time to rebuild a failed drive")
	l.Metric("cluster.durability.copysets", "count", "copysets: sets of targets that hold all copies of some chunk")
	l.Metric("cluster.durability.accelerated.factor", "ratio",
		"factor by which drive failures are accelerated to simulate the loss of one copyset")
	l.Metric("cluster.durability.accelerated.chain", "years",
		"mean time to the loss of one copyset under acceleration, by the formula")
	l.Metric("cluster.durability.accelerated.simulated", "years",
		"mean time to the loss of one copyset under acceleration, simulated")
	l.Metric("cluster.durability.accelerated.half", "years", "half the 95 % interval of the simulated time")
	l.Metric("cluster.multicast.rules", "count",
		"multicast rules in each switch, if every subset of at least 2 replicas of each group has one")
	l.Metric("cluster.multicast.bier", "B", "header of each multicast packet that names its receivers by bits (BIER)")
	l.Metric("cluster.get.hedged", "count", "hedged reads: reads that asked a second target because the first was late")
	l.Metric("cluster.backlog.growth", "fraction",
		"in an open loop: share of the arrived chunks that were not completed in the measured time")
	l.Metric("cluster.drift", "fraction",
		"in an open loop: mean time of an operation in the second half of the measured time over that in the first "+
			"half, minus one")
	l.Metric("cluster.disk.utilisation", "fraction", "share of time that disks were busy, mean over disks")
	l.Metric("cluster.link.utilisation", "fraction", "share of time that links were busy, mean over links")
	l.Metric("cluster.ding.count", "count", "times that a sender halved its rate at its target's request")
	l.Metric("cluster.choosy.retries", "count", "times that a gateway asked for new bids because the best was too late")
	l.Metric("cluster.reject.count", "count",
		"windows promised to two gateways and withdrawn from one that had accepted")
	l.Metric("cluster.replica.count", "count", "replicas acknowledged")
	l.Metric("cluster.message.count", "count", "control messages received")
	l.Metric("cluster.frame.count", "count", "frames of data received, counted once for each receiver")
	l.Metric("cluster.tx.bytes", "B", "bytes that nodes sent; multicast counts once")
	l.Metric("cluster.rx.data", "B", "bytes of data that targets received")
	l.Metric("cluster.rx.control", "B", "bytes of control messages that nodes received")
	l.Metric("cluster.rx.busy.data", "fraction", "share of time that targets' links received data, mean over targets")
	l.Metric("cluster.rx.busy.control", "fraction",
		"share of time that targets' links received control messages, mean over targets")
	l.Metric("cluster.processor.gateway", "fraction",
		"share of time that gateways' processors sent and handled messages and frames, mean over gateways")
	l.Metric("cluster.processor.target", "fraction",
		"share of time that targets' processors sent and handled messages and frames, mean over targets")
	l.Metric("cluster.disk.queue.mean", "count", "frames waiting for a disk, mean over disks and the ends of slices")
	l.Metric("cluster.disk.queue.max", "count", "most frames waiting for a disk at the end of a slice")
	l.Matrix("cluster.target.busy", "fraction",
		"share of measured time that each target's disk and receiving link were busy")
	l.Matrix("cluster.spent", "fraction",
		"where the measured time of the disks went, and of the links if they are the bottleneck; mean over nodes, "+
			"disks by their rate")
	l.Matrix("cluster.target.time", "fraction", "the same of each target's disk")
	l.Matrix("cluster.group.busy", "fraction",
		"share of measured time that the disks of each negotiating group were busy")
	l.Matrix("cluster.gateway.bytes", "B", "bytes that each gateway sent and received; columns sent, data and control")
	l.Matrix("cluster.target.bytes", "B", "the same of each target")
	l.Matrix("cluster.bounds", "B/s", "largest rate that each resource alone allows")
	l.Matrix("cluster.protocol", "us",
		"messages, windows of bids, data and writes of a few successive chunks at the same targets; rows are kinds, "+
			"columns nodes and times")
	return l.Words
}

// Bounds returns the metrics of bounds for clusters of any kind, and of the breakdown of time.
func Bounds() result.Words {
	var l result.Lexicon
	l.Metric("cluster.bound.rate", "B/s", "largest rate that the busiest resource allows")
	l.Metric("cluster.bound.reached", "fraction", "measured rate over the bound")
	l.Metric("cluster.bound.used", "fraction",
		"share of time that the bottleneck (disks or links) worked for chunks; cluster.loss.* has the rest, and all "+
			"shares add up to 1")
	l.Metric("cluster.loss.repair", "fraction", "share of the bottleneck's time lost to rebuilds")
	l.Metric("cluster.loss.control", "fraction", "share of the bottleneck's time lost to control messages on links")
	l.Metric("cluster.loss.receiving", "fraction",
		"share of the bottleneck's time in which disks waited for a piece that was arriving")
	l.Metric("cluster.loss.reserved", "fraction",
		"share of the bottleneck's time reserved for a piece, with nothing being sent")
	l.Metric("cluster.loss.tentative", "fraction",
		"share of the bottleneck's time held by bids and offers without an answer")
	l.Metric("cluster.loss.waiting", "fraction",
		"share of the bottleneck's time in which gateways' links waited for answers, or targets' links for disk reads")
	l.Metric("cluster.loss.idle", "fraction",
		"share of the bottleneck's time in which the target had nothing to do, or the gateway no chunk")
	l.Metric("cluster.loss.down", "fraction", "share of the bottleneck's time in which the target was down")
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
		"share of requests that came while another bid of the target was tentative")
	return l.Words
}
