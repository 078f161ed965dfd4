package placement

import (
	"slices"
	"testing"
)

// TestCopysets verifies that every chunk is on one of the sets, that the number of sets is the paper's, and that no
// more than the scatter width of other targets share chunks with a target.
func TestCopysets(t *testing.T) {
	for _, m := range []Map{Uniform(90), Uniform(90).Racks(9)} {
		p, err := NewCopysets(m, 3, 10)
		if err != nil {
			t.Fatal(err)
		}
		sets := map[[3]int32]bool{}
		others := map[int32]map[int32]bool{}
		for _, s := range p.Sets() {
			s := slices.Sorted(slices.Values(s))
			sets[[3]int32(s)] = true
			for _, a := range s {
				for _, b := range s {
					if others[a] == nil {
						others[a] = map[int32]bool{}
					}
					if a != b {
						others[a][b] = true
					}
				}
			}
		}
		// Five permutations of thirty sets, and every target in one set of each.
		if n := len(p.Sets()); n != 150 {
			t.Errorf("%d copysets", n)
		}
		for x, o := range others {
			if len(o) > 10 {
				t.Errorf("target %d shares chunks with %d others", x, len(o))
			}
		}
		want := make([]float64, 90)
		for i := range want {
			want[i] = 60_000 / 90.0
		}
		for c := range uint64(5000) {
			s := slices.Sorted(slices.Values(p.Place(c, 3, nil)))
			if !sets[[3]int32(s)] {
				t.Fatalf("chunk %d is on %v, which is not a copyset", c, s)
			}
		}
		for x, of := range p.of {
			if len(of) != 5 {
				t.Errorf("target %d is in %d sets", x, len(of))
			}
		}
		if x := chiSquare(counts(p, 90, 60_000, 1), want); x > 140 {
			t.Errorf("primaries: chi-square %.1f of 89 degrees", x)
		}
		if out := p.Place(1, 0, nil); len(out) != 0 {
			t.Errorf("no copies are on %v", out)
		}
	}
	uneven := Uniform(9)
	uneven.Weights[0] = 3
	for name, err := range map[string]error{
		"map": second(NewCopysets(Map{}, 3, 2)), "weights": second(NewCopysets(uneven, 3, 2)),
		"one copy": second(NewCopysets(Uniform(9), 1, 2)),
		"domains":  second(NewCopysets(Uniform(9).Racks(5), 3, 2)), "scatter": second(NewCopysets(Uniform(9), 3, 1)),
		"wide":      second(NewCopysets(Uniform(9), 3, 9)),
		"left over": second(NewCopysets(Uniform(10), 3, 2)),
	} {
		if err == nil {
			t.Errorf("%s: not refused", name)
		}
	}
}
