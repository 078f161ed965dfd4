package flashcli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"farflash/flash/ctl"
	"farflash/flash/device"
)

// TestTroubles verifies that a flood of failures is cut short and counted.
func TestTroubles(t *testing.T) {
	var lines []string
	now := time.Unix(1000, 0)
	x := troubles{now: func() time.Time { return now },
		note: func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }}
	one := ctl.Trouble{Name: "pool.img", Kind: device.Read, Offset: 8192, Page: 7, Paged: true, Err: ctl.ErrDamaged}
	for range 500 {
		x.report(one)
	}
	if len(lines) != troubleLines || x.all != 500 ||
		lines[0] != "pool.img: read of the pool's page 7 at offset 8192: "+ctl.ErrDamaged.Error() {
		t.Errorf("%d lines of %d reports: %q", len(lines), x.all, lines)
	}
	now = now.Add(troublePeriod)
	x.report(one)
	if len(lines) != troubleLines+2 || !strings.HasPrefix(lines[troubleLines], "490 more") {
		t.Errorf("%q", lines[troubleLines:])
	}
	for range 30 {
		x.report(one)
	}
	was := len(lines)
	if n := x.end(); n != 531 || len(lines) != was+1 || !strings.HasPrefix(lines[was], "21 more") {
		t.Errorf("at the end, %d reports: %q", n, lines[was:])
	}
	if x.end(); len(lines) != was+1 {
		t.Errorf("said twice: %q", lines[was:])
	}
}
