package slab_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"farflash/internal/slab"
)

// TestSlab verifies that numbers in use are not allocated again, that values persist, and that Each visits exactly the
// values in use.
func TestSlab(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s slab.Slab[int]
		held := map[int32]int{}
		var order []int32
		for step := range rapid.IntRange(1, 400).Draw(t, "steps") {
			if len(order) > 0 && rapid.IntRange(0, 9).Draw(t, "give") < 4 {
				k := rapid.IntRange(0, len(order)-1).Draw(t, "which")
				i := order[k]
				order = append(order[:k], order[k+1:]...)
				delete(held, i)
				s.Give(i)
				continue
			}
			i := s.Take()
			if _, ok := held[i]; ok || i < 1 {
				t.Fatalf("number %d is given out, in use: %v", i, ok)
			}
			*s.At(i) = step
			held[i] = step
			order = append(order, i)
		}
		if s.Len() != len(held) {
			t.Fatalf("%d numbers are taken, %d are counted", len(held), s.Len())
		}
		last := int32(0)
		s.Each(func(i int32, v *int) {
			if want, ok := held[i]; !ok || *v != want || i <= last {
				t.Fatalf("number %d after %d has %d, want %d, %v", i, last, *v, want, ok)
			}
			last = i
			delete(held, i)
		})
		if len(held) > 0 {
			t.Fatalf("%v were not visited", held)
		}
	})
}

// TestReuse: the number freed last is allocated first, with its old value.
func TestReuse(t *testing.T) {
	var s slab.Slab[string]
	if s.Len() != 0 {
		t.Errorf("%d numbers of an empty slab are taken", s.Len())
	}
	a, b := s.Take(), s.Take()
	*s.At(a), *s.At(b) = "a", "b"
	s.Give(a)
	s.Give(b)
	if i := s.Take(); i != b || *s.At(i) != "b" {
		t.Errorf("number %d with %q, want %d with b", i, *s.At(i), b)
	}
}

type request struct{ words [17]int64 }

// TestNoAllocation: a slab at its maximum size does not allocate.
func TestNoAllocation(t *testing.T) {
	var s slab.Slab[request]
	var held [100]int32
	work := func() {
		for i := range held {
			held[i] = s.Take()
		}
		for _, i := range held {
			s.Give(i)
		}
	}
	work()
	if n := testing.AllocsPerRun(100, work); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkSlab(b *testing.B) {
	var s slab.Slab[request]
	b.ReportAllocs()
	for range b.N {
		i := s.Take()
		s.At(i).words[0]++
		s.Give(i)
	}
}

// BenchmarkNew measures the alternative to a slab: a separate object for each request.
func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	var keep *request
	for range b.N {
		keep = new(request)
		keep.words[0]++
	}
	_ = keep
}

func Example() {
	var requests slab.Slab[string]
	first := requests.Take()
	*requests.At(first) = "read 4096 bytes"
	fmt.Println(first, *requests.At(first), requests.Len())
	requests.Give(first)
	fmt.Println(requests.Len())
	// Output:
	// 1 read 4096 bytes 1
	// 0
}
