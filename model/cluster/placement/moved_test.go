package placement

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestShares(t *testing.T) {
	for _, c := range []struct {
		m    Map
		n    int
		want []float64
	}{
		{Uniform(4), 1, []float64{0.25, 0.25, 0.25, 0.25}},
		{Uniform(4).Without(1), 3, []float64{1, 0, 1, 1}},
		{Map{Weights: []float64{1, 2, 3}}, 1, []float64{1. / 6, 2. / 6, 3. / 6}},
		// The third would have 1.5 copies of two; it can have 1, and the others share the other one.
		{Map{Weights: []float64{1, 1, 6}}, 2, []float64{0.5, 0.5, 1}},
		// A full domain shares its one copy among its targets.
		{Map{Weights: []float64{1, 1, 3, 3}, Domains: []int32{0, 1, 2, 2}}, 2, []float64{0.5, 0.5, 0.5, 0.5}},
	} {
		got, err := bestShares(c.m, c.n)
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if math.Abs(got[i]-c.want[i]) > 1e-12 {
				t.Errorf("%v, %d copies: %v, want %v", c.m, c.n, got, c.want)
				break
			}
		}
	}
	if _, err := bestShares(Uniform(3), 4); err == nil {
		t.Error("four copies on three targets are not refused")
	}
	if _, err := bestShares(Map{}, 1); err == nil {
		t.Error("an empty map is not refused")
	}
	rapid.Check(t, func(t *rapid.T) {
		m := Map{}
		for range rapid.IntRange(1, 20).Draw(t, "targets") {
			m = m.With(rapid.Float64Range(0.01, 10).Draw(t, "weight"), 0)
		}
		m = m.Racks(rapid.IntRange(1, 4).Draw(t, "rack"))
		v, _ := newView(m)
		n := rapid.IntRange(1, v.most).Draw(t, "copies")
		shares, err := bestShares(m, n)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		domain := map[int32]float64{}
		for i, s := range shares {
			sum += s
			domain[m.Domains[i]] += s
		}
		if math.Abs(sum-float64(n)) > 1e-9 {
			t.Fatalf("shares of %d copies add up to %v", n, sum)
		}
		for d, s := range domain {
			if s > 1+1e-9 {
				t.Fatalf("domain %d has %v copies of a chunk", d, s)
			}
		}
	})
}

func TestLeastMoved(t *testing.T) {
	m := Uniform(10)
	for _, c := range []struct {
		after Map
		n     int
		want  float64
	}{{m, 3, 0}, {m.Without(3), 1, 0.1}, {m.Without(3), 3, 0.1}, {m.With(1, 0), 2, 1. / 11}, {m.With(10, 0), 1, 0.5}} {
		got, err := leastMoved(m, c.after, c.n)
		if err != nil || math.Abs(float64(got)-c.want) > 1e-12 {
			t.Errorf("least moved is %v, want %v (%v)", got, c.want, err)
		}
	}
	if _, err := leastMoved(Map{}, m, 1); err == nil {
		t.Error("a map without targets is not refused")
	}
	if _, err := leastMoved(m, Map{}, 1); err == nil {
		t.Error("a map without targets is not refused")
	}
}

// TestMinimalDisruption verifies the promise of ring, rendezvous hashing and flat straw2: a chunk that is not on the
// removed target keeps its targets, and one that is loses only that target.
func TestMinimalDisruption(t *testing.T) {
	for _, mk := range makers() {
		if mk.name != "ring" && mk.name != "hrw" && mk.name != "straw2" {
			continue
		}
		t.Run(mk.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				m := Uniform(rapid.IntRange(5, 40).Draw(t, "targets"))
				for i := range m.Weights {
					m.Weights[i] = rapid.SampledFrom([]float64{0.5, 1, 1, 3}).Draw(t, "weight")
				}
				if mk.name == "hrw" && rapid.Bool().Draw(t, "domains") {
					m = m.Racks(rapid.IntRange(1, len(m.Weights)/5).Draw(t, "rack"))
				}
				gone := int32(rapid.IntRange(0, len(m.Weights)-1).Draw(t, "gone"))
				before, err := mk.make(m)
				if err != nil {
					t.Fatal(err)
				}
				after, err := mk.make(m.Without(gone))
				if err != nil {
					t.Fatal(err)
				}
				n := rapid.IntRange(1, 3).Draw(t, "copies")
				for range 20 {
					c := rapid.Uint64().Draw(t, "chunk")
					was, is := before.Place(c, n, nil), after.Place(c, n, nil)
					if mk.name == "straw2" && n > 1 {
						// Retries shift when a collision disappears, so only the first copy is strict.
						was, is = was[:1], is[:1]
					}
					moved := 0
					for _, x := range is {
						if !slices.Contains(was, x) {
							moved++
						}
					}
					if on := slices.Contains(was, gone); moved > 1 || moved == 1 && !on {
						t.Fatalf("chunk %d went from %v to %v as %d went", c, was, is, gone)
					}
				}
			})
		})
	}
}

