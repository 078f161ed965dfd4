package server

import (
	"fmt"
	"sync"

	"farflash/flash/verbs/control"
	"farflash/flash/verbs/stream"
)

// seats are the connections that have joined, by their clients' secrets: one for each client. What a client sent on an
// earlier connection can still be on its way when it has given that connection up, and be executed after what it sends
// on the next one. So the next one gets the seat only when the earlier one has ended.
type seats struct {
	mu  sync.Mutex
	all map[string]*seat
}

// seat is the place of one connection.
type seat struct {
	secret string
	number uint32
	conn   *stream.Conn
	left   chan struct{} // closed when nothing of the connection is executed any more
}

// take ends the client's earlier connection and gives its seat to conn.
func (t *seats) take(secret string, number uint32, conn *stream.Conn) (*seat, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		earlier := t.all[secret]
		switch {
		case earlier == nil:
			x := &seat{secret, number, conn, make(chan struct{})}
			t.all[secret] = x
			return x, nil
		case earlier.number >= number:
			return nil, control.Stale
		}
		t.mu.Unlock()
		_ = earlier.conn.Close() // never fails
		<-earlier.left
		t.mu.Lock()
	}
}

// leave gives a seat up. The connection has been closed.
func (t *seats) leave(x *seat) {
	if x == nil {
		return
	}
	t.mu.Lock()
	delete(t.all, x.secret)
	t.mu.Unlock()
	close(x.left)
}

// Join implements control.Exports. The instance is the session of the pool: whoever opens the pool again begins
// another.
func (e *exports) Join(secret string, number uint32) (instance string, err error) {
	p := e.s.cfg.Pool
	e.seat, err = e.s.seats.take(secret, number, e.conn)
	return fmt.Sprintf("%v/%d", p.Shape().UUID, p.Found().Session), err
}
