package cosim

import (
	"math"
	"slices"
	"testing"

	"farflash/block"
	"farflash/sim"
)

// TestSolve solves systems with known answers, one with a zero pivot, which elimination must not divide by, and one
// without a unique answer.
func TestSolve(t *testing.T) {
	for _, c := range []struct {
		name string
		m    int
		a    [mixed][mixed + 1]float64
		want [mixed]float64
	}{
		{"one", 1, [3][4]float64{{4, 0, 0, 8}}, [3]float64{2}},
		{"two, the largest last", 2, [3][4]float64{{1, 2, 0, 5}, {3, 4, 0, 11}}, [3]float64{1, 2}},
		{"three", 3, [3][4]float64{{2, 1, -1, 8}, {-3, -1, 2, -11}, {-2, 1, 2, -3}}, [3]float64{2, 3, -1}},
		{"a pivot of nothing", 3, [3][4]float64{{0, 2, 1, 7}, {1, 0, 3, 10}, {4, 1, 0, 6}}, [3]float64{1, 2, 3}},
		{"nothing at all", 3, [3][4]float64{}, [3]float64{}},
		{"an unknown that nothing says anything of", 3, [3][4]float64{{0, 0, 0, 0}, {0, 2, 1, 7}, {0, 1, 1, 5}},
			[3]float64{0, 2, 3}},
	} {
		got := solve(&c.a, c.m)
		for k := range got {
			if math.Abs(got[k]-c.want[k]) > 1e-12 {
				t.Errorf("%s: %v, not %v", c.name, got, c.want)
				break
			}
		}
	}
}

// linear returns an Iterative with two writes, for which the network maps arrivals x to a x + b.
func linear(how Acceleration, omega float64, x0 [2]float64) (step func() [2]float64, it *Iterative) {
	jobs := []Job{{Request: 0, Command: block.Request{Op: block.Write}},
		{Request: 1, Command: block.Request{Op: block.Read}}, {Request: 2, Command: block.Request{Op: block.Write}}}
	it, err := NewIterative(IterativeConfig{Acceleration: how, Relaxation: omega}, jobs, 1, nil)
	if err != nil {
		panic(err)
	}
	it.sa[0], it.sa[2] = sim.Time(x0[0]), sim.Time(x0[1])
	return func() [2]float64 {
		// The fixed point is 4e9 and 1e10.
		x, y := float64(it.sa[0]), float64(it.sa[2])
		it.nd[0], it.nd[2] = sim.Time(math.Round(0.5*x+0.2*y)), sim.Time(math.Round(0.1*x+0.3*y+6.6e9))
		it.nd[1] = 77
		it.Turns = append(it.Turns, Turn{})
		it.update(len(it.Turns) - 1)
		return [2]float64{float64(it.sa[0]), float64(it.sa[2])}
	}, it
}

// TestAccelerations verifies the next iterate of each acceleration on a map whose answers are known.
func TestAccelerations(t *testing.T) {
	const a, b = 4e9, 1e10
	start := [2]float64{a + 1000, b - 2000}
	// G(x) = fixed point + (0.5 * 1000 - 0.2 * 2000, 0.1 * 1000 - 0.3 * 2000).
	g := [2]float64{a + 100, b - 500}
	if step, _ := linear(NoAcceleration, 0, start); step() != g {
		t.Error("SNIS does not take what the network gives")
	}
	// Three quarters of the step.
	if step, _ := linear(Relax, 0.75, start); step() != [2]float64{a + 325, b - 875} {
		t.Error("relaxation does not go its share of the way")
	}
	// Aitken's first step is relaxation; its second share would be 1.3 here, which is limited to 1: the network's
	// result.
	step, it := linear(Aitken, 0.75, start)
	if step() != [2]float64{a + 325, b - 875} || it.omega != 0.75 {
		t.Errorf("the first step of Aitken is at share %v", it.omega)
	}
	if got := step(); it.omega != 1 || got != [2]float64{float64(it.nd[0]), float64(it.nd[2])} {
		t.Errorf("Aitken's second step is at share %v: %v", it.omega, got)
	}
	// Anderson's mixing of two earlier iterations finds a linear map's fixed point in the plane in its third step, up
	// to rounding to a picosecond.
	step, it = linear(Anderson, 0, start)
	if step() != g {
		t.Error("the first step of Anderson is not SNIS'")
	}
	step()
	if x := step(); math.Abs(x[0]-a) > 20 || math.Abs(x[1]-b) > 20 {
		t.Errorf("the third step of Anderson is off by %v and %v", x[0]-a, x[1]-b)
	}
	for range 5 {
		step()
	}
	if len(it.past) != mixed+1 {
		t.Errorf("%d iterations are remembered", len(it.past))
	}
	if it.sa[1] != 77 && it.sa[1] != 0 {
		t.Errorf("a read has been moved to %v", it.sa[1])
	}
}

