package bench

import (
	"runtime"
	"testing"
	"time"

	"farflash/numeric/rng"
)

// TestTurns verifies that a goroutine yields after nine milliseconds, before the runtime would preempt it after ten.
func TestTurns(t *testing.T) {
	var x turns
	now := time.Now()
	for _, c := range []struct {
		after time.Duration
		want  bool
	}{{0, true}, {time.Millisecond, false}, {9 * time.Millisecond, false}, {9*time.Millisecond + 1, true},
		{10 * time.Millisecond, false}, {19 * time.Millisecond, true}} {
		if got := x.pass(now.Add(c.after)); got != c.want {
			t.Errorf("after %v: %v", c.after, got)
		}
	}
}

// TestPlaces verifies that a client thread has its own P while it runs, and no longer.
func TestPlaces(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	lanes, clients := prompts(t, 1, 1)
	within := 0
	clients[0].begins = func() { within = runtime.GOMAXPROCS(0) }
	th, err := newThread(lanes, 0, rng.NewStream(1, "arrivals"), false)
	if err != nil {
		t.Fatal(err)
	}
	if err := th.run(); err != nil {
		t.Fatal(err)
	}
	if err := th.close(); err != nil {
		t.Fatal(err)
	}
	if after := runtime.GOMAXPROCS(0); within != before+1 || after != before {
		t.Errorf("%d places before, %d while it ran, %d after", before, within, after)
	}
}
