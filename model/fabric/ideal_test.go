package fabric

import (
	"testing"

	"farflash/numeric/units"
)

// TestIdealParallel verifies three packets through a switch: the first link takes 1 us a packet and the second 2 us,
// with one or two such links in parallel.
func TestIdealParallel(t *testing.T) {
	for choices, want := range map[int]units.Duration{1: 8 * units.Microsecond, 2: 6 * units.Microsecond} {
		var p parallelLinks
		for back := range 2 {
			p.link(back, 1)
			p.link(back, choices)
			p.link(back, 1)
		}
		m := loneMessage{packets: 3, every: 1}
		for i, took := range []units.Duration{units.Microsecond, 2 * units.Microsecond, units.Microsecond} {
			m.forward(took, took, 0, p.abreast(i))
		}
		if got := m.takes(); int(p.abreast(1)) != choices || got != want {
			t.Errorf("%d links in parallel: %d and %v, not %v", choices, p.abreast(1), got, want)
		}
	}
}
