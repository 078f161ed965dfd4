package bench

import (
	"runtime"
	"time"
)

// turns are those of a goroutine whose thread makes one system call after another, and waits in none of them through the runtime. When the runtime has not chosen what such a thread
// runs for 10 ms, it interrupts it with a signal, takes its place away at each system call, and looks every 20 us whether it has it again. Giving the turn up before that spares all of it.
type turns struct{ last time.Time }

// pass gives the turn up, if it is time.
func (t *turns) pass(now time.Time) {
	if now.Sub(t.last) > 5*time.Millisecond {
		t.last = now
		runtime.Gosched()
	}
}
