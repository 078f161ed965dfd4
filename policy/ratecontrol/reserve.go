package ratecontrol

import (
	"farflash/block"
	"farflash/numeric/units"
)

// reserve has reads fetched only as the network will take them, and leaves weights alone.
//
// Aggregate throughput collapses under congestion because reads that the network does not take keep their places in
// the drives, and have the completions of writes, and the requests for their data, wait behind them. It is enough,
// then, that no more reads be under way than keep the network busy until the next that is fetched has been read. By
// Little's law that is what the network takes times the time that a read is under way: in the drive, on its way, and
// as long in the target as makes up for what varies. Writes have all other places.
//
// So the limit is the demanded rate times a horizon. The demand is taken at once; the horizon is found by feedback:
// reads wait in the target for as long as their acknowledgements come later than the earliest ever has, and that is
// to be as long as a few times what a drive takes to read and the network to send one. It is raised only while the
// limit binds; so where drives are slower than the network, nothing does.
//
// Writes do not come for nothing: the network carries their acknowledgements where it carries reads, some 8 % of what
// is written with packets of a KiB. While reads wait, the data of writes can therefore be asked for no faster than
// leaves reads all but a share, the yield, of what is demanded.
//
// With paced it is pace: besides, what drives have read is handed to the network no faster than is demanded. So reads
// follow a demand that the network would not hold them to, and what waits for its turn evens out how long drives take
// for each.
type reserve struct {
	headroom float64        // the wait that is aimed at, in times of a read and its sending
	yield    float64        // of the demand, what acknowledgements of writes may take while reads wait
	paced    bool           // reads follow the demand
	bound    units.Duration // when the limit was seen to bind last
	demand   float64
	horizon  float64 // s
	took     float64 // by a drive to read, s, lately
	earliest float64 // from the end of a read in its drive to its acknowledgement, s
	largest  float64 // bytes of a read, lately
}

// NewReserve returns the controller; headroom is for how many times as long as a drive reads and the network sends a
// read is to wait until it is sent. yield is the share of the network's rate that writes may cost while reads wait, 1
// for no limit.
func NewReserve(headroom, yield float64) Controller {
	return &reserve{headroom: headroom, yield: yield}
}

// NewPaced returns the controller that also hands reads to the network no faster than is demanded.
func NewPaced(headroom, yield float64) Controller {
	return &reserve{headroom: headroom, yield: yield, paced: true}
}

func (c *reserve) Start(s *Steering) {
	for d := range s.Weights {
		s.SetRatio(d, 1)
	}
	c.demand = s.Line
	s.Overtake = true
	s.Wake = units.Forever
}

// Shares of what came last in what is known of reads, and of a distance from the goal that is made good while as much
// is acknowledged as the limit is.
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
		// One that is very late is no more off than one that waits for twice as long as is aimed at.
		off = max(off, -goal)
		c.horizon = max(c.horizon+float64(gain*off*float64(x.Bytes)/float64(s.ReadLimit)), c.took)
	default:
		return
	}
	c.give(s, x.Now)
	if c.took > 0 {
		// At least two reads, so that one is in a drive while the other is sent.
		s.ReadLimit = int64(max(float64(c.demand*c.horizon), 2*c.largest))
		// Each queue pair has as much, so that one that is slow does not keep others waiting.
		s.SendLimit = int64(max(4*float64(c.demand*c.earliest), 2*c.largest)) * int64(max(s.Pairs, 1))
	}
}

// give says how fast the data of writes may be asked for: while the limit has bound lately, for no more than their
// acknowledgements may take.
func (c *reserve) give(s *Steering, now units.Duration) {
	s.WriteRate = 0
	if c.yield < 1 && s.Toll > 0 && s.ReadLimit > 0 && (now-c.bound).Seconds() < c.horizon {
		s.WriteRate = float64(c.yield*c.demand) / s.Toll
	}
}
