package synth

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"farflash/block"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/workload"
	"farflash/workload/characterise"
)

// estimate measures figures in independent replicates and returns their means and the standard errors of these.
func estimate(replicates int, measure func(seed uint64) []float64) (means, errors []float64) {
	var sums, squares []float64
	for seed := range replicates {
		values := measure(uint64(seed + 1))
		if sums == nil {
			sums, squares = make([]float64, len(values)), make([]float64, len(values))
		}
		for i, v := range values {
			sums[i] += v
			squares[i] += v * v
		}
	}
	n := float64(replicates)
	for i := range sums {
		m := sums[i] / n
		means = append(means, m)
		errors = append(errors, math.Sqrt(max(0, squares[i]/n-m*m)/(n-1)))
	}
	return means, errors
}

// within fails unless got is within five standard errors of want, plus a bias of the estimator itself.
func within(t *testing.T, name string, got, want, standardError, bias float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > 5*standardError+bias {
		t.Errorf("%s = %v, want %v within %v", name, got, want, 5*standardError+bias)
	}
}

// TestSequencesHaveTheirMoments samples every kind. The estimators of SCV, skewness and correlation are biased by
// O(1/n), which the tolerance of 1 % covers at n = 200,000.
func TestSequencesHaveTheirMoments(t *testing.T) {
	for _, shape := range []Shape{
		{Kind: Exponential},
		{SCV: 0.25},
		{SCV: 0.7},
		{SCV: 1.5},
		{SCV: 4, Skewness: 6},
		{SCV: 4, Skewness: 6, ACF1: 0.2},
		{SCV: 2, ACF1: 0.1},
	} {
		means, errs := estimate(10, func(seed uint64) []float64 {
			m := characterise.New()
			cfg := Config{Reads: &Flow{Size: Size{Mean: 4 * units.KiB},
				Interarrival: Interarrival{57 * units.Microsecond, shape}, Addresses: Addresses{Space: units.GiB}},
				Requests: 100000, Seed: seed}
			g, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			var r workload.Record
			for g.Next(&r) == nil {
				m.Add(&r)
			}
			f := m.Result().Reads.Interarrival
			return []float64{float64(f.Mean), float64(f.SCV), float64(f.Skewness), float64(f.ACF1)}
		})
		scv, skewness := shape.SCV, shape.Skewness
		if shape.Kind == Exponential {
			scv, skewness = 1, 2
		}
		if scv < 1 {
			skewness = 2 * math.Sqrt(scv)
		}
		name := fmt.Sprintf("%+v ", shape)
		within(t, name+"mean", means[0], 57, errs[0], 0)
		within(t, name+"scv", means[1], scv, errs[1], 0.01*scv)
		if skewness != 0 {
			within(t, name+"skewness", means[2], skewness, errs[2], 0.01*skewness)
		}
		within(t, name+"acf1", means[3], shape.ACF1, errs[3], 0.001)
	}
}

// TestSizesKeepTheirMean verifies that heavy rounding and clamping do not change the mean.
func TestSizesKeepTheirMean(t *testing.T) {
	for _, cfg := range []Size{
		{Mean: 44 * units.KB},
		{Mean: 4 * units.KiB},
		{Mean: 44 * units.KB, Shape: Shape{SCV: 1.24}},
		{Mean: 10 * units.KB, Shape: Shape{Kind: Exponential}, Granule: 4 * units.KiB},
		{Mean: 8 * units.KiB, Shape: Shape{SCV: 4, Skewness: 6, ACF1: 0.3}, Granule: 4 * units.KiB},
		{Mean: 16 * units.KB, Shape: Shape{SCV: 5}, Max: 64 * units.KiB},
		{Mean: 16 * units.KB, Shape: Shape{SCV: 0.3}, Granule: 4 * units.KiB, Max: 32 * units.KiB},
		{Mean: 63 * units.KiB, Shape: Shape{SCV: 0.5}, Max: 64 * units.KiB},
		{Mean: 8200, Shape: Shape{SCV: 0.01}, Granule: 8 * units.KiB},
		{Mean: 8200, Shape: Shape{SCV: 3}, Granule: 4 * units.KiB, Min: 8 * units.KiB, Max: 60 * units.KiB},
	} {
		means, errs := estimate(10, func(seed uint64) []float64 {
			full := cfg.withDefaults(units.TiB)
			s, err := newSizes(full, seed, "t")
			if err != nil {
				t.Fatalf("%+v: %v", cfg, err)
			}
			const n = 100000
			var sum, squares float64
			for range n {
				v := s.next()
				if v < int64(full.Min) || v > int64(full.Max) || v%int64(full.Granule) != 0 {
					t.Fatalf("%+v: size %d", full, v)
				}
				sum += float64(v)
				squares += float64(v) * float64(v)
			}
			mean := sum / n
			return []float64{mean, squares/n/(mean*mean) - 1, s.achieved.SCV}
		})
		name := fmt.Sprintf("%+v ", cfg)
		within(t, name+"mean", means[0], float64(cfg.Mean), errs[0], 0)
		within(t, name+"scv", means[1], means[2], errs[1], 0.002*means[2]+1e-9)
	}
}

