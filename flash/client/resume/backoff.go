// Package resume is a client's policy for lost connections: when to try the next one, which operations to repeat on it
// and in which order, and whose outcome to report as unknown.
//
// Backoff times the attempts, and Ledger knows the operations. Both are plain state machines, without clock, goroutines
// or I/O; flash/client executes their decisions. The reasons are in docs/adr/0031-reconnecting.md.
//
// It leaves out the work of a connection: opening exports again, and ending the earlier connection at the
// server.
package resume

import "farflash/numeric/rng"

// Times are the settings of a Backoff, in nanoseconds.
type Times struct {
	// Limit is the time from the beginning of an outage to its last attempt.
	Limit int64
	// First is the pause after the first failed attempt. It doubles with each one up to Cap, and each pause is
	// shortened by a random part of up to one half, so that the clients of a server do not return all at once. First
	// is not above Cap, and both are positive.
	First, Cap int64
	// Seed determines the random parts.
	Seed uint64
}

// Backoff times the attempts to connect. An outage begins when a connection is missed, and ends when one has answered
// something; connections that end before that belong to the same outage, so a server that ends each one at once does
// not get more attempts than one that refuses them. Times are in nanoseconds on the caller's clock.
type Backoff struct {
	times  Times
	draw   rng.Stream
	out    bool // during an outage
	began  int64
	next   int64 // when the next attempt is due
	failed uint  // attempts in this outage
}

// NewBackoff returns a Backoff that is not in an outage.
func NewBackoff(t Times) *Backoff {
	return &Backoff{times: t, draw: rng.NewStream(t.Seed, "reconnect")}
}

// Missed reports that there is no connection, and that one is wanted. The first attempt of an outage is due at once.
func (b *Backoff) Missed(now int64) {
	if b.out {
		b.Failed(now)
		return
	}
	b.out, b.began, b.next, b.failed = true, now, now, 0
}

// Failed reports that an attempt failed.
func (b *Backoff) Failed(now int64) {
	pause := b.times.Cap
	if s := b.times.First << min(b.failed, 32); b.times.First < b.times.Cap>>min(b.failed, 32) {
		pause = s
	}
	b.failed++
	b.next = now + pause - b.draw.IntN(pause/2+1)
}

// Answered reports that a connection has answered, which ends the outage.
func (b *Backoff) Answered() { b.out = false }

// Next returns when the next attempt is due, and when the outage has lasted for its limit: the attempt must have
// succeeded by then. ok is false if it is due only after that.
func (b *Backoff) Next() (at, until int64, ok bool) {
	until = b.began + b.times.Limit
	return b.next, until, b.next < until
}
