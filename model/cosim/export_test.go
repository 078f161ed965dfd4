package cosim

// Bound limits a host's outstanding requests.
func (h *Host) Bound(n uint64) { h.most = n }
