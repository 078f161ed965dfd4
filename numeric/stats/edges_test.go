package stats

import (
	"math"
	"slices"
	"testing"

	"farflash/numeric/units"

	"pgregory.net/rapid"
)

// TestRoundedDigits verifies the rounding of library results to 9 and 6 digits. With more digits: 2.2281388519649385
// and 0.0733880347707403.
func TestRoundedDigits(t *testing.T) {
	if got := TQuantile(0.975, 10); got != 2.22813885 {
		t.Errorf("t(0.975, 10) is %v, want 2.22813885", got)
	}
	if got := twoSidedT(2, 10); got != 0.073388 {
		t.Errorf("the tail beyond 2 is %v, want 0.073388", got)
	}
}

// TestFives verifies which observations a batch of five has and where it begins: gaps are skipped, and an incomplete
// last batch is dropped.
func TestFives(t *testing.T) {
	gap := math.NaN()
	means, starts := fives([]float64{gap, 1, 2, gap, 3, 4, 5, gap, gap, 6, 7, 8, 9, 10, 11, 12})
	if !slices.Equal(means, []float64{3, 8}) || !slices.Equal(starts, []int{1, 9}) {
		t.Errorf("means %v from %v", means, starts)
	}
}

// TestBinMiddle verifies fio's names of buckets: the midpoint, rounded down, or the value itself for a bucket of one
// value.
func TestBinMiddle(t *testing.T) {
	for _, c := range []struct{ low, high, want int64 }{{63, 64, 63}, {128, 130, 129}, {1024, 1040, 1032},
		{2048, 2080, 2064}} {
		b := Bin{Low: units.Duration(c.low) * units.Nanosecond, High: units.Duration(c.high) * units.Nanosecond,
			Count: 1}
		if got := b.Middle(); got != c.want {
			t.Errorf("the middle of %d to %d ns is %d, want %d", c.low, c.high, got, c.want)
		}
	}
}

// TestLatencySeriesReuse verifies that histograms freed by a doubling are reused, cleared. Each bin has a single value,
// which is also its median.
func TestLatencySeriesReuse(t *testing.T) {
	s := NewLatencySeries(SeriesConfig{Width: units.Millisecond, Bins: 4})
	for i := range 4 {
		s.Add(units.Duration(i)*units.Millisecond, units.Microsecond)
	}
	for i := 4; i < 8; i += 2 { // bins of 2 ms; the later two reuse the histograms of merged bins
		s.Add(units.Duration(i)*units.Millisecond, units.Millisecond)
	}
	for i, want := range []float64{1e6, 1e6, 1e9, 1e9} {
		if got := s.Quantiles(0.5)[i]; math.Abs(got-want) > want/16 {
			t.Errorf("bin %d: the median is %v ps, want %v", i, got, want)
		}
	}
}

// TestRestoreBounds verifies that a minimum above the first bucket and a maximum below the last one are rejected,
// although they are in order.
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

// TestReplicatesRefused verifies that significance and power must be strictly between 0 and 1, and that a zero effect
// exceeds mostReplicates.
func TestReplicatesRefused(t *testing.T) {
	for _, x := range [][4]float64{{1, 1, 0, .8}, {1, 1, 1, .8}, {1, 1, .05, 0}, {1, 1, .05, 1},
		{1, 1, math.NaN(), .8}, {1, 1, .05, math.NaN()}, {0, 1, .05, .8}, {math.NaN(), 1, .05, .8},
		{1, math.Inf(1), .05, .8}, {1e-12, 1, .05, .8}} {
		if n, err := ReplicatesToDetect(x[0], x[1], x[2], x[3]); err == nil {
			t.Errorf("%v: %d replicates", x, n)
		}
	}
	if n, err := ReplicatesToDetect(1, 0, .05, .8); n != 2 || err != nil {
		t.Errorf("without spread: %d, %v", n, err)
	}
}

