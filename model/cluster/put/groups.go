package put

import (
	"fmt"
	"slices"

	"farflash/numeric/rng"
)

// Groups are the negotiating groups, each of which consists of GroupSize consecutive targets.
type Groups struct {
	// Away is, for each target, whether others know that it is down.
	Away []bool
	last []int32 // by gateway: the group of its last chunk
}

// newGroups returns the groups for the given numbers of gateways and targets.
func newGroups(gateways, targets int) Groups {
	g := Groups{Away: make([]bool, targets), last: make([]int32, gateways)}
	for k := range g.last {
		g.last[k] = -1
	}
	return g
}

// GroupCount returns the number of negotiating groups; 0 if there are none.
func (p *Plan) GroupCount() int {
	if p.GroupSize < 1 {
		return 0
	}
	return p.Targets / p.GroupSize
}

// chooseGroup draws the negotiating group of a chunk: any group but that of the gateway's last chunk.
func (b *Bus) chooseGroup(x *Chunk) int32 {
	last := &b.last[x.Gateway]
	n := int64(b.GroupCount())
	group := int32(b.Rand.IntN(n))
	if group == *last {
		group = int32(b.Rand.IntN(n))
	}
	if group == *last {
		group = (group + 1) % int32(n)
	}
	*last = group
	return group
}

// DrawGroups draws len(groups) distinct groups of n, which is at least as many.
func DrawGroups(s *rng.Stream, n int, groups []int32) {
	if s == nil || n < len(groups) || n > mostNodes {
		panic(fmt.Sprintf("put: DrawGroups of %d distinct groups of %d, or without a stream", len(groups), n))
	}
	for k := range groups {
		g := int32(s.IntN(int64(n)))
		for slices.Contains(groups[:k], g) {
			g = int32(s.IntN(int64(n)))
		}
		groups[k] = g
	}
}

// GroupOf appends the targets of a group that are not known to be down. The group must exist.
func (b *Bus) GroupOf(group int32, dst []int32) []int32 {
	if group < 0 || int(group) >= b.GroupCount() {
		panic(fmt.Sprintf("put: GroupOf group %d; there are %d", group, b.GroupCount()))
	}
	for k := range int32(b.GroupSize) {
		if t := group*int32(b.GroupSize) + k; !b.Away[t] {
			dst = append(dst, t)
		}
	}
	return dst
}

// askOrder permutes the targets of a group that a gateway asks for bids now into the order of their answers.
func (b *Bus) askOrder(group, gateway int32, targets []int32) {
	if b.Compat != CompatNone {
		surgeOrder(b.Seed, b.Now(), b.Compat, group, gateway, targets)
	}
}

// ties returns the stream that orders simultaneous bids with equal windows.
func (b *Bus) ties() *rng.Stream {
	if b.Compat != CompatNone {
		return nil // surgeOrder has already decided
	}
	return &b.Rand
}

// Nearest returns the multiple of the group size that is closest to a number of targets, and is at least two groups.
func Nearest(targets, group int) int {
	if group < 1 {
		return targets
	}
	return max((targets+group/2)/group, 2) * group
}

// Pick moves a random selection of n targets, no two in the same rack, to the front of the candidates, which must have
// that many.
func (b *Bus) Pick(s *rng.Stream, n int, among []int32) {
	if s == nil || n < 0 || n > len(among) {
		panic(fmt.Sprintf("put: Pick of %d targets among %d, or without a stream", n, len(among)))
	}
	for k := range n {
		i := k + int(s.IntN(int64(len(among)-k)))
		if b.shares(among[:k], among[i]) &&
			!slices.ContainsFunc(among[k:], func(t int32) bool { return !b.shares(among[:k], t) }) {
			panic(fmt.Sprintf("put: Pick of %d targets in separate racks among %v", n, among))
		}
		for b.shares(among[:k], among[i]) {
			i = k + int(s.IntN(int64(len(among)-k)))
		}
		among[k], among[i] = among[i], among[k]
	}
}

// Holders is the largest number of targets, among those not known to be away, that the pieces of one chunk can be
// placed on.
func (b *Bus) Holders() int {
	size := b.Targets
	if b.Traits.Finds == FindsBidders {
		size = b.GroupSize
	}
	left := make([]int, b.Targets/size) // by group
	racks := map[int]bool{}
	for t := range b.Targets {
		if k := t / size; !b.Away[t] && k < len(left) {
			left[k]++
			racks[t%max(b.Racks, 1)] = true
		}
	}
	slices.Sort(left)
	sum := 0
	for k := range min(max(b.Candidates, 1), len(left)) {
		sum += left[len(left)-1-k]
	}
	if b.Racks > 0 {
		sum = min(sum, len(racks))
	}
	return sum
}
