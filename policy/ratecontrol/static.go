package ratecontrol

// static has constant weights.
type static struct{ ratio int }

// NewStatic returns a constant weight ratio of writes to reads, at least 1.
func NewStatic(ratio int) Controller {
	if ratio < 1 {
		panic("ratecontrol: NewStatic with a weight ratio below 1")
	}
	return static{ratio}
}

func (c static) Start(s *Steering) {
	for d := range s.Weights {
		s.SetRatio(d, c.ratio)
	}
}

func (static) React(*Steering, *Signal) {}
