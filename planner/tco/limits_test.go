package tco

import (
	"errors"
	"math"
	"strings"
	"testing"

	"farflash/policy/ftl/waf"
)

// TestLimits verifies that each figure accepts its minimum and maximum and no value beyond, and that infinities and NaN
// are rejected.
func TestLimits(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	below := func(v float64) float64 { return math.Nextafter(v, -inf) }
	above := func(v float64) float64 { return math.Nextafter(v, inf) }
	of := func(set func(*Config, *Drive, *Workload, float64)) func(float64) error {
		return func(v float64) error {
			cfg := DefaultConfig()
			d := Drive{Name: "d", Buy: 1, Budget: 1000, Capacity: 1, IOPS: 1, WAF: Constant(1)}
			w := Workload{Name: "w", WriteRate: 1, Arrival: 5}
			set(&cfg, &d, &w, v)
			return checkInput(cfg, []Drive{d}, []Workload{w})
		}
	}
	costs := func(set func(*Costs, float64)) func(float64) error {
		return func(v float64) error {
			c := DefaultCosts()
			set(&c, v)
			return c.check()
		}
	}
	for name, c := range map[string]struct {
		check     func(float64) error
		good, bad []float64
	}{
		"horizon": {of(func(c *Config, _ *Drive, _ *Workload, v float64) { c.Horizon = v }), []float64{0, 1e9},
			[]float64{below(0), inf, nan}},
		"fill space": {of(func(c *Config, _ *Drive, _ *Workload, v float64) { c.FillSpace = v }), []float64{1e-9, 1},
			[]float64{0, above(1), nan}},
		"fill IOPS": {of(func(c *Config, _ *Drive, _ *Workload, v float64) { c.FillIOPS = v }), []float64{1e-9, 1},
			[]float64{0, above(1), nan}},
		"price": {of(func(_ *Config, d *Drive, _ *Workload, v float64) { d.Buy = v }), []float64{0, 1e300},
			[]float64{below(0), inf, nan}},
		"running": {of(func(_ *Config, d *Drive, _ *Workload, v float64) { d.Run = v }), []float64{0, 1e300},
			[]float64{below(0), inf, nan}},
		"budget": {of(func(_ *Config, d *Drive, _ *Workload, v float64) { d.Budget = v }),
			[]float64{1e-9, 1e300}, []float64{0, inf, nan}},
		"wear": {of(func(_ *Config, d *Drive, _ *Workload, v float64) { d.Worn = v }),
			[]float64{0, below(1000)}, []float64{below(0), 1000, nan}},
		"capacity": {of(func(_ *Config, d *Drive, _ *Workload, v float64) { d.Capacity = v }),
			[]float64{1e-9, 1e300}, []float64{0, inf, nan}},
		"IOPS": {of(func(_ *Config, d *Drive, _ *Workload, v float64) { d.IOPS = v }), []float64{1e-9, 1e300},
			[]float64{0, inf, nan}},
		"stripes": {of(func(_ *Config, d *Drive, _ *Workload, v float64) { d.Stripe = Stripe{v, v, v, v, 0} }),
			[]float64{0, 1}, []float64{below(1), nan}},
		"write rate": {of(func(_ *Config, _ *Drive, w *Workload, v float64) { w.WriteRate = v }),
			[]float64{0, 1e300}, []float64{below(0), inf, nan}},
		"sequential": {of(func(_ *Config, _ *Drive, w *Workload, v float64) { w.Sequential = v }), []float64{0, 1},
			[]float64{below(0), above(1), nan}},
		"peak": {of(func(_ *Config, _ *Drive, w *Workload, v float64) { w.PeakIOPS = v }), []float64{0, 1e300},
			[]float64{below(0), inf, nan}},
		"write share": {of(func(_ *Config, _ *Drive, w *Workload, v float64) { w.WriteShare = v }), []float64{0, 1},
			[]float64{below(0), above(1), nan}},
		"working set": {of(func(_ *Config, _ *Drive, w *Workload, v float64) { w.WorkingSet = v }),
			[]float64{0, 1e300}, []float64{below(0), inf, nan}},
		"arrival": {of(func(_ *Config, _ *Drive, w *Workload, v float64) { w.Arrival = v }), []float64{0, 1e300},
			[]float64{below(0), inf, nan}},
		"end": {of(func(_ *Config, _ *Drive, w *Workload, v float64) { w.End = v }), []float64{0, above(5)},
			[]float64{5, 1, inf, nan}},
		"full stripe": {of(func(_ *Config, _ *Drive, w *Workload, v float64) { w.FullStripe = v }), []float64{0, 1},
			[]float64{below(0), above(1), nan}},
		"latency": {of(func(_ *Config, _ *Drive, w *Workload, v float64) { w.P99 = v }), []float64{0, 1e300},
			[]float64{below(0), inf, nan}},
		"setup": {costs(func(c *Costs, v float64) { c.Setup = v }), []float64{0, 1e300},
			[]float64{below(0), inf, nan}},
		"labour": {costs(func(c *Costs, v float64) { c.Labour = v }), []float64{0, 1e300},
			[]float64{below(0), inf, nan}},
		"PUE": {costs(func(c *Costs, v float64) { c.PUE = v }), []float64{1, 1e300},
			[]float64{below(1), inf, nan}},
		"warranty": {costs(func(c *Costs, v float64) { c.Warranty = v }), []float64{0, 1e300},
			[]float64{below(0), inf, nan}},
		"a weight": {func(v float64) error {
			_, err := NewAllocator(AllocatorConfig{Config: DefaultConfig(), Weights: Weights{SpaceCV: v}},
				goldenDrives())
			return err
		}, []float64{0, 1e300}, []float64{below(0), inf, nan}},
		"a threshold of zones": {func(v float64) error {
			_, err := Offline(OfflineConfig{Config: DefaultConfig(), Thresholds: []float64{v}}, goldenDrives()[0], nil)
			return err
		}, []float64{1e-9, below(1)}, []float64{0, 1, nan}},
		"a switch of zones": {func(v float64) error {
			_, err := Offline(OfflineConfig{Config: DefaultConfig(), Switch: v}, goldenDrives()[0], nil)
			return err
		}, []float64{0, inf}, []float64{below(0), nan}},
		"a share of a table": {func(v float64) error {
			_, err := NewTable([]waf.MixPoint{{S: 0.5, WAF: 2}, {S: v, WAF: 1}})
			return err
		}, []float64{above(0.5), 1}, []float64{0.5, 0, above(1), nan}},
		"a first share of a table": {func(v float64) error {
			_, err := NewTable([]waf.MixPoint{{S: v, WAF: 2}, {S: 1, WAF: 1}})
			return err
		}, []float64{0, below(1)}, []float64{below(0), 1, nan}},
		"an amplification of a table": {func(v float64) error {
			_, err := NewTable([]waf.MixPoint{{S: 0.5, WAF: 2}, {S: 1, WAF: v}})
			return err
		}, []float64{1, 1e300}, []float64{below(1), inf, nan}},
		"a load of a tail": {func(v float64) error {
			_, err := NewTailTable([]TailPoint{{v, 5}, {1, 5}})
			return err
		}, []float64{0, below(1)}, []float64{below(0), 1, inf, nan}},
		"a latency of a tail": {func(v float64) error {
			_, err := NewTailTable([]TailPoint{{0, v}, {1, 5}})
			return err
		}, []float64{1e-9, 5}, []float64{0, above(5), inf, nan}},
	} {
		for _, v := range c.good {
			if err := c.check(v); err != nil {
				t.Errorf("%s of %v: %v", name, v, err)
			}
		}
		for _, v := range c.bad {
			if c.check(v) == nil {
				t.Errorf("%s of %v was taken", name, v)
			}
		}
	}
	if _, err := NewTable([]waf.MixPoint{{S: 0.5, WAF: 2}}); err == nil {
		t.Error("a table of one point was taken")
	}
	if _, err := NewTailTable(nil); err == nil {
		t.Error("a tail without points was taken")
	}
	still := Config{FillSpace: 1, FillIOPS: 1}
	if checkInput(still, nil, []Workload{{}}) == nil || checkInput(still, nil, []Workload{{End: 3}}) != nil ||
		checkInput(DefaultConfig(), nil, []Workload{{}}) != nil {
		t.Error("a workload that writes nothing needs an end or a horizon, and one will do")
	}
}

