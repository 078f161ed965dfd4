// Package tco models the cost of owning flash storage: which drives to buy, where to place each workload, the cost of a
// gigabyte written and its distance from the lowest possible cost.
//
// Its main types are Workload and Drive, the input; Pool, the wear, cost and load of drives with workloads, by the
// equations of minTCO; Allocator, which places workloads as they arrive; Offline, which places all at once by zones of
// sequential ratio; Optimise, which places them with hindsight. Package planner/tco/bound proves by a Certificate how
// far a plan can be from the best, and planner/tco/certify checks it. Array turns drives behind a redundancy scheme
// into one; package planner/tco/catalogue holds drives with sources.
//
// It follows Yang et al., "I/O Workload Management for All-Flash Datacenter Storage Systems Based on Total Cost of
// Ownership" (IEEE Transactions on Big Data 8(2), 2022), minTCO for short. Equation numbers in comments are that
// paper's. Where its formulas contradict its text, Mode chooses between the two; docs/models/tco.md lists the
// differences.
//
// Quantities are in gigabytes of 10^9 bytes, days, and money of one currency. Periods are years, which exceed the range
// of units.Duration.
//
// It leaves out anything within a day (queues, tails: a drive's latency comes from a simulated curve), taxes, interest,
// and racks and network ports except as a running cost.
package tco

import (
	"fmt"
	"math"

	"farflash/numeric/units"
)

// Mode selects the formulas.
type Mode uint8

// The modes.
const (
	// Corrected implements the intent of the equations: wear consumes the NAND's write budget, and data are the writes
	// of a workload between its arrival and its drive's death.
	Corrected Mode = iota
	// Paper implements minTCO as printed: rated host writes serve as the NAND's budget, so write amplification counts
	// twice; lines 13 to 15 of algorithm 1 subtract a point in time from a duration; equation 5 adds money per gigabyte
	// to ratios; a RAID-5 array writes full stripes and pays for small ones.
	Paper
)

var modeNames = units.Names[Mode]{"corrected", "paper"}

// String returns the mode's name in a plan.
func (m Mode) String() string { return modeNames.Name(m) }

// MarshalText writes the mode's name.
func (m Mode) MarshalText() ([]byte, error) { return modeNames.Marshal(m) }

// UnmarshalText reads a mode's name.
func (m *Mode) UnmarshalText(text []byte) error { return modeNames.Unmarshal(text, m) }

// Config configures how cost and lifetime are counted.
type Config struct {
	Mode Mode
	// Horizon is the longest service of a drive, in days from its first workload; 0: until its flash is worn out, as in
	// minTCO.
	Horizon float64
	// WarmUp gives each drive a workload before any gets a second one, as in minTCO, because the lifetime of an idle
	// drive is infinite.
	WarmUp bool
	// Fill is the usable share of space and of IOPS: Th_s and Th_p of equation 5.
	FillSpace, FillIOPS float64
}

// Year and Month are the periods of warranties and bills, in days.
const (
	Year  = units.DaysPerYear
	Month = units.DaysPerMonth
)

// DefaultHorizon is five years, the term of most warranties, in days.
const DefaultHorizon = 1825

// DefaultConfig counts by the corrected formulas over five years.
func DefaultConfig() Config { return Config{Horizon: DefaultHorizon, FillSpace: 1, FillIOPS: 1} }

// PaperConfig counts as minTCO's evaluation does: warm-up, no horizon.
func PaperConfig() Config { return Config{Mode: Paper, WarmUp: true, FillSpace: 1, FillIOPS: 1} }

// Validate reports invalid settings, by the keys of a plan.
func (c Config) Validate() error {
	var f units.Faults
	f.Hold(c.Horizon >= 0 && !math.IsInf(c.Horizon, 1), "horizon",
		"%v days are not possible; write a positive time, or 0 for none", c.Horizon)
	f.Hold(c.FillSpace > 0 && c.FillSpace <= 1, "fill.space",
		"%v is not possible; the share of the space that may be used is above 0 and at most 100%%",
		units.Fraction(c.FillSpace))
	f.Hold(c.FillIOPS > 0 && c.FillIOPS <= 1, "fill.iops",
		"%v is not possible; the share of the IOPS that may be used is above 0 and at most 100%%",
		units.Fraction(c.FillIOPS))
	return f.Err()
}

func (c Config) check() error { return c.Validate() }

