package ratecontrol

import (
	"farflash/block"
	"farflash/units"
)

// reserve has reads fetched only as the network will take them, and leaves weights alone.
//
// Aggregate throughput collapses under congestion because reads that the network does not take keep their places in the drives, and have the
// completions of writes, and the requests for their data, wait behind them. It is enough, then, that no more reads be under way than keep the network busy
// until the next that is fetched has been read. By Little's law that is what the network takes times the time that a read is under way: in the drive, on
// its way, and as long in the transmit queue as makes up for what varies. Writes have all other places.
//
// So the limit is the demanded rate times a horizon. The demand is taken at once; the horizon is found by feedback: reads wait in the transmit queue for as long as
// their acknowledgements come later than the earliest ever has, and that is to be the time that a drive takes to read and the network to send one. It is raised only while the limit binds; so where drives
// are slower than the network, nothing does.
type reserve struct {
	headroom float64 // the wait that is aimed at, in times of a read and its sending
	demand   float64
	horizon  float64 // s
	took     float64 // by a drive to read, s, lately
	earliest float64 // from the end of a read in its drive to its acknowledgement, s
	largest  float64 // bytes of a read, lately
}

// NewReserve returns the controller; headroom is for how many times as long as a drive reads and the network sends a read is to wait until it is sent.
func NewReserve(headroom float64) Controller { return &reserve{headroom: headroom} }

func (c *reserve) Start(s *Steering) {
	for d := range s.Weights {
		s.SetRatio(d, 1)
	}
	c.demand = s.Line
	s.Overtake = true
	s.Wake = units.Forever
}

// Shares of what came last in what is known of reads, and of a distance from the goal that is made good while as much is acknowledged as the limit is.
const (
	lately = 1.0 / 64
	gain   = 0.5
)

func (c *reserve) React(s *Steering, x *Signal) {
	switch {
	case x.Event == Demand:
		c.demand = max(x.Rate, 1)
	case x.Event == Ended && x.Op == block.Read:
		t := x.Took.Seconds()
		if c.took == 0 {
			c.took, c.horizon = t, (2+c.headroom)*t
		}
		c.took += float64(lately * (t - c.took))
		c.largest = max(float64(x.Bytes), float64(c.largest*(1-lately)))
	case x.Event == Sent && s.ReadLimit > 0:
		t := x.Took.Seconds()
		if c.earliest == 0 || t < c.earliest {
			c.earliest = t
		}
		goal := float64(c.headroom * (c.took + float64(c.largest/c.demand)))
		off := goal - (t - c.earliest)
		if off > 0 && s.Reading+x.Bytes < s.ReadLimit {
			return
		}
		// One that is very late is no more off than one that waits for twice as long as is aimed at.
		off = max(off, -goal)
		c.horizon = max(c.horizon+float64(gain*off*float64(x.Bytes)/float64(s.ReadLimit)), c.took)
	default:
		return
	}
	if c.took > 0 {
		// At least two reads, so that one is in a drive while the other is sent.
		s.ReadLimit = int64(max(float64(c.demand*c.horizon), 2*c.largest))
		// Each queue pair has as much, so that one that is slow does not keep others waiting.
		s.SendLimit = int64(max(4*float64(c.demand*c.earliest), 2*c.largest)) * int64(max(s.Pairs, 1))
	}
}
