package durability

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/combin"

	"farflash/numeric/rng"
	"farflash/numeric/units"
)

// TestCopysetPaper checks the abstract's figures: 1% of 5000 nodes fail. RAMCloud: everywhere, 8000 chunks a node, or
// one permutation; HDFS at Facebook: scatter width 10 by five permutations.
func TestCopysetPaper(t *testing.T) {
	s := Replicas(3)
	// Printed as 99.99%, which stands for certainty.
	if got, err := lossAtOnce(s, 5000, 50, distinct(allCopysets(s, 5000), 5000*8000)); err != nil || got < 0.9999 {
		t.Errorf("RAMCloud, random: %v, printed 99.99 %%", got)
	}
	for _, c := range []struct {
		name     string
		copysets float64
		printed  float64
		within   float64
	}{
		{"RAMCloud, copysets", fewestCopysets(s, 5000, 2), 0.0015, 0.05},
		{"HDFS, copysets", fewestCopysets(s, 5000, 10), 0.0078, 0.01},
	} {
		got, err := lossAtOnce(s, 5000, 50, c.copysets)
		t.Logf("%s: %.0f copysets, loss with %.3f %%, printed %.2f %%", c.name, c.copysets, 100*got, 100*c.printed)
		if err != nil || !near(got, c.printed, c.within) {
			t.Errorf("%s: %v, printed %v", c.name, got, c.printed)
		}
	}
}

func TestCopysetCounts(t *testing.T) {
	s := Replicas(3)
	if n := allCopysets(s, 9); !near(n, 84, 1e-12) {
		t.Errorf("%v sets of 3 of 9", n)
	}
	// The paper's figure 4: nine nodes, two permutations, scatter width 4.
	if n := fewestCopysets(s, 9, 4); n != 6 {
		t.Errorf("%v copysets for nine nodes with scatter width 4", n)
	}
	// Windows: count every set that spans at most the window.
	sets := map[[3]int]bool{}
	for i := range 30 {
		for _, c := range combin.Combinations(6, 2) {
			set := [3]int{i, (i + 1 + c[0]) % 30, (i + 1 + c[1]) % 30}
			for a := range 3 {
				for b := range a {
					if set[b] > set[a] {
						set[a], set[b] = set[b], set[a]
					}
				}
			}
			sets[set] = true
		}
	}
	if n := windowCopysets(s, 30, 6); !near(n, float64(len(sets)), 1e-12) {
		t.Errorf("%v copysets in windows, counted %d", n, len(sets))
	}
	if windowCopysets(s, 30, 1) != 0 || fewestCopysets(Replicas(1), 7, 0) != 7 {
		t.Error("counts at the edge are wrong")
	}
	if d := distinct(1e9, 1000); !near(d, 1000, 1e-6) {
		t.Errorf("%v different copysets of a thousand chunks", d)
	}
	if d := distinct(10, 1e6); !near(d, 10, 1e-12) {
		t.Errorf("%v of ten copysets used by a million chunks", d)
	}
}

// TestLossAtOnce compares lossOfOne with an enumeration of all failures, and lossAtOnce with random draws.
func TestLossAtOnce(t *testing.T) {
	for _, s := range []Scheme{Replicas(2), Replicas(3), {2, 1}, {3, 2}, {4, 0}} {
		for failed := range 10 {
			bad, all := 0, 0
			for _, set := range combin.Combinations(9, failed) {
				in := 0
				for _, x := range set {
					if x < s.Width() {
						in++
					}
				}
				all++
				if in > s.Parity {
					bad++
				}
			}
			got, err := lossOfOne(s, 9, failed)
			if err != nil || math.Abs(got-float64(bad)/float64(all)) > 1e-12 {
				t.Errorf("%v, %d of 9 fail: %v, counted %d of %d (%v)", s, failed, got, bad, all, err)
			}
		}
	}
	// 60 nodes in two permutations of copysets of 3; six nodes fail.
	stream := rng.NewStream(7, "copysets")
	const nodes, failed, tries = 60, 6, 40_000
	order := make([]int, nodes)
	for i := range order {
		order[i] = i
	}
	shuffle := func() {
		for i := nodes - 1; i > 0; i-- {
			j := stream.IntN(int64(i + 1))
			order[i], order[j] = order[j], order[i]
		}
	}
	lost := 0
	for range tries {
		down := map[int]bool{}
		shuffle()
		for _, x := range order[:failed] {
			down[x] = true
		}
		hit := false
		for range 2 {
			shuffle()
			for i := 0; i < nodes; i += 3 {
				hit = hit || down[order[i]] && down[order[i+1]] && down[order[i+2]]
			}
		}
		if hit {
			lost++
		}
	}
	want, err := lossAtOnce(Replicas(3), nodes, failed, fewestCopysets(Replicas(3), nodes, 4))
	if err != nil {
		t.Fatal(err)
	}
	got := float64(lost) / tries
	sd := math.Sqrt(want * (1 - want) / tries)
	t.Logf("six of sixty nodes fail: data lost with %.4f, formula %.4f (%+.1f deviations)", got, want, (got-want)/sd)
	if math.Abs(got-want) > 4*sd {
		t.Errorf("lost with %v, formula %v", got, want)
	}
	for _, bad := range [][2]int{{2, 1}, {9, -1}, {9, 10}} {
		if _, err := lossAtOnce(Replicas(3), bad[0], bad[1], 1); err == nil {
			t.Errorf("%v is not refused", bad)
		}
	}
	if _, err := lossOfOne(Scheme{}, 9, 1); err == nil {
		t.Error("no shards are not refused")
	}
}

