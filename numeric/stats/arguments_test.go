package stats

import (
	"math"
	"testing"

	"farflash/internal/hostile"
	"farflash/internal/patience"
	"farflash/numeric/units"
)

// TestArguments verifies that what a series or a histogram cannot be is refused by name.
func TestArguments(t *testing.T) {
	refused := hostile.Check(t, "stats")
	series := func(c SeriesConfig) *Series { return NewSeries(c) }
	ok := DefaultSeriesConfig()
	for _, c := range []struct {
		name string
		do   func()
		want string
	}{
		{"width", func() { series(SeriesConfig{Bins: 2}) }, "positive bin width"},
		{"bins", func() { series(SeriesConfig{Width: 1, Bins: 3}) }, "even number of bins"},
		{"no bins", func() { series(SeriesConfig{Width: 1}) }, "even number of bins"},
		{"bins that fill the memory", func() { series(SeriesConfig{Width: 1, Bins: 1 << 40}) }, "up to"},
		{"latencies", func() { NewLatencySeries(SeriesConfig{Width: 1, Bins: 1 << 40}) }, "up to"},
		{"value", func() { series(ok).Add(0, -1) }, "negative value"},
		{"time", func() { series(ok).Add(-1, 0) }, "before time 0"},
		{"latency", func() { NewLatencySeries(ok).Add(0, -1) }, "negative"},
		{"duration", func() { new(Histogram).Record(-1) }, "negative duration"},
		{"merge of bins", func() { series(ok).merge(series(SeriesConfig{Width: 1, Bins: 2})) }, "numbers of bins"},
		{"merge of widths", func() {
			series(SeriesConfig{Width: 3, Bins: 2}).merge(series(SeriesConfig{Width: 5, Bins: 2}))
		}, "powers of two"},
		{"settling", func() { NewSettling(SettlingConfig{precision: math.NaN()}) }, "invalid SettlingConfig"},
		{"quantile of nothing", func() { QuantileOf(nil, 0.5) }, "QuantileOf"},
	} {
		refused(c.name, func() error { c.do(); return nil }, c.want)
	}
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, 1, 2} {
		if _, err := Replicates([]float64{1, 2, 3}, x); err == nil && !(x > 0 && x < 1) {
			t.Errorf("an interval at a level of %v", x)
		}
		if _, err := CompareDesigns([]float64{1, 2, 3}, []float64{1, 2, 4}, x); err == nil && !(x > 0 && x < 1) {
			t.Errorf("a comparison at a level of %v", x)
		}
		if _, err := ReplicatesToDetect(1, 1, x, 0.8); err == nil && !(x > 0 && x < 1) {
			t.Errorf("a test at a level of %v", x)
		}
	}
}

// FuzzAPI calls everything that takes numbers with any numbers: it returns, or refuses them by name.
func FuzzAPI(f *testing.F) {
	f.Add([]byte{3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 200, 1, 200, 2, 200, 3, 200, 4, 5, 6, 7})
	f.Add([]byte{0, 1, 255, 7, 255, 6, 255, 8, 255, 9, 240, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Add([]byte("samples, shares, levels and ranks of every kind, and numbers that are none"))
	f.Fuzz(func(t *testing.T, in []byte) {
		defer patience.Limit()()
		if len(in) > 300 {
			return
		}
		code := hostile.Code(in)
		for range 20 {
			if !code.More() {
				break
			}
			xs := make([]float64, code.Below(12))
			for i := range xs {
				xs[i] = code.Float()
			}
			ys := make([]float64, code.Below(12))
			for i := range ys {
				ys[i] = code.Float()
			}
			a, b, c, d, n, m := code.Float(), code.Float(), code.Float(), code.Float(), code.Int(), code.Int()
			var h Histogram
			for range code.Below(5) {
				if x := code.Int(); x >= 0 {
					h.Record(units.Duration(x))
				}
			}
			for _, f := range []func(){
				func() { QuantileOf(xs, a) }, func() { Ratio(a, b) }, func() { Micro(a) },
				func() { Bucket(units.Duration(n)) }, func() { Holm(xs) }, func() { BenjaminiHochberg(xs) },
				func() { ByValue(xs) }, func() { AllAlike(int(n)) }, func() { signFlips(xs) },
				func() { TQuantile(a, int(n)) }, func() { twoSidedT(a, int(n)) }, func() { WarmUp(xs) },
				func() { _, _ = Replicates(xs, a) }, func() { _, _ = CompareDesigns(xs, ys, a) },
				func() { _, _ = pairedT(xs, ys, a) }, func() { _, _ = Wilcoxon(xs) },
				func() { _, _ = ReplicatesToDetect(a, b, c, d) }, func() { DeviationBound(a, int(n), b) },
				func() { QuantileKnown(n, a, b) }, func() { QuantileNeeds(a, b) }, func() { QuantileRanks(n, a, b) },
				func() { Looks(int(n)) },
				func() {
					h.Quantile(a)
					h.Smallest(n)
					h.CDF(units.Duration(n))
					h.Mean()
					h.StdDev()
					h.Bins()
					before := h.Count()
					p := h.Pack()
					h.Unpack(&p)
					if p.Count() != before || h.Count() != before {
						t.Errorf("%d packed and %d unpacked, of %d", p.Count(), h.Count(), before)
					}
				},
				func() {
					var m Moments
					for _, x := range xs {
						m.Add(x)
					}
					m.StdDev()
					m.SCV()
					m.Skewness()
					m.ACF1()
				},
				func() {
					s := NewSeries(SeriesConfig{Width: units.Duration(n), Bins: int(m % 4096)})
					s.Add(units.Duration(m), n)
					s.Add(units.Duration(n), m)
					s.Rates(s.Width())
					s.Rates(units.Duration(m))
					s.CountRates(units.Duration(n))
					s.Means()
				},
				func() {
					s := NewSettling(SettlingConfig{precision: a, level: b, growth: c, least: int(n)})
					for _, x := range xs {
						s.Add(x)
					}
					s.Judge(Occurrence{})
				},
			} {
				hostile.Refused(t, "stats", f)
			}
		}
	})
}
