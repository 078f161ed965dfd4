package put

import (
	"errors"
	"fmt"

	"farflash/numeric/units"
)

// mostNodes bounds the gateways, and the targets, of a plan.
const mostNodes = 1 << 24

// Validate reports what a plan cannot be.
func (p *Plan) Validate() error {
	if p.Traits == nil || p.Times == nil {
		return errors.New("put: the plan's traits or its times are nil; use Scheme.Traits and reserve.New")
	}
	var bad units.Faults
	within := func(key string, n, low, high int) {
		bad.Hold(n >= low && n <= high, key, "%d is not possible; use %d to %d", n, low, high)
	}
	within("gateways", p.Gateways, 1, mostNodes)
	within("targets", p.Targets, 1, mostNodes)
	within("copies", p.Copies, 1, MaxReplicas)
	within("racks", p.Racks, 0, mostNodes)
	within("candidates", p.Candidates, 0, MaxGroups)
	within("choices", p.Choices, 0, MaxCandidates)
	within("overcommit", p.Overcommit, 0, mostNodes)
	bad.Hold(p.Copies*p.Choices <= MaxCandidates, "choices",
		"%d for each of %d copies are not possible; use %d together",
		p.Choices, p.Copies, MaxCandidates)
	if p.Traits.Finds == FindsBidders {
		within("group_size", p.GroupSize, 1, min(max(p.Targets, 1), MaxHeard))
	} else {
		within("group_size", p.GroupSize, 0, mostNodes) // unused
	}
	for _, x := range []struct {
		key  string
		size units.Bytes
		low  units.Bytes
	}{{"piece", p.Piece, 1}, {"frame", p.Frame, 1}, {"room", p.Room, 0}} {
		bad.Hold(x.size >= x.low && x.size <= units.TiB, x.key, "%v is not possible; use %v to %v", x.size, x.low,
			units.TiB)
	}
	bad.Hold(min(p.Alone, p.Trip, p.Ahead) >= 0, "", "a disk's time of %v, a trip of %v and an ahead of %v are not "+
		"possible; use 0s or more", p.Alone, p.Trip, p.Ahead)
	if err := bad.Err(); err != nil {
		return fmt.Errorf("put: %w", err)
	}
	return nil
}