// TestArrayLimits checks the smallest valid arrays and the ones just below.
func TestArrayLimits(t *testing.T) {
	for _, c := range []struct {
		a    Array
		good bool
	}{
		{Array{}, true}, {Array{Drives: 1}, true}, {Array{Drives: 2}, false},
		{Array{Kind: RAID0, Drives: 1}, true}, {Array{Kind: RAID0}, false},
		{Array{Kind: RAID5, Drives: 3}, true}, {Array{Kind: RAID5, Drives: 2}, false},
		{Array{Kind: RAID1, Drives: 2}, true}, {Array{Kind: RAID1, Drives: 0}, false},
		{Array{Kind: RAID1, Drives: 5}, false},
		{Array{Kind: ErasureCode, Drives: 3, Data: 2, Parity: 1}, true},
		{Array{Kind: ErasureCode, Drives: 2, Data: 2, Parity: 1}, false},
		{Array{Kind: ErasureCode, Drives: 3, Data: 0, Parity: 1}, false},
		{Array{Kind: ErasureCode, Drives: 3, Data: 3, Parity: 0}, true},
		{Array{Kind: ErasureCode, Drives: 3, Data: 3, Parity: -1}, false},
		{Array{Kind: Replication, Drives: 3, Parity: 2}, true}, {Array{Kind: Replication, Drives: 2, Parity: 2}, false},
		{Array{Kind: Replication, Drives: 1, Parity: 0}, true},
		{Array{Kind: Replication, Drives: 1, Parity: -1}, false},
	} {
		if err := c.a.check(); (err == nil) != c.good {
			t.Errorf("%+v: %v", c.a, err)
		}
	}
	for a, want := range map[Array][2]int{{}: {1, 0}, {Kind: RAID0, Drives: 4}: {4, 0},
		{Kind: RAID1, Drives: 4}: {1, 1}, {Kind: RAID5, Drives: 4}: {3, 1},
		{Kind: ErasureCode, Drives: 9, Data: 4, Parity: 2}: {4, 2}, {Kind: Replication, Drives: 9, Parity: 2}: {1, 2}} {
		if k, m := a.Shape(); k != want[0] || m != want[1] {
			t.Errorf("%v: %d and %d", a, k, m)
		}
	}
	if s := (Array{Kind: Replication, Drives: 9, Parity: 2}).String(); s != "3 replicas over 9" {
		t.Error(s)
	}
}

