package reply

import "testing"

// TestBuffers verifies that a buffer has the smallest sufficient size class, and that other sizes are not pooled.
func TestBuffers(t *testing.T) {
	const most = 260 << 10
	for n, want := range map[int]int{
		0: 4096, 1: 4096, 4096: 4096, 4097: 16384, 16384: 16384, 16385: 65536, 65537: 256 << 10, 256 << 10: 256 << 10,
		256<<10 + 1: most, most: most, most + 1: most + 1,
	} {
		for range 2 {
			b := Get(n)
			if len(b.B) != want {
				t.Errorf("for %d bytes there are %d, not %d", n, len(b.B), want)
			}
			b.Put()
		}
	}
}
