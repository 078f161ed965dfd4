package experiment

import "farflash/result"

// Words returns the names common to all experiments.
func Words() result.Words {
	var l result.Lexicon
	l.Metric("sim.events", "count", "events that the simulation ran")
	return l.Words
}

// Operation defines the words of an operation on a cluster; aborted and rate are set if it can be aborted, and if it
// moves bytes.
func Operation(l *result.Lexicon, op string, aborted, rate bool) {
	name, noun := "cluster."+op, op+" operation"
	l.Metric(name+".count", "count", "completed "+noun+"s")
	if aborted {
		l.Metric(name+".aborted", "count", noun+"s that were aborted and begun again")
	}
	l.Metric(name+".iops", "1/s", "completed "+noun+"s per second")
	if rate {
		l.Metric(name+".rate", "B/s", "bytes of completed "+noun+"s per second")
		l.More(name + ".rate")
	}
	l.Metric(name+".latency.mean", "us", "mean time of "+noun+"s")
	l.Metric(name+".latency.stddev", "us", "standard deviation of the time of "+noun+"s")
	l.Metric(name+".latency.min", "us", "shortest time of "+noun+"s")
	l.Quantiles(name+".latency", "us", " of the time of "+noun+"s", result.Quantiles)
	l.Metric(name+".latency.max", "us", "longest time of "+noun+"s")
	l.Histogram(name+".latency", "time of "+noun+"s")
}
