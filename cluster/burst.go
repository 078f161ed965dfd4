package cluster

import (
	"farflash/rng"
	"farflash/units"
)

// Bursts: in an open loop chunks may come several at a time to one gateway, as the chunks of one object do. How many follows a bounded Pareto distribution (heavy
// tails of what is written together: Crovella and Bestavros, Self-Similarity in World Wide Web Traffic, SIGMETRICS 1996).

// usualShape is the distribution's where nothing is said.
const usualShape = 1.2

// mostBurst is of how many chunks a burst may be.
const mostBurst = 4096

func (c *Config) checkBursts(f *units.Faults) {
	l := &c.Load
	f.Hold(l.Burst >= 0 && l.Burst <= mostBurst, "load.burst", "%d are not possible; use 1 to %d, or 0", l.Burst, mostBurst)
	f.Hold(l.Shape == 0 || l.Shape >= 0.1 && l.Shape <= 10, "load.shape", "%v is not possible; use 0.1 to 10, or 0 for %v", l.Shape, usualShape)
	f.Hold(l.Burst <= 1 || l.open(), "load.burst", "gateways work as fast as they can, and nothing comes in bursts; give load.rate or load.share, or leave it out")
	f.Hold(l.Shape == 0 || l.Burst > 1, "load.shape", "chunks come one by one; give load.burst, or leave it out")
}

// shape is what the sizes of bursts fall with.
func (l *Load) shape() float64 {
	if l.Shape == 0 {
		return usualShape
	}
	return l.Shape
}

// end is the power at which the distribution of bursts ends, of which a whole number of chunks is left: from 1 to Burst.
func (l *Load) end() float64 { return rng.Pow(float64(l.Burst)+1, -l.shape()) }

// burst is the size of one, from a number from 0 to 1: the distribution's inverse.
func (l *Load) burst(u float64) int {
	x := rng.Pow(1-float64(u*(1-l.end())), -1/l.shape())
	return max(1, min(int(x), l.Burst))
}

// meanBurst is the mean size of a burst: the sum of the probabilities that it is as large as that.
func (l *Load) meanBurst() float64 {
	if l.Burst <= 1 {
		return 1
	}
	sum := 0.0
	for k := 1; k <= l.Burst; k++ {
		sum += (rng.Pow(float64(k), -l.shape()) - l.end()) / (1 - l.end())
	}
	return sum
}