// Workload is an endless stream of I/O with constant features (section 3.1.1).
type Workload struct {
	Name       string
	WriteRate  float64 // lambda: GB per day written by the host
	Sequential float64 // S: sequential share of the written bytes
	PeakIOPS   float64 // P: I/Os per second in the busiest 5 minutes
	// IOSize is the mean I/O size in KiB; simulated latencies and write amplification depend on it. 0: DefaultIOSize.
	IOSize     float64
	WriteShare float64 // R_w: write share of the I/Os
	WorkingSet float64 // GB of space
	Arrival    float64 // T_A: day
	End        float64 // day; 0: never
	// FullStripe is the share of the written bytes that arrives as full stripes of an array.
	FullStripe float64
	// P99 is the limit on its 99th percentile of latency, in us; 0: none.
	P99 float64
	// Apart names a group whose workloads must be in different failure domains; "": none.
	Apart string
	// Growth is the yearly growth of its writes, I/Os and space, as a share, compounded from its arrival. Only a Pricer
	// applies it.
	Growth float64
	// Trace is the file with its recorded writes, for a simulated write amplification; "": none. It has no other
	// effect.
	Trace string
	// Wears is a factor on its wear of the flash beyond what its sequential share implies, such as for hot or cold
	// writes next to others; 0: 1.
	Wears float64
	// Stay identifies one stay of a workload that may move; the zero value is a workload that stays on its drive until
	// its end.
	Stay Stay
}

// Stay is one interval of a workload's service: its At-th, of the workload numbered Of, counting from 1.
type Stay struct{ Of, At int32 }

// DefaultIOSize is the I/O size to which IOPS ratings apply, in KiB.
const DefaultIOSize = 4

// mostIOSize is the largest I/O size, a GiB, in KiB.
const mostIOSize = 1 << 20

// size is its mean I/O size in KiB.
func (w *Workload) size() float64 {
	if w.IOSize == 0 {
		return DefaultIOSize
	}
	return w.IOSize
}

// mostGrowth is the largest yearly growth that a plan accepts.
const mostGrowth = 100

// finite reports whether v is a quantity: at least 0 and finite.
func finite(v float64) bool { return v >= 0 && !math.IsInf(v, 1) }

// Validate reports invalid features, by the keys of a plan. It runs at each arrival, so a valid workload must not cause
// an allocation.
func (w *Workload) Validate() error {
	var f units.Faults
	if !finite(w.WriteRate) {
		f.Hold(false, "write_gb_per_day", "%v is not possible; write 0 GB a day or more", w.WriteRate)
	}
	if !(w.Sequential >= 0 && w.Sequential <= 1) {
		f.Hold(false, "sequential", "%v is not possible; a share of the written bytes is 0%% to 100%%",
			units.Fraction(w.Sequential))
	}
	if !finite(w.PeakIOPS) {
		f.Hold(false, "peak_iops", "%v is not possible; write 0 I/Os a second or more", w.PeakIOPS)
	}
	if !(w.IOSize == 0 || w.IOSize >= 0.5 && w.IOSize <= mostIOSize) {
		f.Hold(false, "io_size", "%v KiB are not possible; an I/O has 512 B to 1 GiB", w.IOSize)
	}
	if !(w.WriteShare >= 0 && w.WriteShare <= 1) {
		f.Hold(false, "write_share", "%v is not possible; a share of the I/Os is 0%% to 100%%",
			units.Fraction(w.WriteShare))
	}
	if !finite(w.WorkingSet) {
		f.Hold(false, "working_set_gb", "%v is not possible; write 0 GB or more", w.WorkingSet)
	}
	if !finite(w.Arrival) {
		f.Hold(false, "arrival_day", "%v is not possible; write day 0 or a later one", w.Arrival)
	}
	if !(w.End == 0 || w.End > w.Arrival && !math.IsInf(w.End, 1)) {
		f.Hold(false, "end_day",
			"%v is not possible; it is after the arrival on day %v, or left out for a workload without an end", w.End,
			w.Arrival)
	}
	if !(w.FullStripe >= 0 && w.FullStripe <= 1) {
		f.Hold(false, "full_stripe", "%v is not possible; a share of the written bytes is 0%% to 100%%",
			units.Fraction(w.FullStripe))
	}
	if !(w.Growth > -1 && w.Growth <= mostGrowth) {
		f.Hold(false, "growth", "%v a year is not possible; write more than -100%% and at most %v",
			units.Fraction(w.Growth), units.Fraction(mostGrowth))
	}
	if !finite(w.Wears) {
		f.Hold(false, "wears", "%v is not possible; write a positive factor, or leave it out", w.Wears)
	}
	if !finite(w.P99) {
		f.Hold(false, "p99", "%v us are not possible; write a positive time, or leave it out for any", w.P99)
	}
	return f.Err()
}

