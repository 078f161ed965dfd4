package bench

import (
	"runtime"
	"time"
)

// turns are those of a goroutine whose thread makes one system call after another and waits in them, not through the runtime. When the runtime has not chosen for 10 ms what such a
// thread runs, it interrupts it with a signal, takes its place away in each system call, and looks every 20 us whether it has one again. Giving the turn up before that spares all of it;
// doing so more often has threads woken that find nothing to do.
type turns struct{ last time.Time }

// pass gives the turn up, if it is time.
func (t *turns) pass(now time.Time) {
	if now.Sub(t.last) > 9*time.Millisecond {
		t.last = now
		runtime.Gosched()
	}
}
