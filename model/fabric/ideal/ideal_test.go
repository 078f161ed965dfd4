package ideal

import (
	"testing"

	"farflash/numeric/units"
)

// TestIdealParallel verifies three packets through a switch: the first link takes 1 us a packet and the second 2 us,
// with one or two such links in parallel.
func TestIdealParallel(t *testing.T) {
	for choices, want := range map[int]units.Duration{1: 8 * units.Microsecond, 2: 6 * units.Microsecond} {
		var p Links
		for back := range 2 {
			p.Link(back, 1)
			p.Link(back, choices)
			p.Link(back, 1)
		}
		m := Message{Packets: 3, Every: 1}
		for i, took := range []units.Duration{units.Microsecond, 2 * units.Microsecond, units.Microsecond} {
			m.Forward(took, took, 0, p.Abreast(i))
		}
		if got := m.Takes(); int(p.Abreast(1)) != choices || got != want {
			t.Errorf("%d links in parallel: %d and %v, not %v", choices, p.Abreast(1), got, want)
		}
	}
}
