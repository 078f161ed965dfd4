// Package tco says what flash storage costs to own: which drives to buy, where to put
// each workload, what a gigabyte written costs and how far that is from the least it
// could cost.
//
// Its main types are Workload and Drive, the input; Pool, the wear, cost and load of drives
// that workloads were put on, by the equations of minTCO; Allocator, which places
// workloads as they arrive; Offline, which places all at once by zones of sequential ratio;
// Optimise, which places them with hindsight. How far from the best a plan can be at most,
// package planner/tco/bound proves by a Certificate, and planner/tco/certify checks it.
// Array turns drives behind a redundancy scheme into one; Catalogue holds drives with sources.
//
// It follows Yang et al., "I/O Workload Management for All-Flash Datacenter Storage Systems
// Based on Total Cost of Ownership" (IEEE Transactions on Big Data 8(2), 2022), minTCO for
// short. Equation numbers in comments are that paper's. Where its formulas do not say what
// its text means, Mode chooses between the two; docs/models/tco.md lists the differences.
//
// Quantities are in the units of such plans: gigabytes of 10^9 bytes, days, and money of one
// currency. Periods are years, beyond units.Duration.
//
// What it leaves out: anything within a day (queues, tails: a drive's latency comes from a
// simulated curve), taxes, interest, racks and network ports other than as a running cost.
package tco

import (
	"fmt"
	"math"

	"farflash/numeric/units"
)

// Mode says whose formulas are computed.
type Mode uint8

// The modes.
const (
	// Corrected is what the equations mean: the NAND's write budget is what is worn, and
	// data are what a workload writes between its arrival and its drive's death.
	Corrected Mode = iota
	// Paper is what minTCO prints: rated host writes are taken as the NAND's budget, so that
	// write amplification counts twice; lines 13 to 15 of algorithm 1 subtract a time from a
	// duration; equation 5 adds money per gigabyte to ratios; a RAID-5 array writes full
	// stripes and pays for small ones.
	Paper
)

var modeNames = units.Names[Mode]{"corrected", "paper"}

// String is the mode's name in a plan.
func (m Mode) String() string { return modeNames.Name(m) }

// MarshalText writes the mode's name.
func (m Mode) MarshalText() ([]byte, error) { return modeNames.Marshal(m) }

// UnmarshalText reads a mode's name.
func (m *Mode) UnmarshalText(text []byte) error { return modeNames.Unmarshal(text, m) }

// Config says how cost and lifetime are counted.
type Config struct {
	Mode Mode
	// Horizon is for how many days after its first workload a drive serves at most; 0 is
	// until its flash is worn out, as minTCO has it.
	Horizon float64
	// WarmUp gives each drive a workload before any gets a second one, as minTCO does because
	// the lifetime of an idle drive is infinite.
	WarmUp bool
	// Fill is the share of space and of IOPS that may be used: Th_s and Th_p of equation 5.
	FillSpace, FillIOPS float64
}

// Year and Month are what vendors and bills count by, in days.
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

// Validate says what no plan can be made by, by the keys of a plan.
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
	WriteRate  float64 // lambda: GB a day that the host writes
	Sequential float64 // S: share of the written bytes that are sequential
	PeakIOPS   float64 // P: I/Os a second in the busiest 5 minutes
	// KiB of an I/O on average, which latencies and write amplification that are simulated follow; 0: DefaultIOSize
	IOSize     float64
	WriteShare float64 // R_w: share of the I/Os that write
	WorkingSet float64 // GB of space that it takes
	Arrival    float64 // T_A: day
	End        float64 // day; 0: never
	// FullStripe is the share of the written bytes that come as full stripes of an array.
	FullStripe float64
	// P99 is the latency in us that 99 % of its requests must keep to; 0: any.
	P99 float64
	// Apart names a group whose workloads must stand in different failure domains; "": none.
	Apart string
	// Growth is by what share a year what it writes, its I/Os and its space grow, compounded from its arrival. Only a
	// Pricer heeds it.
	Growth float64
	// Trace is the file that has what it writes, for a write amplification that is simulated; "": none is recorded.
	// It changes nothing else.
	Trace string
	// Wears is how much more it wears flash than its sequential share tells, such as who writes hot or cold beside
	// others, as a factor; 0: 1.
	Wears float64
	// Stay tells a stay of a workload that may move from the stays before it; the zero value is a workload that is
	// where it is until its end.
	Stay Stay
}

