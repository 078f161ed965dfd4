package ratecontrol

import (
	"farflash/block"
	"farflash/units"
)

// reserve has reads fetched only as the network will take them, and leaves weights alone.
//
// Aggregate throughput collapses under congestion because reads that the network does not take keep their places in the drives, and have the
// completions of writes wait behind them. It is enough, then, that no more reads be in drives and transmit queue than keep the network busy
// until the next that is fetched has been read: what it demands times the time that a read takes, with a reserve of the same again, since both vary.
// Writes have all other places. Where drives are slower than the network, their reads take longer the more there are, and so the limit rises until it
// binds no more.
type reserve struct {
	headroom float64 // reads that may be under way, in multiples of demand times the time of a read
	demand   float64
	took     float64 // of a read in a drive, s
	largest  float64 // bytes of a read, lately
}

// NewReserve returns the controller; headroom is how many times what the network takes while a read is read may be under way, 1 at least.
func NewReserve(headroom float64) Controller { return &reserve{headroom: headroom} }

func (c *reserve) Start(s *Steering) {
	for d := range s.Weights {
		s.SetRatio(d, 1)
	}
	c.demand = s.Line
	s.Wake = units.Forever
}

// weigh is the share of what came last in the mean time of a read.
const weigh = 1.0 / 64

func (c *reserve) React(s *Steering, x *Signal) {
	switch {
	case x.Event == Demand:
		c.demand = x.Rate
	case x.Event == Ended && x.Op == block.Read:
		t := x.Took.Seconds()
		if c.took == 0 {
			c.took = t
		}
		c.took += float64(weigh * (t - c.took))
		c.largest = max(float64(x.Bytes), float64(c.largest*(1-weigh)))
	default:
		return
	}
	if c.took > 0 {
		// At least two reads, so that one is in a drive while the other is sent.
		s.ReadLimit = int64(max(float64(c.headroom*float64(c.demand*c.took)), 2*c.largest))
	}
}
