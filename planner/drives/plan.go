// Package drives plans which drives to buy and what to place on them: it is the file that says what is to be bought
// and placed, and what comes of it.
//
// Its main types are Plan, which a YAML file is decoded into by the rules of scenarios, and Outcome, what package tco
// makes of it: drives with their load, wear, lifetime and cost, placements with their reasons, sums in the terms of
// SNIA's model, the bound, and what changes when prices do. Load reads a plan with the tables that it names; Solve
// places; Explain says why a workload is where it is; FromTraces makes workloads of recorded I/O.
//
// What it leaves out: how things look (package report, cli).
package drives

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"farflash/numeric/units"
	"farflash/planner/tco"
	"farflash/planner/tco/calendar"
	"farflash/planner/tco/catalogue"
	"farflash/policy/ftl/waf"
	"farflash/scenario/shape"
)

// Plan is what is asked for.
type Plan struct {
	// Name is used in reports; without one the file's name is.
	Name string
	// Description says what the plan is about. It changes nothing.
	Description string
	// Mode is corrected, or paper for the formulas that minTCO prints.
	Mode tco.Mode
	// Objective is what a plan is judged by: calendar, the money that it takes to serve everything until the horizon;
	// paper, minTCO's money a GB written; auto, the former for optimal in mode corrected with a horizon, else the
	// latter.
	Objective Objective
	// Horizon is the plan's end; with objective paper, for how long a drive serves at most, from its first workload;
	// 0 is until it is worn out.
	Horizon units.Days
	// Review is every how long workloads may move to other drives; 0: they stay where they are. It is for objective
	// calendar.
	Review units.Days
	// WarmUp gives each drive a workload before any gets a second one.
	WarmUp bool
	// Fill is the share of the space and of the IOPS that may be used.
	Fill Fill
	// Algorithm is optimal, which knows all arrivals; mintco-offline; or what places each workload as it arrives.
	Algorithm Algorithm
	// Weights are those of mintco-perf.
	Weights tco.Weights
	// Zones are those of mintco-offline.
	Zones Zones
	// Search is how hard optimal works.
	Search Search
	// Costs are what drives cost beside their price.
	Costs Costs
	// ApartBy is what workloads to be held apart must not share: a failure domain, such as a rack, or the zone that
	// is the part of a domain's name before its first slash.
	ApartBy Fate
	// Uncertainty is between what the inputs may lie.
	Uncertainty Uncertainty
	// Effective is what SNIA's terms need beside the plan itself.
	Effective Effective
	// Catalogue is a CSV table of drives beside those that the program knows.
	Catalogue string
	// Drives are what there is and what may be bought.
	Drives []Group
	// Workloads are what is to be placed: a CSV table, or a list.
	Workloads Workloads

	source shape.Source
	set    map[string]shape.Position
	jobs   []tco.Workload
	models []catalogue.Model

	simulated *simulations
}

// Fill is the share of each drive that may be used.
type Fill struct{ Space, IOPS units.Fraction }

// Zones are the thresholds of algorithm 2.
type Zones struct {
	// Thresholds divide the workloads by sequential ratio, rising.
	Thresholds []units.Fraction
	// Switch is delta: zones whose write rates differ by more are not kept apart.
	Switch units.Fraction
}

// Search says how long the local search and the bound take.
type Search struct {
	// Steps are tries of the local search.
	Steps int
	// Climb is how many steps the bound is raised in.
	Climb int
	// Seed is that of its random numbers.
	Seed uint64
}