func TestZipfHasItsDistribution(t *testing.T) {
	const n, draws = 50, 400000
	for _, theta := range []float64{0.2, 0.99, 1, 1.000001, 1.5, 3} {
		z := NewRanks(n, theta)
		s := rng.NewStream(1, "zipf")
		var seen [n + 1]float64
		for range draws {
			seen[z.Next(&s)]++
		}
		var total float64
		for k := 1.0; k <= n; k++ {
			total += math.Pow(k, -theta)
		}
		chi := 0.0
		for k := 1; k <= n; k++ {
			want := draws * math.Pow(float64(k), -theta) / total
			chi += (seen[k] - want) * (seen[k] - want) / want
		}
		// 49 degrees of freedom: mean 49, deviation 9.9; the limit is five deviations up.
		if chi > 49+5*9.9 {
			t.Errorf("theta %v: chi-squared %v of 49", theta, chi)
		}
	}
	big := NewRanks(1<<45, 0.99)
	s := rng.NewStream(1, "zipf")
	for range 100000 {
		if k := big.Next(&s); k < 1 || k > 1<<45 {
			t.Fatalf("draw %d", k)
		}
	}
}

func TestPermutationIsOne(t *testing.T) {
	for _, n := range []int64{1, 2, 3, 5, 16, 17, 1000, 4097} {
		p := NewScatter(n, 7, "p")
		seen := make([]bool, n)
		for k := range n {
			v := p.At(k)
			if v < 0 || v >= n || seen[v] {
				t.Fatalf("n %d: %d goes to %d", n, k, v)
			}
			seen[v] = true
		}
	}
}

