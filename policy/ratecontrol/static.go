package ratecontrol

// static has constant weights.
type static struct{ ratio int }

// NewStatic returns a controller with a constant weight ratio of writes to reads.
func NewStatic(ratio int) Controller { return static{ratio} }

func (c static) Start(s *Steering) {
	for d := range s.Weights {
		s.SetRatio(d, c.ratio)
	}
}

func (static) React(*Steering, *Signal) {}
