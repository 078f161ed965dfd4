package uring

import "time"

// DefaultSpin is the default time for which a thread polls before it sleeps: about the round trip of a 4 KiB request
// from a client to a drive and back, so that a single client with one request outstanding is served without sleeping.
// Linux itself polls up to 200 us before a virtual processor sleeps (halt_poll_ns).
const DefaultSpin = 100 * time.Microsecond

// spinning decides whether to poll instead of sleeping: for a limited time after an event, and only if that event
// followed its predecessor within the same limit. Infrequent requests thus cost a single poll each.
type spinning struct {
	last time.Time // time of the last event
	soon bool      // it followed its predecessor within the limit
}

// came records an event.
func (s *spinning) came(now time.Time, limit time.Duration) {
	s.soon = now.Sub(s.last) <= limit
	s.last = now
}

// worth reports whether to poll again.
func (s *spinning) worth(now time.Time, limit time.Duration) bool {
	return s.soon && now.Sub(s.last) < limit
}