func collect(t *testing.T, cfg Config) []workload.Record {
	t.Helper()
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	records, err := workload.Collect(g)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

func TestAddresses(t *testing.T) {
	base := func() Config {
		cfg := DefaultConfig()
		cfg.Writes, cfg.Requests = nil, 200000
		return cfg
	}
	n := 200000.0
	t.Run("uniform", func(t *testing.T) {
		cfg := base()
		cfg.Reads.Addresses = Addresses{Start: 4 * units.KiB, Space: 400 * units.KiB}
		var seen [101]float64
		for _, r := range collect(t, cfg) {
			seen[r.Offset/4096]++
		}
		if seen[0] != 0 {
			t.Error("an address before the start")
		}
		for slot, v := range seen[1:] {
			within(t, fmt.Sprint("slot ", slot), v, n/100, math.Sqrt(n/100), 0)
		}
	})
	t.Run("hot-cold", func(t *testing.T) {
		cfg := base()
		cfg.Reads.Addresses = Addresses{Pattern: HotCold, Space: units.GiB, HotRequests: 0.9, HotSpace: 0.1}
		hot := 0.0
		for _, r := range collect(t, cfg) {
			if r.Offset < 26214*4096 {
				hot++
			}
		}
		within(t, "hot share", hot/n, 0.9, math.Sqrt(0.09/n), 1e-5)
	})
	t.Run("zipf", func(t *testing.T) {
		cfg := base()
		cfg.Reads.Addresses = Addresses{Pattern: Zipf, Space: units.TiB, Theta: 0.99}
		counts := make(map[int64]float64)
		for _, r := range collect(t, cfg) {
			counts[r.Offset]++
		}
		top, topAt := 0.0, int64(0)
		for at, v := range counts {
			if v > top {
				top, topAt = v, at
			}
		}
		// The most popular of 2^28 slots has 1/zeta of the requests: the sum of k^-0.99 is (N^0.01-1)/0.01 + 0.58.
		share := 1 / ((math.Pow(1<<28, 0.01)-1)/0.01 + 0.58)
		within(t, "top share", top/n, share, math.Sqrt(share/n), 0.001)
		if topAt == 0 {
			t.Error("the most popular slot is the first: nothing is scattered")
		}
	})
	t.Run("pareto", func(t *testing.T) {
		cfg := base()
		cfg.Reads.Addresses = Addresses{Pattern: Pareto, Space: 4 * units.MiB, H: 0.2}
		counts := make(map[int64]float64)
		for _, r := range collect(t, cfg) {
			counts[r.Offset]++
		}
		var sorted []float64
		for _, v := range counts {
			sorted = append(sorted, v)
		}
		slices.Sort(sorted)
		hot := 0.0
		for _, v := range sorted[len(sorted)-205:] {
			hot += v
		}
		// 80 % of the requests to 20 % of the 1024 slots; selecting the top afterwards favours it slightly.
		within(t, "share of the top fifth", hot/n, 0.8, math.Sqrt(0.16/n), 0.01)
	})
	t.Run("sequential", func(t *testing.T) {
		cfg := base()
		cfg.Requests = 5
		cfg.Reads.Addresses = Addresses{Pattern: Sequential, Start: 4 * units.KiB, Space: 8 * units.KiB}
		for i, r := range collect(t, cfg) {
			if want := int64(4096 * (1 + i%2)); r.Offset != want {
				t.Errorf("request %d goes to %d, want %d", i, r.Offset, want)
			}
		}
	})
	t.Run("runs", func(t *testing.T) {
		for _, streams := range []int{1, 4} {
			cfg := base()
			cfg.Reads.Size = Size{Mean: 20 * units.KB, Shape: Shape{SCV: 2}}
			cfg.Reads.Addresses = Addresses{Space: units.TiB, RunLength: 5, Streams: streams}
			m := characterise.New()
			for _, r := range collect(t, cfg) {
				m.Add(&r)
			}
			// A run has one request with probability 1/5, and a request is in such a run with probability 1/25.
			ratio := m.Result().Reads.SequentialRatio
			within(t, fmt.Sprint(streams, " streams"), float64(ratio.ThirtyTwo), 1-1.0/25, 0, 0.01)
			if streams == 4 && ratio.One > 0.6 {
				t.Errorf("four streams are sequential as one: %v", ratio.One)
			}
		}
	})
	t.Run("everything fits", func(t *testing.T) {
		cfg := base()
		cfg.Requests = 20000
		cfg.Reads.Size = Size{Mean: 64 * units.KiB, Shape: Shape{SCV: 3}}
		cfg.Reads.Addresses = Addresses{Start: units.MiB, Space: units.MiB + 4608, RunLength: 3, Streams: 3}
		for i, r := range collect(t, cfg) {
			if r.Offset < 1<<20 || r.End() > 2<<20+4608 || r.Size <= 0 {
				t.Fatalf("request %d is %+v", i, r)
			}
		}
	})
}

func TestStreamsAreIndependent(t *testing.T) {
	cfg := DefaultConfig()
	both := collect(t, cfg)
	var reads []workload.Record
	for _, r := range both {
		if r.Op == block.Read {
			reads = append(reads, r)
		}
	}
	cfg.Writes = nil
	alone := collect(t, cfg)
	for i := range reads {
		if reads[i] != alone[i] {
			t.Fatalf("read %d changes when the writes go: %+v, %+v", i, reads[i], alone[i])
		}
	}
	last := units.Duration(0)
	for i, r := range both {
		if r.Time < last {
			t.Fatalf("record %d at %v follows %v", i, r.Time, last)
		}
		last = r.Time
	}
	cfg.Seed = 2
	if other := collect(t, cfg); other[0] == alone[0] {
		t.Error("two seeds give one workload")
	}
}

func TestModes(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Reads.Interarrival, cfg.Writes.Interarrival = Interarrival{}, Interarrival{}
	cfg.ReadFraction, cfg.Requests = 0.7, 50000
	cfg.QueueDepth = 8
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if !g.closed() {
		t.Error("a queue depth makes a closed loop")
	}
	share := func(records []workload.Record) float64 {
		reads := 0.0
		for _, r := range records {
			if r.Op == block.Read {
				reads++
			}
		}
		return reads / float64(len(records))
	}
	closed := collect(t, cfg)
	within(t, "closed loop's read share", share(closed), 0.7, math.Sqrt(0.21/50000), 0)
	if closed[len(closed)-1].Time != 0 {
		t.Error("a closed loop has no times")
	}
	cfg.QueueDepth = 0
	cfg.Interarrival = Interarrival{Mean: 10 * units.Microsecond}
	open := collect(t, cfg)
	within(t, "one stream's read share", share(open), 0.7, math.Sqrt(0.21/50000), 0)
	if got, want := open[len(open)-1].Time, 500*units.Millisecond; got != want {
		t.Errorf("50,000 constant gaps of 10us end at %v", got)
	}
	cfg.Requests, cfg.Duration = 0, units.Millisecond
	if got := len(collect(t, cfg)); got != 100 {
		t.Errorf("%d requests in 1 ms", got)
	}
}

func TestRefused(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"neither reads nor writes":         func(c *Config) { c.Reads, c.Writes = nil, nil },
		"reads.size: mean size is 0B":      func(c *Config) { c.Reads.Size = Size{} },
		"size: granule is 100B":            func(c *Config) { c.Reads.Size.Granule = 100 },
		"are not multiples of the granule": func(c *Config) { c.Reads.Size.Min = 513 },
		"a mean of 4KiB is not possible":   func(c *Config) { c.Reads.Size.Min = 8 * units.KiB },
		"is not possible with sizes of at least": func(c *Config) {
			c.Reads.Size.Min = 4 *
				units.KiB
			c.Reads.Size.SCV = 2
		},
		"addresses: space is 0B": func(c *Config) { c.Writes.Addresses.Space = 0 },
		"cannot hold requests of up to": func(c *Config) {
			c.Writes.Addresses.Space = 4 * units.KiB
			c.Writes.Size = Size{Mean: 8 * units.KiB, Max: 64 * units.KiB}
		},
		"zipf's theta is 0":                 func(c *Config) { c.Writes.Addresses.Pattern = Zipf },
		"hot-cold sends 0% of the requests": func(c *Config) { c.Writes.Addresses.Pattern = HotCold },
		"pareto's h is 1e-300": func(c *Config) {
			c.Writes.Addresses.Pattern,
				c.Writes.Addresses.H = Pareto, 1e-300
		},
		"pareto's h is 0.9999999999999999; it": func(c *Config) {
			c.Writes.Addresses.Pattern, c.Writes.Addresses.H = Pareto, 1-1e-16
		},
		"pareto's h is 0": func(c *Config) { c.Writes.Addresses.Pattern = Pareto },
		"endless runs": func(c *Config) {
			c.Writes.Addresses.Pattern, c.Writes.Addresses.RunLength = Sequential, 2
		},
		"mean run length is 0.5":                                   func(c *Config) { c.Writes.Addresses.RunLength = 0.5 },
		"interarrival: its mean is 0s":                             func(c *Config) { c.Reads.Interarrival.Mean = 0 },
		"reads.interarrival: acf1 is 0.2":                          func(c *Config) { c.Reads.Interarrival.ACF1 = 0.2 },
		"reads.interarrival: a common one or a queue depth is set": func(c *Config) { c.QueueDepth = 4 },
		"read_fraction: it needs one stream of both":               func(c *Config) { c.ReadFraction = 0.5 },
		"read_fraction: it needs both":                             func(c *Config) { c.ReadFraction, c.Writes = 0.5, nil },
		"queue_depth: -1 is not possible":                          func(c *Config) { c.QueueDepth = -1 },
		"interarrival: a closed loop":                              func(c *Config) { c.QueueDepth = 1; c.Interarrival.Mean = 5 },
	} {
		cfg := DefaultConfig()
		change(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want one with %q", err, name)
		}
	}
}

