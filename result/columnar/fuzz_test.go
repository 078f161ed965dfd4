package columnar

import (
	"bytes"
	"testing"

	"farflash/internal/patience"
)

// FuzzRead reads Parquet files from arbitrary bytes.
func FuzzRead(f *testing.F) {
	var file bytes.Buffer
	w := NewFlowWriter(&file)
	if err := w.Add(Flow{ID: 1, Size: 2}); err != nil {
		f.Fatal(err)
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	f.Add(file.Bytes())
	f.Add([]byte("PAR1PAR1"))
	f.Add([]byte("PAR1\xff\xff\xff\x7fPAR1"))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer patience.Limit()()
		r, n := bytes.NewReader(text), int64(len(text))
		for _, err := range []error{
			ReadFlows(r, n, func(Flow) error { return nil }), ReadPauses(r, n, func(Pause) error { return nil }),
			ReadRequests(r, n, func(Request) error { return nil }), ReadChunks(r, n, func(Chunk) error { return nil }),
		} {
			if err != nil && err.Error() == "" {
				t.Error("an error says nothing")
			}
		}
	})
}
