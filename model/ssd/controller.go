package ssd

import (
	"farflash/numeric/units"
	"farflash/sim"
)

// Controller is the time that the drive's processors spend on commands, which share them first come, first served.
// Without it, a command takes only the time of its link, DRAM and flash.
type Controller struct {
	Processors int            // Processors is the number of commands processed at once.
	Command    units.Duration // Command is the processor time to start a command.
	Completion units.Duration // Completion is the processor time to complete a command.
}

// DefaultController is one processor; its times must be given.
func DefaultController() Controller { return Controller{Processors: 1} }

// mostProcessors bounds the processors, because each command searches them for the one that is free first.
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
		"the processors have no work; give command or completion, such as 1us")
	return bad.Err()
}

// processors are the servers of the queue of commands to be processed. The queue is served in order, so each command's
// completion time is known on arrival.
type processors struct {
	free []sim.Time // when each has completed all work given to it
	busy sim.Time   // total busy time, scheduled work included
}

// work gives work that arrives now to the processor that is free first, and returns its completion time.
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

// busyUntil returns how long processors were busy up to a time at, which must not be before the present. From the
// present on, each processor is busy without a gap until it is free.
func (p *processors) busyUntil(at sim.Time) sim.Time {
	busy := p.busy
	for _, free := range p.free {
		busy -= max(0, free-at)
	}
	return busy
}

// processed resumes a request with an event of the given kind once a processor has spent the given time on it.
func (d *Drive) processed(i int32, r *request, took sim.Time, kind uint16) {
	at := d.processors.work(d.eng.Now(), took)
	r.processed += at - d.eng.Now()
	d.schedule(at, kind, uint32(i))
}
