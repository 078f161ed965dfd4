package uring

import (
	"testing"
	"time"
)

// TestSpinning verifies that events at intervals within the limit are polled for, and later ones are not, except once
// after the interval has grown.
func TestSpinning(t *testing.T) {
	const limit = 100 * time.Microsecond
	now := time.Unix(1000, 0)
	var s spinning
	for _, x := range []struct {
		after time.Duration // the preceding event
		worth bool          // to poll, half the limit after this event
	}{
		{time.Second, false}, // the first
		{limit, true},
		{limit / 2, true},
		{limit + 1, false}, // it was polled for unsuccessfully
		{10 * limit, false},
		{limit / 3, true},
	} {
		now = now.Add(x.after)
		s.came(now, limit)
		if got := s.worth(now.Add(limit/2), limit); got != x.worth {
			t.Errorf("%v after what came before: worth looking is %v", x.after, got)
		}
		if s.worth(now.Add(limit), limit) {
			t.Errorf("%v after what came before: it looks for longer than %v", x.after, limit)
		}
	}
	if s.came(now, 0); s.worth(now, 0) {
		t.Error("it looks without a limit")
	}
}
