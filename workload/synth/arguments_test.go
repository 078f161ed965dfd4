package synth_test

import (
	"io"
	"testing"

	"farflash/internal/hostile"
	"farflash/internal/patience"
	"farflash/workload"
	"farflash/workload/synth"
)

// FuzzGenerator makes a generator of a configuration that the input changes. It is refused, or its records are in order
// and within its space.
func FuzzGenerator(f *testing.F) {
	f.Add([]byte{1, 0, 0, 1, 0, 1, 1, 0, 2, 2})
	f.Add([]byte{4, 0, 3, 200, 1, 0, 9, 255, 7, 0, 12, 200, 22, 0, 17, 255, 6})
	f.Add([]byte("sizes, shares and times between arrivals that no workload has"))
	f.Fuzz(func(t *testing.T, in []byte) {
		defer patience.Limit()()
		code := hostile.Code(in)
		cfg := synth.DefaultConfig()
		cfg.Requests = 50
		code.Change(&cfg, 1+code.Below(6))
		g, err := synth.New(cfg)
		if err != nil {
			return
		}
		var r workload.Record
		last := r.Time
		for range 50 {
			if err := g.Next(&r); err != nil {
				if err != io.EOF {
					t.Logf("it ends with %v", err)
				}
				return
			}
			if r.Size <= 0 || r.Offset < 0 || r.Time < last {
				t.Fatalf("%+v after %v, of %+v", r, last, cfg)
			}
			last = r.Time
		}
	})
}
