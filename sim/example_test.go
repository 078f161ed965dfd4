package sim_test

import (
	"fmt"

	"farflash/numeric/rng"
	"farflash/sim"
)

// A link sends a packet every microsecond, and a watchdog barks when the link has been silent for three.
type link struct {
	engine   *sim.Engine
	self     sim.Component
	target   sim.Target
	watchdog sim.Timer
	jitter   rng.Stream
	arrived  sim.Probe[uint32]
}

const (
	packet uint16 = iota // Arg is its number
	silence
)

const microsecond sim.Time = 1e6

func (l *link) Handle(ev sim.Event) {
	switch ev.Kind {
	case packet:
		l.arrived.Fire(ev.Arg)
		l.engine.Arm(l.watchdog, ev.At+3*microsecond)
		if ev.Arg < 3 {
			wait := microsecond + sim.Time(l.jitter.IntN(1000))
			l.engine.Schedule(l.self, l.target, ev.At+wait, packet, ev.Arg+1)
		}
	case silence:
		fmt.Printf("silent since %.1f us\n", float64(ev.At-3*microsecond)/1e6)
	}
}

func Example() {
	e := sim.New()
	l := &link{engine: e, self: e.NewComponent(), jitter: rng.NewStream(1, "link/jitter")}
	l.target = e.AddHandler(l)
	l.watchdog = e.NewTimer(l.self, l.target, silence, 0)
	l.arrived = func(n uint32) { fmt.Printf("packet %d at %.1f us\n", n, float64(e.Now())/1e6) }

	e.Schedule(l.self, l.target, 0, packet, 0)
	fmt.Println(e.Run(sim.Forever), "events")
	// Output:
	// packet 0 at 0.0 us
	// packet 1 at 1.0 us
	// packet 2 at 2.0 us
	// packet 3 at 3.0 us
	// silent since 3.0 us
	// 5 events
}