func TestText(t *testing.T) {
	var s Size
	if err := s.UnmarshalText([]byte("44KB")); err != nil || s.Mean != 44000 {
		t.Errorf("%+v, %v", s, err)
	}
	var i Interarrival
	if err := i.UnmarshalText([]byte("10us")); err != nil || i.Mean != 10*units.Microsecond {
		t.Errorf("%+v, %v", i, err)
	}
	if i.UnmarshalText([]byte("10")) == nil || s.UnmarshalText([]byte("44")) == nil {
		t.Error("numbers without units must be refused")
	}
}

func heavy() Config {
	cfg := DefaultConfig()
	cfg.Requests = 0
	cfg.Reads.Interarrival = Interarrival{10 * units.Microsecond, Shape{SCV: 4, Skewness: 6, ACF1: 0.2}}
	cfg.Reads.Size = Size{Mean: 44 * units.KB, Shape: Shape{SCV: 1.24}}
	cfg.Reads.Addresses = Addresses{Pattern: Zipf, Space: units.TiB, Theta: 0.99}
	cfg.Writes.Size = Size{Mean: 23 * units.KB, Shape: Shape{SCV: 0.4}}
	cfg.Writes.Addresses = Addresses{Pattern: HotCold, Space: units.TiB, HotRequests: 0.9, HotSpace: 0.1,
		RunLength: 4, Streams: 8}
	return cfg
}

func TestNextDoesNotAllocate(t *testing.T) {
	g, err := New(heavy())
	if err != nil {
		t.Fatal(err)
	}
	var r workload.Record
	if n := testing.AllocsPerRun(1000, func() { g.Next(&r) }); n != 0 {
		t.Errorf("%v allocations a request", n)
	}
}

func BenchmarkNext(b *testing.B) {
	g, err := New(heavy())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	var r workload.Record
	for range b.N {
		if err := g.Next(&r); err == io.EOF {
			b.Fatal("ended")
		}
	}
}

func Example() {
	cfg := DefaultConfig()
	cfg.Requests = 100000
	cfg.Reads.Interarrival = Interarrival{10 * units.Microsecond, Shape{SCV: 4, Skewness: 6, ACF1: 0.2}}
	g, err := New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	var r workload.Record
	reads := 0
	for g.Next(&r) == nil {
		if r.Op == block.Read {
			reads++
		}
	}
	fmt.Printf("%.1f reads to a write\n", float64(reads)/float64(100000-reads))
	// Output: 5.9 reads to a write
}
