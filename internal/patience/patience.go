// Package patience bounds, in tests, the CPU time of one input: a parser or model that hangs on an input fails with
// that input, instead of looking like the end of a fuzzer's time budget.
//
// Limit is for fuzz targets, Watch for other budgets. It leaves out the time limit of a whole test, which go test
// provides.
package patience

import (
	"fmt"
	"sync"
	"time"

	"farflash/internal/usage"
)

const (
	// processor is the CPU time that one input of a fuzz target may use. The slowest known input uses a hundredth of
	// it.
	processor = 5 * slow * time.Second
	// wall is the limit in wall time, generous because a busy machine is slow. It catches inputs that block without
	// using CPU.
	wall = 2 * time.Minute
)

// Limit bounds the current input of a fuzz target:
//
//	defer patience.Limit()()
//
// Beyond the limit the process panics, which the fuzzer reports with the input.
func Limit() (done func()) { return Watch(processor, wall, func(why string) { panic(why) }) }

// Watch calls tooLong once, on its own goroutine, when the process has used about the given CPU time, or the given wall
// time has passed, since the call; done stops it. The first quarter of the CPU budget is measured in wall time, so that
// an input of microseconds costs one timer and no system call.
func Watch(processor, wall time.Duration, tooLong func(why string)) (done func()) {
	w := &watch{processor: processor, wall: wall, began: time.Now(), tooLong: tooLong}
	w.again(processor / 4)
	return w.stop
}

// watch bounds one input.
type watch struct {
	processor, wall time.Duration
	began           time.Time
	tooLong         func(why string)

	mu     sync.Mutex // guards the fields below, because the timer runs on its own goroutine
	timer  *time.Timer
	over   bool
	looked bool
	used   time.Duration // CPU time at the first look
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
	now := usage.CPU()
	if !w.looked {
		w.looked, w.used = true, now
	}
	switch waited := time.Since(w.began); {
	case now-w.used > w.processor*3/4:
		w.tooLong(fmt.Sprintf("the input took more than %v of CPU time", w.processor))
	case waited > w.wall:
		w.tooLong(fmt.Sprintf("the input took %v", waited.Round(time.Second)))
	default:
		w.again(w.processor / 8)
	}
}
