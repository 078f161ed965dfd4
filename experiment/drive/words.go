package drive

import (
	"fmt"

	"farflash/block"
	"farflash/experiment/accounts"
	"farflash/result"
)

// operations are the operations by which requests are counted.
var operations = []struct{ name, noun, latency string }{
	{"read", "reads", "read latency"}, {"write", "writes", "write latency"}, {"trim", "trims", "trim latency"},
	{"flush", "flushes", "flush latency"}, {"reset", "zone resets", "zone reset latency"},
	{"finish", "zone finishes", "zone finish latency"},
	{"open", "explicit zone opens", "explicit zone open latency"},
	{"close", "explicit zone closes", "explicit zone close latency"}, {"all", "requests", "request latency"},
}

// queues are the classes of flash transactions with separate queues.
var queues = []struct{ name, noun string }{
	{"host_read", "host reads"},
	{"host_read.urgent", "host reads of class urgent"},
	{"host_read.high", "host reads of class high"},
	{"host_read.medium", "host reads of class medium"},
	{"host_read.low", "host reads of class low"},
	{"host_write", "host programs"},
	{"host_write.urgent", "host programs of class urgent"},
	{"host_write.high", "host programs of class high"},
	{"host_write.medium", "host programs of class medium"},
	{"host_write.low", "host programs of class low"},
	{"mapping_read", "mapping page reads"},
	{"mapping_write", "mapping page programs"},
	{"gc_read", "reads of garbage collection and wear levelling"},
	{"gc_write", "programs of garbage collection and wear levelling"},
	{"gc_erase", "erases"},
}

// inGroup are the metrics of a reclaim group.
var inGroup = []result.Definition{
	{Name: "writes.host", Unit: "count", Help: "map grains programmed with host data"},
	{Name: "writes.strayed", Unit: "count",
		Help: "of these, those addressed to another group, which was full", Better: result.LowerIsBetter},
	{Name: "writes.moved", Unit: "count",
		Help: "map grains programmed to move data, for garbage collection, wear levelling or refresh"},
	{Name: "waf", Unit: "ratio",
		Help:   "write amplification: grains programmed per grain of host writes, without the map's",
		Better: result.LowerIsBetter},
}

// Words returns the metrics of requests and drives.
func Words() result.Words {
	var l result.Lexicon
	for _, k := range operations {
		l.Metric(k.name+".count", "count", "completed "+k.noun)
		l.Metric(k.name+".bytes", "B", "bytes of completed "+k.noun)
		l.Metric(k.name+".iops", "1/s", "completed "+k.noun+" per second")
		l.Metric(k.name+".bandwidth", "B/s", "bytes of completed "+k.noun+" per second")
		l.Latency(k.name, " of "+k.latency, k.latency)
	}
	accounts.Define(&l)
	l.Scope("reclaim_group", "reclaim group, if ssd.fdp.groups are several", func(string) bool { return false },
		inGroup...)
	for _, k := range operations[:2] {
		l.Series(k.name+".iops", "1/s", k.noun+" completed per second")
		l.Series(k.name+".bandwidth", "B/s", "bytes of "+k.noun+" completed per second")
		l.Series(k.name+".latency.mean", "us", "mean "+k.latency)
		l.Series(k.name+".latency.p99", "us", "99th percentile of "+k.latency)
	}
	drives(&l)
	raidWords(&l)
	l.Series("ssd.writes.host", "count", "pages programmed with host data")
	l.Series("ssd.writes.gc", "count", "pages programmed for garbage collection")
	l.Series("ssd.writes.mapping", "count", "mapping pages programmed")
	l.Series("ssd.writes.wear", "count", "pages programmed for wear levelling")
	l.Series("ssd.writes.refresh", "count", "pages programmed to refresh old data, if any")
	l.Series("ssd.writes.fold", "count", "pages programmed to empty the SLC cache, if any")
	l.Series("ssd.free_blocks", "count", "free blocks of all planes")
	l.Matrix("ssd.die.busy", "fraction",
		"utilisation of each die; rows are channels, columns chip.die")
	l.Matrix("ssd.channel.busy", "fraction", "utilisation of each channel")
	l.Matrix("ssd.latency.breakdown", "us",
		"breakdown of the mean latency, of commands in their drives behind a network or in a volume; rows are "+
			"operations, columns resources, and host, the wait in the host before a local drive")
	l.Matrix("read.anatomy", "us",
		"breakdown of read latency (a local drive needs measure.anatomy); rows are the mean and the requests near each "+
			"quantile, columns stages")
	l.Matrix("write.anatomy", "us", "breakdown of write latency, likewise")
	l.Matrix("ssd.wear", "count", "blocks by erase count")
	l.Fewer("ssd.waf", "ssd.waf.bytes", "ssd.wear.life_used", "ssd.energy", "ssd.power",
		"ssd.errors.rate", "ssd.errors.retried", "ssd.errors.retries", "ssd.errors.uncorrectable", "ssd.errors.lost",
		"ssd.errors.failed")
	l.More("ssd.cmt.hit_ratio", "ssd.cache.hit_ratio")
	return l.Words
}

