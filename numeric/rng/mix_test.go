package rng

import "testing"

// TestSplitMix compares with the first numbers of the published algorithm, seeded with 0, computed independently.
func TestSplitMix(t *testing.T) {
	var s SplitMix
	for i, want := range []uint64{0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f, 0xf88bb8a8724c81ec,
		0x1b39896a51a8749b} {
		if got := s.Next(); got != want {
			t.Errorf("number %d is %#x, want %#x", i, got, want)
		}
	}
}

// TestMix verifies that the finaliser is invertible, and so maps no two numbers to one.
func TestMix(t *testing.T) {
	s := NewStream(1, "mix")
	for range 1000 {
		x := s.Uint64()
		if got := unmix(Mix(x)); got != x {
			t.Fatalf("%#x comes back as %#x", x, got)
		}
	}
}

// unmix inverts Mix: multiplications by the inverses modulo 2^64, and shifts.
func unmix(z uint64) uint64 {
	inverse := func(a uint64) uint64 {
		x := a
		for range 6 {
			x *= 2 - a*x
		}
		return x
	}
	unshift := func(z uint64, by uint) uint64 {
		x := z
		for range 64/by + 1 {
			x = z ^ x>>by
		}
		return x
	}
	z = unshift(z, 31) * inverse(0x94d049bb133111eb)
	z = unshift(z, 27) * inverse(0xbf58476d1ce4e5b9)
	return unshift(z, 30)
}
