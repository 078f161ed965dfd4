package spread

import "math/bits"

// The addresses that switches hash: the IPv4 address of the host at node 256x + y is 11.x.y.1, and its queue pairs to
// another host use source ports from FirstPort on. HPCC's simulator numbers them the same way, so that the choice of
// paths can be compared.
const (
	FirstPort   = 10000
	servicePort = 100
)

// Key is the input of a switch's path hash.
type Key struct {
	src, dst uint32
	From     uint16 // From is the source port.
	to       uint16
}

// KeyOf returns the key of a host's queue pair to another, by nodes and the number of queue pairs before it.
func KeyOf(src, dst int32, order uint16) Key {
	return Key{src: address(src), dst: address(dst), From: FirstPort + order, to: servicePort}
}

// address returns the IPv4 address of a host's node.
func address(node int32) uint32 {
	return 0x0b000001 + uint32(node)/256<<16 + uint32(node)%256<<8
}

// Hash is MurmurHash3 (x86, 32 bits; Appleby's public description) of the key's twelve bytes. HPCC's switches write its
// last step in each word as h + h<<2, which is h*5.
func (f Key) Hash(seed uint32) uint32 {
	h := seed
	for _, k := range [...]uint32{f.src, f.dst, uint32(f.From) | uint32(f.to)<<16} {
		k *= 0xcc9e2d51
		k = bits.RotateLeft32(k, 15)
		k *= 0x1b873593
		h ^= k
		h = bits.RotateLeft32(h, 13)
		h = h*5 + 0xe6546b64
	}
	h ^= 12
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}

// Back returns the key of the reverse direction.
func (f Key) Back() Key { return Key{f.dst, f.src, f.to, f.From} }
