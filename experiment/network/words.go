package network

import (
	"strings"

	"farflash/result"
)

// Words returns the metrics of networks and their flows.
func Words() result.Words {
	var l result.Lexicon
	l.Metric("fabric.pause.count", "count",
		"pauses of senders by switches (PFC), without refreshes")
	l.Metric("fabric.pause.time", "s", "time that ports were paused, sum over ports")
	l.Metric("fabric.ecn.marks", "count", "packets marked congestion experienced")
	l.Metric("fabric.cnp.count", "count", "congestion notification packets sent")
	l.Metric("fabric.drops", "count", "packets dropped")
	l.Metric("fabric.packet_hops", "count", "packets forwarded, counted once per link")
	l.Metric("fabric.retransmits", "count", "packets retransmitted")
	l.Metric("fabric.timeouts", "count", "retransmission timers that expired")
	l.Metric("fabric.nacks", "count", "negative acknowledgements sent")
	l.Metric("fabric.queue.max", "B", "largest queue of any switch port and class, warm-up included")
	l.Metric("fabric.deadlocks", "count", "cycles of paused ports found by the watchdog")
	l.Metric("fabric.pulls", "count", "pull packets sent by receivers")
	l.Metric("fabric.trimmed", "count", "packets trimmed by switches")
	l.Metric("fabric.reordered", "count",
		"packets that arrived out of order, if switches do not choose paths by hash alone")
	l.Metric("fabric.reordered.max", "count", "most packets by which one arrived early, warm-up included")
	l.Metric("fabric.goodput", "bit/s", "payload delivered to all hosts per second")
	l.Metric("fabric.utilisation.max", "fraction", "utilisation of the busiest link")
	l.Metric("flow.count", "count", "completed flows that started after the warm-up")
	l.Metric("flow.unfinished", "count", "flows that started after the warm-up and did not complete")
	l.Metric("flow.bytes", "B", "bytes of completed flows")
	for _, f := range []struct{ name, unit, noun string }{{"fct", "us", "flow completion time"},
		{"slowdown", "ratio", "flow completion time over that of the flow alone"}} {
		l.Metric("flow."+f.name+".mean", f.unit, "mean of the "+f.noun)
		l.Quantiles("flow."+f.name, f.unit, " of the "+f.noun, result.FlowQuantiles)
		l.Metric("flow."+f.name+".max", f.unit, "maximum of the "+f.noun)
	}
	l.Metric("collective.count", "count", "completed rounds of collectives, warm-up included")
	l.Metric("collective.unfinished", "count", "rounds of collectives that did not complete")
	l.Metric("collective.time.mean", "us",
		"mean time of a collective round, until the last host has its data")
	l.Metric("collective.time.max", "us", "longest time of a collective round")
	l.Metric("collective.bandwidth", "B/s", "size of a collective over its time, mean over rounds")
	l.Metric("collective.bus_bandwidth", "B/s",
		"collective.bandwidth times the least share of the size that a host must send: 2(n-1)/n for an all-reduce of n "+
			"hosts, (n-1)/n for others")
	of := l.Metrics
	l.Metrics = nil
	for _, d := range of {
		if rest, ok := strings.CutPrefix(d.Name, "flow."); ok {
			d.Name = rest
			l.Metrics = append(l.Metrics, d)
		} else if strings.HasPrefix(d.Name, "collective.") {
			l.Metrics = append(l.Metrics, d)
		}
	}
	l.Histogram("fct", "flow completion time")
	l.Scope("flows", "group of flows", func(string) bool { return true })
	l.Metrics, l.Histograms = of, nil
	l.Series("fabric.goodput", "bit/s", "payload delivered to all hosts per second")
	l.Series("fabric.pause.time", "fraction", "share of time that ports were paused, mean over ports")
	l.Series("fabric.ecn.marks", "1/s", "packets marked per second")
	l.Series("fabric.queue", "B", "largest queue of any port")
	l.Series("flow.rate", "bit/s", "rate of a queue pair")
	l.Series("flow.throughput", "bit/s", "acknowledged payload of a queue pair per second")
	l.Series("flow.in_flight", "B", "payload of a queue pair that is sent and not acknowledged")
	l.Histogram("flow.fct", "flow completion time")
	l.Matrix("fabric.link.utilisation", "fraction",
		"share of time that each port sent; columns are ends of slices, in seconds")
	l.Matrix("fabric.link.queue", "B", "bytes waiting in each port at the end of each slice")
	l.Matrix("fabric.link.paused", "fraction", "share of time that each port was paused")
	l.Matrix("fabric.link.totals", "count", "totals of each port, each column in its own unit")
	l.Matrix("fabric.queue.histogram", "count", "histogram of queue depths of each switch port, sampled")
	l.Matrix("fabric.host.goodput", "bit/s", "payload delivered to each host per second")
	l.Matrix("fabric.layout", "fraction", "tier of each node and its position in the drawing of the network")
	l.Matrix("collective.steps", "us",
		"time from the start of a round until the last host completed each step; the first column counts rounds")
	l.Matrix("flow.slowdown", "ratio",
		"flow completion time over that of the flow alone, by size; the first column counts flows")
	l.Fewer("fabric.pause.count", "fabric.pause.time", "fabric.drops", "fabric.retransmits", "fabric.timeouts",
		"fabric.nacks", "fabric.trimmed", "fabric.reordered", "fabric.deadlocks", "flow.unfinished",
		"collective.unfinished")
	l.More("fabric.goodput", "collective.bandwidth", "collective.bus_bandwidth")
	return l.Words
}
