package ratecontrol

import (
	"errors"
	"fmt"
	"math"

	"farflash/block"
	"farflash/numeric/rng"
	"farflash/numeric/units"
)

// src is SRC's dynamic adjustment of weights (section III-C, Algorithm 1). When the network demands another rate, it
// takes the features of each drive's load in the preceding window, and chooses the weight ratio whose predicted read
// throughput is closest to the drive's part of the demand.
//
// The paper has one drive and one queue pair. A target's demand is the sum over its queue pairs and is divided among
// its drives in proportion to the reads that they receive. A congestion control changes its rate tens of thousands of
// times a second, so at most one decision is made per interval.
//
// The mode corrected is not in the paper. A model ignores commands that wait in a drive from before the window, so it
// may be wrong for as long as the demand stays, and Algorithm 1 has no feedback that would notice.
type src struct {
	c        Config
	predict  []Predictor
	monitors []*Monitor
	shares   shares
	demand   float64
	next     units.Duration // earliest time of the next decision
	pending  bool           // a demand arrived for which no decision was made yet
	ch       Features       // of the drive under decision
	past     []past         // of each drive, in mode corrected
	learn    units.Duration // end of the window that is learned from
}

// past is the desired and the actual read volume of a drive in a window.
type past struct {
	foreseen int            // the ratio by the model
	trim     float64        // correction factor on it
	want     float64        // bytes per second, by the present decision
	since    units.Duration // time of that decision
	wanted   float64        // bytes, by all decisions of the window before it
	read     int64          // bytes
}

// newSRC returns SRC's controller; predict has a predictor for each drive.
func newSRC(c Config, predict []Predictor) (Controller, error) {
	if len(predict) == 0 {
		return nil, errors.New("ratecontrol: src needs a model for each drive")
	}
	for d, p := range predict {
		if p == nil {
			return nil, fmt.Errorf("ratecontrol: the model of drive %d is nil", d)
		}
	}
	return &src{c: c, predict: predict}, nil
}

func (c *src) Start(s *Steering) {
	s.Partition = c.c.Partition
	for d := range s.Weights {
		s.SetRatio(d, 1)
		c.monitors = append(c.monitors, NewMonitor(c.c.Window, 0))
	}
	c.shares.start(len(s.Weights), c.c.Window)
	s.Wake, c.learn = units.Forever, units.Forever
	if c.c.Mode == Corrected {
		c.past = make([]past, len(s.Weights))
		for d := range c.past {
			c.past[d].trim = 1
		}
	}
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
			s.Wake = min(c.next, c.learn)
		}
	case Ended:
		if c.past != nil && x.Op == block.Read {
			c.past[x.Drive].read += x.Bytes
		}
	case Timer:
		if x.Now >= c.learn {
			c.correct(s, x.Now)
		}
		if c.pending && x.Now >= c.next {
			c.decide(s, x.Now)
			return
		}
		s.Wake = c.learn
		if c.pending {
			s.Wake = min(c.next, c.learn)
		}
	}
}

// decide chooses the weights of all drives.
func (c *src) decide(s *Steering, now units.Duration) {
	c.pending, c.next = false, now+c.c.Interval
	if c.past != nil && c.learn == units.Forever {
		c.learn = now + c.c.Window
		for d := range c.past {
			c.past[d].open(now)
		}
	}
	s.Wake = c.learn
	for d := range s.Weights {
		c.ch = c.monitors[d].Features(now)
		p := search{predict: c.predict[d], ch: &c.ch, steering: s}
		want := c.demand * c.shares.of(d, now)
		if c.c.Mode == Paper {
			s.SetRatio(d, p.printed(want, float64(c.c.Tolerance)))
			continue
		}
		w := p.closest(want, c.c.MaxRatio)
		if c.past != nil {
			w = c.past[d].decided(w, want, now, c.c.MaxRatio)
		}
		s.SetRatio(d, w)
	}
}

// correct ends a window: a drive that has read too much gets a larger ratio, and the correction applies to later
// decisions as well. If no drive has read, learning stops until the network's next demand.
func (c *src) correct(s *Steering, now units.Duration) {
	c.learn = units.Forever
	for d := range c.past {
		x := &c.past[d]
		x.wanted += float64(x.want * (now - x.since).Seconds())
		if x.read > 0 && x.wanted > 0 {
			c.learn = now + c.c.Window
			x.correct(float64(x.read)/x.wanted, s.Weights[d].Write, c.c.MaxRatio)
			s.SetRatio(d, x.ratio(c.c.MaxRatio))
		}
		x.open(now)
	}
}

// open starts a window.
func (x *past) open(now units.Duration) { x.wanted, x.read, x.since = 0, 0, now }

// decided records the model's ratio, and returns the corrected one.
func (x *past) decided(foreseen int, want float64, now units.Duration, most int) int {
	x.wanted += float64(x.want * (now - x.since).Seconds())
	x.foreseen, x.want, x.since = foreseen, want, now
	return x.ratio(most)
}

// correct learns from the actual over the desired reads at a ratio, unless the ratio is already at its limit: a drive
// that receives less load than it may read is no evidence about the model.
func (x *past) correct(over float64, w, most int) {
	if over < 1 && w == 1 || over > 1 && w == most {
		return
	}
	x.trim = min(max(x.trim*rng.Pow(over, trimGain), 1/float64(x.foreseen)), float64(most)/float64(x.foreseen))
}

// trimGain is the part of an error, in logarithms, that is corrected per window. If reads fall in inverse proportion to
// the ratio, which is the steepest case, a larger gain oscillates between two ratios when the desired one lies between
// 1 and 2, since ratios are integers.
const trimGain = 0.7

// ratio is the corrected ratio.
func (x *past) ratio(most int) int {
	return min(max(int(math.Round(float64(x.foreseen)*x.trim)), 1), most)
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

// closest returns the ratio up to most whose predicted reads are closest to want; the least of several.
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

// printed is Algorithm 1 line by line. It has no largest ratio; if the prediction never settles, which no model of
// finite range permits, it stops at mostPrinted.
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
		// Relative to a prediction of 0, any change is infinite and no change counts as none.
		if d := distance(before, read); d == 0 && before == 0 || before > 0 && d/before < tolerance {
			break
		}
	}
	return best
}

const mostPrinted = 10000

func distance(a, b float64) float64 { return max(a-b, b-a) }
