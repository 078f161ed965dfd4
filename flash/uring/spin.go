package uring

import "time"

// DefaultSpin is for how long a thread looks for more before it sleeps, unless somebody says otherwise: about what a
// request of 4 KiB takes from its client to a drive and back, so that one client with one request under way is served
// without sleep. Linux itself polls up to 200 us before a virtual processor sleeps (halt_poll_ns).
const DefaultSpin = 100 * time.Microsecond

// spinning tells whether it is worth to look for more in place of sleeping: for a time after what came last, and only
// if that came as soon after what was before it. So requests that come now and then cost no more than one look each.
type spinning struct {
	last time.Time // when something came last
	soon bool      // no later after what was before it than the limit
}

// came: there was something.
func (s *spinning) came(now time.Time, limit time.Duration) {
	s.soon = now.Sub(s.last) <= limit
	s.last = now
}

// worth reports whether to look again.
func (s *spinning) worth(now time.Time, limit time.Duration) bool {
	return s.soon && now.Sub(s.last) < limit
}
