package ssd

import (
	"fmt"

	"farflash/numeric/units"
	"farflash/sim"
)

// PowerState is a non-operational state that an idle drive enters autonomously (Autonomous Power State Transitions,
// NVMe Base Specification 2.0, section 8.15.2). A doorbell wakes it, and it fetches no command before it is awake.
type PowerState struct {
	After units.Duration // After is the idle time before the drive enters the state.
	// Entry is the time to enter the state (ENLAT), for whose end commands wait.
	Entry units.Duration
	Exit  units.Duration // Exit is the time to wake up (EXLAT).
	Watts float64        // Watts is the power in the state, instead of energy.idle_watts.
}

// mostPowerStates is the largest number of power states besides the operational one.
const mostPowerStates = 31

func (c *Config) validatePowerStates(bad *units.Faults) {
	bad.Hold(len(c.PowerStates) <= mostPowerStates, "power_states", "%d are more than %d", len(c.PowerStates),
		mostPowerStates)
	if r := c.Reliability; len(c.PowerStates) > 0 && r != nil && r.Refresh != nil {
		bad.Hold(r.Refresh.Patrol == 0, "power_states",
			"a drive with a patrol is never idle; leave out power_states or reliability.refresh.patrol")
	}
	earliest := units.Duration(0)
	for i, p := range c.PowerStates {
		key := func(k string) string { return fmt.Sprintf("power_states[%d].%s", i, k) }
		bad.Hold(p.After > 0 && p.After <= 100*units.Second, key("after"),
			"%v is not possible; use more than 0s and at most 100s, the longest time in NVMe", p.After)
		bad.Hold(p.After >= earliest, key("after"),
			"after %v the drive is still entering the previous state; use at least %v", p.After, earliest)
		for _, t := range []struct {
			key string
			d   units.Duration
		}{{"entry", p.Entry}, {"exit", p.Exit}} {
			bad.Hold(t.d >= 0 && t.d <= 100*units.Second, key(t.key), "%v is not possible; use 0s to 100s", t.d)
		}
		bad.Hold(p.Watts >= 0 && p.Watts <= 1e6, key("watts"), "%v W are not possible; use 0 to 1000000", p.Watts)
		bad.Hold(p.Watts == 0 || c.Energy != nil, key("watts"),
			"the drive's other power is unknown; give ssd.energy, or leave it out")
		if e := c.Energy; e != nil {
			bad.Hold(p.Watts <= e.Idle, key("watts"), "%v W is more than the %v W of energy.idle_watts; use less",
				p.Watts, e.Idle)
		}
		earliest = p.After + p.Entry
	}
}

// rest is the state of a drive's power management. It has no timer: the power state that the drive has reached is
// derived when it is woken or queried.
type rest struct {
	states []PowerState
	since  sim.Time   // when it last completed a command
	awake  sim.Time   // when it is or was awake again
	spent  []sim.Time // time spent in each state
	wakes  uint64
}

// began returns when the drive became idle. It reports false while the drive is busy or waking up.
func (d *Drive) began(now sim.Time) (sim.Time, bool) {
	z := &d.rest
	if d.held > 0 || d.memoryTurns.busy || now < z.awake || now-z.since < z.states[0].After {
		return 0, false
	}
	at := max(z.since, z.awake, d.up.free, d.memory.free)
	for i := range d.lanes {
		l := &d.lanes[i]
		if l.phase != idle || l.mask != 0 || l.paused.n > 0 {
			return 0, false
		}
		at = max(at, l.finish)
	}
	for i := range d.planeReads {
		if d.planeReads[i].txn != 0 {
			return 0, false
		}
		at = max(at, d.planeReads[i].end)
	}
	for i := range d.channels {
		at = max(at, d.channels[i].until)
	}
	return at, now > at
}

// slept adds, for a drive idle since began, the time spent in each state up to now, and returns the state it is in or
// entering; -1 is none.
func (z *rest) slept(spent []sim.Time, began, now sim.Time) int {
	in := -1
	for i := range z.states {
		p := &z.states[i]
		if began+p.After > now {
			break
		}
		in = i
		to := now
		if i+1 < len(z.states) {
			to = min(to, began+z.states[i+1].After)
		}
		spent[i] += max(0, to-(began+p.After+p.Entry))
	}
	return in
}

// rouse handles a doorbell: it returns when the drive is awake to process it.
func (d *Drive) rouse() sim.Time {
	z, now := &d.rest, d.eng.Now()
	if now < z.awake {
		return z.awake
	}
	began, ok := d.began(now)
	if !ok {
		return now
	}
	in := z.slept(z.spent, began, now)
	if in < 0 {
		return now
	}
	p := &z.states[in]
	z.wakes++
	z.awake = max(now, began+p.After+p.Entry) + p.Exit
	return z.awake
}

// rested returns how long the drive was in each state up to a time at, which must not be before the present.
func (d *Drive) rested(at sim.Time) []sim.Time {
	if len(d.rest.states) == 0 {
		return nil
	}
	spent := append([]sim.Time(nil), d.rest.spent...)
	if began, ok := d.began(at); ok {
		d.rest.slept(spent, began, at)
	}
	return spent
}
