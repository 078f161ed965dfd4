package ssd

import (
	"farflash/numeric/units"
	"farflash/sim"
)

// PowerLimit is the limit on a drive's power while it works: the Maximum Power of an operational power state (NVMe Base
// Specification 2.0, section 8.15), or a slot's. A die starts an operation only when enough energy has accumulated, at
// the rate of the limit minus the idle power.
type PowerLimit struct {
	Watts  float64        // Watts is the largest mean power over times much longer than the window.
	Window units.Duration // Window is the time over which unused energy accumulates for later use.
}

// DefaultPowerLimit has a window; the limit must be given.
func DefaultPowerLimit() PowerLimit { return PowerLimit{Window: 10 * units.Millisecond} }

func (c *Config) validatePowerLimit(bad *units.Faults) {
	p := c.PowerLimit
	if p == nil {
		return
	}
	bad.Hold(c.Energy != nil, "power_limit", "the drive's power is unknown; give ssd.energy, or leave it out")
	bad.Hold(p.Window >= 0 && p.Window <= 100*units.Second, "power_limit.window",
		"%v is not possible; use 0s to 100s", p.Window)
	idle := 0.0
	if c.Energy != nil {
		idle = c.Energy.Idle
	}
	// With a milliwatt to spare, a program takes a second.
	bad.Hold(p.Watts >= idle+1e-3 && p.Watts <= 1e6, "power_limit.watts",
		"%v W are not possible; use more than the idle power, %v W, and at most 1000000", p.Watts, idle)
}

// governor limits operations to a mean rate of energy (the virtual scheduling algorithm of ITU-T I.371, with energy in
// place of cells).
type governor struct {
	on     bool
	each   float64  // picoseconds a joule
	due    sim.Time // when all energy drawn so far will have accumulated
	window sim.Time
	asked  uint64 // operations
	held   uint64 // of them, those that were delayed
}

// draw charges energy that is used whether or not it has accumulated.
func (g *governor) draw(at sim.Time, joules float64) {
	g.due = max(g.due, at) + sim.Time(float64(joules*g.each))
}

// admit returns the start of an operation that could start at a given time, and charges its energy.
func (g *governor) admit(at sim.Time, joules float64) sim.Time {
	begin := max(at, g.due-g.window)
	g.asked++
	if begin > at {
		g.held++
	}
	g.draw(begin, joules)
	return begin
}

// newGovernor returns the governor of a drive. Without a limit it is off.
func newGovernor(c *Config) governor {
	if c.PowerLimit == nil {
		return governor{}
	}
	return governor{on: true, each: float64(units.Second) / (c.PowerLimit.Watts - c.Energy.Idle),
		window: c.PowerLimit.Window}
}

// govern delays the start of a lane's operation until there is energy for it and for the data that it transfers.
func (d *Drive) govern(l *lane, op operation, txns []int32) {
	e, joules, bytes := d.cfg.Energy, 0.0, 0.0
	for _, t := range txns {
		if x := d.txns.At(t); op != opErase && x.queue != queueCopyback {
			bytes += float64(x.load())
		}
	}
	n := float64(len(txns))
	switch op {
	case opRead, opCopyback: // a copyback's program is a separate operation
		joules = float64(n * float64(e.Read))
	case opProgram:
		joules = float64(n * float64(e.Program))
	case opErase:
		joules = float64(n * float64(e.Erase))
	}
	l.starts = d.governor.admit(l.starts, joules+float64(bytes*float64(e.TransferPerByte)))
}
