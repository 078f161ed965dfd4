package stats

import (
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"farflash/internal/inputs"
	"farflash/internal/patience"
	"farflash/numeric/units"

	"pgregory.net/rapid"
)

func TestGeometry(t *testing.T) {
	// Bounds of neighbouring buckets touch, and the first and last value of each maps back to it.
	for _, g := range []geometry{fio, coarse} {
		next := uint64(0)
		for i := range g.buckets() {
			low, high := g.bounds(i)
			if low != next {
				t.Fatalf("%v: bucket %d begins at %d, want %d", g, i, low, next)
			}
			if g.index(low) != i || g.index(high-1) != i {
				t.Fatalf("%v: bucket %d = [%d, %d) maps to %d and %d", g, i, low, high, g.index(low), g.index(high-1))
			}
			if low >= 2<<g.sub && (high-low)<<g.sub > low {
				t.Fatalf("%v: bucket [%d, %d) is wider than 1/%d of its value", g, low, high, 1<<g.sub)
			}
			next = high
		}
		if next != 1<<34 {
			t.Errorf("%v ends at %d, want 2^34", g, next)
		}
		if got := g.index(math.MaxUint64); got != g.buckets()-1 {
			t.Errorf("%v: overflow goes to %d", g, got)
		}
	}
	if fio.buckets() != Buckets || coarse.buckets() != coarseBuckets {
		t.Error("bucket constants do not match the geometries")
	}
	for range 100000 {
		v := rand.Uint64() >> rand.IntN(64)
		if fioIndex(v) != fio.index(v) {
			t.Fatalf("fioIndex(%d) = %d, want %d", v, fioIndex(v), fio.index(v))
		}
	}
}

// TestAgainstFio reads output of fio itself: its bins must equal ours, and its percentiles must follow from them.
func TestAgainstFio(t *testing.T) {
	text, err := os.ReadFile(inputs.Path(t, "data/fio-3.33-jsonplus-example.json"))
	if err != nil {
		t.Fatal(err)
	}
	type side struct {
		Latency struct {
			N          int64
			Mean       float64
			Percentile map[string]int64
			Bins       map[string]int64
		} `json:"clat_ns"`
	}
	var doc struct{ Jobs []struct{ Read, Write side } }
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	for _, s := range []side{doc.Jobs[0].Read, doc.Jobs[0].Write} {
		var h Histogram
		for key, count := range s.Latency.Bins {
			ns, err := strconv.ParseInt(key, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			for range count {
				h.Record(units.Duration(ns) * units.Nanosecond)
			}
		}
		if h.Count() != s.Latency.N {
			t.Fatalf("count %d, fio has %d", h.Count(), s.Latency.N)
		}
		bins := h.Bins()
		if len(bins) != len(s.Latency.Bins) {
			t.Fatalf("%d bins, fio has %d", len(bins), len(s.Latency.Bins))
		}
		for _, b := range bins {
			if got := s.Latency.Bins[strconv.FormatInt(b.Middle(), 10)]; got != b.Count {
				t.Errorf("bin %d: %d, fio has %d", b.Middle(), b.Count, got)
			}
		}
		if m := h.Mean() / 1000; math.Abs(m-s.Latency.Mean) > s.Latency.Mean/64 {
			t.Errorf("mean %v ns, fio has %v", m, s.Latency.Mean)
		}
		for key, want := range s.Latency.Percentile {
			p, _ := strconv.ParseFloat(key, 64)
			got := float64(h.Quantile(p/100)) / 1000
			if math.Abs(got-float64(want)) > float64(want)/64+1 {
				t.Errorf("percentile %s: %v, fio has %d", key, got, want)
			}
		}
	}
}

func TestHistogramEmpty(t *testing.T) {
	var h Histogram
	if h.Count() != 0 || h.Min() != 0 || h.Max() != 0 || h.Mean() != 0 || h.StdDev() != 0 || h.Quantile(0.5) != 0 ||
		h.CDF(1) != 0 || h.Bins() != nil {
		t.Error("an empty histogram is not all zero")
	}
}

func TestHistogramConstant(t *testing.T) {
	var h Histogram
	d := 88898 * units.Nanosecond
	for range 1000 {
		h.Record(d)
	}
	for _, q := range []float64{0, 0.5, 0.99, 1} {
		if got := h.Quantile(q); got != d {
			t.Errorf("Quantile(%v) = %v, want %v", q, got, d)
		}
	}
	if h.Mean() != float64(d) || h.StdDev() != 0 {
		t.Errorf("mean %v, deviation %v", h.Mean(), h.StdDev())
	}
	if h.CDF(d) != 1 || h.CDF(d-1) != 0 {
		t.Errorf("CDF around the only value is %v, %v", h.CDF(d-1), h.CDF(d))
	}
}

// TestHistogramUniform compares with closed forms: 1..n ns has mean (n+1)/2 and variance (n^2-1)/12.
func TestHistogramUniform(t *testing.T) {
	var h Histogram
	const n = 100000
	for i := range n {
		h.Record(units.Duration(i+1) * units.Nanosecond)
	}
	if want := 1000 * (n + 1) / 2.0; h.Mean() != want {
		t.Errorf("mean %v, want %v", h.Mean(), want)
	}
	if want := 1000 * math.Sqrt((n*n-1)/12.0); math.Abs(h.StdDev()-want) > 1e-9*want {
		t.Errorf("deviation %v, want %v", h.StdDev(), want)
	}
	// Within a bucket the values are evenly spread, as interpolation assumes, so percentiles are accurate to 1 ns.
	for _, q := range []float64{0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999} {
		if got, want := h.Quantile(q).Microseconds()*1e3, q*n; math.Abs(got-want) > 1.001 {
			t.Errorf("Quantile(%v) = %v ns, want %v", q, got, want)
		}
		if got := h.CDF(units.Microseconds(q * n / 1000)); math.Abs(got-q) > 2.0/n {
			t.Errorf("CDF at the %v quantile is %v", q, got)
		}
	}
}

func TestHistogramWideSums(t *testing.T) {
	// 106 days each: the sum passes 2^64 after two records, the sum of squares 2^128 after five.
	var h Histogram
	for range 100 {
		h.Record(units.Forever)
	}
	want := new(big.Int).Mul(big.NewInt(math.MaxInt64), big.NewInt(100))
	if h.exact().Cmp(want) != 0 {
		t.Errorf("sum %v, want %v", h.exact(), want)
	}
	if h.Mean() != float64(math.MaxInt64) || h.StdDev() != 0 || h.Quantile(0.5) != units.Forever {
		t.Errorf("mean %v, deviation %v, median %v", h.Mean(), h.StdDev(), h.Quantile(0.5))
	}
}

func TestNegativePanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a negative duration was accepted")
		}
	}()
	new(Histogram).Record(-1)
}

