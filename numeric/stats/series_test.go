package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"farflash/numeric/units"

	"pgregory.net/rapid"
)

func TestSeriesDoubles(t *testing.T) {
	s := NewSeries(SeriesConfig{Width: units.Microsecond, Bins: 4})
	for i := range 4 {
		s.Add(units.Duration(i)*units.Microsecond, int64(10*(i+1)))
	}
	if s.Width() != units.Microsecond || len(s.Slots()) != 4 {
		t.Fatalf("width %v, %d bins", s.Width(), len(s.Slots()))
	}
	s.Add(4*units.Microsecond, 50)
	want := []struct{ sum, count, max float64 }{{30, 2, 20}, {70, 2, 40}, {50, 1, 50}}
	if s.Width() != 2*units.Microsecond || len(s.Slots()) != len(want) {
		t.Fatalf("width %v, %d bins", s.Width(), len(s.Slots()))
	}
	for i, w := range want {
		got := s.Slots()[i]
		if got.Sum() != w.sum || float64(got.Count) != w.count || float64(got.Max) != w.max {
			t.Errorf("bin %d is %v, %v, %v; want %v", i, got.Sum(), got.Count, got.Max, w)
		}
	}
	// A late value causes as many doublings as necessary.
	s.Add(units.Millisecond, 1)
	if s.Width() != 256*units.Microsecond {
		t.Errorf("width %v after a value at 1ms", s.Width())
	}
}

func TestSeriesRates(t *testing.T) {
	s := NewSeries(SeriesConfig{Width: units.Millisecond, Bins: 8})
	s.Add(0, 4000)
	s.Add(units.Millisecond, 4000)
	// The run ends in the middle of the second bin.
	rates := s.Rates(1500 * units.Microsecond)
	if rates[0] != 4e6 || rates[1] != 8e6 {
		t.Errorf("rates %v", rates)
	}
	iops := s.CountRates(1500 * units.Microsecond)
	if iops[0] != 1000 || iops[1] != 2000 {
		t.Errorf("count rates %v", iops)
	}
}

func TestSeriesWideSums(t *testing.T) {
	s := NewSeries(SeriesConfig{Width: units.Second, Bins: 2})
	for range 3 {
		s.Add(0, math.MaxInt64)
	}
	if got, want := s.Slots()[0].Sum(), 3*float64(math.MaxInt64); got != want {
		t.Errorf("sum %v, want %v", got, want)
	}
}

// TestSeriesConserves verifies, for any order of times, that no value is lost and that merged parts equal the whole.
func TestSeriesConserves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := SeriesConfig{Width: 10, Bins: 8}
		whole, a, b := NewSeries(c), NewSeries(c), NewSeries(c)
		latest := units.Duration(0)
		total := int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "n") {
			at := units.Duration(rapid.Int64Range(0, 5000).Draw(t, "t"))
			v := rapid.Int64Range(0, 1000).Draw(t, "v")
			latest = max(latest, at)
			total += v
			whole.Add(at, v)
			if rapid.Bool().Draw(t, "part") {
				a.Add(at, v)
			} else {
				b.Add(at, v)
			}
		}
		a.merge(b)
		sum := 0.0
		if len(a.Slots()) != len(whole.Slots()) || a.Width() != whole.Width() {
			t.Fatalf("merged: %d bins of %v; whole: %d of %v", len(a.Slots()), a.Width(), len(whole.Slots()),
				whole.Width())
		}
		for i := range whole.Slots() {
			if a.Slots()[i] != whole.Slots()[i] {
				t.Fatalf("bin %d differs after merging", i)
			}
			sum += whole.Slots()[i].Sum()
		}
		if sum != float64(total) {
			t.Fatalf("sum %v, want %v", sum, total)
		}
		if units.Duration(len(whole.Slots()))*whole.Width() <= latest {
			t.Fatalf("the bins end before the latest value")
		}
	})
}

func TestLatencySeries(t *testing.T) {
	c := SeriesConfig{Width: units.Millisecond, Bins: 4}
	s := NewLatencySeries(c)
	exact := make([]Histogram, 4)
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 40000 {
		at := units.Duration(i) * 200 * units.Nanosecond // 8 ms: bins end up 2 ms wide
		d := units.Microseconds(50 + 100*r.ExpFloat64())
		s.Add(at, d)
		exact[at/(2*units.Millisecond)].Record(d)
	}
	if s.Width() != 2*units.Millisecond || len(s.Slots()) != 4 {
		t.Fatalf("%d bins of %v", len(s.Slots()), s.Width())
	}
	p99, mean := s.Quantiles(0.99), s.Means()
	for i := range exact {
		want := float64(exact[i].Quantile(0.99))
		if math.Abs(p99[i]-want) > want/16 {
			t.Errorf("bin %d: p99 %v, exact %v", i, p99[i], want)
		}
		if want := exact[i].Mean(); math.Abs(mean[i]-want) > 1e-12*want {
			t.Errorf("bin %d: mean %v, exact %v", i, mean[i], want)
		}
		if s.Slots()[i].Max != int64(exact[i].Max()) || s.Slots()[i].Count != exact[i].Count() {
			t.Errorf("bin %d: count or maximum differ", i)
		}
	}
}

func TestLatencySeriesGaps(t *testing.T) {
	s := NewLatencySeries(SeriesConfig{Width: units.Millisecond, Bins: 4})
	s.Add(0, units.Microsecond)
	s.Add(2*units.Millisecond, 3*units.Microsecond)
	q := s.Quantiles(0.5)
	if !math.IsNaN(q[1]) || !math.IsNaN(s.Means()[1]) {
		t.Error("an empty bin has a latency")
	}
	if q[2] > 3e6 || q[2] < 2.8e6 {
		t.Errorf("median of one value is %v", q[2])
	}
	s.Add(5*units.Millisecond, units.Microsecond) // merges the gap with its neighbour
	if q := s.Quantiles(0.5); len(q) != 3 || math.IsNaN(q[0]) || math.IsNaN(q[1]) {
		t.Errorf("after doubling: %v", q)
	}
}

func BenchmarkSeriesAdd(b *testing.B) {
	s := NewSeries(DefaultSeriesConfig())
	b.ReportAllocs()
	for i := range b.N {
		s.Add(units.Duration(i)*units.Microsecond, 4096)
	}
}

func BenchmarkLatencySeriesAdd(b *testing.B) {
	s := NewLatencySeries(DefaultSeriesConfig())
	b.ReportAllocs()
	for i := range b.N {
		s.Add(units.Duration(i)*units.Microsecond, units.Duration(100+i&255)*units.Microsecond)
	}
}
