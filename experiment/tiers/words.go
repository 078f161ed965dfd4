package tiers

import "farflash/result"

// Words returns the metrics of an SSD in front of HDDs, other than those of all clusters.
func Words() result.Words {
	var l result.Lexicon
	l.Metric("cluster.tier.used", "fraction", "share of the SSD in use, mean over the ends of slices")
	l.Metric("cluster.tier.moved", "count", "chunks that left the SSD for an HDD")
	l.Metric("cluster.tier.held", "count", "writes that waited for the SSD")
	l.Metric("cluster.tier.waiting.mean", "count",
		"writes waiting for the SSD, mean over the ends of slices")
	l.Metric("cluster.tier.waiting.max", "count", "most writes waiting for the SSD")
	l.Metric("cluster.tier.drains", "count", "times that the SSD reached its high watermark")
	l.Matrix("cluster.tier.rate", "B/s", "bytes written to each device of a tiered server per second")
	return l.Words
}
