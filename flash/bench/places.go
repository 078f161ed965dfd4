package bench

import (
	"runtime"
	"sync"
	"time"
)

// Go's runtime lets GOMAXPROCS threads run Go code at a time, each holding a P, and a thread blocked in a system call
// keeps its P for a while. Two of the runtime's habits are expensive for threads that make one blocking call after
// another; both were found by counting system calls and context switches (docs/validation/flash.md). First, if no P is
// free, it retakes the P of each thread that has been blocked for longer than 20 us, checking every 20 us, and the
// thread has to acquire one again before it continues. Second, after a goroutine has run for 10 ms without a scheduling
// decision, it preempts the thread with a signal, and the same happens again.

var placesMu sync.Mutex

// addPlaces adds n Ps for such threads, or removes -n. It stops the world briefly.
func addPlaces(n int) {
	placesMu.Lock()
	defer placesMu.Unlock()
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + n)
}

// turns times the voluntary yields of one goroutine. The zero value is ready to use.
type turns struct{ last time.Time }

// pass yields if it is time to, before the runtime would preempt, and reports whether it did. Yielding more often would
// wake threads without work for them.
func (t *turns) pass(now time.Time) bool {
	due := now.Sub(t.last) > 9*time.Millisecond
	if due {
		t.last = now
		runtime.Gosched()
	}
	return due
}
