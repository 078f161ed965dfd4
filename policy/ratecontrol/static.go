package ratecontrol

// static has a constant weight ratio of writes to reads, at least 1.
type static struct {
	ratio     int
	partition Partition
}

func (c static) Start(s *Steering) {
	s.Partition = c.partition
	for d := range s.Weights {
		s.SetRatio(d, c.ratio)
	}
}

func (static) React(*Steering, *Signal) {}
