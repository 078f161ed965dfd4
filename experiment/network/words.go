package network

import "farflash/result"

// Words are the names of what networks and their flows did.
func Words() result.Words {
	var l result.Lexicon
	l.Metric("fabric.pause.count", "count", "PFC pause frames sent")
	l.Metric("fabric.pause.time", "s", "time during which ports were paused, summed over ports")
	l.Metric("fabric.ecn.marks", "count", "packets marked with congestion experienced")
	l.Metric("fabric.cnp.count", "count", "congestion notification packets sent")
	l.Metric("fabric.drops", "count", "packets dropped")
	l.Metric("fabric.packet_hops", "count", "packets forwarded, counted once per link")
	l.Metric("fabric.retransmits", "count", "packets sent again")
	l.Metric("fabric.timeouts", "count", "retransmission timers that expired")
	l.Metric("fabric.nacks", "count", "negative acknowledgements sent")
	l.Metric("fabric.queue.max", "B", "largest queue of any switch port and class, warm-up included")
	l.Metric("fabric.deadlocks", "count", "circles of paused ports that the watchdog found")
	l.Metric("fabric.goodput", "bit/s", "payload that reached hosts per second of measured time, over all hosts")
	l.Metric("fabric.utilisation.max", "fraction", "share of measured time that the busiest link was busy")
	l.Metric("flow.count", "count", "flows that began after the warm-up and ended")
	l.Metric("flow.unfinished", "count", "flows that began after the warm-up and did not end")
	l.Metric("flow.bytes", "B", "bytes of the flows that ended")
	for _, f := range []struct{ name, unit, noun string }{{"fct", "us", "flow completion time"}, {"slowdown", "ratio", "flow completion time over what it would be alone"}} {
		l.Metric("flow."+f.name+".mean", f.unit, "mean of the "+f.noun)
		l.Quantiles("flow."+f.name, f.unit, " of the "+f.noun, result.FlowQuantiles)
		l.Metric("flow."+f.name+".max", f.unit, "maximum of the "+f.noun)
	}
	l.Series("fabric.goodput", "bit/s", "payload that reached hosts per second, over all hosts")
	l.Series("fabric.pause.time", "fraction", "share of time that ports were paused, mean over ports")
	l.Series("fabric.ecn.marks", "1/s", "packets marked per second")
	l.Series("fabric.queue", "B", "largest queue of any port")
	l.Series("flow.rate", "bit/s", "rate of a queue pair")
	l.Histogram("flow.fct", "flow completion time")
	l.Matrix("fabric.link.utilisation", "fraction", "share of time that each port sent; columns are ends of slices, in seconds")
	l.Matrix("fabric.link.queue", "B", "what waited in each port at the end of each slice")
	l.Matrix("fabric.link.paused", "fraction", "share of time that each port was paused")
	l.Matrix("fabric.link.totals", "count", "what each port did after the warm-up, each column in its own unit")
	l.Matrix("fabric.queue.histogram", "count", "how often the queue of each switch port had which depth when it was looked at")
	l.Matrix("fabric.host.goodput", "bit/s", "payload that reached each host per second of measured time")
	l.Matrix("fabric.layout", "fraction", "where each node stands in a picture, and its tier")
	l.Matrix("flow.slowdown", "ratio", "flow completion time over what it would be alone, by size; the first column counts flows")
	l.Fewer("fabric.pause.count", "fabric.pause.time", "fabric.drops", "fabric.retransmits", "fabric.timeouts", "fabric.nacks", "fabric.deadlocks", "flow.unfinished")
	l.More("fabric.goodput")
	return l.Words
}
