package tco

import (
	"math"

	"farflash/numeric/units"
)

// Costs are what drives cost beside their purchase, and what their failures and their making cost.
type Costs struct {
	Setup       float64 // money a drive, once
	Labour      float64 // money a drive and day
	Electricity float64 // money a kWh
	PUE         float64 // power of the site over power of its machines
	// Grid is kg of CO2e a kWh; Embodied is kg of CO2e a GB of flash that is made.
	Grid, Embodied float64
	// Replacing is labour and handling of a drive that fails, in money, beside its price.
	Replacing float64
	// Warranty is for how many days after its first workload a failed drive is replaced without its price.
	Warranty float64
}

// Defaults with their sources.
const (
	// DefaultPUE is the mean of Uptime's survey of 2025; it was 1.65 in 2014.
	DefaultPUE = 1.54
	// DefaultElectricity is assumed.
	DefaultElectricity = 0.10
	// DefaultEmbodied is of Tannu and Nair, The Dirty Secret of SSDs (arXiv 2207.10793): kg of CO2e a GB.
	DefaultEmbodied = 0.16
	// DefaultGrid is assumed: kg of CO2e a kWh. Grids lie between 0.02 and 0.8.
	DefaultGrid = 0.4
	// DefaultMTBF is what the data sheets of Intel's DC drives state, in hours; AFR 0.44 %.
	DefaultMTBF = 2e6
)

// DefaultCosts has no setup, labour or replacing: there is no source for them.
func DefaultCosts() Costs {
	return Costs{Electricity: DefaultElectricity, PUE: DefaultPUE, Grid: DefaultGrid, Embodied: DefaultEmbodied}
}

// Validate says what cannot be paid, by the keys of a plan's costs.
func (c Costs) Validate() error {
	var f units.Faults
	for _, x := range []struct {
		key string
		v   float64
	}{{"setup", c.Setup}, {"labour", c.Labour}, {"electricity", c.Electricity}, {"grid", c.Grid},
		{"embodied", c.Embodied}, {"replacing", c.Replacing}, {"warranty", c.Warranty}} {
		f.Hold(finite(x.v), x.key, "%v is not possible; write 0 or more", x.v)
	}
	f.Hold(c.PUE >= 1 && !math.IsInf(c.PUE, 1), "pue",
		"%v is not possible; a site takes at least its machines' own power, 1", c.PUE)
	return f.Err()
}

func (c Costs) check() error { return c.Validate() }

// Power is a drive's electrical power and how much of the time it works.
type Power struct {
	Active, Idle float64 // W
	Duty         float64 // share of the time that it is active
}

// DefaultDuty is assumed.
const DefaultDuty = 0.3

// Mean is P_avg = duty active + (1-duty) idle, in W.
func (p Power) Mean() float64 {
	return float64(p.Duty*p.Active) + float64((1-p.Duty)*p.Idle)
}

// PowerCost is what a power of so many W costs a day at the site: P/1000 24 PUE price.
func (c Costs) PowerCost(watts float64) float64 {
	return float64(watts / 1000 * 24 * c.PUE * c.Electricity)
}

// Running is c_M: power and labour, in money a day.
func (c Costs) Running(p Power) float64 { return c.PowerCost(p.Mean()) + c.Labour }

// AFR is the share of drives that fail in a year: 8760/MTBF, as data sheets convert.
func AFR(mtbfHours float64) float64 { return 8760 / mtbfHours }

// Failures are expected numbers and costs of a drive's random failures while it serves, beside its wear.
type Failures struct {
	Expected float64 // failures of its members
	Spares   float64 // money for new drives: those that fail when the warranty is over
	Labour   float64 // money for replacing
	Rebuilt  float64 // GB that are written to new members
	Hours    float64 // that members are rebuilt for
}

// Cost is all money.
func (f Failures) Cost() float64 { return f.Spares + f.Labour }

// Expect returns the expected failures of a drive of so many members that serves for life days: members AFR life/365,
// at a constant rate. Each is replaced; price is a member's, kept is the GB that a member holds, rebuild the MB/s at
// which it is written anew. Within the warranty the new drive is free.
func (c Costs) Expect(members int, afr, life, price, kept, rebuild float64) Failures {
	n := float64(float64(members) * afr * life / Year)
	late := 0.0
	if life > 0 {
		late = max(0, life-c.Warranty) / life
	}
	f := Failures{Expected: n, Spares: float64(n * late * price), Labour: float64(n * c.Replacing),
		Rebuilt: float64(n * kept)}
	if rebuild > 0 {
		f.Hours = float64(f.Rebuilt*1000) / rebuild / 3600
	}
	return f
}

// Carbon is kg of CO2e.
type Carbon struct {
	Embodied    float64 // of making the flash
	Operational float64 // of the power while it serves
}

// Total is both.
func (c Carbon) Total() float64 { return c.Embodied + c.Operational }

// CarbonOf is the carbon of raw GB of flash that draw so many W for life days: raw times Embodied, and kWh PUE grid.
func (c Costs) CarbonOf(raw, watts, life float64) Carbon {
	return Carbon{Embodied: float64(raw * c.Embodied), Operational: float64(watts / 1000 * 24 * life * c.PUE * c.Grid)}
}

// Effective are the terms of SNIA's TCO Model for Storage (snia.org/forums/cmsi/programs/TCOcalc).
type Effective struct {
	Raw         float64 // TB
	Utilisation float64 // capacity utilisation: share of the space that is used
	Reduction   float64 // data reduction: logical over stored bytes; 1 is none
	Replication float64 // replication factor: copies
	Encoding    float64 // error-encoding factor (k+m)/k
}

// TBe is effective terabytes: raw util reduction/(replication (k+m)/k).
func (e Effective) TBe() float64 {
	return float64(e.Raw*e.Utilisation*e.Reduction) / float64(e.Replication*e.Encoding)
}

// PerMonth is SNIA's measure: money a TBe and month, for a cost over so many days.
func (e Effective) PerMonth(cost, days float64) float64 {
	return cost / float64(e.TBe()*(days/Month))
}
