package server

import (
	"container/list"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"farflash/flash/cfs/requests"
	"farflash/flash/verbs/control"
	"farflash/flash/verbs/stream"
)

// seats are the clients that have joined, each with one connection at most. What a client sent on an earlier connection
// can still be on its way when it has given that connection up, and be executed after its requests on the next one. So
// the next one gets the seat only when the earlier one has ended.
//
// A client that has asked for its name keeps its seat while it is away, because others may have to fence it: whatever
// it left behind is theirs only when it cannot change that any more. Seats of clients that are away are given up from
// the longest absent on; such a client returns under another name, by which it knows that it was given up.
type seats struct {
	mu     sync.Mutex
	bySelf map[string]*seat // by secret
	byName map[string]*seat // of those that have asked for it
	away   list.List        // of *seat: named ones without a connection, the longest absent first
}

// mostAway bounds the seats that are kept for absent clients.
const mostAway = 4096

// seat is the place of one client.
type seat struct {
	secret string
	name   string // public; empty: it has not asked
	number uint32 // of the connection
	conn   *stream.Conn
	left   chan struct{} // closed when nothing of the connection is executed any more; nil: there is none
	ending chan struct{} // closed when another connection waits for that
	fenced bool
	last   requests.Last // used by the connection that has the seat
	past   control.Past
	asked  uint64        // messages of the connection when it asked for its name; unasked: it has not
	place  *list.Element // in away

	// The client was heard at since at the latest: it left then or, of a connection, an earlier Fence saw that heard
	// segments had arrived. Zero: no Fence has looked at the connection.
	heard uint64
	since time.Time
}

const unasked = 1<<64 - 1

// take ends the client's earlier connection and gives its seat to conn.
func (t *seats) take(secret string, number uint32, conn *stream.Conn) (*seat, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		x := t.bySelf[secret]
		switch {
		case x == nil:
			x = &seat{secret: secret}
			t.bySelf[secret] = x
		case x.fenced:
			return nil, control.Fenced
		case x.number >= number:
			return nil, control.Stale
		case x.left != nil:
			_ = t.end(x, nil) // never fails: no other connection can wait for one that is joining
			continue
		}
		if x.place != nil {
			t.away.Remove(x.place)
			x.place = nil
		}
		x.number, x.conn, x.since, x.asked = number, conn, time.Time{}, unasked
		x.left, x.ending = make(chan struct{}), make(chan struct{})
		return x, nil
	}
}

// end closes a seat's connection and waits until nothing of it is executed any more. It gives up if the connection that
// waits, that of by, is ended itself: two clients may fence each other. t.mu is locked.
func (t *seats) end(x, by *seat) error {
	conn, left := x.conn, x.left
	select {
	case <-x.ending:
	default:
		close(x.ending)
	}
	var over chan struct{} // nil: never
	if by != nil {
		over = by.ending
	}
	t.mu.Unlock()
	defer t.mu.Lock()
	_ = conn.Close() // never fails
	select {
	case <-left:
		return nil
	case <-over:
		return control.Fenced
	}
}

// leave ends a connection's use of its seat. The connection has been closed.
func (t *seats) leave(x *seat) {
	if x == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	close(x.left)
	// If nothing came after the answer, the client may not have it, and asks about the connection before.
	if n := x.conn.Counters().Messages; n > x.asked {
		x.past = control.Past{Number: x.number, Messages: n}
	}
	x.conn, x.left, x.since = nil, nil, time.Now()
	if x.name == "" {
		delete(t.bySelf, x.secret)
		return
	}
	x.place = t.away.PushBack(x)
	for t.away.Len() > mostAway {
		first := t.away.Remove(t.away.Front()).(*seat)
		delete(t.bySelf, first.secret)
		delete(t.byName, first.name)
	}
}

// named returns the public name of a client, and what was executed of its last connection.
func (t *seats) named(x *seat) (string, control.Past, error) {
	var b [control.NameLength / 2]byte
	t.mu.Lock()
	defer t.mu.Unlock()
	if x.asked == unasked && x.conn != nil {
		x.asked = x.conn.Counters().Messages
	}
	if x.name != "" {
		return x.name, x.past, nil
	}
	if _, err := rand.Read(b[:]); err != nil {
		return "", control.Past{}, err
	}
	x.name = hex.EncodeToString(b[:])
	t.byName[x.name] = x
	return x.name, x.past, nil
}

// last returns the last numbered request of a client, which is kept as long as its name; nil: it has none.
func (t *seats) last(x *seat) *requests.Last {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x == nil || x.name == "" {
		return nil
	}
	return &x.last
}

// fence ends the client with a name for ever, unless it was heard within the time of patience. by is the seat of who
// asks, or nil.
func (t *seats) fence(name string, patience time.Duration, by *seat) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.byName[name]
	switch {
	case x == nil:
		return nil
	case x == by:
		return fmt.Errorf("%w: a client does not fence itself", control.Malformed)
	case patience > 0 && !x.fenced && x.alive(patience):
		return control.Alive
	}
	x.fenced = true
	for x.left != nil {
		if err := t.end(x, by); err != nil {
			return err
		}
	}
	return nil
}

// alive reports whether the client was heard within the time of patience, as far as it is known: a connection counts as
// silent only if nothing has arrived on it since an earlier look, that long ago.
func (x *seat) alive(patience time.Duration) bool {
	if x.conn != nil {
		if n := x.conn.Counters().SegmentsIn; x.since.IsZero() || n != x.heard {
			x.heard, x.since = n, time.Now()
		}
	}
	return time.Since(x.since) < patience
}

// Join implements control.Clients. The instance is the session of the pool: whoever opens the pool again begins
// another.
func (e *exports) Join(secret string, number uint32) (instance string, err error) {
	p := e.s.cfg.Pool
	e.seat, err = e.s.seats.take(secret, number, e.conn)
	return fmt.Sprintf("%v/%d", p.Shape().UUID, p.Found().Session), err
}

// Whoami implements control.Clients.
func (e *exports) Whoami() (string, control.Past, error) { return e.s.seats.named(e.seat) }

// Fence implements control.Clients.
func (e *exports) Fence(name string, patience time.Duration) error {
	return e.s.seats.fence(name, patience, e.seat)
}
