// Package calendar prices plans of package tco day by day: what it costs to serve every workload until the plan's end.
//
// Its main types are Config, what money depends on beside the drives; Calendar, a tco.Pricer, so that tco.Optimise
// finds the placement that costs least; and Book, who is paid what and when, of one placement.
//
// A drive is bought on the day of its first workload (or is there from day 0), runs until its last workload leaves or
// the plan ends, and is replaced by its like whenever its flash is worn out; what is on it is copied. Members that
// fail are replaced as they fail, an expected number of them. At the end it is worth a share of its price. Prices of
// drives follow a trend, and all money is discounted to day 0. A workload may grow; then it is looked at in quarters
// of a year: the bytes it writes are the integral, its space and its I/Os those of the quarter's end, or of its
// beginning if it shrinks. A workload may move at days of review: then each Stay is a workload for itself, and one
// that is not where the last was pays for the copy. docs/adr/0025-calendar.md has the reasons.
//
// What it leaves out: that a member which failed gives way to a less worn one; taxes; whole racks, whose shares are a
// drive's place; what a workload loses while it is moved.
package calendar

import (
	"math"

	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/planner/tco"
	"farflash/planner/tco/sheet"
)

// Config is what money depends on beside the drives.
type Config struct {
	// Horizon is the plan's last day.
	Horizon float64
	// FillSpace and FillIOPS are the shares of space and IOPS that may be used.
	FillSpace, FillIOPS float64
	// Discount is by what share money a year later is worth less; Trend is by what share drives become dearer in a
	// year.
	Discount, Trend float64
	// Replacing is money for the work on a member that is replaced, failed or worn out. Warranty is for how many days
	// after its purchase a member that fails is replaced without its price.
	Replacing, Warranty float64
	// Moving is money a TB that is copied because a workload moves.
	Moving float64
	// Residual is what share of its price a drive would still bring on the day it was bought; that falls to 0 in Over
	// days, or as its flash is worn if that is faster. 0: used drives bring nothing.
	Residual, Over float64
}

// DefaultConfig is five years of money that keeps its worth, of drives that keep their price and bring nothing in the
// end.
func DefaultConfig() Config {
	return Config{Horizon: tco.DefaultHorizon, FillSpace: 1, FillIOPS: 1, Over: tco.DefaultHorizon}
}

// Validate says what no calendar can have, by the keys of a plan.
func (c Config) Validate() error {
	var f units.Faults
	amount := func(key string, v float64) {
		f.Hold(v >= 0 && !math.IsInf(v, 1), key, "%v is not possible; write 0 or more", v)
	}
	f.Hold(c.Horizon > 0 && !math.IsInf(c.Horizon, 1), "horizon",
		"money over a calendar needs an end; write a time such as 5y, or objective: paper")
	f.Hold(c.FillSpace > 0 && c.FillSpace <= 1, "fill.space",
		"%v is not possible; write more than 0 and at most 100%%", units.Fraction(c.FillSpace))
	f.Hold(c.FillIOPS > 0 && c.FillIOPS <= 1, "fill.iops", "%v is not possible; write more than 0 and at most 100%%",
		units.Fraction(c.FillIOPS))
	f.Hold(c.Discount >= 0 && c.Discount <= 1, "costs.discount", "%v a year is not possible; write 0 to 100%%",
		units.Fraction(c.Discount))
	f.Hold(c.Trend > -1 && c.Trend <= 1, "costs.price_trend",
		"%v a year is not possible; prices change by more than -100%% and at most 100%%", units.Fraction(c.Trend))
	f.Hold(c.Residual >= 0 && c.Residual <= 1, "costs.residual",
		"%v is not possible; a used drive brings 0 to 100%% of its price", units.Fraction(c.Residual))
	f.Hold(c.Residual == 0 || c.Over > 0 && !math.IsInf(c.Over, 1), "costs.residual_over",
		"%v days are not possible; write how long it takes until a drive brings nothing", c.Over)
	amount("costs.replacing", c.Replacing)
	amount("costs.warranty", c.Warranty)
	amount("costs.moving", c.Moving)
	return f.Err()
}