// TestTables checks interpolation between points and the values beyond them.
func TestTables(t *testing.T) {
	a, err := NewTable([]waf.MixPoint{{S: 0.1, WAF: 4}, {S: 0.3, WAF: 5}, {S: 0.5, WAF: 3}, {S: 0.9, WAF: 1}})
	if err != nil {
		t.Fatal(err)
	}
	for s, want := range map[float64]float64{0: 4, 0.1: 4, 0.2: 4.5, 0.3: 5, 0.4: 4, 0.5: 3, 0.7: 2, 0.9: 1, 1: 1} {
		if got := a.At(s); math.Abs(got-want) > 1e-12 {
			t.Errorf("at %v: %v, not %v", s, got, want)
		}
	}
	b, err := NewTailTable([]TailPoint{{0.1, 100}, {0.5, 200}, {0.9, 1000}})
	if err != nil {
		t.Fatal(err)
	}
	for u, want := range map[float64]float64{0: 100, 0.1: 100, 0.2: 125, 0.5: 200, 0.7: 600, 0.9: 1000,
		0.91: math.Inf(1)} {
		if got := b.At(u); math.Abs(got-want) > 1e-9 {
			t.Errorf("at %v: %v us, not %v", u, got, want)
		}
	}
	if Constant(0.5).At(0) != 1 || Constant(3).At(1) != 3 {
		t.Error("a constant is not one")
	}
}

