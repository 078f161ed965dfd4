package accept

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"farflash/flash/halfopen"
)

// Conn is a connection behind a Door.
type Conn interface {
	comparable
	// Serve serves the connection until it ends, closes it, and returns the reason if that is worth a message.
	Serve() error
	// Abort makes Serve return soon. It may be called before Serve, and on any goroutine.
	Abort()
}

// Limits bound the connections of a Door.
type Limits struct {
	Most int // in place: their clients are known
	// Early is the maximum number of others. A further one displaces the oldest of the host that has the most (package
	// halfopen).
	Early int
	// Failed, if set, receives why a connection ended or could not be accepted.
	Failed func(net.Addr, error)
}

// Door is the connections of a server, on any number of listeners, from their arrival to their end. It is safe for
// concurrent use.
type Door[C Conn] struct {
	limits Limits
	slots  chan struct{} // one per connection that is not in place, displaced ones that have not ended included

	mu        sync.Mutex
	listeners map[net.Listener]bool
	conns     map[C]*guest
	early     *halfopen.Table[C]
	places    int
	closing   bool
	running   sync.WaitGroup
}

// guest is the state of a connection.
type guest struct {
	from              net.Addr
	placed, displaced bool
}

// NewDoor returns a door.
func NewDoor[C Conn](l Limits) *Door[C] {
	return &Door[C]{limits: l, listeners: map[net.Listener]bool{}, conns: map[C]*guest{},
		early: halfopen.New[C](l.Early), slots: make(chan struct{}, 2*max(l.Early, 1))}
}

// Serve accepts connections and serves each, as open makes it, on a goroutine of its own, until Close, which closes l.
func (d *Door[C]) Serve(l net.Listener, open func(net.Conn) C) error {
	d.mu.Lock()
	if d.closing {
		d.mu.Unlock()
		return l.Close()
	}
	d.listeners[l] = true
	d.mu.Unlock()
	err := Loop(l, func(nc net.Conn) { d.take(nc, open(nc)) }, d.ending, func(err error) {
		d.failed(l.Addr(), fmt.Errorf("accepting: %w", err))
	})
	d.mu.Lock()
	delete(d.listeners, l)
	d.mu.Unlock()
	if err != nil {
		err = errors.Join(err, l.Close())
	}
	return err
}

func (d *Door[C]) failed(a net.Addr, err error) {
	if err != nil && d.limits.Failed != nil {
		d.limits.Failed(a, err)
	}
}

func (d *Door[C]) ending() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closing
}

// take serves a connection. If too many are not in place, it ends another one.
func (d *Door[C]) take(nc net.Conn, c C) {
	d.slots <- struct{}{} // displaced connections end soon
	d.mu.Lock()
	if d.closing {
		d.mu.Unlock()
		<-d.slots
		_ = nc.Close() // the client sees a close before the first byte
		return
	}
	g := &guest{from: nc.RemoteAddr()}
	d.conns[c] = g
	oldest, full, report := d.early.Enter(halfopen.Source(g.from), c, time.Now())
	var last net.Addr
	if full {
		d.conns[oldest].displaced, last = true, d.conns[oldest].from
	}
	d.running.Add(1)
	d.mu.Unlock()
	if full {
		oldest.Abort()
	}
	if report > 0 {
		d.failed(last, fmt.Errorf("%d connections closed in their handshakes to admit others (at most %d are in "+
			"theirs); "+
			"this is the last", report, d.limits.Early))
	}
	go func() {
		defer d.running.Done()
		err := c.Serve()
		d.mu.Lock()
		delete(d.conns, c)
		if g.placed {
			d.places--
		} else {
			d.early.Leave(c)
			<-d.slots
		}
		if g.displaced {
			err = nil // reported, together with others
		}
		d.mu.Unlock()
		d.failed(g.from, err)
	}()
}

// ErrMany is the error of Place for connections beyond Most, and for those that were displaced at the same time.
var ErrMany = errors.New("too many connections")

// Place gives a connection its place, once: its client is known.
func (d *Door[C]) Place(c C) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.places >= d.limits.Most || !d.early.Leave(c) {
		return ErrMany
	}
	d.conns[c].placed = true
	d.places++
	<-d.slots
	return nil
}

// Count is the number of connections in place, of others, and of those that were displaced.
func (d *Door[C]) Count() (placed, early int, displaced int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.places, d.early.Len(), d.early.Displaced()
}

// Close accepts no more connections, and returns those that have not ended. The caller ends them, then calls Wait.
func (d *Door[C]) Close() (left []C, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closing = true
	for l := range d.listeners {
		err = errors.Join(err, l.Close())
	}
	for c := range d.conns {
		left = append(left, c)
	}
	return left, err
}

// Wait waits until all connections have ended.
func (d *Door[C]) Wait() { d.running.Wait() }
