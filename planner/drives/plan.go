// Package drives plans which drives to buy and where to place workloads on them. It reads the plan's file and computes
// the outcome.
//
// Its main types are Plan, decoded from a YAML file by the rules of scenarios, and Outcome, computed by package tco:
// drives with their load, wear, lifetime and cost, placements with their reasons, totals in the terms of SNIA's model,
// the bound, and the sensitivity to prices. Load reads a plan with the tables it names; Solve places; Explain explains
// the placement of a workload; FromTraces derives workloads from recorded I/O.
//
// It leaves out presentation (packages report and cli).
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

// Plan is the input of the planner.
type Plan struct {
	// Name is used in reports; by default it is the file's name.
	Name string
	// Description describes the plan. It has no effect.
	Description string
	// Mode is corrected, or paper for the formulas printed in minTCO.
	Mode tco.Mode
	// Objective is the value that the plan minimises: calendar, the money it takes to serve all workloads until the
	// horizon; paper, minTCO's money per GB written; auto, calendar for algorithm optimal in mode corrected with a
	// horizon, otherwise paper.
	Objective Objective
	// Horizon is the plan's end; with objective paper, the longest service of a drive from its first workload; 0 means
	// until it is worn out.
	Horizon units.Days
	// Review is the interval at which workloads may move to other drives; 0 means that they never move. It applies to
	// objective calendar.
	Review units.Days
	// WarmUp gives each drive a workload before any gets a second one.
	WarmUp bool
	// Fill is the share of the space and of the IOPS that may be used.
	Fill Fill
	// Algorithm is optimal, which knows all arrivals; mintco-offline; or a policy that places each workload as it
	// arrives.
	Algorithm Algorithm
	// Weights are the weights of mintco-perf.
	Weights tco.Weights
	// Zones are the zones of mintco-offline.
	Zones Zones
	// Search is the effort of algorithm optimal.
	Search Search
	// Costs are the costs of drives other than their price.
	Costs Costs
	// ApartBy is the scope within which workloads to be kept apart must not meet: a failure domain, such as a rack, or
	// the zone, which is the part of a domain's name before its first slash.
	ApartBy Apart
	// Uncertainty is the range of the inputs.
	Uncertainty Uncertainty
	// Effective holds the factors of SNIA's terms that the plan itself does not have.
	Effective Effective
	// Catalogue is a CSV table of drives in addition to the built-in ones.
	Catalogue string
	// Drives are the drives that exist and those that may be bought.
	Drives []Group
	// Workloads are the workloads to place: a CSV table, or a list.
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
	// Thresholds divide the workloads by sequential ratio, in ascending order.
	Thresholds []units.Fraction
	// Switch is delta: zones whose write rates differ by more are not kept apart.
	Switch units.Fraction
}

// Search is the effort of the local search and of the bound.
type Search struct {
	// Steps are the steps of the local search.
	Steps int
	// Climb is the number of steps in which the bound is raised.
	Climb int
	// Seed is the seed of its random numbers.
	Seed uint64
}

// Costs are the costs of drives other than their price, in money of one currency.
type Costs struct {
	// Setup is the cost of installing a drive, paid once.
	Setup units.Money
	// Discount is the yearly discount rate of money.
	Discount units.Fraction
	// PriceTrend is the yearly change of drive prices.
	PriceTrend units.Change
	// Space is the monthly cost of a drive's place: its share of rack, floor and ports.
	Space units.Money
	// Moving is the cost per TB copied for a workload that moves.
	Moving units.Money
	// Residual is the share of its price that a drive would fetch on the day of its purchase. It falls to 0 in
	// ResidualOver, or with the wear of the flash if that is faster.
	Residual     units.Fraction
	ResidualOver units.Days
	// Labour is the daily cost of labour per drive.
	Labour units.Money
	// Electricity is the price of a kWh.
	Electricity units.Money
	// PUE is the site's power over the power of its machines.
	PUE float64
	// Replacing is the cost of labour for replacing a failed drive.
	Replacing units.Money
	// Warranty is the period in which a failed drive is replaced free of charge.
	Warranty units.Days
	// Rebuild is the rate at which a replacement drive is rebuilt.
	Rebuild units.ByteRate
	// Embodied is kg of CO2e per GB of flash manufactured.
	Embodied float64
	// Grid is kg of CO2e per kWh.
	Grid float64
}

