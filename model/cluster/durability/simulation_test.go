package durability

import (
	"farflash/numeric/rng"
	"fmt"
	"math"
	"testing"
)

// TestSimulationAgrees verifies that the simulated mean is within its interval of the chain's, over schemes, rates and
// repair modes. At level 0.999 one in a thousand correct ones would be outside.
func TestSimulationAgrees(t *testing.T) {
	for _, s := range []Scheme{Replicas(1), Replicas(2), Replicas(3), {4, 1}, {4, 2}, {8, 3}} {
		for _, ratio := range []Hours{5, 20} { // rebuilds in the mean life of a drive
			for _, r := range []Repair{Parallel, Serial} {
				if s.Parity == 3 && ratio > 5 && r == Parallel {
					continue // losses too rare for a quick test
				}
				cfg := Config{Scheme: s, MTTF: 1000, Rebuild: 1000 / ratio, Repair: r}
				stream := rng.NewStream(11, fmt.Sprint(cfg))
				sm := DefaultSimulation(cfg)
				sm.Runs = 2000
				out, err := Simulate(sm, &stream, 0.999)
				if err != nil {
					t.Fatal(err)
				}
				want := float64(chain(t, s, 1000, 1000/ratio, r).MTTDL())
				off := (out.MTTDL.Mean - want) / out.MTTDL.Half
				t.Logf("%d+%d, ratio %2v, repair %d: %11.0f h simulated, %11.0f h exact, %+5.2f half intervals, %d "+
					"events", s.Data, s.Parity, ratio, r, out.MTTDL.Mean, want, off, out.Events)
				if math.Abs(off) > 1 {
					t.Errorf("%v, ratio %v, repair %v: %v +- %v h, exact %v", s, ratio, r, out.MTTDL.Mean,
						out.MTTDL.Half, want)
				}
			}
		}
	}
}

