package ssd

import (
	"math"
	"testing"

	"farflash/block"
	"farflash/numeric/units"
	"farflash/sim"
)

// TestRestByHand: reads arrive after pauses of various lengths at a drive that enters a first state after 10 ms, in 2,
// and leaves it in 5, and a second after 50, in 20, and leaves it in 30. Each is delayed, relative to an immediate one,
// by the rest of entering plus leaving.
func TestRestByHand(t *testing.T) {
	const ms = units.Millisecond
	cfg := round()
	cfg.PowerStates = []PowerState{{After: 10 * ms, Entry: 2 * ms, Exit: 5 * ms, Watts: 2},
		{After: 50 * ms, Entry: 20 * ms, Exit: 30 * ms, Watts: 1}}
	cfg.Energy = &Energy{Idle: 5}
	a := newAsker(t, cfg)
	q := a.open(t, block.QueueConfig{Depth: 16, Weight: 1})
	read := block.Request{Op: block.Read, Offset: 0, Length: 8192}
	first := a.submit(t, q, read)[0]
	took := first.Finished - first.Submitted
	var spent [2]sim.Time
	wakes := uint64(0)
	for _, c := range []struct {
		pause, late sim.Time
		spent       [2]sim.Time
	}{
		{5 * ms, 0, [2]sim.Time{}},
		{9 * ms, 0, [2]sim.Time{}},
		{11 * ms, 1*ms + 5*ms, [2]sim.Time{}},              // one of two milliseconds was left
		{12 * ms, 5 * ms, [2]sim.Time{}},                   // just entered
		{40 * ms, 5 * ms, [2]sim.Time{28 * ms, 0}},         // for 28 ms
		{60 * ms, (10 + 30) * ms, [2]sim.Time{38 * ms, 0}}, // half way into the second
		{170 * ms, 30 * ms, [2]sim.Time{38 * ms, 100 * ms}},
	} {
		// The pause lasts from the completion of one to the doorbell of the next; the link times before and after are
		// the same each time.
		began, _ := a.d.began(sim.Forever / 2)
		// an empty event that only advances the clock
		a.eng.Schedule(a.d.self, a.d.target, began+c.pause-a.d.bellTime, math.MaxUint16, 0)
		a.eng.Run(began + c.pause - a.d.bellTime)
		got := a.submit(t, q, read)[0]
		if late := got.Finished - got.Submitted - took; late != c.late {
			t.Errorf("after %v: late by %v, not %v", c.pause, late, c.late)
		}
		if c.late > 0 {
			wakes++
		}
		s := a.d.Stats()
		for i := range spent {
			spent[i] += c.spent[i]
			if s.Rested[i] != spent[i] {
				t.Errorf("after %v: %v in state %d, not %v", c.pause, s.Rested[i], i, spent[i])
			}
		}
		if want := -(3*spent[0].Seconds() + 4*spent[1].Seconds()); s.Wakes != wakes || math.Abs(s.Energy-want) > 1e-12 {
			t.Errorf("after %v: woken %d times, not %d; %v J, not %v", c.pause, s.Wakes, wakes, s.Energy, want)
		}
	}
	// The rest since then counts, and querying does not wake the drive.
	began, _ := a.d.began(sim.Forever / 2)
	for range 2 {
		if s := a.d.StatsAt(began + 100*ms); s.Rested[0]-spent[0] != 38*ms || s.Rested[1]-spent[1] != 30*ms {
			t.Errorf("since then it rested for %v and %v", s.Rested[0]-spent[0], s.Rested[1]-spent[1])
		}
	}
}
