package tco

import (
	"math"

	"farflash/numeric/units"
)

// Costs are the costs of drives besides their purchase: operation, failures, and the carbon of their manufacture.
type Costs struct {
	Setup       float64 // money per drive, once
	Labour      float64 // money per drive and day
	Electricity float64 // money per kWh
	PUE         float64 // power of the site over the power of its machines
	// Grid is kg of CO2e per kWh; Embodied is kg of CO2e per GB of flash manufactured.
	Grid, Embodied float64
	// Replacing is the cost of labour and handling of a failed drive, in money, in addition to its price.
	Replacing float64
	// Warranty is the number of days after its first workload during which a failed drive is replaced free of charge.
	Warranty float64
}

// Defaults with their sources.
const (
	// DefaultPUE is the mean of Uptime's 2025 survey; it was 1.65 in 2014.
	DefaultPUE = 1.54
	// DefaultElectricity is an assumption.
	DefaultElectricity = 0.10
	// defaultEmbodied is from Tannu and Nair, The Dirty Secret of SSDs (arXiv 2207.10793): kg of CO2e per GB.
	defaultEmbodied = 0.16
	// defaultGrid is an assumption: kg of CO2e per kWh. Grids lie between 0.02 and 0.8.
	defaultGrid = 0.4
	// DefaultMTBF is the figure in the data sheets of Intel's DC drives, in hours; AFR 0.44 %.
	DefaultMTBF = 2e6
)

// DefaultCosts has no setup, labour or replacement costs, because there is no source for them.
func DefaultCosts() Costs {
	return Costs{Electricity: DefaultElectricity, PUE: DefaultPUE, Grid: defaultGrid, Embodied: defaultEmbodied}
}

// Validate reports invalid costs, by the keys of a plan's costs.
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
		"%v is not possible; PUE is at least 1", c.PUE)
	return f.Err()
}

func (c Costs) check() error { return c.Validate() }

// Power is a drive's electrical power and duty cycle.
type Power struct {
	Active, Idle float64 // W
	Duty         float64 // share of the time during which it is active
}

// DefaultDuty is an assumption.
const DefaultDuty = 0.3

// Mean is P_avg = duty active + (1-duty) idle, in W.
func (p Power) Mean() float64 {
	return float64(p.Duty*p.Active) + float64((1-p.Duty)*p.Idle)
}

// PowerCost is the daily cost of a power in W at the site: P/1000 24 PUE price.
func (c Costs) PowerCost(watts float64) float64 {
	return float64(watts / 1000 * 24 * c.PUE * c.Electricity)
}

// Running is c_M: power and labour, in money per day.
func (c Costs) Running(p Power) float64 { return c.PowerCost(p.Mean()) + c.Labour }

// AFR is the share of drives that fail in a year: 8760/MTBF, the conversion of data sheets.
func AFR(mtbfHours float64) float64 { return 8760 / mtbfHours }

// Failures are the expected numbers and costs of a drive's random failures in service, apart from wear-out.
type Failures struct {
	Expected float64 // failures of its members
	Spares   float64 // money for replacement drives: those that fail after the warranty
	Labour   float64 // money for labour and handling
	Rebuilt  float64 // GB written to new members
	Hours    float64 // hours during which members are being rebuilt
}

// Cost is the sum of all costs.
func (f Failures) Cost() float64 { return f.Spares + f.Labour }

// Expect returns the expected failures of a drive of the given number of members that serves for life days: members AFR
// life/365, at a constant rate. Each failed member is replaced; price is the price of one, kept the GB that it holds,
// rebuild the MB/s at which it is rebuilt. Within the warranty the replacement is free.
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

// Carbon is in kg of CO2e.
type Carbon struct {
	Embodied    float64 // of manufacturing the flash
	Operational float64 // of the power in service
}

// Total is the sum of both.
func (c Carbon) Total() float64 { return c.Embodied + c.Operational }

// CarbonOf is the carbon of raw GB of flash that draw the given power for life days: raw times Embodied, plus kWh PUE
// grid.
func (c Costs) CarbonOf(raw, watts, life float64) Carbon {
	return Carbon{Embodied: float64(raw * c.Embodied), Operational: float64(watts / 1000 * 24 * life * c.PUE * c.Grid)}
}

// Effective holds the terms of SNIA's TCO Model for Storage (snia.org/forums/cmsi/programs/TCOcalc).
type Effective struct {
	Raw         float64 // TB
	Utilisation float64 // capacity utilisation: used share of the space
	Reduction   float64 // data reduction: logical over stored bytes; 1: no reduction
	Replication float64 // replication factor: copies
	Encoding    float64 // error-encoding factor (k+m)/k
}

// TBe is effective terabytes: raw util reduction/(replication (k+m)/k).
func (e Effective) TBe() float64 {
	return float64(e.Raw*e.Utilisation*e.Reduction) / float64(e.Replication*e.Encoding)
}

// PerMonth is SNIA's measure: money per TBe and month, for a cost over the given days.
func (e Effective) PerMonth(cost, days float64) float64 {
	return cost / float64(e.TBe()*(days/Month))
}
