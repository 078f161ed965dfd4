package experiment

import (
	"context"
	"fmt"

	"farflash/sim"
)

// Watch stops an engine soon after its context is cancelled, and detects livelock: events keep firing without progress,
// while something is waiting and no scheduled change is due. With measure.until only a clock that stands still counts.
type Watch struct {
	// Moves is a progress counter: it changes when a request, flow or chunk starts or completes, when payload arrives,
	// and with flash operations. nil disables stall detection.
	Moves func() uint64
	Waits func() string // Waits describes the waiters and their obstacles; "" if there are none.
	// Pending reports whether a change is scheduled: an open-loop arrival, a link repair. nil: never.
	Pending func() bool
	// Patience is the longest simulated time without progress that is not a stall; nil is one second.
	Patience func() sim.Time
	Until    sim.Time // time limit of the run; 0: none

	seen    uint64   // Moves at the last progress
	at      sim.Time // of the last progress
	events  uint64
	stalled string
}

// A run without progress is stalled after vainEvents events and Patience, or after standingEvents events that advance
// the clock by less than a picosecond each.
const (
	vainEvents     = 1 << 21
	standingEvents = 1 << 23
)

// defaultPatience far exceeds any erase, pause or packet time.
const defaultPatience = sim.Time(1e12)

// Attend installs the watch on an engine.
func (w *Watch) Attend(ctx context.Context, eng *sim.Engine) {
	eng.OnPulse(func() {
		if ctx.Err() != nil || w.Look(eng.Now(), eng.Events()) {
			eng.Stop()
		}
	})
}

// Look reports whether the run is stalled at this time, after these events.
func (w *Watch) Look(now sim.Time, events uint64) bool {
	if w.Moves == nil {
		return false
	}
	if m := w.Moves(); m != w.seen || events < w.events {
		w.seen, w.at, w.events = m, now, events
		return false
	}
	n, span := events-w.events, now-w.at
	if stands := n >= standingEvents && span < sim.Time(n); !stands {
		if w.Until > 0 || n < vainEvents {
			return false
		}
		patience := defaultPatience
		if w.Patience != nil {
			patience = w.Patience()
		}
		if span < patience || w.Pending != nil && w.Pending() {
			return false
		}
	}
	who := w.Waits()
	if who == "" {
		w.at, w.events = now, events
		return false
	}
	w.stalled = fmt.Sprintf("stalled at %v: the last %d events, since %v, completed no request: %s", now, n, w.at, who)
	return true
}

// Stalled describes the stall that was found; "" if there was none.
func (w *Watch) Stalled() string { return w.stalled }
