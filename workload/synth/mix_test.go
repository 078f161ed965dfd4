package synth

import (
	"math"
	"strings"
	"testing"

	"farflash/internal/patience"
	"farflash/numeric/units"
	"farflash/workload"
)

// TestMix verifies that the sizes of a mixture occur with their shares, by a chi-squared test at one in a thousand, and
// have the stated mean.
func TestMix(t *testing.T) {
	for _, x := range []struct {
		mix    Mix
		shares map[int64]float64
		most   float64 // critical value of chi-squared, by degrees of freedom
	}{
		{"4KiB/60:64KiB/40", map[int64]float64{4096: 0.6, 65536: 0.4}, 10.83},
		{"4KiB/50:8KiB:16KiB", map[int64]float64{4096: 0.5, 8192: 0.25, 16384: 0.25}, 13.82},
		{"4KiB-16KiB", map[int64]float64{4096: 0.25, 8192: 0.25, 12288: 0.25, 16384: 0.25}, 16.27},
		{"4KiB/0:8KiB/100:16KiB/0", map[int64]float64{8192: 1}, 1e-9},
	} {
		cfg := Config{Reads: &Flow{Size: Size{Mean: 4 * units.KiB, Mix: x.mix},
			Addresses: Addresses{Space: units.GiB}}, QueueDepth: 1, Requests: 20000, Seed: 3}
		g, err := New(cfg)
		if err != nil {
			t.Fatalf("%s: %v", x.mix, err)
		}
		count := map[int64]float64{}
		var r workload.Record
		sum := 0.0
		for g.Next(&r) == nil {
			count[r.Size]++
			sum += float64(r.Size)
		}
		chi, mean := 0.0, 0.0
		for size, share := range x.shares {
			want := share * 20000
			chi += (count[size] - want) * (count[size] - want) / want
			mean += share * float64(size)
			delete(count, size)
		}
		if chi > x.most || len(count) > 0 {
			t.Errorf("%s: chi-squared %v of at most %v; other sizes %v", x.mix, chi, x.most, count)
		}
		if got := cfg.Reads.Size.Average(); math.Abs(got-mean) > 1e-6 || math.Abs(sum/20000/mean-1) > 0.02 {
			t.Errorf("%s: the mean is %v, said to be %v, and %v came", x.mix, mean, got, sum/20000)
		}
	}
	for mix, want := range map[Mix]string{
		"4KiB/60:8KiB/30": "are 90 % in all", "4KiB/60:8KiB/50": "must not be more than 100",
		"4KiB/x": "is not a share", "64KiB-4KiB": "is not a range", "100B": "multiples of 512B",
		"512B-1GiB": "use at most 16384", "q": "q", "8KiB/-3": "is not a share",
	} {
		_, err := New(Config{Reads: &Flow{Size: Size{Mix: mix}, Addresses: Addresses{Space: units.GiB}}, QueueDepth: 1})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", mix, err, want)
		}
	}
	_, err := New(Config{Reads: &Flow{Size: Size{Mix: "4KiB", Shape: Shape{SCV: 2}},
		Addresses: Addresses{Space: units.GiB}}, QueueDepth: 1})
	if err == nil || !strings.Contains(err.Error(), "reads.size.mix: mix defines all sizes") {
		t.Errorf("%v", err)
	}
}

// TestSequentialStreams verifies that requests go to equal parts of the space in turn.
func TestSequentialStreams(t *testing.T) {
	flow := &Flow{Size: Size{Mean: 4 * units.KiB},
		Addresses: Addresses{Pattern: Sequential, Start: units.MiB, Space: 24 * units.KiB, Align: 4 * units.KiB,
			Streams: 3}}
	g, err := New(Config{Reads: flow, QueueDepth: 1, Requests: 8})
	if err != nil {
		t.Fatal(err)
	}
	list, err := workload.Collect(g)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int64{0, 2, 4, 1, 3, 5, 0, 2} {
		if got := (list[i].Offset - int64(units.MiB)) / 4096; got != want {
			t.Errorf("request %d goes to block %d instead of %d", i, got, want)
		}
	}
	flow.Size.Mean = 16 * units.KiB
	if _, err := New(Config{Reads: flow, QueueDepth: 1}); err == nil ||
		!strings.Contains(err.Error(), "3 streams in 24KiB have 8KiB each") {
		t.Errorf("%v", err)
	}
}

func FuzzMix(f *testing.F) {
	for _, x := range []string{"4KiB/60:64KiB/40", "4KiB/50:8KiB:16KiB", "4KiB-16KiB", "4KiB/0:8KiB/100", "1GiB"} {
		f.Add(x)
	}
	f.Fuzz(func(t *testing.T, text string) {
		defer patience.Limit()()
		x, err := newMixture(Mix(text))
		if err != nil {
			return
		}
		for _, u := range []float64{0, 0.25, 0.5, 1 - 1e-16} {
			if n := x.draw(u); n <= 0 || n > x.largest {
				t.Fatalf("%q draws %d at %v", text, n, u)
			}
		}
	})
}