// Step is for how long what a growing workload takes is held still: a quarter of a year, in days.
const Step = tco.Year / 4

// leastLife is how many days a drive's successor must last: one that does not is no plan.
const leastLife = 1

// slack is how far sums of shares may pass a limit that they meet but for rounding.
const slack = 1e-9

// Calendar is a tco.Pricer. It is for one goroutine: it works in memory of its own.
type Calendar struct {
	cfg           Config
	fade, dearer  float64 // a day: by what rate money is discounted, prices of drives rise
	fadeAndDearer float64
	w             walk
	rises         []*rise // by workload
}

// New makes a calendar.
func New(cfg Config) (*Calendar, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	c := &Calendar{cfg: cfg}
	c.fade, c.dearer = -rng.Log(1+cfg.Discount)/tco.Year, rng.Log(1+cfg.Trend)/tco.Year
	c.fadeAndDearer = c.fade + c.dearer
	return c, nil
}

// Config is what the calendar was made of.
func (c *Calendar) Config() Config { return c.cfg }

// end is the last day of a workload in the plan.
func (c *Calendar) end(w *tco.Workload) float64 {
	if w.End > 0 {
		return min(w.End, c.cfg.Horizon)
	}
	return c.cfg.Horizon
}

// growth is the rate a day of a workload's growth.
func growth(w *tco.Workload) float64 {
	if w.Growth == 0 {
		return 0
	}
	return rng.Log(1+w.Growth) / tco.Year
}

// Written implements tco.Pricer.
func (c *Calendar) Written(w *tco.Workload) float64 {
	return float64(w.WriteRate * integral(growth(w), 0, max(0, c.end(w)-w.Arrival)))
}

// Most implements tco.Pricer.
func (c *Calendar) Most(w *tco.Workload) float64 {
	if w.Growth <= 0 {
		return 1
	}
	return rng.Exp(growth(w) * max(0, c.end(w)-w.Arrival))
}

// Price implements tco.Pricer.
func (c *Calendar) Price(d *tco.Drive, there bool, jobs []tco.Workload, list []int32) (cost, over float64) {
	c.w.account = nil
	return c.walk(d, there, jobs, list)
}

// power is e^(k t).
func power(k, t float64) float64 {
	if k == 0 {
		return 1
	}
	return rng.Exp(k * t)
}

// integral is that of e^(k t) from a to b.
func integral(k, a, b float64) float64 {
	n := b - a
	if k == 0 {
		return n
	}
	x := float64(k * n)
	if math.Abs(x) < 1e-4 { // the difference of two powers would lose what matters
		return float64(float64(power(k, a)*n) * (1 + float64(x/2*(1+x/3))))
	}
	return float64(power(k, a)*(rng.Exp(x)-1)) / k
}

// Stays cuts each workload at the days of review after its arrival, every so many days, so that it may move then. of
// says which workload each stay is of. Workloads to be held apart are so between the same reviews.
func Stays(jobs []tco.Workload, every, horizon float64) (stays []tco.Workload, of []int) {
	for j := range jobs {
		w := jobs[j]
		last := horizon
		if w.End > 0 {
			last = min(last, w.End)
		}
		rate := growth(&w)
		for n := int32(0); ; n++ {
			at := math.Floor(w.Arrival/every + 1e-9)
			x := w
			x.Stay = tco.Stay{Of: int32(j + 1), At: n}
			if x.Apart != "" {
				x.Apart += "\x00" + sheet.Plain(at)
			}
			review := float64((at + 1) * every)
			if review < last {
				x.End = review
			}
			if stays, of = append(stays, x), append(of, j); !(review < last) {
				break
			}
			more := rng.Exp(rate * (review - w.Arrival))
			w.WriteRate, w.PeakIOPS, w.WorkingSet, w.Arrival = float64(w.WriteRate*more), float64(w.PeakIOPS*more),
				float64(w.WorkingSet*more), review
		}
	}
	return stays, of
}
