package ratecontrol

import (
	"errors"

	"farflash/units"
)

// src is SRC's dynamic adjustment of weights (section III-C, Algorithm 1). When the network demands another rate, the features of what each drive was asked for
// in the window before are taken, and the weight ratio is chosen whose predicted read throughput is closest to the drive's part of
// the demand.
//
// The paper has one drive and a queue pair. A target's demand is the sum over its queue pairs and is divided among its drives as they were asked to read. A
// congestion control changes its rate tens of thousands of times a second, so at most one decision is made in an interval.
type src struct {
	c        Config
	predict  []Predictor
	monitors []*Monitor
	shares   shares
	demand   float64
	next     units.Duration // when a decision may be made again
	pending  bool           // a demand has come that no decision was made for
	ch       Features       // of the drive that is decided for
}

// NewSRC returns the controller; predict has one for each drive of the target.
func NewSRC(c Config, predict []Predictor) (Controller, error) {
	if len(predict) == 0 {
		return nil, errors.New("ratecontrol: src needs a model of each drive")
	}
	return &src{c: c, predict: predict}, nil
}

func (c *src) Start(s *Steering) {
	for d := range s.Weights {
		s.SetRatio(d, 1)
		c.monitors = append(c.monitors, NewMonitor(c.c.Window, 0))
	}
	c.shares.start(len(s.Weights), c.c.Window)
	s.Wake = units.Forever
}

func (c *src) React(s *Steering, x *Signal) {
	switch x.Event {
	case Arrived:
		c.monitors[x.Drive].Arrived(x.Now, x.Op, x.Bytes)
		c.shares.arrived(x)
	case Demand:
		c.demand, c.pending = x.Rate, true
		if x.Now >= c.next {
			c.decide(s, x.Now)
		} else {
			s.Wake = c.next
		}
	case Timer:
		if c.pending {
			c.decide(s, x.Now)
		}
	}
}

// decide chooses the weights of all drives.
func (c *src) decide(s *Steering, now units.Duration) {
	c.pending, c.next = false, now+c.c.Interval
	s.Wake = units.Forever
	for d := range s.Weights {
		c.ch = c.monitors[d].Features(now)
		p := search{predict: c.predict[d], ch: &c.ch, steering: s}
		want := c.demand * c.shares.of(d, now)
		if c.c.Mode == Paper {
			s.SetRatio(d, p.printed(want, float64(c.c.Tolerance)))
		} else {
			s.SetRatio(d, p.closest(want, c.c.MaxRatio))
		}
	}
}

// search is the procedure PredictWeightRatio.
type search struct {
	predict  Predictor
	ch       *Features
	steering *Steering
}

func (p *search) reads(w int) float64 {
	p.steering.Predictions++
	read, _ := p.predict.Predict(p.ch, w)
	return read
}

// closest is the ratio up to most whose predicted reads are closest to what is wanted; the least of several.
func (p *search) closest(want float64, most int) int {
	read := p.reads(1)
	if read < want {
		return 1
	}
	best, least := 1, distance(read, want)
	for w := 2; w <= most; w++ {
		if d := distance(p.reads(w), want); d < least {
			best, least = w, d
		}
	}
	return best
}

// printed is Algorithm 1 line by line. It has no greatest ratio; where the prediction never settles, which no model of finite range allows, it ends
// at mostPrinted.
func (p *search) printed(want, tolerance float64) int {
	read := p.reads(1)
	if read < want {
		return 1
	}
	best, least := 1, distance(read, want)
	for w := 2; w <= mostPrinted; w++ {
		before := read
		read = p.reads(w)
		if d := distance(read, want); least > d {
			best, least = w, d
		}
		if before == 0 || distance(before, read)/before < tolerance {
			break
		}
	}
	return best
}

const mostPrinted = 10000

func distance(a, b float64) float64 { return max(a-b, b-a) }