func (w *Workload) check() error {
	err := w.Validate()
	if err == nil {
		return nil
	}
	return units.Within("workload "+w.Name, err)
}

// Drive is a target for workloads: a drive, or an array that acts as one.
type Drive struct {
	Name   string
	Model  string
	Domain string  // failure domain
	Buy    float64 // C_I: purchase and setup, once
	Run    float64 // c_M: running cost per day
	// Budget is W: GB that can be written to the NAND. Model.Budget derives it from a rating.
	Budget   float64
	Worn     float64 // w: GB already written on day 0
	Capacity float64 // GB for users
	IOPS     float64 // reads per second of all its members together
	// WriteCost is the cost of a write in reads: the read rating over the write rating. 0 means 1: one rating applies
	// to both, and IOPS counts I/Os of either kind.
	WriteCost float64
	WAF       WAF
	// Tail is its 99th percentile of latency; nil: unknown, and every limit counts as met. An array has the tail of its
	// members.
	Tail Tail
	// Stripe is the cost of a write to the members; the zero value is a single drive.
	Stripe Stripe
	// Upkeep is the input of a Pricer; equations 1 to 7 do not use it.
	Upkeep Upkeep
}

// Upkeep is the cost of keeping a drive in service beyond equation 1: its successors, its power by load, its place.
type Upkeep struct {
	Members int     // drives of an array, or 1
	AFR     float64 // share of members that fail in a year
	// Setup is the part of Drive.Buy beyond the drives' prices; Next is the price of a replacement member, on day 0.
	Setup, Next float64
	// Idle and Active are the daily cost of the power of all members, when idle and when always active; Duty is the
	// share of active time, or the share per IOPS utilisation if ByLoad.
	Idle, Active float64
	Duty         float64
	ByLoad       bool
	Labour       float64 // money per day
	Place        float64 // money per day
}

func (d *Drive) check() error {
	bad := func(what string, v float64, right string) error {
		return fmt.Errorf("drive %s: %s %v; it must be %s", d.Name, what, v, right)
	}
	switch {
	case !finite(d.Buy):
		return bad("price", d.Buy, "0 or more")
	case !finite(d.Run):
		return bad("running cost", d.Run, "0 a day or more")
	case !(d.Budget > 0) || math.IsInf(d.Budget, 1):
		return bad("write budget", d.Budget, "more than 0 GB")
	case !(d.Worn >= 0 && d.Worn < d.Budget):
		return bad("wear", d.Worn, fmt.Sprintf("from 0 to below the budget of %v GB", d.Budget))
	case !(d.Capacity > 0) || math.IsInf(d.Capacity, 1):
		return bad("capacity", d.Capacity, "more than 0 GB")
	case !(d.IOPS > 0) || math.IsInf(d.IOPS, 1):
		return bad("IOPS", d.IOPS, "more than 0")
	case !finite(d.WriteCost):
		return bad("cost of a write", d.WriteCost, "0 reads or more")
	case d.WAF == nil:
		return fmt.Errorf("drive %s has no write amplification", d.Name)
	}
	return d.Stripe.check(d.Name)
}

// Load is the part of IOPS that a workload takes: the I/Os of Stripe.Load, with a write counting as WriteCost reads, so
// that the used shares of both ratings add up to Load/IOPS.
func (d *Drive) Load(w *Workload) float64 {
	if d.WriteCost == 0 {
		return d.Stripe.Load(w)
	}
	reads, writes := d.Stripe.ios(w)
	return reads + float64(writes*d.WriteCost)
}

// Wearing is the number of GB per day written to the members for a workload, as far as they wear the drive.
func (d *Drive) Wearing(w *Workload) float64 {
	bytes := float64(w.WriteRate * d.Stripe.Bytes(w.FullStripe))
	if w.Wears == 0 {
		return bytes
	}
	return float64(bytes * w.Wears)
}

// checkInput validates the input of a plan.
func checkInput(cfg Config, drives []Drive, jobs []Workload) error {
	if err := cfg.check(); err != nil {
		return err
	}
	for i := range drives {
		if err := drives[i].check(); err != nil {
			return err
		}
	}
	for j := range jobs {
		if err := jobs[j].check(); err != nil {
			return err
		}
		if jobs[j].WriteRate == 0 && jobs[j].End == 0 && cfg.Horizon == 0 {
			return fmt.Errorf("workload %s writes nothing: without a horizon its drive would last forever; set a "+
				"horizon", jobs[j].Name)
		}
	}
	return nil
}
