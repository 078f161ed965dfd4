package ratecontrol

import (
	"farflash/block"
	"farflash/numeric/units"
)

// reserve fetches reads only as the network will accept them, and leaves the weights equal.
//
// Aggregate throughput collapses under congestion because reads that the network does not accept keep their places in
// the drives, and block the completions of writes, and the requests for their data, behind them. It therefore suffices
// that no more reads be in flight than keep the network busy until the next fetched one has been read. By Little's law
// that is the network's rate times the time that a read is in flight: in the drive, on the path, and in the target, for
// long enough to absorb the variation. Writes have all other places.
//
// So the limit is the demanded rate times a horizon. The demand takes effect at once; the horizon is found by feedback:
// the waiting time of reads in the target is the excess of their acknowledgement time over the earliest ever seen, and
// the goal for it is headroom times the time for a drive to read and the network to send one. The horizon is raised
// only while the limit binds; so where drives are slower than the network, it stays as it is.
//
// Where the data of writes is acknowledged, writes are not free: that takes about 8 % of the written bytes in the
// direction of reads, with packets of a KiB. Therefore, while reads wait, write data can be requested only at a rate
// whose acknowledgements take at most a share, the yield, of the demand.
//
// With paced it is the controller pace: in addition, the data read by drives is handed to the network no faster than
// demanded. So reads follow a demand that the network would not enforce, and the reads that wait for their turn smooth
// the variation of the drives' read times.
type reserve struct {
	headroom float64        // goal for the wait, in units of the time to read and send a read
	yield    float64        // share of the demand that acknowledgements of writes may take while reads wait
	paced    bool           // reads are sent at the demand
	bound    units.Duration // when the limit last bound
	demand   float64
	horizon  float64 // s
	took     float64 // recent mean time for a drive to read, s
	earliest float64 // least time from a read's completion in its drive to its acknowledgement, s
	largest  float64 // largest recent read, bytes
}

func (c *reserve) Start(s *Steering) {
	for d := range s.Weights {
		s.SetRatio(d, 1)
	}
	c.demand = s.Line
	s.Overtake = true
	s.Wake = units.Forever
}

// lately is the weight of the newest sample in the moving averages of reads; gain is the part of the error that is
// corrected while one limit's worth of bytes is acknowledged.
const (
	lately = 1.0 / 64
	gain   = 0.5
)

func (c *reserve) React(s *Steering, x *Signal) {
	switch {
	case x.Event == Demand:
		c.demand = max(x.Rate, 1)
		if c.paced {
			s.SendRate = c.demand
		}
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
		if binds := s.Reading+x.Bytes >= s.ReadLimit; binds {
			c.bound = x.Now
		} else if off > 0 {
			c.give(s, x.Now)
			return
		}
		// A very late read counts no more than one that waits for twice the goal.
		off = max(off, -goal)
		c.horizon = max(c.horizon+float64(gain*off*float64(x.Bytes)/float64(s.ReadLimit)), c.took)
	default:
		return
	}
	c.give(s, x.Now)
	if c.took > 0 {
		// At least two reads, so that one can be in a drive while the other is sent.
		s.ReadLimit = int64(max(float64(c.demand*c.horizon), 2*c.largest))
		// The limit scales with the queue pairs, so that a slow one does not block the others.
		s.SendLimit = int64(max(4*float64(c.demand*c.earliest), 2*c.largest)) * int64(max(s.Pairs, 1))
	}
}

// give sets the rate of requests for write data: if the limit has bound within the horizon, their acknowledgements may
// take no more than the yield.
func (c *reserve) give(s *Steering, now units.Duration) {
	s.WriteRate = 0
	if c.yield < 1 && s.Toll > 0 && s.ReadLimit > 0 && (now-c.bound).Seconds() < c.horizon {
		s.WriteRate = float64(c.yield*c.demand) / s.Toll
	}
}