// Costs are what drives cost beside their price, in money of one currency.
type Costs struct {
	// Setup is a drive's, once.
	Setup units.Money
	// Discount is by what share money a year later is worth less.
	Discount units.Fraction
	// PriceTrend is by how much drives become dearer in a year.
	PriceTrend units.Change
	// Space is what a drive's place takes a month: its share of rack, floor and ports.
	Space units.Money
	// Moving is what it takes to copy a TB of a workload that moves.
	Moving units.Money
	// Residual is what share of its price a drive would bring on the day it was bought. It falls to 0 in
	// ResidualOver, or as the flash is worn if that is faster.
	Residual     units.Fraction
	ResidualOver units.Days
	// Labour is a drive's a day.
	Labour units.Money
	// Electricity is the price of a kWh.
	Electricity units.Money
	// PUE is the site's power over its machines'.
	PUE float64
	// Replacing is what the work on a failed drive costs.
	Replacing units.Money
	// Warranty is for how long a failed drive's successor is free.
	Warranty units.Days
	// Rebuild is at what rate a successor is written.
	Rebuild units.ByteRate
	// Embodied is kg of CO2e for making a GB of flash.
	Embodied float64
	// Grid is kg of CO2e a kWh.
	Grid float64
}

// Effective are factors of SNIA's effective terabytes that a placement does not show.
type Effective struct {
	// Reduction is the bytes that users keep over the bytes stored; 1 is none.
	Reduction float64
	// Replication is how many copies the software above keeps.
	Replication float64
}

// Group is equal drives, or arrays of them.
type Group struct {
	// Model names the drive in the catalogue.
	Model string
	// Name is used for the drives, with a number; without one the model's is.
	Name string
	// Count is how many there are.
	Count int
	// UpTo is how many may be bought as needed, in place of count.
	UpTo int
	// Price overrides the catalogue's, which is of its day.
	Price *units.Money
	// ReadIOPS, WriteIOPS, ActiveW, IdleW, TBW (in TB) and AFR override the catalogue's.
	ReadIOPS, WriteIOPS, ActiveW, IdleW, TBW *float64
	AFR                                      *units.Fraction
	// Estimate names figures that neither the catalogue nor the plan has, and that may be those of the middle of the
	// catalogue's other drives.
	Estimate []catalogue.Figure
	// Owned drives are bought already: neither their price nor their setup is paid, but running them is, and what
	// replaces one that fails.
	Owned bool
	// Duty is the share of the time that a drive is active. Without it that is 30 % of the share of its IOPS in use,
	// with objective paper 30 % of the time.
	Duty *units.Fraction
	// WriteShare is the share of I/Os that write which in mode paper the IOPS are for. Otherwise each workload's
	// reads count against the rating for reads, its writes against that for writes.
	WriteShare units.Fraction
	// Spare is the share of its capacity that is left unused: space that collection has beside the model's own, so
	// that writes are amplified less.
	Spare units.Fraction
	// Worn is the share of its write budget that is used up already.
	Worn units.Fraction
	// Domains are the failure domains that the drives are in, in turn, such as racks: r1, or r1 of a zone: east/r1.
	// Without any each drive is one by itself.
	Domains []string
	// Array puts drives of the group behind a redundancy scheme; count is then of arrays.
	Array *Array
	// WAF is the write amplification under the workloads; without it, equation 7 from the model's spare space.
	WAF *Amplification
	// RatedWAF is the write amplification that the rated TBW was stated under; without it, that of random writes at
	// the model's spare space. What the flash takes is the rated TBW times it, whatever waf says of the workloads.
	RatedWAF float64
	// Latency is the p99 under load, which there must be if workloads ask for a p99.
	Latency *Latency
}

// Array is a redundancy scheme.
type Array struct {
	// Kind is single, raid0, raid1, raid5, ec or replication.
	Kind tco.ArrayKind
	// Drives is how many an array has.
	Drives int
	// Data and Parity are the shards of ec; parity is the further copies of replication.
	Data, Parity int
}

// Amplification says where a write amplification comes from: exactly one of the keys, or those of equation 7.
type Amplification struct {
	// Random and Sequential are equation 7's amplification of all writes random and all sequential; Slope is about 0.
	Random, Sequential, Slope float64
	// Turn is the share up to which it is a straight line.
	Turn units.Fraction
	// Constant is the same for every mix.
	Constant float64
	// Table is a CSV with the columns sequential and waf.
	Table string
	// Points are the same in the plan: straight lines between them, and level beyond.
	Points []MixPoint
	// Simulate asks the FTL simulator, at the drive's spare space: so many blocks of 64 pages.
	Simulate int
	// Trace has the FTL simulator write what a recorded trace writes, at the drive's spare space: its mix of
	// sequential and random writes, its sizes, and how often which page is written. The amplification is the same
	// whatever workloads are placed together.
	Trace string
}

