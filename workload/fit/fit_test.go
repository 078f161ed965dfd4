package fit

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"farflash/internal/inputs"
	"farflash/numeric/units"
	"farflash/workload/characterise"
	"farflash/workload/synth"
	"farflash/workload/trace"
)

func measure(t *testing.T, cfg synth.Config) characterise.Result {
	t.Helper()
	g, err := synth.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	res, err := characterise.Run(g)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// TestFitReturnsWhatWentIn synthesises a workload, fits it, and compares the fitted parameters with the original ones.
// Each figure may differ by five of its standard errors, measured over replicates with other seeds, plus 1 % for the
// estimators' bias of order 1/n.
func TestFitReturnsWhatWentIn(t *testing.T) {
	const replicates, requests = 8, 150000
	original := synth.Config{
		Reads: &synth.Flow{
			Size: synth.Size{Mean: 44 * units.KB, Shape: synth.Shape{SCV: 1.5}, Max: 64 * units.MiB},
			Interarrival: synth.Interarrival{Mean: 10 * units.Microsecond,
				Shape: synth.Shape{SCV: 4, Skewness: 6, ACF1: 0.2}},
			Addresses: synth.Addresses{Space: 32 * units.GiB, RunLength: 3},
		},
		Writes: &synth.Flow{
			Size:         synth.Size{Mean: 16 * units.KiB, Granule: 4 * units.KiB, Shape: synth.Shape{SCV: 0.5}},
			Interarrival: synth.Interarrival{Mean: 30 * units.Microsecond, Shape: synth.Shape{SCV: 0.25}},
			Addresses:    synth.Addresses{Space: 32 * units.GiB},
		},
		Requests: requests,
	}
	figures := func(c *synth.Config) map[string]float64 {
		return map[string]float64{
			"reads' inter-arrival mean":     c.Reads.Interarrival.Mean.Microseconds(),
			"reads' inter-arrival SCV":      c.Reads.Interarrival.SCV,
			"reads' inter-arrival skewness": c.Reads.Interarrival.Skewness,
			"reads' inter-arrival acf1":     c.Reads.Interarrival.ACF1,
			"reads' mean size":              float64(c.Reads.Size.Mean),
			"reads' size SCV":               c.Reads.Size.SCV,
			"reads' run length":             c.Reads.Addresses.RunLength,
			"writes' inter-arrival mean":    c.Writes.Interarrival.Mean.Microseconds(),
			"writes' inter-arrival SCV":     c.Writes.Interarrival.SCV,
			"writes' mean size":             float64(c.Writes.Size.Mean),
			"writes' size SCV":              c.Writes.Size.SCV,
			"space":                         float64(c.Reads.Addresses.Space),
		}
	}
	want := figures(&original)
	sums, squares := make(map[string]float64), make(map[string]float64)
	for seed := range replicates {
		cfg := original
		cfg.Seed = uint64(seed + 1)
		got, err := Synthetic(measure(t, cfg))
		if err != nil {
			t.Fatal(err)
		}
		if got.Config.Requests != requests {
			t.Errorf("%d requests", got.Config.Requests)
		}
		for name, v := range figures(&got.Config) {
			sums[name] += v
			squares[name] += v * v
		}
	}
	for name, w := range want {
		mean := sums[name] / replicates
		standardError := math.Sqrt(max(0, squares[name]/replicates-mean*mean) / (replicates - 1))
		limit := 5*standardError + 0.01*w
		switch name {
		case "writes' size SCV":
			// Rounding to 4 KiB adds a variance of 4096²/6, and clamping at the minimum size removes some; the fit
			// compensates.
			limit += 0.03 * w
		case "space":
			// The footprint determines a space poorly if few addresses are touched twice.
			limit += 0.1 * w
		}
		if math.IsNaN(mean) || math.Abs(mean-w) > limit {
			t.Errorf("%s: %v went in, %v came out, with a standard error of %v", name, w, mean, standardError)
		}
	}
}

// TestFitOfRealTraces fits real traces, synthesises workloads from the fits, and compares the measurements of both.
func TestFitOfRealTraces(t *testing.T) {
	for _, file := range []string{"msr/hm_0-sample-1000.csv", "systor17/systor17-traces-sample.csv.gz",
		"tencent-cbs/cloud_storage-sample.bz2",
		"cloudphysics/cloudPhysicsIO-head20000.vscsi", "mqsim/tpcc-small.trace",
		"ycsb-rocksdb-blkparse/evelii-sample.txt", "disksim/ascii-head5000.trace",
		"fio-iolog/t0038.iolog", "spc/spec-example.spc", "fiu/one-line.blkparse", "alibaba/io_traces-first7.csv",
		"blkparse/wiscsee-blkparse-output.txt"} {
		r, err := trace.Open(inputs.Path(t, "data/"+file), trace.Options{})
		if err != nil {
			t.Fatal(err)
		}
		res, err := characterise.Run(r)
		r.Close()
		if err != nil {
			t.Fatal(err)
		}
		fitted, err := Synthetic(res)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		got := measure(t, fitted.Config)
		for _, pair := range []struct {
			name      string
			want, got characterise.Side
		}{{"reads", res.Reads, got.Reads}, {"writes", res.Writes, got.Writes}} {
			if pair.want.Count < 100 {
				continue
			}
			// The mean size has a relative standard error of sqrt(SCV/n), more if sizes are correlated.
			limit := 0.01 + 10*math.Sqrt(float64(pair.want.Size.SCV)/float64(pair.want.Count))
			if relative := math.Abs(float64(pair.got.Size.Mean/pair.want.Size.Mean) - 1); relative > limit {
				t.Errorf("%s: %s of %v B become %v B", file, pair.name, pair.want.Size.Mean, pair.got.Size.Mean)
			}
		}
	}
}

// TestSynthesisedTracesMeasureTheSame fits real traces, synthesises long ones from the fits and measures those: mean
// and SCV of sizes and inter-arrival times are reproduced, within 2 % and five standard errors over replicates, or a
// note explains why not.
func TestSynthesisedTracesMeasureTheSame(t *testing.T) {
	const replicates = 6
	for _, file := range []string{"msr/hm_0-sample-1000.csv", "systor17/systor17-traces-sample.csv.gz",
		"cloudphysics/cloudPhysicsIO-head20000.vscsi", "mqsim/tpcc-small.trace"} {
		r, err := trace.Open(inputs.Path(t, "data/"+file), trace.Options{})
		if err != nil {
			t.Fatal(err)
		}
		original, err := characterise.Run(r)
		r.Close()
		if err != nil {
			t.Fatal(err)
		}
		fitted, err := Synthetic(original)
		if err != nil {
			t.Fatal(err)
		}
		notes := strings.Join(fitted.Notes, "\n")
		var got [replicates]characterise.Result
		for i := range got {
			cfg := fitted.Config
			cfg.Seed, cfg.Requests = uint64(i+1), 40000
			got[i] = measure(t, cfg)
		}
		for _, op := range []string{"reads", "writes"} {
			side := func(r *characterise.Result) *characterise.Side {
				if op == "reads" {
					return &r.Reads
				}
				return &r.Writes
			}
			if side(&original).Count < 100 {
				continue
			}
			for _, c := range []struct {
				what, note string
				of         func(*characterise.Side) characterise.Number
			}{
				{"sizes' mean", "none", func(s *characterise.Side) characterise.Number { return s.Size.Mean }},
				{"sizes' SCV", op + ": sizes have an SCV of",
					func(s *characterise.Side) characterise.Number { return s.Size.SCV }},
				{"times' mean", "none", func(s *characterise.Side) characterise.Number { return s.Interarrival.Mean }},
				{"times' SCV", op + "' inter-arrival times: an SCV of",
					func(s *characterise.Side) characterise.Number { return s.Interarrival.SCV }},
			} {
				want, sum, squares := float64(c.of(side(&original))), 0.0, 0.0
				for i := range got {
					v := float64(c.of(side(&got[i])))
					sum += v
					squares += v * v
				}
				mean := sum / replicates
				standardError := math.Sqrt(max(0, squares/replicates-mean*mean) / (replicates - 1))
				if math.IsNaN(mean) != math.IsNaN(want) || math.Abs(mean-want) > 0.02*want+5*standardError {
					if !strings.Contains(notes, c.note) {
						t.Errorf("%s: %s %s of %.5g becomes %.5g ± %.3g, and no note says so:\n%s", file, op, c.what,
							want, mean, standardError, notes)
					}
				}
			}
		}
	}
}

func TestOddMeasurements(t *testing.T) {
	figure := func(mean, scv, skewness, acf1 float64) characterise.Figure {
		return characterise.Figure{Mean: characterise.Number(mean), SCV: characterise.Number(scv),
			Skewness: characterise.Number(skewness), ACF1: characterise.Number(acf1)}
	}
	base := func() characterise.Result {
		return characterise.Result{
			Requests: 1000, Span: 1, Volumes: 1, Footprint: 1 << 30, HighestByte: 1 << 40,
			Reads: characterise.Side{Count: 1000, Bytes: 1 << 30, SizeMin: 4096, SizeMax: 1 << 20, SizeGranule: 4096,
				Alignment: 4096,
				Size:      figure(65536, 0.5, 1, 0), Interarrival: figure(1000, 3, 5, 0.1)},
		}
	}
	for want, change := range map[string]func(*characterise.Result){
		"skewness 2 is out of reach": func(r *characterise.Result) {
			r.Reads.Interarrival = figure(1000, 3,
				2, 0.1)
		},
		"negative lag-1 autocorrelation": func(r *characterise.Result) {
			r.Reads.Interarrival = figure(1000, 3,
				5, -0.3)
		},
		"is lowered to 0.33": func(r *characterise.Result) {
			r.Reads.Interarrival = figure(1000, 3,
				5, 0.6)
		},
		"0.4 is not matched; with an SCV of 0.5": func(r *characterise.Result) {
			r.Reads.Interarrival = figure(1000, 0.5,
				1.4, 0.4)
		},
		"is 1 within its error: exponential": func(r *characterise.Result) {
			r.Reads.Interarrival = figure(1000,
				1.01, 2, 0)
		},
		"closed loop": func(r *characterise.Result) {
			r.Span = 0
			r.Reads.Interarrival = figure(0, math.NaN(), math.NaN(), math.NaN())
		},
		"7 trims and flushes are left out":      func(r *characterise.Result) { r.Trims, r.Flushes = 3, 4 },
		"5 volumes become one":                  func(r *characterise.Result) { r.Volumes = 5 },
		"one request has no inter-arrival time": func(r *characterise.Result) { r.Writes = r.Reads; r.Writes.Count = 1 },
		// Sizes from 4 KiB to 1 MiB with a mean of 64 KiB have an SCV of at most (mean-least)(most-mean)/mean² = 14.06.
		"reads: sizes have an SCV of 10.88 instead of 40":      func(r *characterise.Result) { r.Reads.Size = figure(65536, 40, 9, 0) },
		"becomes 3 within 4KiB..1MiB; skewness is not matched": func(r *characterise.Result) { r.Reads.Size = figure(65536, 3, 3, 0) },
		"reads: runs of 3.16 requests, 4 at once": func(r *characterise.Result) {
			r.Reads.SequentialRatio = characterise.Sequential{One: 0.1, Eight: 0.9, ThirtyTwo: 0.9}
		},
		"skewness is 1.41 instead of -3": func(r *characterise.Result) {
			r.Reads.Interarrival = figure(1000, 0.5, -3,
				0)
		},
	} {
		m := base()
		change(&m)
		got, err := Synthetic(m)
		if err != nil {
			t.Errorf("%q: %v", want, err)
			continue
		}
		if notes := strings.Join(got.Notes, "\n"); !strings.Contains(notes, want) {
			t.Errorf("notes %q have no %q", notes, want)
		}
	}
	if _, err := Synthetic(characterise.Result{}); err == nil {
		t.Error("nothing must be refused")
	}
}

func Example() {
	cfg := synth.DefaultConfig()
	cfg.Requests = 100000
	g, _ := synth.New(cfg)
	measured, _ := characterise.Run(g)
	fitted, err := Synthetic(measured)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(fitted.Config.Reads.Size.Mean, fitted.Config.Reads.Interarrival.Kind)
	// Output: 4KiB exponential
}
