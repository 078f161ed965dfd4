package experiment

import "farflash/result"

// Words returns the names common to all experiments.
func Words() result.Words {
	var l result.Lexicon
	l.Metric("sim.events", "count", "simulated events")
	return l.Words
}

// Operation defines a cluster operation's words; aborted: it can be; rate: it moves bytes.
func Operation(l *result.Lexicon, op string, aborted, rate bool) {
	name := "cluster." + op
	l.Metric(name+".count", "count", "completed "+op+"s")
	if aborted {
		l.Metric(name+".aborted", "count", op+"s aborted and restarted")
	}
	l.Metric(name+".iops", "1/s", "completed "+op+"s per second")
	if rate {
		l.Metric(name+".rate", "B/s", "bytes of completed "+op+"s per second")
		l.More(name + ".rate")
	}
	l.Metric(name+".latency.mean", "us", "mean "+op+" latency")
	l.Metric(name+".latency.stddev", "us", "standard deviation of "+op+" latency")
	l.Metric(name+".latency.min", "us", "minimum "+op+" latency")
	l.Quantiles(name+".latency", "us", " of "+op+" latency", result.Quantiles)
	l.Metric(name+".latency.max", "us", "maximum "+op+" latency")
	l.Histogram(name+".latency", op+" latency")
}