// MixPoint is a write amplification at a share of sequential writes.
type MixPoint struct {
	Sequential units.Fraction
	WAF        float64
}

// Latency is the 99th percentile of latency under load: points, or a simulated drive.
type Latency struct {
	// Points are shares of the IOPS with their p99.
	Points []LatencyPoint
	// Simulate names a preset whose drive is run under the mix of the workloads that share a drive (their shares of
	// writes, their sizes, how much of their writes is sequential), at several shares of the IOPS.
	Simulate string
}

// LatencyPoint is one of them.
type LatencyPoint struct {
	// Load is the share of the drive's IOPS.
	Load units.Fraction
	// P99 is in time.
	P99 units.Duration
}

// Workloads is a table or a list.
type Workloads struct {
	// File is a CSV table.
	File string
	// List has them one by one.
	List []Workload
}

// Workload is one of them, with the columns of the table for keys.
type Workload struct {
	Name          string
	WriteGBPerDay float64
	Sequential    units.Fraction
	PeakIOPS      float64
	IOSize        units.Bytes
	WriteShare    units.Fraction
	WorkingSetGB  float64
	ArrivalDay    float64
	EndDay        float64
	FullStripe    units.Fraction
	P99           units.Duration
	Apart         string
	Growth        units.Change
	Trace         string
}

// Algorithm is how workloads are placed.
type Algorithm struct {
	offline, optimal bool
	policy           tco.Policy
}

// UnmarshalText reads an algorithm's name.
func (a *Algorithm) UnmarshalText(text []byte) error {
	names := units.Names[uint8]{"optimal", "mintco-offline"}
	for _, p := range tco.Policies() {
		names = append(names, p.String())
	}
	var n uint8
	if err := names.Unmarshal(text, &n); err != nil {
		return err
	}
	*a = Algorithm{optimal: n == 0, offline: n == 1}
	if n > 1 {
		a.policy = tco.Policies()[n-2]
	}
	return nil
}

// MarshalText writes it.
func (a Algorithm) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// String is the algorithm's name.
func (a Algorithm) String() string {
	switch {
	case a.optimal:
		return "optimal"
	case a.offline:
		return "mintco-offline"
	}
	return a.policy.String()
}

// Fate is what fails at once.
type Fate uint8

// The fates.
const (
	DomainFate Fate = iota
	ZoneFate
)

var fateNames = units.Names[Fate]{"domain", "zone"}

// String is the fate's name in a plan.
func (f Fate) String() string { return fateNames.Name(f) }

// MarshalText writes the fate's name.
func (f Fate) MarshalText() ([]byte, error) { return fateNames.Marshal(f) }

// UnmarshalText reads a fate's name.
func (f *Fate) UnmarshalText(text []byte) error { return fateNames.Unmarshal(text, f) }

// of is what a drive in a domain shares with others.
func (f Fate) of(domain string) string {
	if f == ZoneFate {
		domain, _, _ = strings.Cut(domain, "/")
	}
	return domain
}

// Objective is what a plan is judged by.
type Objective uint8

// The objectives.
const (
	AutoObjective Objective = iota
	CalendarObjective
	PaperObjective
)

var objectiveNames = units.Names[Objective]{"auto", "calendar", "paper"}

// String is the objective's name in a plan.
func (o Objective) String() string { return objectiveNames.Name(o) }

// MarshalText writes the objective's name.
func (o Objective) MarshalText() ([]byte, error) { return objectiveNames.Marshal(o) }

// UnmarshalText reads an objective's name.
func (o *Objective) UnmarshalText(text []byte) error { return objectiveNames.Unmarshal(text, o) }