// TestRows covers every column of a table of workloads, repeated rows, and invalid tables.
func TestRows(t *testing.T) {
	head := strings.Join(workloadColumns(), ",") + "\n"
	list, err := ReadWorkloads(strings.NewReader("\ufeff"+head+
		"# none\n a , 1_000 , 50% , 7 , 0.25 , 3 , 2 , 9 , 100 % , 500 , g , -20% , 64, t.csv, 2\n,,,,,,,,,,,,,,\n"),
		"w.csv")
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	want := Workload{Name: "a-2", WriteRate: 1000, Sequential: 0.5, PeakIOPS: 7, WriteShare: 0.25, WorkingSet: 3,
		Arrival: 2, End: 9, FullStripe: 1, P99: 500, Apart: "g", Growth: -0.2, IOSize: 64, Trace: "t.csv"}
	if list[1] != want || list[0].Name != "a-1" {
		t.Errorf("%+v", list)
	}
	for row, good := range map[string]bool{
		"a,1,1,1,1,1,0,0,0,0,,,,,1": true, "a,1,1.1,1,1,1,0,0,0,0,,,,,1": false, "a,1,1,1,1,1,0,0,0,0,,,,,1.5": false,
		"a,1,1,1,1,1,0,0,0,0,,,,,0":       false,
		"a,1,1,1,1,1,0,0,0,0,,,,,1000001": false, ",1,1,1,1,1,0,0,0,0,,,,,1": false,
		"a,inf,1,1,1,1,0,0,0,0,,,,,1": false, "a,nan,1,1,1,1,0,0,0,0,,,,,1": false,
		"a,1,1,1,1,1,5,5,0,0,,,,,1": false, "a,1,1,1,1,1,5,5.1,0,0,,,,,1": true, "a,1,1,1,1,1,-1,0,0,0,,,,,1": false,
		"a,1,1,1,1,1,0,0,0,0,,-100%,,,1": false, "a,1,1,1,1,1,0,0,0,0,,10000%,,,1": true,
		"a,1,1,1,1,1,0,0,0,0,,10001%,,,1": false,
		"a,1,1,1,1,1,0,0,0,0,,,0.5,,1":    true, "a,1,1,1,1,1,0,0,0,0,,,0.4,,1": false,
		"a,1,1,1,1,1,0,0,0,0,,,1048576,,1": true, "a,1,1,1,1,1,0,0,0,0,,,1048577,,1": false,
	} {
		if _, err := ReadWorkloads(strings.NewReader(head+row+"\n"), "w.csv"); (err == nil) != good {
			t.Errorf("%s: %v", row, err)
		}
	}
	if _, err := ReadWorkloads(strings.NewReader("name,name\n"), "w.csv"); err == nil ||
		!strings.Contains(err.Error(), "duplicate column") {
		t.Errorf("%v", err)
	}
	if _, err := ReadWorkloads(strings.NewReader(head+
		"a,1,1,1,1,1,0,0,0,0,,,,,600000\nb,1,1,1,1,1,0,0,0,0,,,,,400001\n"), "w.csv"); err == nil ||
		!strings.Contains(err.Error(), "row 3, column count: the table has more than 1000000") {
		t.Errorf("%v", err)
	}
	broken := errors.New("no disk")
	if _, err := ReadWorkloads(failing{broken}, "w.csv"); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// TestTies verifies that a difference within rounding is a tie, that a larger one is not, and that any score beats
// infinity.
func TestTies(t *testing.T) {
	for _, c := range []struct {
		score, best float64
		want        bool
	}{{1, 2, true}, {2, 1, false}, {1, 1, false}, {1 - 1e-12, 1, false}, {1 - 1e-10, 1, true},
		{-1 - 1e-12, -1, false}, {-1 - 1e-10, -1, true}, {5, math.Inf(1), true}, {math.Inf(1), math.Inf(1), false}} {
		if better(c.score, c.best) != c.want {
			t.Errorf("%v against %v", c.score, c.best)
		}
	}
	// Shares of 0.1, 0.3 and 0.5, the second of which becomes 0.6: mean 0.4, deviation sqrt(0.14/3).
	mean, cv := spread(0.9, 0.01+0.09+0.25, 0.3, 0.6, 3)
	if math.Abs(mean-0.4) > 1e-12 || math.Abs(cv-math.Sqrt(0.14/3)/0.4) > 1e-12 {
		t.Errorf("mean %v, deviation %v", mean, cv)
	}
	if mean, cv := spread(0, 0, 0, 0, 3); mean != 0 || cv != 0 {
		t.Errorf("of nothing: %v, %v", mean, cv)
	}
	if (Refusal{NoSpace: 1, NoIOPS: 3, SameDomain: 3}).Main() != NoIOPS || (Refusal{}).Main() != NoSpace ||
		(Refusal{Fits: 9, TooCostly: 1}).Main() != TooCostly {
		t.Error("what most drives named is not the obstacle")
	}
}
