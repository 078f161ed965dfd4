package placement

import (
	"fmt"
	"math/bits"

	"farflash/numeric/units"
)

// What it takes to reach some members of a negotiating group with one packet: either a
// multicast group for every set of members that may be chosen, each a rule in every
// switch, or a bit string in every packet (BIER, RFC 8279 and 8296).

// Choose is the number of ways to choose k of n, 0 if there is none. It panics beyond 64
// bits.
func Choose(n, k int) uint64 {
	if k < 0 || k > n {
		return 0
	}
	c := uint64(1)
	for i := 1; i <= min(k, n-k); i++ {
		hi, lo := bits.Mul64(c, uint64(n-i+1))
		if hi >= uint64(i) {
			panic(fmt.Sprintf("placement: %d over %d is beyond 64 bits", n, k))
		}
		c, _ = bits.Div64(hi, lo, uint64(i))
	}
	return c
}

// RulesPerGroup is how many rendezvous groups enumerate every set of 2 to replicas
// members of a negotiating group: C(g,2) + ... + C(g,r). Sets below r serve chunks of
// which copies exist; one member needs no multicast. For 9 members and 3 replicas it is
// C(9,3) + C(9,2) = 120, as Replicast has it (section IV.E, whose printed product
// lacks parentheses).
func RulesPerGroup(members, replicas int) uint64 {
	var n uint64
	for k := 2; k <= replicas; k++ {
		n += Choose(members, k)
	}
	return n
}

// RulesPerSwitch is how many forwarding rules every switch holds when all rendezvous
// groups of all negotiating groups are configured beforehand, the negotiating groups' own
// ones not counted. members must divide targets.
func RulesPerSwitch(targets, members, replicas int) uint64 {
	return RulesPerGroup(members, replicas) * uint64(targets/members)
}

// MostTargets is how many targets a cluster can have if its switches hold so many rules.
func MostTargets(rules uint64, members, replicas int) int {
	return int(rules/RulesPerGroup(members, replicas)) * members
}

// The shortest and longest bit strings of RFC 8296, section 2.1.2.
const (
	shortestBitString = 64
	longestBitString  = 4096
)

// BIERBits is the length of the bit string that can name any set of so many receivers:
// the least power of two from 64 to 4096. A negotiating group that is a BIER domain of its
// own needs only as many bits as it has members.
func BIERBits(receivers int) (int, error) {
	if receivers < 1 || receivers > longestBitString {
		return 0, fmt.Errorf("%d receivers: a BIER bit string names 1 to %d", receivers, longestBitString)
	}
	n := shortestBitString
	for n < receivers {
		n *= 2
	}
	return n, nil
}

// BIERHeader is the size of the header in every packet: three words and the bit string
// (RFC 8296, section 2).
func BIERHeader(bitString int) units.Bytes { return 12*units.Byte + units.Bytes(bitString/8) }

// BIERRules is how many entries every switch's bit index forwarding table has: one for
// each target that can receive (RFC 8279, section 6.4), however many sets are in use.
func BIERRules(targets int) uint64 { return uint64(targets) }

// BIERPackets is how many packets reach all targets of a cluster that is one BIER domain:
// one for each set of as many targets as the bit string has bits.
func BIERPackets(targets, bitString int) int { return (targets + bitString - 1) / bitString }

// BIEROverhead is the share of a packet of the given size, header included, that the
// header takes.
func BIEROverhead(bitString int, packet units.Bytes) units.Fraction {
	return units.Fraction(float64(BIERHeader(bitString)) / float64(packet))
}
