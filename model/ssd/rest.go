package ssd

import (
	"fmt"

	"farflash/numeric/units"
	"farflash/sim"
)

// PowerState is a non-operational state that an idle drive enters by itself (Autonomous Power State Transitions, NVMe
// Base Specification 2.0, section 8.15.2). A doorbell wakes it. It fetches nothing before it is awake.
type PowerState struct {
	// After is how long the drive must be idle before it enters the state.
	After units.Duration
	// Entry is the time that it takes to enter the state (ENLAT). Commands that come meanwhile wait for it.
	Entry units.Duration
	// Exit is the time that it takes to wake up (EXLAT).
	Exit units.Duration
	// Watts is the power drawn in the state, instead of energy.idle_watts.
	Watts float64
}

// mostPowerStates is as many as a drive can have beside one that works.
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
			"after %v the drive is still entering the state before; use at least %v", p.After, earliest)
		for _, t := range []struct {
			key string
			d   units.Duration
		}{{"entry", p.Entry}, {"exit", p.Exit}} {
			bad.Hold(t.d >= 0 && t.d <= 100*units.Second, key(t.key), "%v is not possible; use 0s to 100s", t.d)
		}
		bad.Hold(p.Watts >= 0 && p.Watts <= 1e6, key("watts"), "%v W are not possible; use 0 to 1000000", p.Watts)
		bad.Hold(p.Watts == 0 || c.Energy != nil, key("watts"),
			"what the drive draws otherwise is not known; give ssd.energy, or leave it out")
		if e := c.Energy; e != nil {
			bad.Hold(p.Watts <= e.Idle, key("watts"), "%v W is more than the %v W of energy.idle_watts; use less",
				p.Watts, e.Idle)
		}
		earliest = p.After + p.Entry
	}
}

// rest is what a drive knows of its sleep. It has no timer: which state it has come to is worked out when it is
// woken, or asked.
type rest struct {
	states []PowerState
	since  sim.Time   // when it last ended a command
	awake  sim.Time   // when it is awake again
	spent  []sim.Time // in each state
	wakes  uint64
}

// began is when the drive came to have nothing to do, or false while it has, or is waking.
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

// slept adds the time in each state, up to now, of a drive that has had nothing to do since it began to have, and
// returns which state it is in or entering; -1 is none.
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

// rouse is told that there is something to do, and returns when the drive can see to it.
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

// rested is how long the drive was in each state up to a time that is not before the clock's.
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