// TestSimulatedLoss verifies that the share of runs lost within a time agrees with the chain.
func TestSimulatedLoss(t *testing.T) {
	cfg := Config{Scheme: Replicas(3), MTTF: 1000, Rebuild: 100}
	stream := rng.NewStream(12, "durability")
	sm := DefaultSimulation(cfg)
	sm.Runs = 4000
	out, err := Simulate(sm, &stream, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	c := chain(t, cfg.Scheme, cfg.MTTF, cfg.Rebuild, cfg.Repair)
	for _, at := range []Hours{500, 5000, 50_000} {
		n := 0.0
		for _, x := range out.Times {
			if x <= at {
				n++
			}
		}
		want := c.lossWithin(at)
		sd := math.Sqrt(want * (1 - want) / float64(sm.Runs))
		if got := n / float64(sm.Runs); math.Abs(got-want) > 4*sd {
			t.Errorf("lost within %v h: %v of the runs, the chain has %v", at, got, want)
		}
	}
}

// TestWeibull: with Weibull lifetimes and no repair, the later of two drives fails at 2 - 2^(-1/shape) means.
func TestWeibull(t *testing.T) {
	for _, shape := range []float64{0.5, 1, 1.5, 4} {
		stream := rng.NewStream(13, "durability")
		sm := DefaultSimulation(Config{Scheme: Replicas(2), MTTF: 1000, Rebuild: Hours(math.Inf(1))})
		sm.Shape, sm.Runs = shape, 20_000
		out, err := Simulate(sm, &stream, 0.999)
		if err != nil {
			t.Fatal(err)
		}
		want := 1000 * (2 - math.Pow(2, -1/shape))
		if math.Abs(out.MTTDL.Mean-want) > out.MTTDL.Half {
			t.Errorf("shape %v: %v +- %v h, want %v", shape, out.MTTDL.Mean, out.MTTDL.Half, want)
		}
	}
	for _, x := range []float64{1.01, 1.1, 1.5, 2, 3, 11} {
		if !near(gamma(x), math.Gamma(x), 1e-13) {
			t.Errorf("gamma(%v) = %v, math has %v", x, gamma(x), math.Gamma(x))
		}
	}
}

// TestFixedRebuild: a mirror whose rebuilds always take R. Both drives work for 1/(2l) on average, then the other one
// fails within R with probability p = 1-exp(-lR); until then, or until the rebuild completes, p/l passes. So the mean
// is (1/(2l) + p/l) / p.
func TestFixedRebuild(t *testing.T) {
	const l, took = 1e-3, 50.0
	stream := rng.NewStream(14, "durability")
	sm := DefaultSimulation(Config{Scheme: Replicas(2), MTTF: 1 / l, Rebuild: took})
	sm.Fixed, sm.Runs = true, 20_000
	out, err := Simulate(sm, &stream, 0.999)
	if err != nil {
		t.Fatal(err)
	}
	p := 1 - math.Exp(-l*took)
	want := (1/(2*l) + p/l) / p
	if math.Abs(out.MTTDL.Mean-want) > out.MTTDL.Half {
		t.Errorf("%v +- %v h, want %v", out.MTTDL.Mean, out.MTTDL.Half, want)
	}
}

// TestSharedDrives: for groups that share drives, the fleet's mean is the group's over their number while losses are
// rare. Disjoint and overlapping copysets of 3 on 30 drives, each compared with the estimate.
func TestSharedDrives(t *testing.T) {
	const drives = 30
	cfg := Config{Scheme: Replicas(3), MTTF: 1000, Rebuild: 10}
	group := float64(chain(t, cfg.Scheme, cfg.MTTF, cfg.Rebuild, cfg.Repair).MTTDL())
	disjoint := [][]int32{}
	for i := int32(0); i < drives; i += 3 {
		disjoint = append(disjoint, []int32{i, i + 1, i + 2})
	}
	window := [][]int32{}
	for i := range int32(drives) {
		for a := int32(1); a <= 4; a++ {
			for b := a + 1; b <= 4; b++ {
				window = append(window, []int32{i, (i + a) % drives, (i + b) % drives})
			}
		}
	}
	for _, c := range []struct {
		name   string
		groups [][]int32
		within float64
	}{{"disjoint", disjoint, 0.1}, {"window of 4", window, 0.1}} {
		stream := rng.NewStream(15, "durability")
		sm := DefaultSimulation(cfg)
		sm.Drives, sm.Groups, sm.Runs = drives, c.groups, 1000
		out, err := Simulate(sm, &stream, 0.99)
		if err != nil {
			t.Fatal(err)
		}
		want := group / float64(len(c.groups))
		t.Logf("%s: %d groups, %.0f +- %.0f h simulated, %.0f h estimated", c.name, len(c.groups), out.MTTDL.Mean,
			out.MTTDL.Half, want)
		if math.Abs(out.MTTDL.Mean-want) > out.MTTDL.Half+0.03*want {
			t.Errorf("%s: %v +- %v h, estimated %v", c.name, out.MTTDL.Mean, out.MTTDL.Half, want)
		}
	}
}

func TestSimulationRefused(t *testing.T) {
	good := DefaultSimulation(Config{Scheme: Replicas(2), MTTF: 100, Rebuild: 10})
	stream := rng.NewStream(1, "x")
	for name, change := range map[string]func(*Simulation){
		"scheme": func(s *Simulation) { s.Scheme.Data = 0 }, "shape": func(s *Simulation) { s.Shape = 0 },
		"runs":   func(s *Simulation) { s.Runs = 1 },
		"drives": func(s *Simulation) { s.Drives = 1 }, "width": func(s *Simulation) { s.Groups = [][]int32{{0}} },
		"range": func(s *Simulation) {
			s.Groups = [][]int32{{0,
				2}}
		}, "twice": func(s *Simulation) { s.Groups = [][]int32{{1, 1}} },
		"patience": func(s *Simulation) { s.MostEvents = 10 }, "level": nil,
	} {
		s, level := good, 0.95
		if change == nil {
			level = 2
		} else {
			change(&s)
		}
		if _, err := Simulate(s, &stream, level); err == nil {
			t.Errorf("%s is not refused", name)
		}
	}
	// The same seed gives the same times.
	a, b := rng.NewStream(5, "x"), rng.NewStream(5, "x")
	first, _ := Simulate(good, &a, 0.95)
	second, _ := Simulate(good, &b, 0.95)
	for i := range first.Times {
		if first.Times[i] != second.Times[i] {
			t.Fatal("the same stream gave other times")
		}
	}
}

func BenchmarkSimulate(b *testing.B) {
	stream := rng.NewStream(1, "bench")
	s := DefaultSimulation(Config{Scheme: Scheme{8, 3}, MTTF: 1000, Rebuild: 100})
	s.Runs = 10
	events := uint64(0)
	for b.Loop() {
		out, err := Simulate(s, &stream, 0.95)
		if err != nil {
			b.Fatal(err)
		}
		events += out.Events
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
}

func BenchmarkLossWithin(b *testing.B) {
	c := chain(b, Scheme{17, 3}, 1.2e6, 2, Parallel)
	for b.Loop() {
		c.lossWithin(Year)
	}
}
