package drive

import (
	"fmt"

	"farflash/experiment/accounts"
	"farflash/result"
)

// operations are the operations by which requests are counted.
var operations = []struct{ name, noun string }{
	{"read", "reads"}, {"write", "writes"}, {"trim", "trims"}, {"flush", "flushes"},
	{"reset", "resets of zones"}, {"finish", "finishes of zones"}, {"open", "openings of zones by command"},
	{"close", "closings of zones by command"}, {"all", "requests of all kinds"},
}

// queues are the classes of flash transactions with separate queues.
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

// inGroup are the metrics of a reclaim group.
var inGroup = []result.Definition{
	{Name: "writes.host", Unit: "count", Help: "grains of the map that were programmed with what the host wrote"},
	{Name: "writes.strayed", Unit: "count",
		Help: "of these, those that the host wrote to another group, which was full", Better: result.LowerIsBetter},
	{Name: "writes.moved", Unit: "count",
		Help: "grains of the map that were programmed to move data, for garbage collection, wear levelling or refresh"},
	{Name: "waf", Unit: "ratio",
		Help:   "write amplification: grains programmed per grain that the host wrote, without the map's",
		Better: result.LowerIsBetter},
}

// Words returns the metrics of requests and drives.
func Words() result.Words {
	var l result.Lexicon
	for _, k := range operations {
		l.Metric(k.name+".count", "count", "completed "+k.noun+" after the warm-up")
		l.Metric(k.name+".bytes", "B", "bytes of completed "+k.noun+" after the warm-up")
		l.Metric(k.name+".iops", "1/s", "completed "+k.noun+" per second of measured time")
		l.Metric(k.name+".bandwidth", "B/s", "bytes of completed "+k.noun+" per second of measured time")
		l.Latency(k.name, " of the latency of "+k.noun, "latency of "+k.noun)
	}
	accounts.Define(&l)
	l.Scope("reclaim_group", "reclaim group, if ssd.fdp.groups are several", func(string) bool { return false },
		inGroup...)
	for _, k := range operations[:2] {
		l.Series(k.name+".iops", "1/s", k.noun+" completed per second")
		l.Series(k.name+".bandwidth", "B/s", "bytes of "+k.noun+" completed per second")
		l.Series(k.name+".latency.mean", "us", "mean latency of "+k.noun)
		l.Series(k.name+".latency.p99", "us", "99th percentile of the latency of "+k.noun)
	}
	drives(&l)
	raidWords(&l)
	l.Series("ssd.writes.host", "count", "pages programmed with the host's data")
	l.Series("ssd.writes.gc", "count", "pages programmed for garbage collection")
	l.Series("ssd.writes.mapping", "count", "mapping pages programmed")
	l.Series("ssd.writes.wear", "count", "pages programmed for wear levelling")
	l.Series("ssd.writes.refresh", "count", "pages programmed to refresh old data, if there are any")
	l.Series("ssd.writes.fold", "count", "pages programmed to empty the SLC cache, if there are any")
	l.Series("ssd.free_blocks", "count", "free blocks, over all planes")
	l.Matrix("ssd.die.busy", "fraction",
		"share of measured time that each die was busy; rows are channels, columns chip.die")
	l.Matrix("ssd.channel.busy", "fraction", "share of measured time that each channel was busy")
	l.Matrix("ssd.latency.breakdown", "us",
		"where the mean latency went, of commands in their drives if these are behind a network or members of a "+
			"volume; rows are operations, columns resources, and of a local drive host, the wait until it has a "+
			"request, if there is any")
	l.Matrix("read.anatomy", "us",
		"where the time of reads went (a local drive needs measure.anatomy); rows are the mean and the requests near "+
			"each quantile of latency, columns stages")
	l.Matrix("write.anatomy", "us", "the same for writes")
	l.Matrix("ssd.wear", "count", "blocks by how often they were erased")
	l.Fewer("ssd.waf", "ssd.waf.bytes", "ssd.wear.life_used", "ssd.energy", "ssd.power",
		"ssd.errors.rate", "ssd.errors.retried", "ssd.errors.retries", "ssd.errors.uncorrectable", "ssd.errors.lost",
		"ssd.errors.failed")
	l.More("ssd.cmt.hit_ratio", "ssd.cache.hit_ratio")
	return l.Words
}

