package cc

import (
	"testing"

	"farflash/numeric/units"

	"pgregory.net/rapid"
)

// TestCreditIsConserved verifies that the credit, the packets in flight and those still to be pulled for add up to a
// first window, whatever arrives in whatever order; and that a timeout restores the first window.
func TestCreditIsConserved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window := rapid.IntRange(0, 40).Draw(t, "window")
		a := must(newNDP(NDP{Window: window}))
		s := newSender(10 * units.Gbps)
		s.MTU = 1000
		a.Start(0, &s)
		first := int32(window)
		if window == 0 {
			first = int32((s.BDP + 999) / 1000)
		}
		if s.Credit != first || s.Window != units.Bytes(first)*1000 || s.Rate != s.Line {
			t.Fatalf("it begins with %+v, %d packets", s, first)
		}
		away := int32(0)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch {
			case s.Credit > 0 && rapid.Bool().Draw(t, "send"):
				a.React(0, &s, &Signal{Kind: Sent, Payload: 1000})
				away++
			case away > 0:
				n := rapid.Int32Range(1, away).Draw(t, "pulls")
				a.React(0, &s, &Signal{Kind: Pull, Pulls: n})
				away -= n
			}
			if s.Credit+away != first {
				t.Fatalf("%d may be sent, %d are away, of %d", s.Credit, away, first)
			}
		}
		a.React(0, &s, &Signal{Kind: Timeout})
		if s.Credit != first {
			t.Fatalf("%d may be sent after a timeout, not %d", s.Credit, first)
		}
	})
}
