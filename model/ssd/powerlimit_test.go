package ssd

import (
	"math"
	"testing"

	"farflash/block"
	"farflash/numeric/units"
	"farflash/sim"
)

// TestGovernor: 2 W to spend yield 1 J every half second; a window of a second saves 2 J.
func TestGovernor(t *testing.T) {
	const s = units.Second
	g := governor{on: true, each: float64(s) / 2, window: s}
	for i, c := range []struct {
		at     sim.Time
		joules float64
		want   sim.Time
	}{
		{0, 1, 0}, {0, 1, 0}, {0, 1, 0}, // 2 J saved, and one that may start when they are used up
		{0, 1, s / 2}, {0, 2, s}, {s, 1, 2 * s},
		{10 * s, 2, 10 * s}, {10 * s, 1, 10 * s}, {10 * s, 1, 10*s + s/2},
	} {
		if got := g.admit(c.at, c.joules); got != c.want {
			t.Errorf("operation %d begins at %v, not %v", i, got, c.want)
		}
	}
	if g.asked != 9 || g.held != 4 {
		t.Errorf("%d of %d were held back", g.held, g.asked)
	}
	g.draw(20*s, 4)
	if got := g.admit(20*s, 1); got != 21*s {
		t.Errorf("after 4 J were drawn an operation begins at %v", got)
	}
}

// TestPowerLimitReached verifies that a drive that could do more does as many reads, or programs with their erases, as
// there is energy for, and draws exactly the limit; and that one that could not draws as much as without a limit, and
// no operation waits.
func TestPowerLimitReached(t *testing.T) {
	for _, op := range []block.Op{block.Read, block.Write} {
		for _, window := range []units.Duration{0, 100 * us} {
			cfg := round()
			cfg.Geometry.Channels, cfg.Geometry.ChipsPerChannel = 4, 2
			cfg.Energy = &Energy{Read: 20e-6, Program: 200e-6, Erase: 1e-3, TransferPerByte: 1e-9, LinkPerByte: 2e-9,
				Idle: 1}
			cfg.Initial = InitialFormula
			power := func(limit *PowerLimit) (watts, rate float64, s Stats) {
				cfg.PowerLimit = limit
				a := newAsker(t, cfg)
				q := a.open(t, block.QueueConfig{Depth: 1024, Weight: 1})
				const n = 1000
				requests := make([]block.Request, n)
				for i := range requests {
					requests[i] = block.Request{Op: op, Offset: int64(i) * 8192, Length: 8192}
				}
				for range 10 {
					a.submit(t, q, requests...)
				}
				s = a.d.Stats()
				return s.Energy/s.Span.Seconds() + cfg.Energy.Idle, 10 * n / s.Span.Seconds(), s
			}
			free, most, s := power(nil)
			if s.PowerAsked != 0 {
				t.Errorf("%v: without a limit %d operations asked", op, s.PowerAsked)
			}
			limit := 1 + (free-1)/2
			watts, rate, s := power(&PowerLimit{Watts: limit, Window: window})
			if math.Abs(watts/limit-1) > .02 || math.Abs((watts-1)/(free-1)*most/rate-1) > .01 ||
				s.PowerHeld*10 < s.PowerAsked*9 && window == 0 {
				t.Errorf("%v, window %v: limited to %v W it draws %v and does %v a second; not limited %v and %v; %d "+
					"of %d waited", op, window, limit, watts, rate, free, most, s.PowerHeld, s.PowerAsked)
			}
			// Without a window, dies that start together wait for one another.
			if watts, rate, s := power(&PowerLimit{Watts: 10 * free, Window: window}); math.Abs(rate/most-1) > .01 ||
				window > 0 && (watts != free || rate != most || s.PowerHeld > 0) {
				t.Errorf("%v, window %v: with more than enough it draws %v and does %v a second; not limited %v and "+
					"%v; %d waited", op, window, watts, rate, free, most, s.PowerHeld)
			}
		}
	}
}
