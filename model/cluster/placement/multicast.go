package placement

import (
	"fmt"
	"math/bits"

	"farflash/numeric/units"
)

// The cost of reaching some members of a negotiating group with one packet: either a multicast group for every set of
// members that may be chosen, each a rule in every switch, or a bit string in every packet (BIER, RFC 8279 and 8296).

// choose returns the number of ways to choose k of n, 0 if there are none. It panics if the result exceeds 64 bits.
func choose(n, k int) uint64 {
	if k < 0 || k > n {
		return 0
	}
	c := uint64(1)
	for i := 1; i <= min(k, n-k); i++ {
		hi, lo := bits.Mul64(c, uint64(n-i+1))
		if hi >= uint64(i) {
			panic(fmt.Sprintf("placement: %d over %d exceeds 64 bits", n, k))
		}
		c, _ = bits.Div64(hi, lo, uint64(i))
	}
	return c
}

// rulesPerGroup returns the number of rendezvous groups that enumerate every set of 2 to replicas members of a
// negotiating group: C(g,2) + ... + C(g,r). Sets of fewer than r serve chunks of which copies exist; one member needs
// no multicast. For 9 members and 3 replicas it is C(9,3) + C(9,2) = 120, as in Replicast (section IV.E, whose printed
// product lacks parentheses).
func rulesPerGroup(members, replicas int) uint64 {
	var n uint64
	for k := 2; k <= replicas; k++ {
		n += choose(members, k)
	}
	return n
}

// RulesPerSwitch returns the number of forwarding rules in every switch when all rendezvous groups of all negotiating
// groups are configured in advance, not counting the negotiating groups' own rules. members must divide targets.
func RulesPerSwitch(targets, members, replicas int) uint64 {
	return rulesPerGroup(members, replicas) * uint64(targets/members)
}

// The shortest and longest bit strings of RFC 8296, section 2.1.2.
const (
	shortestBitString = 64
	longestBitString  = 4096
)

// BIERBits returns the length of the bit string that can name any set of the given number of receivers: the smallest
// power of two from 64 to 4096. A negotiating group that is a BIER domain of its own needs only as many bits as it has
// members.
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

// BIERHeader returns the size of the header in every packet: three words and the bit string (RFC 8296, section 2).
func BIERHeader(bitString int) units.Bytes { return 12*units.Byte + units.Bytes(bitString/8) }
