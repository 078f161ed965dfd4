package ssd

// prefetch asks the processor to bring the cache line of p closer. It changes
// nothing but time: the map is far larger than the caches, and a page's entry is
// needed several events after the request is known.
//
//go:noescape
func prefetch(p *uint32)
