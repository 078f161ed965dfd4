package put

// InFlight is how many replicas a protocol has in flight, for tests; 0 where it does not number them.
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
