package cc

import (
	"testing"

	"farflash/internal/hostile"
	"farflash/internal/patience"
	"farflash/numeric/units"
	"farflash/sim"
)

// TestArguments verifies that algorithms without their settings, and schemes that do not exist, are errors.
func TestArguments(t *testing.T) {
	refused := hostile.Check(t, "cc")
	refused("no scheme", func() error { _, err := New(Config{Algorithm: 255, MinRate: 1}, 1); return err }, "")
	for s := range schemes {
		if s == SchemeNDP { // whose settings may all be 0
			continue
		}
		refused(s.String(), func() error {
			c := Config{Algorithm: s}
			_, err := New(c, 1)
			return err
		}, "not possible")
	}
}

// FuzzAlgorithm makes an algorithm of settings that the input changes, and signals to it what the input says, in
// order of time. The settings are refused, or its rate stays within the link's.
func FuzzAlgorithm(f *testing.F) {
	f.Add([]byte{1, 0, 0, 1, 9, 9, 0, 1, 9, 9, 1, 0, 9, 9, 2, 1, 9, 9})
	f.Add([]byte{3, 2, 0, 5, 200, 0, 7, 1, 4, 4, 0, 5, 0, 1, 1, 6, 9, 2, 2, 2, 3, 7, 3, 3, 4, 4})
	f.Add([]byte("acknowledgements, marks and pauses at any time, of any amount"))
	f.Fuzz(func(t *testing.T, in []byte) {
		defer patience.Limit()()
		code := hostile.Code(in)
		cfg := DefaultConfig()
		cfg.Algorithm = Scheme(code.Below(int(schemes)))
		code.Change(&cfg, code.Below(5))
		alg, err := New(cfg, 1)
		if err != nil {
			return
		}
		alg.Wants()
		s := Sender{Wake: sim.Forever, Line: 100 * units.Gbps, BaseRTT: 10 * units.Microsecond, BDP: 125000, MTU: 1000,
			Rate: 100 * units.Gbps, Hops: 3}
		alg.Start(0, &s)
		x := Signal{}
		hops := []Hop{{Rate: 100 * units.Gbps}, {Rate: 100 * units.Gbps}}
		for range 60 {
			if !code.More() {
				break
			}
			x.Now += units.Duration(code.Byte()) * units.Microsecond
			x.Kind, x.Marked = Kind(code.Below(6)), code.Below(2) == 1
			x.Next += uint64(code.Byte()) * 100
			x.Acked = min(x.Next, x.Acked+uint64(code.Byte())*100)
			x.Came, x.Payload, x.RTT, x.Power = x.Acked, 1000, units.Duration(code.Byte())*units.Microsecond,
				uint16(code.Byte())
			for i := range hops {
				hops[i].Time, hops[i].Queue = x.Now, units.Bytes(code.Byte())*1000
				hops[i].Bytes += uint64(code.Byte()) * 1000
			}
			x.Hops = hops
			alg.React(0, &s, &x)
			if s.Rate <= 0 || s.Rate > s.Line || s.Window < 0 {
				t.Fatalf("a rate of %v and a window of %v", s.Rate, s.Window)
			}
			s.Demand(x.RTT)
		}
	})
}
