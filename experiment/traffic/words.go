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
	l.Metric("cluster.event.count", "count", "events that nodes handled")
	l.Metric("cluster.event.iops", "1/s", "events that nodes handled per second")
	l.Metric("cluster.event.held", "count", "exchanges not begun because no drawn peer had room")
	l.Metric("cluster.event.shaped", "count", "exchanges delayed by their node's leaky bucket")
	l.Metric("cluster.event.pending.mean", "count",
		"time-weighted mean number of events on their way to a node or waiting there, mean over nodes that receive")
	l.Metric("cluster.event.pending.max", "count", "most events that were on their way to a node or waiting there")
	l.Metric("cluster.event.crowded", "fraction",
		"share of time that more than one event was on its way to a node or waiting there, mean over nodes that receive")
	return l.Words
}
