package stats

import (
	"math"
	"slices"
	"testing"

	"farflash/units"
)

// TestRoundedDigits holds to how many digits library figures are rounded: 9 and 6. With more digits: 2.2281388519649385 and 0.0733880347707403.
func TestRoundedDigits(t *testing.T) {
	if got := TQuantile(0.975, 10); got != 2.22813885 {
		t.Errorf("t(0.975, 10) is %v, want 2.22813885", got)
	}
	if got := TwoSidedT(2, 10); got != 0.073388 {
		t.Errorf("the tail beyond 2 is %v, want 0.073388", got)
	}
}

// TestFives holds which observations a batch of five has and where it begins: gaps are passed over, what is left at the end is not used.
func TestFives(t *testing.T) {
	gap := math.NaN()
	means, starts := fives([]float64{gap, 1, 2, gap, 3, 4, 5, gap, gap, 6, 7, 8, 9, 10, 11, 12})
	if !slices.Equal(means, []float64{3, 8}) || !slices.Equal(starts, []int{1, 9}) {
		t.Errorf("means %v from %v", means, starts)
	}
}

// TestBinMiddle holds fio's names of buckets: half way, rounded down, and the value itself where a bucket has one.
func TestBinMiddle(t *testing.T) {
	for _, c := range []struct{ low, high, want int64 }{{63, 64, 63}, {128, 130, 129}, {1024, 1040, 1032}, {2048, 2080, 2064}} {
		b := Bin{Low: units.Duration(c.low) * units.Nanosecond, High: units.Duration(c.high) * units.Nanosecond, Count: 1}
		if got := b.Middle(); got != c.want {
			t.Errorf("the middle of %d to %d ns is %d, want %d", c.low, c.high, got, c.want)
		}
	}
}

// TestLatencySeriesReuse: shapes that a doubling frees are used again, empty. Each bin has one value of its own, which is also its median.
func TestLatencySeriesReuse(t *testing.T) {
	s := NewLatencySeries(SeriesConfig{Width: units.Millisecond, Bins: 4})
	for i := range 4 {
		s.Add(units.Duration(i)*units.Millisecond, units.Microsecond)
	}
	for i := 4; i < 8; i += 2 { // bins of 2 ms, the later two in the shapes of those that were joined
		s.Add(units.Duration(i)*units.Millisecond, units.Millisecond)
	}
	for i, want := range []float64{1e6, 1e6, 1e9, 1e9} {
		if got := s.Quantiles(0.5)[i]; math.Abs(got-want) > want/16 {
			t.Errorf("bin %d: the median is %v ps, want %v", i, got, want)
		}
	}
}

// TestRestoreBounds refuses a least value above the first bucket's end, and a greatest one below the last's beginning, though they are in order.
func TestRestoreBounds(t *testing.T) {
	var h Histogram
	h.Record(100 * units.Microsecond)
	h.Record(200 * units.Microsecond)
	for name, spoil := range map[string]func(*State){
		"least":    func(s *State) { s.Min = s.Bins[0].High },
		"greatest": func(s *State) { s.Max = s.Bins[1].Low - 1 },
		"turned":   func(s *State) { s.Min, s.Max = s.Bins[0].High-1, s.Bins[0].Low },
	} {
		s := h.State()
		spoil(&s)
		if _, err := Restore(s); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestReplicatesRefused: significance and power are between 0 and 1, both without their ends, and an effect of nothing needs more replicates than there can be.
func TestReplicatesRefused(t *testing.T) {
	for _, x := range [][4]float64{{1, 1, 0, .8}, {1, 1, 1, .8}, {1, 1, .05, 0}, {1, 1, .05, 1}, {1, 1, math.NaN(), .8}, {1, 1, .05, math.NaN()}, {0, 1, .05, .8}, {math.NaN(), 1, .05, .8}, {1, math.Inf(1), .05, .8}, {1e-12, 1, .05, .8}} {
		if n, err := ReplicatesToDetect(x[0], x[1], x[2], x[3]); err == nil {
			t.Errorf("%v: %d replicates", x, n)
		}
	}
	if n, err := ReplicatesToDetect(1, 0, .05, .8); n != 2 || err != nil {
		t.Errorf("without spread: %d, %v", n, err)
	}
}

// TestSettlingRefused: what no caller may pass, from both sides.
func TestSettlingRefused(t *testing.T) {
	good := SettlingConfig{Precision: .05, Level: .95, Growth: 1.5, Least: 2 * fewestBatches}
	NewSettling(good)
	for name, spoil := range map[string]func(c *SettlingConfig){
		"precision": func(c *SettlingConfig) { c.Precision = 0 }, "level 0": func(c *SettlingConfig) { c.Level = 0 }, "level 1": func(c *SettlingConfig) { c.Level = 1 },
		"growth": func(c *SettlingConfig) { c.Growth = 1 }, "least": func(c *SettlingConfig) { c.Least-- },
	} {
		c := good
		spoil(&c)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: taken", name)
				}
			}()
			NewSettling(c)
		}()
	}
}

// TestPairedAlike: differences that are all the same have no deviation at all, also where their mean is rounded.
func TestPairedAlike(t *testing.T) {
	a, b := make([]float64, 7), make([]float64, 7)
	for i := range b {
		b[i] = .1
	}
	p, err := PairedT(a, b, .95)
	if err != nil || p.Deviation != 0 || p.Effect.Half != 0 || p.P != AllAlike(7) {
		t.Errorf("%+v, %v", p, err)
	}
}
