package reproduce

import (
	"math"
	"testing"
)

// TestTable5 verifies that the table is 1 - exp(-lambda t) with 7 us, and not the formula printed in the paper.
func TestTable5(t *testing.T) {
	for _, x := range table5 {
		if right := 100 * arrival(x.rate*tentativeTime); !near(x.is, 0.01).holds(right) {
			t.Errorf("%s: %v %%, printed %v", x.chunk, right, x.is)
		}
		if printed := 100 * (1 - float64(x.rate*math.Exp(-x.rate*tentativeTime))); near(x.is, 0.5).holds(printed) {
			t.Errorf("%s: the printed formula gives %v %%, which is near %v", x.chunk, printed, x.is)
		}
		if !near(1/x.interval, 0.02).holds(x.rate) {
			t.Errorf("%s: a request every %v us are %v a us, printed %v", x.chunk, x.interval, 1/x.interval, x.rate)
		}
	}
}

// TestTable4 verifies that with the latency in ms, the printed figures imply 57 chunks outstanding of little more than
// 16 KiB; with us there would be none.
func TestTable4(t *testing.T) {
	if n := float64(labRate*labLatency) / 1e3; math.Round(n) != labOutstanding {
		t.Errorf("%v chunks outstanding", n)
	}
	if n := float64(labRate*labLatency) / 1e6; n >= 1 {
		t.Errorf("with us there are %v chunks outstanding", n)
	}
	const rate = 396.12e6 // B/s, printed
	if size := rate / labRate; math.Round(size) != 16963 {
		t.Errorf("%v B a chunk", size)
	}
}
