package buddy

import (
	"testing"

	"pgregory.net/rapid"
)

// naive is a reference model of a small Space: one flag per page, searched linearly.
type naive struct{ free [1 << naiveBits]bool }

const naiveBits = 9

func (n *naive) fits(base, pages uint64) bool {
	for i := base; i < base+pages; i++ {
		if i >= uint64(len(n.free)) || !n.free[i] {
			return false
		}
	}
	return true
}

func (n *naive) set(base, pages uint64, free bool) {
	for i := base; i < base+pages; i++ {
		n.free[i] = free
	}
}

// lowest returns the block that a buddy allocator picks: the lowest in the smallest free block that fits.
func (n *naive) lowest(order int) (uint64, bool) {
	for k := order; k < naiveBits; k++ {
		for base := uint64(0); base < uint64(len(n.free)); base += 1 << k {
			// a free block of order k that is not part of a free block of order k+1
			if n.fits(base, 1<<k) && (k == naiveBits-1 || !n.fits(base&^(1<<(k+1)-1), 1<<(k+1))) {
				return base, true
			}
		}
	}
	return 0, false
}

// TestModel applies the same operations to a Space and to the model: the same blocks are allocated, without overlap and
// aligned, and buddies merge.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.IntRange(0, 4).Draw(t, "low")
		s := New(low)
		for k := naiveBits; k < orders; k++ { // the model covers the start of the space
			if !s.Reserve(1<<k, k) {
				t.Fatal("cannot reserve what is free")
			}
		}
		var n naive
		n.set(1<<low, 1<<naiveBits-1<<low, true)
		type block struct {
			base  uint64
			order int
		}
		var held []block
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			order := rapid.IntRange(0, naiveBits-1).Draw(t, "order")
			pick := 0
			if len(held) > 0 {
				pick = rapid.IntRange(0, len(held)-1).Draw(t, "pick")
			}
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0, 1:
				order = min(order, rapid.IntRange(0, naiveBits-1).Draw(t, "smaller"))
				base, ok := s.Alloc(order)
				want, fits := n.lowest(order)
				if ok != fits || ok && base != want {
					t.Fatalf("a block of 2^%d: %d, %v; the model has %d, %v", order, base, ok, want, fits)
				}
				if ok {
					n.set(base, 1<<order, false)
					held = append(held, block{base, order})
				}
			case 2:
				base := rapid.Uint64Range(0, 1<<naiveBits-1).Draw(t, "base") &^ (1<<order - 1)
				ok := s.Reserve(base, order)
				if ok != n.fits(base, 1<<order) {
					t.Fatalf("reserving 2^%d at %d: %v", order, base, ok)
				}
				if ok {
					n.set(base, 1<<order, false)
					held = append(held, block{base, order})
				}
			case 3:
				if len(held) > 0 {
					b := held[pick]
					s.Free(b.base, b.order)
					n.set(b.base, 1<<b.order, true)
					held = append(held[:pick], held[pick+1:]...)
				}
			case 4:
				if len(held) > 0 {
					b := &held[pick]
					ok := s.Extend(b.base, b.order)
					if want := b.base%(2<<b.order) == 0 && n.fits(b.base+1<<b.order, 1<<b.order); ok != want {
						t.Fatalf("extending 2^%d at %d: %v", b.order, b.base, ok)
					}
					if ok {
						n.set(b.base+1<<b.order, 1<<b.order, false)
						b.order++
					}
				}
			case 5:
				if len(held) > 0 {
					b := &held[pick]
					to := rapid.IntRange(0, b.order).Draw(t, "to")
					s.Shrink(b.base, b.order, to)
					n.set(b.base+1<<to, 1<<b.order-1<<to, true)
					b.order = to
				}
			}
			free := uint64(0)
			for _, f := range n.free {
				if f {
					free++
				}
			}
			if s.Pages() != free {
				t.Fatalf("%d pages are free, the model has %d", s.Pages(), free)
			}
			for _, err := range s.Check() {
				t.Fatal(err)
			}
		}
		for _, b := range held {
			s.Free(b.base, b.order)
		}
		for k := naiveBits; k < orders; k++ {
			s.Free(1<<k, k)
		}
		for k := range s.free {
			if len(s.free[k].set) != map[bool]int{true: 1}[k >= low] {
				t.Fatalf("all is free, and there are %d blocks of 2^%d", len(s.free[k].set), k)
			}
		}
	})
}

// TestOdd verifies which requests are refused, and that Check reports overlapping frees.
func TestOdd(t *testing.T) {
	s := New(4)
	for _, c := range []struct {
		base  uint64
		order int
	}{{0, 0}, {8, 3}, {17, 1}, {16, 5}, {1 << orders, 0}, {0, orders}, {16, -1}} {
		if s.Reserve(c.base, c.order) {
			t.Errorf("2^%d pages at %d were reserved", c.order, c.base)
		}
	}
	if _, ok := s.Alloc(orders); ok {
		t.Error("a block as large as the space")
	}
	if s.Extend(1<<51, 51) {
		t.Error("the largest block was extended")
	}
	s.free[2].add(33)
	s.free[3].add(32)
	if n := len(s.Check()); n < 2 {
		t.Errorf("%d problems found", n)
	}
	for pages, want := range map[uint64]int{1: 0, 2: 1, 3: 2, 4: 2, 5: 3, 1 << 40: 40, 1<<40 + 1: 41} {
		if k := Order(pages); k != want {
			t.Errorf("%d pages: order %d", pages, k)
		}
	}
}
