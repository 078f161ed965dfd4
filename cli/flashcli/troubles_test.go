package flashcli

import (
	"strings"
	"testing"
	"time"

	"farflash/flash/ctl"
	"farflash/flash/device"
)

// TestTroubles verifies that a flood of failures is cut short and counted.
func TestTroubles(t *testing.T) {
	var text strings.Builder
	log, err := logger("text", &text)
	if err != nil {
		t.Fatal(err)
	}
	lines := func() (all []string) {
		for line := range strings.Lines(text.String()) {
			all = append(all, line[len("farflash: 2006-01-02 15:04:05.000 "):])
		}
		return all
	}
	now := time.Unix(1000, 0)
	x := troubles{now: func() time.Time { return now }, log: log}
	one := ctl.Trouble{Name: "pool.img", Kind: device.Read, Offset: 8192, Bytes: 4096, Page: 7, Paged: true,
		Err: ctl.ErrDamaged}
	for range 500 {
		x.report(one)
	}
	if got := lines(); len(got) != troubleLines || x.all != 500 || got[0] != "error: an operation of a device failed, or "+
		"found a damaged page: "+ctl.ErrDamaged.Error()+" (device pool.img, operation read, offset 8192, bytes 4096, page 7)\n" {
		t.Errorf("%d lines of %d reports: %q", len(got), x.all, got)
	}
	now = now.Add(troublePeriod)
	x.report(one)
	if got := lines(); len(got) != troubleLines+2 || !strings.HasPrefix(got[troubleLines], "error: more failed") ||
		!strings.HasSuffix(got[troubleLines], "(count 490)\n") {
		t.Errorf("%q", got[troubleLines:])
	}
	for range 30 {
		x.report(one)
	}
	was := len(lines())
	if n, got := x.end(), lines(); n != 531 || len(got) != was+1 || !strings.HasSuffix(got[was], "(count 21)\n") {
		t.Errorf("at the end, %d reports: %q", n, got[was:])
	}
	if x.end(); len(lines()) != was+1 {
		t.Errorf("said twice: %q", lines()[was:])
	}
}
