package traffic

import (
	"farflash/experiment"
	"farflash/result"
)

// Operations returns the metrics of exchanges between nodes.
func Operations() result.Words {
	var l result.Lexicon
	experiment.Operation(&l, "exchange", false, false)
	return l.Words
}

// Words returns the metrics of nodes that exchange events, other than those of all clusters.
func Words() result.Words {
	var l result.Lexicon
	l.Metric("cluster.event.count", "count", "events handled by nodes")
	l.Metric("cluster.event.iops", "1/s", "events handled by nodes per second")
	l.Metric("cluster.event.held", "count", "exchanges not started because all drawn peers were at their limit")
	l.Metric("cluster.event.shaped", "count", "exchanges delayed by their node's leaky bucket")
	l.Metric("cluster.event.pending.mean", "count",
		"events in flight to a node or waiting there, time-weighted mean over receiving nodes")
	l.Metric("cluster.event.pending.max", "count", "most events in flight to a node or waiting there")
	l.Metric("cluster.event.crowded", "fraction",
		"share of time with more than one event in flight to a node or waiting there, mean over receiving nodes")
	return l.Words
}