// Effective holds factors of SNIA's effective terabytes that a placement does not show.
type Effective struct {
	// Reduction is the ratio of bytes kept by users to bytes stored; 1 means no reduction.
	Reduction float64
	// Replication is the number of copies that the software above keeps.
	Replication float64
}

// Group is a number of equal drives, or arrays of them.
type Group struct {
	// Model names the drive in the catalogue.
	Model string
	// Name is used for the drives, with a number; by default it is the model's name.
	Name string
	// Count is the number of existing drives.
	Count int
	// UpTo is the number of drives that may be bought as needed, instead of count.
	UpTo int
	// Price overrides the catalogue's price, which is as of its date.
	Price *units.Money
	// ReadIOPS, WriteIOPS, ActiveW, IdleW, TBW (in TB) and AFR override the catalogue's figures.
	ReadIOPS, WriteIOPS, ActiveW, IdleW, TBW *float64
	AFR                                      *units.Fraction
	// Estimate names figures that neither the catalogue nor the plan has, to be estimated by the median of the
	// catalogue's other drives.
	Estimate []catalogue.Figure
	// Owned drives are already bought: neither their price nor their setup is paid, but their operation and their
	// replacements are.
	Owned bool
	// Duty is the share of time that a drive is active. By default it is 30 % of the share of its IOPS in use; with
	// objective paper it is 30 % of the time.
	Duty *units.Fraction
	// WriteShare is the share of writes for which the IOPS are computed in mode paper. Otherwise each workload's reads
	// count against the read rating, and its writes against the write rating.
	WriteShare units.Fraction
	// Spare is the share of its capacity that is left unused. It is space for garbage collection in addition to the
	// model's own, and lowers write amplification.
	Spare units.Fraction
	// Worn is the share of its write budget that is already used.
	Worn units.Fraction
	// Domains are the failure domains of the drives, assigned in turn, such as racks: r1, or r1 of a zone: east/r1.
	// Without domains each drive is its own.
	Domains []string
	// Array puts drives of the group behind a redundancy scheme; count then counts arrays.
	Array *Array
	// WAF is the write amplification under the workloads; by default it is equation 7 with the model's spare space.
	WAF *Amplification
	// RatedWAF is the write amplification for which the rated TBW was stated; by default it is that of random writes at
	// the model's spare space. The flash's write budget is the rated TBW times it, independently of waf.
	RatedWAF float64
	// Latency is the p99 under load, which is mandatory if workloads have a p99.
	Latency *Latency
}

// Array is a redundancy scheme.
type Array struct {
	// Kind is single, raid0, raid1, raid5, ec or replication.
	Kind tco.ArrayKind
	// Drives is the number of drives per array.
	Drives int
	// Data and Parity are the shards of ec; parity is the number of further copies of replication.
	Data, Parity int
}

// Amplification is the source of a write amplification: exactly one of the keys, or those of equation 7.
type Amplification struct {
	// Random and Sequential are equation 7's amplification if all writes are random, and if all are sequential; Slope
	// is about 0.
	Random, Sequential, Slope float64
	// Turn is the sequential share up to which it is a straight line.
	Turn units.Fraction
	// Constant is a write amplification that is the same for every mix.
	Constant float64
	// Table is a CSV with the columns sequential and waf.
	Table string
	// Points are the same as a table, within the plan: linear in between, and constant beyond.
	Points []MixPoint
	// Simulate runs the FTL simulator at the drive's spare space, with this number of blocks of 64 pages.
	Simulate int
	// Trace runs the FTL simulator with the writes of a recorded trace, at the drive's spare space: its mix of
	// sequential and random writes, its sizes, and its update frequency per page. The amplification does not depend on
	// which workloads share a drive.
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
	// Simulate names a preset whose drive is simulated under the mix of the workloads that share a drive (their share
	// of writes, their sizes, the sequential share of their writes), at several shares of the IOPS.
	Simulate string
}

