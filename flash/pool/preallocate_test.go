package pool

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestPreallocate verifies that all space of a new file is allocated and zero outside of the pool's own structures, and
// that an error of the callback leaves no file.
func TestPreallocate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pool")
	stop := errors.New("stop")
	o := DefaultOptions()
	o.Preallocate = func(done, total int64) error { return stop }
	if _, err := Format(o, 24<<20, path); !errors.Is(err, stop) {
		t.Errorf("stopped: %v", err)
	}
	if state, err := Probe(path); state != Missing || err != nil {
		t.Errorf("after a stop: %v, %v", state, err)
	}
	last, whole := int64(0), int64(0)
	o.Preallocate = func(done, total int64) error {
		if done <= last {
			t.Errorf("%d bytes after %d", done, last)
		}
		last, whole = done, total
		return nil
	}
	if _, err := Format(o, 24<<20, path); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if last != whole || whole != st.Size() {
		t.Errorf("%d of %d bytes were written; the file has %d", last, whole, st.Size())
	}
	if got := st.Sys().(*syscall.Stat_t).Blocks * 512; got < st.Size() {
		t.Errorf("%d of %d bytes are allocated", got, st.Size())
	}
	opened, _, err := Open(DefaultOptions(), path)
	if err != nil {
		t.Fatal(err)
	}
	if r := opened.Check(true); len(r.Violations) > 0 {
		t.Error(r.Violations)
	}
	if err := opened.Close(); err != nil {
		t.Error(err)
	}
}
