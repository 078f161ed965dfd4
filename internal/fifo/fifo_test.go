package fifo

import "testing"

// TestPool: chunks are numbered from 1 and freed, and keep their items in order.
func TestPool(t *testing.T) {
	var p Pool[uint32]
	var q Queue
	for range 5 {
		for i := range uint32(2 * chunkLen) {
			p.Push(&q, &i)
		}
		if len(p.next) != 3 {
			t.Fatalf("%d chunks for two and the one that is none", len(p.next))
		}
		want := uint32(0)
		p.Each(&q, func(x *uint32) bool {
			if *x != want {
				t.Errorf("%d where %d is due", *x, want)
			}
			want++
			return want < chunkLen+3
		})
		if want != chunkLen+3 {
			t.Errorf("the walk ended at %d", want)
		}
		for i := range uint32(2 * chunkLen) {
			if x := p.Pop(&q); x != i {
				t.Fatalf("%d where %d is due", x, i)
			}
		}
	}
}

// TestRing: first in, first out, while the ring grows and wraps.
func TestRing(t *testing.T) {
	var r Ring[int]
	in, out := 0, 0
	for round := range 50 {
		for range round {
			r.Push(in)
			in++
		}
		for k := range r.N {
			if x := *r.At(k); x != out+int(k) {
				t.Fatalf("%d at place %d, want %d", x, k, out+int(k))
			}
		}
		for range round - round/4 {
			if *r.First() != out || r.Pop() != out {
				t.Fatalf("%d is not the first", out)
			}
			out++
		}
	}
	if int(r.N) != in-out {
		t.Errorf("%d are left, want %d", r.N, in-out)
	}
}
