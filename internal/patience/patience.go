// Package patience is for tests only: it ends a test whose present input takes too long, so that what a parser or a machine hangs on is a failure with that input, and is not
// taken for the end of the time that a fuzzer was given.
//
// Limit is for one input. What it leaves out: how long a whole test may take, which go test knows.
package patience

import (
	"fmt"
	"sync"
	"syscall"
	"time"
)

const (
	// Processor is how much processor time an input may take. The slowest input that is known takes a hundredth of it.
	Processor = 5 * time.Second
	// Wall is how long it may take at all, on a machine that is busy with other things or with an input that waits for what never comes.
	Wall = 2 * time.Minute
)

// Limit begins to watch an input, and returns what ends that:
//
//	defer patience.Limit()()
//
// When the input has taken too long the process panics, which a fuzzer takes for a failure and keeps the input of.
func Limit() (done func()) { return limit(Processor, Wall, func(why string) { panic(why) }) }

func limit(processor, wall time.Duration, tooLong func(why string)) (done func()) {
	w := &watch{processor: processor, wall: wall, began: time.Now(), tooLong: tooLong}
	w.again(processor / 4)
	return w.stop
}

// watch is of one input. The system is asked for processor time only when the input has taken long: most take microseconds.
type watch struct {
	processor, wall time.Duration
	began           time.Time
	tooLong         func(why string)

	mu     sync.Mutex // of what follows: the timer has a goroutine of its own
	timer  *time.Timer
	over   bool
	looked bool
	used   time.Duration // when it was first looked at
}

func (w *watch) again(after time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.timer = time.AfterFunc(after, w.look)
	}
}

func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.timer.Stop()
}

func (w *watch) look() {
	now := used()
	if !w.looked {
		w.looked, w.used = true, now
	}
	switch waited := time.Since(w.began); {
	case now-w.used > w.processor*3/4:
		w.tooLong(fmt.Sprintf("this input has taken more than %v of processor time", w.processor))
	case waited > w.wall:
		w.tooLong(fmt.Sprintf("this input has taken %v", waited.Round(time.Second)))
	default:
		w.again(w.processor / 8)
	}
}

// used is the processor time of this process.
func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
