package cosim

// Bound has a host take no more than so many requests that have come and not completed.
func (h *Host) Bound(n uint64) { h.most = n }
