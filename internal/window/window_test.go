package window_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"farflash/internal/window"
)

// TestSet checks a set against a map, with a window that wraps past the end of the numbers.
func TestSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s window.Set
		base := rapid.SampledFrom([]uint32{0, 1, 1<<32 - 100, 1<<31 - 50}).Draw(t, "base")
		if int32(base) < 0 {
			s.MoveTo(1<<31 - 1) // in two steps, because a window moves by less than half of all numbers at a time
		}
		s.MoveTo(base)
		in := map[uint32]bool{}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			at := base + uint32(rapid.IntRange(0, 300).Draw(t, "offset"))
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0, 1, 2:
				s.Add(at)
				in[at] = true
			case 3:
				if in[at] {
					s.Remove(at)
				}
				delete(in, at)
			case 4:
				step := uint32(rapid.IntRange(0, 40).Draw(t, "step"))
				for range step {
					delete(in, base)
					base++
				}
				s.MoveTo(base)
			case 5:
				delete(in, base)
				base++
				for in[base] {
					delete(in, base)
					base++
				}
				if got := s.Advance(base); got != base {
					t.Fatalf("the first that is missing is %d, want %d", got, base)
				}
			}
			if s.Base() != base || s.Has(at) != in[at] || s.Has(base-1) {
				t.Fatalf("base %d, want %d; has %d: %v, want %v", s.Base(), base, at, s.Has(at), in[at])
			}
			first, any := at, false
			for ; first != base+400 && !any; first++ {
				any = in[first]
			}
			if got, ok := s.Find(at, base+400); ok != any || ok && got != first-1 {
				t.Fatalf("the first from %d on is %d, %v; want %d, %v", at, got, ok, first-1, any)
			}
		}
	})
}

func Example() {
	var came window.Set
	came.Add(3)
	came.Add(1)
	fmt.Println(came.Advance(1), came.Has(3))
	fmt.Println(came.Advance(3))
	// Output:
	// 2 true
	// 4
}
