package experiment

import (
	"context"
	"fmt"

	"farflash/sim"
)

// Watch has an engine stop soon after a context has ended, whatever the models are at, and when models go on and on while nothing comes of it: timers that run out in turn,
// packets that are sent again and never taken, events that have their like follow at the same time. Nothing moves then that somebody waits for, and nothing is to come that would
// change it. It looks once in some thousands of events.
//
// Where a run is to end at a time it does, whatever comes of it: then only a clock that stands still counts.
type Watch struct {
	// Moves changes whenever something begins or ends that counts (a request, a flow, a chunk), and with what is done for it: payload that arrives, operations of flash. nil: nobody looks.
	Moves func() uint64
	// Waits says who waits for what; nothing if nobody does.
	Waits func() string
	// Coming reports whether something new is to happen by itself: requests that come by the clock, a link that will be mended. nil is never.
	Coming func() bool
	// Patience is for how long nothing may move; nil is a second.
	Patience func() sim.Time
	Until    sim.Time // when the run ends; 0 if not by time

	seen    uint64   // what had moved
	at      sim.Time // when it was seen to last
	events  uint64
	stalled string
}

// What a run may do while nothing moves: so many events, for Patience; or, in a time of less than a picosecond each, so many.
const (
	vainEvents     = 1 << 21
	standingEvents = 1 << 23
)

// defaultPatience is far longer than any erase, pause or turn at a packet's rate.
const defaultPatience = sim.Time(1e12)

// Attend begins to look after an engine that is about to run.
func (w *Watch) Attend(ctx context.Context, eng *sim.Engine) {
	eng.OnPulse(func() {
		if ctx.Err() != nil || w.Look(eng.Now(), eng.Events()) {
			eng.Stop()
		}
	})
}

// Look reports whether a run is stalled that has come to a time, after so many events.
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
		if span < patience || w.Coming != nil && w.Coming() {
			return false
		}
	}
	who := w.Waits()
	if who == "" {
		w.at, w.events = now, events
		return false
	}
	w.stalled = fmt.Sprintf("stalled at %v: nothing has come of the last %d events, since %v: %s", now, n, w.at, who)
	return true
}

// Stalled says what waits for what in a run that was found to be stalled; nothing otherwise.
func (w *Watch) Stalled() string { return w.stalled }
