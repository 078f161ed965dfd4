package placement

import (
	"math"
	"testing"

	"farflash/numeric/rng"
	"farflash/numeric/units"
)

// counts places n copies of each chunk and counts them per target.
func counts(p Placer, targets, chunks, n int) []float64 {
	out := make([]float64, targets)
	var at []int32
	for c := range chunks {
		at = p.Place(uint64(c), n, at[:0])
		for _, t := range at {
			out[t]++
		}
	}
	return out
}

// chiSquare returns the statistic of counts against expected ones.
func chiSquare(got, want []float64) float64 {
	x := 0.0
	for i, g := range got {
		if want[i] > 0 {
			x += (g - want[i]) * (g - want[i]) / want[i]
		}
	}
	return x
}

// TestMultinomial: placers that hash or draw each chunk independently are multinomial, so the statistic has mean n-1
// and variance 2(n-1).
func TestMultinomial(t *testing.T) {
	weighted := Uniform(90)
	for i := range weighted.Weights {
		weighted.Weights[i] = 1 + float64(i%4)
	}
	const chunks = 100_000
	for _, c := range []struct {
		name string
		m    Map
		p    Placer
	}{
		{"random", Uniform(90), nil2(NewRandom(Uniform(90), rng.NewStream(3, "r"), false))},
		{"random weighted", weighted, nil2(NewRandom(weighted, rng.NewStream(3, "r"), false))},
		{"hrw", Uniform(90), nil2(NewHRW(Uniform(90)))},
		{"hrw weighted", weighted, nil2(NewHRW(weighted))},
		{"jump", Uniform(90), nil2(NewJump(Uniform(90)))},
		{"straw2", Uniform(90), nil2(NewStraw2(Uniform(90)))},
		{"straw2 weighted", weighted, nil2(NewStraw2(weighted))},
		{"straw2 racks", weighted.Racks(9), nil2(NewStraw2(weighted.Racks(9)))},
		{"group", Uniform(90), nil2(NewGroup(Uniform(90), 9))},
		{"group weighted", weighted, nil2(NewGroup(weighted, 9))},
	} {
		want, err := bestShares(c.m, 1)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			want[i] *= chunks
		}
		x := chiSquare(counts(c.p, 90, chunks, 1), want)
		z := (x - 89) / math.Sqrt(2*89)
		t.Logf("%-16s chi-square %.1f of 89 degrees (%+.1f deviations)", c.name, x, z)
		if math.Abs(z) > 3.5 {
			t.Errorf("%s: chi-square %.1f of 89 degrees", c.name, x)
		}
	}
}

// TestCopiesBalanced verifies that several copies are spread evenly over targets of equal weight, with and without
// domains.
func TestCopiesBalanced(t *testing.T) {
	const chunks = 60_000
	for _, mk := range makers() {
		if mk.name == "ring" || mk.name == "maglev" || mk.name == "bounded" || mk.name == "two-choices" {
			continue // their shares are not all equal; see below
		}
		if mk.name == "copysets" {
			continue // copies come in sets, so their counts are correlated
		}
		for _, m := range []Map{Uniform(90), Uniform(90).Racks(9)} {
			p := must(t, nil2(mk.make(m)), nil)
			want := make([]float64, 90)
			for i := range want {
				want[i] = 3 * chunks / 90.0
			}
			// Copies of a chunk are distinct, so the counts spread slightly less than multinomial ones.
			if x := chiSquare(counts(p, 90, chunks, 3), want); x > 89+3.5*math.Sqrt(2*89) {
				t.Errorf("%s: chi-square %.1f of 89 degrees", mk.name, x)
			}
		}
	}
}

// TestRingSpread: a target's share of the circle is Beta(v, (n-1)v) with variance (n-1)/(n^2 (nv+1)) for v virtual
// nodes and n targets.
func TestRingSpread(t *testing.T) {
	for _, v := range []int{1, 16, 128} {
		const n = 900
		r, err := NewRing(Uniform(n), v)
		if err != nil {
			t.Fatal(err)
		}
		share := make([]float64, n)
		for i, p := range r.point {
			before := r.point[(i+len(r.point)-1)%len(r.point)].at
			share[p.target] += float64(p.at-before) * 0x1p-64
		}
		sum, square := 0.0, 0.0
		for _, s := range share {
			sum += s
			square += (s - 1.0/n) * (s - 1.0/n)
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Fatalf("shares add up to %v", sum)
		}
		got, want := math.Sqrt(square/n), math.Sqrt(float64(n-1)/(n*n*float64(n*v+1)))
		t.Logf("%d virtual nodes: deviation %.2f %% of the mean, in theory %.2f %%", v, 100*n*got, 100*n*want)
		// The deviation of 900 shares is itself known only to some 1/sqrt(1800), worse where shares are skewed.
		if got < 0.9*want || got > 1.1*want {
			t.Errorf("%d virtual nodes: deviation %v, in theory %v", v, got, want)
		}
		// Lookups find these arcs.
		for c := range uint64(2000) {
			h := attempt(c, 0)
			at := r.find(h)
			if p := r.point[at]; p.at < h && at != 0 || at > 0 && r.point[at-1].at >= h {
				t.Fatalf("hash %x finds point %d", h, at)
			}
		}
	}
}

