package ratecontrol

import (
	"farflash/block"
	"farflash/numeric/units"
)

// aimd is the method that SRC dismisses, "to monitor the current system status and reactively adjust the request
// priority" (section II-C): each interval it compares the drives' reads with the network's demand, and doubles the
// weight ratio if they exceed it, or subtracts 1 if they fall short. So reads decrease multiplicatively and increase
// additively, like a sender's window in TCP.
type aimd struct {
	most      int
	partition Partition
	interval  units.Duration
	demand    float64
	read      []int64 // bytes, in the present interval
	shares    shares
}

// newAIMD returns a reactive controller, which decides once per interval and divides demand by the reads that drives
// received in a window.
func newAIMD(c Config) Controller {
	a := &aimd{most: c.MaxRatio, partition: c.Partition, interval: c.Interval}
	a.shares.window = c.Window
	return a
}

func (c *aimd) Start(s *Steering) {
	s.Partition = c.partition
	for d := range s.Weights {
		s.SetRatio(d, 1)
	}
	c.read = make([]int64, len(s.Weights))
	c.shares.start(len(s.Weights), c.shares.window)
	c.demand = s.Line
	s.Wake = units.Forever
}

func (c *aimd) React(s *Steering, x *Signal) {
	switch x.Event {
	case Arrived:
		c.shares.arrived(x)
		if s.Wake == units.Forever {
			s.Wake = x.Now + c.interval
			clear(c.read)
		}
	case Ended:
		if x.Op == block.Read {
			c.read[x.Drive] += x.Bytes
		}
	case Demand:
		c.demand = x.Rate
	case Timer:
		c.look(s, x.Now)
	}
}

// look compares reads with the demand. A drive without reads is below any demand, and moves towards equal weights. When
// no drive has read and all weights are equal, the timer stops until the next command arrives.
func (c *aimd) look(s *Steering, now units.Duration) {
	const band = 0.05 // dead band on both sides of the demand
	busy := false
	for d := range s.Weights {
		w := s.Weights[d].Write
		read := float64(c.read[d]) / c.interval.Seconds()
		want := c.demand * c.shares.of(d, now)
		switch {
		case c.read[d] > 0 && read > float64(want*(1+band)):
			w = min(2*w, c.most)
		case read < float64(want*(1-band)):
			w-- // a ratio is at least 1
		}
		busy = busy || w > 1 || c.read[d] > 0
		s.SetRatio(d, w)
		c.read[d] = 0
	}
	if busy {
		s.Wake = now + c.interval
	}
}