// drives defines the metrics of drives.
func drives(l *result.Lexicon) {
	for _, k := range operations[:2] {
		l.Metric("ssd."+k.name+".count", "count", k.noun+" that drives completed after the warm-up")
	}
	l.Metric("ssd.waf", "ratio", "write amplification: pages programmed per page that the host wrote")
	l.Metric("ssd.waf.bytes", "ratio",
		"write amplification in bytes: bytes programmed per byte of the host's completed writes; small or merged "+
			"writes move it away from ssd.waf")
	l.Metric("ssd.writes.host", "count", "pages programmed with the host's data")
	l.Metric("ssd.writes.gc", "count", "pages programmed to move data for garbage collection")
	l.Metric("ssd.writes.mapping", "count", "mapping pages programmed")
	l.Metric("ssd.writes.wear", "count", "pages programmed to move data for wear levelling")
	l.Metric("ssd.writes.refresh", "count", "pages programmed to refresh old data, if ssd.reliability is given")
	l.Metric("ssd.refresh.count", "count", "blocks that were refreshed")
	l.Metric("ssd.writes.fold", "count", "pages programmed to empty the SLC cache, if ssd.slc_cache is given")
	l.Metric("ssd.slc.share", "fraction",
		"share of the pages with the host's data that were programmed in the SLC cache")
	l.Metric("ssd.slc.folds", "count", "SLC cache blocks emptied")
	l.Metric("ssd.slc.blocks", "count", "SLC cache blocks at the end of the run")
	l.Metric("ssd.zones.appends", "count", "writes by Zone Append, if ssd.zones is given")
	l.Metric("ssd.zones.resets", "count", "zones reset")
	l.Metric("ssd.zones.finished", "count", "zones finished by command")
	l.Metric("ssd.zones.opened", "count", "zones opened, by writes and by command")
	l.Metric("ssd.zones.closed", "count", "zones closed, by command and to let another be open")
	l.Metric("ssd.zones.open", "count", "zones that were open at the end")
	l.Metric("ssd.zones.active", "count", "zones that were open or closed at the end")
	l.Metric("ssd.zones.full", "count", "zones that were full at the end")
	l.Metric("ssd.fdp.hbmw", "B",
		"host bytes with metadata written, as the log of FDP statistics has it: bytes of completed writes, if "+
			"ssd.fdp is given")
	l.Metric("ssd.fdp.mbmw", "B",
		"media bytes with metadata written, likewise: bytes of all pages programmed, for the host and by the drive")
	l.Metric("ssd.fdp.mbe", "B", "media bytes erased, likewise")
	l.Metric("ssd.fdp.reclaim_unit", "B", "how much a reclaim unit holds")
	l.Metric("ssd.errors.rate", "fraction", "raw bit error rate of page reads, mean over reads")
	l.Metric("ssd.errors.retried", "fraction", "share of page reads that needed a retry")
	l.Metric("ssd.errors.retries", "count", "retries of page reads")
	l.Metric("ssd.errors.uncorrectable", "count",
		"page reads that no retry corrected, of the host and of the drive itself")
	l.Metric("ssd.errors.lost", "count",
		"grains of the map lost because the drive could not read them to move or merge them")
	l.Metric("ssd.errors.failed", "count", "requests that ended with a media error or were refused")
	l.Metric("ssd.gc.count", "count", "blocks collected")
	l.Metric("ssd.gc.pages_moved", "count", "valid pages moved by garbage collection")
	l.Metric("ssd.flash.reads", "count", "flash page reads")
	l.Metric("ssd.flash.programs", "count", "flash page programs")
	l.Metric("ssd.flash.erases", "count", "flash block erases")
	l.Metric("ssd.flash.suspensions", "count", "programs and erases suspended for a read")
	l.Metric("ssd.cmt.hit_ratio", "fraction", "mapping look-ups answered by the cached mapping table")
	l.Metric("ssd.cache.hit_ratio", "fraction", "requested pages found in the drive's DRAM cache")
	l.Metric("ssd.utilisation.die", "fraction", "share of measured time that dies were busy, mean over dies")
	l.Metric("ssd.utilisation.channel", "fraction",
		"share of measured time that flash channels were busy, mean over channels")
	l.Metric("ssd.utilisation.link", "fraction",
		"share of measured time that the busier direction of the host link was busy")
	l.Metric("ssd.utilisation.controller", "fraction",
		"share of measured time that controllers' processors were busy, mean over processors, if ssd.controller is "+
			"given")
	l.Metric("ssd.power_states.rested", "fraction",
		"share of measured time that drives spent in idle power states, mean over drives, if ssd.power_states are given")
	l.Metric("ssd.power_limit.held", "fraction",
		"share of flash operations that waited for power, if ssd.power_limit is given")
	l.Metric("ssd.power_states.wakes", "count", "times that a drive was woken from an idle power state")
	l.Metric("ssd.wear.min", "count",
		"erases of the least worn block at the end, from its first day on: with ssd.reliability.cycles, "+
			"preconditioning and warm-up")
	l.Metric("ssd.wear.mean", "count", "erases of a block likewise, mean over blocks")
	l.Metric("ssd.wear.max", "count", "erases of the most worn block likewise")
	l.Metric("ssd.wear.life_used", "fraction", "mean erases of a block over the rated program/erase cycles")
	l.Metric("ssd.free_blocks.min", "count", "fewest free blocks of any plane during the run, warm-up included")
	l.Metric("ssd.energy", "J", "energy used during the run")
	l.Metric("ssd.power", "W", "mean power during the run")
	for _, part := range []struct{ name, help string }{
		{"execution", "mean time that the array worked on a flash %s"},
		{"transfer", "mean time that a flash %s moved over its channel"},
		{"wait", "mean time that a flash %s waited for its die or channel"},
	} {
		for _, op := range []string{"read", "write"} {
			l.Metric("ssd.transaction."+part.name+"."+op+".mean", "us", fmt.Sprintf(part.help, op))
		}
	}
	for _, q := range queues {
		l.Metric("ssd.queue.length."+q.name+".mean", "count",
			"time-weighted mean number of waiting "+q.noun+", mean over queues")
		l.Metric("ssd.queue.length."+q.name+".max", "count",
			"largest number of waiting "+q.noun+" in one queue, warm-up included")
	}
	for _, q := range queues {
		l.Metric("ssd.queue.wait."+q.name+".mean", "us", "mean time that "+q.noun+" waited in their queue")
		l.Metric("ssd.queue.wait."+q.name+".max", "us",
			"longest time that one of the "+q.noun+" waited in its queue, warm-up included")
	}
}
