package drives

import (
	"math"
	"strings"
	"testing"

	"farflash/experiment/trial"
	"farflash/numeric/rng"
	"farflash/planner/tco"
	"farflash/result"
	"farflash/scenario/shape"
)

// store is an in-memory cache that counts calls.
type store struct {
	kept       map[string]*result.Result
	gets, puts int
}

func (s *store) Get(t trial.Trial) (*result.Result, error) { s.gets++; return s.kept[t.Name()], nil }

func (s *store) Put(t trial.Trial, r *result.Result) error {
	s.puts++
	s.kept[t.Name()] = r
	return nil
}

func loaded(t *testing.T, text string) *Plan {
	t.Helper()
	p, err := Load(shape.Source{File: "plan.yaml", Text: []byte(text)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const oneOfTLC = "drives: [{model: Intel DC P3700 2TB, count: 1, price: $1000, latency: tlc-enterprise}]\nworkloads: " +
	"{list: [{name: w, working_set_gb: 1, peak_iops: 1000}]}\n"

// TestSimulatedTail compares interpolated latencies with simulations of the same mixes.
func TestSimulatedTail(t *testing.T) {
	p := loaded(t, oneOfTLC)
	f, err := p.fleet(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	x := f.drives[0].Tail.(*simulatedTail)
	if m := x.Measures(); len(m) != 4 || m[1] != x.rate(0) || m[2] != x.rate(0.5) || m[3] != x.rate(1) || m[1] == m[3] {
		t.Errorf("it is known by %v", m)
	}
	r := rng.NewStream(1, "mixes")
	for range 2 {
		// Sizes are whole pages, because partial pages are read before they are written.
		m := tco.Traffic{Load: 0.1 + 0.4*r.Float64(), Writes: 0.1 + 0.8*r.Float64(), Size: 4 * float64(1+r.IntN(4)),
			Sequential: r.Float64()}
		read, _ := x.P99(m)
		v, err := p.simulatedLatency(t.Context(), x.src,
			mixed{m.Load * x.rate(m.Writes), m.Writes, m.Size, m.Sequential})
		if err != nil || math.Abs(read/v.read-1) > 0.15 {
			t.Errorf("%+v: %v us, simulated %v us, %v", m, read, v.read, err)
		}
	}
	// At a simulated mix the latency is exact, regardless of earlier look-ups.
	_, write := x.P99(tco.Traffic{Load: 0.3, Writes: 0.5, Size: 8})
	v, err := p.simulatedLatency(t.Context(), x.src, mixed{0.3 * x.rate(0.5), 0.5, 8, 0})
	if err != nil || math.Abs(write/v.write-1) > 1e-9 {
		t.Errorf("%v us, simulated %v us, %v", write, v.write, err)
	}
	// Beyond the last load there is no simulation, and larger I/Os are not faster.
	if read, write := x.P99(tco.Traffic{Load: 0.96, Size: 4}); !math.IsInf(read, 1) || !math.IsInf(write, 1) {
		t.Errorf("%v and %v us beyond the last load", read, write)
	}
	small, _ := x.P99(tco.Traffic{Load: 0.3, Size: 4})
	large, _ := x.P99(tco.Traffic{Load: 0.3, Size: 16})
	mixed, _ := x.P99(tco.Traffic{Load: 0.3, Size: 4, Writes: 0.3})
	if !(large > 1.1*small) || mixed == small {
		t.Errorf("reads of 4 KiB take %v us, of 16 KiB %v, of 4 KiB among writes %v", small, large, mixed)
	}
}

// TestMixDecides verifies that a workload's neighbours decide whether its limit is met, and so the number of drives;
// and that no mix is simulated twice.
func TestMixDecides(t *testing.T) {
	plan := func(size string) string {
		return "drives: [{model: Intel DC P3700 2TB, up_to: 3, price: $1000, latency: tlc-enterprise}]\n" +
			"workloads: {list: [{name: quick, working_set_gb: 1, peak_iops: 60000, p99: 120us}, {name: other, " +
			"working_set_gb: 1, write_gb_per_day: 10, write_share: 20%, peak_iops: 60000" + size + "}]}\n"
	}
	kept := &store{kept: map[string]*result.Result{}}
	for size, want := range map[string]int{"": 1, ", io_size: 128KiB": 2} {
		o, err := loaded(t, plan(size)).Solve(t.Context(), Options{Cache: kept})
		if err != nil {
			t.Fatal(err)
		}
		if o.Assessment.Used != want {
			t.Errorf("with neighbours%s: %d drives, not %d", size, o.Assessment.Used, want)
		}
	}
	puts := kept.puts
	if _, err := loaded(t, plan("")).Solve(t.Context(), Options{Cache: kept}); err != nil || kept.puts != puts ||
		puts == 0 {
		t.Errorf("%d results kept, then %d: %v", puts, kept.puts, err)
	}
}

// TestUnsimulable verifies that a failing simulation is an error of the plan at its position.
func TestUnsimulable(t *testing.T) {
	p := loaded(t, strings.Replace(oneOfTLC, "latency: tlc-enterprise", "read_iops: 9000000, latency: mqsim-default",
		1))
	if _, err := p.Solve(t.Context(), Options{}); err == nil ||
		!strings.Contains(err.Error(),
			"plan.yaml:1:91: drives[0].latency: mqsim-default does not keep up with 34332.4 I/Os a second") {
		t.Errorf("error %v", err)
	}
	_, err := Load(shape.Source{File: "plan.yaml",
		Text: []byte(strings.Replace(oneOfTLC, "peak_iops: 1000", "peak_iops: 1, io_size: 32MiB", 1))}, nil)
	if err == nil || !strings.Contains(err.Error(),
		"the I/Os of workload w have 32768 KiB, and up to 16384 are simulated; state points instead") {
		t.Errorf("error %v", err)
	}
}