// LatencyPoint is a p99 at a load.
type LatencyPoint struct {
	// Load is the share of the drive's IOPS.
	Load units.Fraction
	// P99 is the 99th percentile of latency.
	P99 units.Duration
}

// Workloads is a table or a list.
type Workloads struct {
	// File is a CSV table.
	File string
	// List has the workloads one by one.
	List []Workload
}

// Workload is one workload; its keys are the columns of the table.
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

// Algorithm is the method of placing workloads.
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

// MarshalText writes the algorithm's name.
func (a Algorithm) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// String returns the algorithm's name.
func (a Algorithm) String() string {
	switch {
	case a.optimal:
		return "optimal"
	case a.offline:
		return "mintco-offline"
	}
	return a.policy.String()
}

// Apart is a set of drives that can fail together.
type Apart uint8

// The fates.
const (
	DomainFate Apart = iota
	ZoneFate
)

var fateNames = units.Names[Apart]{"domain", "zone"}

// String returns the fate's name in a plan.
func (f Apart) String() string { return fateNames.Name(f) }

// MarshalText writes the fate's name.
func (f Apart) MarshalText() ([]byte, error) { return fateNames.Marshal(f) }

// UnmarshalText reads a fate's name.
func (f *Apart) UnmarshalText(text []byte) error { return fateNames.Unmarshal(text, f) }

// of returns the part of a domain's name that drives of the same fate share.
func (f Apart) of(domain string) string {
	if f == ZoneFate {
		domain, _, _ = strings.Cut(domain, "/")
	}
	return domain
}

// Objective is the value that a plan minimises.
type Objective uint8

// The objectives.
const (
	AutoObjective Objective = iota
	CalendarObjective
	PaperObjective
)

var objectiveNames = units.Names[Objective]{"auto", "calendar", "paper"}

// String returns the objective's name in a plan.
func (o Objective) String() string { return objectiveNames.Name(o) }

// MarshalText writes the objective's name.
func (o Objective) MarshalText() ([]byte, error) { return objectiveNames.Marshal(o) }

// UnmarshalText reads an objective's name.
func (o *Objective) UnmarshalText(text []byte) error { return objectiveNames.Unmarshal(text, o) }

// Calendar reports whether the plan minimises money over a calendar.
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

// SetDefault sets the defaults of a group.
func (g *Group) SetDefault() { *g = Group{WriteShare: 0.5} }

// duty is the share of time that a drive is active; with ByLoad, that share at full IOPS.
func (g *Group) duty() float64 {
	if g.Duty != nil {
		return float64(*g.Duty)
	}
	return tco.DefaultDuty
}

// defaultPlan returns a plan without drives and workloads.
func defaultPlan() *Plan {
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

// Load reads a plan, with the changes of the command line, and the tables it names. If there are jobs, they replace the
// plan's own workloads.
func Load(src shape.Source, jobs []tco.Workload, changes ...shape.Change) (*Plan, error) {
	p := defaultPlan()
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

// timely rejects workloads that the plan's objective cannot handle: ones that arrive after the plan's end, or that grow
// where growth is ignored.
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

// slow rejects a p99 that no drive of the plan can state, and I/O sizes that cannot be simulated.
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

// Jobs returns the plan's workloads.
func (p *Plan) Jobs() []tco.Workload { return slices.Clone(p.jobs) }

// listed converts the list to workloads.
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

// path resolves a file named in the plan relative to the plan's directory.
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

// calendar returns the configuration of the calendar.
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
