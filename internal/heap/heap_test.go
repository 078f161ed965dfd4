package heap_test

import (
	"fmt"
	"slices"
	"testing"

	"farflash/internal/heap"
	"farflash/numeric/rng"

	"pgregory.net/rapid"
)

// due is a task with a time; its number breaks ties.
type due struct{ at, number int }

func (d *due) Before(o *due) bool { return d.at < o.at || d.at == o.at && d.number < o.number }

func Example() {
	var h heap.Heap[due, *due]
	for number, at := range []int{30, 10, 20, 10} {
		h.Push(due{at, number})
	}
	for h.Len() > 0 {
		fmt.Println(h.Pop())
	}
	// Output:
	// {10 1}
	// {10 3}
	// {20 2}
	// {30 0}
}

// TestAgainstSorting applies random operations to a heap and to a sorted list, and verifies that the reported positions
// are right.
func TestAgainstSorting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		places := map[int]int{}
		h := heap.Heap[due, *due]{Placed: func(x *due, at int) { places[x.number] = at }}
		var want []due
		order := func(a, b due) int {
			if a.Before(&b) {
				return -1
			}
			return 1
		}
		for number := range rapid.IntRange(1, 120).Draw(t, "steps") {
			at := rapid.IntRange(0, 20).Draw(t, "at")
			switch what := rapid.IntRange(0, 9).Draw(t, "what"); {
			case what < 5 || len(want) == 0:
				h.Push(due{at, number})
				want = append(want, due{at, number})
			case what < 7:
				if got := h.Pop(); got != want[0] {
					t.Fatalf("popped %v, want %v", got, want[0])
				}
				want = want[1:]
			case what < 9: // move or remove it by its position
				i := rapid.IntRange(0, len(want)-1).Draw(t, "which")
				place := places[want[i].number]
				if *h.At(place) != want[i] {
					t.Fatalf("%v is not at %d", want[i], place)
				}
				if what == 7 {
					h.Remove(place)
					want = slices.Delete(want, i, i+1)
				} else {
					h.At(place).at, want[i].at = at, at
					h.Fix(place)
				}
			default:
				h.Clear()
				want = want[:0]
			}
			slices.SortFunc(want, order)
			if h.Len() != len(want) || len(want) > 0 && *h.First() != want[0] {
				t.Fatalf("%d elements, want %v", h.Len(), want)
			}
			for i := range h.Len() {
				if places[h.At(i).number] != i {
					t.Fatalf("element %d is at %d and was told %d", h.At(i).number, i, places[h.At(i).number])
				}
			}
		}
	})
}

// TestAllocatesNothing verifies that a heap of constant size does not allocate.
func TestAllocatesNothing(t *testing.T) {
	var h heap.Heap[due, *due]
	for i := range 100 {
		h.Push(due{i * 37 % 100, i})
	}
	if n := testing.AllocsPerRun(100, func() {
		x := h.Pop()
		x.at += 50
		h.Push(x)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkHold pops the first element and pushes it again with a later time, the steady-state work of a queue.
func BenchmarkHold(b *testing.B) {
	for _, n := range []int{16, 256, 4096} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := rng.NewStream(1, "heap")
			var h heap.Heap[due, *due]
			for i := range n {
				h.Push(due{int(s.IntN(1000)), i})
			}
			b.ReportAllocs()
			for b.Loop() {
				x := h.Pop()
				x.at += int(s.IntN(1000))
				h.Push(x)
			}
		})
	}
}