// TestMaglevBalance verifies the paper's bound for tables of a hundred entries per target: 1% between shares.
func TestMaglevBalance(t *testing.T) {
	for _, n := range []int{9, 90, 900} {
		p, err := NewMaglev(Uniform(n), MaglevTable(n))
		if err != nil {
			t.Fatal(err)
		}
		entries := make([]int, n)
		for _, x := range p.table {
			entries[x]++
		}
		lo, hi := entries[0], entries[0]
		for _, e := range entries {
			lo, hi = min(lo, e), max(hi, e)
		}
		if hi-lo > 1 || float64(hi) > 1.01*float64(lo) && hi-lo > 1 {
			t.Errorf("%d targets have %d to %d entries", n, lo, hi)
		}
	}
	m := Uniform(50)
	for i := range m.Weights {
		m.Weights[i] = 1 + float64(i%3)
	}
	p, err := NewMaglev(m, 10007)
	if err != nil {
		t.Fatal(err)
	}
	shares, _ := bestShares(m, 1)
	entries := make([]float64, 50)
	for _, x := range p.table {
		entries[x]++
	}
	for i, e := range entries {
		if math.Abs(e/10007-shares[i]) > 2.0/10007 {
			t.Errorf("target %d of weight %v has %v of %v entries", i, m.Weights[i], e, 10007*shares[i])
		}
	}
}

// successive computes the probability that a target is among the first n drawn one after another without replacement,
// by enumerating all orders.
func successive(weights []float64, n int) []float64 {
	in := make([]float64, len(weights))
	used := make([]bool, len(weights))
	var draw func(depth int, p, rest float64)
	draw = func(depth int, p, rest float64) {
		if depth == n {
			return
		}
		for i, w := range weights {
			if !used[i] {
				used[i] = true
				in[i] += p * w / rest
				draw(depth+1, p*w/rest, rest-w)
				used[i] = false
			}
		}
	}
	total := 0.0
	for _, w := range weights {
		total += w
	}
	draw(0, 1, total)
	return in
}

// TestSuccessive verifies that several weighted copies are exactly successive draws: a heavy target gets fewer copies
// than its weight suggests, because it cannot have two of one chunk.
func TestSuccessive(t *testing.T) {
	m := Map{Weights: []float64{1, 1, 2, 3, 5, 8}}
	const chunks = 100_000
	want := successive(m.Weights, 3)
	for name, p := range map[string]Placer{
		"hrw":    nil2(NewHRW(m)),
		"random": nil2(NewRandom(m, rng.NewStream(1, "x"), false)),
		"straw2": nil2(NewStraw2(m)),
	} {
		got := counts(p, 6, chunks, 3)
		for i, w := range want {
			sd := math.Sqrt(chunks * w * (1 - w))
			if z := (got[i] - chunks*w) / sd; math.Abs(z) > 4 {
				t.Errorf("%s: target %d has %.0f copies, expected %.0f (%.1f deviations)", name, i, got[i], chunks*w, z)
			}
		}
	}
}

// TestBoundedLoad verifies that no target exceeds ceil((1+e) m w/W), while a plain ring is far above it.
func TestBoundedLoad(t *testing.T) {
	weighted := Uniform(90)
	for i := range weighted.Weights {
		weighted.Weights[i] = 1 + float64(i%2)
	}
	for _, m := range []Map{Uniform(90), weighted} {
		for _, slack := range []units.Fraction{0.05, 0.25, 1} {
			p, err := NewBoundedLoad(m, 16, slack)
			if err != nil {
				t.Fatal(err)
			}
			var out []int32
			total := int64(0)
			for c := range uint64(9000) {
				out = p.Place(c, 3, out[:0])
				total += 3
				for _, x := range out {
					p.Add(x, 1)
					if p.Load(x) > p.bound(x, total) {
						t.Fatalf("slack %v: target %d has %d copies of %d, bound %d", slack, x, p.Load(x), total,
							p.bound(x, total))
					}
				}
			}
			if p.Overfull() != 0 {
				t.Errorf("slack %v: %d copies found no room", slack, p.Overfull())
			}
		}
	}
	// Three copies on three targets leave no choice: with the load on one of them, its bound is exceeded and counted.
	p, _ := NewBoundedLoad(Uniform(3), 16, 0.1)
	p.Add(0, 50)
	if out := p.Place(1, 3, nil); len(out) != 3 || p.Overfull() != 1 {
		t.Errorf("placed %v, %d beyond the bound", out, p.Overfull())
	}
}

// TestTwoChoices: with one choice the fullest of n bins with n balls has about ln n / ln ln n, with two about ln ln n /
// ln 2 plus a constant (Azar et al., theorem 4).
func TestTwoChoices(t *testing.T) {
	const n = 9000
	h := nil2(NewJump(Uniform(n)))
	most := func(d int) int64 {
		load := make([]int64, n)
		p := must(t, nil2(NewLeastLoaded(h, d, func(x int32) int64 { return load[x] })), nil)
		var out []int32
		top := int64(0)
		for c := range uint64(n) {
			out = p.Place(c, 1, out[:0])
			load[out[0]]++
			top = max(top, load[out[0]])
		}
		return top
	}
	if one, two := most(1), most(2); one < 6 || one > 9 || two > 4 || two < 3 {
		t.Errorf("the fullest bin has %d balls with one choice, %d with two", one, two)
	}
}

// TestStraw2Ties verifies that ties between straws of 16 bits favour the first of very many items, as in Ceph.
func TestStraw2Ties(t *testing.T) {
	const n, chunks = 3000, 10_000
	p := nil2(NewStraw2(Uniform(n)))
	got := counts(p, n, chunks, 1)
	first, last := 0.0, 0.0
	for i := range n / 3 {
		first += got[i]
		last += got[n-1-i]
	}
	t.Logf("first third %.4f, last third %.4f of the chunks", first/chunks, last/chunks)
	if first/chunks > 0.36 || last/chunks < 0.31 {
		t.Errorf("first third has %.3f, last third %.3f of the chunks", first/chunks, last/chunks)
	}
}
