package put

import (
	"slices"
	"testing"

	"farflash/numeric/rng"
	"farflash/sim"
)

// TestLeastBusy verifies that the least busy candidates are chosen, with ties in order of answer, whatever the order of
// answers, and not before the last answer.
func TestLeastBusy(t *testing.T) {
	for seed := range uint64(50) {
		r := rng.NewStream(seed, "busy")
		type answer struct {
			target int32
			busy   sim.Time
		}
		var all []answer
		for k := range int32(2 + r.IntN(7)) {
			all = append(all, answer{10 + k, sim.Time(r.IntN(4))})
		}
		b := &Bus{Plan: Plan{Copies: 2}, Chunks: []Chunk{{ID: 3}}}
		chosen := 0
		c := chooser{b: b, chosen: func(int32) { chosen++ }, list: []candidates{{n: int8(len(all))}}}
		for k, x := range all {
			if chosen > 0 {
				t.Fatalf("seed %d: chosen before the last answer", seed)
			}
			c.message(&Message{Kind: probed, ID: 2, From: 99}) // of another attempt
			if !c.message(&Message{Kind: probed, ID: 3, From: x.target, A: x.busy}) || int(c.list[0].answered) != k+1 {
				t.Fatalf("seed %d: answer %d is not heard", seed, k)
			}
		}
		slices.SortStableFunc(all, func(a, b answer) int { return int(a.busy - b.busy) })
		if x := &b.Chunks[0]; chosen != 1 || x.N != 2 || x.Targets[0] != all[0].target ||
			x.Targets[1] != all[1].target {
			t.Errorf("seed %d: of %v, %v are taken", seed, all, x.Targets[:x.N])
		}
		if c.message(&Message{Kind: 0}) {
			t.Error("another message is taken for one of choosing")
		}
	}
}
