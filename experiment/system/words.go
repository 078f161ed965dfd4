package system

import "farflash/result"

// Stages are the parts of a request's time over a network, in the order of a read: columns of the anatomy matrices, and
// names in metrics.
var Stages = []Stage{
	{"initiator", "initiator (queue and software)"}, {"network_out", "network out"}, {"target", "target queue"},
	{"drive_wait", "drive wait"},
	{"flash", "flash"}, {"txq", "TXQ wait"}, {"network_back", "network back"},
}

// Stage is a part of the time of a request.
type Stage struct{ Name, Words string }

// Words returns the metrics of systems, without those of drives and network.
func Words() result.Words {
	var l result.Lexicon
	for _, op := range []struct{ name, noun string }{{"read", "reads"}, {"write", "writes"}} {
		for _, s := range Stages {
			l.Metric(op.name+".stage."+s.Name+".mean", "us",
				"mean time of "+op.noun+" in stage "+s.Words)
		}
	}
	l.Metric("nvmf.commands", "count", "completed commands; a request may be several")
	l.Metric("nvmf.held.initiator", "count", "commands that waited for a free entry of a queue pair")
	l.Metric("nvmf.held.target", "count", "commands that waited for a free entry of a drive's queue")
	l.Metric("nvmf.held.txq", "count", "commands that waited for space in a target's transmit queue")
	l.Metric("nvmf.held.buffers", "count", "commands that waited for a target's memory")
	l.Metric("nvmf.held.reads", "count",
		"writes that waited for one of their queue pair's RDMA Reads (nvmf.reads)")
	l.Metric("nvmf.receives.refused", "count", "capsules that found no shared receive (nvmf.receives)")
	l.Metric("nvmf.receives.max", "count", "most shared receives of one core taken")
	l.Metric("nvmf.held.limits", "count", "commands that waited for their tenant's limits (nvmf.limits)")
	l.Metric("nvmf.held.path", "count", "commands that no path could take")
	l.Matrix("nvmf.paths", "count", "by path: commands, those that failed over from it or were refused, and losses")
	l.Metric("nvmf.txq.max", "B", "largest fill of a target's transmit queue")
	l.Metric("nvmf.buffers.max", "B", "most memory of one target in use")
	l.Metric("nvmf.reads.max", "count", "most RDMA Reads outstanding on one queue pair")
	l.Metric("nvmf.timeouts", "count", "commands that reached nvmf.host.io_timeout")
	l.Metric("nvmf.losses", "count", "controllers that initiators lost")
	l.Metric("nvmf.retries", "count", "commands repeated after that")
	l.Metric("nvmf.reconnect.attempts", "count", "attempts to connect again")
	l.Metric("nvmf.reconnects", "count", "successful ones")
	l.Metric("nvmf.unreachable", "us", "time of initiators without a target, summed over paths")
	l.Metric("nvmf.expired", "count", "controllers whose initiators targets found gone (nvmf.keep_alive_timer)")
	l.Metric("nvmf.failed", "count", "commands that failed because a controller was lost")
	l.Metric("initiator.read.bandwidth", "B/s", "read data received by initiators per second")
	l.Metric("target.write.bandwidth", "B/s", "write data stored by targets per second")
	l.Metric("aggregate.bandwidth", "B/s",
		"reads received by initiators plus writes stored by targets, per second (SRC's definition)")
	rateWords(&l)
	return l.Words
}

// Iterations returns the metrics of drives and network in turns.
func Iterations() result.Words {
	var l result.Lexicon
	l.Metric("snis.iterations", "count",
		"iteration that converged, counted from coupling.iterative.count_from; without convergence the last one")
	l.Metric("snis.converged", "count", "1 if the iterations converged, 0 if not")
	l.Metric("snis.fixed_at", "count", "first iteration with exactly the previous result")
	l.Metric("snis.error.request.mean", "us",
		"mean difference of a request's delay between the last iteration and one event loop")
	l.Metric("snis.error.request.max", "us",
		"largest difference of a request's delay between the last iteration and one event loop")
	l.Series("snis.conv_c", "fraction",
		"Conv_C by iteration: the weighted sum of the three changes below (SNIS, equation 3)")
	l.Series("snis.rd_mean", "fraction",
		"relative change of requests' mean throughput from the previous iteration")
	l.Series("snis.rd_median", "fraction",
		"relative change of requests' median throughput from the previous iteration")
	l.Series("snis.rd_p90", "fraction",
		"relative change of the 90th percentile of requests' throughput from the previous iteration")
	l.Matrix("snis.turns", "count",
		"pauses of each iteration, writes whose time changed, and the time up to which the result is final")
	l.Matrix("snis.protocol", "us", "delays with one flow per request and with NVMe over Fabrics, both in one loop")
	l.Matrix("snis.error", "us",
		"latency by iterations and by one event loop; columns iterative, coupled, and relative, their difference over "+
			"coupled")
	l.Matrix("snis.throughput", "B/s",
		"size over latency of a request; rows are quantiles over requests, columns iterations")
	return l.Words
}