// TestSettlingRefused tests the limits of the configuration from both sides.
func TestSettlingRefused(t *testing.T) {
	good := SettlingConfig{precision: .05, level: .95, growth: 1.5, least: 2 * fewestBatches}
	NewSettling(good)
	for name, spoil := range map[string]func(c *SettlingConfig){
		"precision": func(c *SettlingConfig) { c.precision = 0 }, "level 0": func(c *SettlingConfig) { c.level = 0 },
		"level 1": func(c *SettlingConfig) { c.level = 1 },
		"growth":  func(c *SettlingConfig) { c.growth = 1 }, "least": func(c *SettlingConfig) { c.least-- },
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

// TestRelative verifies half widths as shares of means of either sign; a half width of 0 gives 0, even for a mean of 0.
func TestRelative(t *testing.T) {
	for _, c := range []struct{ mean, half, want float64 }{{10, 2, 0.2}, {-10, 2, 0.2}, {0, 0, 0}, {5, 0, 0},
		{0, 1, math.Inf(1)}} {
		i := Interval{Mean: c.mean, Half: c.half}
		if got := i.Relative(); got != c.want || i.Low() != c.mean-c.half || i.High() != c.mean+c.half {
			t.Errorf("%v +- %v is %v, from %v to %v", c.mean, c.half, got, i.Low(), i.High())
		}
	}
}

// TestRestoreOrder verifies that buckets out of order or duplicated are rejected, even if all sums match.
func TestRestoreOrder(t *testing.T) {
	var h Histogram
	for _, us := range []units.Duration{100, 200, 300} {
		h.Record(us * units.Microsecond)
		h.Record(us*units.Microsecond + 1)
	}
	good := h.State()
	for _, order := range [][]int{{0, 2, 1}, {1, 0, 2}, {2, 1, 0}} {
		s := good
		s.Bins = []Bin{good.Bins[order[0]], good.Bins[order[1]], good.Bins[order[2]]}
		if _, err := Restore(s); err == nil {
			t.Errorf("buckets %v are taken", order)
		}
	}
	s := good
	s.Bins = slices.Clone(good.Bins)
	s.Bins[1].Count = 1
	s.Bins = slices.Insert(s.Bins, 1, s.Bins[1])
	if _, err := Restore(s); err == nil {
		t.Error("a bucket that is there twice is taken")
	}
}

// TestRatesOfLeast verifies a rate over one picosecond.
func TestRatesOfLeast(t *testing.T) {
	s := NewSeries(SeriesConfig{Width: 1, Bins: 4})
	s.Add(0, 5)
	s.Add(1, 7)
	if r, c := s.Rates(2), s.CountRates(2); r[0] != 5e12 || r[1] != 7e12 || c[0] != 1e12 || c[1] != 1e12 {
		t.Errorf("%v and %v a second", r, c)
	}
	if r, c := s.Rates(1), s.CountRates(1); r[1] != 0 || c[1] != 0 {
		t.Errorf("behind the end %v and %v a second", r[1], c[1])
	}
}

// TestLatencySeriesQuantiles verifies that quantiles of a bin are within a sixteenth of the value of that rank, and
// closer than the width of a bucket for evenly spread values.
func TestLatencySeriesQuantiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := NewLatencySeries(SeriesConfig{Width: units.Millisecond, Bins: 2})
		var values []float64
		for range rapid.IntRange(1, 200).Draw(t, "n") {
			d := units.Duration(rapid.Int64Range(0, 17_000_000_000_000).Draw(t, "ps"))
			s.Add(0, d)
			values = append(values, float64(d))
		}
		slices.Sort(values)
		q := float64(rapid.IntRange(0, 100).Draw(t, "percent")) / 100
		want := values[min(max(int(math.Ceil(q*float64(len(values))-1e-9)), 1), len(values))-1]
		if got := s.Quantiles(q)[0]; got > want+want/16+1e3 || got < want-want/16-1e3 {
			t.Errorf("the %v quantile of %v is %v, not %v", q, values, got, want)
		}
	})
	s := NewLatencySeries(SeriesConfig{Width: units.Millisecond, Bins: 2})
	const low, wide = 1 << 20, 1 << 16 // ns: one bucket
	for i := range 1000 {
		s.Add(0, units.Nanosecond*units.Duration(low)+units.Duration(i)*wide*units.Nanosecond/1000)
	}
	for _, q := range []float64{0.1, 0.25, 0.5, 0.9} {
		if got, want := s.Quantiles(q)[0], 1e3*(low+q*wide); math.Abs(got-want) > 1e3*wide/500 {
			t.Errorf("the %v quantile of an even spread is %v ps, not %v", q, got, want)
		}
	}
}

