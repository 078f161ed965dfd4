package patience

import (
	"strings"
	"testing"
	"time"
)

// TestLimit: what works without end is told so by its processor time, what waits by the clock, and what ends in time not at all.
func TestLimit(t *testing.T) {
	told := make(chan string, 9)
	tell := func(why string) {
		select {
		case told <- why:
		default:
		}
	}
	stop := limit(200*time.Millisecond, time.Hour, tell)
	for why := ""; why == ""; {
		select {
		case why = <-told:
			if !strings.Contains(why, "processor time") {
				t.Errorf("of work without end it says %q", why)
			}
		default:
		}
	}
	stop()
	stop = limit(100*time.Millisecond, 300*time.Millisecond, tell)
	if why := <-told; strings.Contains(why, "processor time") {
		t.Errorf("of waiting it says %q", why)
	}
	stop()
	for range 1000 {
		limit(20*time.Millisecond, 20*time.Millisecond, tell)()
	}
	time.Sleep(50 * time.Millisecond)
	for len(told) > 0 {
		if why := <-told; !strings.Contains(why, "taken") {
			t.Error(why)
		}
	}
}
