package result

import (
	"testing"

	"farflash/internal/patience"
)

// FuzzTiming decodes timing.json from arbitrary bytes.
func FuzzTiming(f *testing.F) {
	f.Add([]byte(`{"wall_s": 1, "machine": {"cpus": 2}}`))
	f.Add([]byte(`{"wall_s": 1e999}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer patience.Limit()()
		x, err := decodeTiming(text)
		if err != nil {
			return
		}
		again, err := x.encode()
		if err != nil {
			t.Fatal(err)
		}
		if y, err := decodeTiming(again); err != nil || y != x {
			t.Errorf("%q reads back as %+v, %v", text, y, err)
		}
	})
}