// TestMoved compares the copies that each placer moves when a target is added, removed, or doubled, with the minimum.
func TestMoved(t *testing.T) {
	// Bounds on the copies moved over the minimum: for a target at the end, for one in the middle.
	bounds := map[string][2]float64{
		"ring": {1.02, 1.02}, "hrw": {1.02, 1.02}, "jump": {1.06, 60}, "maglev": {2.5, 2.5}, "straw2": {1.1, 1.1},
		// A group that loses one of nine members also passes on a ninth of its chunks completely.
		"bounded": {1.02, 1.02}, "group": {0, 1.82},
	}
	const chunks = 40_000
	m := Uniform(90)
	for _, mk := range makers() {
		bound, ok := bounds[mk.name]
		if !ok {
			continue
		}
		for i, after := range []Map{m.With(1, 0), m.Without(40)} {
			if bound[i] == 0 {
				continue // 91 targets do not divide into groups of 9
			}
			least, err := leastMoved(m, after, 3)
			if err != nil {
				t.Fatal(err)
			}
			a, b := must(t, nil2(mk.make(m)), nil), must(t, nil2(mk.make(after)), nil)
			if mk.name == "maglev" { // another table size would move everything
				a, b = nil2(NewMaglev(m, 10007)), nil2(NewMaglev(after, 10007))
			}
			got := countMoved(a, b, chunks, 3)
			ratio := float64(got.share() / least)
			t.Logf("%-8s %s: %.2f %% of the copies move, %.2f times the least; with their order %.2f times", mk.name,
				[]string{"one more", "one less"}[i], 100*float64(got.share()), ratio,
				float64(got.Shifted)/float64(got.Copies)/float64(least))
			// Of 1,300 expected moves, chance makes it 3% more or less; the ring's targets differ by 9%.
			spread := 0.08
			if mk.name == "ring" || mk.name == "bounded" {
				spread = 0.27
			}
			if ratio < 1-spread || ratio > bound[i]+spread {
				t.Errorf("%s moves %.2f times the least", mk.name, ratio)
			}
			if got.Copies != 3*chunks || got.Shifted < got.Moved {
				t.Errorf("%+v", got)
			}
		}
	}
}

// TestMaglevDisruption verifies section 5.3 of the Maglev paper: the larger the table, the fewer entries change besides
// those of the failed backend.
func TestMaglevDisruption(t *testing.T) {
	const n, gone = 1000, 7
	excess := func(size int) float64 {
		a, err := NewMaglev(Uniform(n), size)
		if err != nil {
			t.Fatal(err)
		}
		b, err := NewMaglev(Uniform(n).Without(gone), size)
		if err != nil {
			t.Fatal(err)
		}
		changed := 0
		for i, x := range a.table {
			if x != gone && b.table[i] != x {
				changed++
			}
		}
		return float64(changed) / float64(size)
	}
	small, large := excess(65537), excess(655373)
	t.Logf("beyond the failed backend's 0.1 %%, %.2f %% of 65537 entries change and %.2f %% of 655373", 100*small,
		100*large)
	if large >= small || small > 0.02 {
		t.Errorf("%.4f of the small table change and %.4f of the large", small, large)
	}
}

// TestGroups verifies that adding a whole group moves chunks to that group only, and that the second candidate takes
// over when the first group is gone.
func TestGroups(t *testing.T) {
	m := Uniform(90)
	bigger := m.clone()
	for range 9 {
		bigger = bigger.With(1, 0)
	}
	a, err := NewGroup(m, 9)
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewGroup(bigger, 9)
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewGroup(m.Without(27, 28, 29, 30, 31, 32, 33, 34, 35), 9)
	if err != nil {
		t.Fatal(err)
	}
	if a.Groups() != 10 || a.Size() != 9 ||
		!slices.Equal(a.Members(3), []int32{27, 28, 29, 30, 31, 32, 33, 34, 35}) || len(c.Members(3)) != 0 {
		t.Errorf("%d groups of %d, the fourth is %v", a.Groups(), a.Size(), a.Members(3))
	}
	toNew := 0
	for chunk := range uint64(20_000) {
		first, second := a.Candidates(chunk)
		if first == second || second < 0 {
			t.Fatalf("candidates %d and %d", first, second)
		}
		if g, _ := b.Candidates(chunk); g != first {
			if g != 10 {
				t.Fatalf("chunk %d goes from group %d to %d", chunk, first, g)
			}
			toNew++
		}
		if g, _ := c.Candidates(chunk); first == 3 && g != second || first != 3 && g != first {
			t.Fatalf("chunk %d: candidates %d, %d, and %d when group 3 is gone", chunk, first, second, g)
		}
	}
	if toNew < 1600 || toNew > 2040 {
		t.Errorf("%d of 20000 chunks go to the eleventh group", toNew)
	}
	one, err := NewGroup(Uniform(9), 9)
	if err != nil {
		t.Fatal(err)
	}
	if first, second := one.Candidates(1); first != 0 || second != -1 {
		t.Errorf("candidates of one group: %d and %d", first, second)
	}
	// With racks, a group has one target from each of nine.
	r, err := NewGroup(m.Racks(10), 9)
	if err != nil {
		t.Fatal(err)
	}
	if r.Most() != 9 {
		t.Errorf("groups across nine racks have room for %d copies: %v", r.Most(), r.Members(0))
	}
}
