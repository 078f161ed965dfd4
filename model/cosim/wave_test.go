package cosim_test

import (
	"slices"
	"testing"

	"farflash/model/cosim"
	"farflash/numeric/units"
	"farflash/sim"
	"farflash/workload"
)

// A closed loop pauses once the given number of requests have completed, and not after its last one.
func TestThink(t *testing.T) {
	b := newBench(t, nil, cosim.Flow{Source: workload.Slice(many(12)), Outstanding: 4, Think: 100 * us, ThinkEvery: 4})
	b.run(t)
	for i, at := range b.dev.at {
		if want := sim.Time(i/4) * 180 * us; at != want {
			t.Errorf("request %d is issued at %v instead of %v", i, at, want)
		}
	}
	if b.eng.Now() != 440*us {
		t.Errorf("it ends at %v", b.eng.Now())
	}
	// Three at a time, a pause after every second: at most two are ever outstanding.
	b = newBench(t, nil,
		cosim.Flow{Source: workload.Slice(many(5)), Outstanding: 3, Think: 20 * us, ThinkEvery: 2, Until: 250 * us})
	b.run(t)
	if want := []sim.Time{0, 0, 100 * us, 100 * us, 200 * us}; !slices.Equal(b.dev.at, want) {
		t.Errorf("requests are issued at %v instead of %v", b.dev.at, want)
	}
}

// Flows of a wave start when those of the previous one have ended, and their times count from there.
func TestWaves(t *testing.T) {
	b := newBench(t, nil,
		cosim.Flow{Source: workload.Slice(reads(0, 50*us))},
		cosim.Flow{Source: workload.Slice(many(2)), Outstanding: 1, Start: 5 * us, Wave: 1},
		cosim.Flow{Source: workload.Slice(reads(0, 20*us)), Until: 10 * us, Wave: 1},
		cosim.Flow{Source: workload.Slice(nil), Wave: 2},
		cosim.Flow{Source: workload.Slice(reads(7 * us)), Wave: 3})
	idle := 0
	b.host.OnIdle = func(sim.Time) { idle++ }
	b.run(t)
	if want := []sim.Time{0, 50 * us, 130 * us, 135 * us, 215 * us, 302 * us}; !slices.Equal(b.dev.at, want) {
		t.Errorf("requests are issued at %v instead of %v", b.dev.at, want)
	}
	if idle != 1 || b.eng.Now() != 382*us {
		t.Errorf("the host was idle %d times, and the end is at %v", idle, b.eng.Now())
	}
	// A first wave without requests, and one whose Until leaves none.
	b = newBench(t, nil, cosim.Flow{Source: workload.Slice(nil)},
		cosim.Flow{Source: workload.Slice(reads(30 * us)), Until: 10 * us, Wave: 1},
		cosim.Flow{Source: workload.Slice(many(1)), Wave: 2})
	b.run(t)
	if len(b.dev.at) != 1 || b.dev.at[0] != 0 { // no flow waits for a request that never comes
		t.Errorf("requests are issued at %v", b.dev.at)
	}
}

// The clock does not run on to requests after a flow's end, nor to the end of a pause there; flows that wait for it
// start at its last completion.
func TestUntilEnds(t *testing.T) {
	for name, f := range map[string]cosim.Flow{
		"open":  {Source: workload.Slice(reads(0, 50*us, 3600*units.Second)), Until: 100 * us},
		"later": {Source: workload.Slice(reads(0, 40*us, 3600*units.Second)), Start: 10 * us, Until: 100 * us},
		"pause": {Source: workload.Slice(many(5)), Outstanding: 1, Think: 3600 * units.Second, ThinkEvery: 1,
			Until: 100 * us},
	} {
		b := newBench(t, nil, f, cosim.Flow{Source: workload.Slice(many(1)), Outstanding: 1, Wave: 1})
		idle := sim.Time(0)
		b.host.OnIdle = func(at sim.Time) { idle = at }
		b.run(t)
		last := b.samples[len(b.samples)-1]
		if before := b.samples[len(b.samples)-2]; last.Flow != 1 || last.Arrival != before.Finished ||
			b.eng.Now() != last.Finished || idle != last.Finished {
			t.Errorf("%s: the flow behind it begins at %v, when the last request had ended at %v, and the end is at %v", name, last.Arrival, before.Finished, b.eng.Now())
		}
	}
}
