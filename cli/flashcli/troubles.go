package flashcli

import (
	"sync"
	"time"

	"farflash/flash/ctl"
)

// Up to troubleLines are printed in each troublePeriod, so that a device that fails all of its operations does not
// bury everything else.
const (
	troubleLines  = 10
	troublePeriod = 10 * time.Second
)

// troubles prints what goes wrong on a pool's devices, when it does. It is safe for concurrent use.
type troubles struct {
	note    func(format string, args ...any)
	now     func() time.Time
	mu      sync.Mutex
	since   time.Time // the start of the period
	printed int       // in the period
	held    int64     // not printed since the last line
	all     int64
}

// report is a ctl.Config.Trouble.
func (x *troubles) report(t ctl.Trouble) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.all++
	if now := x.now(); now.Sub(x.since) >= troublePeriod {
		x.since, x.printed = now, 0
	}
	if x.printed++; x.printed > troubleLines {
		x.held++
		return
	}
	x.rest()
	x.note("%v", t)
}

// rest says how many reports were not printed. x is locked.
func (x *troubles) rest() {
	if x.held > 0 {
		x.note("%d more failed operations of devices, and damaged pages, before this", x.held)
		x.held = 0
	}
}

// end returns the number of reports, after it has said how many were not printed.
func (x *troubles) end() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.rest()
	return x.all
}