// Calendar reports whether the plan is judged by money over a calendar.
func (p *Plan) Calendar() bool {
	if p.Objective == AutoObjective {
		return p.Algorithm.optimal && p.Mode == tco.Corrected && p.Horizon > 0
	}
	return p.Objective == CalendarObjective
}

// Word implements shape.Document.
func (*Plan) Word() string { return "the plan" }

// Short lets a table's name stand for workloads.
func (*Workloads) Short() string { return "file" }

// Short lets a preset's name stand for a latency.
func (*Latency) Short() string { return "simulate" }

// Short lets a number stand for a write amplification.
func (*Amplification) Short() string { return "constant" }

// SetDefault fills in what a group has that says nothing.
func (g *Group) SetDefault() { *g = Group{WriteShare: 0.5} }

// duty is the share of the time that a drive is active; by load, at all of its IOPS.
func (g *Group) duty() float64 {
	if g.Duty != nil {
		return float64(*g.Duty)
	}
	return tco.DefaultDuty
}

// Default is a plan without drives and workloads.
func Default() *Plan {
	c, o, z := tco.DefaultCosts(), tco.DefaultOptimiseConfig(), tco.DefaultOfflineConfig()
	p := &Plan{
		Horizon: tco.DefaultHorizon, Fill: Fill{1, 1}, Algorithm: Algorithm{optimal: true},
		Weights: tco.DefaultWeights(),
		Zones:   Zones{Switch: units.Fraction(z.Switch)},
		Search:  Search{Steps: o.Steps, Climb: o.Climb, Seed: o.Seed},
		Costs: Costs{Electricity: units.Money(c.Electricity), PUE: c.PUE, Rebuild: 200e6, Embodied: c.Embodied,
			Grid: c.Grid, ResidualOver: tco.DefaultHorizon},
		Uncertainty: Uncertainty{Draws: 400},
		Effective:   Effective{Reduction: 1, Replication: 1},
	}
	for _, e := range z.Thresholds {
		p.Zones.Thresholds = append(p.Zones.Thresholds, units.Fraction(e))
	}
	return p
}

// Load reads a plan, with the changes of the command line, and the tables that it names. Jobs, if there are any,
// stand in place of the plan's own workloads.
func Load(src shape.Source, jobs []tco.Workload, changes ...shape.Change) (*Plan, error) {
	p := Default()
	set, err := shape.ParseDocument(src, p, changes...)
	if err != nil {
		return nil, err
	}
	p.source, p.set = src, set
	p.simulated = &simulations{trials: map[string]latencies{}, waf: map[string][]waf.MixPoint{},
		alone: map[int][2]float64{}}
	if p.Name == "" {
		p.Name = trimmed(src.File)
	}
	if err := shape.Locate(set, p.validate(jobs == nil)); err != nil {
		return nil, err
	}
	p.models = catalogue.Models()
	if p.Catalogue != "" {
		own, err := table(p.path(p.Catalogue), catalogue.Read)
		if err != nil {
			return nil, err
		}
		p.models = append(own, p.models...)
	}
	switch {
	case jobs != nil:
		p.jobs = slices.Clone(jobs)
	case p.Workloads.File != "":
		p.jobs, err = table(p.path(p.Workloads.File), tco.ReadWorkloads)
	default:
		p.jobs = p.listed()
	}
	if err != nil {
		return nil, err
	}
	if err := p.slow(); err != nil {
		return nil, err
	}
	return p, p.timely()
}