// TestAitkenBounds verifies that the share stays between 0.1 and 1, and is kept if the residual has not changed.
func TestAitkenBounds(t *testing.T) {
	for _, c := range []struct{ before, after, omega, want float64 }{
		{1000, 900, 0.5, 1},      // 0.5 * 1000 / 100 would be 5
		{1000, -9000, 0.5, 0.1},  // 0.5 * 1000 / 10000 would be 0.05
		{1000, 1000, 0.5, 0.5},   // no change
		{1000, -1000, 0.5, 0.25}, // 0.5 * 1000 / 2000
	} {
		it := &Iterative{omega: c.omega}
		it.aitken([]float64{0}, []float64{c.before})
		x := it.aitken([]float64{0}, []float64{c.after})
		if math.Abs(it.omega-c.want) > 1e-12 || math.Abs(x[0]-c.want*c.after) > 1e-9 {
			t.Errorf("%+v: %v, and goes to %v", c, it.omega, x)
		}
	}
}

// TestAitken compares a step with two writes with a calculation by hand: residuals of (3, 4) and (-1, 0) differ by (-4,
// -4), so the share is 0.5 * (3*4 + 4*4) / 32.
func TestAitken(t *testing.T) {
	it := &Iterative{omega: 0.5}
	it.aitken([]float64{10, 10}, []float64{3, 4})
	if x := it.aitken([]float64{20, 30}, []float64{-1, 0}); it.omega != 0.4375 || x[0] != 20-0.4375 || x[1] != 30 {
		t.Errorf("at share %v to %v", it.omega, x)
	}
}

// TestSettled verifies the number of changed writes, the time from which they changed, and that no write arrives before
// it was sent, whatever the mix.
func TestSettled(t *testing.T) {
	jobs := []Job{{Arrival: 100, Command: block.Request{Op: block.Write}},
		{Arrival: 200, Request: 1, Command: block.Request{Op: block.Write}}}
	it, err := NewIterative(IterativeConfig{Acceleration: Relax, Relaxation: 10}, jobs, 1,
		func(int) sim.Time { return 500 })
	if err != nil {
		t.Fatal(err)
	}
	it.nd = []sim.Time{450, 500}
	it.Turns = append(it.Turns, Turn{})
	it.update(0)
	if x := it.Turns[0]; x.Changed != 1 || x.Settled != 450 || it.Fixed != -1 ||
		!slices.Equal(it.sa, []sim.Time{100, 500}) {
		t.Errorf("%+v, fixed %d, next %v", x, it.Fixed, it.sa)
	}
	it.nd = []sim.Time{100, 500}
	it.Turns = append(it.Turns, Turn{}, Turn{})
	it.update(1)
	it.update(2)
	if x := it.Turns[1]; x.Changed != 0 || x.Settled != sim.Forever || it.Fixed != 1 {
		t.Errorf("%+v, fixed %d", x, it.Fixed)
	}
	it.cfg.Relaxation = 1e30 // a mix without a usable value
	it.nd = []sim.Time{120, 600}
	it.update(2)
	if !slices.Equal(it.sa, []sim.Time{120, 600}) {
		t.Errorf("beyond all time: %v", it.sa)
	}
}

// TestQuantiles verifies that a quantile is the smallest value that at least the share of requests do not exceed.
func TestQuantiles(t *testing.T) {
	it := &Iterative{values: []float64{10, 20, 30, 40}}
	for share, want := range map[float64]float64{0: 10, 0.01: 10, 0.25: 10, 0.26: 20, 0.5: 20, 0.75: 30, 0.9: 40,
		1: 40} {
		if got := it.quantile(share); got != want {
			t.Errorf("the %v quantile is %v, not %v", share, got, want)
		}
	}
	for _, c := range [][3]float64{{1, 4, 0.75}, {4, 1, 0.75}, {0, 0, 0}, {5, 5, 0}, {0, 0.5, 1}} {
		if got := RelativeDistance(c[0], c[1]); got != c[2] {
			t.Errorf("from %v to %v: %v", c[0], c[1], got)
		}
	}
}

// TestStable verifies SNIS' two conditions: a Conv_C below the threshold, or one that has changed little for a number
// of iterations, not counting the first, which has none.
func TestStable(t *testing.T) {
	for _, c := range []struct {
		name  string
		conv  []float64 // from iteration 1 on
		first int       // first iteration to converge; 0: none
	}{
		{"below the threshold", []float64{0.5, 0.2, 0.0999}, 3},
		{"at the threshold", []float64{0.5, 0.3, 0.1}, 0},
		{"stable for three", []float64{0.9, 0.5, 0.51, 0.5, 0.49}, 5},
		{"as far apart as may be", []float64{0.5, 0.625, 0.5, 0.625}, 4},
		{"a little farther", []float64{0.5, 0.625, 0.5, 0.63}, 0},
		{"two and a step", []float64{0.5, 0.5, 0.5, 0.9, 0.9, 0.9}, 0},
		{"three", []float64{0.5, 0.5, 0.5, 0.5}, 4},
	} {
		it := &Iterative{cfg: IterativeConfig{Threshold: 0.1, StableRange: 0.125, StableFor: 3}, Turns: []Turn{{}}}
		first := 0
		if it.stable(0) {
			t.Errorf("%s: the first iteration has converged", c.name)
		}
		for k, x := range c.conv {
			it.Turns = append(it.Turns, Turn{ConvC: x})
			if it.stable(k+1) && first == 0 {
				first = k + 1
			}
		}
		if first != c.first {
			t.Errorf("%s: converged in iteration %d, not %d", c.name, first, c.first)
		}
	}
}

