package columns

import (
	"math"
	"testing"

	"farflash/numeric/rng"
)

// drawn returns kinds of bins that hold few items, some of them scarce.
func drawn(seed uint64, items int) []Kind {
	r := rng.NewStream(seed, "kinds")
	var kinds []Kind
	for k := range 3 {
		x := Kind{Count: items, Never: make([]bool, items)}
		if k == 2 && r.IntN(2) == 0 {
			x.Count = 1 + int(r.IntN(2))
		}
		size, wear, charge := make([]float64, items), make([]float64, items), make([]float64, items)
		for j := range items {
			size[j], wear[j], charge[j] = 0.1+0.5*r.Float64(), 0.8*r.Float64(), 5*r.Float64()
			if x.Never[j] = k > 0 && r.IntN(8) == 0; x.Never[j] {
				size[j] = 2
			}
		}
		price, next := 50+100*r.Float64(), 50+50*r.Float64()
		for n := range 3 {
			budget := make([]float64, items)
			for j := range budget {
				budget[j] = wear[j] / (1 + float64(n))
			}
			x.Modes = append(x.Modes,
				Mode{Cost: price + next*float64(n), Limits: [][]float64{size, budget}, Charge: charge})
		}
		kinds = append(kinds, x)
	}
	return kinds
}

// cost is the cost of a bin of a kind with a set, in its cheapest mode; infinite if the set does not fit.
func (k *Kind) cost(set, items int) float64 {
	least := math.Inf(1)
	for m := range k.Modes {
		x := &k.Modes[m]
		sum, fits := x.Cost, true
		used := make([]float64, len(x.Limits))
		for j := range items {
			if set>>j&1 == 0 {
				continue
			}
			fits = fits && !k.Never[j]
			sum += x.Charge[j]
			for v, l := range x.Limits {
				used[v] += l[j]
				fits = fits && used[v] <= 1
			}
		}
		if fits {
			least = min(least, sum)
		}
	}
	return least
}

// TestSolve verifies on a hundred enumerated problems that no bin costs less than the values of its items, that no
// division costs less than the bound, and that the bound is close to the best division.
func TestSolve(t *testing.T) {
	const items = 9
	gap, solved := 0.0, 0.0
	for seed := range uint64(100) {
		kinds := drawn(seed, items)
		b := Solve(items, kinds)
		sum := 0.0
		for _, v := range b.Value {
			sum += v
		}
		for k := range kinds {
			sum -= b.Scarce[k] * float64(kinds[k].Count)
			for set := 1; set < 1<<items; set++ {
				worth := -b.Scarce[k]
				for j := range items {
					if set>>j&1 == 1 {
						worth += b.Value[j]
					}
				}
				if c := kinds[k].cost(set, items); worth > c*(1+1e-7) {
					t.Fatalf("seed %d: kind %d with %b costs %v, less than %v", seed, k, set, c, worth)
				}
			}
		}
		if math.Abs(sum/b.Least-1) > 1e-9 || b.Least <= 0 {
			t.Errorf("seed %d: a bound of %v, and values of %v", seed, b.Least, sum)
		}
		// The best division, with the available bins of the scarce kind.
		best := make([]float64, 1<<items)
		for i := range best {
			best[i] = math.Inf(1)
		}
		best[0] = 0
		cover := func(k, most int) {
			for range most {
				next := append([]float64{}, best...)
				changed := false
				for set := 1; set < 1<<items; set++ {
					for part := set; part > 0; part = (part - 1) & set {
						if v := best[set^part] + kinds[k].cost(part, items); v < next[set]-1e-12 {
							next[set], changed = v, true
						}
					}
				}
				if best = next; !changed {
					break
				}
			}
		}
		if seed >= 12 {
			continue // the rest is slow
		}
		for k := range kinds {
			cover(k, kinds[k].Count)
		}
		least := best[1<<items-1]
		if math.IsInf(least, 1) {
			continue
		}
		if b.Least > least*(1+1e-9) {
			t.Errorf("seed %d: a bound of %v, and a division that costs %v", seed, b.Least, least)
		}
		gap, solved = gap+least/b.Least-1, solved+1
	}
	if solved < 8 || gap/solved > 0.1 {
		t.Errorf("the best divisions cost %v more than the bound on average, of %v", gap/solved, solved)
	}
}

// TestKnapsack verifies that the set reported as most valuable is, and that branches that were cut off are accounted
// for.
func TestKnapsack(t *testing.T) {
	for seed := range uint64(60) {
		r := rng.NewStream(seed, "sacks")
		const items = 12
		worth, limits := make([]float64, items),
			[][]float64{make([]float64, items), make([]float64, items), make([]float64, items)}
		for j := range items {
			worth[j] = r.Float64() - 0.1
			for _, l := range limits {
				l[j] = r.Float64() * r.Float64()
			}
		}
		least := 0.0
		for set := range 1 << items {
			sum, used, fits := 0.0, [3]float64{}, true
			for j := range items {
				if set>>j&1 == 1 {
					sum += worth[j]
					for v, l := range limits {
						used[v] += l[j]
						fits = fits && used[v] <= 1
					}
				}
			}
			if fits {
				least = max(least, sum)
			}
		}
		set, value, most := knapsack(worth, limits)
		sum := 0.0
		for _, j := range set {
			sum += worth[j]
		}
		if math.Abs(value-least) > 1e-9 || most < least-1e-9 || most > least*(1+1e-6) || math.Abs(sum-value) > 1e-9 {
			t.Errorf("seed %d: %v of %v, at most %v; the best is worth %v", seed, set, value, most, least)
		}
	}
}
