package notify

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
)

// TestNotify verifies the datagrams, to a socket with a path and to an abstract one, and that nothing happens without.
func TestNotify(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	if err := Ready("without a manager"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{filepath.Join(t.TempDir(), "s"), "@farflash-" + filepath.Base(t.TempDir()) + t.Name()} {
		l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv("NOTIFY_SOCKET", name)
		for want, f := range map[string]func() error{
			"READY=1\nSTATUS=serving 2 exports": func() error { return Ready("serving\n2 exports") },
			"RELOADING=1\nMONOTONIC_USEC=":      Reloading,
			"STOPPING=1":                        Stopping,
		} {
			if err := f(); err != nil {
				t.Fatal(err)
			}
			b := make([]byte, 1000)
			n, err := l.Read(b)
			if got := string(b[:n]); err != nil || !strings.HasPrefix(got, want) {
				t.Errorf("%q, %v; want %q", got, err, want)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if err := Stopping(); err == nil {
			t.Error("a manager that is gone was reached")
		}
	}
}