// Stay is a part of the time that a workload is there: its At-th, of the workload that Of numbers from 1.
type Stay struct{ Of, At int32 }

// DefaultIOSize is what ratings of IOPS are for, in KiB.
const DefaultIOSize = 4

// mostIOSize is an I/O of a GiB, in KiB.
const mostIOSize = 1 << 20

// size is that of its I/Os, in KiB.
func (w *Workload) size() float64 {
	if w.IOSize == 0 {
		return DefaultIOSize
	}
	return w.IOSize
}

// mostGrowth is a year's growth that no plan is made for.
const mostGrowth = 100

// finite is a quantity: 0 or more, and not endless.
func finite(v float64) bool { return v >= 0 && !math.IsInf(v, 1) }

// Validate says what no workload can have, by the keys of a plan. It is called at each arrival: what is right
// allocates nothing.
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

// Drive is what workloads are put on: a drive, or an array that acts as one.
type Drive struct {
	Name   string
	Model  string
	Domain string  // failure domain
	Buy    float64 // C_I: purchase and setup, once
	Run    float64 // c_M: running cost a day
	// Budget is W: GB that the NAND can be written. Model.Budget makes it of a rating.
	Budget   float64
	Worn     float64 // w: GB that it has been written already on day 0
	Capacity float64 // GB for users
	IOPS     float64 // reads a second of its members together
	// WriteCost is how many reads a write takes the time of: the rating for reads over that for writes. 0 is 1: one
	// rating holds for both, and IOPS counts I/Os of either kind.
	WriteCost float64
	WAF       WAF
	// Tail is its 99th percentile of latency; nil: not known, and any is taken to do. An array's is that of its
	// members.
	Tail Tail
	// Stripe says what a write costs the members; the zero value is a single drive.
	Stripe Stripe
	// Upkeep is what a Pricer asks of it; equations 1 to 7 do not.
	Upkeep Upkeep
}

// Upkeep is what keeping a drive in service costs, beside what equation 1 counts: its successors, its power by load,
// its place.
type Upkeep struct {
	Members int     // drives of an array, or 1
	AFR     float64 // share of members that fail in a year
	// Setup is the part of Drive.Buy that is no drive's price; Next is the price of a member that takes another's
	// place, on day 0.
	Setup, Next float64
	// Idle and Active are money a day for the power of all members, idle and at work all of the time; Duty is the
	// share of the time that they work, and as a share of the IOPS in use if ByLoad.
	Idle, Active float64
	Duty         float64
	ByLoad       bool
	Labour       float64 // money a day
	Place        float64 // money a day
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

// Load is how much of IOPS a workload takes: the I/Os of Stripe.Load, a write counting for WriteCost reads, so that
// the shares of both ratings that are in use add up to Load/IOPS.
func (d *Drive) Load(w *Workload) float64 {
	if d.WriteCost == 0 {
		return d.Stripe.Load(w)
	}
	reads, writes := d.Stripe.ios(w)
	return reads + float64(writes*d.WriteCost)
}

// Wearing is how many GB a day of a workload wear a drive: what the members are written for it.
func (d *Drive) Wearing(w *Workload) float64 {
	bytes := float64(w.WriteRate * d.Stripe.Bytes(w.FullStripe))
	if w.Wears == 0 {
		return bytes
	}
	return float64(bytes * w.Wears)
}

// checkInput reports what no plan can be made of.
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
			return fmt.Errorf("workload %s writes nothing: without a horizon its drive would last for ever; set a "+
				"horizon", jobs[j].Name)
		}
	}
	return nil
}
