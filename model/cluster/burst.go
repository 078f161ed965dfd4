package cluster

import (
	"farflash/numeric/units"
)

// Bursts: in an open loop several chunks may arrive at one gateway at once, as the chunks of one object do.

// usualShape is the default shape of the burst-size distribution.
const usualShape = 1.2

// mostBurst is the largest burst, in chunks.
const mostBurst = 4096

func (c *Config) checkBursts(f *units.Faults) {
	l := &c.Load
	f.Hold(l.Burst >= 0 && l.Burst <= mostBurst, "load.burst", "%d are not possible; use 1 to %d, or 0", l.Burst,
		mostBurst)
	f.Hold(l.Shape == 0 || l.Shape >= 0.1 && l.Shape <= 10, "load.shape",
		"%v is not possible; use 0.1 to 10, or 0 for %v", l.Shape, usualShape)
	f.Hold(l.Burst <= 1 || l.open(), "load.burst",
		"a closed loop has no bursts; give load.rate or load.share, or leave it out")
	f.Hold(l.Shape == 0 || l.Burst > 1, "load.shape", "chunks arrive one by one; give load.burst, or leave it out")
}

// bursts returns the distribution of burst sizes.
func (l *Load) bursts() pareto {
	shape := l.Shape
	if shape == 0 {
		shape = usualShape
	}
	return pareto{most: max(l.Burst, 1), shape: shape}
}
