package server_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"farflash/flash/verbs"
	"farflash/flash/verbs/control"
)

// TestAbsent verifies the error of a client that opens or stats a name which no export has: the name and the nearest
// one, or those that there are. A name that no file can have is a malformed request. The connection stays usable.
func TestAbsent(t *testing.T) { ways(t, testAbsent) }

func testAbsent(t *testing.T) {
	d := begin(t, nil)
	c := d.dial()
	ask := map[string]func(string) error{
		"open": func(name string) error { _, err := c.Open(name, verbs.RemoteRead); return err },
		"stat": func(name string) error { _, _, err := c.Stat(name); return err },
	}
	for what, do := range ask {
		for _, x := range []struct {
			name, says string
			want       error
		}{
			{"disj", "client: disj: file does not exist; did you mean disk?", fs.ErrNotExist},
			{"/lokced/", "did you mean locked?", fs.ErrNotExist},
			{"something", "client: something: file does not exist; the exports are disk, locked, other",
				fs.ErrNotExist},
			{"..", "client: ..: malformed request", control.Malformed},
			{"a\nb", "malformed request", control.Malformed},
			{"", "malformed request", control.Malformed},
			{strings.Repeat("n", control.MaxName+1), "1025 bytes; the maximum is 1024", nil},
			{strings.Repeat("n", 1<<17), "131072 bytes; the maximum is 1024", nil},
		} {
			if err := do(x.name); err == nil || x.want != nil && !errors.Is(err, x.want) ||
				!strings.Contains(err.Error(), x.says) {
				t.Errorf("%s of %.20q: %v, want %q", what, x.name, err, x.says)
			}
		}
	}
	if err := d.open(c, "disk").Close(); err != nil {
		t.Error(err)
	}
}
