// Package calendar prices plans of package tco day by day: the cost of serving every workload until the plan's end.
//
// Its main types are Config, the financial parameters other than the drives; Calendar, a tco.Pricer, with which
// tco.Optimise finds the cheapest placement; and Book, the payments of one placement by payee, item and day.
//
// A drive is bought on the day of its first workload (or owned from day 0), runs until its last workload leaves or the
// plan ends, and is replaced by one of its model whenever its flash is worn out; its contents are copied. Members that
// fail are replaced as they fail, by their expected number. At the end a drive is worth a share of its price. Prices of
// drives follow a trend, and all money is discounted to day 0. A workload may grow; it is then evaluated by quarters of
// a year: its bytes are the integral, its space and I/Os those at the quarter's end, or at its start if it shrinks. A
// workload may move on days of review; then each Stay is a workload of its own, and one that is on another drive than
// the stay before pays for the copy. docs/adr/0025-calendar.md has the reasons.
//
// It leaves out that a failed member is replaced by a less worn one; taxes; whole racks, whose shares are a drive's
// place; and the losses of a workload during a move.
package calendar

import (
	"math"

	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/planner/tco"
	"farflash/planner/tco/sheet"
)

// Config holds the financial parameters other than the drives.
type Config struct {
	// Horizon is the plan's last day.
	Horizon float64
	// FillSpace and FillIOPS are the usable shares of space and IOPS.
	FillSpace, FillIOPS float64
	// Discount is the yearly discount rate, as a share; Trend is the yearly change of drive prices, as a share.
	Discount, Trend float64
	// Replacing is the cost of labour for replacing a member, failed or worn out. Warranty is the number of days after
	// its purchase during which a failed member is replaced free of charge.
	Replacing, Warranty float64
	// Moving is the cost per TB copied for moves of workloads.
	Moving float64
	// Residual is the share of its price that a drive would fetch on the day of its purchase; it falls to 0 in Over
	// days, or with the wear of its flash if that is faster. 0: used drives fetch no money.
	Residual, Over float64
}

// DefaultConfig returns five years without discounting, with constant drive prices and no residual value.
func DefaultConfig() Config {
	return Config{Horizon: tco.DefaultHorizon, FillSpace: 1, FillIOPS: 1, Over: tco.DefaultHorizon}
}

// Validate reports invalid settings, by the keys of a plan.
func (c Config) Validate() error {
	var f units.Faults
	amount := func(key string, v float64) {
		f.Hold(v >= 0 && !math.IsInf(v, 1), key, "%v is not possible; write 0 or more", v)
	}
	f.Hold(c.Horizon > 0 && !math.IsInf(c.Horizon, 1), "horizon",
		"cost over a calendar needs an end; write a time such as 5y, or objective: paper")
	f.Hold(c.FillSpace > 0 && c.FillSpace <= 1, "fill.space",
		"%v is not possible; write more than 0 and at most 100%%", units.Fraction(c.FillSpace))
	f.Hold(c.FillIOPS > 0 && c.FillIOPS <= 1, "fill.iops", "%v is not possible; write more than 0 and at most 100%%",
		units.Fraction(c.FillIOPS))
	f.Hold(c.Discount >= 0 && c.Discount <= 1, "costs.discount", "%v a year is not possible; write 0 to 100%%",
		units.Fraction(c.Discount))
	f.Hold(c.Trend > -1 && c.Trend <= 1, "costs.price_trend",
		"%v a year is not possible; prices change by more than -100%% and at most 100%%", units.Fraction(c.Trend))
	f.Hold(c.Residual >= 0 && c.Residual <= 1, "costs.residual",
		"%v is not possible; the residual value of a drive is 0 to 100%% of its price", units.Fraction(c.Residual))
	f.Hold(c.Residual == 0 || c.Over > 0 && !math.IsInf(c.Over, 1), "costs.residual_over",
		"%v days are not possible; write the time after which a drive has no residual value", c.Over)
	amount("costs.replacing", c.Replacing)
	amount("costs.warranty", c.Warranty)
	amount("costs.moving", c.Moving)
	return f.Err()
}

// stepLength is the period for which a growing workload's demand is held constant: a quarter of a year, in days.
const stepLength = tco.Year / 4

// leastLife is the minimum life of a drive's successor in days; a plan with a shorter one is invalid.
const leastLife = 1

// slack is the relative excess of a limit that is attributed to rounding of a sum of shares.
const slack = 1e-9

// Calendar is a tco.Pricer. It is not safe for concurrent use, because it reuses its own memory.
type Calendar struct {
	cfg           Config
	fade, dearer  float64 // per day: the rates at which money is discounted and drive prices rise
	fadeAndDearer float64
	w             walk
	rises         []*rise // by workload
}

// New returns a calendar.
func New(cfg Config) (*Calendar, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	c := &Calendar{cfg: cfg}
	c.fade, c.dearer = -rng.Log(1+cfg.Discount)/tco.Year, rng.Log(1+cfg.Trend)/tco.Year
	c.fadeAndDearer = c.fade + c.dearer
	return c, nil
}

// end is the last day of a workload in the plan.
func (c *Calendar) end(w *tco.Workload) float64 {
	if w.End > 0 {
		return min(w.End, c.cfg.Horizon)
	}
	return c.cfg.Horizon
}

// growth is the daily rate of a workload's growth.
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

// integral is the integral of e^(k t) from a to b.
func integral(k, a, b float64) float64 {
	n := b - a
	if k == 0 {
		return n
	}
	x := float64(k * n)
	if math.Abs(x) < 1e-4 { // the difference of two powers would lose precision
		return float64(float64(power(k, a)*n) * (1 + float64(x/2*(1+x/3))))
	}
	return float64(power(k, a)*(rng.Exp(x)-1)) / k
}

// Stays splits each workload at the days of review after its arrival, one every `every` days, so that it can move then.
// of is the workload of each stay. Workloads to be kept apart are kept apart between the same reviews.
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
