package put

// InFlight returns the number of replicas in flight, for tests; 0 for protocols that do not number them.
func InFlight(p Protocol) int {
	switch x := p.(type) {
	case *uch:
		return x.flows.Used()
	case *aimd:
		return x.flows.Used()
	case *hybrid:
		return x.flows.Used()
	case *double:
		return x.flows.Used()
	}
	return 0
}

// Idle returns the number of free Choosy instances of a gateway, for protocols that use them, and whether all of them
// are distinct.
func Idle(p Protocol, gateway int32) (n int, once bool) {
	var h *hybrid
	switch x := p.(type) {
	case *hybrid:
		h = x
	case *double:
		h = &x.hybrid
	default:
		return 1, true
	}
	seen := map[any]bool{}
	for _, c := range h.idle[gateway] {
		seen[c] = true
	}
	return len(h.idle[gateway]), len(seen) == len(h.idle[gateway])
}

// ChooseGroup draws the group of a gateway's next chunk.
func (b *Bus) ChooseGroup(gateway int32) int32 { return b.chooseGroup(&Chunk{Gateway: gateway}) }
