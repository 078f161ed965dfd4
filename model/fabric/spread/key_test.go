package spread

import "testing"

// TestAddress compares the addresses that paths are chosen by with those of HPCC's ns-3: node 1 is 11.0.1.1, node 257
// is 11.1.1.1.
func TestAddress(t *testing.T) {
	for node, want := range map[int32]uint32{0: 0x0b000001, 1: 0x0b000101, 255: 0x0b00ff01, 256: 0x0b010001,
		257: 0x0b010101, 1000: 0x0b03e801} {
		if got := address(node); got != want {
			t.Errorf("node %d has the address %#x, want %#x", node, got, want)
		}
	}
}
