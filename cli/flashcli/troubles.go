package flashcli

import (
	"log/slog"
	"sync"
	"time"

	"farflash/flash/ctl"
	"farflash/flash/device"
)

// Up to troubleLines are printed in each troublePeriod, so that a device that fails all of its operations does not
// bury everything else.
const (
	troubleLines  = 10
	troublePeriod = 10 * time.Second
)

// troubles logs what goes wrong on a pool's devices, when it does. It is safe for concurrent use.
type troubles struct {
	log     *slog.Logger
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
	where := []any{"device", t.Name, "operation", t.Kind.String()}
	if t.Kind != device.Flush {
		where = append(where, "offset", t.Offset, "bytes", t.Bytes)
	}
	if t.Paged {
		where = append(where, "page", t.Page)
	}
	x.log.Error("an operation of a device failed, or found a damaged page", append(where, "error", t.Err)...)
}

// rest says how many reports were not printed. x is locked.
func (x *troubles) rest() {
	if x.held > 0 {
		x.log.Error("more failed operations of devices, and damaged pages, before this", "count", x.held)
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