// durations draws values over the whole range, many of them clustered.
func durations(t *rapid.T) []units.Duration {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) units.Duration {
		return units.Duration(rapid.Uint64().Draw(t, "v") >> uint(rapid.IntRange(1, 63).Draw(t, "shift")))
	}), 1, 300).Draw(t, "durations")
}

func TestQuantileErrorBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ds := durations(t)
		var h Histogram
		for _, d := range ds {
			h.Record(d)
		}
		slices.Sort(ds)
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		rank := int(math.Ceil(rankOf(q, uint64(len(ds)))))
		want := ds[max(rank-1, 0)]
		got := h.Quantile(q)
		bound := want/64 + units.Nanosecond
		if want >= 1<<34*units.Nanosecond {
			bound = h.Max() - 1<<34*units.Nanosecond // the overflow bucket is accurate only to its range
		}
		if got < want-bound || got-want > bound {
			t.Fatalf("Quantile(%v) of %d values is %v, the exact one is %v", q, len(ds), got, want)
		}
		if got < h.Min() || got > h.Max() {
			t.Fatalf("Quantile(%v) = %v is outside [%v, %v]", q, got, h.Min(), h.Max())
		}
	})
}

func TestQuantileMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h Histogram
		for _, d := range durations(t) {
			h.Record(d)
		}
		last := units.Duration(0)
		for i := range 101 {
			q := h.Quantile(float64(i) / 100)
			if q < last {
				t.Fatalf("percentile %d is %v, below the one before it, %v", i, q, last)
			}
			last = q
		}
	})
}

func TestMergeOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ds := durations(t)
		var whole Histogram
		parts := make([]Histogram, 4)
		for i, d := range ds {
			whole.Record(d)
			parts[rapid.IntRange(0, 3).Draw(t, "part")].Record(d)
			_ = i
		}
		order := rapid.Permutation([]int{0, 1, 2, 3}).Draw(t, "order")
		var merged Histogram
		for _, i := range order {
			merged.Merge(&parts[i])
		}
		if merged != whole {
			t.Fatal("merging parts differs from recording the whole")
		}
	})
}

func TestStateRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h Histogram
		for _, d := range durations(t) {
			h.Record(d)
		}
		back, err := Restore(h.State())
		if err != nil {
			t.Fatal(err)
		}
		if *back != h {
			t.Fatal("a restored histogram differs")
		}
	})
	if back, err := Restore(new(Histogram).State()); err != nil || *back != (Histogram{}) {
		t.Errorf("restoring an empty histogram: %v", err)
	}
}

