package trace

import (
	"fmt"
	"io"
	"testing"

	"farflash/internal/hostile"
	"farflash/workload"
)

// TestArguments verifies that nil readers, writers and sources, and formats that do not exist, are errors.
func TestArguments(t *testing.T) {
	refused := hostile.Check(t, "trace")
	refused("nil reader", func() error { _, err := NewReader(nil, "x", Options{}); return err }, "reader is nil")
	refused("nil writer", func() error { _, err := NewWriter(nil, MSR, WriterOptions{}); return err }, "writer is nil")
	refused("no format", func() error { _, err := NewWriter(io.Discard, 255, WriterOptions{}); return err }, "")
	w, err := NewWriter(io.Discard, MSR, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	refused("negative record", func() error { return w.Write(&workload.Record{Offset: -1, Size: -1}) },
		"-1 bytes at -1")
	if len(names()) != int(formatCount)-1 || len(Formats()) != int(formatCount)-1 {
		t.Errorf("%d formats are named, of %d: %v", len(names()), formatCount-1, names())
	}
	for _, f := range []Format{formatCount, 255} {
		if f.Layout() != "" || f.String() != fmt.Sprintf("format(%d)", uint8(f)) {
			t.Errorf("%v, which does not exist, has the layout %q", f, f.Layout())
		}
	}
}
