package notify

import (
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestClock verifies that a reload has the time of the monotonic clock in microseconds, by which systemd distinguishes
// the states before it from those after it, and that a state which cannot be sent is an error.
func TestClock(t *testing.T) {
	name := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	t.Setenv("NOTIFY_SOCKET", name)
	clock := func() int64 {
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
			t.Fatal(err)
		}
		return now.Sec*1e6 + now.Nsec/1e3
	}
	before := clock()
	if err := Reloading(); err != nil {
		t.Fatal(err)
	}
	after := clock()
	b := make([]byte, 1000)
	n, err := l.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(b[:n]), "MONOTONIC_USEC=")
	if at, err := strconv.ParseInt(text, 10, 64); err != nil || at < before || at > after {
		t.Errorf("%q is not from %d to %d us", b[:n], before, after)
	}
	// No datagram holds that much.
	if err := Ready(strings.Repeat("x", 64<<20)); err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("a status of 64 MiB: %v", err)
	}
}
