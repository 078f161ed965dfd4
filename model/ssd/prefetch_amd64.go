package ssd

// prefetch hints to the processor to load the cache line of p. It only affects speed: the map is far larger than the
// caches, and a page's entry is needed several events after the request is known.
//
//go:noescape
func prefetch(p *uint32)
