package put

import (
	"math"
	"slices"
	"testing"
)

// TestSurgeOrder verifies that gateways that ask at the same time partly share an order of the targets, according to
// their turns among the targets: two targets are in opposite orders at two gateways half the time, except if both run
// between the two gateways' turns, in which case they never are. Of 9 targets, this fraction is d/10 squared for pairs
// at distance d, 0.15 of all.
func TestSurgeOrder(t *testing.T) {
	const rounds, n = 20000, 9
	inverted, pairs := 0, 0
	for seed := range uint64(rounds) {
		var at [2][n]int
		for gateway := range at {
			order := []int32{0, 1, 2, 3, 4, 5, 6, 7, 8}
			surgeOrder(seed, 0, CompatSURGE, 3, int32(gateway), order)
			again := []int32{0, 1, 2, 3, 4, 5, 6, 7, 8}
			surgeOrder(seed, 0, CompatSURGE, 3, int32(gateway), again)
			if !slices.Equal(order, again) {
				t.Fatalf("%v, then %v", order, again)
			}
			for k, target := range order {
				at[gateway][target] = k + 1
			}
		}
		for a := range n {
			if at[0][a] == 0 {
				t.Fatalf("target %d is missing", a)
			}
			for b := range a {
				pairs++
				if (at[0][a] < at[0][b]) != (at[1][a] < at[1][b]) {
					inverted++
				}
			}
		}
	}
	if got, want := float64(inverted)/float64(pairs), (1-0.15)/2; math.Abs(got-want) > 0.01 {
		t.Errorf("%.3f of the pairs are inverted, not %.3f", got, want)
	}
}

// TestSurgeOrderOfGroups verifies that the orders of two groups at one gateway and moment are independent: half of the
// pairs are inverted.
func TestSurgeOrderOfGroups(t *testing.T) {
	const rounds, n = 20000, 5
	for _, c := range []Compat{CompatSURGE, CompatSURGEHead} {
		inverted := 0
		for seed := range uint64(rounds) {
			var at [2][n]int
			for k := range at {
				order := []int32{0, 1, 2, 3, 4}
				surgeOrder(seed, 1000, c, int32(k), 2, order)
				for place, target := range order {
					at[k][target] = place
				}
			}
			for a := range n {
				for b := range a {
					if (at[0][a] < at[0][b]) != (at[1][a] < at[1][b]) {
						inverted++
					}
				}
			}
		}
		// Its standard deviation is 0.002: of ten pairs in one order the counts of inversions have a variance of 25/6.
		if got := float64(inverted) / (rounds * 10); math.Abs(got-0.5) > 0.008 {
			t.Errorf("%v: %.3f of the pairs are inverted, not half", c, got)
		}
	}
}
