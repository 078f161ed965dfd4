package ratecontrol

// static has the same weights at all times.
type static struct{ ratio int }

// NewStatic returns a controller that gives writes so many times the weight of reads, whatever happens.
func NewStatic(ratio int) Controller { return static{ratio} }

func (c static) Start(s *Steering) {
	for d := range s.Weights {
		s.SetRatio(d, c.ratio)
	}
}

func (static) React(*Steering, *Signal) {}
