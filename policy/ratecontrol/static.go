package ratecontrol

// static has a constant weight ratio of writes to reads, at least 1.
type static struct{ ratio int }

func (c static) Start(s *Steering) {
	for d := range s.Weights {
		s.SetRatio(d, c.ratio)
	}
}

func (static) React(*Steering, *Signal) {}
