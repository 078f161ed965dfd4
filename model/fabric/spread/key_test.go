package spread

import (
	"encoding/binary"
	"math/bits"
	"testing"

	"farflash/numeric/rng"
)

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

// murmur is MurmurHash3 (x86, 32 bits) of any number of bytes.
func murmur(b []byte, seed uint32) uint32 {
	mix := func(k uint32) uint32 { return bits.RotateLeft32(k*0xcc9e2d51, 15) * 0x1b873593 }
	h, n := seed, len(b)
	for ; len(b) >= 4; b = b[4:] {
		h = bits.RotateLeft32(h^mix(binary.LittleEndian.Uint32(b)), 13)*5 + 0xe6546b64
	}
	if len(b) > 0 {
		var tail [4]byte
		copy(tail[:], b)
		h ^= mix(binary.LittleEndian.Uint32(tail[:]))
	}
	h ^= uint32(n)
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}

// TestHash compares the hash of keys with that of their bytes, by a function that has the published values of
// MurmurHash3.
func TestHash(t *testing.T) {
	for _, x := range []struct {
		text string
		seed uint32
		want uint32
	}{{"", 0, 0}, {"", 1, 0x514e28b7}, {"test", 0, 0xba6bd213}, {"Hello, world!", 0, 0xc0363e43},
		{"The quick brown fox jumps over the lazy dog", 0x9747b28c, 0x2fa826cd}} {
		if got := murmur([]byte(x.text), x.seed); got != x.want {
			t.Fatalf("%q: %#x, want %#x", x.text, got, x.want)
		}
	}
	draw := rng.NewStream(1, "keys")
	for range 1000 {
		src, dst, order := int32(draw.IntN(1<<16)), int32(draw.IntN(1<<16)), uint16(draw.IntN(1000))
		seed := uint32(draw.IntN(1 << 32))
		k := KeyOf(src, dst, order)
		b := binary.LittleEndian.AppendUint32(nil, address(src))
		b = binary.LittleEndian.AppendUint32(b, address(dst))
		b = binary.LittleEndian.AppendUint16(b, FirstPort+order)
		b = binary.LittleEndian.AppendUint16(b, servicePort)
		if got, want := k.Hash(seed), murmur(b, seed); got != want {
			t.Fatalf("%+v has the hash %#x, want %#x", k, got, want)
		}
		if back := k.Back(); back.Back() != k || back.src != k.dst || back.From != k.to {
			t.Fatalf("the reverse of %+v is %+v", k, back)
		}
	}
}