func TestRestoreRefuses(t *testing.T) {
	good := func() State {
		var h Histogram
		h.Record(100 * units.Microsecond)
		h.Record(200 * units.Microsecond)
		return h.State()
	}
	for name, spoil := range map[string]func(*State){
		"count":        func(s *State) { s.Count++ },
		"bucket count": func(s *State) { s.Bins[0].Count = 0 },
		"bucket low":   func(s *State) { s.Bins[0].Low++ },
		"bucket high":  func(s *State) { s.Bins[0].High += units.Nanosecond },
		"order":        func(s *State) { slices.Reverse(s.Bins) },
		"negative":     func(s *State) { s.Bins[0].Low = -units.Nanosecond },
		"no sum":       func(s *State) { s.Sum = nil },
		"no squares":   func(s *State) { s.Squares = nil },
		"sum below 0":  func(s *State) { s.Sum = big.NewInt(-1) },
		"squares so":   func(s *State) { s.Squares.Neg(s.Squares) },
		"vast squares": func(s *State) { s.Squares.Lsh(s.Squares, 150) },
		"a count of 0": func(s *State) {
			s.Bins = []Bin{s.Bins[0], {s.Bins[0].High, s.Bins[0].High + 2048*units.Nanosecond, 0}, s.Bins[1]}
		},
		"sum too much": func(s *State) { s.Sum.SetInt64(int64(s.Bins[0].High + s.Bins[1].High + 1)) },
		"large sum":    func(s *State) { s.Sum = new(big.Int).Lsh(s.Sum, 1) },
		"small sum":    func(s *State) { s.Sum = big.NewInt(1) },
		"squares":      func(s *State) { s.Squares = big.NewInt(1) },
		"minimum":      func(s *State) { s.Min = 0 },
		"maximum":      func(s *State) { s.Max = units.Second },
		"overflow":     func(s *State) { s.Bins[0].Count, s.Bins[1].Count = math.MaxInt64, math.MaxInt64 },
	} {
		s := good()
		spoil(&s)
		if _, err := Restore(s); err == nil {
			t.Errorf("%s: a spoilt state was accepted", name)
		}
	}
}

// TestRestoreAtBounds restores sums at the lower limit that the buckets allow: all values at their lower bounds.
func TestRestoreAtBounds(t *testing.T) {
	var h Histogram
	for _, v := range []units.Duration{3 * units.Nanosecond, 64 * units.Nanosecond} {
		h.Record(v)
	}
	s := h.State()
	if s.Bins[0].Low+s.Bins[1].Low != units.Duration(s.Sum.Int64()) {
		t.Fatalf("%+v is not at the lower ends of %v", s.Sum, s.Bins)
	}
	if _, err := Restore(s); err != nil {
		t.Error(err)
	}
}

func FuzzRestore(f *testing.F) {
	f.Add(int64(2), "300000000", "50000000000000000", int64(100e6), int64(200e6), int64(99328000), int64(100352000),
		int64(1), int64(198656000), int64(200704000), int64(1))
	f.Fuzz(func(t *testing.T, count int64, sum, squares string, low, high, l1, h1, c1, l2, h2, c2 int64) {
		defer patience.Limit()()
		s := State{Count: count, Min: units.Duration(low), Max: units.Duration(high),
			Bins: []Bin{{units.Duration(l1), units.Duration(h1), c1}, {units.Duration(l2), units.Duration(h2), c2}}}
		s.Sum, _ = new(big.Int).SetString(sum, 10)
		s.Squares, _ = new(big.Int).SetString(squares, 10)
		h, err := Restore(s)
		if err != nil {
			return
		}
		if !reflect.DeepEqual(h.State().Bins, s.Bins) || h.exact().Cmp(s.Sum) != 0 {
			t.Fatal("an accepted state changed")
		}
		for _, q := range []float64{0, 0.3, 0.999, 1} {
			if v := h.Quantile(q); v < h.Min() || v > h.Max() {
				t.Fatalf("Quantile(%v) = %v is outside [%v, %v]", q, v, h.Min(), h.Max())
			}
		}
		if m := h.Mean(); m < 0 || math.IsNaN(h.StdDev()) {
			t.Fatalf("mean %v, deviation %v", m, h.StdDev())
		}
	})
}

func BenchmarkRecord(b *testing.B) {
	// Latencies of 64 us to 1 ms in random order, like a drive's completions.
	var ds [4096]units.Duration
	r := rand.New(rand.NewPCG(1, 2))
	for i := range ds {
		ds[i] = units.Duration(64e6 + r.Int64N(1e9))
	}
	var h Histogram
	b.ReportAllocs()
	for i := range b.N {
		h.Record(ds[i&4095])
	}
}

func BenchmarkQuantile(b *testing.B) {
	var h Histogram
	for i := range 100000 {
		h.Record(units.Duration(i) * units.Nanosecond)
	}
	for range b.N {
		h.Quantile(0.999)
	}
}

func TestRecordAllocates(t *testing.T) {
	var h Histogram
	s := NewSeries(DefaultSeriesConfig())
	ls := NewLatencySeries(DefaultSeriesConfig())
	ls.Add(0, 1)
	at := units.Duration(0)
	if n := testing.AllocsPerRun(1000, func() {
		at += units.Microsecond / 100
		h.Record(12345678)
		s.Add(at, 4096)
		ls.Add(at, 12345678)
	}); n != 0 {
		t.Errorf("recording allocates %v times", n)
	}
}

// TestHistogramReset verifies that a reset histogram equals an empty one, whatever it held.
func TestHistogramReset(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h Histogram
		for _, d := range rapid.SliceOf(rapid.Int64Range(0, math.MaxInt64)).Draw(t, "durations") {
			h.Record(units.Duration(d) >> rapid.IntRange(0, 62).Draw(t, "shift"))
		}
		if h.Reset(); h != (Histogram{}) {
			t.Fatal("something is left")
		}
	})
}