// TestLatencySeriesFull verifies that a count saturates instead of wrapping.
func TestLatencySeriesFull(t *testing.T) {
	s := NewLatencySeries(SeriesConfig{Width: units.Millisecond, Bins: 2})
	at := coarse.index(uint64(units.Microsecond) / picos)
	for i := range units.Duration(2) {
		s.Add(i*units.Millisecond, units.Microsecond)
	}
	s.shapes[0][at], s.shapes[1][at] = math.MaxUint32-3, 7
	s.fold()
	if got := s.shapes[0][at]; got != math.MaxUint32 {
		t.Errorf("%d are counted", got)
	}
	s.Add(0, units.Microsecond)
	if got := s.shapes[0][at]; got != math.MaxUint32 || s.Slots()[0].Count != 3 {
		t.Errorf("%d are counted, and %d exactly", got, s.Slots()[0].Count)
	}
	s.Add(0, 100*units.Second) // beyond the last bucket
	if got := s.Quantiles(1)[0]; got != float64(100*units.Second) {
		t.Errorf("the greatest is %v ps", got)
	}
	s.shapes[0][at] = 5
	s.Add(units.Millisecond*5/2, units.Microsecond) // in the other bin
	s.fold()
	if got := s.shapes[0][at]; got != 6 {
		t.Errorf("5 and 1 are %d", got)
	}
}

// TestWarmUpSays verifies the position and share in the sentence about a cut.
func TestWarmUpSays(t *testing.T) {
	var xs []float64
	for i := range 200 {
		x := float64(i % 5)
		if i < 50 {
			x += 1000
		}
		xs = append(xs, x)
	}
	if c := WarmUp(xs); c.Index != 50 || !c.Found ||
		c.Explain != "MSER-5 cuts the first 50 of 200 observations (25 %)" {
		t.Errorf("%+v", c)
	}
	slices.Reverse(xs) // the final level is not reached before the last quarter
	if c := WarmUp(xs); c.Index != 0 || c.Found ||
		c.Explain != "no steady state within the run: MSER-5 would cut 150 of 200 observations, more than half; all "+
			"are kept" {
		t.Errorf("%+v", c)
	}
	if c := WarmUp([]float64{90, 90, 90, 90, 90, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1}); c.Index != 5 ||
		!c.Found {
		// the fewest
		t.Errorf("%+v", c)
	}
	if c := WarmUp(xs[:19]); c.Found || c.Index != 0 ||
		c.Explain != "19 observations are too few to find a warm-up (MSER-5 needs 20); all are kept" {
		t.Errorf("%+v", c)
	}
}

// TestQuantileOf verifies the exact rank for shares that are multiples of 1/n, despite rounding.
func TestQuantileOf(t *testing.T) {
	for n := 1; n <= 400; n++ {
		sorted := make([]float64, n)
		for i := range sorted {
			sorted[i] = float64(i + 1)
		}
		for k := 1; k <= n; k++ {
			if got := QuantileOf(sorted, float64(k)/float64(n)); got != float64(k) {
				t.Fatalf("%d/%d of as many values do not exceed %v", k, n, got)
			}
		}
		if a, b := QuantileOf(sorted, 0), QuantileOf(sorted, 1); a != 1 || b != float64(n) {
			t.Fatalf("of %d values %v and %v are the ends", n, a, b)
		}
	}
}

// TestPairedAlike verifies that equal differences have a deviation of exactly 0, even where their mean is rounded.
func TestPairedAlike(t *testing.T) {
	a, b := make([]float64, 7), make([]float64, 7)
	for i := range b {
		b[i] = .1
	}
	p, err := pairedT(a, b, .95)
	if err != nil || p.Deviation != 0 || p.Effect.Half != 0 || p.P != AllAlike(7) {
		t.Errorf("%+v, %v", p, err)
	}
}
