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
			// Ranges may begin before the base, be empty or the wrong way round, and end beyond the window.
			from, to := at-uint32(rapid.IntRange(0, 400).Draw(t, "back")), base+uint32(rapid.IntRange(0, 700).Draw(t, "to"))
			least, n := to, uint32(0)
			for psn := from; int32(psn-to) < 0; psn++ {
				if in[psn] && psn-base < 1<<31 {
					if n++; n == 1 {
						least = psn
					}
				}
			}
			if got := s.Count(from, to); got != n {
				t.Fatalf("%d of [%d, %d) are in the set, want %d", got, from, to, n)
			}
			if got, ok := s.Find(from, to); ok != (n > 0) || ok && got != least {
				t.Fatalf("the first of [%d, %d) is %d, %v; want %d of %d", from, to, got, ok, least, n)
			}
			if size := s.Size(); size&(size-1) != 0 || size > 1024 {
				t.Fatalf("%d bits for numbers up to 300 beyond the base", size)
			}
		}
	})
}

// TestSizes verifies that a set has the least power of two of bits, 128 at least, that holds its numbers, and keeps
// those in it while it grows, wherever its base is.
func TestSizes(t *testing.T) {
	for _, base := range []uint32{0, 77, 1<<31 - 3} {
		var s window.Set
		if s.MoveTo(base); s.Size() != 0 || s.Has(base) || s.Count(base, base+9) != 0 {
			t.Errorf("an empty set has %d bits", s.Size())
		}
		last := base
		for _, x := range []struct{ offset, size uint32 }{{0, 128}, {127, 128}, {128, 256}, {255, 256},
			{5000, 8192}} {
			last = base + x.offset
			if s.Add(last); s.Size() != x.size {
				t.Errorf("%d bits for %d numbers", s.Size(), x.offset+1)
			}
		}
		if n := s.Count(base, last+1); n != 5 {
			t.Errorf("%d of 5 are counted", n)
		}
		if n := s.Count(base+1, last); n != 3 {
			t.Errorf("%d of 3 are counted between them", n)
		}
		if s.MoveTo(base + 8192 + 128); s.Count(base, base+20000) != 0 || s.Base() != base+8320 || s.Size() != 8192 {
			t.Errorf("numbers are left behind the base %d", s.Base())
		}
	}
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
