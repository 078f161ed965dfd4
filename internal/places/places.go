// Package places is for goroutines whose threads make one system call after another and wait in them, without the runtime's poller: loops over a ring, servers that block in pread.
//
// Go's runtime lets as many threads run Go code as it has places (GOMAXPROCS), and one that waits in a system call keeps its place for a while. Two of its habits cost such threads much,
// both found by counting system calls and switches (docs/validation/flash.md). If no place is free, it takes that of each thread that waits for longer than 20 us, which has to get one again
// before it goes on, and looks for such threads every 20 us. And when it has not chosen for 10 ms what a thread runs, it interrupts it with a signal, and then does the same.
//
// Add gives such threads places of their own, and Turns has them give up their turns in time. What it leaves out: threads for what blocks, which the runtime makes by itself.
package places

import (
	"runtime"
	"sync"
	"time"
)

var mu sync.Mutex

// Add gives n places more, or takes them back. It stops all goroutines for a moment.
func Add(n int) {
	mu.Lock()
	defer mu.Unlock()
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + n)
}

// Turns are those of one goroutine. The zero value is ready.
type Turns struct{ last time.Time }

// Pass gives the turn up, if it is time to. To do so more often has threads woken that find nothing to do. Of a goroutine that is locked to its thread it takes two changes of threads.
func (t *Turns) Pass(now time.Time) {
	if now.Sub(t.last) > 9*time.Millisecond {
		t.last = now
		runtime.Gosched()
	}
}
