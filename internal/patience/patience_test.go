package patience

import (
	"strings"
	"testing"
	"time"
)

// TestWatch: a busy loop exceeds its CPU time, a blocked input its wall time, and an input that ends in time is not
// reported.
func TestWatch(t *testing.T) {
	told := make(chan string, 9)
	tell := func(why string) {
		select {
		case told <- why:
		default:
		}
	}
	stop := Watch(200*time.Millisecond, time.Hour, tell)
	for why := ""; why == ""; {
		select {
		case why = <-told:
			if !strings.Contains(why, "CPU time") {
				t.Errorf("of work without end it says %q", why)
			}
		default:
		}
	}
	stop()
	stop = Watch(100*time.Millisecond, 300*time.Millisecond, tell)
	if why := <-told; strings.Contains(why, "CPU time") {
		t.Errorf("of waiting it says %q", why)
	}
	stop()
	for range 1000 {
		Watch(20*time.Millisecond, 20*time.Millisecond, tell)()
	}
	time.Sleep(50 * time.Millisecond)
	for len(told) > 0 {
		if why := <-told; !strings.Contains(why, "taken") {
			t.Error(why)
		}
	}
}