// TestConvC verifies SNIS' equation 3 by hand. Four requests of 1000 B take 1, 2, 4 and 8 us, in the second iteration
// half of that, and in the third only the slowest changes, to twice its second time. A request of two parts takes as
// long as the later one.
func TestConvC(t *testing.T) {
	var jobs []Job
	for k := range int32(4) {
		jobs = append(jobs, Job{Request: k, Command: block.Request{Op: block.Read, Length: 1000}})
	}
	jobs[3].Command.Length = 400
	jobs = append(jobs, Job{Request: 3, Command: block.Request{Op: block.Read, Length: 600}})
	it, err := NewIterative(IterativeConfig{Weights: [3]float64{0.5, 0.3, 0.2}, Threshold: 0.01, StableRange: 0.001,
		StableFor: 3, Most: 10}, jobs, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	const us = sim.Time(1_000_000)
	turn := func(late int, times ...sim.Time) bool {
		copy(it.nd, times)
		it.Turns = append(it.Turns, Turn{})
		on := it.Finish()
		for r, d := range it.Delays() {
			if d != max(times[r], times[[4]int{r, r, r, 4}[r]]) {
				t.Errorf("turn %d: request %d takes %v", len(it.Turns)-1, r, d)
			}
		}
		if it.Part(3) != late {
			t.Errorf("turn %d: request 3 waits for part %d", len(it.Turns)-1, it.Part(3))
		}
		return on
	}
	if !turn(4, us, 2*us, 4*us, 7*us, 8*us) || !turn(3, us/2, us, 2*us, 4*us, 3*us) ||
		!turn(3, us/2, us, 2*us, 8*us, 3*us) {
		t.Error("it has converged")
	}
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }
	// Throughputs 125, 250, 500 and 1000 MB/s: the median is 250, the 90th percentile 1000; then twice that.
	first := it.Turns[0].Throughput
	for k, want := range []float64{125e6, 125e6, 125e6, 125e6, 250e6, 500e6, 1000e6, 1000e6, 1000e6} {
		if !near(first[k], want) {
			t.Errorf("the %v quantile is %v, not %v", ThroughputShares[k], first[k], want)
		}
	}
	if x := it.Turns[0]; x.ConvC != 0 || x.Mean != 0 {
		t.Errorf("the first: %+v", x)
	}
	if x := it.Turns[1]; !near(x.ConvC, 0.5) || !near(x.Mean, 0.5) || !near(x.Median, 0.5) || !near(x.P90, 0.5) {
		t.Errorf("the second: %+v", x)
	}
	// The mean goes from 3750/4 to 3625/4.
	if x := it.Turns[2]; !near(x.Mean, 125.0/3750) || x.Median != 0 || x.P90 != 0 || !near(x.ConvC, 0.5*125/3750) {
		t.Errorf("the third: %+v", x)
	}
	if it.Converged != -1 {
		t.Errorf("converged in %d", it.Converged)
	}
	if turn(3, us/2, us, 2*us, 8*us, 3*us) || it.Converged != 3 {
		t.Errorf("the fourth, which repeats the third, converges: %d", it.Converged)
	}
}

// TestMost verifies that iterations end at the limit or at convergence, unless all are requested.
func TestMost(t *testing.T) {
	for _, c := range []struct {
		cfg  IterativeConfig
		want int // iterations
	}{
		{IterativeConfig{Most: 5, Threshold: 0.5, StableFor: 3}, 2}, // the second repeats the first
		{IterativeConfig{Most: 5, Threshold: 0.5, StableFor: 3, Full: true}, 5},
		{IterativeConfig{Most: 1, Threshold: 0.5, StableFor: 3}, 1},
		// iterations 2 and 3 just stay within the range
		{IterativeConfig{Most: 5, Threshold: 0, StableRange: 0.1, StableFor: 2}, 4},
	} {
		it, err := NewIterative(c.cfg, []Job{{Command: block.Request{Op: block.Read, Length: 1000}}}, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for on := true; on; n++ {
			it.nd[0] = 1000
			it.Turns = append(it.Turns, Turn{})
			on = it.Finish()
		}
		if first := min(c.want, 2) - 1; n != c.want || c.cfg.Most > 1 && c.cfg.Threshold > 0 && it.Converged != first {
			t.Errorf("%+v: %d iterations, converged in %d", c.cfg, n, it.Converged)
		}
	}
}