func TestAssess(t *testing.T) {
	f := Fleet{Scheme: Replicas(3), Nodes: 900, AFR: 0.015, Chunks: 1e8, Scatter: 10,
		Rebuild: Rebuild{Capacity: 8 * units.TB, Bandwidth: 50 * units.MBPerSecond}}
	for _, spread := range []Spread{Everywhere, Window, Copysets} {
		f.Spread = spread
		a, err := Assess(f)
		if err != nil {
			t.Fatal(err)
		}
		if !near(float64(a.MTTDL)*a.Copysets, float64(a.Group), 1e-12) || a.Loss < a.Chunk ||
			a.Nines() > a.ChunkNines() {
			t.Errorf("%+v", a)
		}
		// Losses are rare: the probability in a year is the year over the mean.
		if !near(a.Loss, float64(Year/a.MTTDL), 0.03) {
			t.Errorf("spread %d: loss in a year with %v, by the mean %v", spread, a.Loss, Year/a.MTTDL)
		}
	}
	for _, change := range []func(*Fleet){
		func(f *Fleet) { f.Scheme.Data = 0 }, func(f *Fleet) { f.Nodes = 2 }, func(f *Fleet) { f.Chunks = 0 },
		func(f *Fleet) { f.Spread = 3 },
		func(f *Fleet) { f.Scatter = 1 }, func(f *Fleet) { f.Scatter = 900 }, func(f *Fleet) { f.AFR = 0 },
		func(f *Fleet) { f.Rebuild.Capacity = 0 },
		func(f *Fleet) { f.Repair = 9 },
	} {
		x := f
		change(&x)
		if _, err := Assess(x); err == nil {
			t.Errorf("%+v is not refused", x)
		}
	}
}

// lossOfOne returns the probability that a chunk on distinct random nodes is lost when the given number of nodes fail
// simultaneously: that more than Parity of its nodes are among them.
func lossOfOne(s Scheme, nodes, failed int) (float64, error) {
	if err := s.check(); err != nil {
		return 0, err
	}
	w := s.Width()
	if failed < 0 || failed > nodes || nodes < w {
		return 0, fmt.Errorf("%d of %d nodes fail, with %d shards on different ones: that cannot be", failed, nodes, w)
	}
	all, p := logChoose(nodes, w), 0.0
	for x := s.Parity + 1; x <= min(w, failed); x++ {
		if w-x <= nodes-failed {
			p += rng.Exp(logChoose(failed, x) + logChoose(nodes-failed, w-x) - all)
		}
	}
	return min(p, 1), nil
}

// lossAtOnce returns the probability that any data is lost when the given number of nodes fail simultaneously, with
// chunks on random copysets: 1-(1-p)^copysets, where p is lossOfOne. It treats copysets as independent, which those
// of a permutation nearly are.
func lossAtOnce(s Scheme, nodes, failed int, copysets float64) (float64, error) {
	p, err := lossOfOne(s, nodes, failed)
	if err != nil {
		return 0, err
	}
	return Any(p, copysets), nil
}
