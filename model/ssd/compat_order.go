package ssd

import (
	"fmt"
	"slices"
)

// MQSimOrder returns the order in which MQSim starts its objects, that of libstdc++'s unordered_map over their names,
// as indices into the names of flows.
func MQSimOrder(channels, chips int, flows []string) []int {
	names := []string{"SSDDevice"}
	for channel := range channels {
		for chip := range chips {
			names = append(names, fmt.Sprintf("SSDDevice.Channel.%d.Chip.%d", channel, chip))
		}
	}
	for _, part := range []string{"PHY", "FTL", "FTL.TSU", "FTL.AddressMappingUnit", "FTL.GCandWLUnit", "DataCache",
		"HostInterface"} {
		names = append(names, "SSDDevice."+part)
	}
	names = append(names, "Host", "Host.PCIeLink")
	first := len(names)
	var out []int
	for _, i := range unordered(append(names, flows...)) {
		if i >= first {
			out = append(out, i-first)
		}
	}
	return out
}

// unordered returns the iteration order of a libstdc++ unordered_map<string, ...> after the names were inserted one by
// one, as indices. All nodes form one list: the first of a bucket is prepended to the list, later ones to their bucket.
// At a load factor of 1 the bucket count doubles, rounded up to a prime, and all nodes are reinserted in list order.
func unordered(names []string) []int {
	var order []int
	var hashes []uint64
	buckets := uint64(0)
	put := func(i int) {
		same := func(j int) bool { return hashes[j]%buckets == hashes[i]%buckets }
		order = slices.Insert(order, max(slices.IndexFunc(order, same), 0), i)
	}
	for i, name := range names {
		hashes = append(hashes, hashOf(name))
		if uint64(i) == buckets {
			buckets = bucketsFor(2 * buckets)
			was := order
			order = nil
			for _, j := range was {
				put(j)
			}
		}
		put(i)
	}
	return order
}

// bucketsFor returns libstdc++'s bucket count for at least the given number of elements.
func bucketsFor(least uint64) uint64 {
	for _, n := range []uint64{13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753, 42043} {
		if n >= least {
			return n
		}
	}
	return 85229
}

// word returns up to eight bytes as a little-endian integer.
func word(s string) (w uint64) {
	for i := range len(s) {
		w |= uint64(s[i]) << (8 * i)
	}
	return w
}

// hashOf returns libstdc++'s hash of a string: MurmurHash64A.
func hashOf(s string) uint64 {
	const mul, seed = 0xc6a4a7935bd1e995, 0xc70f6907
	mix := func(v uint64) uint64 { return v ^ v>>47 }
	hash := uint64(seed) ^ uint64(len(s))*mul
	for ; len(s) >= 8; s = s[8:] {
		hash ^= mix(word(s[:8])*mul) * mul
		hash *= mul
	}
	if s != "" {
		hash ^= word(s)
		hash *= mul
	}
	hash = mix(hash) * mul
	return mix(hash)
}
