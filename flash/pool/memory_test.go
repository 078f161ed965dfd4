package pool

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestAffordable verifies that a pool whose map no machine can hold is refused, and leaves no file behind.
func TestAffordable(t *testing.T) {
	if err := affords([]int64{8 << 40, 8 << 40}, 32<<30); err != nil {
		t.Error(err)
	}
	if err := affords([]int64{8 << 40, 9 << 40}, 32<<30); err == nil || !strings.Contains(err.Error(), "34GiB") {
		t.Errorf("17 TiB with 32 GiB of memory: %v", err)
	}
	path := filepath.Join(t.TempDir(), "large")
	if _, err := Format(DefaultOptions(), 1<<49, path); err == nil || !strings.Contains(err.Error(), "of memory") {
		t.Errorf("512 TiB: %v", err)
	}
	if state, err := Probe(path); state != Missing || err != nil {
		t.Errorf("%v, %v is left", state, err)
	}
}