// timely refuses workloads that the plan's objective cannot heed: ones that come when the plan is over, or grow where
// growth is not looked at.
func (p *Plan) timely() error {
	at, of := p.set["workloads"], "workloads"
	for i := range p.jobs {
		w := &p.jobs[i]
		key := fmt.Sprintf("workloads.list[%d]", i)
		if _, ok := p.set[key]; ok {
			at, of = p.set[key], key
		}
		switch {
		case p.Calendar() && w.Arrival >= float64(p.Horizon):
			return shape.Errors{{At: at,
				Msg: fmt.Sprintf("%s: workload %s arrives on day %v, but the plan ends on day %v; set a longer "+
					"horizon, or leave it out", of, w.Name, w.Arrival, float64(p.Horizon))}}
		case w.Growth != 0 && !(p.Calendar() && p.Algorithm.optimal):
			return shape.Errors{{At: at,
				Msg: fmt.Sprintf("%s: workload %s grows, but %v with objective: paper does not use growth; choose "+
					"algorithm: optimal and objective: calendar, or leave growth out", of, w.Name, p.Algorithm)}}
		}
	}
	return nil
}

// slow refuses a p99 that nothing is known about, and I/Os that no drive can be simulated for.
func (p *Plan) slow() error {
	for i := range p.Drives {
		large := func(w tco.Workload) bool { return w.IOSize > mostTailSize }
		if l := p.Drives[i].Latency; l == nil || l.Simulate == "" {
			continue
		} else if j := slices.IndexFunc(p.jobs, large); j >= 0 {
			return p.wrong(i, "latency",
				fmt.Errorf("the I/Os of workload %s have %v KiB, and up to %v are simulated; state points instead",
					p.jobs[j].Name, p.jobs[j].IOSize, mostTailSize))
		}
	}
	asks := slices.IndexFunc(p.jobs, func(w tco.Workload) bool { return w.P99 > 0 })
	for i := range p.Drives {
		if asks >= 0 && p.Drives[i].Latency == nil {
			return p.wrong(i, "latency",
				fmt.Errorf("workload %s has a p99, but these drives have no latency; write latency: {points: [...]}, "+
					"or name a preset to simulate", p.jobs[asks].Name))
		}
	}
	return nil
}

// Jobs are the plan's workloads.
func (p *Plan) Jobs() []tco.Workload { return slices.Clone(p.jobs) }

// listed turns the list into workloads.
func (p *Plan) listed() []tco.Workload {
	var out []tco.Workload
	for _, w := range p.Workloads.List {
		out = append(out, tco.Workload{Name: w.Name, WriteRate: w.WriteGBPerDay, Sequential: float64(w.Sequential),
			PeakIOPS: w.PeakIOPS, IOSize: float64(w.IOSize) / 1024, WriteShare: float64(w.WriteShare),
			WorkingSet: w.WorkingSetGB, Arrival: w.ArrivalDay, End: w.EndDay, FullStripe: float64(w.FullStripe),
			P99: w.P99.Microseconds(), Apart: w.Apart, Growth: float64(w.Growth), Trace: w.Trace})
	}
	return out
}

// path is a file that the plan names, from the plan's own folder.
func (p *Plan) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(p.source.Dir, name)
}

func trimmed(file string) string {
	base := filepath.Base(file)
	return base[:len(base)-len(filepath.Ext(base))]
}

func (p *Plan) config() tco.Config {
	return tco.Config{Mode: p.Mode, Horizon: float64(p.Horizon), WarmUp: p.WarmUp, FillSpace: float64(p.Fill.Space),
		FillIOPS: float64(p.Fill.IOPS)}
}

// calendar is what money over a calendar depends on.
func (p *Plan) calendar() calendar.Config {
	c := &p.Costs
	return calendar.Config{Horizon: float64(p.Horizon), FillSpace: float64(p.Fill.Space),
		FillIOPS: float64(p.Fill.IOPS), Discount: float64(c.Discount), Trend: float64(c.PriceTrend),
		Replacing: float64(c.Replacing), Warranty: float64(c.Warranty), Moving: float64(c.Moving),
		Residual: float64(c.Residual), Over: float64(c.ResidualOver)}
}

func (p *Plan) costs() tco.Costs {
	c := p.Costs
	return tco.Costs{Setup: float64(c.Setup), Labour: float64(c.Labour), Electricity: float64(c.Electricity),
		PUE: c.PUE, Grid: c.Grid, Embodied: c.Embodied,
		Replacing: float64(c.Replacing), Warranty: float64(c.Warranty)}
}
