package bench

import (
	"runtime"
	"sync"
	"time"
)

// Go's runtime lets as many threads run Go code as it has places (GOMAXPROCS), and one that waits in a system call
// keeps its place for a while. Two of its habits cost threads that make one call after another and wait in them; both
// were found by counting system calls and switches (docs/validation/flash.md). If no place is free, it takes that of
// each thread that waits for longer than 20 us, which has to get one again before it goes on, and looks for such
// threads every 20 us. And when it has not chosen for 10 ms what a thread runs, it interrupts it with a signal, and
// then does the same.

var placesMu sync.Mutex

// addPlaces gives such threads n places of their own, or takes them back. It stops all goroutines for a moment.
func addPlaces(n int) {
	placesMu.Lock()
	defer placesMu.Unlock()
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + n)
}

// turns are those of one goroutine, which gives them up in time. The zero value is ready.
type turns struct{ last time.Time }

// pass gives the turn up, if it is time to, and reports whether it did. To do so more often has threads woken that
// find nothing to do.
func (t *turns) pass(now time.Time) bool {
	due := now.Sub(t.last) > 9*time.Millisecond
	if due {
		t.last = now
		runtime.Gosched()
	}
	return due
}