// drives defines the metrics of drives.
func drives(l *result.Lexicon) {
	for _, k := range operations[:2] {
		l.Metric("ssd."+k.name+".count", "count", k.noun+" completed by drives")
	}
	l.Metric("ssd.waf", "ratio", "write amplification: pages programmed per page of host writes")
	l.Metric("ssd.waf.bytes", "ratio",
		"bytes programmed per byte of completed host writes; differs from ssd.waf by small or merged writes")
	l.Metric("ssd.writes.host", "count", "pages programmed with host data")
	l.Metric("ssd.writes.gc", "count", "pages programmed for garbage collection")
	l.Metric("ssd.writes.mapping", "count", "mapping pages programmed")
	l.Metric("ssd.writes.wear", "count", "pages programmed for wear levelling")
	l.Metric("ssd.writes.refresh", "count", "pages programmed to refresh old data (ssd.reliability)")
	l.Metric("ssd.refresh.count", "count", "blocks refreshed")
	l.Metric("ssd.writes.fold", "count", "pages programmed to empty the SLC cache (ssd.slc_cache)")
	l.Metric("ssd.slc.share", "fraction",
		"share of host pages that were programmed in the SLC cache")
	l.Metric("ssd.slc.folds", "count", "SLC cache blocks emptied")
	l.Metric("ssd.slc.blocks", "count", "SLC cache blocks at the end of the run")
	l.Metric("ssd.zones.appends", "count", "writes by Zone Append (ssd.zones)")
	l.Metric("ssd.zones.resets", "count", "zones reset")
	l.Metric("ssd.zones.finished", "count", "zones finished by command")
	l.Metric("ssd.zones.opened", "count", "zones opened, by writes and by command")
	l.Metric("ssd.zones.closed", "count", "zones closed, by command and to open another")
	l.Metric("ssd.zones.open", "count", "open zones at the end")
	l.Metric("ssd.zones.active", "count", "open or closed zones at the end")
	l.Metric("ssd.zones.full", "count", "full zones at the end")
	l.Metric("ssd.fdp.hbmw", "B",
		"host bytes with metadata written, as in the FDP statistics log: bytes of completed writes (ssd.fdp)")
	l.Metric("ssd.fdp.mbmw", "B",
		"media bytes with metadata written, likewise: bytes of all programmed pages")
	l.Metric("ssd.fdp.mbe", "B", "media bytes erased, likewise")
	l.Metric("ssd.fdp.reclaim_unit", "B", "size of a reclaim unit")
	l.Metric("ssd.errors.rate", "fraction", "mean raw bit error rate of page reads")
	l.Metric("ssd.errors.retried", "fraction", "share of page reads that needed a retry")
	l.Metric("ssd.errors.retries", "count", "retries of page reads")
	l.Metric("ssd.errors.uncorrectable", "count",
		"page reads that no retry corrected, for the host and for the drive")
	l.Metric("ssd.errors.lost", "count",
		"map grains lost because the drive could not read them to move or merge them")
	l.Metric("ssd.errors.failed", "count", "requests with a media error or refused")
	l.Metric("ssd.gc.count", "count", "blocks collected")
	l.Metric("ssd.gc.pages_moved", "count", "valid pages moved by garbage collection")
	l.Metric("ssd.flash.reads", "count", "flash page reads")
	l.Metric("ssd.flash.programs", "count", "flash page programs")
	l.Metric("ssd.flash.erases", "count", "flash block erases")
	l.Metric("ssd.flash.suspensions", "count", "programs and erases suspended for a read")
	l.Metric("ssd.cmt.hit_ratio", "fraction", "share of mapping look-ups answered by the cached mapping table")
	l.Metric("ssd.cache.hit_ratio", "fraction", "share of requested pages found in the DRAM cache")
	l.Metric("ssd.utilisation.die", "fraction", "utilisation of dies, mean over dies")
	l.Metric("ssd.utilisation.channel", "fraction",
		"utilisation of flash channels, mean over channels")
	l.Metric("ssd.utilisation.link", "fraction",
		"utilisation of the busier direction of the host link")
	l.Metric("ssd.utilisation.controller", "fraction",
		"utilisation of controllers' processors, mean over processors (ssd.controller)")
	l.Metric("ssd.power_states.rested", "fraction",
		"share of time that drives spent in idle power states, mean over drives (ssd.power_states)")
	l.Metric("ssd.power_limit.held", "fraction",
		"share of flash operations that waited for power (ssd.power_limit)")
	l.Metric("ssd.power_states.wakes", "count", "wake-ups of drives from an idle power state")
	l.Metric("ssd.wear.min", "count",
		"erases of the least worn block over its life: ssd.reliability.cycles, preconditioning, warm-up and run")
	l.Metric("ssd.wear.mean", "count", "erases of a block, likewise, mean over blocks")
	l.Metric("ssd.wear.max", "count", "erases of the most worn block, likewise")
	l.Metric("ssd.wear.life_used", "fraction", "mean erases of a block over the rated program/erase cycles")
	l.Metric("ssd.free_blocks.min", "count", "fewest free blocks of any plane, warm-up included")
	l.Metric("ssd.energy", "J", "energy used during the run")
	l.Metric("ssd.power", "W", "mean power during the run")
	for _, part := range []struct{ name, help string }{
		{"execution", "mean array time of a flash %s"},
		{"transfer", "mean transfer time of a flash %s on its channel"},
		{"wait", "mean wait of a flash %s for its die or channel"},
	} {
		for _, op := range []string{"read", "write"} {
			l.Metric("ssd.transaction."+part.name+"."+op+".mean", "us", fmt.Sprintf(part.help, op))
		}
	}
	for _, q := range queues {
		l.Metric("ssd.queue.length."+q.name+".mean", "count",
			q.noun+" waiting, time-weighted mean over queues")
		l.Metric("ssd.queue.length."+q.name+".max", "count",
			"most "+q.noun+" waiting in one queue, warm-up included")
	}
	for _, q := range queues {
		l.Metric("ssd.queue.wait."+q.name+".mean", "us", "mean queue wait of "+q.noun)
		l.Metric("ssd.queue.wait."+q.name+".max", "us",
			"longest queue wait of "+q.noun+", warm-up included")
	}
}

// raidWords defines the metrics of a volume of several drives.
func raidWords(l *result.Lexicon) {
	for op, noun := range [...]string{"reads", "writes"} {
		op := block.Op(op)
		l.Metric("raid."+op.String()+".commands", "count",
			noun+" sent to members, also for parity and rebuild, warm-up included")
		l.Metric("raid."+op.String()+".bytes", "B", "bytes of "+noun+" sent to members")
	}
	l.Metric("raid.rows.full", "count", "full-stripe writes, which need no reads")
	l.Metric("raid.rows.modified", "count", "partial-stripe writes that read old data and parity (read-modify-write)")
	l.Metric("raid.rows.reconstructed", "count",
		"partial-stripe writes that read the rest of the stripe (reconstruct-write)")
	l.Metric("raid.rows.waited", "count", "partial-stripe writes that waited for another write of the same stripe")
	l.Metric("raid.degraded", "count", "reads and writes that computed a failed member's data")
	l.Metric("raid.rebuilt", "fraction", "share of the failed member rebuilt by the end; 1 without a rebuild")
}
