package ssd

import (
	"farflash/numeric/units"
	"farflash/sim"
)

// Controller is the time that the drive's own processors take for commands. All commands share them, first come,
// first served. Without it, a command takes only the time of its link, DRAM and flash.
type Controller struct {
	// Processors is how many commands are worked on at once.
	Processors int
	// Command is the time that a processor takes to start a command.
	Command units.Duration
	// Completion is the time that a processor takes to complete a command.
	Completion units.Duration
}

// DefaultController is one processor; how long it takes must be said.
func DefaultController() Controller { return Controller{Processors: 1} }

// mostProcessors bounds the processors, the earliest free of which is looked for at each command.
const mostProcessors = 256

func (c *Controller) validate() error {
	var bad units.Faults
	bad.Hold(c.Processors >= 1 && c.Processors <= mostProcessors, "processors", "%d is not possible; use 1 to %d",
		c.Processors, mostProcessors)
	for _, t := range []struct {
		key string
		d   units.Duration
	}{{"command", c.Command}, {"completion", c.Completion}} {
		bad.Hold(t.d >= 0 && t.d <= units.Second, t.key, "%v is not possible; use 0s to 1s, 500ns to 5us are usual",
			t.d)
	}
	bad.Hold(c.Command > 0 || c.Completion > 0, "command",
		"no command takes a processor any time; give command or completion, such as 1us")
	return bad.Err()
}

// A processor is a server of the queue of commands that are to be worked on. Since it is served in order, when each
// ends is known when it comes.
type processors struct {
	free []sim.Time // when each has done all that was handed to it
	busy sim.Time   // in total, what lies ahead included
}

// work hands a processor some work that comes now, and returns when it is done.
func (p *processors) work(now, took sim.Time) sim.Time {
	first := 0
	for k, at := range p.free {
		if at < p.free[first] {
			first = k
		}
	}
	p.busy += took
	p.free[first] = max(p.free[first], now) + took
	return p.free[first]
}

// busyUntil is how long processors were busy up to a time, which is not before the clock's: from then on each is
// without a gap until it is free.
func (p *processors) busyUntil(at sim.Time) sim.Time {
	busy := p.busy
	for _, free := range p.free {
		busy -= max(0, free-at)
	}
	return busy
}

// processed goes on with a request once a processor has spent a time on it.
func (d *Drive) processed(i int32, r *request, took sim.Time, kind uint16) {
	at := d.processors.work(d.eng.Now(), took)
	r.processed += at - d.eng.Now()
	d.schedule(at, kind, uint32(i))
}
